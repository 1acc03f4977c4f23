"""Machines proposed with an eye on who fills them: kube-scheduler, in the order of its queue, not the packer.

Plans are begun in several ways: machine after machine by what the queue would put on it; machines of one type only; a
few kinds in many proportions, from swarms to one giant with small ones beside it. All are rehearsed side by side
(`floor`), and the best are changed a little (a machine more, less, cheaper, another, elsewhere in the order), generation
after generation, as long as the budget lasts. What stays is cheap after the rehearsal, not before it.

For pods without rules among themselves; proposals are drawings like others. Budgets are steps, and the lots that are
drawn are always the same, so equal questions have equal answers.
"""

import dataclasses
import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from growth.planning.drawing import Drawing
from growth.planning.floor import Floor, Plan, few, scored
from growth.planning.market import Bools, Floats, Ints, Market

# One step is a pod tried on a machine; a pod that is tried at all counts as so many, and so does a plan that is drawn.
# So many steps a pod, and in all: about half a second.
PER_POD, IN_ALL = 40_000, 40_000_000
EFFORT, DRAWN = 2_500, 700
# A generation may take one part of so many of the budget; how many plans it has; how many plans live on.
GENERATIONS: Final = 8
# Beginnings may take one part of so many.
BEGUN: Final = 5
FEWEST, MOST = 8, 150
SURVIVORS: Final = 24
# So many times more children are drawn than are rehearsed. Room beyond this share is no merit.
LITTER: Final = 8
ENOUGH: Final = 0.2
# Above so many pods only every so many are searched for, about so many in all; then machines are taken out again.
MOST_PODS, SAMPLE = 3_000, 1_500
THINNED: Final = 7
# Types whose machines alone are tried, cheapest first as if pods were sand, and with how many machines too many.
ALONE: Final = 6
SURPLUS: Final = 3
# Of the types, those that promised most are asked again for each machine, and all of them every few machines; every
# time where machines are few: as long as that took no more than so many steps a pod.
PROMISING: Final = 5
AFRESH: Final = 12
ASKED_EVERY_TIME: Final = 60
# Machines of at least so much of the largest that makes sense: a fourth of all that is bought.
LARGE: Final = 2
FOURTH: Final = 4
# Plans of machines of a few kinds: how many are drawn, of how many kinds, how many are looked at, how small a part of
# all the smallest machine may be, and how far above the least they may be.
DRAWS: Final = 4_000
PAIRS: Final = 100
KINDS: Final = 4
COMBINED: Final = 120
SMALLEST: Final = 40
DEARER: Final = 1.18
PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23)
# A second purchase is filled badly: so much is lost for every unit of what its pods are worth, and more where it is for
# more than a few pods of a thousand.
SECOND, MANY = 2.0, 6.0
# In the end a plan should leave nobody over at once: so many times more is lost then. So many plans are completed.
WHOLE: Final = 3.0
COMPLETED: Final = 3
# Machines that come one by one are a bad day: they may cost so much more then.
BAD_DAY: Final = 0.965
PROPOSALS: Final = 3


