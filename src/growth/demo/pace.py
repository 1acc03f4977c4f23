"""Time that passes faster than on the wall: an event loop and a clock that agree with each other.

Everything that waits by `asyncio.sleep` and `asyncio.timeout` and asks a `Clock` runs at the pace, unchanged.
"""

import asyncio
import datetime as dt
import selectors
from collections.abc import Mapping
from typing import Any

from growth.ports import Clock


class PacedClock:
    """A clock that starts at the right time and runs `speed` times as fast."""

    def __init__(self, base: Clock, *, speed: float, start: dt.datetime | None = None) -> None:
        """`start` is when it showed the right time, so that two processes can have the same clock; else now."""
        self._base = base
        self._speed = speed
        self._start = start if start is not None else base.now()

    @property
    def start(self) -> dt.datetime:
        return self._start

    def now(self) -> dt.datetime:
        return self._start + (self._base.now() - self._start) * self._speed

    def monotonic(self) -> float:
        return self._base.monotonic() * self._speed

    def boot_time(self) -> float:
        return self._base.boot_time() * self._speed


class _PacedSelector(selectors.BaseSelector):
    """The machine's own selector; it waits for less time than it is told to."""

    def __init__(self, speed: float) -> None:
        self._own = selectors.DefaultSelector()
        self._speed = speed

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._own.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._own.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._own.modify(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self._own.select(timeout if timeout is None else timeout / self._speed)

    def close(self) -> None:
        self._own.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._own.get_map()


class PacedLoop(asyncio.SelectorEventLoop):
    """An event loop whose seconds are shorter: sockets and threads as ever, timers `speed` times as fast."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        super().__init__(_PacedSelector(speed))

    def time(self) -> float:
        return super().time() * self._speed


class AheadClock(PacedClock):
    """The time of day of a paced cluster, for somebody outside who waits in seconds of the wall."""

    def monotonic(self) -> float:
        return self._base.monotonic()

    def boot_time(self) -> float:
        return self._base.boot_time()
