"""How cheap any plan could be: a bound, and what a pod of each class is worth.

The assignment LP puts fractions of each class on fractions of machines. It knows sizes, labels, taints and how many whole
pods of a class one machine holds; it leaves out everything else (`ignored`), so that no plan that places these pods can
cost less. Free room on existing nodes has no price: it is one heap here, which can only lower the bound.

The bound is a certificate. Whatever vector the solver returns is scaled down until it is feasible for the dual by a
margin far above rounding; only then is its value taken, rounded down. A wrong answer of the solver makes a weak bound,
never a false one.
"""

import dataclasses
from collections.abc import Sequence

import highspy
import numpy as np

from growth.planning.classes import PodClass
from growth.planning.market import Bools, Floats, Ints, Market, grouped
from growth.planning.topology import Rule

# Simplex iterations: the budget is steps. The largest clustered program needs a few thousand.
MOST_ITERATIONS = 30_000
# Far above what double precision loses in sums of a few thousand terms, far below what anybody would miss.
MARGIN = 1e-9
TINY = 1e-30
# A machine that holds fewer whole pods of a class than this wastes what is left over; beyond it the waste is small.
COARSE = 6


@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """`least` is the bound in billionths, None where the solver did not finish; `worth` is by class, in billionths."""

    least: int | None
    worth: Floats


def bound(goods: Market, counts: Ints, *, heap: Ints, on_heap: Sequence[bool]) -> Bound:
    """The least that any plan for `counts` pods of each class can cost.

    `heap` is the free room on existing nodes; `on_heap` says which classes can use it.
    """
    if not len(counts) or not goods.columns:
        return Bound(0, np.zeros(len(counts)))
    rows, members = grouped(goods, least=True)
    usable = np.array([any(on_heap[at] for at in each) for each in members], dtype=np.bool_)
    totals = np.array([counts[each].sum() for each in members], dtype=np.int64)
    program = _Program(rows, totals, heap, usable)
    finished = program.solve()
    worth = program.certified(goods, heap, np.array(on_heap, dtype=np.bool_), members)
    worth_of = np.minimum(worth.each, worth.on_heap)
    value = float(counts @ worth_of) * (1 - MARGIN) - worth.heap * (1 + MARGIN)
    least = max(0, int(np.floor(value))) if finished else None
    return Bound(least, np.where(np.isinf(worth.each), 0.0, worth.each))


@dataclasses.dataclass(frozen=True, slots=True)
class _Worth:
    """What a pod of each class is worth on machines and on the heap, and what the heap is worth."""

    each: Floats
    on_heap: Floats
    heap: float


def solver() -> highspy.Highs:
    """A simplex solver that takes equal steps for equal programs, and no more of them than it may."""
    solve = highspy.Highs()  # type: ignore[no-untyped-call] # as it is
    for name, value in (
        ("output_flag", False),
        ("threads", 1),
        ("parallel", "off"),
        ("solver", "simplex"),
        ("random_seed", 0),
        ("simplex_iteration_limit", MOST_ITERATIONS),
    ):
        solve.setOptionValue(name, value)
    return solve


