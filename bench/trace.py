"""A recorded day in the simulated world: what it costs with each packer, beside what nothing could cost less than.

The trace is `openb_pods.csv` of the data folder, a day of it with the pods that live at its start; GPUs are ignored. The
real autoscaler runs in virtual time, once with each packer, and empty machines are given back after a minute. `cost` is
every machine's price from its creation to its end. `bound` is the integral, over every moment, of the assignment LP for
the pods that live then: fractions of pods on fractions of machines, but no more whole pods on a machine than fit. A
cluster that bought exactly the right machines at every second, moved pods for nothing and started them at once would not
be cheaper. `pending` are pod-seconds from creation to binding.
Seconds are those that the core worked, from the order to the outcome of each run alone; the bound is not among them.
"""

import argparse
import collections
import itertools
import math
import time
from typing import Any, Final

import highspy
import numpy as np

from bench.catalogues import data_file
from growth.api import names
from growth.providers.catalogues import builtin
from growth.sim.campaign import quiet
from growth.sim.runs import run
from growth.sim.scenario import manifests, trace
from growth.sim.scenario.model import QUIET_SECONDS, Order, Recorded, Scenario
from growth.sim.scenario.trace import Life
from growth.units.money import NANO

Array = np.ndarray[Any, np.dtype[np.float64]]

FILE: Final = "openb_pods.csv"
PACKERS: Final = ("first-fit", "cost")
DAY: Final = 86_400
FIRST_DAY: Final = 148
MOST_SECONDS: Final = 300.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--day", type=int, default=FIRST_DAY, help="which day of the trace")
    parser.add_argument("--hours", type=float, default=24.0, help="how much of it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without-bound", action="store_true", help="do not integrate the bound")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    quiet()
    path, since, lasts = data_file(FILE), options.day * DAY, options.hours * 3600.0
    lives = trace.window(trace.read(path), since=since, lasts=lasts)
    least = None if options.without_bound else integral(lives, lasts + QUIET_SECONDS, until=lasts)
    rows = []
    for packer in PACKERS:
        began = time.process_time()
        outcome = run(
            Order(
                seed=options.seed,
                hours=(lasts + QUIET_SECONDS) / 3600.0,
                scenario=Scenario(
                    objects=(_pool(),),
                    workloads=(Recorded(name="trace", file=str(path), since=f"{since}s", lasts=f"{lasts:.0f}s"),),
                    settings={"packer": packer},
                ),
            )
        )
        cost = outcome.cost / NANO
        rows.append(
            {
                "packer": packer,
                "cost": round(cost, 3),
                "bound": None if least is None else round(least, 3),
                "cost / bound": None if least is None else round(cost / least, 3),
                "pending": round(outcome.pending_seconds),
                "evictions": outcome.evictions,
                "bought": outcome.scale_ups,
                "peak machines": outcome.peak_machines,
                "violations": len(outcome.violations),
                "seconds": round(time.process_time() - began, 1),
            }
        )
    return {"pods": len(lives), "at the start": sum(life.begins == 0 for life in lives), "packers": rows}


def failed(result: dict[str, Any]) -> bool:
    """Something broke, or a day took longer than it may."""
    return any(row["violations"] or row["seconds"] > MOST_SECONDS for row in result["packers"])


def integral(lives: tuple[Life, ...], seconds: float, *, until: float) -> float:
    """The bound of the pods that live, integrated over `seconds`; after `until` nobody comes or goes any more."""
    types = [kind for kind in builtin("kwok").types if _is_sold(kind.labels)]
    price = np.array([min(_prices(kind)) for kind in types]) / NANO
    room = np.array(
        [[kind.allocatable[name] for name in ("cpu", "memory", "pods")] for kind in types], dtype=np.float64
    )
    room[:, 1] /= 1 << 20
    ends = {life: life.ends if life.ends < until else math.inf for life in lives}
    times = sorted({life.begins for life in lives} | {end for end in ends.values() if end < until} | {seconds})
    total = 0.0
    for now, then in itertools.pairwise(times):
        alive = collections.Counter(
            (life.cpu_milli, life.memory_mib, 1) for life in lives if life.begins <= now < ends[life]
        )
        if alive:
            total += _least(price, room, alive) * (then - now) / 3600.0
    return total


def _least(price: Array, room: Array, alive: collections.Counter[tuple[int, int, int]]) -> float:
    """The value of the assignment LP: machines by type first, then pods of each shape on each type that holds one."""
    shapes = sorted(alive)
    solve = highspy.Highs()  # type: ignore[no-untyped-call] # as it is
    solve.setOptionValue("output_flag", False)
    for each in price:
        solve.addVar(0.0, highspy.kHighsInf)
        solve.changeColCost(solve.getNumCol() - 1, float(each))
    whole = np.array([np.floor((room / np.array(shape)).min(axis=1)) for shape in shapes])
    pairs = [(shape, kind) for shape in range(len(shapes)) for kind in range(len(price)) if whole[shape, kind] >= 1]
    column = {pair: len(price) + at for at, pair in enumerate(pairs)}
    for _ in pairs:
        solve.addVar(0.0, highspy.kHighsInf)
    for kind in range(len(price)):
        held = [shape for shape in range(len(shapes)) if (shape, kind) in column]
        for resource in range(room.shape[1]):
            values = [-room[kind, resource], *(float(shapes[shape][resource]) for shape in held)]
            _row(solve, -highspy.kHighsInf, 0.0, [kind, *(column[shape, kind] for shape in held)], values)
        for shape in held:
            _row(solve, -highspy.kHighsInf, 0.0, [kind, column[shape, kind]], [-whole[shape, kind], 1.0])
    for shape, key in enumerate(shapes):
        columns = [column[shape, kind] for kind in range(len(price)) if (shape, kind) in column]
        _row(solve, float(alive[key]), float(alive[key]), columns, [1.0] * len(columns))
    solve.run()
    assert solve.getModelStatus() == highspy.HighsModelStatus.kOptimal, "the LP of a moment has no solution"
    return float(solve.getInfo().objective_function_value)


def _row(solve: highspy.Highs, low: float, high: float, columns: list[int], values: list[float]) -> None:
    solve.addRow(low, high, len(columns), np.array(columns, dtype=np.int32), np.array(values, dtype=np.float64))


def _pool() -> dict[str, Any]:
    on_demand = {"key": names.CAPACITY_TYPE_LABEL, "operator": "In", "values": [names.ON_DEMAND]}
    amd64 = {"key": names.ARCH_LABEL, "operator": "In", "values": ["amd64"]}
    return manifests.node_pool("default", requirements=(on_demand, amd64), consolidate_after="60s")


def _is_sold(labels: Any) -> bool:
    return bool(labels[names.ARCH_LABEL] == ("amd64",) and "linux" in labels[names.OS_LABEL])


def _prices(kind: Any) -> list[int]:
    return [each.price for each in kind.offerings if each.price is not None and each.capacity_type == names.ON_DEMAND]
