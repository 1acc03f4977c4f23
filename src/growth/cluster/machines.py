"""Machines as Nodes and NodeClaims tell of them together, matched by provider ID.

Karpenter's rules: until a node is registered, labels and taints are the claim's; until it is initialised, startup and
ephemeral taints are left out, because they will go, and resources that the node does not report yet are the claim's. A
node without a claim is nobody's: it is taken as it says it is.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence

from growth.api import names
from growth.api.conditions import UNKNOWN
from growth.api.instance_types import InstanceType
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.meta import ResourceList
from growth.api.nodes import Node
from growth.api.placement import NO_SCHEDULE, Taint
from growth.api.pools import PoolRef
from growth.api.zones import zone_of
from growth.units.resources import Amounts, amounts, largest

CORDONED = Taint(key=names.UNSCHEDULABLE_TAINT, effect=NO_SCHEDULE)


@dataclasses.dataclass(frozen=True)
class Machine:
    """A node, a claim, or both; `listed` are the types that a claim without a machine may still become, cheapest first.

    `most` is the largest that it may become: of those types, or of all that are sold where some are not known.
    """

    node: Node | None
    claim: NodeClaim | None
    listed: tuple[InstanceType, ...] = ()
    alias: str = ""
    most: Amounts = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """The node's, or the claim's while there is none, unless a foreign node has that name."""
        return self.alias or self._object.metadata.name

    @property
    def _object(self) -> Node | NodeClaim:
        found = self.node or self.claim
        assert found is not None
        return found

    @property
    def registered(self) -> bool:
        return self.claim is None or self._marked(names.REGISTERED_LABEL)

    @property
    def initialized(self) -> bool:
        return self.claim is None or self._marked(names.INITIALIZED_LABEL)

    def _marked(self, label: str) -> bool:
        return self.node is not None and self.node.metadata.labels.get(label) == "true"

    @property
    def leaving(self) -> bool:
        """Whether it is on its way out, so that nothing may be placed there any more: deleting either deletes both."""
        if any(each is not None and each.metadata.deletion_timestamp is not None for each in (self.node, self.claim)):
            return True
        return self.claim is not None and any(
            condition.type == names.INSTANCE_TERMINATING and condition.status == "True"
            for condition in self.claim.status.conditions
        )

    @functools.cached_property
    def labels(self) -> Mapping[str, str]:
        """The labels that count; a host's name is there even where nobody wrote it yet. A kubelet of ours that is up wrote it."""
        labels = self.node.metadata.labels if self.registered and self.node is not None else self._claimed_labels()
        if names.HOSTNAME_LABEL in labels or (self.claim is not None and self.initialized):
            return labels
        return {**labels, names.HOSTNAME_LABEL: self.name}

    def _claimed_labels(self) -> dict[str, str]:
        """The claim's labels, and before it is launched those that its requirements leave no choice about."""
        assert self.claim is not None
        labels = {
            each.key: each.values[0]
            for each in self.claim.spec.requirements
            if each.operator == "In" and len(each.values) == 1
        }
        if self.listed:
            kind = self.listed[0]
            labels = {
                **{key: values[0] for key, values in kind.labels.items() if len(values) == 1},
                names.INSTANCE_TYPE_LABEL: kind.name,
                **self._expected_offering(kind),
                **labels,
            }
        return {**labels, **self.claim.metadata.labels}

    def _expected_offering(self, kind: InstanceType) -> dict[str, str]:
        zones, terms = self._asked(names.ZONE_LABEL), self._asked(names.CAPACITY_TYPE_LABEL)
        fine = [
            offering
            for offering in kind.offerings
            if offering.price is not None
            and (zones is None or offering.zone in map(zone_of, zones))
            and (terms is None or offering.capacity_type in terms)
        ]
        if not fine:
            return {}
        best = min(fine, key=lambda offering: (not offering.available, offering.price, offering.zone))
        several = {key: values[0] for key, values in best.labels.items() if len(values) == 1}
        return {**several, names.ZONE_LABEL: best.zone, names.CAPACITY_TYPE_LABEL: best.capacity_type}

    def _asked(self, key: str) -> tuple[str, ...] | None:
        assert self.claim is not None
        return asked_values(self.claim, key)

    @functools.cached_property
    def taints(self) -> tuple[Taint, ...]:
        """The taints that count, a cordon among them."""
        if self.registered and self.node is not None:
            taints = self.node.spec.taints
        else:
            taints = self.claim.spec.taints if self.claim is not None else ()
        if not self.initialized:
            startup = {(taint.key, taint.effect) for taint in self.claim.spec.startup_taints} if self.claim else set()
            taints = tuple(taint for taint in taints if not _passes(taint) and (taint.key, taint.effect) not in startup)
        cordoned = self.node is not None and self.node.spec.unschedulable
        if cordoned and all(taint.key != CORDONED.key for taint in taints):
            taints = (*taints, CORDONED)
        return taints

    @functools.cached_property
    def allocatable(self) -> Amounts:
        """What pods may take. A claim without a machine has the room that each of its types would have. `QuantityError`."""
        reported = self.node.status.allocatable if self.node is not None else {}
        if self.initialized or self.claim is None:
            return amounts(reported)
        if self.claim.status.allocatable:
            return _filled(reported, amounts(self.claim.status.allocatable))
        planned = amounts(self.claim.spec.resources.requests)
        return _filled(reported, largest(planned, _smallest(self.listed)))

    @functools.cached_property
    def capacity(self) -> Amounts:
        """What counts against limits. A claim without a machine counts as the largest that it may become. `QuantityError`."""
        reported = self.node.status.capacity if self.node is not None else {}
        if self.initialized or self.claim is None:
            return amounts(reported)
        if self.claim.status.capacity:
            return _filled(reported, amounts(self.claim.status.capacity))
        return _filled(reported, largest(amounts(self.claim.spec.resources.requests), self.most))

    @property
    def pool(self) -> PoolRef | None:
        """As the claim says, which is the record of whose the machine is; anybody may relabel a Node."""
        for each in (self.claim, self.node):
            labels = each.metadata.labels if each is not None else {}
            if names.NODE_POOL_LABEL in labels:
                return PoolRef.karpenter(labels[names.NODE_POOL_LABEL])
            if names.POOL_LABEL in labels:
                return PoolRef.growth(labels[names.POOL_LABEL])
        return None


