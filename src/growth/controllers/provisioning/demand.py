"""Which pods want a machine now. Pure, but for `Pending`, which remembers what the watch told.

kube-scheduler marks pods that fit nowhere, about a hundred a second; a burst of pods would be waited for longer than
their machines take. So the mark of one pod speaks for all that ask for the same, and the last mark for those that the
scheduler has yet to come to.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Final

from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.sorts import Sorts
from growth.cluster.wanting import wants_machine
from growth.kube.store import Change, Deleted, Key
from growth.ports import Clock

# What one pod's mark says of its like is believed for this long after the last of them was seen.
MARK_SECONDS: Final = 60.0
_LONG_AGO: Final = dt.datetime.min.replace(tzinfo=dt.UTC)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """What is known of the pods that wait: since when (monotonic seconds), and of which sorts one was marked."""

    now: float
    age: float  # seconds after which a pod counts that the scheduler has evidently not come to yet
    since: Mapping[Key, float]
    sorts: Set[bytes]


def ripe(
    pending: Iterable[CachedPod], marked: Marked, sort: Callable[[PodShape], bytes]
) -> tuple[list[CachedPod], float | None]:
    """The pods that are planned for now, and in how many seconds another will be; None when none will by itself.

    When there is a plan at all, it is for everybody whom the scheduler will send our way: those that it marked, those
    that ask for the same, and those that it has not come to because it is behind. The scheduler takes pods in the order
    of their creation, so it is behind a pod that was created after the one that it marked last. Nothing is bought in vain
    for the others: a plan fills the room that is there first. Without a mark there is no demand.
    """
    waiting = [pod for pod in pending if wants_machine(pod)]
    sorts = {sort(pod.shape) for pod in waiting if pod.unschedulable_since is not None} | marked.sorts
    reached = _reached(waiting)
    found: list[CachedPod] = []
    soonest: float | None = None
    for pod in waiting:
        if pod.unschedulable_since is not None or sort(pod.shape) in sorts:
            found.append(pod)
            continue
        last = reached.get(pod.shape.spec.scheduler_name)
        if last is None or pod.created is None or pod.created < last:
            continue  # nobody looks for its place, or the scheduler has seen it and knows of one
        left = marked.since.get((pod.namespace, pod.name), marked.now) + marked.age - marked.now
        if left <= 0:
            found.append(pod)
        elif soonest is None or left < soonest:
            soonest = left
    return found, soonest


def _reached(waiting: Iterable[CachedPod]) -> dict[str, dt.datetime]:
    """By scheduler, when the pod was created that it marked last."""
    newest: dict[str, tuple[dt.datetime, dt.datetime]] = {}
    for pod in waiting:
        if pod.unschedulable_since is not None and pod.created is not None:
            name = pod.shape.spec.scheduler_name
            newest[name] = max(newest.get(name, (_LONG_AGO, _LONG_AGO)), (pod.unschedulable_since, pod.created))
    return {name: created for name, (_, created) in newest.items()}


class Pending:
    """Follows pods: since when they wait, which sorts the scheduler marked, and whether there is anything new.

    `news` is called with the sort of a pod that wants a machine and has not been planned for.
    """

    def __init__(self, clock: Clock, *, age: float, news: Callable[[bytes], None]) -> None:
        self._clock = clock
        self._age = age
        self._news = news
        self.sorts = Sorts()
        self._since: dict[Key, float] = {}
        self._marks: dict[bytes, float] = {}
        self._planned: dict[Key, None] = {}  # looked at by a pass already

    def __len__(self) -> int:
        return len(self._since)

    def unplanned(self) -> int:
        """How many wait that no pass has looked at."""
        return len(self._since) - len(self._planned)

    def hear(self, change: Change[CachedPod]) -> None:
        """The subscriber of the pods' informer."""
        if isinstance(change, Deleted) or not wants_machine(change.new):
            self._since.pop(change.key, None)
            self._planned.pop(change.key, None)
            return
        pod = change.new
        now = self._clock.monotonic()
        self._since.setdefault(change.key, now)
        sort = self.sorts.of(pod.shape)
        fresh = False
        if pod.unschedulable_since is not None:
            fresh = now - self._marks.get(sort, -MARK_SECONDS) >= MARK_SECONDS
            self._marks[sort] = now
        elif now - self._marks.get(sort, -MARK_SECONDS) >= MARK_SECONDS:
            return  # nobody has said yet that there is no room
        if fresh or change.key not in self._planned:
            self._news(sort)

    def planned(self, pods: Sequence[CachedPod]) -> None:
        """A pass has looked at these: they are no news any more."""
        for pod in pods:
            key = (pod.namespace, pod.name)
            if key in self._since:
                self._planned[key] = None

    def marked(self) -> Marked:
        """A copy of what is known, for a plan on another thread."""
        now = self._clock.monotonic()
        self._marks = {sort: at for sort, at in self._marks.items() if now - at < MARK_SECONDS}
        return Marked(now=now, age=self._age, since=self._since.copy(), sorts=frozenset(self._marks))
