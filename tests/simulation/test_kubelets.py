"""Stand-in kubelets: whom they play, and what they do for pods."""

import asyncio
import collections

from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.api.workloads import JOB
from growth.kube.memory import MemoryApi
from growth.providers.kwok.kubelets import Kubelets, KubeletSettings
from growth.providers.kwok.records import NEVER_READY_ANNOTATION
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.ports import SimRandom
from growth.sim.world.cluster import SimCluster


def pod(name: str, node: str, *, job: str = "", grace: int = 30) -> Json:
    """`job` is the uid of the Job that owns it."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": job, "controller": True}
    return {
        "metadata": {"name": name, **({"ownerReferences": [owner]} if job else {})},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": grace,
            "restartPolicy": "Never" if job else "Always",
            "containers": [{"name": "main", "image": "example"}],
        },
    }


async def phases(cluster: SimCluster) -> dict[str, str]:
    return {each.metadata.name: each.status.phase for each in await cluster.pods()}


async def ready(cluster: SimCluster) -> set[str]:
    nodes = (await cluster.admin.list(NODE)).items
    return {
        node.metadata.name
        for node in nodes
        if any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
    }


def test_pods_of_jobs_succeed_and_others_go_on() -> None:
    """A Job's pod runs for its time and is Succeeded, with a container that ended well; a plain pod stays Running."""

    async def main(kernel: Kernel) -> None:
        cluster = SimCluster(kernel)
        cluster.start()
        await cluster.add_node("one")
        spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example"}]}}}
        job = await cluster.admin.create(JOB, {"metadata": {"name": "job"}, "spec": spec}, namespace="default")
        for body in (pod("job", "one", job=job.metadata.uid), pod("plain", "one")):
            await cluster.admin.create(POD, body, namespace="default")
        await asyncio.sleep(8)
        assert await phases(cluster) == {"job": "Running", "plain": "Running"}
        await asyncio.sleep(60)
        assert await phases(cluster) == {"job": "Succeeded", "plain": "Running"}
        raw = await cluster.admin.get(POD.raw, "job", namespace="default")
        assert raw["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
        assert cluster.kubelets.statistics().finished == 1

    sim.run(main, seed=1)


def test_only_the_nodes_with_the_labels_are_played() -> None:
    """Another kubelet's node is left alone, and so are its pods."""

    async def main(kernel: Kernel) -> None:
        cluster = SimCluster(kernel)
        api = MemoryApi(cluster.server, user="growth-kwok")
        kubelets = Kubelets(api, clock=cluster.clock, random=SimRandom(1, "kubelets"), labels="mine=yes")
        kernel.create_task(kubelets.run())
        await cluster.admin.create(POD, pod("early", "ours"), namespace="default")
        await asyncio.sleep(5)
        await cluster.add_node("ours", labels={"mine": "yes"})
        await cluster.add_node("theirs")
        await cluster.admin.create(POD, pod("other", "theirs"), namespace="default")
        await asyncio.sleep(30)
        assert await ready(cluster) == {"ours"}
        assert await phases(cluster) == {"early": "Running", "other": "Pending"}
        await cluster.admin.delete(POD, "other", namespace="default")
        await cluster.admin.delete(POD, "early", namespace="default")
        await asyncio.sleep(30)
        assert await phases(cluster) == {"other": "Pending"}

    sim.run(main, seed=1)


def test_a_broken_kubelet_is_not_played_and_a_silent_one_comes_back() -> None:
    """Never ready means never; a silenced machine's pods wait and go on when it answers again."""

    async def main(kernel: Kernel) -> None:
        cluster = SimCluster(kernel)
        cluster.start()
        await cluster.add_node("broken")
        await cluster.admin.patch(NODE, "broken", {"metadata": {"annotations": {NEVER_READY_ANNOTATION: "true"}}})
        await cluster.add_node("silent")
        await asyncio.sleep(20)
        assert await ready(cluster) == {"silent"}
        cluster.kubelets.silence("silent")
        await cluster.admin.create(POD, pod("late", "silent"), namespace="default")
        await asyncio.sleep(120)
        assert await ready(cluster) == set()
        assert await phases(cluster) == {"late": "Pending"}
        cluster.kubelets.revive("silent")
        await asyncio.sleep(30)
        assert await ready(cluster) == {"silent"}
        assert await phases(cluster) == {"late": "Running"}

    sim.run(main, seed=1)


def test_kubelets_go_on_after_a_restart() -> None:
    """New ones take up the heartbeats of ready nodes, and what their pods were waiting for."""

    async def main(kernel: Kernel) -> None:
        cluster = SimCluster(kernel)

        def begun(name: str) -> tuple[Kubelets, "asyncio.Task[None]"]:
            api = MemoryApi(cluster.server, user=name)
            kubelets = Kubelets(api, clock=cluster.clock, random=SimRandom(1, name), settings=KubeletSettings())
            return kubelets, kernel.create_task(kubelets.run())

        _, running = begun("first")
        await cluster.add_node("one")
        await cluster.admin.create(POD, pod("stays", "one"), namespace="default")
        await asyncio.sleep(30)
        running.cancel()
        await asyncio.wait((running,))
        await cluster.admin.delete(POD, "stays", namespace="default")
        await cluster.admin.create(POD, pod("new", "one"), namespace="default")
        again, _ = begun("second")
        await asyncio.sleep(30)
        assert await phases(cluster) == {"new": "Running"}
        assert again.statistics().heartbeats >= 3
        assert again.statistics().ready == 0

    sim.run(main, seed=1)


def test_each_thing_is_said_once() -> None:
    """A node that comes up and its pods cost one status each, whatever else changes about them meanwhile."""

    async def main(kernel: Kernel) -> None:
        cluster = SimCluster(kernel)
        cluster.start()
        for number in range(20):
            await cluster.add_node(f"n{number}")
            for index in range(3):
                await cluster.admin.create(POD, pod(f"p{number}-{index}", f"n{number}"), namespace="default")
        for _ in range(10):
            for number in range(20):
                body = {"metadata": {"labels": {"now": str(int(kernel.time() * 1000))}}}
                await cluster.admin.patch(NODE, f"n{number}", body)
            await asyncio.sleep(0.7)
        await asyncio.sleep(30)
        told = cluster.kubelets.statistics()
        assert (told.ready, told.started, told.failed) == (20, 60, 0)
        assert collections.Counter((await phases(cluster)).values()) == {"Running": 60}

    sim.run(main, seed=1)