def asked_values(claim: NodeClaim, key: str) -> tuple[str, ...] | None:
    """The values that a claim's requirements list for a label; None where they list none."""
    found: tuple[str, ...] | None = None
    for each in claim.spec.requirements:
        if each.key == key and each.operator == "In":
            found = each.values if found is None else tuple(value for value in found if value in each.values)
    return found


def types_of(claim: NodeClaim) -> tuple[str, ...]:
    """The type that it is, or those that it may become, in lower case."""
    bought = claim.metadata.labels.get(names.INSTANCE_TYPE_LABEL)
    listed = (bought,) if bought else asked_values(claim, names.INSTANCE_TYPE_LABEL) or ()
    return tuple(name.lower() for name in listed)


def _passes(taint: Taint) -> bool:
    """Whether the taint goes away by itself while a node comes up."""
    return taint.key in names.EPHEMERAL_TAINTS or taint.key.startswith(names.READINESS_TAINT_PREFIX)


def _filled(reported: ResourceList, promised: Amounts) -> Amounts:
    """What the node reports, and what it does not report yet as promised."""
    known = amounts(reported)
    return {**known, **{name: amount for name, amount in promised.items() if not known.get(name)}}


def _smallest(listed: Iterable[InstanceType]) -> Amounts:
    """What every one of the types has for pods."""
    room: dict[str, int] | None = None
    for kind in listed:
        has = kind.allocatable
        room = dict(has) if room is None else {name: min(room[name], has[name]) for name in room if name in has}
    return room or {}


