"""The parts of the simulated cluster beside ReplicaSets: Jobs, DaemonSets, volumes, preemption, preferences, taints."""

import asyncio
import collections
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.api.policy import PRIORITY_CLASS
from growth.api.volumes import PERSISTENT_VOLUME, STORAGE_CLASS, VOLUME_ATTACHMENT
from growth.api.workloads import DAEMON_SET, JOB, REPLICA_SET
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.scenario import manifests
from growth.sim.scenario.model import PodShape
from growth.sim.world.cluster import SimCluster

R = TypeVar("R")


def in_cluster(body: Callable[[SimCluster], Coroutine[Any, Any, R]]) -> R:
    async def main(kernel: Kernel) -> R:
        cluster = SimCluster(kernel)
        cluster.start()
        return await body(cluster)

    return sim.run(main, seed=1, limit_seconds=100_000).value


def test_a_job_runs_as_many_at_a_time_as_it_says_until_enough_succeeded() -> None:
    """Six pods, two at a time; one that is deleted half-way is replaced, and the Job is complete in the end."""

    async def body(cluster: SimCluster) -> tuple[int, int, list[str]]:
        await cluster.add_node("one")
        job = manifests.job("work", "work", PodShape(), pods=6, parallelism=2, runs="30s")
        await cluster.admin.create(JOB, job, namespace="default")
        await asyncio.sleep(20)
        first = await cluster.pods()
        await cluster.admin.delete(POD, first[0].metadata.name, namespace="default")
        most = 0
        for _ in range(60):
            await asyncio.sleep(5)
            pods = await cluster.pods()
            active = [pod for pod in pods if pod.status.phase in {"Pending", "Running"}]
            most = max(most, sum(pod.metadata.deletion_timestamp is None for pod in active))
        done = await cluster.admin.get(JOB, "work", namespace="default")
        return most, done.status.succeeded, [each.type for each in done.status.conditions]

    assert in_cluster(body) == (2, 6, ["SuccessCriteriaMet", "Complete"])


def test_a_daemon_set_has_a_pod_on_every_node_that_lets_it() -> None:
    """New nodes get one too, nodes with a taint that it does not tolerate none, and those that lose their label lose it."""

    async def body(cluster: SimCluster) -> tuple[dict[str, int], dict[str, int]]:
        await cluster.add_node("one", labels={"disk": "fast"})
        await cluster.add_node("kept", taints=({"key": "mine", "effect": "NoSchedule"},), labels={"disk": "fast"})
        shape = PodShape(cpu="100m", memory="64Mi", spec={"nodeSelector": {"disk": "fast"}})
        spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": manifests.pod_template("agent", shape)}
        await cluster.admin.create(DAEMON_SET, {"metadata": {"name": "agent"}, "spec": spec}, namespace="default")
        await asyncio.sleep(30)
        await cluster.add_node("two", labels={"disk": "fast"})
        await asyncio.sleep(60)
        before = collections.Counter(pod.spec.node_name for pod in await cluster.pods())
        await cluster.admin.patch(NODE, "one", {"metadata": {"labels": {"disk": None}}})
        await asyncio.sleep(60)
        return dict(before), dict(collections.Counter(pod.spec.node_name for pod in await cluster.pods()))

    assert in_cluster(body) == ({"one": 1, "two": 1}, {"two": 1})


def test_an_important_pod_takes_the_place_of_lesser_ones() -> None:
    """Where nothing else helps as few as possible go; what a lesser priority cannot get it does not take."""

    async def body(cluster: SimCluster) -> tuple[dict[str, int], int]:
        await cluster.add_node("one", cpu="4")
        for name, value in (("high", 100), ("low", -5)):
            await cluster.admin.create(PRIORITY_CLASS, {"metadata": {"name": name}, "value": value})
        await cluster.add_replica_set("web", 4)
        await asyncio.sleep(30)
        await cluster.add_replica_set("low", 1, priorityClassName="low")
        await cluster.add_replica_set("high", 1, priorityClassName="high")
        await asyncio.sleep(60)
        running = [pod for pod in await cluster.pods() if pod.status.phase == "Running"]
        apps = collections.Counter(pod.metadata.labels["app"] for pod in running)
        return dict(sorted(apps.items())), cluster.scheduler.statistics().preempted

    assert in_cluster(body) == ({"high": 1, "web": 3}, 1)


def test_a_pod_whose_place_others_took_waits_for_it_no_more() -> None:
    """It made room for itself, and somebody of more importance came: kube-scheduler takes its nomination back."""

    async def body(cluster: SimCluster) -> list[tuple[str, str, str]]:
        await cluster.add_node("one", cpu="1")
        for name, value in (("high", 100), ("higher", 200)):
            await cluster.admin.create(PRIORITY_CLASS, {"metadata": {"name": name}, "value": value})
        await cluster.add_replica_set("web", 1)
        await asyncio.sleep(30)
        await cluster.add_replica_set("high", 1, priorityClassName="high")
        await asyncio.sleep(0.2)
        (waiting,) = [pod for pod in await cluster.pods() if pod.metadata.labels["app"] == "high"]
        await cluster.add_replica_set("higher", 1, priorityClassName="higher")
        await asyncio.sleep(60)
        return [
            ("before", waiting.status.nominated_node_name, waiting.spec.node_name),
            *(
                (pod.metadata.labels["app"], pod.status.nominated_node_name, pod.spec.node_name)
                for pod in await cluster.pods()
                if pod.metadata.labels["app"] != "web"
            ),
        ]

    before, *after = in_cluster(body)
    assert before == ("before", "one", "")
    assert min(after) == ("high", "", "")
    assert [app for app, _, node in after if node] == ["higher"]