def queued(goods: Market, queue: Ints, worth: Floats) -> list[list[Drawing]]:
    """Proposals for the pods of the queue (rows of the market), best first. `worth`: what a pod of each row is worth."""
    able: Bools = np.asarray(goods.allowed.any(axis=1))
    queue = queue[able[queue]] if len(queue) else queue
    if not len(queue) or not len(goods.columns):
        return []
    search = _Search(goods, queue, worth)
    if len(queue) <= MOST_PODS:
        return [search.floor.drawn(plan) for plan in search.best()]
    # Every so many pods stand for all: what is good for them is good for all that many times.
    times = -(-len(queue) // SAMPLE)
    sample = _Search(goods, queue[::times], worth)
    plans = [tuple(column for column in plan for _ in range(times)) for plan in sample.best()[:1]]
    return [search.floor.drawn(search.thinned(plan, times)) for plan in plans]


class _Search:
    def __init__(self, goods: Market, queue: Ints, worth: Floats) -> None:
        self._goods = goods
        self._queue = queue
        self._worth = worth
        self._prices: list[int] = goods.prices.tolist()
        self.floor = Floor(goods, queue)
        self._counts = np.bincount(queue, minlength=len(goods.classes))
        self._total = (goods.needs * self._counts[:, None]).sum(axis=0)
        self._least = float(worth[queue].sum())
        self._able: Bools = np.asarray((goods.whole()[self._counts > 0] > 0).all(axis=0))
        self._by_price = sorted(range(len(self._prices)), key=lambda column: (self._prices[column], column))
        self._rank = {column: at for at, column in enumerate(self._by_price)}
        self._few = few(len(queue))
        self._steps = 0
        self._budget = min(PER_POD * len(queue), IN_ALL)
        self._known: dict[Plan, float] = {}
        self._whole: dict[Plan, float] = {}  # the same where nobody should be left over at once
        self._lots = _Lots()

    def best(self) -> list[Plan]:
        begun: list[Plan] = []
        for plans in (self._bought_one_by_one(), [*self._alone(), *self._pairs(), *self._mixed()]):
            begun += self._weighed(self._both_ways(plans), below=np.inf, upto=self._budget // BEGUN)
        alive = self._survivors(begun)
        while self._steps < self._budget and alive:
            near = self._children(alive)
            if not near:
                break
            alive = self._survivors([*alive, *self._weighed(near, below=self._known[alive[-1]], upto=self._budget)])
        whole = self._weighed(self._completed(alive), below=np.inf, upto=self._budget + self._budget // BEGUN)
        found = sorted({*alive, *whole}, key=lambda plan: (self._whole[plan], len(plan), plan))
        return list(dict.fromkeys((*found[: PROPOSALS - 1], alive[0]))) if alive else []

    def _completed(self, alive: Sequence[Plan]) -> list[Plan]:
        """The best plans with one machine more, each that does not make them dearer than the best that needs none."""
        most = min(self._whole[plan] for plan in alive) if alive else 0.0
        more = [(*plan, column) for plan in alive[:COMPLETED] for column in self._by_price]
        return [plan for plan in more if plan not in self._known and self._price(plan) < most]

    def thinned(self, plan: Plan, times: int) -> Plan:
        """The plan with as few machines as it can do with: up to so many less of those that it has most of."""
        most = max(sorted(set(plan)), key=plan.count)
        places = [at for at, column in enumerate(plan) if column == most]
        gone = sorted({times * part // THINNED for part in range(THINNED + 1)} & set(range(len(places))))
        plans = [tuple(each for at, each in enumerate(plan) if at not in set(places[len(places) - n :])) for n in gone]
        plans = [plan, *(each for each in plans if each != plan and self._spare(each) >= 0)]
        lost = self._lost(self.floor.at_once(plans))
        return min(zip((lost + [self._price(each) for each in plans]).tolist(), plans, strict=True))[1]

    # -- what plans are worth -----------------------------------------------------------------------------------------

    def _price(self, plan: Plan) -> int:
        return sum(self._prices[column] for column in plan)

    def _weighed(self, plans: Sequence[Plan], *, below: float, upto: int) -> list[Plan]:
        """Finds out what the plans would cost in the end; those that may be below something, and were looked at."""
        fine: list[Plan] = []
        for batch in self._batches(plans):
            if self._known and self._steps >= upto:
                break
            prices = np.array([self._price(plan) for plan in batch], dtype=np.float64)
            lost = self._lost(self.floor.at_once(batch))
            self._steps += self._work(batch)
            good = np.flatnonzero(prices + lost < below)
            if not len(good):
                continue
            some = [batch[at] for at in good.tolist()]
            slowly = prices[good] * BAD_DAY + self._lost(self.floor.one_by_one(some))
            self._steps += self._work(some) // 2
            for plan, price, late, slow in zip(some, prices[good], lost[good], slowly, strict=True):
                self._known[plan] = round(max(price + late, slow), 3)
                self._whole[plan] = round(max(price + late + WHOLE * late, slow), 3)
            fine += some
        return fine

    def _batches(self, plans: Sequence[Plan]) -> Iterator[list[Plan]]:
        """Plans of about the same length together, as many as a generation has."""
        batch: list[Plan] = []
        for plan in sorted(dict.fromkeys(plans), key=lambda plan: (len(plan), plan)):
            if len(batch) >= max(1, self._at_a_time(len(plan))):
                yield batch
                batch = []
            batch.append(plan)
        if batch:
            yield batch

    def _at_a_time(self, machines: int) -> int:
        return min(MOST, self._budget // GENERATIONS // (max(1, machines) * len(self._queue)))

    def _work(self, plans: Sequence[Plan]) -> int:
        return (EFFORT + len(plans) * max(map(len, plans))) * len(self._queue)

    def _lost(self, where: Ints) -> Floats:
        """What a second purchase for those that are left over would cost, plan by plan."""
        left = where < 0
        found: Floats = self._worth[self._queue] @ left
        return np.where(left.sum(axis=0) <= self._few, SECOND, MANY) * found

    def _survivors(self, plans: Iterable[Plan]) -> list[Plan]:
        found = sorted(dict.fromkeys(plans), key=lambda plan: (self._known[plan], len(plan), plan))
        if not found:
            return []
        number = max(FEWEST, self._at_a_time(len(found[0]))) // 2
        return found[: min(SURVIVORS, number)]

    # -- change -------------------------------------------------------------------------------------------------------

    def _children(self, alive: Sequence[Plan]) -> list[Plan]:
        """Plans that differ a little from those that are alive and cost less than their parent: the most promising.

        A plan with less room to spare than the best so far will hardly hold all pods: that counts like money.
        """
        wanted = max(FEWEST, self._at_a_time(len(alive[0])))
        made: dict[Plan, float] = {}
        for _ in range(LITTER * wanted):
            parent = alive[min(self._lots.below(len(alive)), self._lots.below(len(alive)))]
            plan = self._changed(parent)
            if plan and plan not in self._known:
                made.setdefault(plan, self._known[parent])
        self._steps += DRAWN * LITTER * wanted
        plans = [plan for plan, most in made.items() if self._least <= self._price(plan) < most]
        enough = min(self._spare(alive[0]), ENOUGH)
        likely = sorted(
            (round(self._price(plan) + self._least * max(0.0, enough - spare), 3), plan)
            for plan in plans
            if (spare := self._spare(plan)) >= 0
        )
        return [plan for _, plan in likely[:wanted]]

    def _spare(self, plan: Plan) -> float:
        """The room that is left if pods are sand, as a share of what they ask for; of the scarcest resource."""
        asked = self._total > 0
        room = self._goods.rooms[list(plan)].sum(axis=0)
        return round(float((room[asked] / self._total[asked]).min()) - 1, 9)

    def _changed(self, plan: Plan) -> Plan:
        """A plan that differs from another in one or two things, by lot."""
        lots, columns = self._lots, len(self._prices)
        found = list(plan)
        at, other = lots.below(len(found)), lots.below(len(found))
        match lots.below(20):
            case 0 | 1 | 2 | 3:  # less, or less of one and more of another
                del found[at]
                if found and lots.below(2):
                    del found[lots.below(len(found))]
                if lots.below(2):
                    found.insert(lots.below(len(found) + 1), lots.below(columns))
            case 4 | 5 | 6:  # more
                found.insert(at, found[other] if lots.below(2) else lots.below(columns))
            case 7 | 8 | 9 | 10:  # another
                found[at] = found[other] if lots.below(3) == 0 else lots.below(columns)
            case 11 | 12 | 13:  # a little cheaper
                found[at] = self._by_price[max(0, self._rank[found[at]] - 1 - lots.below(3))]
            case 14 | 15:  # two others
                found[at] = lots.below(columns)
                found[other] = found[at] if lots.below(2) else lots.below(columns)
            case 16:  # several of a kind
                kind, instead, most = found[at], lots.below(columns), 2 + lots.below(3)
                for place in [place for place, column in enumerate(found) if column == kind][:most]:
                    found[place] = instead
            case 17 | 18:  # earlier or later
                found.insert(other, found.pop(at))
            case _:
                found.sort(key=lambda column: self._rank[column], reverse=bool(lots.below(2)))
        return tuple(found)

    # -- beginnings ---------------------------------------------------------------------------------------------------

    def _both_ways(self, plans: Sequence[Plan]) -> list[Plan]:
        """The plans as they are, and with the cheapest machines first."""
        upwards = [tuple(sorted(plan, key=lambda column: self._rank[column])) for plan in plans]
        return [plan for plan in (*plans, *upwards) if plan and plan not in self._known]

    def _bought_one_by_one(self) -> list[Plan]:
        enough = min(max(self._prices), self._least / FOURTH) / LARGE
        large = [column for column, price in enumerate(self._prices) if price >= enough]
        return [self._greedy(range(len(self._prices))), self._greedy(large)]

    def _alone(self) -> Iterator[Plan]:
        """The types that would be cheapest alone if pods were sand."""
        asked = self._total > 0
        machines = np.ceil((self._total[asked] / np.maximum(self._goods.rooms[:, asked], 1)).max(axis=1))
        order = np.lexsort((self._goods.prices, self._goods.prices * machines))
        for column in [int(at) for at in order if self._able[at]][:ALONE]:
            for more in range(SURPLUS):
                yield (column,) * (int(machines[column]) + more)

    def _pairs(self) -> list[Plan]:
        """The cheapest plans of two machines that would hold all pods if they were sand."""
        first, second = np.triu_indices(len(self._prices))
        goods = self._goods
        fine = (goods.rooms[first] + goods.rooms[second] >= self._total).all(axis=1)
        price = goods.prices[first] + goods.prices[second]
        fine &= self._able[first] & (price <= self._least * DEARER)
        order = np.lexsort((second, first, price))
        return [(int(first[at]), int(second[at])) for at in order[fine[order]][:PAIRS].tolist()]

    def _mixed(self) -> list[Plan]:
        """Plans of machines of a few kinds, some of every price.

        Kinds and numbers follow fixed sequences that fill the space of choices evenly.
        """
        chosen = np.array(self._kinds(), dtype=np.int64)
        if len(chosen) < 2 or self._least <= 0:
            return []
        goods = self._goods
        prices = goods.prices[chosen].astype(np.float64)
        turns = np.modf(np.arange(1, DRAWS + 1)[:, None] * np.sqrt(PRIMES)[None, :])[0]
        picked = (turns[:, :KINDS] * len(chosen)).astype(np.int64)
        shares = turns[:, KINDS : 2 * KINDS] ** 2
        budget = self._least * (1 + (DEARER - 1) * turns[:, -1])
        shares *= (budget / shares.sum(axis=1))[:, None]
        many = np.zeros((DRAWS, len(chosen)), dtype=np.int64)
        each = np.arange(DRAWS)
        np.add.at(many, (each[:, None], picked), np.floor(shares / prices[picked]).astype(np.int64))
        for kind in picked.T:  # what is left over of the money
            spare = budget - many @ prices
            many[each, kind] += np.maximum(np.floor(spare / prices[kind]), 0).astype(np.int64)
        cost = many @ goods.prices[chosen]
        fine = (many @ goods.rooms[chosen] >= self._total).all(axis=1)
        many = np.unique(np.concatenate([cost[fine, None], many[fine]], axis=1), axis=0)[:, 1:]
        many = many[:: max(1, -(-len(many) // COMBINED))]
        return [tuple(np.repeat(chosen, each).tolist()) for each in many]

    def _kinds(self) -> list[int]:
        """Columns that hold every pod: of about the same size and shape that with the cheapest core; sorted by shape."""
        cpu, memory = scored(self._goods)
        best: dict[tuple[int, int], tuple[float, int]] = {}
        for column, price in enumerate(self._prices):
            room = self._goods.rooms[column]
            if not self._able[column] or not self._least / SMALLEST <= price <= self._least:
                continue
            shape = round(float(np.log2(max(1, room[memory]) / max(1, room[cpu]))))
            size = round(float(np.log2(max(1, price))) * 2)
            best[shape, size] = min(best.get((shape, size), (np.inf, 0)), (price / max(1.0, float(room[cpu])), column))
        half = len(self._queue) // 2
        first = self._goods.needs[self._queue[:half]].sum(axis=0)
        last = self._goods.needs[self._queue[half:]].sum(axis=0)
        heavy = int(first[memory]) * int(last[cpu]) >= int(last[memory]) * int(first[cpu])
        return [best[key][1] for key in sorted(best, key=lambda key: (-key[0] if heavy else key[0], -key[1]))]

    def _greedy(self, columns: Sequence[int]) -> Plan:
        """Machines bought one by one, each with the most worth for its price among what the queue would put on it."""
        line = _Line(self._goods, self._queue)
        plan: list[int] = []
        values: dict[int, float] = {}
        everything = columns
        begun = self._steps
        while line.left:
            often = self._steps - begun < ASKED_EVERY_TIME * len(self._queue)
            asked: Sequence[int] = everything
            if values and len(plan) % AFRESH and not often:
                asked = sorted(values, key=lambda at: (-values[at], at))[:PROMISING]
            best, chosen = 0.0, -1
            for column in asked:
                taken, steps = line.filled(column)
                self._steps += steps
                value = sum(self._worth[row] * number for row, number in taken.items())
                values[column] = round(value / max(1, self._prices[column]), 9)
                if values[column] > best:
                    best, chosen = values[column], column
            if chosen < 0:
                if len(everything) == len(self._prices):
                    break  # the rest fits nowhere
                if len(asked) == len(everything):
                    everything = range(len(self._prices))  # the rest fits on none of these
                values.clear()
                continue
            line.take(chosen)
            plan.append(chosen)
        return tuple(plan)


class _Lots:
    """Numbers without a pattern, the same every time."""

    def __init__(self) -> None:
        self._state = 1

    def below(self, number: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return (self._state >> 33) % number


@dataclasses.dataclass(slots=True)
class _Waiting:
    """Pods of one row: where in the queue they stand, and how many of them are gone."""

    places: list[int]
    gone: int = 0


class _Line:
    """The queue, and what an empty machine would take from it."""

    def __init__(self, goods: Market, queue: Ints) -> None:
        self._goods = goods
        self._rooms: list[list[int]] = goods.rooms.tolist()
        self._most: list[int] = goods.most.tolist()
        self._needs = [
            [(resource, amount) for resource, amount in enumerate(row) if amount] for row in goods.needs.tolist()
        ]
        self._rows: dict[int, _Waiting] = {}
        for place, row in enumerate(queue.tolist()):
            self._rows.setdefault(row, _Waiting([])).places.append(place)
        self.left = len(queue)

    def filled(self, column: int) -> tuple[dict[int, int], int]:
        """How many pods of each row the queue would put on an empty machine of the column; and the steps that took."""
        room = self._rooms[column][:]
        allowed = self._goods.allowed[:, column]
        heads = [
            (waiting.places[waiting.gone], row)
            for row, waiting in self._rows.items()
            if waiting.gone < len(waiting.places) and allowed[row]
        ]
        heapq.heapify(heads)
        taken: dict[int, int] = {}
        steps = len(heads)
        while heads:
            _, row = heads[0]
            steps += 1
            number = taken.get(row, 0)
            if number >= self._most[row] or any(room[r] < amount for r, amount in self._needs[row]):
                heapq.heappop(heads)
                continue
            for r, amount in self._needs[row]:
                room[r] -= amount
            taken[row] = number = number + 1
            waiting = self._rows[row]
            if waiting.gone + number < len(waiting.places):
                heapq.heapreplace(heads, (waiting.places[waiting.gone + number], row))
            else:
                heapq.heappop(heads)
        return taken, steps

    def take(self, column: int) -> None:
        """Lets a machine of the column take its pods."""
        for row, number in self.filled(column)[0].items():
            self._rows[row].gone += number
            self.left -= number
