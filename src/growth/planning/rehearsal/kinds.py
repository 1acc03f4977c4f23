"""What the model asks of a pod, worked out once for all pods of a shape."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from growth.api import names
from growth.api.meta import LabelSelector
from growth.api.placement import Affinity, NodeAffinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from growth.api.pods import Container, PodSpec
from growth.api.requests import Port, host_ports_of, requests_of
from growth.cluster.shapes import PodShape
from growth.planning.classes import Draft
from growth.planning.offerings import Constraint, Constraints
from growth.planning.requirements import RequirementError, from_expressions
from growth.planning.rules import Groups, keeps_away_of
from growth.planning.topology import Group, Rule
from growth.planning.volumes import NO_VOLUMES, VolumeNeeds
from growth.units import QuantityError

# What a container that asks for nothing counts as when nodes are scored: a tenth of a core and 200 MiB.
UNSAID: Final = {"cpu": "100m", "memory": "200Mi"}
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
# A placed pod that must be near others draws them to it: the default of `hardPodAffinityWeight`.
HARD_AFFINITY_WEIGHT: Final = 1
# The spread that is preferred for pods of a workload that state none: label and skew.
SYSTEM_SPREAD: Final = ((names.HOSTNAME_LABEL, 3), (names.ZONE_LABEL, 5))
# Labels by which a pod's siblings are known: what the controllers of ReplicaSets and StatefulSets write on their pods.
OF_REPLICA_SET: Final = "pod-template-hash"
OF_STATEFUL_SET: Final = "statefulset.kubernetes.io/pod-name"
REVISION: Final = "controller-revision-hash"


@dataclasses.dataclass(frozen=True, slots=True)
class Count:
    """Pods to be counted by the values of a label: those that a rule selects, or with a `weight` those that state it."""

    group: Group
    weight: int = 0


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Pods of one shape. Of pods that are on nodes already only `counts`, `ports`, `asked` and `scored` are used.

    `needs` are (index of the resource, amount); `asked` is their cpu and memory, `scored` the same as LeastAllocated sees
    it. `allowed`: one of these must match the node, and one of `places` where there are any. `rules` must hold, each with
    whether it counts the pod itself; `kept_away` are those of placed pods. `pulls` are counts and what each pod of them
    is worth. `counts` are those that such a pod is counted by.
    """

    shape: PodShape
    needs: tuple[tuple[int, int], ...]
    asked: tuple[int, int]
    scored: tuple[int, int]
    allowed: tuple[Constraint, ...] = ()
    places: tuple[Constraint, ...] = ()
    rules: tuple[tuple[Group, bool], ...] = ()
    kept_away: tuple[Group, ...] = ()
    pulls: tuple[tuple[Count, int], ...] = ()
    spreads: tuple[Group, ...] = ()
    by_default: bool = False  # the spreads are the system's: nodes without their labels are scored too
    preferred: tuple[tuple[Constraint, int], ...] = ()
    counts: tuple[Count, ...] = ()
    ports: frozenset[Port] = frozenset()
    volumes: VolumeNeeds = NO_VOLUMES
    refused: bool = False

    @property
    def lapses(self) -> bool:
        """Whether nodes that refuse the pod may take it later, when others have been placed."""
        return bool(self.rules)

    @property
    def plain(self) -> bool:
        """Whether room, labels and taints alone decide where the pod may go: who refuses it once refuses it for ever."""
        return not (self.rules or self.kept_away or self.particular or self.refused)

    @property
    def particular(self) -> bool:
        """Whether nodes must be asked one by one: ports and volumes."""
        return bool(self.ports or self.volumes.attach or self.volumes.fresh or self.volumes.alone)


@dataclasses.dataclass(frozen=True, slots=True)
class _Wishes:
    """What a shape prefers: rules with what each pod of theirs is worth, spreads, and what it draws others with."""

    near: tuple[tuple[Group, int], ...] = ()
    spreads: tuple[Group, ...] = ()
    by_default: bool = False
    owned: tuple[Count, ...] = ()


