"""Two quick rehearsals on arrays: many plans side by side, for pods without rules among themselves.

They stand in for `rehearsal`, which has the last word. *At once* every pod goes to the machine that scores best. *One by
one* it goes to the first machine, in the order of arrival, that has room when its turn comes: whoever was refused by a
machine is refused by it for ever, so that is what waiting for machines comes to.

Room is in percent of a machine here, in floats: a rehearsal of proposals may be wrong by a few bytes.
"""

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np

from growth.planning.drawing import Drawing
from growth.planning.market import Bools, Floats, Ints, Market

Plan = tuple[int, ...]  # columns in the order of arrival

WHOLE: Final = 100.0
# Far above what sums of percents lose, far below what any pod asks for.
TINY: Final = 1e-7
# Below any score.
NOWHERE: Final = -1e6
# So many pods of a thousand are few: where no more are left to a second purchase, a plan is fine on a bad day.
FEW: Final = 4


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Ground:
    """What all plans share. `size` and `free` are (resource, column), `asked` (resource, row): cpu, memory, others.

    `choosy` are the rows that may not go everywhere, `few` those of which a machine may hold only so many.
    """

    goods: Market
    size: Floats
    free: Floats
    asked: Floats
    choosy: frozenset[int]
    few: frozenset[int]


class Floor:
    """The pods of a queue (rows of the market), to be bound to machines."""

    def __init__(self, goods: Market, queue: Ints) -> None:
        self._order: list[int] = queue.tolist()
        rows = sorted(set(self._order))
        both = scored(goods)
        asked_for = [
            *both,
            *(at for at in range(goods.needs.shape[1]) if at not in both and goods.needs[rows, at].any()),
        ]
        size = np.maximum(goods.rooms[:, asked_for].T, 1).astype(np.float64)
        for at, name in enumerate(("cpu", "memory")):
            kinds = [shelf.options[index].type for shelf, index in goods.columns]
            size[at] = [max(1, kind.allocatable.get(name, 0)) for kind in kinds]
        self._ground = _Ground(
            goods=goods,
            size=size,
            free=goods.rooms[:, asked_for].T.astype(np.float64),
            asked=goods.needs[:, asked_for].T.astype(np.float64),
            choosy=frozenset(row for row in rows if not goods.allowed[row].all()),
            few=frozenset(row for row in rows if goods.most[row] < len(self._order)),
        )

    def at_once(self, plans: Sequence[Plan]) -> Ints:
        """The machine of each pod, in each plan: (pod, plan); -1 for none."""
        machines = _Machines(self._ground, plans)
        return np.array([machines.best(row) for row in self._order], np.int64).reshape(-1, len(plans))

    def one_by_one(self, plans: Sequence[Plan]) -> Ints:
        """The same where machines come in the order of the plan."""
        machines = _Machines(self._ground, plans)
        return np.array([machines.first(row) for row in self._order], np.int64).reshape(-1, len(plans))

    def drawn(self, plan: Plan) -> list[Drawing]:
        """The plan with its pods where they would be bound at once."""
        where = self.at_once([plan])[:, 0]
        pods = np.zeros((len(plan), len(self._ground.goods.classes)), dtype=np.int64)
        bound = where >= 0
        np.add.at(pods, (where[bound], np.array(self._order, dtype=np.int64)[bound]), 1)
        return [Drawing(column, pods[at]) for at, column in enumerate(plan)]


