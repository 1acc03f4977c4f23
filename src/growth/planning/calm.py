"""Plans that change little when demand changes a little: machines of one type, and few others.

How many machines that takes is found by rehearsing all numbers side by side. Where a whole machine more is too much,
halves, fourths and smaller parts of one are added, the coarsest that will do: as with numbers that are rounded no further
than needed, the same ones serve again when demand is a little different. Several halves stand for some of the whole
machines, so that a little less demand takes one of them away and need not break a whole one up.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from growth.planning.drawing import Drawing
from growth.planning.floor import Floor, Plan, few
from growth.planning.market import Bools, Ints, Market

# The smallest part of a machine that is added: one half, so many times over.
HALVES: Final = 5
# Among so few machines halves stand for some of the whole ones: this share is whole.
BROKEN_UP, WHOLE = 30, 0.875
# Who comes first when machines come one by one, and who gets ties: the orders that are tried follow these.
PRIMES: Final = (2, 3, 5, 7)
# Two halves have at least this share of the room of a whole, and cost no more than that much more.
NEARLY: Final = 0.95
# So many others of any kind.
OTHERS: Final = 3
# Steps of one search: a pod tried on a machine is one. So many plans are looked at together.
STEPS, AT_A_TIME = 16_000_000, 120
# Many machines are looked for in so many turns, with at least so many plans in each.
TURNS, WORTHWHILE = 3, 20
# So many times more are far too many: other parts of a machine would not help.
FAR: Final = 5
# Scores are rounded before they are compared, so that ties are ties on every machine.
DIGITS: Final = 9


class Calm:
    """Plans of machines of one column of the market, for the pods of the queue (rows of the market)."""

    def __init__(self, goods: Market, queue: Ints) -> None:
        self._goods = goods
        self._queue = queue
        self._floor = Floor(goods, queue)
        self._total = goods.needs[queue].sum(axis=0)
        self._asked: Bools = self._total > 0
        self._prices: list[int] = goods.prices.tolist()
        self._few = few(len(queue))

    def plan(self, column: int, *, most: int) -> list[Drawing]:
        """The plan with the coarsest parts that leaves nobody over and costs no more than so much; empty without one."""
        if not self._goods.allowed[np.unique(self._queue), column].all():
            return []
        if self._sand(column) > BROKEN_UP:
            cheapest = self._cheapest(column, most)
            return self._floor.drawn(cheapest) if cheapest else []
        steps, hopeless = 0, True  # hopeless: neither whole machines nor halves come near
        for level, plans in enumerate(self._levels(column, most)):
            hopeless = hopeless and level <= 1 and self._hopeless(plans)
            if hopeless and level == 1:
                return []
            work = max(map(len, plans)) * len(self._queue)
            for start in range(0, len(plans), AT_A_TIME):
                some = plans[start : start + AT_A_TIME]
                steps += len(some) * work
                if steps > STEPS:
                    return []
                found = self._first(some)
                if found:
                    return self._floor.drawn(found)
        return []

    def _sand(self, column: int) -> float:
        """How many machines of the column it takes if pods are sand."""
        return float((self._total[self._asked] / np.maximum(self._goods.rooms[column][self._asked], 1)).max())

    def _cheapest(self, column: int, most: int) -> Plan:
        """About the cheapest plan of many machines with up to two others: among some of all prices first, then nearer."""
        number = int(STEPS // TURNS // (len(self._queue) * self._sand(column)))
        if number < WORTHWHILE:
            return ()
        small = [other for other, price in enumerate(self._prices) if price <= self._prices[column]]
        rests = [rest for many in range(3) for rest in itertools.combinations_with_replacement(small, many)]
        found = [plan for rest in rests for plan in self._with(column, rest, most, half=column)]
        plans = sorted(dict.fromkeys(found), key=lambda plan: (self._price(plan), len(plan), plan))
        best: Plan = ()
        low, high = 0, len(plans)
        for _ in range(TURNS):
            if low >= high:
                break
            nearer = self._first(
                [plans[at] for at in sorted({low + (high - low) * at // number for at in range(number)})]
            )
            if nearer:
                best, high = nearer, plans.index(nearer)
                low = max(low, high - 2 * (high - low) // number)
            else:
                low = high - (high - low) // 4
        return best

    def _levels(self, column: int, most: int) -> Iterator[list[Plan]]:
        """Plans that cost no more and have the room if pods are sand: whole machines, with halves, with fourths, ...

        In the end whole ones with a few of any others.
        """
        halves = [self._part(column, 2**level) for level in range(1, HALVES + 1)]
        for level in range(HALVES + 1):
            last = tuple(halves[level - 1 : level])
            rests = [
                (*(part for part, yes in zip(halves, chosen, strict=False) if yes), *last)
                for chosen in itertools.product((False, True), repeat=max(0, level - 1))
            ]
            plans = [plan for rest in rests for plan in self._with(column, rest, most, half=halves[0])]
            if plans:
                yield sorted(dict.fromkeys(plans), key=lambda plan: (self._price(plan), -len(plan)))
        small = [other for other, price in enumerate(self._prices) if price <= self._prices[halves[0]]]
        for many in range(2, OTHERS + 1):
            others = itertools.combinations_with_replacement(small, many)
            plans = [plan for rest in others for plan in self._with(column, rest, most, half=halves[0])]
            if plans:
                yield sorted(dict.fromkeys(plans), key=self._price)

    def _with(self, column: int, rest: Plan, most: int, *, half: int) -> Iterator[Plan]:
        """All numbers of the machine that come into question, with others after or before it.

        Where they are few, halves stand for a quarter of them.
        """
        rooms, prices = self._goods.rooms, self._prices
        sand = self._sand(column)
        left = self._total - rooms[list(rest)].sum(axis=0)
        least = max(1, int(np.ceil((left[self._asked] / np.maximum(rooms[column][self._asked], 1)).max())))
        spent = self._price(rest)
        for number in range(least, (most - spent) // max(1, prices[column]) + 1):
            broken = max(0, number - _coarse(sand * WHOLE)) if self._is_half(half, column) and sand <= BROKEN_UP else 0
            whole = number - broken
            if spent + whole * prices[column] + 2 * broken * prices[half] > most:
                continue
            if (whole * rooms[column] + 2 * broken * rooms[half] >= left).all():
                plan = (column,) * whole + (half,) * (2 * broken) + rest
                yield from _orders(plan) if sand <= BROKEN_UP else dict.fromkeys((plan, plan[::-1]))

    def _price(self, plan: Plan) -> int:
        return sum(self._prices[column] for column in plan)

    def _part(self, column: int, parts: int) -> int:
        """The column that is most like one part of so many of another, in room and in price."""
        goods = self._goods
        wanted = np.maximum(goods.rooms[column][self._asked] / parts, 1)
        apart = np.abs(np.log2(np.maximum(goods.rooms[:, self._asked], 1) / wanted)).sum(axis=1)
        apart += np.abs(np.log2(np.maximum(goods.prices, 1) / max(1.0, self._prices[column] / parts)))
        return int(np.lexsort((np.arange(len(apart)), np.round(apart, DIGITS)))[0])

    def _hopeless(self, plans: Sequence[Plan]) -> bool:
        """Whether even the dearest of the plans leave far too many over when machines come one by one."""
        left = (self._floor.one_by_one(plans[-len(PRIMES) - 2 :]) < 0).sum(axis=0)
        return int(left.min()) > FAR * max(1, self._few)

    def _is_half(self, half: int, column: int) -> bool:
        """Whether two of the one are about one of the other, in price and in all that is asked for."""
        room = 2 * self._goods.rooms[half][self._asked] / np.maximum(self._goods.rooms[column][self._asked], 1)
        return bool(room.min() >= NEARLY) and 2 * self._prices[half] * NEARLY <= self._prices[column]

    def _first(self, plans: Sequence[Plan]) -> Plan:
        """The first plan that leaves nobody over at once, and few one by one."""
        if not plans:
            return ()
        good = np.flatnonzero((self._floor.at_once(plans) >= 0).all(axis=0))
        if not len(good):
            return ()
        some = [plans[at] for at in good.tolist()]
        left = (self._floor.one_by_one(some) < 0).sum(axis=0)
        return next((plan for plan, number in zip(some, left, strict=True) if number <= self._few), ())


def _orders(plan: Plan) -> Iterator[Plan]:
    """The machines in several orders: as they are, backwards, and mixed in ways that are always the same."""
    yield plan
    if len(set(plan)) > 1:
        yield plan[::-1]
        for prime in PRIMES:
            mixed = np.argsort(np.modf(np.arange(1, len(plan) + 1) * np.sqrt(prime))[0], kind="stable")
            yield tuple(plan[at] for at in mixed.tolist())


def _coarse(number: float) -> int:
    """The largest whole number with few digits that is not above: 1, 2, 3, 4, 6, 8, 12, 16, 24, ..."""
    found = 1
    for power in range(int(max(1.0, number)).bit_length()):
        found = max([found, *(each for each in (2**power, 3 * 2**power) if each <= number)])
    return found
