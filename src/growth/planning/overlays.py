"""NodeOverlays: corrections of price and capacity, laid over what pools may buy. Pure.

Karpenter's rules. Overlays are laid in the order of weight, greatest first, and of equal weights in the reverse order of
names; the first that touches an offering's price or one of a type's resources decides it. One that touches what another
of equal weight decided before is in conflict and dropped whole, in every pool. An overlay's capacity applies to a type as
a whole where one of its offerings matches.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from growth.api import names
from growth.api.instance_types import InstanceType, Offering
from growth.api.overlays import NodeOverlay, NodeOverlaySpec
from growth.api.pools import PoolRef
from growth.api.zones import in_catalogue_names, zone_of
from growth.cluster.pricing import by_name, price_of, type_of
from growth.cluster.snapshot import NodeView, Snapshot
from growth.planning.offerings import option_labels
from growth.planning.recent import Recent
from growth.planning.requirements import Requirement, RequirementError, from_expressions
from growth.units.errors import UnitError
from growth.units.money import Money
from growth.units.resources import amounts

# Capacity that only the cloud may state.
_CLOUDS_OWN = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})


@dataclasses.dataclass(frozen=True, slots=True)
class OverlayProblem:
    """An overlay that was not laid; `reason` is that of its condition, `message` for people."""

    overlay: str
    reason: str
    message: str


def overlaid(snapshot: Snapshot, overlays: Iterable[NodeOverlay]) -> tuple[Snapshot, tuple[OverlayProblem, ...]]:
    """The snapshot with the overlays laid over its pools' types and its nodes' prices, and those that could not be."""
    ordered = sorted(overlays, key=lambda each: (each.spec.weight or 0, each.metadata.name), reverse=True)
    if not ordered:
        return snapshot, ()
    asked = _Asked(
        tuple((each.metadata.name, each.spec) for each in ordered),
        snapshot.currency,
        tuple((pool.ref, pool.labels, pool.instance_types) for pool in snapshot.pools),
    )
    # Prices and overlays change rarely, and every pass asks again.
    laid = _RECENT.find(asked) or _RECENT.keep(asked, _lay(asked))
    pools = tuple(
        pool
        if types is pool.instance_types
        else dataclasses.replace(pool, instance_types=types, repriced=_repriced(pool.instance_types, types))
        for pool, types in zip(snapshot.pools, laid.types, strict=True)
    )
    known = {pool.ref: by_name(pool.instance_types) for pool in pools}
    changed = dataclasses.replace(snapshot, pools=pools, nodes=tuple(_priced(node, known) for node in snapshot.nodes))
    return changed, laid.problems


def _repriced(before: Sequence[InstanceType], after: Sequence[InstanceType]) -> frozenset[str]:
    """The types that cost something else than the cloud says."""
    return frozenset(
        new.name
        for old, new in zip(before, after, strict=True)
        if [each.price for each in old.offerings] != [each.price for each in new.offerings]
    )


def _priced(node: NodeView, known: Mapping[PoolRef, Mapping[str, InstanceType]]) -> NodeView:
    """The node with its price as its pool has it now."""
    types = known.get(node.pool) if node.pool is not None else None
    kind = type_of(node.labels, types) if types is not None else None
    return node if kind is None else dataclasses.replace(node, price=price_of(node.labels, kind))


@dataclasses.dataclass(frozen=True, slots=True)
class _Asked:
    """All that decides how overlays are laid: they themselves, in their order, and of each pool its labels and types."""

    overlays: tuple[tuple[str, NodeOverlaySpec], ...]
    currency: str
    pools: tuple[tuple[PoolRef, Mapping[str, str], tuple[InstanceType, ...]], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class _Laid:
    """`types` are of each pool, in their order."""

    types: tuple[tuple[InstanceType, ...], ...]
    problems: tuple[OverlayProblem, ...]


_RECENT: Final[Recent[_Asked, _Laid]] = Recent(kept=4)


def _labels(kind: InstanceType, offering: Offering) -> Mapping[str, tuple[str, ...]]:
    """Of the offering, with its zone called as catalogues call it."""
    labels, zone = option_labels(kind, offering), zone_of(offering.zone)
    return labels if zone == offering.zone else {**labels, names.ZONE_LABEL: (zone,)}


def _lay(asked: _Asked) -> _Laid:
    sheets = [_Sheet(*pool) for pool in asked.pools]
    problems: list[OverlayProblem] = []
    for overlay, spec in asked.overlays:
        try:
            change = _Change(overlay, spec, asked.currency)
        except (UnitError, RequirementError) as error:
            problems.append(OverlayProblem(overlay, "RuntimeValidation", str(error)))
            continue
        other = next((found for sheet in sheets for found in sheet.conflicts(change)), None)
        if other is not None:
            told = (
                f"conflicts with NodeOverlay {other} of equal weight ({change.weight}): give one of them another weight"
            )
            problems.append(OverlayProblem(overlay, names.OVERLAY_CONFLICT, told))
            continue
        for sheet in sheets:
            sheet.lay(change)
    return _Laid(tuple(sheet.result() for sheet in sheets), tuple(problems))


class _Change:
    """An overlay, read. `UnitError` or `RequirementError` where no server would have let it pass."""

    def __init__(self, name: str, spec: NodeOverlaySpec, currency: str) -> None:
        self.name = name
        self.weight = spec.weight or 0
        self.requirements = from_expressions(in_catalogue_names(spec.requirements))
        self.capacity = {name: amount for name, amount in amounts(spec.capacity).items() if name not in _CLOUDS_OWN}
        self._price = Money.parse(spec.price, currency).nano if spec.price is not None else None
        self._added = self._factor = None
        change = spec.price_adjustment
        if change is not None and change.endswith("%"):
            self._factor = 1 + Decimal(Money.parse(change[:-1], currency).exact) / 100
        elif change is not None:
            self._added = Money.parse(change, currency).nano

    @property
    def prices(self) -> bool:
        """Whether it says anything about prices."""
        return self._price is not None or self._added is not None or self._factor is not None

    def priced(self, price: int) -> int:
        """What an offering costs with the overlay; never less than nothing."""
        if self._price is not None:
            return self._price
        if self._factor is not None:
            return max(0, int((price * self._factor).to_integral_value(ROUND_HALF_EVEN)))
        return max(0, price + (self._added or 0))

    def matches(self, labels: Mapping[str, tuple[str, ...]]) -> bool:
        return all(_can(requirement, labels.get(key)) for key, requirement in self.requirements.items())


def _can(requirement: Requirement, values: tuple[str, ...] | None) -> bool:
    if values is None:
        return requirement.tolerates_absence
    return any(requirement.allows(value) for value in values)


class _Sheet:
    """What has been laid over one pool so far: by type, and there by offering (its index) or resource.

    Beside each change stands the last overlay that touched the same thing, because a conflict is with that one.
    """

    def __init__(self, pool: PoolRef, labels: Mapping[str, str], types: tuple[InstanceType, ...]) -> None:
        own = names.NODE_POOL_LABEL if pool.group == names.KARPENTER else names.POOL_LABEL
        self._own = {own: (pool.name,), **{key: (value,) for key, value in labels.items()}}
        self._types = types
        self._prices: dict[tuple[str, int], tuple[_Change, _Change]] = {}
        self._capacity: dict[tuple[str, str], tuple[_Change, _Change]] = {}

    def _touched(self, kind: InstanceType, change: _Change) -> list[int]:
        """The offerings of the type that the overlay means."""
        return [
            index
            for index, offering in enumerate(kind.offerings)
            if change.matches({**self._own, **_labels(kind, offering)})
        ]

    def conflicts(self, change: _Change) -> Iterable[str]:
        """The names of overlays of equal weight that decided the same before."""
        for kind in self._types:
            touched = self._touched(kind, change)
            if not touched:
                continue
            held = [self._prices.get((kind.name, index)) for index in touched] if change.prices else []
            held += [self._capacity.get((kind.name, resource)) for resource in change.capacity]
            for pair in held:
                if pair is not None and pair[1].weight == change.weight:
                    yield pair[1].name

    def lay(self, change: _Change) -> None:
        for kind in self._types:
            touched = self._touched(kind, change)
            if not touched:
                continue
            for index in touched if change.prices else ():
                first, _ = self._prices.get((kind.name, index), (change, change))
                self._prices[kind.name, index] = (first, change)
            for resource in change.capacity:
                first, _ = self._capacity.get((kind.name, resource), (change, change))
                self._capacity[kind.name, resource] = (first, change)

    def result(self) -> tuple[InstanceType, ...]:
        """The pool's types as they are with all overlays."""
        if not self._prices and not self._capacity:
            return self._types
        return tuple(map(self._result, self._types))

    def _result(self, kind: InstanceType) -> InstanceType:
        offerings = []
        for index, offering in enumerate(kind.offerings):
            pair = self._prices.get((kind.name, index))
            if pair is not None and offering.price is not None:
                offerings.append(dataclasses.replace(offering, price=pair[0].priced(offering.price)))
            else:
                offerings.append(offering)
        added = {
            resource: pair[0].capacity[resource]
            for (name, resource), pair in self._capacity.items()
            if name == kind.name
        }
        return dataclasses.replace(kind, offerings=tuple(offerings), capacity={**kind.capacity, **added})
