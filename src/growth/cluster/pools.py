"""Pools of both APIs as planning sees them: what they may buy, what they have used up, and why they may buy nothing."""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from growth.api import names, reservations
from growth.api.growthpools import GrowthPool
from growth.api.instance_types import Catalogue, InstanceType
from growth.api.karpenter import NodeClaim, NodeClassReference, NodePool, Requirement
from growth.api.meta import Condition, ObjectMeta
from growth.api.pools import PoolRef
from growth.api.reservations import Reservation, ReservationError, ReservedName
from growth.api.zones import in_all_names
from growth.cluster.machines import Machine
from growth.cluster.node_requests import without_unmet
from growth.cluster.pricing import by_name, type_of
from growth.cluster.snapshot import NODES, BackedOff, PoolView
from growth.cluster.vain import backed_off, basis_of
from growth.cluster.zone_names import NO_OTHER_NAMES, ZoneNames
from growth.units.errors import QuantityError
from growth.units.resources import Amounts, add, amounts

# The node class of growth pools that name none.
DEFAULT_CLASS: Final = "default"


@dataclasses.dataclass(frozen=True, slots=True)
class NodeClassView:
    """What matters of a node class. `zones` are those where its machines may be bought; empty for everywhere.

    `sizes` are capacity and allocatable that its machines turned out to have, by type: newer than what a catalogue says.
    `generation` is another one with every change of its spec.
    """

    conditions: Sequence[Condition] = ()
    zones: tuple[str, ...] = ()
    sizes: Mapping[str, tuple[Amounts, Amounts]] = dataclasses.field(default_factory=dict)
    generation: int = 0


NodeClasses = Mapping[NodeClassReference, NodeClassView]


@dataclasses.dataclass(frozen=True, slots=True)
class Market:
    """What can be bought, by whom and when: the catalogue, the node classes that are known, and the time.

    `zones` are the names by which zones are sold. `unmet` are the server types of each growth pool that the cloud had none
    of anywhere, in lower case. `given_up` are reserved names
    that nobody will create any more; None: those that are old by the time that they carry.
    """

    catalogue: Catalogue
    classes: NodeClasses
    now: dt.datetime
    unmet: Mapping[str, Set[str]] = dataclasses.field(default_factory=dict)
    given_up: Set[ReservedName] | None = None
    zones: ZoneNames = NO_OTHER_NAMES

    def basis(self, metadata: ObjectMeta, uses: NodeClassReference | None) -> str:
        """What machines of a pool are bought by: with another basis they may come otherwise (`vain.basis_of`)."""
        known = self._class_of(uses)
        return basis_of(metadata, 0 if known is None else known.generation, self._sold(uses))

    def types_for(self, uses: NodeClassReference | None) -> tuple[InstanceType, ...]:
        """What machines of a node class can be; without one, of the class that the cloud takes then."""
        return self.zones.sold(self._types_for(uses))

    def _types_for(self, uses: NodeClassReference | None) -> tuple[InstanceType, ...]:
        types = self._sold(uses)
        known = self._class_of(uses)
        if known is None:
            return types
        if known.sizes:
            types = tuple(kind.sized(*known.sizes[kind.name]) if kind.name in known.sizes else kind for kind in types)
        if not known.zones:
            return types
        return tuple(
            # Machines that people own stand where they stand: the class says where others are bought.
            kind
            if kind.owned
            else dataclasses.replace(kind, offerings=tuple(each for each in kind.offerings if each.zone in known.zones))
            for kind in types
        )

    def _sold(self, uses: NodeClassReference | None) -> tuple[InstanceType, ...]:
        return self.catalogue.of_classes.get(DEFAULT_CLASS if uses is None else uses.name, self.catalogue.types)

    def _class_of(self, uses: NodeClassReference | None) -> NodeClassView | None:
        if uses is not None:
            return self.classes.get(uses)
        return next((view for each, view in self.classes.items() if each.name == DEFAULT_CLASS), None)

    def standing(self, reserved: Mapping[str, Reservation]) -> Mapping[str, Reservation]:
        """Without what nobody will create any more."""
        if self.given_up is None:
            return reservations.live(reserved, self.now)
        return {name: each for name, each in reserved.items() if (name, each.at) not in self.given_up}


