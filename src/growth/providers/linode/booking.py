"""What this process knows and the vendor does not: who counts on which capacity, who works on which key, what is overdue."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

from growth.ports import Clock

K = TypeVar("K", bound=Hashable)
P = TypeVar("P")


# A look that waits for one list takes so long at most where answers are prompt.
PROMPT_SECONDS: Final = 1.5


class Late(Exception):
    """The lock was not free in time."""


class Bound:
    """Of one `create`, over all that it tries and waits for: types, passes, locks. Times are monotonic."""

    def __init__(self, clock: Clock, *, seconds: float) -> None:
        self.seconds: Final = seconds
        self.began: Final = clock.monotonic()
        self._clock = clock
        self._until = self.began + seconds

    def left(self, *, but: float = 0.0) -> float:
        """How long to wait for what then takes so many seconds; 0 where it would be late already."""
        return max(self._until - but - self._clock.monotonic(), 0.0)

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """Before all else, where slow answers do not count: the time would be over before the first pass."""
        began = self._clock.monotonic()
        yield
        took = self._clock.monotonic() - began
        self._until += took if took > PROMPT_SECONDS else 0.0


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


# So many that are missing are looked at one by one: more than a pool can have, whatever its count says.
MOST_MISSING: Final = 1000


class Overdue(Generic[K]):
    """How long something has been missing. A restart begins to count anew: nothing is removed too early for it.

    So does what nobody looked at for `forget_seconds`: nobody knows whether it was missing all the while.
    """

    def __init__(self, clock: Clock, *, forget_seconds: float) -> None:
        self._clock = clock
        self._forget = forget_seconds
        # In the order in which they were looked at last: when that was, and since when how many have been missing.
        self._held: dict[K, tuple[float, list[float]]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def seen(self, key: K, missing: int) -> tuple[float, ...]:
        """So many are missing now; for how many seconds at least one has been, at least two, and so on, up to `MOST_MISSING`.

        More of them now do not make the first ones young: whoever is missing longest is the one that does not come.
        """
        now, missing = self._clock.monotonic(), min(missing, MOST_MISSING)
        while self._held and now - next(iter(self._held.values()))[0] > self._forget:
            del self._held[next(iter(self._held))]
        _, held = self._held.pop(key, (now, []))
        since = held[: max(missing, 0)]
        since += [now] * (missing - len(since))
        if since:
            self._held[key] = (now, since)
        return tuple(now - each for each in since)


class Asked(Generic[K]):
    """How many nodes each pool was asked for lately. What is missing beyond that was asked for earlier, and does not come.

    Nobody can tell which of those that were asked for came, so nothing else is known to be late. A pool that is seen for the
    first time may have been asked for all of its nodes just before.
    """

    def __init__(self, clock: Clock, *, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._counts: dict[K, int] = {}
        self._rises: dict[K, list[tuple[float, int]]] = {}
        self._lost: dict[K, int] = {}

    def seen(self, key: K, count: int) -> None:
        """The pool's count is this, as a look says or an answer to a write of ours."""
        before = self._counts.get(key, 0)
        self._counts[key] = count
        if count > before:
            self._rises.setdefault(key, []).append((self._clock.monotonic(), count - before))

    def fell(self, key: K) -> None:
        """One node of the pool was removed, or may have been: where the count is not less, somebody raised it meanwhile."""
        if key in self._counts:
            self._counts[key] -= 1

    def lost(self, key: K, *, missing: int, late: int) -> int:
        """How many of those that are missing now do not come, where so many have been missing for too long, whichever.

        What is lost stays so until less is missing, whatever is asked for after it.
        """
        oldest = self._clock.monotonic() - self._seconds
        rises = self._rises[key] = [each for each in self._rises.get(key, ()) if each[0] > oldest]
        found = min(late, missing - sum(number for _, number in rises))
        self._lost[key] = max(min(missing, max(found, self._lost.get(key, 0))), 0)
        return self._lost[key]

    def forget(self, key: K) -> None:
        for held in (self._counts, self._rises, self._lost):
            held.pop(key, None)


class Bought(Generic[K]):
    """How many nodes of each pool this process asked for and has seen neither claimed nor collected: surplus of its own.

    Which they are nobody can tell, and need not: nobody has them. A restart forgets them all.
    """

    def __init__(self) -> None:
        self._left: dict[K, int] = {}

    def asked(self, key: K) -> None:
        self._left[key] = self.left(key) + 1

    def settled(self, key: K, number: int = 1) -> None:
        """So many of the pool, whosever, have a claim, or go."""
        self._left[key] = max(self.left(key) - number, 0)

    def left(self, key: K) -> int:
        return self._left.get(key, 0)

    def forget(self, key: K) -> None:
        self._left.pop(key, None)


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
