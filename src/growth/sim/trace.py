"""What happened in a run, as one running hash, so that two runs can be compared by 32 characters.

The kernel and the seams (network, server, clouds) record here. Fields are strings, integers and floats only: their text
is the same in every process, whatever `PYTHONHASHSEED`; a set or an object's default text would not be.
"""

import collections
import hashlib
from typing import Final

# Hashed together: it costs less than one by one.
LINES_AT_ONCE: Final = 500


class Trace:
    """A running hash of everything recorded; the newest `keep` lines are kept for people."""

    def __init__(self, *, keep: int = 0) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._unhashed: list[str] = []
        self._recorded = 0
        self._newest: collections.deque[str] = collections.deque(maxlen=keep)
        self._keeps = keep > 0

    def record(self, *fields: str | float) -> None:
        """One event. A whole float and an integer are different texts: say the same thing in the same type."""
        line = " ".join(map(str, fields))
        self._unhashed.append(line)
        if len(self._unhashed) >= LINES_AT_ONCE:
            self._add()
        self._recorded += 1
        if self._keeps:
            self._newest.append(line)

    def _add(self) -> None:
        self._hash.update("\n".join((*self._unhashed, "")).encode())
        self._unhashed.clear()

    @property
    def digest(self) -> str:
        """The hash of all lines so far, 32 hexadecimal characters."""
        self._add()
        return self._hash.hexdigest()

    @property
    def recorded(self) -> int:
        return self._recorded

    def newest(self) -> tuple[str, ...]:
        """The last lines, oldest first."""
        return tuple(self._newest)
