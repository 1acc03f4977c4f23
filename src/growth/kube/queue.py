"""The work queue of a controller: each key once, never twice at a time, failures later and later.

A key that is added while it is being worked on is given out again after `done`, so that no change is missed. Keys that
keep failing (`retry`) wait exponentially longer; `forget` ends that.
"""

import asyncio
import collections
import contextlib
import dataclasses
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from growth.kube.backoff import Backoff, BackoffSettings
from growth.ports import Random

K = TypeVar("K", bound=Hashable)

# Quick at first, as most failures are conflicts; at most about a quarter of an hour.
DEFAULT_RETRY: Final = BackoffSettings(base_seconds=0.005, cap_seconds=1000.0, jitter=0.1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatistics:
    """`waiting` are ready to be given out, `delayed` not yet; `added` counts calls, `merged` those that changed nothing."""

    waiting: int
    working: int
    delayed: int
    failing: int
    added: int
    merged: int
    given: int
    retried: int


class WorkQueue(Generic[K]):
    """For one event loop. Order is that of first adding."""

    def __init__(self, random: Random, *, retry: BackoffSettings = DEFAULT_RETRY) -> None:
        self._random = random
        self._retry = retry
        self._waiting: collections.OrderedDict[K, None] = collections.OrderedDict()
        self._working: dict[K, None] = {}
        self._again: dict[K, None] = {}
        self._delayed: dict[K, asyncio.TimerHandle] = {}
        self._failing: dict[K, Backoff] = {}
        # Those who wait for a key: each addition wakes one of them, not all.
        self._takers: collections.deque[asyncio.Future[None]] = collections.deque()
        self._added = self._merged = self._given = self._retried = 0

    def add(self, key: K) -> None:
        """Now, unless it waits already; after `done` if it is being worked on."""
        self._added += 1
        if key in self._waiting or key in self._again:
            self._merged += 1
        elif key in self._working:
            self._again[key] = None
        else:
            self._waiting[key] = None
            self._wake()

    def add_after(self, key: K, seconds: float) -> None:
        """Later; the earlier of two times counts."""
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        planned = self._delayed.get(key)
        if planned is not None:
            if planned.when() <= due:
                return
            planned.cancel()
        self._delayed[key] = loop.call_at(due, self._due, key)

    def retry(self, key: K) -> float:
        """After a failure: later, and each time later still; how many seconds."""
        self._retried += 1
        backoff = self._failing.get(key)
        if backoff is None:
            backoff = self._failing[key] = Backoff(self._random, self._retry)
        seconds = backoff.next()
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        """The key has succeeded: its next failure is its first."""
        self._failing.pop(key, None)

    async def get(self) -> K:
        """The next key; whoever takes it must call `done`."""
        while not self._waiting:
            taker = asyncio.get_running_loop().create_future()
            self._takers.append(taker)
            try:
                await taker
            except BaseException:
                if not taker.done() or taker.cancelled():
                    with contextlib.suppress(ValueError):
                        self._takers.remove(taker)
                elif self._waiting:
                    self._wake()  # the key that it was woken for is for somebody else
                raise
        key, _ = self._waiting.popitem(last=False)
        self._working[key] = None
        self._given += 1
        return key

    def done(self, key: K) -> None:
        """The key may be given out again."""
        del self._working[key]
        if key in self._again:
            del self._again[key]
            self._waiting[key] = None
            self._wake()

    def statistics(self) -> QueueStatistics:
        return QueueStatistics(
            waiting=len(self._waiting),
            working=len(self._working),
            delayed=len(self._delayed),
            failing=len(self._failing),
            added=self._added,
            merged=self._merged,
            given=self._given,
            retried=self._retried,
        )

    def _wake(self) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return

    def _due(self, key: K) -> None:
        del self._delayed[key]
        self.add(key)
