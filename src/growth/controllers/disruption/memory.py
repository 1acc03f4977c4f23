"""What is remembered of moves that ended: who came by them and when, where replacements failed, and which nodes stayed.

In this process only: after a restart a pod may be moved once more, and what failed is tried once more.
"""

import collections
import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping, Set
from typing import Final

from growth.cluster.shapes import CachedPod
from growth.controllers.disruption.moving import MOST_SECONDS
from growth.kube.backoff import BackoffSettings
from growth.planning import occupants
from growth.ports import Clock

# A workload that was moved is remembered for so long.
REMEMBERED: Final = dt.timedelta(hours=6)
# A workload that has so many percent more or fewer pods than then has changed; a few are always on their way.
CHANGED_PERCENT: Final = 10
# A pool where a replacement failed is left alone for a minute, then two, and so on, for each reason of its own.
FAILED: Final = BackoffSettings(base_seconds=60.0, cap_seconds=3600.0, jitter=0.0)
# A node whose move was begun and taken back: what spoke against it is often over in a moment. If it is not, each attempt taints
# the node, asks for all that it counts on, and takes the taint off again.
TAKEN_BACK: Final = BackoffSettings(base_seconds=5.0, cap_seconds=300.0, jitter=0.0)
# So long after its rest nothing is known of a node any more: a move of it that began soon after has ended by then.
FORGOTTEN_SECONDS: Final = FAILED.cap_seconds + MOST_SECONDS

# After so many failures in a row nothing waits for a success any more: the next rest is four minutes and more.
FAILING_TIMES: Final = 3

