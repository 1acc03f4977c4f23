"""What is remembered of moves that ended: whose pods were moved and when, and where replacements failed.

In this process only: after a restart a pod may be moved once more, and what failed is tried once more.
"""

import datetime as dt
from collections.abc import Iterable
from typing import Final

from growth.cluster.shapes import CachedPod
from growth.kube.backoff import BackoffSettings
from growth.planning import occupants
from growth.ports import Clock

# A workload that was moved is remembered for so long.
REMEMBERED: Final = dt.timedelta(hours=6)
# A pool where a replacement failed is left alone for a minute, then two, and so on, for each reason of its own.
FAILED: Final = BackoffSettings(base_seconds=60.0, cap_seconds=3600.0, jitter=0.0)


class Memory:
    """One per process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moved: dict[str, dt.datetime] = {}
        self._failures: dict[tuple[str, str], int] = {}  # by reason and pool, in a row
        self._until: dict[tuple[str, str], float] = {}

    def remember(self, pods: Iterable[CachedPod]) -> None:
        """These pods are being moved now."""
        now = self._clock.now()
        self._moved = {uid: at for uid, at in self._moved.items() if now - at < REMEMBERED}
        for pod in pods:
            if occupants.reschedulable(pod):
                self._moved[pod.uid if pod.owner is None else pod.owner.uid] = now

    def moved(self) -> dict[str, dt.datetime]:
        """When pods were last moved, by the UID of their owner, or their own where they have none."""
        now = self._clock.now()
        return {uid: at for uid, at in self._moved.items() if now - at < REMEMBERED}

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
