"""Runs one command line: the single place where an error becomes a line on stderr and an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import Final

from growth import __version__
from growth.cli.commands import overview
from growth.cli.errors import INTERRUPTED, OUTPUT_CLOSED, UsageError, explained

# May stand before the command as well as behind it, as with kubectl.
_BEFORE_COMMAND: Final = ("--kubeconfig", "--context")


def run(arguments: Sequence[str]) -> int:
    """The exit code of `growth <arguments>`; output goes to stdout, everything about it to stderr."""
    try:
        _call(list(arguments))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # What is still buffered must not be tried again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_CLOSED
    except Exception as error:  # noqa: BLE001  this is where every error ends
        if os.environ.get("GROWTH_DEBUG", "") not in {"", "0"}:
            _print_traceback()
        line, code = explained(error)
        print(f"growth: {line}", file=sys.stderr)
        return code
    return 0


def _call(arguments: list[str]) -> None:
    arguments = _reordered(arguments)
    first = arguments[0] if arguments else "--help"
    if first in {"--help", "-h"}:
        print(overview())
    elif first == "--version":
        print(__version__)
    else:
        _command(arguments)


def _command(arguments: list[str]) -> None:
    from cyclopts import CycloptsError, UnusedCliTokensError

    from growth.cli.app import build

    # The parser takes a lone dash for an option without a name.
    words = ["/dev/stdin" if word == "-" else word for word in arguments]
    try:
        command, bound, _ = build(words[0]).parse_args(words, exit_on_error=False, print_error=False)
    except UnusedCliTokensError as error:
        surplus = " ".join(error.unused_tokens or ())
        raise UsageError(_advice(f"{surplus!r} is more than the command takes", arguments)) from error
    except CycloptsError as error:
        raise UsageError(_advice(str(error), arguments)) from error
    command(*bound.args, **bound.kwargs)


def _print_traceback() -> None:
    import traceback

    from growth.telemetry.redaction import redacted_text

    print(redacted_text(traceback.format_exc()), end="", file=sys.stderr)


def _reordered(arguments: list[str]) -> list[str]:
    """Moves `--kubeconfig x` and `--context x` from before the command to behind it."""
    moved: list[str] = []
    rest = list(arguments)
    while rest:
        name, equals, _ = rest[0].partition("=")
        if name not in _BEFORE_COMMAND:
            break
        taken = 1 if equals else 2
        moved, rest = moved + rest[:taken], rest[taken:]
    if moved and not rest:
        raise UsageError(f"{' '.join(moved)} stands alone; name a command: `growth --help` shows what there is")
    return rest + moved


def _advice(text: str, arguments: list[str]) -> str:
    """A parser's complaint with the way out: the nearest help."""
    command = next((word for word in arguments if not word.startswith("-")), "")
    known = command and not text.startswith("Unknown command")
    told = text[:1].lower() + text[1:].rstrip(".")
    told += "" if told.endswith("?") else ";"
    return f"{told} `growth {f'{command} ' if known else ''}--help` shows what there is"
