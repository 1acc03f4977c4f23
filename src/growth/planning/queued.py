"""Machines proposed with an eye on who fills them: kube-scheduler, in the order of its queue, not the packer.

Two quick rehearsals on arrays stand in for `rehearsal`, which has the last word. *One by one* a machine takes the first
pods of the queue that fit, and none of those that are left would fit on an earlier one. *At once* every pod goes to the
machine that scores best. Plans are begun in several ways (machine after machine by what the queue would put on it;
machines of one type only), completed for pods that are left over in either, and thinned out as long as nobody is left.

For pods without rules among themselves; the proposals are drawings like others. Budgets are steps.
"""

import dataclasses
import heapq
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from growth.planning.drawing import Drawing
from growth.planning.market import Bools, Floats, Ints, Market

# Types whose machines alone are tried, cheapest first as if pods were sand, and with how many machines too many.
ALONE: Final = 3
SURPLUS: Final = 3
# Of the types, those that promised most are asked again for each machine, and all of them every few machines; every
# time where machines are few.
PROMISING: Final = 5
AFRESH: Final = 12
ASKED_EVERY_TIME: Final = 60_000
# Machines of at least so much of the largest that makes sense: a fourth of all that is bought.
LARGE: Final = 2
FOURTH: Final = 4
# How many beginnings are improved, and how often.
BEGINNINGS: Final = 2
MOVES: Final = 6
# Machines in all plans that are rehearsed side by side.
WIDTH: Final = 3000
FEWEST, MOST = 8, 200
# Of the plans that are good at once so many are asked how they are one by one.
ASKED: Final = 12
# A second purchase is filled badly: so much is lost for every unit of what its pods are worth.
SECOND: Final = 4.0
# When machines come one by one, so many pods of a thousand may be left to a second purchase.
FEW: Final = 4
LATER: Final = 0.5
# Plans of machines of a few kinds: how many are drawn, of how many kinds, how many are looked at, how small a part of
# all the smallest machine may be, and how far above the least they may be.
DRAWS: Final = 15_000
KINDS: Final = 4
PARTS: Final = 4
COMBINED: Final = 600
SMALLEST: Final = 40
PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23)
# One by one is asked of all plans at once where they have so few machines.
FEW_MACHINES: Final = 16
# Nothing is filled to the brim.
SLACK: Final = 1.01
DEARER: Final = 1.18
# One step is a pod tried on a machine; a pod that is tried at all counts as so many. About a third of a second.
BUDGET: Final = 8_000_000
EFFORT: Final = 1000
MOST_SCORE: Final = 100.0
PROPOSALS: Final = 3

Plan = tuple[int, ...]  # columns in the order of arrival


def queued(goods: Market, queue: Ints, worths: Sequence[Floats]) -> list[list[Drawing]]:
    """Proposals for the pods of the queue (rows of the market), best first. `worths`: what pods are worth, as some say."""
    if not len(queue) or not len(goods.columns):
        return []
    search = _Search(goods, queue, worths)
    return [search.drawn(plan) for plan in search.best()]


