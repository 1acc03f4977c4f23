"""Which pods want a machine now. Pure, but for `Pending`, which remembers what the watch told.

kube-scheduler marks pods that fit nowhere, about a hundred a second; a burst of pods would be waited for longer than
their machines take. So a pod also counts that has waited a little while the scheduler marked another pod that asks for
the same.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Final

import msgspec

from growth.api.meta import LabelSelector
from growth.api.placement import PodAffinityTerm
from growth.api.pods import PodSpec
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.wanting import wants_machine
from growth.kube.store import Change, Deleted, Key
from growth.ports import Clock

# What one pod's mark says of its like is believed for this long after the last of them was seen.
MARK_SECONDS: Final = 60.0
_REMEMBERED: Final = 20_000


class Sorts:
    """Tells pods that ask for the same from others, coarser than shapes.

    Shapes differ by any label and by the names of volume claims: every pod of a StatefulSet has its own. Of labels only
    those count here that the pod's own selectors read, and of volumes none.
    """

    def __init__(self) -> None:
        self._known: dict[PodShape, bytes] = {}
        self._encode = msgspec.msgpack.Encoder(order="deterministic").encode

    def of(self, shape: PodShape) -> bytes:
        known = self._known.get(shape)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            read = {key: value for key, value in shape.labels.items() if key in _read_labels(shape.spec)}
            spec = msgspec.structs.replace(shape.spec, volumes=())
            known = self._known[shape] = self._encode((shape.namespace, read, spec))
        return known


def _read_labels(spec: PodSpec) -> Set[str]:
    """The keys of labels that the pod's own rules about other pods look at."""
    selectors = [constraint.label_selector for constraint in spec.topology_spread_constraints]
    keys = {key for constraint in spec.topology_spread_constraints for key in constraint.match_label_keys}
    if spec.affinity is not None:
        for both in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            if both is not None:
                preferred = (
                    each.pod_affinity_term for each in both.preferred_during_scheduling_ignored_during_execution
                )
                terms: list[PodAffinityTerm] = [*both.required_during_scheduling_ignored_during_execution, *preferred]
                selectors += [term.label_selector for term in terms]
                keys |= {key for term in terms for key in (*term.match_label_keys, *term.mismatch_label_keys)}
    for selector in selectors:
        keys |= _keys(selector)
    return keys


def _keys(selector: LabelSelector | None) -> Set[str]:
    if selector is None:
        return frozenset()
    return {*selector.match_labels, *(each.key for each in selector.match_expressions)}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """What is known of the pods that wait: since when (monotonic seconds), and of which sorts one was marked."""

    now: float
    age: float  # seconds after which a pod counts like the marked one of its sort
    since: Mapping[Key, float]
    sorts: Set[bytes]


def ripe(
    pending: Iterable[CachedPod], marked: Marked, sort: Callable[[PodShape], bytes]
) -> tuple[list[CachedPod], float | None]:
    """The pods that count now, and in how many seconds the next one will; None when none will by itself."""
    found: list[CachedPod] = []
    waiting = [pod for pod in pending if wants_machine(pod)]
    sorts = {sort(pod.shape) for pod in waiting if pod.unschedulable_since is not None} | marked.sorts
    soonest: float | None = None
    for pod in waiting:
        if pod.unschedulable_since is not None:
            found.append(pod)
        elif sort(pod.shape) in sorts:
            left = marked.since.get((pod.namespace, pod.name), marked.now) + marked.age - marked.now
            if left <= 0:
                found.append(pod)
            elif soonest is None or left < soonest:
                soonest = left
    return found, soonest


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
