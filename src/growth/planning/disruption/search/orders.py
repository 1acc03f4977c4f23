"""Orders in which pods that leave may come back. Nobody knows which it will be."""

import collections
import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from growth.api.requests import requests_of
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import Demand
from growth.units import QuantityError

# Pods come back in any order. So many pods are few: they are tried in every order below, more of them in the first two.
FEW: Final = 1500
# Of so many shapes each is tried in the worst moment; more of them are of different workloads, which mix anyway.
SHAPES: Final = 4
# So many orders, in which pods of one shape are alike, are all tried.
ALL: Final = 24


def orders(evicted: Sequence[Demand]) -> list[list[Demand]]:
    """Orders in which pods may come back: all that differ, where these are few. Else by their names, turned round, the
    largest first, the smallest first, by lot, one of each shape in turn from either end; and those of one shape just before
    the last of the others, when what is new is nearly full and takes the wrong ones.

    What a controller ends a pod's name with is such a lot, and the same each time. However they are listed the orders are the
    same: what was believed when a move was decided is asked again before it is made.
    """
    evicted = sorted(evicted, key=lambda demand: demand.key)
    found = [evicted, evicted[::-1]]
    if len(evicted) > FEW:
        return found
    sizes = {demand.shape: _size(demand.shape) for demand in evicted}
    largest = sorted(evicted, key=lambda demand: sizes[demand.shape], reverse=True)
    by_shape: dict[PodShape, list[Demand]] = {}
    for demand in largest:
        by_shape.setdefault(demand.shape, []).append(demand)
    if _arrangements(len(each) for each in by_shape.values()) <= ALL:
        return list(_all_orders(tuple(tuple(each) for each in by_shape.values())))
    found += [largest, largest[::-1], sorted(evicted, key=lambda demand: demand.key[::-1])]
    if len(by_shape) > 1:
        in_turn = [each for turn in itertools.zip_longest(*by_shape.values()) for each in turn if each is not None]
        found += [in_turn, in_turn[::-1]]
    if 1 < len(by_shape) <= SHAPES:
        found += [_just_before_the_last(shape, largest) for shape in by_shape]
    return found


def _arrangements(sizes: Iterable[int]) -> int:
    """In how many orders groups of so many can come whose members are alike; more than `ALL` are not counted."""
    total, found = 0, 1
    for size in sizes:
        total += size
        found *= math.comb(total, size)
        if found > ALL:
            break
    return found


def _all_orders(groups: tuple[tuple[Demand, ...], ...]) -> Iterator[list[Demand]]:
    if not any(groups):
        yield []
    for at, group in enumerate(groups):
        if group:
            for rest in _all_orders((*groups[:at], group[1:], *groups[at + 1 :])):
                yield [group[0], *rest]


def _just_before_the_last(shape: PodShape, evicted: Sequence[Demand]) -> list[Demand]:
    last = {demand.shape: demand.key for demand in evicted if demand.shape != shape}
    early = [each for each in evicted if each.shape != shape and each.key != last[each.shape]]
    own = [each for each in evicted if each.shape == shape]
    return [*early, *own, *(each for each in evicted if each.shape != shape and each.key == last[each.shape])]


def _size(shape: PodShape) -> tuple[int, int]:
    try:
        asked = requests_of(shape.spec)
    except QuantityError:
        return 0, 0
    return asked.get("cpu", 0), asked.get("memory", 0)


def lots(evicted: Sequence[Demand], number: int) -> Iterator[list[Demand]]:
    """So many more orders, drawn by lot from the pods' names; none where `orders` are all that there are."""
    shapes = collections.Counter(demand.shape for demand in evicted)
    if _arrangements(shapes.values()) <= ALL:
        return
    for lot in range(number):
        yield sorted(
            evicted, key=lambda demand: hashlib.blake2b(f"{lot} {demand.key}".encode(), digest_size=8).digest()
        )
