"""When a pass begins: a short while after the last new sort of pod, so that a burst is one plan, and never very late."""

import asyncio
from collections.abc import Hashable

from growth.ports import Clock


class Batch:
    """Collects until `idle` seconds have passed without a new sort, at most `longest` seconds since the first.

    More pods of a sort that is in the batch already do not prolong it: they make the plan longer and not another one.
    What comes while a pass runs is the next batch.
    """

    def __init__(self, clock: Clock, *, idle: float, longest: float) -> None:
        self._clock = clock
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
                break
            self._wake.clear()
            await self._woken(due)
        self._sorts.clear()
        self._first = None
        self._wake.clear()
        return True

    async def _woken(self, within: float | None) -> bool:
        try:
            async with asyncio.timeout(within):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True
