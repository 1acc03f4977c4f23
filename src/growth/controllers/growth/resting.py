"""Pods that nothing can hold, and how often they are looked at: less and less, until they are left out. No I/O.

A pod of a growth pool that was unplaceable so many passes in a row rests, each time twice as long. At the ceiling it is
marked and left out. Marked pods come back when what they waited for may be there: the pool or the pod changed, there is
room under a maximum again, or a machine of a type that was short was had. So that the latter can happen at all, one
marked pod is planned as a probe when the time of an unmet type is over. After `recheck` they come back in any case.
"""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Set
from typing import Final

from growth.api import names
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.wanting import key_of
from growth.planning.plan import Filter
from growth.units import TimestampError, parse_time

# Rules that lapse when a machine goes or can be had. A pool tells of one of its types only, so they are not told apart.
_LAPSING: Final = frozenset({Filter.LIMITS, Filter.CAPS, Filter.UNAVAILABLE, Filter.POOL})

# Between two probes for one type, where the first had no place.
PROBE_SECONDS: Final = 1.0
# The type of a recovery of which nobody knows what it was: we were away.
ANY: Final = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """`passes` in a row before a pod rests for `first` seconds, then twice as long, until `ceiling`."""

    passes: int
    first: float
    ceiling: float
    recheck: float


@dataclasses.dataclass(slots=True)
class _Rest:
    pod: CachedPod
    pool: str
    count: int = 0
    until: float = 0.0
    marked: bool = False
    waits_for: frozenset[Filter] = frozenset()


