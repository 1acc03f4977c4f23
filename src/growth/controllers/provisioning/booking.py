"""Whether orders are within what may still be bought: a pool's limits, and the caps of the whole cluster. Pure.

Counted is what exists, what is reserved and what is asked for, each at the most that it may become.
"""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.instance_types import InstanceType
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.nodes import Node
from growth.api.pools import SOFT, PoolRef, node_limit_mode
from growth.api.reservations import Reservation
from growth.cluster.machines import asked_values, machines
from growth.cluster.pools import Usage
from growth.cluster.pricing import by_name, price_of, type_of
from growth.cluster.replacing import being_replaced, excused
from growth.cluster.snapshot import NODES, PoolView
from growth.controllers.provisioning.claims import Order, capped
from growth.units.errors import MoneyError, QuantityError
from growth.units.money import Money
from growth.units.resources import Amounts, add, amounts, largest, print_amount, quantities


@dataclasses.dataclass(frozen=True, slots=True)
class Booking:
    """What may be created, what may not and why, and the names that are reserved if all of that is done."""

    orders: tuple[Order, ...]
    refused: tuple[tuple[Order, str], ...]
    reserved: Mapping[str, Reservation]


class UnknownUsage(Exception):
    """How much is used is not known, which is not nothing: nothing may be bought. The message says where."""


def book_pool(
    pool: NodePool,
    orders: Sequence[Order],
    *,
    reserved: Mapping[str, Reservation],
    claims: Iterable[NodeClaim],
    nodes: Iterable[Node],
    types: Iterable[InstanceType],
    now: dt.datetime,
) -> Booking:
    """Books the orders within the pool's limits, in their order. `pool`, `claims` and `reserved` must be fresh; whatever
    is reserved counts.

    What replaces other machines of the pool may pass a soft limit of nodes: what goes does not count, so that the limit
    holds when it is gone. A pool of a fixed size gets no more than its replicas, what replaces others aside.
    """
    ref = PoolRef.karpenter(pool.metadata.name)
    known = by_name(types)
    claims = tuple(claims)
    try:
        limits = amounts(pool.spec.limits)
        usage = Usage(machines(nodes, claims, known), known)
        standing = {name: each for name, each in reserved.items() if name not in usage.names}
        usage.reserve(ref, standing)
    except QuantityError as error:
        raise UnknownUsage(f"NodePool {ref}: what it uses is not known: {error}") from error
    if ref in usage.faults:
        raise UnknownUsage(f"NodePool {ref}: {usage.faults[ref]}")
    used: Amounts = usage.of(ref)
    taken: list[Order] = []
    refused: list[tuple[Order, str]] = []
    booked = dict(standing)
    missing = _missing(pool, claims, standing)
    replaced = being_replaced(claims).union(*(each.replaces for each in standing.values()))
    staying = _staying(pool, claims) - replaced
    passing = _Passing(pool, claims, standing, used=used.get(NODES, 0))
    for order in orders:
        capacity = _capacity(order, known)
        after = add(used, {**capacity, NODES: 1})
        over = [name for name, limit in limits.items() if after.get(name, 0) > limit]
        if NODES in over and passing.allows(order, limits[NODES]):
            over.remove(NODES)
        if missing is not None and order.replaces and staying.isdisjoint(order.replaces):
            refused.append((order, f"NodePool {ref}: {', '.join(order.replaces)} is being replaced already, or gone"))
            continue
        if missing is not None and not order.replaces:
            if missing <= 0:
                refused.append((order, f"NodePool {ref} has the {pool.spec.replicas} nodes that it is to have"))
                continue
            missing -= not over
        if over:
            name = over[0]
            told = f"limit {name} {print_amount(name, limits[name])}, used {print_amount(name, used.get(name, 0))}"
            refused.append((order, f"NodePool {ref} has no room left: {told}"))
            continue
        used = after
        passing.take(order)
        taken.append(order)
        booked[order.name] = Reservation(
            at=now,
            instance_type=order.planned.instance_type,
            capacity={**quantities({name: capacity[name] for name in limits if name in capacity})},
            replaces=order.replaces,
        )
    return Booking(tuple(taken), tuple(refused), booked)


