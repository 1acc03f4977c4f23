"""Runs one program for exactly as long as whoever started it lives.

    python keeper.py [--remove FOLDER] -- PROGRAM ARGUMENT…

The owner holds the other end of our standard input and never writes to it. When it closes, because the owner is done or
because it was killed, the program is ended and the folder removed. Should the keeper itself be killed, Linux ends the
program (PDEATHSIG). Run as a plain file: it must start quickly and imports nothing of ours.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1
TERMINATE_SECONDS = 5.0


def die_with_parent() -> None:
    """Runs in the child: ask Linux to kill it when the keeper goes."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(arguments: list[str]) -> None:
    """Keeps the program after `--`."""
    at = arguments.index("--")
    remove = arguments[1] if arguments[:1] == ["--remove"] else ""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's business; it closes our input
    child = subprocess.Popen(
        arguments[at + 1 :],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread at this point
    )

    stopping = threading.Event()

    def end_with_child() -> None:
        code = child.wait()
        if not stopping.is_set():
            os._exit(code if code >= 0 else 128 - code)

    threading.Thread(target=end_with_child, daemon=True).start()
    sys.stdin.buffer.read()
    stopping.set()
    child.terminate()
    try:
        child.wait(TERMINATE_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if remove:
        shutil.rmtree(remove, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
