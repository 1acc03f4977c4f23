"""Pods that are told their machines: the cheapest plan is tight, and kube-scheduler alone would not follow it."""

import asyncio
import collections
import dataclasses
from collections.abc import Awaitable, Callable
from typing import TypeVar

from growth.api.karpenter import NODE_POOL
from growth.api.kinds import Json
from growth.api.pods import POD
from growth.api.workloads import DEPLOYMENT
from growth.cluster.shapes import CachedPod
from growth.controllers.lifecycle import Lifecycle
from growth.kube.errors import Forbidden
from growth.kube.passing import PassingApi, Write
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.seams import Step
from growth.sim.trials.owning.stage import Pool
from growth.sim.world.cluster import workload
from growth.sim.world.world import World
from tests.manifests import pod
from tests.simulation.owning import Stage, on_stage

R = TypeVar("R")
SECONDS = 100_000


def _sized(name: str, replicas: int, cpu: str) -> Json:
    body = workload(name, replicas)
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    return body


def test_a_tight_plan_is_filled_as_it_was_made() -> None:
    """Small pods come first, and over machines that are ready at once kube-scheduler would spread them, so that no large one
    finds room. They are told where to go, everybody runs, and nothing is bought twice.
    """

    async def main(kernel: Kernel) -> tuple[int, int, int]:
        bought = 0
        world = World(kernel)
        named: collections.Counter[str] = collections.Counter()

        def listen(step: Step) -> None:
            nonlocal bought
            bought += step.which[1] == "nodeclaims" and step.verb == "create"
            if step.which[1] == "pods" and step.actor.is_growth and step.new is not None:
                named[step.new["status"].get("nominatedNodeName", "")] += 1

        world.witness.listeners.append(listen)
        await world.begin()
        await world.admin.create(NODE_POOL, Pool(sizes=("4",)).body())
        world.start()
        await world.admin.create(DEPLOYMENT, _sized("small", 40, "900m"), namespace="default")
        await world.admin.create(DEPLOYMENT, _sized("wide", 10, "3500m"), namespace="default")
        await asyncio.sleep(300)
        running = sum(each.status.phase == "Running" for each in await world.cluster.pods())
        world.check()
        return running, bought, sum(named.values())

    running, bought, named = sim.run(main, seed=1, limit_seconds=SECONDS).value
    assert (running, bought) == (50, 20)
    assert named > 0


class Forbidding(PassingApi):
    """Whoever may not write the status of pods."""

    async def _write(self, write: Write, send: Callable[[], Awaitable[R]]) -> R:
        if write.kind is POD:
            raise Forbidden("pods/status is not for you")
        return await send()


async def _waiting(stage: Stage) -> list[CachedPod]:
    for name in ("a", "b"):
        await stage.admin.create(POD, pod(name), namespace="default")
    await asyncio.sleep(1)
    return list(stage.env.state.pods.store)


async def _nominated(stage: Stage) -> list[str]:
    return [each.status.nominated_node_name for each in (await stage.admin.list(POD)).items]


def test_names_are_written_before_the_node_opens() -> None:
    """At that moment, and not before: who is tried while the node is closed would lose its name."""

    async def body(stage: Stage) -> list[list[str]]:
        await stage.start(Lifecycle(stage.env))
        stage.env.planned.keep("web-1", await _waiting(stage))
        await stage.add_claim()
        await asyncio.sleep(1)
        await stage.join(ready=False)
        await asyncio.sleep(8)
        seen = [await _nominated(stage)]
        await stage.set_ready()
        await asyncio.sleep(1)
        seen.append(await _nominated(stage))
        return seen

    assert on_stage(body).value == [["", ""], ["node-1", "node-1"]]


def test_who_has_found_a_place_is_told_nothing() -> None:
    """Nor who is gone, or waits for a node that kube-scheduler empties for it."""

    async def body(stage: Stage) -> list[str]:
        await stage.start(Lifecycle(stage.env))
        stage.env.planned.keep("web-1", await _waiting(stage))
        await stage.admin.patch(
            POD, "a", {"status": {"nominatedNodeName": "other"}}, namespace="default", subresource="status"
        )
        await stage.admin.bind("b", namespace="default", node="other")
        await stage.add_claim()
        await stage.join()
        await asyncio.sleep(5)
        return await _nominated(stage)

    assert on_stage(body).value == ["other", ""]


def test_without_the_right_to_it_nodes_open_all_the_same() -> None:
    """It is a hint: kube-scheduler binds the pods as it likes."""

    async def body(stage: Stage) -> tuple[list[str], str]:
        env = dataclasses.replace(stage.env, api=Forbidding(stage.env.api))
        await stage.start(Lifecycle(env))
        env.planned.keep("web-1", await _waiting(stage))
        await stage.add_claim()
        await stage.join()
        await asyncio.sleep(5)
        assert env.planned.refused, "no tight plan is made any more"
        return await _nominated(stage), (await stage.claim()).status.node_name

    assert on_stage(body).value == (["", ""], "node-1")
