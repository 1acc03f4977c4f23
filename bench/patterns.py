"""The configuration bound: what no plan for some pods can cost less than, however clever it is.

Every plan is a sum of whole machines, each with some whole pods on it. The linear program over all such patterns, machines
in fractions, is solved by column generation; its value, or Farley's bound where it is not solved to the end, is below the
cost of every plan. It sees cpu, memory and the number of pods, what DaemonSets take, and which types a pod may use; it
knows nothing of rules among pods, so it holds with them too.

Offline: minutes are allowed. Nothing here is shared with the packers that are measured against it.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

import highspy
import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]

# The program counts as solved when what is proved is so near to what is reached.
CLOSE: Final = 1e-3
# What pods are worth swings from round to round; patterns are searched for between the best worths so far and the newest.
SMOOTHING: Final = 0.5
ROUNDS: Final = 400
# Of one knapsack: what its search has proved is used, so that stopping early costs tightness and not truth.
NODES: Final = 20_000
GAP: Final = 2e-4


@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """`value` is proved: nothing is cheaper. `reached` is what the patterns found so far cost, in fractions.

    `worth` is what a pod of each class is worth where that was proved.
    """

    value: float
    reached: float
    rounds: int
    worth: Array


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """Pods by class and machines by type. `fits[t, c]`: whether the class may use the type at all.

    `room` is what a machine has for pods, `request` what a pod of the class takes, resource by resource.
    """

    price: Array
    room: Array
    request: Array
    count: Array
    fits: np.ndarray[Any, np.dtype[np.bool_]]


def bound(problem: Problem) -> Bound:
    """The value of the program, from below."""
    problem = undominated(problem)
    master = _Master(problem)
    best, reached, rounds = 0.0, float("inf"), 0
    anchor: Array | None = None
    while rounds < ROUNDS:
        rounds += 1
        reached, worth = master.solve()
        asked = worth if anchor is None else SMOOTHING * anchor + (1 - SMOOTHING) * worth
        columns, excess = _priced(problem, asked)
        if not any(pattern @ worth > problem.price[kind] * (1 + 1e-9) for kind, pattern in columns):
            asked = worth  # in between there was nothing to find
            columns, excess = _priced(problem, asked)
        proved = float(asked @ problem.count) / max(excess, 1.0)
        if proved > best:
            best, anchor = proved, asked
        if best >= reached * (1 - CLOSE) or not columns:
            break
        for kind, pattern in columns:
            master.add(kind, pattern)
    return Bound(
        value=best, reached=reached, rounds=rounds, worth=np.zeros(len(problem.count)) if anchor is None else anchor
    )


def undominated(problem: Problem) -> Problem:
    """Without types that another one beats: at most its price, at least its room, open to at least the same pods."""
    keep = []
    for t in range(len(problem.price)):
        beats = (
            (problem.price <= problem.price[t])
            & (problem.room >= problem.room[t]).all(axis=1)
            & (problem.fits >= problem.fits[t]).all(axis=1)
        )
        equal = (
            (problem.price == problem.price[t])
            & (problem.room == problem.room[t]).all(axis=1)
            & (problem.fits == problem.fits[t]).all(axis=1)
        )
        beats &= ~equal | (np.arange(len(problem.price)) < t)
        if not beats.any():
            keep.append(t)
    return dataclasses.replace(problem, price=problem.price[keep], room=problem.room[keep], fits=problem.fits[keep])


class _Master:
    """The program over the patterns found so far: at least as many of each class as there are pods."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._highs = quiet()
        classes = len(problem.count)
        for amount in problem.count:
            self._highs.addRow(float(amount), highspy.kHighsInf, 0, np.array([], np.int32), np.array([], np.float64))
        seen: set[tuple[int, bytes]] = set()
        self._seen = seen
        for t in range(len(problem.price)):
            for c in range(classes):
                most = _alone(problem, t, c)
                if most:
                    pattern = np.zeros(classes)
                    pattern[c] = most
                    self.add(t, pattern)

    def add(self, kind: int, pattern: Array) -> None:
        key = (kind, pattern.tobytes())
        if key in self._seen:
            return
        self._seen.add(key)
        rows = np.flatnonzero(pattern).astype(np.int32)
        price = float(self._problem.price[kind])
        self._highs.addCol(price, 0.0, highspy.kHighsInf, len(rows), rows, pattern[rows])

    def solve(self) -> tuple[float, Array]:
        """What the patterns cost, and what one pod of each class is worth."""
        self._highs.run()
        status = self._highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise ValueError(f"no machine holds some pod: the program over patterns is {status}")
        duals = np.array(self._highs.getSolution().row_dual)
        return self._highs.getInfo().objective_function_value, np.maximum(duals, 0.0)


