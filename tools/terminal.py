"""A terminal that a program can look at: tmux, the machine's own or else Debian's, fetched into the cache."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tools import debian

SIZE: Final = (160, 45)
LOOK_SECONDS: Final = 0.2


def tmux() -> tuple[str, Mapping[str, str]]:
    """The program, and what its environment needs beside its own."""
    own = shutil.which("tmux")
    if own is not None:
        return own, {}
    folder = debian.unpacked("tmux", beside=("libevent", "libutempter", "libutf8proc", "libtinfo"))
    libraries = sorted({str(each.parent) for each in folder.rglob("*.so*")})
    return str(folder / "usr/bin/tmux"), {"LD_LIBRARY_PATH": ":".join(libraries)}


class NotShown(AssertionError):
    """The screen never came to what was waited for; the message has the screen."""


class Terminal:
    """A terminal with one program in it; `close` ends both. What it shows is what a person would see."""

    def __init__(
        self,
        program: Sequence[str],
        *,
        environment: Mapping[str, str],
        patience_seconds: float,
        size: tuple[int, int] = SIZE,
    ) -> None:
        # A socket's path may have about a hundred characters: folders of tests are often longer.
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="tmux-", dir="/tmp"))
        command, more = tmux()
        self._tmux = (command, "-u", "-S", str(self._folder / "socket"), "-f", os.devnull)
        # How large somebody else's terminal is: programs believe it rather than look at their own.
        kept = {name: value for name, value in environment.items() if name not in {"COLUMNS", "LINES"}}
        self._environment = {**kept, **more}
        self._patience = patience_seconds
        columns, lines = (str(each) for each in size)
        # tmux does not always hear that a program has ended: a shell writes down its exit code.
        self._code = self._folder / "code"
        shell = ("sh", "-c", '"$@"; printf %s "$?" > "$0"', str(self._code))
        # The window stays when the program ends, so that its last words can be read.
        self._call(
            *("set-option", "-wg", "remain-on-exit", "on", ";"),
            *("set-option", "-g", "default-terminal", "screen-256color", ";"),
            *("new-session", "-d", "-x", columns, "-y", lines, *shell, *program),
        )

    def screen(self) -> str:
        """What stands there now, line by line."""
        return self._call("capture-pane", "-p")

    def until(self, there: Callable[[str], bool], what: str) -> str:
        """Waits for a screen like this, and gives it."""
        end = time.monotonic() + self._patience
        while True:
            screen = self.screen()
            if there(screen):
                return screen
            if time.monotonic() >= end:
                raise NotShown(f"never: {what}; the screen:\n{screen}")
            time.sleep(LOOK_SECONDS)

    def shows(self, *words: str) -> str:
        """Waits until all of the words stand there at once."""
        return self.until(lambda screen: all(word in screen for word in words), " and ".join(words))

    def press(self, *keys: str) -> None:
        """Keys by tmux' names: `s`, `Enter`, `Tab`."""
        self._call("send-keys", *keys)

    def resize(self, columns: int, lines: int) -> None:
        self._call("resize-window", "-x", str(columns), "-y", str(lines))

    def ended(self) -> int:
        """Waits for the program's end; its exit code."""
        end = time.monotonic() + self._patience
        while True:
            code = self._code.read_text() if self._code.exists() else ""
            if code:
                return int(code)
            if time.monotonic() >= end:
                raise NotShown(f"it never ended; the screen:\n{self.screen()}")
            time.sleep(LOOK_SECONDS)

    def close(self) -> None:
        self._call("kill-server")
        shutil.rmtree(self._folder)

    def _call(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], env=dict(self._environment), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"tmux {' '.join(words)}: {done.stderr.strip()}"
        return done.stdout
