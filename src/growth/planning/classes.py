"""Pods collapse to classes: everything that planning asks of a pod, worked out once for all pods that are alike.

Shapes that differ only in what nothing asks about (a label that no selector reads) end up in one class.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from growth.api.placement import Affinity, NodeSelectorTerm, PodAffinityTerm, Toleration
from growth.api.pods import PodSpec
from growth.api.pools import PoolRef
from growth.api.requests import Port, host_ports_of, requests_of
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import Demand, Snapshot
from growth.cluster.sorts import Sorts
from growth.planning.offerings import Constraint, Constraints
from growth.planning.requirements import Requirement, RequirementError, from_expressions, from_labels, gather
from growth.planning.rules import Groups, keeps_away_of
from growth.planning.selectors import SelectorError
from growth.planning.topology import Group, Rule
from growth.planning.volumes import NO_VOLUMES, VolumeError, VolumeNeeds, needs_of
from growth.units import QuantityError

DO_NOT_SCHEDULE = "DoNotSchedule"


# Structs, because a pass makes thousands: a frozen dataclass takes eight times as long.


class Variant(msgspec.Struct, frozen=True, eq=False):
    """What a pod asks for at one step of giving up its preferences. `soft`: it still avoids PreferNoSchedule taints."""

    constraint: Constraint
    rules: tuple[Group, ...]
    soft: bool


class PodClass(msgspec.Struct, frozen=True, eq=False):
    """Pods that are alike to planning.

    `needs` are (index of the resource, amount). `variants` begins with every preference and ends with none. `counted`
    are the rules of anybody whose selector matches these pods; `kept_away` those placed pods that bar them;
    `keeps_away` the bars that these pods put up themselves. `refusal` is why no place will do: (filter, message).
    `backed_off` are the pools where no machine is bought for them now, each with why.
    """

    shape: PodShape
    pods: tuple[str, ...]
    requests: Mapping[str, int]
    needs: tuple[tuple[int, int], ...]
    priority: int
    tolerations: tuple[Toleration, ...]
    ports: frozenset[Port]
    volumes: VolumeNeeds
    places: tuple[Constraint, ...]
    variants: tuple[Variant, ...]
    counted: tuple[Group, ...]
    kept_away: tuple[Group, ...]
    keeps_away: tuple[Group, ...]
    refusal: tuple[str, str] | None = None
    backed_off: tuple[tuple[PoolRef, str], ...] = ()

    def selects_itself(self, group: Group) -> bool:
        return group in self.counted


def required_terms(spec: PodSpec) -> tuple[NodeSelectorTerm, ...]:
    """The terms of the required node affinity, of which one must hold."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required.node_selector_terms if required else ()


class Draft(msgspec.Struct, frozen=True, eq=False):
    """A shape compiled, before it is known which rules count it."""

    shape: PodShape
    requests: Mapping[str, int]
    variants: tuple[Variant, ...]
    keeps_away: tuple[Group, ...]
    ports: frozenset[Port]
    volumes: VolumeNeeds
    refusal: tuple[str, str] | None = None
    backed_off: tuple[tuple[PoolRef, str], ...] = ()