# A move that was to buy more than is needed by now is decided anew; so long it is remembered how often that was so.
PUT_OFF_SECONDS: Final = 300.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Left:
    """How many pods a workload had when some of them were asked to leave, and which, by UID."""

    at: dt.datetime
    pods: int
    there: Set[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Leaving:
    """The workloads whose pods are about to be asked to leave a node, by UID."""

    owners: Mapping[str, _Left]


class Memory:
    """One per process.

    Who came by a move is told by who was there before it, never by when a pod was created: that is written by another
    clock than ours, and in whole seconds.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: dict[str, _Left] = {}  # the last move of each owner
        self._came: dict[str, dt.datetime] = {}  # by the UID of a pod: the last move before it was there
        self._failures: dict[tuple[str, str], int] = {}  # by reason and pool, in a row
        self._until: dict[tuple[str, str], float] = {}
        # By node, and whether what was bought for it had come up: how often in a row, and until when it rests.
        self._stayed: dict[tuple[str, bool], tuple[int, float]] = {}
        # By the nodes of a move: how often it was put off, and until when that is remembered.
        self._put_off: dict[frozenset[str], tuple[int, float]] = {}

    def leaving(self, moving: Iterable[CachedPod], pods: Iterable[CachedPod]) -> Leaving:
        """What to remember once the first have been asked to leave; `pods` are all that there are before that."""
        now = self._clock.now()
        owners = {_owner(pod) for pod in moving if occupants.reschedulable(pod)}
        counts, there = _tally(pods, owners)
        return Leaving({uid: _Left(now, counts[uid], there[uid]) for uid in owners})

    def remember(self, leaving: Leaving) -> None:
        """They have been asked to leave. Those who came by a move before this one keep the time of that."""
        for uid, left in leaving.owners.items():
            before = self._left.get(uid)
            if before is not None:
                self._came = dict.fromkeys(left.there - before.there, before.at) | self._came
        self._left |= leaving.owners

    def moved(self, pods: Iterable[CachedPod]) -> dict[str, dt.datetime]:
        """Who of them came by a move, by UID, and when that was.

        A workload that has been scaled since is another one, and forgotten.
        """
        if not self._left:
            return {}
        now = self._clock.now()
        counts, there = _tally(pods, self._left.keys())
        self._left = {
            uid: left
            for uid, left in self._left.items()
            if now - left.at < REMEMBERED and abs(counts[uid] - left.pods) <= max(1, left.pods * CHANGED_PERCENT // 100)
        }
        self._came = {
            pod: self._came.get(pod, left.at)
            for uid, left in self._left.items()
            for pod in there[uid]
            if pod in self._came or pod not in left.there
        }
        return dict(self._came)

    def failed(self, reason: str, pools: Iterable[str]) -> None:
        """Nothing could be bought, or it did not come up: the pools wait, longer each time."""
        now = self._clock.monotonic()
        for pool in pools:
            key = (reason, pool)
            self._failures[key] = failures = self._failures.get(key, 0) + 1
            self._until[key] = now + _pause(FAILED, failures)

    def succeeded(self, reason: str, pools: Iterable[str]) -> None:
        for pool in pools:
            self._failures.pop((reason, pool), None)
            self._until.pop((reason, pool), None)

    def held_back(self, reason: str) -> frozenset[str]:
        """The pools that wait after a failure."""
        now = self._clock.monotonic()
        return frozenset(pool for (why, pool), until in self._until.items() if why == reason and until > now)

    def failing(self, reason: str) -> frozenset[str]:
        """The pools in which so much has failed in a row that the next try will probably fail too."""
        return frozenset(
            pool for (why, pool), times in self._failures.items() if why == reason and times >= FAILING_TIMES
        )

    def taken_back(self, nodes: Iterable[str], *, took: float = 0.0, paid: bool = False) -> None:
        """A move of the nodes was begun, or found to leave pods without a place, `took` some seconds and will not be made: they
        rest, longer each time.

        `paid`: what was bought for it had come up; then they rest as a pool does where purchases fail. Of one that was left in
        peace for as long as any such rests, nothing is remembered.
        """
        now = self._clock.monotonic()
        pause = FAILED if paid else TAKEN_BACK
        self._stayed = {key: stayed for key, stayed in self._stayed.items() if now - stayed[1] < FORGOTTEN_SECONDS}
        for node in nodes:
            times, until = self._stayed.get((node, paid), (0, now))
            times = 1 if now - took - until >= pause.cap_seconds else times + 1
            self._stayed[node, paid] = (times, now + _pause(pause, times))

    def resting(self) -> frozenset[str]:
        """The nodes that stay for now, after their moves were taken back."""
        now = self._clock.monotonic()
        return frozenset(node for (node, _), (_, until) in self._stayed.items() if until > now)

    def put_off(self, nodes: frozenset[str]) -> None:
        """A move of the nodes was to buy, and less was found to do for their pods by now: it is decided anew."""
        now = self._clock.monotonic()
        times = self.times_put_off(nodes)
        self._put_off = {each: known for each, known in self._put_off.items() if known[1] > now}
        self._put_off[nodes] = (times + 1, now + PUT_OFF_SECONDS)

    def times_put_off(self, nodes: frozenset[str]) -> int:
        """How often that was so lately."""
        times, until = self._put_off.get(nodes, (0, 0.0))
        return times if until > self._clock.monotonic() else 0

    def next_release(self) -> float | None:
        """In how many seconds the next pool or node has waited for long enough."""
        now = self._clock.monotonic()
        ends = (*self._until.values(), *(until for _, until in self._stayed.values()))
        return min((until - now for until in ends if until > now), default=None)


def _tally(pods: Iterable[CachedPod], owners: Set[str]) -> tuple[Mapping[str, int], Mapping[str, Set[str]]]:
    """How many active pods each owner has, and the UIDs of all of its pods."""
    counts: collections.Counter[str] = collections.Counter()
    there: collections.defaultdict[str, set[str]] = collections.defaultdict(set)
    for pod in pods:
        if (uid := _owner(pod)) in owners:
            counts[uid] += occupants.active(pod)
            there[uid].add(pod.uid)
    return counts, there


def _owner(pod: CachedPod) -> str:
    return pod.uid if pod.owner is None else pod.owner.uid


def _pause(settings: BackoffSettings, times: int) -> float:
    return min(settings.base_seconds * 2.0 ** min(times - 1, 20), settings.cap_seconds)