class _Machines:
    """The machines of all plans and what is left on them: arrays of (machine, plan), and flat ones of the same."""

    def __init__(self, ground: _Ground, plans: Sequence[Plan]) -> None:
        width = max(1, *(len(plan) for plan in plans))
        columns = np.array([[*plan, *([-1] * (width - len(plan)))] for plan in plans], np.int64).T.copy()
        self._ground = ground
        self._columns = columns
        self._plans = np.arange(len(plans))
        # Ties go to the first machine: among equal scores it is the largest number that is subtracted least.
        self._place = np.arange(width, dtype=np.float64)[:, None]
        self._per = np.ascontiguousarray(WHOLE / ground.size[:, columns])
        self._room = np.ascontiguousarray(ground.free[:, columns] * self._per)
        self._room[:, columns < 0] = -WHOLE  # less than nothing
        self._room_of = [each.reshape(-1) for each in self._room]
        self._after = np.empty_like(self._room)
        self._after_of = [each.reshape(-1) for each in self._after]
        self._balance, self._next = _balanced(self._room, np.empty_like(self._per[0])), np.empty_like(self._per[0])
        self._score = np.empty_like(self._per[0])
        self._held = {row: np.zeros(columns.shape, dtype=np.int64) for row in ground.few}
        self._asked: dict[int, Floats] = {}
        self._open: dict[int, Bools] = {}

    def best(self, row: int) -> Ints:
        """Binds a pod of the row where kube-scheduler would: by LeastAllocated and BalancedAllocation."""
        full = self._full(row)
        after, score = self._after, self._score
        _balanced(after, self._next)
        np.floor(after[0] + TINY, out=score)
        score += np.floor(after[1] + TINY)
        score *= 0.5
        np.floor(score, out=score)
        gain = self._next - self._balance
        gain *= 0.5
        score += np.floor(gain, out=gain)
        np.putmask(score, full, NOWHERE)
        score *= len(score)
        score -= self._place
        top = score.max(axis=0)
        chosen = (-top).astype(np.int64) % len(score)
        return self._bound(row, chosen, top > NOWHERE, balanced=True)

    def first(self, row: int) -> Ints:
        """Binds a pod of the row to the first machine that has room."""
        full = self._full(row)
        chosen = full.argmin(axis=0)
        return self._bound(row, chosen, ~full[chosen, self._plans], balanced=False)

    def _full(self, row: int) -> Bools:
        """Where a pod of the row may not be; `_after` is what would be left with it."""
        asked = self._asked.get(row)
        if asked is None:
            asked = self._asked[row] = self._ground.asked[:, row, None, None] * self._per
        np.subtract(self._room, asked, out=self._after)
        least = np.minimum(self._after[0], self._after[1])
        for other in self._after[2:]:
            np.minimum(least, other, out=least)
        full: Bools = least < -TINY
        if row in self._ground.choosy:
            if row not in self._open:
                self._open[row] = ~self._ground.goods.allowed[row][self._columns]
            full |= self._open[row]
        if row in self._held:
            full |= self._held[row] >= self._ground.goods.most[row]
        return full

    def _bound(self, row: int, chosen: Ints, bound: Bools, *, balanced: bool) -> Ints:
        where = chosen * len(self._plans) + self._plans
        everybody = bool(bound.all())
        if not everybody:
            where = where[bound]
        for room, after in zip(self._room_of, self._after_of, strict=True):
            room[where] = after.take(where)
        if balanced:
            self._balance.reshape(-1)[where] = self._next.reshape(-1).take(where)
        if row in self._held:
            self._held[row].reshape(-1)[where] += 1
        return chosen if everybody else np.where(bound, chosen, -1)


def _balanced(room: Floats, out: Floats) -> Floats:
    """How evenly cpu and memory are used, as kube-scheduler counts it."""
    np.subtract(room[0], room[1], out=out)
    np.abs(out, out=out)
    out *= -0.5
    out += WHOLE + TINY
    found: Floats = np.floor(out, out=out)
    return found


def few(pods: int) -> int:
    """How many are few among so many pods."""
    return pods * FEW // 1000


def scored(goods: Market) -> list[int]:
    """Which of the resources are cpu and memory."""
    found = {"cpu": 0, "memory": 0}
    for pods in goods.classes:
        for (index, _), name in zip(pods.needs, pods.requests, strict=True):
            if name in found:
                found[name] = index
    return [found["cpu"], found["memory"]]
