"""Log lines: one an event, with its context, by our clock, without secrets."""

import ast
import asyncio
import datetime as dt
import io
import json
import logging
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

import growth
from growth.operator.logs import Format, configure
from growth.telemetry.logs import about, logger

LEVEL_CALLS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})


class FixedClock:
    def now(self) -> dt.datetime:
        return dt.datetime(2026, 11, 15, 16, 57, 0, 250_000, tzinfo=dt.UTC)

    def monotonic(self) -> float:
        return 0.0

    def boot_time(self) -> float:
        return self.monotonic()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Leaves the process's logging as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_its_own_fields_first() -> None:
    """Time by our clock, level, event and controller lead; the values follow as fields by name."""
    stream = io.StringIO()
    configure(clock=FixedClock(), stream=stream)
    logger("lifecycle").info("launched nodeclaim", zone="fsn1", cpu=4)
    assert stream.getvalue() == (
        '{"time":"2026-11-15T16:57:00.250000Z","level":"info","event":"launched nodeclaim",'
        '"controller":"lifecycle","cpu":4,"zone":"fsn1"}\n'
    )


def test_lines_carry_the_object_that_they_are_about() -> None:
    """Bound fields reach every line inside the block, tasks started there included, and no line after it."""
    stream = io.StringIO()
    configure(clock=FixedClock(), stream=stream)
    log = logger("lifecycle")

    async def work(name: str) -> None:
        with about(NodeClaim=name):
            await asyncio.sleep(0)
            await asyncio.create_task(inner())

    async def inner() -> None:
        log.info("inside")

    async def both() -> None:
        await asyncio.gather(work("a"), work("b"))

    asyncio.run(both())
    with about(NodeClaim="c"), about(Node="n"):
        log.info("nested")
    log.info("outside")
    inside, second, nested, outside = lines(stream)
    assert {inside["NodeClaim"], second["NodeClaim"]} == {"a", "b"}
    assert (nested["NodeClaim"], nested["Node"]) == ("c", "n")
    assert "NodeClaim" not in outside


def test_a_terminal_gets_columns_and_a_file_gets_json_unless_asked() -> None:
    """The flag wins over the look of the stream."""
    terminal, file, asked = Terminal(), io.StringIO(), Terminal()
    configure(clock=FixedClock(), stream=terminal)
    logger("x").info("hello", pod="web")
    configure(clock=FixedClock(), stream=file)
    logger("x").info("hello", pod="web")
    configure(clock=FixedClock(), stream=asked, format=Format.JSON)
    logger("x").info("hello", pod="web")
    assert "\x1b[" in terminal.getvalue()
    assert not terminal.getvalue().startswith("{")
    assert file.getvalue() == asked.getvalue()
    assert lines(file)[0]["pod"] == "web"
    configure(clock=FixedClock(), stream=file, format=Format.CONSOLE)
    logger("x").info("plain")
    assert "\x1b[" not in file.getvalue()


def test_a_line_below_the_level_is_dropped() -> None:
    """The level holds, also for loggers made before the set-up; an unknown one is refused."""
    log = logger("x")
    stream = io.StringIO()
    configure(clock=FixedClock(), stream=stream, level="warning")
    log.info("no")
    log.warning("yes")
    assert [line["event"] for line in lines(stream)] == ["yes"]
    with pytest.raises(ValueError, match="choose one of debug, info, warning, error"):
        configure(clock=FixedClock(), stream=stream, level="loud")


def test_no_secret_reaches_a_line() -> None:
    """Fields, bound fields, texts and tracebacks are redacted."""
    for chosen in Format:
        stream = io.StringIO()
        configure(clock=FixedClock(), stream=stream, format=chosen)
        log = logger("x")
        with about(user_data="hunter2"):
            log.info("asked", token="hunter2", headers={"Authorization": "Bearer hunter2-hunter2"})
            try:
                raise ValueError("refused: token=hunter2")  # the traceback would show this line too
            except ValueError:
                log.exception("failed")
        assert "refused" in stream.getvalue()
        assert "hunter2" not in stream.getvalue()


def test_lines_of_libraries_take_the_same_way() -> None:
    """A warning of the standard library's logging is one of our lines; its chatter is not, unless asked for."""
    stream = io.StringIO()
    configure(clock=FixedClock(), stream=stream)
    configure(clock=FixedClock(), stream=stream)
    logging.getLogger("some.library").warning("password=%s is wrong", "hunter2")
    logging.getLogger("some.library").info("chatter")
    (line,) = lines(stream)
    assert line["event"] == "library message"
    assert line["controller"] == "some.library"
    assert line["message"].startswith("password=")
    assert "hunter2" not in line["message"]


def computed_event_names(source: str) -> list[str]:
    """Calls on something named like a logger whose first argument is no plain string."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVEL_CALLS):
            continue
        owner = ast.unparse(node.func.value)
        first = node.args[0] if node.args else None
        if owner.endswith("log") and not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def test_event_names_are_constants() -> None:
    """Values are fields and never part of an event's name, anywhere in the sources."""
    assert computed_event_names('_log.info(f"launched {name}")') == ["line 1: _log.info(f'launched {name}')"]
    assert computed_event_names("self.log.error(message)") == ["line 1: self.log.error(message)"]
    assert computed_event_names('_log.info("launched", name=name)') == []
    for path in pathlib.Path(growth.__file__).parent.rglob("*.py"):
        assert computed_event_names(path.read_text()) == [], path