class _Search:
    def __init__(self, goods: Market, queue: Ints, worths: Sequence[Floats]) -> None:
        self._goods = goods
        able: Bools = np.asarray(goods.allowed.any(axis=1))
        self._queue = queue[able[queue]]
        self._worths = worths
        self._worth = worths[0]
        self._prices = goods.prices.tolist()
        self._floor = _Floor(goods, self._queue)
        self._steps = 0
        self._known: dict[Plan, float] = {}

    def drawn(self, plan: Plan) -> list[Drawing]:
        """The plan with its pods where they would be bound at once."""
        (where,) = self._floor.at_once([plan])
        rows = len(self._goods.classes)
        pods = np.zeros((len(plan), rows), dtype=np.int64)
        bound = where >= 0
        np.add.at(pods, (where[bound], self._queue[bound]), 1)
        return [Drawing(column, pods[at]) for at, column in enumerate(plan)]

    def best(self) -> list[Plan]:
        begun = self._beginnings()
        self._weigh(begun)
        mixed = self._mixed()
        if mixed and self._steps < BUDGET:
            self._weigh(mixed, below=min(self._known.values()))
        begun = list(self._known)
        for plan in sorted(begun, key=self._order)[:BEGINNINGS]:
            self._improved(plan)
        return [plan for plan in sorted(self._known, key=self._order)[:PROPOSALS] if plan]

    def _order(self, plan: Plan) -> tuple[float, int, Plan]:
        return self._known.get(plan, np.inf), len(plan), plan

    def _price(self, plan: Plan) -> int:
        return sum(self._prices[column] for column in plan)

    # -- beginnings ---------------------------------------------------------------------------------------------------

    def _beginnings(self) -> list[Plan]:
        everybody = np.arange(len(self._queue))
        every = range(len(self._prices))
        found: dict[Plan, None] = {}
        for worth in self._worths:
            self._worth = worth
            found[self._greedy(everybody, every)] = None
            enough = min(max(self._prices), float(worth[self._queue].sum()) / FOURTH) / LARGE
            found[self._greedy(everybody, [at for at in every if self._prices[at] >= enough])] = None
        self._worth = self._worths[0]
        for column, least in self._alone():
            found.update(dict.fromkeys((column,) * (least + more) for more in range(SURPLUS)))
        found.pop((), None)  # pods that are worth nothing begin nothing
        return list(found)

    def _alone(self) -> Iterable[tuple[int, int]]:
        """The types that would be cheapest alone if pods were sand, and how many machines that would be."""
        goods = self._goods
        counts = np.bincount(self._queue, minlength=len(goods.classes))
        total = (goods.needs * counts[:, None]).sum(axis=0)
        asked = total > 0
        machines = np.ceil((total[asked] / np.maximum(goods.rooms[:, asked], 1)).max(axis=1))
        able: Bools = np.asarray((goods.whole()[counts > 0] > 0).all(axis=0))
        order = np.lexsort((goods.prices, goods.prices * machines))
        for column in [int(at) for at in order if able[at]][:ALONE]:
            yield column, int(machines[column])

    def _mixed(self) -> list[Plan]:
        """Plans of machines of a few kinds, cheapest first; those come first that the front of the queue suits best.

        Kinds and numbers follow fixed sequences that fill the space of choices evenly.
        """
        goods = self._goods
        counts = np.bincount(self._queue, minlength=len(goods.classes))
        total = (goods.needs * counts[:, None]).sum(axis=0)
        least = float(self._worth[self._queue].sum())
        chosen = np.array(self._kinds(least), dtype=np.int64)
        if len(chosen) < 2 or least <= 0:
            return []
        prices = goods.prices[chosen].astype(np.float64)
        turns = np.modf(np.arange(1, DRAWS + 1)[:, None] * np.sqrt(PRIMES)[None, :])[0]
        picked = (turns[:, :KINDS] * len(chosen)).astype(np.int64)
        shares = turns[:, KINDS : 2 * KINDS] ** 2
        budget = least * (1 + (DEARER - 1) * turns[:, -1])
        shares *= (budget / shares.sum(axis=1))[:, None]
        each = np.floor(shares / prices[picked]).astype(np.int64)
        many = np.zeros((DRAWS, len(chosen)), dtype=np.int64)
        np.add.at(many, (np.arange(DRAWS)[:, None], picked), each)
        spare = budget - many @ prices
        many[np.arange(DRAWS), picked[:, 0]] += np.maximum(np.floor(spare / prices[picked[:, 0]]), 0).astype(np.int64)
        cost = many @ goods.prices[chosen]
        fine = (many @ goods.rooms[chosen] >= total * SLACK).all(axis=1)
        many = np.unique(np.concatenate([cost[fine, None], many[fine]], axis=1), axis=0)[:, 1:]
        many = many[:: max(1, -(-len(many) // COMBINED))]
        # Some of every price, so that a budget that ends early has seen them.
        many = np.concatenate([many[start::PARTS] for start in range(PARTS)])
        return [tuple(np.repeat(chosen, each).tolist()) for each in many]

    def _kinds(self, least: float) -> list[int]:
        """Columns of a middling price: of about the same size and shape that with the cheapest core; sorted by shape."""
        cpu, memory = _scored(self._goods)
        best: dict[tuple[int, int], tuple[float, int]] = {}
        able: Bools = np.asarray(self._goods.allowed[np.unique(self._queue)].all(axis=0))
        for column, price in enumerate(self._prices):
            room = self._goods.rooms[column]
            if not able[column] or not least / SMALLEST <= price <= least / 2 or room[cpu] <= 0 or room[memory] <= 0:
                continue
            shape = round(float(np.log2(room[memory] / room[cpu])))
            size = round(float(np.log2(max(1, price))) * 2)
            best[shape, size] = min(best.get((shape, size), (np.inf, 0)), (price / float(room[cpu]), column))
        first = self._goods.needs[self._queue[: len(self._queue) // 2]].sum(axis=0)
        last = self._goods.needs[self._queue[len(self._queue) // 2 :]].sum(axis=0)
        heavy = int(first[memory]) * int(last[cpu]) >= int(last[memory]) * int(first[cpu])
        return [best[key][1] for key in sorted(best, key=lambda key: (-key[0] if heavy else key[0], key[1]))]

    def _greedy(self, waiting: Ints, columns: Iterable[int]) -> Plan:
        """Machines bought one by one, each with the most worth for its price among what the queue would put on it."""
        allowed = list(columns)
        pending = self._floor.pending(waiting)
        plan: list[int] = []
        values: dict[int, float] = {}
        begun = self._steps
        while pending.left:
            often = self._steps - begun < ASKED_EVERY_TIME
            asked = allowed
            if values and len(plan) % AFRESH and not often:
                asked = sorted(values, key=lambda at: (-values[at], at))[:PROMISING]
            best, chosen = 0.0, -1
            for column in asked:
                taken, steps = self._floor.filled(column, pending)
                self._steps += steps
                value = round(
                    sum(self._worth[row] * number for row, number in taken.items()) / max(1, self._prices[column]), 9
                )
                values[column] = value
                if value > best:
                    best, chosen = value, column
            if chosen < 0:
                if len(asked) == len(allowed):
                    break  # the rest fits on none of these
                values.clear()
                continue
            self._floor.take(chosen, pending)
            plan.append(chosen)
        if pending.left and len(allowed) < len(self._prices):
            plan += self._greedy(pending.pods(), range(len(self._prices)))
        return tuple(plan)

    # -- plans as a whole ---------------------------------------------------------------------------------------------

    def _weigh(self, plans: Sequence[Plan], *, below: float = np.inf) -> None:
        """Finds out what the plans would cost in the end, as far as that is below something."""
        over = dict(zip(plans, self._at_once(plans), strict=False))
        small = [plan for plan in over if len(plan) <= FEW_MACHINES and over[plan] < below]
        if len(small) > ASKED:
            for plan, left in zip(small, self._floor.all_one_by_one(small), strict=True):
                factor = LATER if int(left.sum()) <= len(self._queue) * FEW // 1000 else SECOND
                over[plan] = max(over[plan], self._price(plan) + factor * float(left @ self._worth))
            self._steps += len(self._queue) * EFFORT
        order = sorted((plan for plan in over if over[plan] < below), key=lambda plan: (over[plan], plan))
        for plan in order[: ASKED if below < np.inf else None]:
            left = self._floor.one_by_one(plan)
            few = len(left) <= len(self._queue) * FEW // 1000
            slowly = self._price(plan) + (LATER if few else SECOND) * self._value(left)
            self._steps += len(self._queue)
            self._known[plan] = round(max(over[plan], slowly), 3)

    def _at_once(self, plans: Sequence[Plan]) -> list[float]:
        """What each plan costs with a second purchase for those that are left over when all machines come at once.

        As many of them as the budget allows, at least one.
        """
        found: list[float] = []
        at = 0
        while at < len(plans) and (not at or self._steps < BUDGET):
            number = max(FEWEST, min(MOST, WIDTH // max(1, len(plans[at]))))
            some = plans[at : at + number]
            self._steps += (EFFORT + len(some) * max(map(len, some))) * len(self._queue)
            for plan, where in zip(some, self._floor.at_once(some), strict=True):
                found.append(self._price(plan) + SECOND * self._value(np.flatnonzero(where < 0)))
            at += number
        return found

    def _value(self, pods: Ints) -> float:
        return float(self._worth[self._queue[pods]].sum())

    def _improved(self, plan: Plan) -> None:
        """Changes one machine after the other as long as that helps."""
        tried: set[Plan] = {plan}
        for _ in range(MOVES):
            if self._steps > BUDGET:
                return
            near = [each for each in self._near(plan) if each not in tried and each not in self._known]
            near = near[: max(FEWEST, min(MOST, WIDTH // max(1, len(plan))))]
            if not near:
                return
            tried.update(near)
            self._weigh(near, below=self._known[plan])
            best = min(near, key=self._order)
            if self._known.get(best, np.inf) < self._known[plan]:
                plan = best

    def _near(self, plan: Plan) -> list[Plan]:
        """Plans with one machine less, more or another; which of equal machines makes no great difference."""
        found: dict[Plan, None] = {}
        places = {column: at for at, column in enumerate(plan)}
        places_first = {column: at for at, column in reversed(list(enumerate(plan)))}
        spots = list(dict.fromkeys((*places.values(), *places_first.values())))
        for at in spots:
            found[(*plan[:at], *plan[at + 1 :])] = None
        for at in spots:
            price = self._prices[plan[at]]
            for column, other in enumerate(self._prices):
                if price // 4 < other < price * 5 // 4 and column != plan[at]:
                    found[(*plan[:at], column, *plan[at + 1 :])] = None
        for column in range(len(self._prices)):
            found[(*plan, column)] = None
        limit = self._known[plan]
        return sorted(
            (each for each in found if self._price(each) < limit), key=lambda each: (-self._price(each), each)
        )


@dataclasses.dataclass(slots=True)
class _Pending:
    """Pods that wait, by row, each row in the order of the queue; `heads` are how many of it are gone."""

    rows: dict[int, list[int]]
    heads: dict[int, int]
    left: int

    def pods(self) -> Ints:
        return np.array(sorted(p for row, all_ in self.rows.items() for p in all_[self.heads[row] :]), dtype=np.int64)


class _Floor:
    """The two quick rehearsals."""

    def __init__(self, goods: Market, queue: Ints) -> None:
        self._queue = queue
        self._order = queue.tolist()
        self._rooms = goods.rooms.tolist()
        self._needs = [
            [(resource, amount) for resource, amount in enumerate(row) if amount] for row in goods.needs.tolist()
        ]
        self._allowed = goods.allowed
        self._most = goods.most.tolist()
        self._goods = goods
        cpu, memory = _scored(goods)
        whole = np.array(
            [
                [shelf.options[index].type.allocatable.get(name, 0) for name in ("cpu", "memory")]
                for shelf, index in goods.columns
            ],
            dtype=np.float64,
        )
        self._size = np.maximum(whole, 1.0)
        self._free = np.stack([goods.rooms[:, cpu], goods.rooms[:, memory]], axis=1).astype(np.float64)
        self._asked = np.stack([goods.needs[:, cpu], goods.needs[:, memory]], axis=1).astype(np.float64)

    # -- one by one ---------------------------------------------------------------------------------------------------

    def pending(self, waiting: Ints) -> _Pending:
        rows: dict[int, list[int]] = {}
        for pod in waiting.tolist():
            rows.setdefault(self._order[pod], []).append(pod)
        return _Pending(rows, dict.fromkeys(rows, 0), len(waiting))

    def filled(self, column: int, pending: _Pending) -> tuple[dict[int, int], int]:
        """How many pods of each row the queue would put on an empty machine of the column; and the steps that took."""
        room = self._rooms[column][:]
        allowed = self._allowed[:, column]
        heads = [
            (all_[pending.heads[row]], row)
            for row, all_ in pending.rows.items()
            if pending.heads[row] < len(all_) and allowed[row]
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
            at = pending.heads[row] + number
            if at < len(pending.rows[row]):
                heapq.heapreplace(heads, (pending.rows[row][at], row))
            else:
                heapq.heappop(heads)
        return taken, steps

    def take(self, column: int, pending: _Pending) -> None:
        """Lets a machine of the column take its pods."""
        taken, _ = self.filled(column, pending)
        for row, number in taken.items():
            pending.heads[row] += number
            pending.left -= number

    def one_by_one(self, plan: Plan) -> Ints:
        """The pods that are left over when the machines come in this order."""
        pending = self.pending(np.arange(len(self._order)))
        for column in plan:
            if not pending.left:
                break
            self.take(column, pending)
        return pending.pods()

    def all_one_by_one(self, plans: Sequence[Plan]) -> Ints:
        """For each plan how many pods of each row are left over; all plans side by side, for plans of few machines."""
        cuts = np.flatnonzero(np.diff(self._queue)) + 1
        starts = np.concatenate([[0], cuts])
        rows = self._queue[starts]
        lengths = np.diff(np.concatenate([starts, [len(self._queue)]]))
        width = max(map(len, plans))
        columns = np.array([[*plan, *([-1] * (width - len(plan)))] for plan in plans], dtype=np.int64)
        pending = np.tile(lengths, (len(plans), 1)).T.copy()
        for step in range(width):
            column = columns[:, step]
            room = np.where((column >= 0)[:, None], self._goods.rooms[column], -1).T.copy()
            open_to = self._allowed[:, column]
            held: dict[int, Ints] = {}
            for run, row in enumerate(rows.tolist()):
                number = pending[run]
                for resource, amount in self._needs[row]:
                    number = np.minimum(number, room[resource] // amount)
                number = np.where(open_to[row], np.maximum(number, 0), 0)
                if self._most[row] < len(self._order):
                    number = np.minimum(number, self._most[row] - held.get(row, 0))
                    held[row] = held.get(row, 0) + number
                pending[run] -= number
                for resource, amount in self._needs[row]:
                    room[resource] -= number * amount
        left = np.zeros((len(self._goods.classes), len(plans)), dtype=np.int64)
        np.add.at(left, rows, pending)
        return left.T

    # -- at once ------------------------------------------------------------------------------------------------------

    def at_once(self, plans: Sequence[Plan]) -> list[Ints]:
        """For each plan the machine of each pod, -1 for none. All plans go through the queue side by side."""
        width = max(1, *(len(plan) for plan in plans))
        columns = np.array([[*plan, *([0] * (width - len(plan)))] for plan in plans], dtype=np.int64)
        there = np.array([[at < len(plan) for at in range(width)] for plan in plans], dtype=np.bool_)
        free = np.ascontiguousarray(np.moveaxis(self._goods.rooms[columns], 2, 0))
        free[:, ~there] = -1
        size = np.moveaxis(self._size[columns], 2, 0)
        left = np.moveaxis(self._free[columns], 2, 0).copy()
        per_size = 1.0 / size
        balance = self._balance(left[0], left[1], per_size)
        each = np.arange(len(plans))
        open_to: dict[int, Bools] = {}
        found: list[Ints] = []
        for row in self._order:
            fits = open_to.get(row)
            if fits is None:
                fits = open_to[row] = self._allowed[row][columns] & there
            for resource, amount in self._needs[row]:
                fits = fits & (free[resource] >= amount)
            cpu = left[0] - self._asked[row, 0]
            memory = left[1] - self._asked[row, 1]
            first, second = cpu * per_size[0], memory * per_size[1]
            least = np.floor((np.floor(first * MOST_SCORE + 1e-9) + np.floor(second * MOST_SCORE + 1e-9)) / 2)
            after = np.floor((1 - np.abs(first - second) / 2) * MOST_SCORE + 1e-9)
            score = np.where(fits, least + np.floor((after - balance) / 2), -1e9)
            chosen = score.argmax(axis=1)
            bound = fits[each, chosen]
            who, where = each[bound], chosen[bound]
            for resource, amount in self._needs[row]:
                free[resource, who, where] -= amount
            left[0, who, where] = cpu[who, where]
            left[1, who, where] = memory[who, where]
            balance[who, where] = after[who, where]
            found.append(np.where(bound, chosen, -1))
        by_plan: Any = np.array(found, dtype=np.int64).reshape(len(self._order), len(plans)).T
        return list(by_plan)

    def _balance(self, cpu: Floats, memory: Floats, per_size: Floats) -> Floats:
        found: Floats = np.floor((1 - np.abs(cpu * per_size[0] - memory * per_size[1]) / 2) * MOST_SCORE + 1e-9)
        return found


def _scored(goods: Market) -> tuple[int, int]:
    """Which of the resources are cpu and memory."""
    found = {"cpu": 0, "memory": 0}
    for pods in goods.classes:
        for (index, _), name in zip(pods.needs, pods.requests, strict=True):
            if name in found:
                found[name] = index
    return found["cpu"], found["memory"]
