"""What is remembered of moves that ended: whose pods were moved and when, and where replacements failed.

In this process only: after a restart a pod may be moved once more, and what failed is tried once more.
"""

import collections
import datetime as dt
from collections.abc import Iterable
from typing import Final

from growth.cluster.shapes import CachedPod
from growth.kube.backoff import BackoffSettings
from growth.planning import occupants
from growth.ports import Clock

# A workload that was moved is remembered for so long.
REMEMBERED: Final = dt.timedelta(hours=6)
# A workload that has so many percent more or fewer pods than then has changed; a few are always on their way.
CHANGED_PERCENT: Final = 10
# A pool where a replacement failed is left alone for a minute, then two, and so on, for each reason of its own.
FAILED: Final = BackoffSettings(base_seconds=60.0, cap_seconds=3600.0, jitter=0.0)


class Memory:
    """One per process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moved: dict[str, tuple[dt.datetime, int]] = {}  # when, and how many pods the owner had then
        self._failures: dict[tuple[str, str], int] = {}  # by reason and pool, in a row
        self._until: dict[tuple[str, str], float] = {}

    def remember(self, moving: Iterable[CachedPod], pods: Iterable[CachedPod]) -> None:
        """The first are being moved now; `pods` are all that there are."""
        now = self._clock.now()
        owners = {_owner(pod) for pod in moving if occupants.reschedulable(pod)}
        counts = collections.Counter(uid for pod in pods if occupants.active(pod) and (uid := _owner(pod)) in owners)
        self._moved = {uid: each for uid, each in self._moved.items() if now - each[0] < REMEMBERED}
        self._moved |= {uid: (now, counts[uid]) for uid in owners}

    def moved(self, pods: Iterable[CachedPod]) -> dict[str, dt.datetime]:
        """When pods were last moved, by the UID of their owner, or their own where they have none.

        A workload that has been scaled since is another one, and forgotten.
        """
        if not self._moved:
            return {}
        now = self._clock.now()
        counts = collections.Counter(
            uid for pod in pods if occupants.active(pod) and (uid := _owner(pod)) in self._moved
        )
        self._moved = {
            uid: (at, before)
            for uid, (at, before) in self._moved.items()
            if now - at < REMEMBERED and abs(counts[uid] - before) <= max(1, before * CHANGED_PERCENT // 100)
        }
        return {uid: at for uid, (at, _) in self._moved.items()}

    def failed(self, reason: str, pools: Iterable[str]) -> None:
        """Nothing could be bought, or it did not come up: the pools wait, longer each time."""
        now = self._clock.monotonic()
        for pool in pools:
            key = (reason, pool)
            self._failures[key] = failures = self._failures.get(key, 0) + 1
            pause = min(FAILED.base_seconds * 2 ** min(failures - 1, 20), FAILED.cap_seconds)
            self._until[key] = now + pause

    def succeeded(self, reason: str, pools: Iterable[str]) -> None:
        for pool in pools:
            self._failures.pop((reason, pool), None)
            self._until.pop((reason, pool), None)

    def held_back(self, reason: str) -> frozenset[str]:
        """The pools that wait after a failure."""
        now = self._clock.monotonic()
        return frozenset(pool for (why, pool), until in self._until.items() if why == reason and until > now)

    def next_release(self) -> float | None:
        """In how many seconds the next pool has waited for long enough."""
        now = self._clock.monotonic()
        left = [until - now for until in self._until.values() if until > now]
        return min(left, default=None)


def _owner(pod: CachedPod) -> str:
    return pod.uid if pod.owner is None else pod.owner.uid
