"""Small random instances solved exactly: lowerBound ≤ optimum ≤ objective, and the bound's linear program solved twice.

At most 12 pods and 5 types. The optimum is an integer program over all sets of pods that fit on one machine. The second
linear program is written here from its definition (fractions of classes on fractions of machines, and never more of a
class on a machine than whole pods fit where those are few) and shares nothing with the one in `planning`; the two agree
to a part in a million. It ends with 1 where one instance does not.
"""

import argparse
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import highspy
import numpy as np

from growth.api import names
from growth.api.instance_types import InstanceType, Offering
from growth.api.meta import ObjectMeta, ResourceList
from growth.api.pods import Container, Pod, PodSpec, ResourceRequirements
from growth.api.pools import PoolRef
from growth.cluster.shapes import Shapes
from growth.cluster.snapshot import Demand, PoolView, Snapshot
from growth.planning.solve import Options, solve

MIB: Final = 1 << 20
CPU_MILLI: Final = (100, 250, 500, 700, 1000, 1500, 2500, 3900)
MEMORY_MIB: Final = (128, 500, 1024, 1500, 3000, 6000)
SIZES: Final = ((1000, 2048), (2000, 2048), (2000, 4096), (2000, 16384), (4000, 4096), (4000, 8192), (8000, 32768))
# Below so many whole pods of a class a machine cannot be filled with it evenly.
COARSE: Final = 6
AGREE: Final = 1e-6

Size = tuple[int, int, int]  # thousandths of a core, MiB, pods


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--instances", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    wrong: list[str] = []
    above, below, apart = 0.0, 0.0, 0.0
    optimal = 0
    for seed in range(options.first, options.first + options.instances):
        instance = Instance(seed)
        plan = solve(instance.snapshot(), instance.demands(), Options(packer="cost", node_cost=instance.node_cost))
        best = instance.optimum()
        if plan.lower_bound is None or plan.objective is None or plan.unplaced:
            wrong.append(f"seed {seed}: no bound, or pods without a place")
            continue
        if not plan.lower_bound <= best <= plan.objective:
            wrong.append(f"seed {seed}: {plan.lower_bound} ≤ {best} ≤ {plan.objective} does not hold")
        again = instance.assignment()
        apart = max(apart, abs(plan.lower_bound - again) / again)
        if abs(plan.lower_bound - again) > AGREE * again:
            wrong.append(f"seed {seed}: the bound is {plan.lower_bound}, the second program says {again:.0f}")
        optimal += best == plan.objective
        above += plan.objective / best - 1
        below += 1 - plan.lower_bound / best
    number = options.instances
    return {
        "instances": number,
        "exactly optimal": optimal,
        "objective above the optimum, mean %": 100 * above / number,
        "bound below the optimum, mean %": 100 * below / number,
        "bounds apart at most": f"{apart:.1e}",
        "wrong": "; ".join(wrong[:10]) or "none",
    }


def failed(result: Mapping[str, Any]) -> bool:
    return bool(result["wrong"] != "none")


