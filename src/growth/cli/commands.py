"""The commands, and what `growth --help` says of them.

That page is printed from here alone, without the parser: a newcomer's first command answers at once. Each line below is
the first line of its command's docstring; a test holds the two together.
"""

import dataclasses
import os
import textwrap
from typing import Final

WIDEST: Final = 100  # longer lines are hard to read, whatever the terminal offers


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """Where a command's function is, as `module:function`, and what it does in one line."""

    place: str
    purpose: str


# In the order of a newcomer's questions, not of the alphabet.
COMMANDS: Final = {
    "demo": Command("growth.cli.demo:demo", "See Growth at work; needs no account and no cluster."),
    "top": Command("growth.cli.top:top", "Watch a cluster: nodes, what they cost, why they are kept, why pods wait."),
    "plan": Command(
        "growth.cli.plan:plan", "Show which machines would be bought for which pods, why, and at what price."
    ),
    "explain": Command(
        "growth.cli.explain:explain",
        "Say why a pod has no node, a node stays, a claim waits or a pool cannot buy.",
    ),
    "whatif": Command(
        "growth.cli.whatif:whatif", "Show what a change would do: machines, cost, and pods that would not fit."
    ),
    "simulate": Command(
        "growth.cli.simulate:simulate", "Run the autoscaler in a simulated cluster where things go wrong, and judge it."
    ),
    "run": Command("growth.cli.run:run", "Run the autoscaler in a cluster, until it is told to stop."),
    "fake": Command(
        "growth.cli.fake:fake", "Serve a cloud's REST API on this machine, with machines that exist in memory only."
    ),
    "crds": Command("growth.cli.crds:crds", "Print the CustomResourceDefinitions that Growth needs."),
    "rbac": Command("growth.cli.rbac:rbac", "Print the service accounts and roles that Growth needs."),
}

USAGE: Final = "Usage: growth COMMAND [OPTIONS]"
ABOUT: Final = (
    "Growth is a node autoscaler for Kubernetes. It sees the pods that no node can hold, buys the machines that they"
    " need, and gives back what is no longer needed."
)
BEGIN: Final = "New here? Begin with `growth demo`. `growth COMMAND --help` explains a command."
OPTIONS: Final = {
    "--kubeconfig FILE": "The cluster's kubeconfig, for every command that talks to one; else as kubectl finds it.",
    "--context NAME": "The context in it; else the current one.",
    "-h, --help": "Show this page.",
    "--version": "Show the version.",
}
NOTES: Final = "Exit codes: 0 done, 1 failed, 2 bad input. GROWTH_DEBUG=1 shows where an error came from."


def overview() -> str:
    """The page of `growth --help`, as wide as the terminal is."""
    width = min(WIDEST, _columns())
    commands = {name: command.purpose for name, command in COMMANDS.items()}
    sections = [
        USAGE,
        textwrap.fill(ABOUT, width),
        textwrap.fill(BEGIN, width),
        "Commands:\n" + _listed(commands, width),
        "Options:\n" + _listed(OPTIONS, width),
        textwrap.fill(NOTES, width),
    ]
    return "\n\n".join(sections)


def _listed(entries: dict[str, str], width: int) -> str:
    indent = max(len(name) for name in entries) + 4
    return "\n".join(
        textwrap.fill(text, width, initial_indent=f"  {name}".ljust(indent), subsequent_indent=" " * indent)
        for name, text in entries.items()
    )


def _columns() -> int:
    try:
        return os.get_terminal_size().columns or WIDEST
    except OSError:  # not a terminal
        return WIDEST
