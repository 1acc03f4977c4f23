"""Machines drawn before they are planned: which column to buy, and how many pods of each class are meant for it.

Every column is filled by itself, always with the class that points most in the direction of the room that is left, so
that cpu and memory run out together, weighed by what its pods are worth. The machine with the most worth for its price is
bought as often as there are pods for it; then what is left is drawn anew. A drawing is a proposal: whether its pods may
really share a machine is for the feasibility code to say.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from growth.planning.market import Bools, Floats, Ints, Market

# How strongly worth counts beside direction. Each is tried for every column, and the best filling of all is bought.
LEANINGS = (0.1, 0.5, 1.0)
# A class goes in by a quarter of what would still fit, so that classes mix.
PORTION = 4
# Types that cost so much more than the cheapest are not much dearer: a liberal and a strict measure.
NOT_MUCH = (1.04, 1.02)
# Enough machines that one more or less is no upheaval.
ENOUGH = 40.0
# Room that never runs out.
UNASKED = 1e18
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
    filler = Filler(goods, usable, worth)
    left = counts.copy()
    left[~goods.allowed[:, usable].any(axis=1)] = 0
    drawings: list[Drawing] = []
    while left.any():
        column, pods = filler.best(left)
        if not pods.any():
            break
        wanted = pods > 0
        copies = max(1, int((left[wanted] // pods[wanted]).min()))
        left = left - copies * pods
        drawings.extend([Drawing(column, pods)] * copies)
    return drawings


def whole(goods: Market, counts: Ints) -> Drawing | None:
    """The cheapest machine that holds all the pods by itself; None where there is none."""
    some = counts > 0
    fine = goods.allowed[some].all(axis=0) & (goods.rooms >= counts @ goods.needs).all(axis=1)
    fine &= (counts <= goods.most).all()
    columns = np.flatnonzero(fine)
    return Drawing(int(columns[goods.prices[columns].argmin()]), counts) if some.any() and len(columns) else None


class Filler:
    """Machines of the usable columns filled with pods; fillings are kept as long as there are pods for them.

    `steps` counts how often something was put on all of them.
    """

    def __init__(self, goods: Market, usable: Ints, worth: Floats) -> None:
        self._goods = goods
        self._usable = usable
        self._column = np.repeat(usable, len(LEANINGS))
        self._leaning = np.tile(np.array(LEANINGS), len(usable))
        self._size = np.maximum(goods.rooms[self._column], 1).astype(np.float64)
        self._needs = goods.needs.astype(np.float64)
        squares = (self._needs**2) @ (1 / self._size**2).T
        self._length = np.sqrt(squares.T) + 1e-12
        # What a class does not ask for does not bound it.
        self._per_need = np.where(goods.needs > 0, 1 / np.maximum(self._needs, 1.0), UNASKED)
        self._open = goods.allowed[:, self._column].T
        self._closed_to = (~goods.allowed[:, usable]).astype(np.float64)
        self.steps = 0
        self.value(worth)

    def value(self, worth: Floats) -> None:
        """Pods are worth this from now on: every filling is made anew."""
        self._worth = worth
        weight = np.maximum(worth, 1e-9) / max(1e-9, float(worth.max(initial=0.0)))
        self._weight = weight[None, :] ** self._leaning[:, None] / self._length
        self._pods = np.zeros((len(self._column), len(worth)), dtype=np.int64)
        self._as = np.zeros(len(self._column), dtype=np.int64)
        self._stale = np.ones(len(self._column), dtype=np.bool_)

    def best(self, left: Ints) -> tuple[int, Ints]:
        """The column and the pods of the filling with the most worth for its price; ties by price, then by order."""
        columns, fillings = self.fillings(left)
        prices = self._goods.prices[columns]
        value = np.round((fillings @ self._worth) / np.maximum(prices, 1), DIGITS)
        row = int(np.lexsort((np.arange(len(value)), prices, -value))[0])
        return int(columns[row]), fillings[row].copy()

    def fillings(self, left: Ints) -> tuple[Ints, Ints]:
        """A filling for each column and leaning from the pods that are left, with the cheapest column that holds it."""
        self._stale |= (self._pods > left).any(axis=1)
        rows = np.flatnonzero(self._stale)
        if len(rows):
            pods = self._filled(rows, left)
            self._pods[rows] = pods
            self._as[rows] = self._cheapest(pods)
            self._stale[rows] = False
        return self._as, self._pods

    def _filled(self, rows: Ints, left: Ints) -> Ints:
        """Scores and room are floats here: a drawing is a proposal, and feasibility is decided elsewhere."""
        needs, per_need = self._needs, self._per_need
        room = self._goods.rooms[self._column[rows]].astype(np.float64)
        scale = 1 / self._size[rows] ** 2
        limit = np.where(self._open[rows], np.minimum(left, self._goods.most)[None, :], 0).astype(np.float64)
        weight = self._weight[rows]
        pods = np.zeros((len(rows), len(left)), dtype=np.int64)
        live = np.arange(len(rows))
        while len(live):
            self.steps += 1
            fits = limit.copy()
            for resource in range(needs.shape[1]):
                np.minimum(fits, (room[:, resource, None] + 1e-3) * per_need[None, :, resource], out=fits)
            score = np.where(fits >= 1, np.round(((room * scale) @ needs.T) * weight, DIGITS), -1.0)
            chosen = score.argmax(axis=1)
            each = np.arange(len(live))
            going = score[each, chosen] >= 0
            if not going.all():
                live, limit, room = live[going], limit[going], room[going]
                scale, weight, fits, chosen = scale[going], weight[going], fits[going], chosen[going]
                each = np.arange(len(live))
            number = np.maximum(1, fits[each, chosen] // PORTION).astype(np.int64)
            pods[live, chosen] += number
            limit[each, chosen] -= number
            room -= number[:, None] * needs[chosen]
        return pods

    def _cheapest(self, pods: Ints) -> Ints:
        """For each filling the cheapest usable column that holds it."""
        goods, usable = self._goods, self._usable
        used = pods @ goods.needs
        holds = (pods > 0).astype(np.float64) @ self._closed_to == 0
        for resource in range(goods.needs.shape[1]):
            holds &= goods.rooms[None, usable, resource] >= used[:, None, resource]
        prices = np.where(holds, goods.prices[usable][None, :], np.iinfo(np.int64).max)
        cheapest: Ints = usable[prices.argmin(axis=1)]
        return cheapest


def roomy(goods: Market, *, parts: int) -> Market:
    """The same market where a pod goes only on machines of which it takes one part of so many, or as little as it can.

    On such machines it matters little in which order kube-scheduler binds pods.
    """
    part = (goods.needs[:, None, :] / np.maximum(goods.rooms, 1)[None, :, :]).max(axis=2)
    part = np.where(goods.allowed, part, np.inf)
    least = np.maximum(part.min(axis=1, initial=np.inf), 1 / parts)
    return dataclasses.replace(goods, allowed=goods.allowed & (part <= least[:, None] * (1 + 1e-9)))


def _with_needed(goods: Market, counts: Ints, columns: Bools) -> Bools:
    """The columns, and for each class that none of them holds the cheapest that does."""
    chosen = columns.copy()
    homeless = ~(goods.allowed & columns[None, :]).any(axis=1)
    for at in np.flatnonzero(homeless & (counts > 0)).tolist():
        options = np.flatnonzero(goods.allowed[at])
        if len(options):
            chosen[options[goods.prices[options].argmin()]] = True
    return chosen


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Sort:
    """Machines of one type, with those that some class needs: what all pods would cost on them, and how many they are."""

    column: int
    columns: Bools
    cost: float
    machines: float


def alike(goods: Market, counts: Ints, *, most: int) -> list[Sort]:
    """The types that by themselves would be cheapest if pods mixed like sand, cheapest first.

    kube-scheduler spreads all kinds of pods over all machines. On machines of one shape, the shape of what is asked for
    altogether, nothing is stranded by that. On each of them half of the largest pod is lost, on average.
    """
    total = (goods.needs * counts[:, None]).sum(axis=0)
    asked = total > 0
    rooms = np.maximum(goods.rooms[:, asked], 1)
    largest = np.where(counts[:, None] > 0, goods.needs, 0).max(axis=0, initial=0)[asked]
    lost = np.minimum((largest / rooms).max(axis=1, initial=0.0) / 2, 0.5)
    machines = (total[asked] / rooms).max(axis=1, initial=0.0) / (1 - lost)
    open_to = (goods.allowed * counts[:, None]).sum(axis=0) / max(1, int(counts.sum()))
    cost = np.round(goods.prices * machines / np.maximum(open_to, 1e-9), DIGITS)
    order = np.lexsort((goods.prices, cost))
    return [
        Sort(at, _with_needed(goods, counts, np.arange(len(cost)) == at), float(cost[at]), float(machines[at]))
        for at in order[:most].tolist()
    ]


def calmest(sorts: Sequence[Sort]) -> list[Sort]:
    """Those to stay with when demand changes a little: the most machines that are not much dearer than the cheapest.

    Prices and numbers here are smooth in the demand, so that a pod more or less changes neither.
    """
    found = []
    for much in NOT_MUCH:
        fine = [each for each in sorts if each.cost <= sorts[0].cost * much]
        found.append(max(fine, key=lambda each: (min(each.machines, ENOUGH), -each.cost)))
    return list(dict.fromkeys(found))