class Instance:
    """One instance: equal seeds, equal instances. Every pod fits on some type."""

    def __init__(self, seed: int) -> None:
        drawn = random.Random(seed)
        sizes = drawn.sample(SIZES, drawn.randint(1, 5))
        self.node_cost = drawn.choice((0, 0, 5_000_000))
        self._types: list[tuple[Size, int]] = [
            (
                (cpu, memory, drawn.choice((4, 8, 110))),
                drawn.randint(90, 130) * (20 * cpu + 3 * memory) // 100 * 1000,
            )
            for cpu, memory in sizes
        ]
        kinds = [(drawn.choice(CPU_MILLI), drawn.choice(MEMORY_MIB)) for _ in range(drawn.randint(1, 5))]
        fitting = [kind for kind in kinds if any(_fits((*kind, 1), room) for room, _ in self._types)]
        self._pods = [drawn.choice(fitting or [(100, 128)]) for _ in range(drawn.randint(1, 12))]

    def snapshot(self) -> Snapshot:
        kinds = tuple(
            InstanceType(
                name=f"type-{at}",
                labels={names.ARCH_LABEL: ("amd64",), names.OS_LABEL: ("linux",)},
                capacity={"cpu": room[0], "memory": room[1] * MIB, "pods": room[2]},
                offerings=(Offering("a", names.ON_DEMAND, price),),
            )
            for at, (room, price) in enumerate(self._types)
        )
        return Snapshot(currency="EUR", pools=(PoolView(ref=PoolRef.karpenter("default"), instance_types=kinds),))

    def demands(self) -> list[Demand]:
        shapes = Shapes()
        return [
            Demand(f"default/pod-{at:02}", shapes.shape(_pod(f"pod-{at:02}", cpu, memory)))
            for at, (cpu, memory) in enumerate(self._pods)
        ]

    def _classes(self) -> list[tuple[Size, int]]:
        return [((*kind, 1), self._pods.count(kind)) for kind in sorted(set(self._pods))]

    def optimum(self) -> int:
        """The least that machines for all pods cost, their nodes included, in billionths."""
        classes = self._classes()
        columns = list(self._loads(classes))
        program = _quiet()
        for _, number in classes:
            program.addRow(float(number), highspy.kHighsInf, 0, np.array([], np.int32), np.array([], np.float64))
        for load, price in columns:
            rows = np.flatnonzero(load).astype(np.int32)
            program.addCol(price / 1e9, 0.0, 12.0, len(rows), rows, np.array(load, dtype=np.float64)[rows])
        every = np.arange(len(columns), dtype=np.int32)
        program.changeColsIntegrality(len(every), every, np.array([highspy.HighsVarType.kInteger] * len(every)))
        program.setOptionValue("mip_rel_gap", 0.0)
        program.setOptionValue("mip_abs_gap", 0.0)
        program.run()
        bought = np.round(np.array(program.getSolution().col_value)).astype(int).tolist()
        return sum(times * price for times, (_, price) in zip(bought, columns, strict=True))

    def _loads(self, classes: Sequence[tuple[Size, int]]) -> Iterator[tuple[tuple[int, ...], int]]:
        """Everything that fits on one machine, with the cheapest that holds it."""
        for load in itertools.product(*(range(number + 1) for _, number in classes)):
            together = tuple(
                sum(times * size[r] for times, (size, _) in zip(load, classes, strict=True)) for r in range(3)
            )
            prices = [price + self.node_cost for room, price in self._types if _fits(together, room)]
            if any(load) and prices:
                yield load, min(prices)

    def assignment(self) -> float:
        """The value of the assignment program, in billionths."""
        classes = self._classes()
        program = _quiet()
        machines: list[int] = []
        for _, price in self._types:
            program.addVar(0.0, highspy.kHighsInf)
            machines.append(len(machines))
            program.changeColCost(machines[-1], (price + self.node_cost) / 1e9)
        on: dict[tuple[int, int], int] = {}
        for c, (size, _) in enumerate(classes):
            for t, (room, _) in enumerate(self._types):
                if _fits(size, room):
                    on[c, t] = len(machines) + len(on)
                    program.addVar(0.0, highspy.kHighsInf)
        for c, (_, number) in enumerate(classes):
            mine = [at for (which, _), at in on.items() if which == c]
            _row(program, float(number), highspy.kHighsInf, dict.fromkeys(mine, 1.0))
        for t, (room, _) in enumerate(self._types):
            for r in range(3):
                used = {at: float(classes[c][0][r]) for (c, which), at in on.items() if which == t}
                _row(program, -highspy.kHighsInf, 0.0, {**used, machines[t]: -float(room[r])})
        for (c, t), at in on.items():
            whole = min(room // asked for room, asked in zip(self._types[t][0], classes[c][0], strict=True))
            if whole < COARSE:
                _row(program, -highspy.kHighsInf, 0.0, {at: 1.0, machines[t]: -float(whole)})
        program.run()
        return float(program.getInfo().objective_function_value) * 1e9


def _fits(asked: Sequence[int], room: Sequence[int]) -> bool:
    return all(one <= other for one, other in zip(asked, room, strict=True))


def _row(program: highspy.Highs, low: float, high: float, values: Mapping[int, float]) -> None:
    columns = np.array(list(values), dtype=np.int32)
    program.addRow(low, high, len(columns), columns, np.array(list(values.values()), dtype=np.float64))


def _pod(name: str, cpu: int, memory: int) -> Pod:
    requests: ResourceList = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    container = Container(name="main", resources=ResourceRequirements(requests=requests))
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=PodSpec(containers=(container,)))


def _quiet() -> highspy.Highs:
    program: highspy.Highs = highspy.Highs()  # type: ignore[no-untyped-call] # as it is
    program.setOptionValue("output_flag", False)
    program.setOptionValue("threads", 1)
    return program
