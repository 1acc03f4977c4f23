"""The commands: thin shells that read arguments, call what lives below and print.

May import everything below it, and `growth.sim` for the commands that bring up a simulated world. Imports of heavy
packages happen inside the commands, so that `growth --help` starts at once. Promises: bad input is one line on
stderr (what, where, what to do) and exit code 2, never a traceback.
"""


def main() -> None:
    """The `growth` command."""
    print("Growth: the demo is not built yet. `make test` shows what there is so far.")
