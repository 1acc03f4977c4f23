"""What time it is for something that must have its time: a jump of our wall clock takes none of it away.

When it began was written down by another clock (the server's, another process's), so ages are reckoned by wall clocks. A
clock that is set forward by minutes would then end at once whatever has only begun. So from the first look on no more time
passes here than the monotonic clock says; a clock that was behind at the first look costs no more than a wait anew.
"""

import datetime as dt
from collections.abc import Hashable
from typing import Generic, TypeVar

from growth.ports import Clock

K = TypeVar("K", bound=Hashable)


class Waits(Generic[K]):
    """One for each kind of wait. A process that starts anew knows nothing of earlier looks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first: dict[K, tuple[dt.datetime, float]] = {}

    def now(self, key: K, *, began: dt.datetime | None) -> dt.datetime:
        """The time by which the wait is to be judged, which began then: the wall clock's, or earlier."""
        wall, passed = self._clock.now(), self._clock.monotonic()
        if key not in self._first:
            self._first[key] = (wall if began is None else max(wall, began), passed)
        first, at = self._first[key]
        return min(wall, first + dt.timedelta(seconds=passed - at))

    def forget(self, key: K) -> None:
        self._first.pop(key, None)
