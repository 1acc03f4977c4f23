"""Sets up logging for the process: one line an event, JSON for machines and coloured columns for a terminal.

Every line passes the same steps: context that `telemetry.logs.about` bound, level, time by the given clock, the
exception as text, redaction, rendering. Lines of libraries that use the standard library's logging take the same way.
"""

import enum
import logging
from typing import Any, Final, TextIO

import msgspec
import structlog
from structlog.typing import EventDict, WrappedLogger

from growth.ports import Clock
from growth.telemetry.redaction import redacted
from growth.units.timestamp import print_micro_time

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
LEVELS: Final = tuple(_LEVELS)

# The line's own fields come first, so that the eye and the terminal's width meet what matters.
_FIRST: Final = ("time", "level", "event", "controller")


class Format(enum.StrEnum):
    """How a line looks."""

    JSON = "json"
    CONSOLE = "console"


def configure(*, clock: Clock, stream: TextIO, level: str = "info", format: Format | None = None) -> None:  # noqa: A002  the flag's name
    """Sends every line at or above `level` to `stream`; without `format` a terminal gets columns and a file gets JSON.

    May be called again: the last call counts, also for loggers that exist already.
    """
    if level not in _LEVELS:
        raise ValueError(f"{level!r} is not a log level: choose one of {', '.join(LEVELS)}")
    terminal = stream.isatty()
    chosen = format or (Format.CONSOLE if terminal else Format.JSON)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _Stamp(clock),
            structlog.processors.StackInfoRenderer(),
            structlog.processors.ExceptionRenderer(),
            _redact,
            _in_order,
            _json if chosen is Format.JSON else _console(colours=terminal),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Forward)]:
        root.removeHandler(handler)
    root.addHandler(_Forward())
    # Libraries are chatty below a warning; what they say there is for those who ask for it.
    root.setLevel(logging.DEBUG if level == "debug" else max(logging.WARNING, _LEVELS[level]))


class _Stamp:
    """The time of a line, by our own clock, so that simulated runs have simulated times."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event["time"] = print_micro_time(self._clock.now())
        return event


class _Forward(logging.Handler):
    """Takes the standard library's records the same way as our lines."""

    def emit(self, record: logging.LogRecord) -> None:
        line = structlog.get_logger(controller=record.name)
        line.log(record.levelno, "library message", message=record.getMessage(), exc_info=record.exc_info)


def _redact(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    return {name: redacted(value, key=name) for name, value in event.items()}


def _in_order(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    first = {name: event[name] for name in _FIRST if name in event}
    return first | {name: event[name] for name in sorted(event) if name not in first}


def _json(_: WrappedLogger, __: str, event: EventDict) -> str:
    return msgspec.json.encode(event).decode()


def _console(*, colours: bool) -> Any:
    return structlog.dev.ConsoleRenderer(
        colors=colours, timestamp_key="time", sort_keys=False, exception_formatter=structlog.dev.plain_traceback
    )