def test_a_pod_that_may_not_preempt_waits() -> None:
    """preemptionPolicy Never: higher in the queue and nothing more."""

    async def body(cluster: SimCluster) -> list[str]:
        await cluster.add_node("one", cpu="1")
        policy: Json = {"metadata": {"name": "polite"}, "value": 100, "preemptionPolicy": "Never"}
        await cluster.admin.create(PRIORITY_CLASS, policy)
        await cluster.add_replica_set("web", 1)
        await asyncio.sleep(30)
        await cluster.add_replica_set("polite", 1, priorityClassName="polite")
        await asyncio.sleep(60)
        return [pod.metadata.labels["app"] for pod in await cluster.pods() if pod.spec.node_name]

    assert in_cluster(body) == ["web"]


def test_preferences_move_a_pod_where_nothing_forbids() -> None:
    """A preferred label outweighs a somewhat fuller node; a discouraging taint keeps pods away."""

    async def body(cluster: SimCluster) -> dict[str, int]:
        await cluster.add_node("liked", labels={"disk": "fast"})
        await cluster.add_node("other")
        await cluster.add_node("disliked", taints=({"key": "old", "effect": "PreferNoSchedule"},))
        await asyncio.sleep(20)
        expression = {"key": "disk", "operator": "In", "values": ["fast"]}
        preferred = [{"weight": 100, "preference": {"matchExpressions": [expression]}}]
        affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        await cluster.add_replica_set("web", 3, affinity=affinity)
        await asyncio.sleep(30)
        return dict(collections.Counter(pod.spec.node_name for pod in await cluster.pods()))

    assert in_cluster(body) == {"liked": 3}


def test_a_volume_is_made_where_its_first_pod_goes_and_ties_the_next_ones_there() -> None:
    """Claim, volume and attachment come with the pod, and all of them go with it."""

    async def body(cluster: SimCluster) -> tuple[list[str], int, int]:
        await cluster.add_node("one", zone="a")
        await cluster.admin.create(STORAGE_CLASS, manifests.storage_class())
        spec = manifests.pod_spec(PodShape(volume="1Gi"))
        await cluster.add_replica_set("store", 1, **spec)
        await asyncio.sleep(40)
        volumes = (await cluster.admin.list(PERSISTENT_VOLUME)).items
        zones = [
            value
            for volume in volumes
            if volume.spec.node_affinity is not None and volume.spec.node_affinity.required is not None
            for term in volume.spec.node_affinity.required.node_selector_terms
            for each in term.match_expressions
            for value in each.values
        ]
        attached = len((await cluster.admin.list(VOLUME_ATTACHMENT)).items)
        await cluster.admin.patch(REPLICA_SET, "store", {"spec": {"replicas": 0}}, namespace="default")
        await asyncio.sleep(60)
        left = [*(await cluster.admin.list(PERSISTENT_VOLUME)).items]
        still = [*(await cluster.admin.list(VOLUME_ATTACHMENT)).items]
        return zones, attached, len(left) + len(still)

    assert in_cluster(body) == (["a"], 1, 0)


def test_a_taint_that_executes_drives_out_who_does_not_tolerate_it() -> None:
    """At once, and those who tolerate it for a time when that is over; who comes back has that time anew."""

    async def body(cluster: SimCluster) -> tuple[list[str], list[str]]:
        await cluster.add_node("one")
        tolerates = {"key": "bad", "operator": "Exists", "effect": "NoExecute"}
        await cluster.add_replica_set("web", 1)
        await cluster.add_replica_set("patient", 1, tolerations=[{**tolerates, "tolerationSeconds": 120}])
        await cluster.add_replica_set("blind", 1, tolerations=[tolerates])
        await asyncio.sleep(30)
        first = {pod.metadata.uid for pod in await cluster.pods()}
        taints = [{"key": "bad", "effect": "NoExecute"}]
        await cluster.admin.patch(NODE, "one", {"spec": {"taints": taints}})

        async def there() -> list[str]:
            bound = [pod for pod in await cluster.pods() if pod.spec.node_name and pod.metadata.uid in first]
            return sorted(pod.metadata.labels["app"] for pod in bound)

        await asyncio.sleep(30)
        soon = await there()
        await asyncio.sleep(120)
        second = {pod.metadata.uid for pod in await cluster.pods()} - first
        await asyncio.sleep(60)
        assert second <= {pod.metadata.uid for pod in await cluster.pods()}
        return soon, await there()

    assert in_cluster(body) == (["blind", "patient"], ["blind"])
