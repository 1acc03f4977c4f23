"""In which order nodes go, and in which order those that stay are filled."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from growth.planning.disruption.search.ground import Ground
from growth.planning.disruption.search.guide import guide
from growth.planning.disruption.search.shop import Shop
from growth.planning.market import Floats, Ints

# A node that is full counts as so much better worth its price than an empty one: moving fewer pods is worth something.
LOADED: Final = 0.15
# Scores are rounded before they are compared, so that ties are ties on every machine.
DIGITS: Final = 9


class Sight:
    """The nodes of one part of a ground, by how dear they are for the room that they give."""

    def __init__(self, ground: Ground, part: Sequence[int], shop: Shop, node_cost: int) -> None:
        self._ground = ground
        self._part = list(part)
        loads = shop.loads([ground.pods[at] for at in part])
        self.rooms: Floats = np.maximum(ground.room[self._part] + loads, 0.0)
        prices = np.array([(ground.owned[at].price or 0) + node_cost for at in part], dtype=np.float64)
        sold = shop.goods
        sight = guide(
            self.rooms,
            prices,
            loads.sum(axis=0),
            sold_rooms=sold.rooms.astype(np.float64),
            sold_prices=sold.prices.astype(np.float64),
        )
        self.worth = sight.of(self.rooms)
        most = np.maximum(self.worth, 1.0)
        used = np.minimum(sight.of(loads) / most, 1.0)
        score = np.round(prices / most * (1 - LOADED * used), DIGITS)
        self._dearest = [self._part[int(turn)] for turn in np.lexsort((np.array(self._part), -score))]

    def leavers(self, *, few: bool) -> list[int]:
        """The dearest first. Where only a `few` may go now, those first that save much and move little."""
        if not few:
            return self._dearest
        ground = self._ground

        def saves(at: int) -> tuple[float, str]:
            node = ground.owned[at]
            return -round((node.price or 0) / (1 + len(ground.evicted[at])), 3), node.name

        return sorted(self._part, key=saves)

    def order(self) -> Ints:
        """All nodes of the ground as they are filled: first those that stay in any case, then those that leave last."""
        mine = set(self._part)
        others = [at for at in range(len(self._ground.nodes.nodes)) if at not in mine]
        return np.array([*others, *reversed(self._dearest)], dtype=np.int64)
