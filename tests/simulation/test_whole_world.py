"""The whole world: replicas of the real autoscaler, a cloud, a cluster, and somebody who watches every change."""

import asyncio
import collections

from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.workloads import DEPLOYMENT
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.seams import Step
from growth.sim.trials.owning.stage import Pool
from growth.sim.world.cluster import workload
from growth.sim.world.world import World

SECONDS = 100_000


def test_machines_come_for_pods_and_go_after_them() -> None:
    """Ten pods bring machines, all of them run, and without pods no machine is left."""

    async def main(kernel: Kernel) -> tuple[int, int, int, collections.Counter[str]]:
        world = World(kernel)
        seen: collections.Counter[str] = collections.Counter()

        def listen(step: Step) -> None:
            if step.which[1] == "nodeclaims" and step.direct:
                seen[f"{step.verb} by {step.actor.name}"] += 1

        world.witness.listeners.append(listen)
        await world.begin()
        await world.admin.create(NODE_POOL, Pool().body())
        world.start()
        await world.admin.create(DEPLOYMENT, workload("app", 10), namespace="default")
        await asyncio.sleep(600)
        running = sum(pod.status.phase == "Running" for pod in await world.cluster.pods())
        nodes = len((await world.admin.list(NODE)).items)
        await world.admin.patch(DEPLOYMENT, "app", {"spec": {"replicas": 0}}, namespace="default")
        await asyncio.sleep(600)
        left = len((await world.admin.list(NODE)).items) + len((await world.admin.list(NODE_CLAIM)).items)
        world.check()
        return running, nodes, left, seen

    running, nodes, left, seen = sim.run(main, seed=1, limit_seconds=SECONDS).value
    assert (running, left) == (10, 0)
    assert nodes > 0
    assert seen["create by growth-a"] == nodes
    assert seen["delete by growth-a"] == nodes


def test_objects_are_created_by_what_they_say_they_are() -> None:
    """Manifests of built-in and custom kinds become objects of their kinds."""

    async def main(kernel: Kernel) -> list[str]:
        world = World(kernel)
        await world.begin()
        bodies: list[Json] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "kube-system"}},
            Pool(name="two").body(),
        ]
        await world.create(bodies)
        return [pool.metadata.name for pool in (await world.admin.list(NODE_POOL)).items]

    assert sim.run(main, seed=1, limit_seconds=SECONDS).value == ["two"]
