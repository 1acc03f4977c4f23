"""The parser of the command line. Only the module of the asked command is imported."""

import importlib
import inspect
import sys

from cyclopts import App, Group
from rich.console import Console

from growth import __version__
from growth.cli.commands import ABOUT, COMMANDS, USAGE


def build(asked: str) -> App:
    """The parser for a command line whose command is `asked`; the others are known to it by name."""
    app = App(
        name="growth",
        usage=USAGE,
        help=ABOUT,
        help_format="plaintext",
        version=__version__,
        group_parameters=Group("Options", sort_key=1),
        console=Console(file=sys.stdout, emoji=False, highlight=False),  # its table of emoji costs a tenth of a start
        suppress_keyboard_interrupt=False,
    )
    for name, command in COMMANDS.items():
        if name != asked:
            app.command(command.place, name=name, help=command.purpose)
            continue
        module, _, function = command.place.partition(":")
        work = getattr(importlib.import_module(module), function)
        app.command(work, name=name, help=_paragraphs(work.__doc__ or ""))
    return app


def _paragraphs(text: str) -> str:
    """The text with each paragraph on one line: the terminal, not our source, decides where lines break."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))
