"""When a pass begins: a short while after the last new sort of pod, so that a burst is one plan, and never very late."""

import asyncio
from collections.abc import Callable, Hashable
from typing import Final

from growth.ports import Clock

# A wait is worth its time while it makes the plan so much larger: a few large purchases cost less than many small ones.
WORTH_WAITING: Final = 0.25


class Batch:
    """Collects until `idle` seconds have passed without a new sort, at most `longest` seconds since the first.

    A few more pods of a sort that is in the batch already do not prolong it. A flood does: as long as each wait adds a
    quarter to what waited before (`size` tells how many pods wait), as at the start of a rollout. What comes while a pass runs is
    the next batch.
    """

    def __init__(self, clock: Clock, *, idle: float, longest: float, size: Callable[[], int] = lambda: 0) -> None:
        self._clock = clock
        self._size = size
        self._before = 0  # pods that waited when the current wait began
        self._idle = idle
        self._longest = longest
        self._sorts: set[Hashable] = set()
        self._first: float | None = None
        self._last = 0.0
        self._wake = asyncio.Event()

    @property
    def open(self) -> bool:
        return self._first is not None

    def add(self, sort: Hashable) -> None:
        """There is something to plan."""
        now = self._clock.monotonic()
        if self._first is None:
            self._first = now
            self._before = self._size()
        if sort not in self._sorts:
            self._sorts.add(sort)
            self._last = now
            self._wake.set()

    async def closed(self, within: float | None = None) -> bool:
        """Waits until a batch is closed, and empties it. False where nothing came `within` seconds."""
        if self._first is None and not await self._woken(within):
            return False
        while True:
            assert self._first is not None
            due = min(self._last + self._idle, self._first + self._longest) - self._clock.monotonic()
            if due <= 0:
                if not self._flooded():
                    break
                continue
            self._wake.clear()
            await self._woken(due)
        self._sorts.clear()
        self._first = None
        self._wake.clear()
        return True

    def _flooded(self) -> bool:
        """Whether so many pods came during the last wait that another is worth it; then it has begun."""
        assert self._first is not None
        now, size = self._clock.monotonic(), self._size()
        if now - self._first >= self._longest or size - self._before <= self._before * WORTH_WAITING:
            return False
        self._last, self._before = now, size
        return True

    async def _woken(self, within: float | None) -> bool:
        try:
            async with asyncio.timeout(within):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True
