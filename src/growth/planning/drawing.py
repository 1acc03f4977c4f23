"""Machines drawn before they are planned: which column to buy, and how many pods of each class are meant for it.

Every column is filled by itself, always with the class that points most in the direction of the room that is left, so
that cpu and memory run out together, weighed by what its pods are worth. The machine with the most worth for its price is
bought as often as there are pods for it; then what is left is drawn anew. A drawing is a proposal: whether its pods may
really share a machine is for the feasibility code to say.
"""

import dataclasses

import numpy as np

from growth.planning.market import Bools, Floats, Ints, Market

# How strongly worth counts beside direction. Each is tried for every column, and the best filling of all is bought.
LEANINGS = (0.1, 0.5, 1.0)
# A class goes in by a quarter of what would still fit, so that classes mix.
PORTION = 4
# Scores are rounded before they are compared, so that ties are ties on every machine.
DIGITS = 9


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """One machine: the column of the market, and pods by class."""

    column: int
    pods: Ints


def draw(goods: Market, counts: Ints, worth: Floats, *, columns: Bools) -> list[Drawing]:
    """Machines for the pods, of the given columns only. Pods that fit on none of them are left out."""
    usable = np.flatnonzero(columns)
    if not len(usable):
        return []
    filler = _Filler(goods, usable, worth)
    left = counts.copy()
    left[~goods.allowed[:, usable].any(axis=1)] = 0
    drawings: list[Drawing] = []
    while left.any():
        filler.refill(left)
        column, pods = filler.best()
        if not pods.any():
            break
        wanted = pods > 0
        copies = max(1, int((left[wanted] // pods[wanted]).min()))
        left = left - copies * pods
        drawings.extend([Drawing(column, pods)] * copies)
    return drawings


class _Filler:
    """The fillings of all columns, kept as long as there are pods for them."""

    def __init__(self, goods: Market, usable: Ints, worth: Floats) -> None:
        self._goods = goods
        self._usable = usable
        self._column = np.repeat(usable, len(LEANINGS))
        leaning = np.tile(np.array(LEANINGS), len(usable))
        rooms = goods.rooms[self._column].astype(np.float64)
        self._scaled = goods.needs[None, :, :] / np.maximum(rooms, 1.0)[:, None, :]
        norm = np.sqrt((self._scaled**2).sum(axis=2)) + 1e-12
        weight = np.maximum(worth, 1e-9) / max(1e-9, float(worth.max(initial=0.0)))
        self._weight = weight[None, :] ** leaning[:, None] / norm
        self._open = goods.allowed[:, self._column].T
        self._worth = worth
        self._pods = np.zeros((len(self._column), len(worth)), dtype=np.int64)
        self._price = np.zeros(len(self._column), dtype=np.int64)
        self._as = np.zeros(len(self._column), dtype=np.int64)
        self._stale = np.ones(len(self._column), dtype=np.bool_)

    def refill(self, left: Ints) -> None:
        """Fills again those columns for whose filling there are no longer enough pods."""
        self._stale |= (self._pods > left).any(axis=1)
        rows = np.flatnonzero(self._stale)
        if not len(rows):
            return
        pods = self._filled(rows, left)
        self._pods[rows] = pods
        self._as[rows], self._price[rows] = self._cheapest(pods)
        self._stale[rows] = False

    def best(self) -> tuple[int, Ints]:
        """The column and the pods of the filling with the most worth for its price; ties by price, then by order."""
        value = np.round((self._pods @ self._worth) / np.maximum(self._price, 1), DIGITS)
        row = int(np.lexsort((np.arange(len(value)), self._price, -value))[0])
        return int(self._as[row]), self._pods[row].copy()

    def _filled(self, rows: Ints, left: Ints) -> Ints:
        goods = self._goods
        needs = goods.needs
        column = self._column[rows]
        room = goods.rooms[column].copy()
        whole_room = np.maximum(goods.rooms[column], 1).astype(np.float64)
        limit = np.where(self._open[rows], np.minimum(left, goods.most)[None, :], 0)
        pods = np.zeros((len(rows), len(left)), dtype=np.int64)
        scaled, weight = self._scaled[rows], self._weight[rows]
        asked = np.maximum(needs, 1)
        live = np.arange(len(rows))
        while len(live):
            fits = limit[live] - pods[live]
            for resource in range(needs.shape[1]):
                some = np.flatnonzero(needs[:, resource])
                fits[:, some] = np.minimum(fits[:, some], room[live, resource, None] // asked[None, some, resource])
            able = fits > 0
            going = able.any(axis=1)
            live, fits, able = live[going], fits[going], able[going]
            if not len(live):
                break
            direction = room[live] / whole_room[live]
            score = np.einsum("ncr,nr->nc", scaled[live], direction) * weight[live]
            chosen = np.where(able, np.round(score, DIGITS), -1.0).argmax(axis=1)
            each = np.arange(len(live))
            number = np.maximum(1, fits[each, chosen] // PORTION)
            pods[live, chosen] += number
            room[live] -= number[:, None] * needs[chosen]
        return pods

    def _cheapest(self, pods: Ints) -> tuple[Ints, Ints]:
        """For each filling the cheapest usable column that holds it, and its price."""
        goods, usable = self._goods, self._usable
        used = pods @ goods.needs
        holds = (goods.rooms[None, usable, :] >= used[:, None, :]).all(axis=2)
        holds &= (pods > 0).astype(np.float64) @ (~goods.allowed[:, usable]).astype(np.float64) == 0
        prices = np.where(holds, goods.prices[usable][None, :], np.iinfo(np.int64).max)
        at = prices.argmin(axis=1)
        return usable[at], prices[np.arange(len(at)), at]


def rooms_within(goods: Market, counts: Ints, *, share: float) -> Bools:
    """The columns that hold at most the share of all that is asked for, and those without which a class has none."""
    total = np.maximum((goods.needs * counts[:, None]).sum(axis=0), 1)
    small = ((goods.rooms <= total * share) | (goods.needs.sum(axis=0) == 0)).any(axis=1)
    homeless = ~(goods.allowed & small[None, :]).any(axis=1)
    needed = np.zeros(len(goods.columns), dtype=np.bool_)
    for at in np.flatnonzero(homeless & (counts > 0)).tolist():
        options = np.flatnonzero(goods.allowed[at])
        if len(options):
            needed[options[goods.prices[options].argmin()]] = True
    chosen: Bools = small | needed
    return chosen