class Resting:
    """Times are monotonic seconds."""

    def __init__(self, rhythm: Rhythm) -> None:
        self._rhythm = rhythm
        self._rests: dict[str, _Rest] = {}  # by the pod's key
        self._out: set[str] = set()  # keys of those that are marked
        # Types that may be had again, by (pool, type): shapes of which a probe had no place.
        self._recovering: dict[tuple[str, str], set[PodShape]] = {}
        self._probing: dict[tuple[str, str], str] = {}
        self._known: set[str] = set()  # uids of pods that we have seen waiting

    def __len__(self) -> int:
        """How many are marked."""
        return len(self._out)

    def marked(self, pod: CachedPod) -> bool:
        rest = self._rests.get(key_of(pod))
        return rest is not None and rest.marked and rest.pod.uid == pod.uid

    # What is planned for.

    def left_out(self, now: float) -> frozenset[str]:
        """Keys of the pods that this pass leaves out; a probe for each type that may be had again is not among them."""
        for key in [key for key in self._out if self._rests[key].until <= now]:
            self._forget(key)
        resting = {key for key, rest in self._rests.items() if rest.marked or rest.until > now}
        return frozenset(resting - self._chosen())

    def _chosen(self) -> set[str]:
        """One marked pod for each recovery, of a shape that was not tried for it; kept until a pass has looked at it."""
        for recovery in list(self._recovering):
            pool, _ = recovery
            tried = self._recovering[recovery]
            if self._probing.get(recovery) in self._out:
                continue
            fresh = [
                key
                for key in self._out
                if self._rests[key].pool == pool
                and self._rests[key].pod.shape not in tried
                and key not in self._probing.values()
            ]
            if fresh:
                self._probing[recovery] = min(fresh)
            else:
                self._recovering.pop(recovery)
                self._probing.pop(recovery, None)
        return {key for key in self._probing.values() if key in self._out}

    def next_due(self, now: float) -> float | None:
        """In how many seconds somebody's rest is over; None when nobody rests."""
        if self._recovering:
            return PROBE_SECONDS
        soonest = min((rest.until for rest in self._rests.values() if rest.until > now), default=None)
        return None if soonest is None else soonest - now

    # What came of it.

    def looked(
        self,
        pods: Mapping[str, CachedPod],
        unplaced: Mapping[str, frozenset[Filter]],
        pools: Mapping[str, str],
        now: float,
        *,
        bought: Set[str] = frozenset(),
    ) -> list[CachedPod]:
        """A pass has planned for these pods, by key; `unplaced` had no place, and by which rules. Who is marked now.

        `pools` is the growth pool of each unplaced pod that is for one; the others never rest. `bought` are the pods for
        which a machine was asked for: what comes of a probe among them decides for the others.
        """
        marked: list[CachedPod] = []
        for key, pod in pods.items():
            if key not in unplaced or key not in pools:
                if key in bought:
                    self._recovering = {
                        recovery: tried
                        for recovery, tried in self._recovering.items()
                        if self._probing.get(recovery) != key
                    }
                self._forget(key)
                continue
            rest = self._rests.get(key)
            if rest is None or rest.pod.uid != pod.uid or rest.pod.shape is not pod.shape or rest.pool != pools[key]:
                rest = self._rests[key] = _Rest(pod, pools[key])
            if rest.marked:
                self._probed(key, rest)
                continue
            rest.count += 1
            rest.waits_for = unplaced[key]
            over = rest.count - self._rhythm.passes
            if over < 0:
                continue
            seconds = self._rhythm.first * 2.0 ** min(over, 32)
            if seconds < self._rhythm.ceiling:
                rest.until = now + seconds
                continue
            rest.marked, rest.until = True, now + self._rhythm.recheck
            self._out.add(key)
            marked.append(pod)
        return marked

    def _probed(self, key: str, rest: _Rest) -> None:
        """A probe that had no place: another shape is tried."""
        for recovery, probe in list(self._probing.items()):
            if probe == key:
                del self._probing[recovery]
                if recovery in self._recovering:
                    self._recovering[recovery].add(rest.pod.shape)

    # What brings pods back. Each says whether there was anybody.

    def recovers(self, pool: str, type_: str) -> bool:
        """The time of an unmet type is over, somewhere: a probe may say whether it can be had. What was tried before says nothing."""
        if not any(self._rests[key].pool == pool for key in self._out):
            return False
        self._recovering[pool, type_] = set()
        return True

    def had(self, pool: str) -> list[CachedPod]:
        """A machine of the pool was had: those come back who wait for one."""
        self._recovering = {key: tried for key, tried in self._recovering.items() if key[0] != pool}
        self._probing = {key: probe for key, probe in self._probing.items() if key[0] != pool}
        return self.room(pool)

    def room(self, pool: str) -> list[CachedPod]:
        """A machine of the pool is gone: those come back who wait for room."""
        found = [
            rest
            for key in sorted(self._out)
            for rest in (self._rests[key],)
            if rest.pool == pool and not rest.waits_for.isdisjoint(_LAPSING)
        ]
        for rest in found:
            self._forget(key_of(rest.pod))
        return [rest.pod for rest in found]

    def changed(self, pool: str | None = None) -> list[CachedPod]:
        """The pool was changed, made or removed: everybody who is for it comes back, marked or not. None: all pools."""
        found = [rest.pod for rest in self._rests.values() if pool is None or rest.pool == pool]
        for pod in found:
            self._forget(key_of(pod))
        return found

    # Pods as the watch tells of them.

    def seen(self, pod: CachedPod, pool: str, now: float, wall: dt.datetime) -> bool:
        """A pod that waits. One that carries the mark and is new to us was marked before we came; whether it was so."""
        key = key_of(pod)
        rest = self._rests.get(key)
        new = pod.uid not in self._known
        self._known.add(pod.uid)
        if rest is not None:
            if rest.pod.uid != pod.uid or rest.pod.shape is not pod.shape:
                self._forget(key)  # another pod, or it asks for something else
            else:
                rest.pod = pod
            return False
        text = pod.annotations.get(names.BACK_OFF_ANNOTATION)
        if text is None or not pool or not new:
            return False  # a mark that is still there from before is on its way off
        try:
            age = max(0.0, (wall - parse_time(text)).total_seconds())
        except TimestampError:
            age = 0.0
        until = now + self._rhythm.recheck - age
        self._rests[key] = _Rest(pod, pool, self._rhythm.passes, until, marked=True, waits_for=_LAPSING)
        self._out.add(key)
        return True

    def gone(self, pod: CachedPod) -> None:
        """The pod is bound, done or deleted."""
        self._known.discard(pod.uid)
        rest = self._rests.get(key_of(pod))
        if rest is not None and rest.pod.uid == pod.uid:
            self._forget(key_of(pod))

    def _forget(self, key: str) -> None:
        self._rests.pop(key, None)
        self._out.discard(key)
        for recovery in [recovery for recovery, probe in self._probing.items() if probe == key]:
            del self._probing[recovery]
