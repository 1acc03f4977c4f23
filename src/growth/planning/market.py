"""Pods and offerings as arrays: what each class asks for, what each option holds and costs, which may go on which.

Of all options only those are kept that no other beats: one that is not dearer, holds at least as much of everything and
is open to every class that could use it. What is dropped so could be replaced in any plan without making it dearer.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from growth.planning.classes import PodClass
from growth.planning.offerings import Shelf
from growth.planning.topology import Rule

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

# More pods of a class than any machine holds.
UNBOUNDED = 1 << 30
# Above so many classes those that are nearly alike share a row.
MOST_ROWS = 64
# Sizes that share a row lie within this many doublings of each other: first so many, then twice that, and so on.
FINEST_STEP, COARSEST_STEP = 0.125, 4.0


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Market:
    """`needs` is (class, resource), `rooms` (column, resource), `allowed` (class, column); a column is one option.

    `prices` include the cost of a node. `most` is how many pods of a class one machine may hold by the rules of hosts.
    """

    classes: tuple[PodClass, ...]
    columns: tuple[tuple[Shelf, int], ...]
    needs: Ints
    most: Ints
    prices: Ints
    rooms: Ints
    allowed: Bools

    def whole(self) -> Ints:
        """How many whole pods of each class each column holds; 0 where it may not."""
        asked = np.maximum(self.needs, 1)
        held = np.full(self.allowed.shape, UNBOUNDED, dtype=np.int64)
        for resource in range(self.needs.shape[1]):
            column = self.rooms[None, :, resource] // asked[:, None, resource]
            held = np.where(self.needs[:, None, resource] > 0, np.minimum(held, column), held)
        held = np.minimum(held, self.most[:, None])
        return np.where(self.allowed, np.maximum(held, 0), 0)


def market(
    classes: Sequence[PodClass], masks: Sequence[Mapping[Shelf, int]], *, resources: int, node_cost: int
) -> Market:
    """The market of the classes, each with the options that it may use, by shelf."""
    shelves = list(dict.fromkeys(shelf for each in masks for shelf in each))
    spans = {shelf: len(shelf.options) for shelf in shelves}
    allowed = np.concatenate(
        [
            np.stack([_bits(each.get(shelf, 0), span) for each in masks])
            if masks
            else np.zeros((0, span), dtype=np.bool_)
            for shelf, span in spans.items()
        ]
        or [np.zeros((len(masks), 0), dtype=np.bool_)],
        axis=1,
    )
    columns = [(shelf, index) for shelf, span in spans.items() for index in range(span)]
    used = np.flatnonzero(allowed.any(axis=0))
    prices = np.array([columns[at][0].options[columns[at][1]].price + node_cost for at in used], dtype=np.int64)
    rooms = np.ascontiguousarray(
        np.concatenate([_rooms(shelf, resources) for shelf in shelves] or [np.zeros((0, resources), dtype=np.int64)])[
            used
        ]
    )
    kept = _unbeaten(prices, rooms, allowed[:, used])
    needs = np.zeros((len(classes), resources), dtype=np.int64)
    for at, pods in enumerate(classes):
        for resource, amount in pods.needs:
            needs[at, resource] = amount
    return Market(
        classes=tuple(classes),
        columns=tuple(columns[at] for at in used[kept]),
        needs=needs,
        most=np.array([most_on_one(pods) for pods in classes], dtype=np.int64),
        prices=prices[kept],
        rooms=rooms[kept],
        allowed=allowed[:, used[kept]],
    )


def grouped(goods: Market, *, least: bool) -> tuple[Market, list[list[int]]]:
    """The classes as rows, nearly equal ones together where there are many, and the classes of each row.

    A row asks for the least that any of its classes asks for, or else for the average.
    """
    number = len(goods.classes)
    if number <= MOST_ROWS:
        return goods, [[at] for at in range(number)]
    step = FINEST_STEP
    while True:
        members: dict[tuple[object, ...], list[int]] = {}
        sizes = np.floor(np.log2(np.maximum(goods.needs, 1)) / step).astype(np.int64)
        for at in range(number):
            members.setdefault((goods.allowed[at].tobytes(), *sizes[at].tolist()), []).append(at)
        if len(members) <= MOST_ROWS or step >= COARSEST_STEP:
            break
        step *= 2
    found = list(members.values())
    many = [goods.needs[each] for each in found]
    needs = [each.min(axis=0) if least else np.ceil(each.mean(axis=0)).astype(np.int64) for each in many]
    first = [each[0] for each in found]
    rows = dataclasses.replace(
        goods,
        classes=tuple(goods.classes[at] for at in first),
        needs=np.array(needs, dtype=np.int64),
        most=np.array([min(UNBOUNDED, int(goods.most[each].sum())) for each in found], dtype=np.int64),
        allowed=goods.allowed[first],
    )
    return rows, found


def most_on_one(pods: PodClass) -> int:
    """How many pods of the class one machine may hold whatever its size: one where they keep each other away."""
    apart = any(
        group.by_host and group.rule is Rule.ANTI_AFFINITY and pods.selects_itself(group)
        for group in pods.variants[-1].rules
    )
    return 1 if apart or pods.ports else UNBOUNDED


def _rooms(shelf: Shelf, resources: int) -> Ints:
    """How much room each option of the shelf has, DaemonSets taken off."""
    rooms = np.zeros((len(shelf.options), resources), dtype=np.int64)
    for resource in range(resources):
        for amount in dict.fromkeys(shelf.amounts(resource)):
            rooms[_bits(shelf.with_room(resource, amount), len(shelf.options)), resource] = amount
    return rooms


def _bits(mask: int, span: int) -> Bools:
    raw = np.frombuffer(mask.to_bytes((span + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(raw, count=span, bitorder="little").astype(np.bool_)


def _unbeaten(prices: Ints, rooms: Ints, allowed: Bools) -> Ints:
    """The columns that no other beats; of equal ones the first, so that ties go by price, name and zone."""
    if not len(prices):
        return np.zeros(0, dtype=np.int64)
    order = np.lexsort((np.arange(len(prices)), -rooms.sum(axis=1), prices))
    first: dict[bytes, int] = {}
    alike = np.concatenate([rooms.view(np.uint8).reshape(len(prices), -1), np.packbits(allowed, axis=0).T], axis=1)
    for at in order.tolist():
        first.setdefault(alike[at].tobytes(), at)  # the same thing, elsewhere and not cheaper
    kept: list[int] = []
    for at in first.values():
        if kept:
            better = (rooms[kept] >= rooms[at]).all(axis=1)
            better &= ~(allowed[:, at, None] & ~allowed[:, kept]).any(axis=0)
            if better.any():
                continue
        kept.append(at)
    return np.array(sorted(kept), dtype=np.int64)
