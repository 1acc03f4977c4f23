"""Which of its names a zone has on the Nodes to come. Pure.

kube-scheduler compares names, so a Node must carry the one that its pods select, and for all other pods the one that the
cluster's other Nodes carry: pods are spread over names. A zone is therefore sold by the name that Nodes of others carry, else
by the one that pools ask for, else as the catalogue calls it; and by another name too where pods select that one, or Nodes
of ours carry it for such pods.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from growth.api import names
from growth.api.instance_types import InstanceType, Offering
from growth.api.placement import NodeSelectorRequirement, NodeSelectorTerm
from growth.api.pods import PodSpec
from growth.api.volumes import PersistentVolume, StorageClass
from growth.api.zones import DATACENTERS, in_all_names, is_zone, named_zones, zone_of


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneNames:
    """By zone its names, the preferred one first. A zone that is not here has the catalogue's name alone."""

    of: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)

    def sold(self, types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
        """The types with an offering for each name of a zone."""
        if not self.of:
            return types
        return tuple(
            dataclasses.replace(kind, offerings=tuple(self._named(kind.offerings)))
            if any(each.zone in self.of for each in kind.offerings)
            else kind
            for kind in types
        )

    def _named(self, offerings: Iterable[Offering]) -> Iterator[Offering]:
        for each in offerings:
            for number, name in enumerate(self.of.get(each.zone, (each.zone,))):
                yield dataclasses.replace(each, zone=name, spare=number > 0)

    def without_zones(self, spec: PodSpec) -> PodSpec:
        """The pod's spec with each zone that it rules out ruled out by all names: a pod means the place."""
        affinity = spec.affinity
        inner = affinity.node_affinity if affinity is not None else None
        required = inner.required_during_scheduling_ignored_during_execution if inner is not None else None
        if affinity is None or inner is None or required is None:
            return spec
        if not any(map(_rules_out, _expressions(required.node_selector_terms))):
            return spec

        def widened(term: NodeSelectorTerm) -> NodeSelectorTerm:
            found = (in_all_names([each], self.of)[0] if _rules_out(each) else each for each in term.match_expressions)
            return msgspec.structs.replace(term, match_expressions=tuple(found))

        replace = msgspec.structs.replace
        terms = replace(required, node_selector_terms=tuple(map(widened, required.node_selector_terms)))
        inner = replace(inner, required_during_scheduling_ignored_during_execution=terms)
        return replace(spec, affinity=replace(affinity, node_affinity=inner))


NO_OTHER_NAMES: Final = ZoneNames()


def zone_names(*, sold: Iterable[str], others: Iterable[str], pools: Iterable[str], asked: Iterable[str]) -> ZoneNames:
    """`sold` are the catalogue's zones; the rest are names of zones: on Nodes of others, in requirements of pools, and those
    that pods select or Nodes of ours carry.
    """
    zones = sorted({zone for zone in sold if zone in DATACENTERS})
    on_others, of_pools, selected = ({*some} for some in (others, pools, asked))
    found: dict[str, Sequence[str]] = {}
    for zone in zones:
        first = preferred(zone, on_others, of_pools)
        more = sorted(name for name in selected if zone_of(name) == zone and name != first)
        if more or first != zone:
            found[zone] = (first, *more)
    return ZoneNames(found)


def preferred(zone: str, others: Iterable[str], pools: Iterable[str] = ()) -> str:
    """The name of a zone on Nodes that may have any. `others` are on Nodes that are not ours, `pools` in requirements."""
    for evidence in (sorted(others), sorted(pools)):
        here = [name for name in evidence if zone_of(name) == zone]
        if here:
            return next((name for name in here if name != zone), zone)
        if any(zone_of(name) != name for name in evidence):
            return DATACENTERS.get(zone, zone)
    return zone


def selected_by(spec: PodSpec) -> Iterator[str]:
    """The names of zones that the pod selects or prefers."""
    yield from (value for key, value in spec.node_selector.items() if is_zone(key))
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None:
        return
    required = affinity.required_during_scheduling_ignored_during_execution
    terms = [each.preference for each in affinity.preferred_during_scheduling_ignored_during_execution]
    terms += required.node_selector_terms if required is not None else ()
    yield from named_zones(_expressions(terms))


def of_volumes(volumes: Iterable[PersistentVolume], classes: Iterable[StorageClass]) -> Iterator[str]:
    """The names of zones that volumes are tied to, or may come to be."""
    for volume in volumes:
        yield from (name for key, text in volume.metadata.labels.items() if is_zone(key) for name in text.split("__"))
        affinity = volume.spec.node_affinity
        if affinity is not None and affinity.required is not None:
            yield from named_zones(_expressions(affinity.required.node_selector_terms))
    for each in classes:
        for term in each.allowed_topologies:
            yield from (name for asked in term.match_label_expressions if is_zone(asked.key) for name in asked.values)


def zone_on(labels: Mapping[str, str]) -> str:
    """The name of the zone that a Node carries; empty for none."""
    return labels.get(names.ZONE_LABEL, "")


def _expressions(terms: Iterable[NodeSelectorTerm]) -> Iterator[NodeSelectorRequirement]:
    return (each for term in terms for each in term.match_expressions)


def _rules_out(asked: NodeSelectorRequirement) -> bool:
    return is_zone(asked.key) and asked.operator == "NotIn"