class Kinds:
    """Compiles shapes: first all of them are heard, then it is known which rules count which pods."""

    def __init__(
        self,
        groups: Groups,
        constraints: Constraints,
        namespaces: Mapping[str, Mapping[str, str]],
        *,
        spread_by_default: bool = True,
    ) -> None:
        self._groups = groups
        self._spread_by_default = spread_by_default
        self._constraints = constraints
        # Wishes are registered apart from rules: those of equal words count the same pods, but only rules bar anybody.
        self._wished = Groups(namespaces, constraints)
        self._stated = Groups(namespaces, constraints)
        self._owned: dict[Count, None] = {}
        self._wishes: dict[PodShape, _Wishes] = {}

    def hear(self, shape: PodShape, filters: tuple[Constraint, ...] = ()) -> None:
        """Registers what pods of the shape state about others. `filters`: on which nodes they may run at all."""
        if shape in self._wishes:
            return
        keeps_away_of(shape, self._groups)
        affinity = shape.spec.affinity
        if affinity is None and not shape.spec.topology_spread_constraints and not _of_workload(shape):
            self._wishes[shape] = _Wishes()
            return
        near: list[tuple[Group, int]] = []
        owned: list[Count] = []
        for term, weight in _weighted(affinity or Affinity()):
            near.append((self._wished.affinity(shape, term, Rule.AFFINITY), weight))
            owned.append(Count(self._stated.affinity(shape, term, Rule.AFFINITY), weight))
        owned += [
            Count(self._stated.affinity(shape, term, Rule.AFFINITY), HARD_AFFINITY_WEIGHT)
            for term in _required(affinity.pod_affinity if affinity else None)
        ]
        self._owned.update(dict.fromkeys(owned))
        stated = [
            self._wished.spread(shape, rule, filters)
            for rule in shape.spec.topology_spread_constraints
            if rule.when_unsatisfiable == SCHEDULE_ANYWAY
        ]
        default = () if shape.spec.topology_spread_constraints else tuple(self._default(shape, filters))
        self._wishes[shape] = _Wishes(tuple(near), (*stated, *default), bool(default), tuple(owned))

    def _default(self, shape: PodShape, filters: tuple[Constraint, ...]) -> Iterable[Group]:
        label = _of_workload(shape)
        if not label or not self._spread_by_default:
            return
        siblings = LabelSelector(match_labels={label: shape.labels[label]})
        for key, skew in SYSTEM_SPREAD:
            rule = TopologySpreadConstraint(max_skew=skew, topology_key=key, label_selector=siblings)
            yield self._wished.spread(shape, rule, filters)

    def pending(self, draft: Draft, resources: Sequence[str]) -> Kind:
        """The kind of pods that want a place."""
        shape = draft.shape
        index = {name: at for at, name in enumerate(resources)}
        wishes = self._wishes[shape]
        allowed = tuple(dict.fromkeys(variant.constraint for variant in draft.variants))
        rules = tuple(dict.fromkeys(group for variant in draft.variants for group in variant.rules))
        return Kind(
            shape=shape,
            needs=tuple((index[name], amount) for name, amount in draft.requests.items()),
            asked=(draft.requests.get("cpu", 0), draft.requests.get("memory", 0)),
            scored=scored(shape.spec),
            allowed=allowed,
            places=tuple(self._constraints.of(place) for place in draft.volumes.places),
            rules=tuple((group, group.selects(shape.namespace, shape.labels)) for group in rules),
            kept_away=tuple(
                group
                for group in self._groups.all
                if group.rule is Rule.KEEPS_AWAY and group.selects(shape.namespace, shape.labels)
            ),
            pulls=(
                *((Count(group), weight) for group, weight in wishes.near),
                *((count, count.weight) for count in self._owned if count.group.selects(shape.namespace, shape.labels)),
            ),
            spreads=wishes.spreads,
            by_default=wishes.by_default,
            preferred=tuple(self._preferred(shape.spec)),
            counts=self._counts(shape),
            ports=draft.ports,
            volumes=draft.volumes,
            refused=draft.refusal is not None,
        )

    def placed(self, shape: PodShape) -> Kind:
        """The kind of pods that are on nodes already."""
        asked, scored_as, ports = _taken(shape)
        return Kind(shape=shape, needs=(), asked=asked, scored=scored_as, counts=self._counts(shape), ports=ports)

    def _counts(self, shape: PodShape) -> tuple[Count, ...]:
        selected = [
            Count(group)
            for group in (*self._groups.all, *self._wished.all)
            if group.rule is not Rule.KEEPS_AWAY and group.selects(shape.namespace, shape.labels)
        ]
        bars = [Count(group) for group in keeps_away_of(shape, self._groups)]
        return (*selected, *bars, *self._wishes[shape].owned)

    def _preferred(self, spec: PodSpec) -> Iterable[tuple[Constraint, int]]:
        affinity = (spec.affinity or Affinity()).node_affinity or NodeAffinity()
        for each in affinity.preferred_during_scheduling_ignored_during_execution:
            term = each.preference
            if not term.match_expressions or term.match_fields or not each.weight:
                continue  # an empty term matches nothing, and no planned machine has a name yet
            try:
                yield self._constraints.of(from_expressions(term.match_expressions)), each.weight
            except RequirementError:
                continue