class Usage:
    """What the machines of each pool take, those on their way and on their way out included.

    `faults` says for which pools that is not known, because a quantity of theirs cannot be read.
    """

    def __init__(self, machines: Iterable[Machine], types: Mapping[str, InstanceType]) -> None:
        self.names: set[str] = set()
        self.faults: dict[PoolRef, str] = {}
        self._used: dict[PoolRef, dict[str, int]] = {}
        self._types: dict[PoolRef, dict[str, int]] = {}
        self._known = types
        self._staying: dict[PoolRef, list[NodeClaim]] = {}
        for machine in machines:
            if machine.claim is not None:
                self.names.add(machine.claim.metadata.name)
            pool = machine.pool
            if pool is None:
                continue
            if machine.claim is not None and not machine.leaving:
                self._staying.setdefault(pool, []).append(machine.claim)
            try:
                capacity = machine.capacity
            except QuantityError as error:
                self.faults[pool] = f"what it uses is not known: capacity of {machine.name}: {error}"
                continue
            self._take(pool, capacity, type_of(machine.labels, types))

    def reserve(self, pool: PoolRef, reserved: Mapping[str, Reservation]) -> None:
        """Counts the names that are reserved and not created yet. `QuantityError` where it cannot be read how much."""
        for name, reservation in reserved.items():
            if name not in self.names:
                kind = self._known.get(reservation.instance_type.lower())
                capacity = amounts(reservation.capacity) or (kind.capacity if kind else {})
                self._take(pool, capacity, kind)

    def _take(self, pool: PoolRef, capacity: Amounts, kind: InstanceType | None) -> None:
        self._used[pool] = add(self._used.get(pool, {}), {**capacity, NODES: 1})
        if kind is not None:
            counts = self._types.setdefault(pool, {})
            counts[kind.name] = counts.get(kind.name, 0) + 1

    def of(self, pool: PoolRef) -> Amounts:
        return self._used.get(pool, {})

    def staying(self, pool: PoolRef) -> Sequence[NodeClaim]:
        """The claims of the pool that are not on their way out."""
        return self._staying.get(pool, ())

    def types_of(self, pool: PoolRef) -> Mapping[str, int]:
        """How many machines of each type, by its name."""
        return self._types.get(pool, {})


def karpenter_pool(pool: NodePool, usage: Usage, market: Market) -> PoolView:
    """A NodePool of Karpenter's API."""
    ref = PoolRef.karpenter(pool.metadata.name)
    template = pool.spec.template
    problem = _problem(
        ref,
        pool.metadata,
        pool.status.conditions,
        usage=usage,
        market=market,
        uses=template.spec.node_class_ref,
    )
    if not problem and pool.spec.replicas is not None:
        problem = "it is static (spec.replicas is set): it keeps its number of nodes and takes no pending pods"
    try:
        limits = amounts(pool.spec.limits)
    except QuantityError as error:
        limits, problem = {}, problem or f"its limits cannot be read: {error}"
    return PoolView(
        ref=ref,
        instance_types=tuple(
            kind
            for kind in market.types_for(template.spec.node_class_ref)
            if not kind.owned or _named(kind, template.spec.requirements)
        ),
        weight=pool.spec.weight or 0,
        requirements=tuple(in_all_names(template.spec.requirements, market.zones.of)),
        labels=template.metadata.labels,
        taints=template.spec.taints,
        startup_taints=template.spec.startup_taints,
        limits=limits,
        used=usage.of(ref),
        problem=problem,
        in_vain=_in_vain(ref, pool.metadata, template.spec.node_class_ref, usage=usage, market=market),
    )


def _in_vain(
    ref: PoolRef, meta: ObjectMeta, uses: NodeClassReference | None, *, usage: Usage, market: Market
) -> Mapping[str, BackedOff]:
    """The sorts of pods for which the pool's machines came in vain."""
    if names.IN_VAIN_ANNOTATION not in meta.annotations:
        return {}
    return backed_off(meta, market.basis(meta, uses), usage.staying(ref), market.now, whole=market.given_up is not None)


def _named(kind: InstanceType, requirements: Iterable[Requirement]) -> bool:
    """Whether one of them lists the type's own name."""
    return any(
        kind.name.lower() == value.lower()
        for each in requirements
        if each.key == names.INSTANCE_TYPE_LABEL and each.operator == "In"
        for value in each.values
    )