def _alone(problem: Problem, kind: int, pods: int) -> int:
    """How many pods of one class a machine of the type holds."""
    if not problem.fits[kind, pods]:
        return 0
    asked = problem.request[pods]
    needs = asked > 0
    most = np.floor(problem.room[kind, needs] / asked[needs] + 1e-9).min()
    return int(min(most, problem.count[pods]))


def _priced(problem: Problem, worth: Array) -> tuple[list[tuple[int, Array]], float]:
    """The best patterns of the types on which one is worth more than its price, and the most worth per price anywhere.

    Types are asked in the order of what they could be worth with fractions of pods, until no other can be better.
    """
    ceilings = [_ceiling(problem, t, worth) / problem.price[t] for t in range(len(problem.price))]
    columns: list[tuple[int, Array]] = []
    most = 0.0
    for t in sorted(range(len(ceilings)), key=lambda t: -ceilings[t]):
        if ceilings[t] <= max(most, 1.0):
            most = max(most, min(ceilings[t], 1.0))
            break
        value, proved, pattern = knapsack(problem, t, worth)
        most = max(most, proved / problem.price[t])
        if value > problem.price[t] * (1 + 1e-9):
            columns.append((t, pattern))
    return columns, most


def _ceiling(problem: Problem, kind: int, worth: Array) -> float:
    """A quick bound of the knapsack: for some prices of the resources no pod earns more than it pays."""
    able = problem.fits[kind] & (worth > 0) & (problem.request <= problem.room[kind] + 1e-9).all(axis=1)
    if not able.any():
        return 0.0
    share = problem.request[able] / np.maximum(problem.room[kind], 1e-12)
    best = float("inf")
    # Any weights of the resources give a bound; these are tried.
    for cpu in np.linspace(0.0, 1.0, 11):
        for pods in (0.0, 0.1, 0.3):
            weights = np.array([cpu * (1 - pods), (1 - cpu) * (1 - pods), pods])
            cost = share @ weights
            order = np.argsort(-worth[able] / np.maximum(cost, 1e-12))
            budget, value = 1.0, 0.0
            for c in order:
                many = min(problem.count[able][c], budget / cost[c] if cost[c] > 0 else problem.count[able][c])
                value += many * worth[able][c]
                budget -= many * cost[c]
                if budget <= 1e-12:
                    break
            best = min(best, value)
    return best


def knapsack(problem: Problem, kind: int, worth: Array) -> tuple[float, float, Array]:
    """The pattern of one machine that is worth most: (its worth, what is proved that none exceeds, the pattern)."""
    able = [c for c in range(len(worth)) if worth[c] > 0 and _alone(problem, kind, c)]
    highs = quiet()
    highs.setOptionValue("mip_rel_gap", GAP)
    highs.setOptionValue("mip_max_nodes", NODES)
    for c in able:
        highs.addVar(0.0, float(_alone(problem, kind, c)))
    number = len(able)
    columns = np.arange(number, dtype=np.int32)
    highs.changeColsIntegrality(number, columns, np.array([highspy.HighsVarType.kInteger] * number))
    highs.changeColsCost(number, columns, -worth[able])
    for r in range(problem.room.shape[1]):
        row = problem.request[able, r]
        highs.addRow(-highspy.kHighsInf, float(problem.room[kind, r]), number, columns, row)
    highs.run()
    info = highs.getInfo()
    pattern = np.zeros(len(worth))
    pattern[able] = np.round(np.array(highs.getSolution().col_value))
    value = float(worth @ pattern)
    return value, max(-info.mip_dual_bound, value), pattern


def quiet() -> highspy.Highs:
    highs: highspy.Highs = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    return highs


def classes_of(requests: Sequence[tuple[float, ...]]) -> tuple[Array, Array]:
    """Distinct requests, and how many pods make each."""
    found, count = np.unique(np.array(requests, dtype=np.float64), axis=0, return_counts=True)
    return found, count.astype(np.float64)
