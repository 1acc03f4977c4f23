"""NodeOverlays: corrections of price and capacity, laid over what pools may buy. Pure.

Karpenter's rules. Overlays are laid in the order of weight, greatest first, and of equal weights in the reverse order of
names; the first that touches an offering's price or one of a type's resources decides it. One that touches what another
of equal weight decided before is in conflict and dropped whole, in every pool. An overlay's capacity applies to a type as
a whole where one of its offerings matches.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_EVEN, Decimal

from growth.api import names
from growth.api.instance_types import InstanceType
from growth.api.overlays import NodeOverlay
from growth.api.pools import PoolRef
from growth.cluster.pricing import by_name, price_of, type_of
from growth.cluster.snapshot import NodeView, PoolView, Snapshot
from growth.planning.offerings import option_labels
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
    sheets = [_Sheet(pool) for pool in snapshot.pools]
    problems: list[OverlayProblem] = []
    for overlay in ordered:
        try:
            change = _Change(overlay, snapshot.currency)
        except (UnitError, RequirementError) as error:
            problems.append(OverlayProblem(overlay.metadata.name, "RuntimeValidation", str(error)))
            continue
        other = next((found for sheet in sheets for found in sheet.conflicts(change)), None)
        if other is not None:
            told = (
                f"conflicts with NodeOverlay {other} of equal weight ({change.weight}): give one of them another weight"
            )
            problems.append(OverlayProblem(overlay.metadata.name, names.OVERLAY_CONFLICT, told))
            continue
        for sheet in sheets:
            sheet.lay(change)
    pools = {sheet.pool.ref: sheet.result() for sheet in sheets}
    changed = dataclasses.replace(
        snapshot,
        pools=tuple(pools[pool.ref] for pool in snapshot.pools),
        nodes=tuple(_priced(node, pools) for node in snapshot.nodes),
    )
    return changed, tuple(problems)


def _priced(node: NodeView, pools: Mapping[PoolRef, PoolView]) -> NodeView:
    """The node with its price as its pool has it now."""
    pool = pools.get(node.pool) if node.pool is not None else None
    kind = type_of(node.labels, by_name(pool.instance_types)) if pool is not None else None
    return node if kind is None else dataclasses.replace(node, price=price_of(node.labels, kind))


class _Change:
    """An overlay, read. `UnitError` or `RequirementError` where no server would have let it pass."""

    def __init__(self, overlay: NodeOverlay, currency: str) -> None:
        spec = overlay.spec
        self.name = overlay.metadata.name
        self.weight = spec.weight or 0
        self.requirements = from_expressions(spec.requirements)
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

    def __init__(self, pool: PoolView) -> None:
        self.pool = pool
        own = names.NODE_POOL_LABEL if pool.ref.group == names.KARPENTER else names.POOL_LABEL
        self._own = {own: (pool.ref.name,), **{key: (value,) for key, value in pool.labels.items()}}
        self._prices: dict[tuple[str, int], tuple[_Change, _Change]] = {}
        self._capacity: dict[tuple[str, str], tuple[_Change, _Change]] = {}

    def _touched(self, kind: InstanceType, change: _Change) -> list[int]:
        """The offerings of the type that the overlay means."""
        return [
            index
            for index, offering in enumerate(kind.offerings)
            if change.matches({**self._own, **option_labels(kind, offering)})
        ]

    def conflicts(self, change: _Change) -> Iterable[str]:
        """The names of overlays of equal weight that decided the same before."""
        for kind in self.pool.instance_types:
            touched = self._touched(kind, change)
            if not touched:
                continue
            held = [self._prices.get((kind.name, index)) for index in touched] if change.prices else []
            held += [self._capacity.get((kind.name, resource)) for resource in change.capacity]
            for pair in held:
                if pair is not None and pair[1].weight == change.weight:
                    yield pair[1].name

    def lay(self, change: _Change) -> None:
        for kind in self.pool.instance_types:
            touched = self._touched(kind, change)
            if not touched:
                continue
            for index in touched if change.prices else ():
                first, _ = self._prices.get((kind.name, index), (change, change))
                self._prices[kind.name, index] = (first, change)
            for resource in change.capacity:
                first, _ = self._capacity.get((kind.name, resource), (change, change))
                self._capacity[kind.name, resource] = (first, change)

    def result(self) -> PoolView:
        """The pool with its types as they are with all overlays."""
        if not self._prices and not self._capacity:
            return self.pool
        return dataclasses.replace(
            self.pool, instance_types=tuple(self._result(kind) for kind in self.pool.instance_types)
        )

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
