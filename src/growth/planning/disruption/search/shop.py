"""What the pods of nodes would cost on machines that are bought for them, and which machines those could be."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from growth.planning.bound import bound
from growth.planning.classes import PodClass
from growth.planning.disruption.search.ground import Ground, More
from growth.planning.disruption.search.guide import Guide, guide
from growth.planning.disruption.search.nodes import Placed
from growth.planning.drawing import draw
from growth.planning.drawn import Drawn
from growth.planning.market import Floats, Ints, Market, grouped, market
from growth.planning.placing import Placing

# Machines that cost less than one part in so many of what may be spent are too many to be drawn.
SMALLEST: Final = 50


class Shop:
    """The market for the pods of a ground; made when it is first asked."""

    def __init__(self, ground: Ground, node_cost: int) -> None:
        self._ground = ground
        self._node_cost = node_cost
        self._needs: dict[PodClass, Floats] = {}
        # By how many pods of each row, for how much, and how small machines may be.
        self._drawings: dict[tuple[bytes, int, float], list[Drawn]] = {}

    def loads(self, nodes: Sequence[Iterable[Placed]]) -> Floats:
        """What the pods of each node ask for, resource by resource."""
        found = np.zeros((len(nodes), len(self._ground.context.resources)))
        for row, placed in enumerate(nodes):
            for pods, keys in placed:
                found[row] += self._need(pods) * len(keys)
        return found

    def cost_of(self, nodes: Sequence[Iterable[Placed]]) -> Floats:
        """What the pods of each node would cost on machines that are full of such pods."""
        return self.guide.of(self.loads(nodes))

    @functools.cached_property
    def goods(self) -> Market:
        ground = self._ground
        ledgers = ground.planning.ledgers()
        asking = ground.planning.packer(ground.context, Placing, ledgers, shelves=ground.shelves, in_use=set())
        held = {pods for own in ground.pods.values() for pods, _ in own if pods.refusal is None}
        masks = {pods: asking.reach(pods) for pods in ground.context.classes if pods in held}
        classes = [pods for pods, mask in masks.items() if mask]
        return market(
            classes,
            [masks[pods] for pods in classes],
            resources=len(ground.context.resources),
            node_cost=self._node_cost,
        )

    @functools.cached_property
    def guide(self) -> Guide:
        """What resources are worth if everything were bought anew."""
        resources = len(self._ground.context.resources)
        load = self.loads([[each for own in self._ground.pods.values() for each in own]])[0]
        none = np.zeros((0, resources))
        return guide(
            none,
            np.zeros(0),
            load,
            sold_rooms=self.goods.rooms.astype(np.float64),
            sold_prices=self.goods.prices.astype(np.float64),
        )

    def drawn(
        self, keys: Iterable[str], *, most: int, scale: float | None = None
    ) -> tuple[list[Drawn], Mapping[PodClass, int]]:
        """Machines for the pods as the cost packer draws them, and of which row of the drawings each class is.

        None that costs more than `most`: all of them together must not; nor any that costs next to nothing of the `scale`.
        """
        rows, goods, worth = self._rows
        counts = np.zeros(len(goods.classes), dtype=np.int64)
        for key in keys:
            row = rows.get(self._ground.class_of[key])
            if row is None:
                return [], {}
            counts[row] += 1
        smallest = most if scale is None else scale
        alike = (counts.tobytes(), most, smallest)
        if alike not in self._drawings:
            self._drawings[alike] = self._draw(goods, counts, worth, most=most, smallest=smallest)
        found = self._drawings[alike]
        return (found, rows) if found else ([], {})

    def _draw(self, goods: Market, counts: Ints, worth: Floats, *, most: int, smallest: float) -> list[Drawn]:
        fine = (goods.prices <= most) & (goods.prices * SMALLEST >= smallest)
        drawings = draw(goods, counts, worth, columns=fine)
        if sum(int(each.pods.sum()) for each in drawings) < counts.sum():
            return []
        return [
            Drawn(
                *goods.columns[each.column],
                pods={row: int(each.pods[row]) for row in np.flatnonzero(each.pods).tolist()},
            )
            for each in drawings
        ]

    def more(self, keys: Sequence[str], *, most: int) -> More | None:
        """Machines for pods that would be left over, no smaller than for all of them; None where all together cost more."""
        least = float(self.cost_of([[(self._ground.class_of[key], (key,)) for key in keys]])[0])
        drawings, rows = self.drawn(keys, most=most, scale=least)
        if not drawings:
            return None
        return More(tuple(keys), [dataclasses.replace(each, firm=True) for each in drawings], rows)

    @functools.cached_property
    def _rows(self) -> tuple[dict[PodClass, int], Market, Floats]:
        goods, members = grouped(self.goods, least=False)
        classes = self.goods.classes
        rows = {classes[at]: row for row, each in enumerate(members) for at in each}
        counts = np.zeros(len(goods.classes), dtype=np.int64)
        for own in self._ground.pods.values():
            for pods, keys in own:
                if pods in rows:
                    counts[rows[pods]] += len(keys)
        none: Ints = np.zeros(goods.needs.shape[1], dtype=np.int64)
        return rows, goods, bound(goods, counts, heap=none, on_heap=[False] * len(counts)).worth

    def _need(self, pods: PodClass) -> Floats:
        known = self._needs.get(pods)
        if known is None:
            known = self._needs[pods] = np.zeros(len(self._ground.context.resources))
            for resource, amount in pods.needs:
                known[resource] += amount
        return known
