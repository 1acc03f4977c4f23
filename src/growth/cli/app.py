"""The list of commands, and what `growth --help` says. The modules of the commands import heavy packages only when they run."""

import inspect
import sys
from collections.abc import Callable
from typing import Final

from cyclopts import App, Group
from rich.console import Console

from growth import __version__
from growth.cli.crds import crds
from growth.cli.demo import demo
from growth.cli.plan import plan

HELP: Final = """
Growth is a node autoscaler for Kubernetes. It sees the pods that no node can hold, buys the machines that they need,
and gives back what is no longer needed.

New here? Begin with `growth demo`. `growth COMMAND --help` explains a command.
"""

EPILOGUE: Final = """
Commands that talk to a cluster take --kubeconfig and --context; without them they use the cluster that kubectl would
use. Exit codes: 0 done, 1 failed, 2 bad input. GROWTH_DEBUG=1 shows where an error came from.
"""

# In the order of a newcomer's questions, not of the alphabet.
COMMANDS: Final[tuple[Callable[..., None], ...]] = (demo, plan, crds)


def build() -> App:
    """The parser of the whole command line."""
    app = App(
        name="growth",
        usage="Usage: growth COMMAND [OPTIONS]",
        help=_paragraphs(HELP),
        help_epilogue=_paragraphs(EPILOGUE),
        help_format="plaintext",
        version=__version__,
        group_commands=Group("Commands", sort_key=0),
        group_parameters=Group("Options", sort_key=1),
        console=Console(file=sys.stdout, emoji=False, highlight=False),  # its table of emoji costs a tenth of a start
        suppress_keyboard_interrupt=False,
    )
    for place, command in enumerate(COMMANDS):
        app.command(command, help=_paragraphs(command.__doc__ or ""), sort_key=place)
    app["--help"].group = app["--version"].group = Group("Options", sort_key=1)
    return app


def _paragraphs(text: str) -> str:
    """The text with each paragraph on one line: the terminal, not our source, decides where lines break."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))
