"""python -m tools.controlplane build | start

build   builds the programs that are missing
start   runs a whole plane until Ctrl-C and prints the KUBECONFIG line for it
"""

import contextlib
import signal
import sys

from tools.controlplane.build import build
from tools.controlplane.plane import StartError, plane
from tools.controlplane.programs import MissingProgramsError
from tools.gobuild import BuildError


def main(arguments: list[str]) -> int:
    """0, or 1 with one line on stderr."""
    try:
        match arguments:
            case ["build"]:
                build()
            case ["start"]:
                build()
                with plane(scheduler=True, controller_manager=True, kwok=True) as running:
                    print(f"export KUBECONFIG={running.kubeconfig}", flush=True)
                    with contextlib.suppress(KeyboardInterrupt):
                        signal.pause()
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except (BuildError, StartError, MissingProgramsError) as error:
        print(f"controlplane: {error}", file=sys.stderr)
        return 1
    return 0


sys.exit(main(sys.argv[1:]))