class _Passing:
    """The books of a Soft limit of nodes: what there is without the machines of the pool that others of it replace."""

    def __init__(
        self, pool: NodePool, claims: Sequence[NodeClaim], standing: Mapping[str, Reservation], *, used: int
    ) -> None:
        own = [each for each in claims if each.metadata.labels.get(names.NODE_POOL_LABEL) == pool.metadata.name]
        self._soft = node_limit_mode(pool) == SOFT
        self._own = {each.metadata.name for each in own}
        self._excused = excused(own) | {
            name for each in standing.values() for name in each.replaces if name in self._own
        }
        self._count = self._before = used - len(self._excused)

    def allows(self, order: Order, limit: int) -> bool:
        """Whether a machine that passes the limit now is none too many once those are gone that it replaces."""
        return self._soft and bool(order.replaces) and self._after(order) <= max(limit, self._before)

    def take(self, order: Order) -> None:
        self._count = self._after(order)
        self._excused |= self._own.intersection(order.replaces)

    def _after(self, order: Order) -> int:
        return self._count + 1 - len(self._own.intersection(order.replaces) - self._excused)


def _missing(pool: NodePool, claims: Sequence[NodeClaim], standing: Mapping[str, Reservation]) -> int | None:
    """How many machines a pool of a fixed size lacks, those about to be asked for counted; None for other pools.

    A machine that leaves or is being replaced is none that the pool has.
    """
    if pool.spec.replicas is None:
        return None
    staying = _staying(pool, claims) - being_replaced(claims)
    return pool.spec.replicas - len(staying) - sum(not each.replaces for each in standing.values())


def _staying(pool: NodePool, claims: Sequence[NodeClaim]) -> set[str]:
    """Names of the pool's claims that nobody has deleted."""
    own = (each for each in claims if each.metadata.labels.get(names.NODE_POOL_LABEL) == pool.metadata.name)
    return {each.metadata.name for each in own if each.metadata.deletion_timestamp is None}


def _capacity(order: Order, known: Mapping[str, InstanceType]) -> Amounts:
    """The most that the machine may have: whichever of its types is bought, it is counted.

    A type that has left the catalogue since the plan was made is as large as it was planned with.
    """
    listed = {name.lower() for name in order.types}
    planned = [kind for kind in order.view.instance_types if kind.name.lower() in listed]
    return largest(*(kind.capacity for kind in (*planned, *(known[name] for name in sorted(listed & known.keys())))))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Hard limits of the whole cluster; `hourly` in billionths of the catalogue's currency."""

    nodes: int | None = None
    hourly: int | None = None

    def __bool__(self) -> bool:
        return self.nodes is not None or self.hourly is not None