def growth_pool(pool: GrowthPool, usage: Usage, market: Market) -> tuple[PoolView, list[str]]:
    """A pool of our API, and a warning for each of its server types that the cloud does not sell."""
    ref = PoolRef.growth(pool.metadata.name)
    problem = _problem(
        ref, pool.metadata, pool.status.conditions, usage=usage, market=market, uses=pool.spec.node_class_ref
    )
    known = by_name(market.types_for(pool.spec.node_class_ref))
    unmet = market.unmet.get(ref.name, frozenset()) | {
        each.name.lower()
        for each in pool.status.server_types
        if each.unmet_until is not None and each.unmet_until > market.now
    }
    refused = [each for each in pool.status.unmet_offerings if each.until > market.now]
    sold: list[InstanceType] = []
    warnings: list[str] = []
    most: dict[str, int] = {}
    priorities: dict[str, int] = {}
    for asked in pool.spec.server_types:
        kind = known.get(asked.name.lower())
        if kind is None:
            warnings.append(f"NodePool {ref}: server type {asked.name} {_not_sold(asked.name, market.catalogue)}")
            continue
        sold.append(_without_stock(kind) if kind.name.lower() in unmet else without_unmet(kind, refused))
        most[kind.name] = asked.max
        priorities[kind.name] = asked.priority
    if not sold and not problem:
        listed = ", ".join(each.name for each in pool.spec.server_types)
        problem = f"none of its server types is sold by {market.catalogue.cloud}: {listed}"
    nodes = pool.spec.limits.nodes
    view = PoolView(
        ref=ref,
        instance_types=tuple(sold),
        labels=pool.spec.template.labels,
        taints=pool.spec.template.taints,
        startup_taints=pool.spec.template.startup_taints,
        limits={} if nodes is None else {NODES: nodes},
        used=usage.of(ref),
        type_max=most,
        type_used=usage.types_of(ref),
        priorities=priorities,
        problem=problem,
        in_vain=_in_vain(ref, pool.metadata, pool.spec.node_class_ref, usage=usage, market=market),
    )
    return view, warnings


def _not_sold(name: str, catalogue: Catalogue) -> str:
    successor = catalogue.successors.get(name.lower())
    if successor is None:
        return f"is not sold by {catalogue.cloud}"
    return f"is no longer sold by {catalogue.cloud}: name {successor} instead"


def _without_stock(kind: InstanceType) -> InstanceType:
    """The type as it is while the cloud has none of it."""
    offerings = tuple(dataclasses.replace(offering, available=False) for offering in kind.offerings)
    return dataclasses.replace(kind, offerings=offerings)


def _problem(
    ref: PoolRef,
    meta: ObjectMeta,
    conditions: Iterable[Condition],
    *,
    usage: Usage,
    market: Market,
    uses: NodeClassReference | None,
) -> str:
    """Why nothing can be bought here now; empty when it can. Counts what the pool has reserved."""
    if meta.deletion_timestamp is not None:
        return "it is being deleted"
    if meta.annotations.get(names.PAUSED_ANNOTATION, "false") != "false":
        return f"it is paused by the annotation {names.PAUSED_ANNOTATION}"
    told = _not_ready(conditions)
    if told is not None:
        return f"it is not ready{told}"
    if uses is not None:
        missing = _class_problem(uses, market.classes)
        if missing:
            return missing
    if ref in usage.faults:
        return usage.faults[ref]
    try:
        reserved = reservations.parse(meta.annotations.get(names.RESERVED_ANNOTATION, ""))
        usage.reserve(ref, market.standing(reserved))
    except (ReservationError, QuantityError) as error:
        return f"what it has reserved is not known: annotation {names.RESERVED_ANNOTATION} {error}"
    return ""


def _class_problem(uses: NodeClassReference, classes: NodeClasses) -> str:
    """Classes are judged only where some of their kind are known: a file may well leave them out."""
    kinds = {(each.group, each.kind) for each in classes}
    if (uses.group, uses.kind) not in kinds:
        return ""
    if uses not in classes:
        return f"its node class {uses.kind} {uses.name} does not exist"
    told = _not_ready(classes[uses].conditions)
    return "" if told is None else f"its node class {uses.kind} {uses.name} is not ready{told}"


def _not_ready(conditions: Iterable[Condition]) -> str | None:
    """Why the Ready condition is False, as the end of a sentence; None where it is not."""
    for condition in conditions:
        if condition.type == names.READY and condition.status == "False":
            told = condition.message or condition.reason
            return f": {told}" if told else ""
    return None