class _Program:
    """The LP: machines first, then pods on columns, then pods on the heap."""

    def __init__(self, goods: Market, counts: Ints, heap: Ints, usable: Bools) -> None:
        self._goods = goods
        self._counts = counts
        self._heap = heap
        self._usable = usable
        whole = goods.whole()
        self._whole = whole
        self._pairs = np.argwhere(whole > 0)  # (class, column)
        coarse = whole[self._pairs[:, 0], self._pairs[:, 1]] < COARSE
        self._coarse = np.flatnonzero(coarse)
        self._scale = np.maximum(goods.rooms.max(axis=0, initial=1), 1).astype(np.float64)
        self._money = max(1.0, float(goods.prices.max(initial=1)))
        self._duals: Floats = np.zeros(0)

    def solve(self) -> bool:
        """Whether the solver finished; its duals are kept either way."""
        goods, pairs, coarse = self._goods, self._pairs, self._coarse
        machines, resources, classes = len(goods.columns), goods.needs.shape[1], len(goods.classes)
        heaped = np.flatnonzero(self._usable)
        room_rows = machines * resources
        heap_at, demand_at = room_rows, room_rows + resources
        coarse_at = demand_at + classes
        rows: list[Ints] = []
        columns: list[Ints] = []
        values: list[Floats] = []

        def put(row: Ints, column: Ints, value: Floats) -> None:
            rows.append(row)
            columns.append(column)
            values.append(value)

        of_pair = machines + np.arange(len(pairs))
        of_heap = machines + len(pairs) + np.arange(len(heaped))
        for resource in range(resources):
            scale = self._scale[resource]
            put(
                np.arange(machines) * resources + resource,
                np.arange(machines),
                -goods.rooms[:, resource] / scale,
            )
            put(pairs[:, 1] * resources + resource, of_pair, goods.needs[pairs[:, 0], resource] / scale)
            put(np.full(len(heaped), heap_at + resource), of_heap, goods.needs[heaped, resource] / scale)
        put(demand_at + pairs[:, 0], of_pair, -np.ones(len(pairs)))
        put(demand_at + heaped, of_heap, -np.ones(len(heaped)))
        each = np.arange(len(coarse))
        put(coarse_at + each, of_pair[coarse], np.ones(len(coarse)))
        most = self._whole[pairs[coarse, 0], pairs[coarse, 1]].astype(np.float64)
        put(coarse_at + each, pairs[coarse, 1], -most)
        upper = np.concatenate(
            [np.zeros(room_rows), self._heap / self._scale, -self._counts.astype(np.float64), np.zeros(len(coarse))]
        )
        cost = np.concatenate([goods.prices / self._money, np.zeros(len(pairs) + len(heaped))])
        self._at = (heap_at, demand_at, coarse_at)
        return self._run(cost, upper, np.concatenate(rows), np.concatenate(columns), np.concatenate(values))

    def _run(self, cost: Floats, upper: Floats, rows: Ints, columns: Ints, values: Floats) -> bool:
        kept = values != 0
        rows, columns, values = rows[kept], columns[kept], values[kept]
        order = np.lexsort((rows, columns))
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(cost), len(upper)
        program.col_cost_ = cost
        program.col_lower_ = np.zeros(len(cost))
        program.col_upper_ = np.full(len(cost), highspy.kHighsInf)
        program.row_lower_ = np.full(len(upper), -highspy.kHighsInf)
        program.row_upper_ = upper
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = np.searchsorted(columns[order], np.arange(len(cost) + 1)).astype(np.int32)
        program.a_matrix_.index_ = rows[order].astype(np.int32)
        program.a_matrix_.value_ = values[order]
        solve = solver()
        solve.passModel(program)
        solve.run()
        self._duals = -np.array(solve.getSolution().row_dual, dtype=np.float64)
        return bool(solve.getModelStatus() == highspy.HighsModelStatus.kOptimal)

    def certified(
        self,
        goods: Market,
        heap: Ints,
        on_heap: Bools,
        members: list[list[int]],
    ) -> _Worth:
        """The solver's vector made feasible for the dual of the program of the classes themselves, not of the rows."""
        machines, resources = self._goods.rooms.shape
        if len(self._duals) == 0:
            return _Worth(np.zeros(len(goods.classes)), np.zeros(len(goods.classes)), 0.0)
        duals = np.maximum(self._duals, 0) * self._money
        heap_at, _, coarse_at = self._at
        of_room = duals[:heap_at].reshape(machines, resources) / self._scale
        of_heap = duals[heap_at : heap_at + resources] / self._scale
        of_whole = np.zeros(self._whole.shape)
        pairs = self._pairs[self._coarse]
        of_whole[pairs[:, 0], pairs[:, 1]] = duals[coarse_at:]
        load = (of_room * self._goods.rooms).sum(axis=1) + (of_whole * self._whole).sum(axis=0)
        fit = np.minimum(1.0, self._goods.prices * (1 - MARGIN) / np.maximum(load, TINY))
        of_room *= fit[:, None]
        of_whole *= fit
        row_of = np.zeros(len(goods.classes), dtype=np.int64)
        for row, each in enumerate(members):
            row_of[each] = row
        needs = goods.needs.astype(np.float64)
        on_columns = needs @ of_room.T + of_whole[row_of]
        each_worth = np.where(self._whole[row_of] > 0, on_columns, np.inf).min(axis=1)
        heap_worth = np.where(on_heap, needs @ of_heap, np.inf)
        nowhere = np.isinf(each_worth) & np.isinf(heap_worth)
        each_worth[nowhere] = 0.0  # no plan places such pods: they may be worth nothing
        return _Worth(each_worth, heap_worth, float(heap @ of_heap))


def ignored(classes: Sequence[tuple[PodClass, int]]) -> tuple[str, ...]:
    """The rules that the bound leaves out, in words, with how many pods they are about."""
    found: dict[str, int] = {}
    for pods, number in classes:
        for word in sorted(_words(pods)):
            found[word] = found.get(word, 0) + number
    return tuple(f"{word} of {number:,} {'pod' if number == 1 else 'pods'}" for word, number in sorted(found.items()))


def _words(pods: PodClass) -> set[str]:
    words = {"preferences"} if len(pods.variants) > 1 else set()
    for group in pods.variants[-1].rules:
        where = "host" if group.by_host else "zone" if group.key.endswith("/zone") else group.key
        match group.rule:
            case Rule.SPREAD:
                words.add(f"{where} spread")
            case Rule.AFFINITY:
                words.add(f"{where} affinity")
            case Rule.ANTI_AFFINITY | Rule.KEEPS_AWAY:
                if not (group.by_host and pods.selects_itself(group)):
                    words.add(f"{where} anti-affinity")
    if pods.kept_away and not pods.keeps_away:
        words.add("anti-affinity of others")
    if pods.volumes.attach or pods.volumes.fresh or pods.volumes.alone or pods.places:
        words.add("volumes")
    return words
