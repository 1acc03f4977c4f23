"""Pods that nothing can hold, thousands of them, in a growth pool whose one type the cloud has none of: what a pass costs.

The whole autoscaler runs in a simulated cluster for virtual hours. Printed is, pass by pass, for how many pods was planned
and in how many steps: at first for all, then for none. Then the type can be had again, and the passes are counted until a
machine has been asked for for every pod. Nothing is timed; virtual seconds are from the creation of the pods.
"""

import argparse
import asyncio
import dataclasses
import sys
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

from growth.api import names
from growth.api.core import CONFIG_MAP
from growth.api.growthpools import GROWTH_POOL
from growth.api.pods import POD
from growth.controllers.provisioning.passes import Answer
from growth.kube.lease import LeaseLost
from growth.operator import logs
from growth.ports import SystemClock
from growth.providers.catalogues import builtin
from growth.providers.kwok.faults import FAULTS_CONFIG_MAP
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.ports import SimCompute
from growth.sim.trials.owning.life import Life
from growth.sim.trials.owning.stage import GROWTH_NAMESPACE, Stage

P = ParamSpec("P")
R = TypeVar("R")

TYPE: Final = "cax41"
LOOK_SECONDS: Final = 60.0
CALM_SECONDS: Final = 1200.0
MOST_SECONDS: Final = 7200.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pods", type=int, default=10_000)


@dataclasses.dataclass(frozen=True, slots=True)
class Pass:
    at: float
    pods: int
    steps: int
    unplaced: int


class Counting(SimCompute):
    """Notes of each plan for whom it was made."""

    def __init__(self, kernel: Kernel, passes: list[Pass]) -> None:
        super().__init__()
        self._kernel = kernel
        self._passes = passes

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        result = await super().run(function, *args, **kwargs)
        if isinstance(result, Answer):
            plan = result.plan
            steps, unplaced = (plan.steps, len(plan.unplaced)) if plan is not None else (0, 0)
            self._passes.append(Pass(self._kernel.time(), len(result.pods), steps, unplaced))
        return result


def measure(options: argparse.Namespace) -> dict[str, Any]:
    logs.configure(clock=SystemClock(), stream=sys.stderr, level="error")
    passes: list[Pass] = []
    done = sim.run(lambda kernel: _main(kernel, passes, options.pods), seed=1, limit_seconds=100_000)
    marked_after, calm_from, calm_until, all_after = done.value
    calm = [each for each in passes if calm_from <= each.at < calm_until]
    back = [each for each in passes if each.at >= calm_until]
    return {
        "pods": options.pods,
        "pods in the first pass": max(each.pods for each in passes[:3]),
        "steps of that pass": max(each.steps for each in passes[:3]),
        "passes until all were marked": sum(each.at < calm_from for each in passes),
        "virtual seconds until all were marked": marked_after,
        "passes in the next virtual seconds": [len(calm), CALM_SECONDS],
        "pods planned for in each of them": [each.pods for each in calm],
        "steps of each of them": [each.steps for each in calm],
        "virtual seconds until every pod was planned for after the type was back": all_after,
        "passes for that": len(back),
    }


def failed(result: dict[str, Any]) -> bool:
    return result["virtual seconds until every pod was planned for after the type was back"] is None


async def _main(kernel: Kernel, passes: list[Pass], number: int) -> tuple[float, float, float, float | None]:
    stage = Stage(kernel, forgiven=(LeaseLost,))
    await stage.prepare()
    pool = {
        "apiVersion": GROWTH_POOL.api_version,
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"serverTypes": [{"name": TYPE, "max": number}]},
    }
    await stage.admin.create(GROWTH_POOL, pool)
    fault = {"metadata": {"name": FAULTS_CONFIG_MAP}, "data": {"noCapacity": f"{TYPE}/*/*"}}
    await stage.admin.create(CONFIG_MAP, fault, namespace=GROWTH_NAMESPACE)
    life = Life(catalogue=builtin("hetzner"), compute=lambda: Counting(kernel, passes))
    stage.start("growth", life)
    await stage.deploy("many", number, cpu="100m", memory="64Mi")
    began = kernel.time()
    while await _marked(stage) < number:
        assert kernel.time() - began < MOST_SECONDS, f"{await _marked(stage)} of {number} pods are marked"
        await asyncio.sleep(LOOK_SECONDS)
    calm_from = kernel.time()
    await asyncio.sleep(CALM_SECONDS)
    calm_until = kernel.time()
    await stage.admin.delete(CONFIG_MAP, FAULTS_CONFIG_MAP, namespace=GROWTH_NAMESPACE)
    while await _marked(stage) or passes[-1].unplaced:
        if kernel.time() - calm_until > MOST_SECONDS:
            return calm_from - began, calm_from, calm_until, None
        await asyncio.sleep(LOOK_SECONDS)
    return calm_from - began, calm_from, calm_until, kernel.time() - calm_until


async def _marked(stage: Stage) -> int:
    """Pods that carry the mark, or are not there yet to carry it."""
    return sum(names.BACK_OFF_ANNOTATION in each.metadata.annotations for each in (await stage.admin.list(POD)).items)
