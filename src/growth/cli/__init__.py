"""The commands: thin shells that read arguments, call what lives below and print.

May import everything below it, and `growth.sim` for the commands that bring up a simulated world. Imports of heavy
packages happen inside the commands, so that `growth --help` starts at once. `commands` lists
them, `app` parses, `entry` runs one and turns what went wrong into a line and an exit code, `output` prints, `cluster` connects. Promises: bad input is one
line on stderr (what, where, what to do) and exit code 2, a failure at run time is one line and 1, never a traceback.
"""

import sys


def main() -> None:
    """The `growth` command."""
    from growth.cli.entry import run

    sys.exit(run(sys.argv[1:]))