def machines(
    nodes: Iterable[Node], claims: Iterable[NodeClaim], types: Mapping[str, InstanceType]
) -> tuple[Machine, ...]:
    """Every machine once, sorted by name; `types` by name in lower case say what a claim may become."""
    by_provider: dict[str, list[Node]] = {}
    free: dict[str, Node] = {}  # nodes that no claim has taken
    for node in sorted(nodes, key=lambda node: node.metadata.name):
        free[node.metadata.name] = node
        if node.spec.provider_id:
            by_provider.setdefault(node.spec.provider_id, []).append(node)
    largest_sold: Amounts | None = None
    matched: list[tuple[NodeClaim, Node | None]] = []
    for claim in sorted(claims, key=lambda claim: claim.metadata.name):
        of_machine = by_provider.get(claim.status.provider_id, ()) if claim.status.provider_id else ()
        held = own_node(claim, of_machine) or (of_machine[0] if of_machine else _by_name(claim, free))
        if held is not None:
            free.pop(held.metadata.name, None)
        matched.append((claim, held))
    found = [Machine(node, None) for node in free.values()]
    for claim, held in matched:
        alias = f"NodeClaim {claim.metadata.name}" if held is None and claim.metadata.name in free else ""
        if claim.status.capacity:
            found.append(Machine(held, claim, (), alias))
            continue
        asked = _asked_types(claim)
        listed = _listed(asked, types)
        if asked and len(listed) == len(set(asked)):
            most: Amounts = largest(*(kind.capacity for kind in listed))
        else:  # made by hand for any type, or of a type that was sold once: nobody knows what it is or will be
            most = largest_sold = largest_sold or largest(*(kind.capacity for kind in types.values()))
        found.append(Machine(held, claim, listed, alias, most))
    return tuple(sorted(found, key=lambda machine: machine.name))


def own_node(claim: NodeClaim, nodes: Sequence[Node]) -> Node | None:
    """Which of the Nodes with the provider ID of the claim's machine is the machine's own; None where nobody can tell.

    The only one is. Of several it is the one that the claim names, or that names the claim as its owner. Else those are left
    out that another claim owns or that are older than the claim, and it is the one that is left; or, of those whose kubelets
    have not gone silent, the one that is called as the claim is (machines are named by their claims), or that is Ready alone.
    """
    if len(nodes) == 1:
        return nodes[0]
    owned = [node for node in nodes if any(each.uid == claim.metadata.uid for each in node.metadata.owner_references)]
    for some in ([node for node in nodes if node.metadata.name == claim.status.node_name], owned):
        if len(some) == 1:
            return some[0]
    nodes = [node for node in nodes if not _is_anothers(node, claim)]
    speaking = [node for node in nodes if not _is_silent(node)]
    named = [node for node in speaking if node.metadata.name == claim.metadata.name]
    for some in (nodes, named, [node for node in speaking if len(speaking) == 1 and node.is_ready]):
        if len(some) == 1:
            return some[0]
    return None


def _is_anothers(node: Node, claim: NodeClaim) -> bool:
    owners = [each.uid for each in node.metadata.owner_references if each.kind == NODE_CLAIM.kind]
    made, born = node.metadata.creation_timestamp, claim.metadata.creation_timestamp
    return bool(owners and claim.metadata.uid not in owners) or (made is not None and born is not None and made < born)


def _is_silent(node: Node) -> bool:
    """Whether the control plane has not heard its kubelet for a while."""
    return any(each.type == "Ready" and each.status == UNKNOWN for each in node.status.conditions)


def doubt(provider_id: str, *, nodes: int, claims: int) -> str:
    """Why nobody can tell which of so many Nodes and claims are this machine's; empty where that is clear."""
    if nodes <= 1 and claims <= 1:
        return ""
    counted = (
        f"{number} {kind}{'' if number == 1 else 's'}" for number, kind in ((nodes, "Node"), (claims, "NodeClaim"))
    )
    return f"{' and '.join(counted)} have the provider ID {provider_id}"


def _by_name(claim: NodeClaim, free: Mapping[str, Node]) -> Node | None:
    """The claim's node while one of the two does not know the provider ID yet; with another ID it is another machine."""
    node = free.get(claim.status.node_name or claim.metadata.name)
    if node is None or (node.spec.provider_id and (claim.status.provider_id or not claim.status.node_name)):
        return None
    return node


def _asked_types(claim: NodeClaim) -> tuple[str, ...]:
    """The names of the types that it may be, in lower case; the one that was bought where the claim says so already."""
    launched = claim.metadata.labels.get(names.INSTANCE_TYPE_LABEL)
    asked = (launched,) if launched else asked_values(claim, names.INSTANCE_TYPE_LABEL) or ()
    return tuple(name.lower() for name in asked)


def _listed(asked: Iterable[str], types: Mapping[str, InstanceType]) -> tuple[InstanceType, ...]:
    known = [types[name] for name in dict.fromkeys(asked) if name in types]
    return tuple(sorted(known, key=_cheapest))


def _cheapest(kind: InstanceType) -> tuple[int, str]:
    prices = [offering.price for offering in kind.offerings if offering.price is not None]
    return (min(prices, default=1 << 62), kind.name)
