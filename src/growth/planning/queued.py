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

# Types whose machines alone are tried, cheapest first as if pods were sand.
ALONE: Final = 4
# Of the types, those that promised most are asked again for each machine, and all of them every few machines.
PROMISING: Final = 5
AFRESH: Final = 12
# How often machines are added for those left over, and how often plans are thinned out, so many at a time.
REPAIRS: Final = 5
THINNINGS: Final = 12
BATCH: Final = 12
# One step is a pod tried on one machine of one plan. About a third of a second.
BUDGET: Final = 12_000_000
MOST_SCORE: Final = 100.0
PROPOSALS: Final = 3

Plan = tuple[int, ...]  # columns in the order of arrival


def queued(goods: Market, queue: Ints, worth: Floats) -> list[list[Drawing]]:
    """Proposals for the pods of the queue (rows of the market), cheapest first."""
    if not len(queue) or not len(goods.columns):
        return []
    search = _Search(goods, queue, worth)
    return [search.drawn(plan) for plan in search.best()]


class _Search:
    def __init__(self, goods: Market, queue: Ints, worth: Floats) -> None:
        self._goods = goods
        able: Bools = np.asarray(goods.allowed.any(axis=1))
        self._queue = queue[able[queue]]
        self._worth = worth
        self._prices = goods.prices.tolist()
        self._floor = _Floor(goods, self._queue)
        self._steps = 0

    def drawn(self, plan: Plan) -> list[Drawing]:
        """The plan with its pods where they would be bound at once."""
        (where,) = self._floor.at_once([plan])
        rows = len(self._goods.classes)
        pods = np.zeros((len(plan), rows), dtype=np.int64)
        bound = where >= 0
        np.add.at(pods, (where[bound], self._queue[bound]), 1)
        return [Drawing(column, pods[at]) for at, column in enumerate(plan)]

    def best(self) -> list[Plan]:
        everybody = np.arange(len(self._queue))
        plans = [self._greedy(everybody, range(len(self._prices)))]
        plans += [self._greedy(everybody, columns) for columns in self._shapes()]
        done: dict[Plan, int] = {}
        for _ in range(REPAIRS):
            plans = [plan for plan in dict.fromkeys(plans) if plan not in done]
            if not plans or self._steps > BUDGET:
                break
            plans = self._repaired(plans, done)
        if not done:
            return sorted(dict.fromkeys(plans), key=self._price)[:PROPOSALS]
        for plan in sorted(done, key=self._price)[:2]:
            self._thinned(plan, done)
        return sorted(done, key=self._price)[:PROPOSALS]

    def _price(self, plan: Plan) -> tuple[int, int]:
        return sum(self._prices[column] for column in plan), len(plan)

    def _shapes(self) -> Iterable[list[int]]:
        """The types that would be cheapest alone if pods were sand, each with what some pods need beside it."""
        goods = self._goods
        counts = np.bincount(self._queue, minlength=len(goods.classes))
        total = (goods.needs * counts[:, None]).sum(axis=0)
        asked = total > 0
        shares = total[asked] / np.maximum(goods.rooms[:, asked], 1)
        cost = goods.prices * np.ceil(shares.max(axis=1))
        held = goods.whole() > 0
        alone: Bools = np.asarray(held[counts > 0].all(axis=0))
        order = [int(at) for at in np.lexsort((goods.prices, cost, ~alone)) if alone[at]]
        for column in order[:ALONE]:
            # A smaller one at the end spares what a whole one would leave empty.
            smaller = [at for at in order if self._prices[at] < self._prices[column]]
            yield [column, *smaller[:PROMISING]]

    # -- machine after machine ----------------------------------------------------------------------------------------

    def _greedy(self, waiting: Ints, columns: Iterable[int]) -> Plan:
        """Machines bought one by one, each with the most worth for its price among what the queue would put on it."""
        allowed = list(columns)
        pending = self._floor.pending(waiting)
        plan: list[int] = []
        values: dict[int, float] = {}
        while pending.left:
            if len(plan) % AFRESH == 0 or not values:
                asked = allowed
            else:
                asked = sorted(values, key=lambda at: -values[at])[:PROMISING]
            best, chosen = 0.0, -1
            for column in asked:
                taken, steps = self._floor.filled(column, pending)
                self._steps += steps
                value = round(sum(self._worth[row] * number for row, number in taken.items()) / self._prices[column], 9)
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

    def _left(self, plans: Sequence[Plan]) -> list[Ints]:
        """For each plan the pods that are left over in the worse of both arrivals."""
        self._steps += sum(len(plan) for plan in plans) * len(self._queue)
        found = []
        for plan, where in zip(plans, self._floor.at_once(plans), strict=True):
            over = np.flatnonzero(where < 0)
            slowly = self._floor.one_by_one(plan)
            found.append(over if self._value(over) >= self._value(slowly) else slowly)
        return found

    def _value(self, pods: Ints) -> float:
        return float(self._worth[self._queue[pods]].sum())

    def _repaired(self, plans: Sequence[Plan], done: dict[Plan, int]) -> list[Plan]:
        """The plans with machines for those left over; complete ones go to `done`."""
        more = []
        for plan, over in zip(plans, self._left(plans), strict=True):
            if not len(over):
                done[plan] = 0
            else:
                more.append((*plan, *self._greedy(over, range(len(self._prices)))))
        return more

    def _thinned(self, plan: Plan, done: dict[Plan, int]) -> None:
        """Takes machines away, or puts smaller ones in their place, as long as nobody is left over."""
        tried: set[Plan] = set()
        for _ in range(THINNINGS):
            if self._steps > BUDGET:
                return
            fewer = [each for each in self._fewer(plan) if each not in tried][:BATCH]
            if not fewer:
                return
            tried.update(fewer)
            good = [each for each, over in zip(fewer, self._left(fewer), strict=True) if not len(over)]
            if good:
                plan = min(good, key=self._price)
                done[plan] = 0

    def _fewer(self, plan: Plan) -> list[Plan]:
        """Plans with one machine less or smaller, cheapest first; which of equal machines makes no great difference."""
        found: dict[Plan, None] = {}
        last = {column: at for at, column in enumerate(plan)}
        first = {column: at for at, column in reversed(list(enumerate(plan)))}
        for at in dict.fromkeys((*last.values(), *first.values())):
            found[(*plan[:at], *plan[at + 1 :])] = None
            price = self._prices[plan[at]]
            cheaper = [c for c, other in enumerate(self._prices) if price // 3 < other < price]
            for column in sorted(cheaper, key=lambda c: -self._prices[c])[:2]:
                found[(*plan[:at], column, *plan[at + 1 :])] = None
        return sorted(found, key=self._price)


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

    # -- at once ------------------------------------------------------------------------------------------------------

    def at_once(self, plans: Sequence[Plan]) -> list[Ints]:
        """For each plan the machine of each pod, -1 for none. All plans go through the queue side by side."""
        width = max(len(plan) for plan in plans)
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