class Compiler:
    """Turns the demands of one pass into classes."""

    def __init__(
        self,
        snapshot: Snapshot,
        constraints: Constraints,
        groups: Groups,
        *,
        respect_preferences: bool,
        soft_taints: bool,
    ) -> None:
        self._snapshot = snapshot
        self._constraints = constraints
        self._groups = groups
        self._respect = respect_preferences
        self._soft_taints = soft_taints
        self._in_vain = [(pool.ref, pool.in_vain) for pool in snapshot.pools if pool.in_vain]

    def drafts(self, demands: Iterable[Demand]) -> list[tuple[Draft, list[str]]]:
        """Each distinct shape compiled, with its pods. Registers every rule that the shapes state."""
        pods: dict[PodShape, list[str]] = collections.defaultdict(list)
        for demand in demands:
            pods[demand.shape].append(demand.key)
        drafts = [(self._draft(shape), keys) for shape, keys in pods.items()]
        return drafts if not self._in_vain else list(self._held_back(drafts))

    def _held_back(self, drafts: Iterable[tuple[Draft, list[str]]]) -> Iterator[tuple[Draft, list[str]]]:
        """The drafts with the pools where none or one of their pods may have a machine. The first pod of a sort is the one."""
        sorts = Sorts()
        probed: set[tuple[PoolRef, str]] = set()
        for draft, keys in drafts:
            sort = sorts.digest(draft.shape)
            known = [(ref, entries[sort]) for ref, entries in self._in_vain if sort in entries]
            free = {ref for ref, each in known if each.probe and (ref, sort) not in probed}
            probed |= {(ref, sort) for ref in free}
            barred = tuple((ref, each.why) for ref, each in known)
            if free:
                first = tuple((ref, why) for ref, why in barred if ref not in free)
                yield msgspec.structs.replace(draft, backed_off=first), keys[:1]
                keys = keys[1:]  # noqa: PLW2901 - the rest of them
            if keys:
                yield msgspec.structs.replace(draft, backed_off=barred), keys

    def classes(self, drafts: list[tuple[Draft, list[str]]], resources: Sequence[str]) -> list[PodClass]:
        """The classes in the order of the queue: priority, then cpu and memory, largest first."""
        index = {name: at for at, name in enumerate(resources)}
        bars = [group for group in self._groups.all if group.rule is Rule.KEEPS_AWAY]
        rules = [group for group in self._groups.all if group.rule is not Rule.KEEPS_AWAY]
        seen: dict[tuple[object, ...], tuple[tuple[Group, ...], tuple[Group, ...]]] = {}
        merged: dict[tuple[object, ...], tuple[Draft, list[str], tuple[Group, ...], tuple[Group, ...]]] = {}
        for draft, keys in drafts:
            shape = draft.shape
            about = (shape.namespace, *sorted(shape.labels.items()))
            if about not in seen:
                seen[about] = (
                    tuple(group for group in rules if group.selects(shape.namespace, shape.labels)),
                    tuple(group for group in bars if group.selects(shape.namespace, shape.labels)),
                )
            counted, kept_away = seen[about]
            key = self._signature(draft, counted, kept_away)
            if key in merged:
                merged[key][1].extend(keys)
            else:
                merged[key] = (draft, list(keys), counted, kept_away)
        found = [
            PodClass(
                shape=draft.shape,
                pods=tuple(sorted(keys)),
                requests=draft.requests,
                needs=tuple((index[name], amount) for name, amount in draft.requests.items()),
                priority=draft.shape.spec.priority or 0,
                tolerations=draft.shape.spec.tolerations,
                ports=draft.ports,
                volumes=draft.volumes,
                places=tuple(self._constraints.of(place) for place in draft.volumes.places),
                variants=draft.variants,
                counted=counted,
                kept_away=kept_away,
                keeps_away=draft.keeps_away,
                refusal=draft.refusal,
                backed_off=draft.backed_off,
            )
            for draft, keys, counted, kept_away in merged.values()
        ]
        found.sort(key=lambda c: (-c.priority, -c.requests.get("cpu", 0), -c.requests.get("memory", 0), c.pods[0]))
        return found

    def _signature(self, draft: Draft, counted: tuple[Group, ...], kept_away: tuple[Group, ...]) -> tuple[object, ...]:
        spec = draft.shape.spec
        volumes = (
            draft.shape if draft.volumes is not NO_VOLUMES or draft.refusal else None
        )  # their own class: claims are by name
        return (
            tuple(sorted(draft.requests.items())),
            tuple((v.constraint, v.rules, v.soft) for v in draft.variants),
            spec.tolerations,
            spec.priority or 0,
            draft.ports,
            draft.keeps_away,
            counted,
            kept_away,
            volumes,
            draft.backed_off,
        )

    def _draft(self, shape: PodShape) -> Draft:
        try:
            requests = requests_of(shape.spec)
        except QuantityError as error:
            return self._refused(shape, {"pods": 1}, "resources", str(error))
        unsupported = self._unsupported(shape.spec)
        if unsupported:
            return self._refused(shape, requests, "unsupported", unsupported)
        try:
            volumes = needs_of(shape, self._snapshot.volumes)
        except VolumeError as error:
            return self._refused(shape, requests, "volumes", str(error))
        try:
            variants = tuple(self._variants(shape))
        except (RequirementError, SelectorError) as error:
            return self._refused(shape, requests, "requirements", str(error))
        return Draft(
            shape=shape,
            requests=requests,
            variants=variants,
            keeps_away=keeps_away_of(shape, self._groups),
            ports=host_ports_of(shape.spec),
            volumes=volumes,
        )

    def _refused(self, shape: PodShape, requests: Mapping[str, int], kind: str, message: str) -> Draft:
        none = Variant(constraint=self._constraints.none, rules=(), soft=False)
        return Draft(
            shape=shape,
            requests=requests,
            variants=(none,),
            keeps_away=(),
            ports=frozenset(),
            volumes=NO_VOLUMES,
            refusal=(kind, message),
        )

    def _unsupported(self, spec: PodSpec) -> str:
        if spec.scheduling_gates:
            gates = ", ".join(gate.name for gate in spec.scheduling_gates)
            return f"schedulingGates ({gates}) hold the pod back: it is placed when they are removed"
        if spec.resource_claims:
            return "resourceClaims (dynamic resource allocation) are not supported"
        if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
            return "schedulingGroup (all pods of a group or none) is not supported"
        if any(term.match_fields for term in required_terms(spec)):
            return "node affinity by matchFields names one node, and no new machine can have that name"
        return ""

    def _variants(self, shape: PodShape) -> Iterable[Variant]:
        """One step of relaxation after the other, in Karpenter's order."""
        spec = shape.spec
        if spec.affinity is None and not spec.node_selector and not spec.topology_spread_constraints:
            if self._soft_taints:
                yield Variant(constraint=self._constraints.none, rules=(), soft=True)
            yield Variant(constraint=self._constraints.none, rules=(), soft=False)
            return
        terms = [term for term in required_terms(spec) if term.match_expressions or term.match_fields]
        if required_terms(spec) and not terms:
            raise RequirementError("required node affinity: every term is empty, and an empty term matches no node")
        selector = from_labels(spec.node_selector)
        affinity = spec.affinity or Affinity()
        near, far, prefer = self._preferences(affinity)
        anyway = [
            each
            for each in spec.topology_spread_constraints
            if self._respect and each.when_unsatisfiable != DO_NOT_SCHEDULE
        ]
        firm = self._firm_rules(shape, affinity, selector, terms)
        for group in firm:
            group.firm = True
        every_term = tuple(terms)
        soft = self._soft_taints
        while True:
            wanted = [selector]
            if terms:
                wanted.append(from_expressions(terms[0].match_expressions))
            if prefer:
                wanted.append(from_expressions(prefer[0].match_expressions))
            rules = [
                *firm,
                *(self._groups.affinity(shape, term, Rule.AFFINITY) for term in near),
                *(self._groups.affinity(shape, term, Rule.ANTI_AFFINITY) for term in far),
                *(self._groups.spread(shape, each, self._filters(selector, terms)) for each in anyway),
            ]
            constraint = self._constraints.of(gather(pair for each in wanted for pair in each.items()))
            yield Variant(constraint=constraint, rules=tuple(dict.fromkeys(rules)), soft=soft)
            for given in (terms if len(terms) > 1 else [], near, far, prefer, anyway):
                if given:
                    given.pop(0)
                    break
            else:
                if not soft:
                    break
                soft = False
        # Terms were given up before the preferences; without any preference each of them gets another chance.
        for term in every_term[:-1]:
            both = gather([*selector.items(), *from_expressions(term.match_expressions).items()])
            yield Variant(constraint=self._constraints.of(both), rules=tuple(dict.fromkeys(firm)), soft=False)

    def _preferences(
        self, affinity: Affinity
    ) -> tuple[list[PodAffinityTerm], list[PodAffinityTerm], list[NodeSelectorTerm]]:
        """Preferred terms, heaviest first: near whom, far from whom, on which nodes. Empty when preferences are ignored."""
        if not self._respect:
            return [], [], []
        near, far, on = affinity.pod_affinity, affinity.pod_anti_affinity, affinity.node_affinity
        weigh = "preferred_during_scheduling_ignored_during_execution"
        return (
            [each.pod_affinity_term for each in sorted(getattr(near, weigh, ()), key=lambda each: -each.weight)],
            [each.pod_affinity_term for each in sorted(getattr(far, weigh, ()), key=lambda each: -each.weight)],
            [each.preference for each in sorted(getattr(on, weigh, ()), key=lambda each: -each.weight)],
        )

    def _firm_rules(
        self, shape: PodShape, affinity: Affinity, selector: Mapping[str, Requirement], terms: list[NodeSelectorTerm]
    ) -> list[Group]:
        filters = self._filters(selector, terms)
        spreads = [
            each for each in shape.spec.topology_spread_constraints if each.when_unsatisfiable == DO_NOT_SCHEDULE
        ]
        keys = tuple(dict.fromkeys(each.topology_key for each in spreads))
        rules = [self._groups.spread(shape, each, filters, keys=keys) for each in spreads]
        near = (
            affinity.pod_affinity.required_during_scheduling_ignored_during_execution if affinity.pod_affinity else ()
        )
        together = [
            self._groups.affinity(shape, term, Rule.AFFINITY, also=[other for other in near if other is not term])
            for term in near
        ]
        for group in together:
            group.siblings = tuple(other for other in together if other is not group)
        rules.extend(together)
        anti = affinity.pod_anti_affinity
        far = anti.required_during_scheduling_ignored_during_execution if anti else ()
        rules.extend(self._groups.affinity(shape, term, Rule.ANTI_AFFINITY) for term in far)
        return rules

    def _filters(self, selector: Mapping[str, Requirement], terms: list[NodeSelectorTerm]) -> tuple[Constraint, ...]:
        """On which nodes the pod could run: one constraint a required term; empty where anything goes."""
        if not terms:
            return (self._constraints.of(dict(selector)),) if selector else ()
        return tuple(
            self._constraints.of(gather([*selector.items(), *from_expressions(term.match_expressions).items()]))
            for term in terms
        )
