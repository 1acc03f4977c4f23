"""The integer bound: what no plan of whole machines can cost less than, however its pods are bound.

The configuration bound (`bench.patterns`) lets machines come in fractions. Here their numbers are whole. Let pods be worth
something, whatever it is; a machine then holds at most the worth of its best filling, so that

    the sum over machines of their best filling is at least the worth of all pods

holds for every plan. An integer program finds the cheapest numbers of machines that pass many such tests: with the worths
of the configuration bound, with every resource by itself, with pairs of resources, and with the large pods alone. What it
proves is a bound, and so is the configuration bound: the larger of the two counts. Where it exceeds the line that a cell is held to, no
planner can reach the line.

Offline: minutes are allowed. Nothing here is shared with the packers that are measured against it.
"""

from collections.abc import Iterator
from typing import Final

import highspy
import numpy as np

from bench import patterns
from bench.patterns import Array, Problem

# Branching nodes and seconds of the program: what is proved by then is used, so that stopping costs tightness, not truth.
NODES: Final = 200_000
SECONDS: Final = 60.0
# Pods are large that take more than one part in so many of the largest machine.
LARGE: Final = (2, 3, 4)
# Room for rounding in sums of a few thousand terms.
MARGIN: Final = 1e-7


def integer_bound(problem: Problem, found: patterns.Bound) -> float:
    """The bound; `found` is the configuration bound of the same problem."""
    problem = patterns.undominated(problem)
    program = patterns.quiet()
    program.setOptionValue("mip_rel_gap", 1e-4)
    program.setOptionValue("mip_max_nodes", NODES)
    program.setOptionValue("time_limit", SECONDS)
    number = len(problem.price)
    columns = np.arange(number, dtype=np.int32)
    for _ in range(number):
        program.addVar(0.0, highspy.kHighsInf)
    program.changeColsIntegrality(number, columns, np.array([highspy.HighsVarType.kInteger] * number))
    program.changeColsCost(number, columns, problem.price)
    for worth in _worths(problem, found.worth):
        best = np.array([_best_filling(problem, kind, worth) for kind in range(number)])
        program.addRow(float(worth @ problem.count) * (1 - MARGIN), highspy.kHighsInf, number, columns, best)
    program.run()
    proved = float(program.getInfo().mip_dual_bound)
    return max(found.value, proved * (1 - MARGIN) if np.isfinite(proved) else 0.0)


def _worths(problem: Problem, duals: Array) -> Iterator[Array]:
    """What pods may be worth: each gives one test."""
    yield duals
    share = problem.request / np.maximum(problem.request.max(axis=0), 1e-12)
    resources = share.shape[1]
    for resource in range(resources):
        yield share[:, resource]
    for part in (0.25, 0.5, 0.75):
        yield part * share[:, 0] + (1 - part) * share[:, 1]
    largest = problem.room.max(axis=0)
    for parts in LARGE:
        large = (problem.request > largest / parts).any(axis=1)
        if large.any():
            yield large.astype(np.float64)
            yield np.where(large, duals, 0.0)


def _best_filling(problem: Problem, kind: int, worth: Array) -> float:
    """No filling of the machine is worth more; proved."""
    able = problem.fits[kind] & (worth > 0) & (problem.request <= problem.room[kind] + 1e-9).all(axis=1)
    if not able.any():
        return 0.0
    return patterns.knapsack(problem, kind, worth)[1]
