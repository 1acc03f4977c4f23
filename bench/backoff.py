"""Pods that nothing can hold, thousands of them, in a growth pool whose one type the cloud has none of: what a pass costs.

The whole autoscaler runs in a simulated cluster for virtual hours. Printed is, pass by pass, for how many pods was planned
and in how many steps: at first for all, then for none. Then, with every pod marked and left out, the type can be had
again: the passes are counted until a machine has been asked for for every pod, and it is waited for until every pod runs.
Nothing is timed; virtual seconds are from the creation of the pods, or from when the type was back.
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
PLANNED: Final = "virtual seconds until every pod was planned for after the type was back"
RUNNING: Final = "virtual seconds until every pod ran after the type was back"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pods", type=int, default=10_000)


@dataclasses.dataclass(frozen=True, slots=True)
class Pass:
    at: float
    pods: int
    steps: int
    unplaced: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Virtual times of what happened; None is what did not."""

    began: float
    calm_from: float
    calm_until: float
    back_at: float
    marked_then: int  # pods that carried the mark at `back_at`
    planned_at: float | None
    running_at: float | None


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
    seen = done.value
    calm = [each for each in passes if seen.calm_from <= each.at < seen.calm_until]
    back = [each for each in passes if seen.back_at <= each.at <= (seen.planned_at or each.at)]
    return {
        "pods": options.pods,
        "pods in the first pass": max(each.pods for each in passes[:3]),
        "steps of that pass": max(each.steps for each in passes[:3]),
        "passes until all were marked": sum(each.at < seen.calm_from for each in passes),
        "virtual seconds until all were marked": seen.calm_from - seen.began,
        "passes in the next virtual seconds": [len(calm), CALM_SECONDS],
        "pods planned for in each of them": [each.pods for each in calm],
        "steps of each of them": [each.steps for each in calm],
        "pods marked when the type was back": seen.marked_then,
        PLANNED: _after(seen.planned_at, seen),
        "passes for that": len(back),
        RUNNING: _after(seen.running_at, seen),
    }


def failed(result: dict[str, Any]) -> bool:
    return (
        result["pods marked when the type was back"] != result["pods"]
        or result[PLANNED] is None
        or result[RUNNING] is None
    )


def _after(at: float | None, seen: Seen) -> float | None:
    return None if at is None else at - seen.back_at


async def _main(kernel: Kernel, passes: list[Pass], number: int) -> Seen:
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
    await _all_marked(stage, number)
    calm_from = kernel.time()
    await asyncio.sleep(CALM_SECONDS)
    calm_until = kernel.time()
    await _all_marked(stage, number)  # a probe that was in vain takes its time to be marked again
    marked, back_at = await _marked(stage), kernel.time()
    await stage.admin.delete(CONFIG_MAP, FAULTS_CONFIG_MAP, namespace=GROWTH_NAMESPACE)
    planned_at = running_at = None
    while running_at is None and kernel.time() - back_at <= MOST_SECONDS:
        if planned_at is None and not await _marked(stage) and not passes[-1].unplaced:
            planned_at = kernel.time()
        if planned_at is not None and await _running(stage) == number:
            running_at = kernel.time()
        else:
            await asyncio.sleep(LOOK_SECONDS)
    return Seen(
        began=began,
        calm_from=calm_from,
        calm_until=calm_until,
        back_at=back_at,
        marked_then=marked,
        planned_at=planned_at,
        running_at=running_at,
    )


async def _all_marked(stage: Stage, number: int) -> None:
    began = stage.kernel.time()
    while (marked := await _marked(stage)) < number:
        assert stage.kernel.time() - began < MOST_SECONDS, f"{marked} of {number} pods are marked"
        await asyncio.sleep(LOOK_SECONDS)


async def _marked(stage: Stage) -> int:
    """Pods that carry the mark, or are not there yet to carry it."""
    return sum(names.BACK_OFF_ANNOTATION in each.metadata.annotations for each in (await stage.admin.list(POD)).items)


async def _running(stage: Stage) -> int:
    return sum(each.status.phase == "Running" for each in await stage.pods())