MAX_NODES: Final = "--max-nodes"
MAX_HOURLY: Final = "--max-hourly"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A machine that is to be bought: at least and at most what it costs an hour, in billionths. `why` is for what reason
    it may cost at least so much, where that is more than is expected.
    """

    name: str
    instance_type: str
    least: int
    most: int
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Spent:
    """What each may cost that may be bought, why the others may not, by name; and what is reserved if that is done."""

    prices: Mapping[str, int]
    refused: Mapping[str, str]
    reserved: Mapping[str, Reservation]


def spending(order: Order) -> Spending:
    """What a machine that is ordered costs."""
    planned, why = order.planned, ""
    if planned.lowest_max_price > planned.price:
        why = "its prices are set by a NodeOverlay" if planned.repriced else f"minValues of NodePool {planned.pool}"
    return Spending(
        name=order.name,
        instance_type=planned.instance_type,
        least=planned.lowest_max_price,
        most=order.max_price,
        why=why,
    )


def afforded(orders: Sequence[Order], spent: Spent) -> Booking:
    """The orders that the caps allow, each at what it may cost."""
    return Booking(
        tuple(capped(order, spent.prices[order.name]) for order in orders if order.name in spent.prices),
        tuple((order, spent.refused[order.name]) for order in orders if order.name in spent.refused),
        spent.reserved,
    )


def book_caps(
    caps: Caps,
    wanted: Sequence[Spending],
    *,
    reserved: Mapping[str, Reservation],
    claims: Sequence[NodeClaim],
    pools: Mapping[PoolRef, PoolView],
    types: Sequence[InstanceType],
    currency: str,
    now: dt.datetime,
) -> Spent:
    """Books machines within the caps, in their order. `claims` are all of the cluster's, and fresh.

    A machine is booked at the most that it may cost. Where that is more than is left but the least that it must be
    allowed to cost is not, the claim may cost what is left and no more. That least is its planned price; what `minValues`
    needs, under Strict; all of it where the cloud does not know the prices and cannot be told.
    """
    prices = Prices(pools, types, currency)
    existing = {each.metadata.name for each in claims}
    standing = {name: each for name, each in reserved.items() if name not in existing}
    nodes = len(existing) + len(standing)
    hourly = sum(prices.of(each) for each in claims)
    hourly += sum(prices.dearest if each.price is None else each.price for each in standing.values())
    taken: dict[str, int] = {}
    refused: dict[str, str] = {}
    booked = dict(standing)
    for each in wanted:
        if caps.nodes is not None and nodes + 1 > caps.nodes:
            told = f"{nodes} machines exist or are on their way"
            refused[each.name] = f"the cluster's cap {MAX_NODES} {caps.nodes} is reached: {told}"
            continue
        price = each.most
        if caps.hourly is not None:
            left = caps.hourly - hourly
            if each.least > left:
                cap, spent, more = (Money(amount, currency) for amount in (caps.hourly, hourly, each.least))
                told = f"{spent}/h is spent or promised, and another {more}/h would be"
                told += f" ({each.why})" if each.why else ""
                refused[each.name] = f"the cluster's cap {MAX_HOURLY} {cap} is reached: {told}"
                continue
            price = min(price, left)
        nodes += 1
        hourly += price
        taken[each.name] = price
        booked[each.name] = Reservation(at=now, instance_type=each.instance_type, price=price)
    return Spent(taken, refused, booked)


class Prices:
    """The most that a claim's machine costs an hour. What is not known counts as the dearest that is sold."""

    def __init__(self, pools: Mapping[PoolRef, PoolView], types: Sequence[InstanceType], currency: str) -> None:
        self._types = {ref: by_name(view.instance_types) for ref, view in pools.items()}
        self._catalogue = by_name(types)
        self._currency = currency
        sold = [kind for table in (self._catalogue, *self._types.values()) for kind in table.values()]
        self.dearest = max(
            (offering.price for kind in sold for offering in kind.offerings if offering.price is not None), default=0
        )

    def of(self, claim: NodeClaim) -> int:
        labels = claim.metadata.labels
        ref = PoolRef.karpenter(labels.get(names.NODE_POOL_LABEL, ""))
        types = self._types.get(ref, self._catalogue)
        if labels.get(names.INSTANCE_TYPE_LABEL):
            kind = type_of(labels, types) or type_of(labels, self._catalogue)
            price = price_of(labels, kind)
            return self._most(kind) if price is None else price
        listed = [types.get(name.lower()) for name in asked_values(claim, names.INSTANCE_TYPE_LABEL) or ()]
        return self._bounded(claim, max((self._most(kind) for kind in listed), default=self.dearest))

    def _most(self, kind: InstanceType | None) -> int:
        if kind is None:
            return self.dearest
        return max((each.price for each in kind.offerings if each.price is not None), default=self.dearest)

    def _bounded(self, claim: NodeClaim, price: int) -> int:
        """At most what the claim itself promises not to exceed."""
        text = claim.metadata.annotations.get(names.MAX_PRICE_ANNOTATION)
        if text is None:
            return price
        try:
            return min(price, Money.parse(text, self._currency).nano)
        except MoneyError:
            return price