@functools.lru_cache(maxsize=2048)  # shapes are shared by pods and stay as they are; every rehearsal asks again
def _taken(shape: PodShape) -> tuple[tuple[int, int], tuple[int, int], frozenset[Port]]:
    """cpu and memory of a pod that is there, the same as scores see them, and its ports."""
    try:
        asked = requests_of(shape.spec)
    except QuantityError:
        asked = {}
    return (asked.get("cpu", 0), asked.get("memory", 0)), scored(shape.spec), host_ports_of(shape.spec)


def scored(spec: PodSpec) -> tuple[int, int]:
    """cpu and memory of the pod as LeastAllocated sees them: what a container does not say is assumed."""
    try:
        if all("cpu" in c.resources.requests and "memory" in c.resources.requests for c in spec.containers):
            asked = requests_of(spec)
        else:
            asked = requests_of(
                msgspec.structs.replace(
                    spec,
                    containers=tuple(map(_assumed, spec.containers)),
                    init_containers=tuple(map(_assumed, spec.init_containers)),
                )
            )
    except QuantityError:
        return (0, 0)
    return asked.get("cpu", 0), asked.get("memory", 0)


def _assumed(container: Container) -> Container:
    said = {**container.resources.limits, **container.resources.requests}
    missing = {name: amount for name, amount in UNSAID.items() if name not in said}
    if not missing:
        return container
    resources = msgspec.structs.replace(container.resources, requests={**container.resources.requests, **missing})
    return msgspec.structs.replace(container, resources=resources)


def _of_workload(shape: PodShape) -> str:
    """The label that all pods of the same ReplicaSet or StatefulSet share; empty for other pods."""
    if OF_REPLICA_SET in shape.labels:
        return OF_REPLICA_SET
    return REVISION if OF_STATEFUL_SET in shape.labels and REVISION in shape.labels else ""


def _weighted(affinity: Affinity) -> Iterable[tuple[PodAffinityTerm, int]]:
    """Preferred terms with their weight: below zero for those that the pod wants to be away from."""
    for part, sign in ((affinity.pod_affinity, 1), (affinity.pod_anti_affinity, -1)):
        if part is not None:
            for each in part.preferred_during_scheduling_ignored_during_execution:
                yield each.pod_affinity_term, sign * each.weight


def _required(part: PodAffinity | None) -> tuple[PodAffinityTerm, ...]:
    return part.required_during_scheduling_ignored_during_execution if part is not None else ()
