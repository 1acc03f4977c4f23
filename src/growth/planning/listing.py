"""What a claim lists, and the most that its machine may cost, so that what is listed can really be launched. Pure.

A cloud launches any offering of a listed type that the claim's requirements allow and that costs at most
`growth.dev/max-price`. So `minValues` are counted among these offerings and no others. A higher price only ever adds
offerings; hence the cheapest set that satisfies every key at once is everything up to one price, and that price is the
greatest of what each key asks for alone: the price of the n-th cheapest value. It is exact for any number of keys, in
O(values) a key. Where fewer types are to be listed than that price admits, the dearest go first that no key needs: then none
of those that are left could go.
"""

import bisect
import dataclasses
from collections.abc import Sequence
from typing import Final

from growth.api import names
from growth.cluster.snapshot import PoolView
from growth.planning.offerings import Shelf, State
from growth.planning.requirements import Requirements

# Types that a claim lists; more only where `minValues` needs them, because a claim is to stay small.
MAX_TYPES: Final = 60


@dataclasses.dataclass(frozen=True, slots=True)
class Listing:
    """The types, cheapest first, and the most that one may cost: `max_price`. `mask` are the options that this leaves.

    Below `lowest_max_price` they would have fewer values than `minValues` asks for. `repriced`: overlays changed prices of
    some of the types. The cloud knows its own prices only, so that it is told no bound and may launch any of their offerings.
    """

    types: tuple[str, ...]
    mask: int
    max_price: int
    lowest_max_price: int
    repriced: bool


def listing(shelf: Shelf, state: State, mask: int, *, percent: int) -> Listing:
    """Of options that `minValues` allow, those of at most so many percent of the cheapest one's price, and as many more as
    `minValues` needs.
    """
    lowest = lowest_price(shelf, state, mask)
    price = max(shelf.cheapest(mask).price * percent // 100, lowest)
    affordable = mask & up_to(shelf, price)
    return bounded(shelf, state, mask, shortened(shelf, state, affordable), price=price)


def bounded(shelf: Shelf, state: State, mask: int, types: Sequence[str], *, price: int) -> Listing:
    """A listing of these types, at this price or at what the dearest of them costs, if that is less."""
    pool = shelf.pool
    mask &= of_types(shelf, types)
    if pool.ref.group == names.GROWTH:  # a NodeRequest asks for one type, whatever it costs where it is had
        worst = dearest(types[:1], state.requirements, pool)
        return Listing(tuple(types), mask, worst, worst, repriced=False)
    worst = dearest(types, state.requirements, pool)
    if not pool.repriced.isdisjoint(types):
        return Listing(tuple(types), mask, worst, worst, repriced=True)
    mask &= up_to(shelf, price)
    return Listing(tuple(types), mask, min(price, worst), lowest_price(shelf, state, mask), repriced=False)


def dearest(types: Sequence[str], requirements: Requirements, pool: PoolView) -> int:
    """The most that a machine of one of the types costs in the zones and on the terms that are allowed, in stock or not."""
    return max(price for each in prices(types, requirements, pool).values() for price in each)


def prices(types: Sequence[str], requirements: Requirements, pool: PoolView) -> dict[str, list[int]]:
    """What a machine of each of the types may cost in the zones and on the terms that are allowed, in stock or not."""
    listed = set(types)
    asked = [
        (requirements[key], attribute)
        for key, attribute in ((names.ZONE_LABEL, "zone"), (names.CAPACITY_TYPE_LABEL, "capacity_type"))
        if key in requirements
    ]
    return {
        kind.name: [
            offering.price
            for offering in kind.offerings
            if offering.price is not None and all(need.allows(getattr(offering, where)) for need, where in asked)
        ]
        for kind in pool.instance_types
        if kind.name in listed
    }


def lowest_price(shelf: Shelf, state: State, mask: int) -> int:
    """The lowest price up to which the options satisfy `minValues` of every key; that of the cheapest where none must be."""
    if shelf.strict:
        return shelf.options[shelf.last_needed(state, mask)].price
    return shelf.cheapest(mask).price


def up_to(shelf: Shelf, price: int) -> int:
    """The options that cost no more."""
    return (1 << bisect.bisect_right(shelf.options, price, key=lambda option: option.price)) - 1


def of_types(shelf: Shelf, types: Sequence[str]) -> int:
    """The options of these types."""
    mask = 0
    for name in types:
        mask |= shelf.options_with(names.INSTANCE_TYPE_LABEL, name)
    return mask


def shortened(shelf: Shelf, state: State, mask: int) -> tuple[str, ...]:
    """The types of the options, cheapest first: at most `MAX_TYPES`, unless `minValues` needs more. The dearest go that it does
    not need, and never the cheapest.
    """
    types = list(dict.fromkeys(option.type.name for option in shelf.chosen(mask)))
    kept = types.copy()
    if len(kept) <= MAX_TYPES or shelf.too_rigid(state, mask & of_types(shelf, kept[:MAX_TYPES])) is None:
        return tuple(kept[:MAX_TYPES])
    left = mask
    for name in reversed(types[1:]):
        fewer = left & ~shelf.options_with(names.INSTANCE_TYPE_LABEL, name)
        if len(kept) > MAX_TYPES and shelf.too_rigid(state, fewer) is None:
            kept.remove(name)
            left = fewer
    return tuple(kept)
