"""What this process knows and the vendor does not: who counts on which capacity, who works on which key, what is overdue."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Hashable
from typing import Generic, TypeVar

from growth.ports import Clock

K = TypeVar("K", bound=Hashable)
P = TypeVar("P")


class Late(Exception):
    """The lock was not free in time."""


class Locks(Generic[K]):
    """One lock for each key. Those that nobody holds or waits for are forgotten."""

    def __init__(self) -> None:
        self._locks: dict[K, tuple[asyncio.Lock, int]] = {}

    @contextlib.asynccontextmanager
    async def held(self, key: K, *, within: float | None = None) -> AsyncIterator[None]:
        """`Late` where it is not free within so many seconds."""
        lock, users = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, users + 1)
        try:
            try:
                async with asyncio.timeout(within):
                    await lock.acquire()
            except TimeoutError:
                raise Late(str(key)) from None
            try:
                yield
            finally:
                lock.release()
        finally:
            lock, users = self._locks[key]
            if users == 1:
                del self._locks[key]
            else:
                self._locks[key] = (lock, users - 1)


class Reservations(Generic[K]):
    """Purchases that count on a node of a key: one that is there, or one that was asked for and is not seen yet."""

    def __init__(self) -> None:
        self._held: dict[K, set[str]] = {}

    def take(self, key: K, claim: str) -> None:
        self._held.setdefault(key, set()).add(claim)

    def release(self, key: K, claim: str) -> None:
        held = self._held.get(key)
        if held is not None:
            held.discard(claim)
            if not held:
                del self._held[key]

    def holds(self, key: K, claim: str) -> bool:
        return claim in self._held.get(key, ())

    def count(self, key: K, *, but: str = "") -> int:
        return len(self._held.get(key, set()) - {but})


class Overdue(Generic[K]):
    """How long something has been missing. A restart begins to count anew: nothing is removed too early for it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[K, list[float]] = {}

    def seen(self, key: K, missing: int) -> tuple[float, ...]:
        """So many are missing now; for how many seconds at least one has been, at least two, and so on.

        More of them now do not make the first ones young: whoever is missing longest is the one that does not come.
        """
        now = self._clock.monotonic()
        since = self._since.pop(key, [])[: max(missing, 0)]
        since += [now] * (missing - len(since))
        if since:
            self._since[key] = since
        return tuple(now - each for each in since)


class Doubts(Generic[K, P]):
    """Writes of which nobody knows whether they arrived, or will: the vendor has no conditional ones.

    A count that arrives late would take nodes away that came after it, and a pool's deletion would too. So until a look says
    that the write took effect, or it is too old to come, nothing else is written to what it concerns.
    """

    def __init__(self, clock: Clock, *, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._open: dict[K, tuple[float, Callable[[P], bool]]] = {}

    def note(self, key: K, done: Callable[[P], bool]) -> None:
        """`done` says of a look whether it shows the write's effect."""
        self._open[key] = (self._clock.monotonic() + self._seconds, done)

    def holds(self, key: K, look: P) -> bool:
        """Whether the key must be left as it is."""
        held = self._open.get(key)
        if held is None:
            return False
        until, done = held
        if done(look) or self._clock.monotonic() >= until:
            del self._open[key]
            return False
        return True
