"""The last requests to a cloud, for people and tests: what was asked and how it ended. No bodies, no headers, no token."""

import collections
import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final

# A few minutes of a busy autoscaler; about 100 KB.
KEPT: Final = 500


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One attempt of one call. `outcome` is the status, or one word where none came: lost, unsent, cancelled."""

    at: dt.datetime
    method: str
    path: str
    attempt: int
    outcome: str
    code: str = ""
    seconds: float = 0.0
    remaining: int | None = None
    request_id: str = ""


class Journal:
    """Bounded: the oldest go first. `counts` is of everything since the start, by method and outcome."""

    def __init__(self, *, kept: int = KEPT) -> None:
        self._entries: collections.deque[Entry] = collections.deque(maxlen=kept)
        self._counts: collections.Counter[tuple[str, str]] = collections.Counter()

    def add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._counts[entry.method, entry.outcome] += 1

    def entries(self) -> Sequence[Entry]:
        """The oldest first."""
        return tuple(self._entries)

    def counts(self) -> Mapping[tuple[str, str], int]:
        return dict(self._counts)

    @property
    def total(self) -> int:
        """Attempts since the start, forgotten ones included."""
        return self._counts.total()
