"""A list that all who ask at the same time share: the vendor counts lists apart, and few of them are allowed."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from growth.ports import Clock

T = TypeVar("T")

# Between the beginnings of two readings.
PACE_SECONDS: Final = 1.0


class Listing(Generic[T]):
    """`read` gives the whole list or raises; whoever waited for a reading that failed is told so."""

    def __init__(self, read: Callable[[], Awaitable[T]], *, clock: Clock, pace_seconds: float = PACE_SECONDS) -> None:
        self._read = read
        self._clock = clock
        self._pace = pace_seconds
        self._lock = asyncio.Lock()
        self._value: T | None = None
        self._as_of: float | None = None
        self._failed: tuple[float, Exception] | None = None
        self._next = 0.0

    async def since(self, moment: float) -> T:
        """The list, of a reading that began at that moment (monotonic) or later. One that failed before is tried again."""
        asked = max(moment, self._clock.monotonic())
        while True:
            if self._value is not None and self._as_of is not None and self._as_of >= moment:
                return self._value
            async with self._lock:
                if self._as_of is not None and self._as_of >= moment:
                    continue
                if self._failed is not None and self._failed[0] >= asked:
                    raise self._failed[1]
                wait = self._next - self._clock.monotonic()
                if wait > 0:
                    await asyncio.sleep(wait)
                began = self._clock.monotonic()
                self._next = began + self._pace
                try:
                    self._value = await self._read()
                except Exception as error:
                    self._failed = (began, error)
                    raise
                self._as_of = began
