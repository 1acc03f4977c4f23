"""The small simulated cluster: what its scheduler, controllers and kubelets make of workloads and nodes."""

import asyncio
import collections
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from growth.api.coordination import LEASE
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.pods import Pod
from growth.api.policy import POD_DISRUPTION_BUDGET, PRIORITY_CLASS
from growth.api.workloads import DEPLOYMENT, REPLICA_SET
from growth.kube.errors import TooManyRequests
from growth.providers.kwok.kubelets import KubeletSettings
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel, Run
from growth.sim.world.cluster import SimCluster, workload

R = TypeVar("R")


def in_cluster(body: Callable[[SimCluster], Coroutine[Any, Any, R]], *, seed: int = 1, shuffle: bool = False) -> Run[R]:
    async def main(kernel: Kernel) -> R:
        cluster = SimCluster(kernel)
        cluster.start()
        return await body(cluster)

    return sim.run(main, seed=seed, shuffle=shuffle, limit_seconds=100_000)


def by_node(pods: list[Pod]) -> dict[str, int]:
    return dict(sorted(collections.Counter(pod.spec.node_name for pod in pods).items()))


def spread(key: str, **more: Any) -> list[Json]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
            **more,
        }
    ]


def test_pods_of_a_replica_set_come_to_run() -> None:
    """Pods are made from the template, bound where there is room, and become ready; the status tells it."""

    async def body(cluster: SimCluster) -> tuple[dict[str, int], set[str], int]:
        await cluster.add_node("one")
        await cluster.add_node("two")
        await asyncio.sleep(10)
        await cluster.add_replica_set("web", 6)
        await asyncio.sleep(60)
        pods = await cluster.pods()
        told = await cluster.admin.get(REPLICA_SET, "web", namespace="default")
        return by_node(pods), {pod.status.phase for pod in pods}, told.status.ready_replicas

    assert in_cluster(body).value == ({"one": 3, "two": 3}, {"Running"}, 6)


def test_exactly_as_many_pods_as_asked_for_exist() -> None:
    """Scaling up and down never overshoots, though the controller's watch is behind its writes."""

    async def body(cluster: SimCluster) -> list[int]:
        await cluster.add_node("one", cpu="64", memory="64Gi")
        await cluster.add_replica_set("web", 1)
        seen: list[int] = []
        for replicas in (20, 3, 15, 0, 7):
            await cluster.admin.patch(REPLICA_SET, "web", {"spec": {"replicas": replicas}}, namespace="default")
            await asyncio.sleep(30)
            seen.append(len(await cluster.pods()))
        made = cluster.server.statistics().writes["workloads"]
        assert made < 400, "it does not churn"
        return seen

    for shuffle in (False, True):
        assert in_cluster(body, shuffle=shuffle).value == [20, 3, 15, 0, 7]


def test_what_fits_nowhere_says_why_and_comes_when_room_does() -> None:
    """An unschedulable pod carries the scheduler's reasons, and is bound soon after a node joins."""

    async def body(cluster: SimCluster) -> tuple[str, str, dict[str, int]]:
        await cluster.add_node("small", cpu="1500m")
        await cluster.add_node("tainted", taints=({"key": "gpu", "value": "yes", "effect": "NoSchedule"},))
        await cluster.add_replica_set("web", 2)
        await asyncio.sleep(60)
        (waiting,) = [pod for pod in await cluster.pods() if not pod.spec.node_name]
        (condition,) = [one for one in waiting.status.conditions if one.type == "PodScheduled"]
        await cluster.add_node("new")
        await asyncio.sleep(30)
        return condition.reason, condition.message, by_node(await cluster.pods())

    reason, message, nodes = in_cluster(body).value
    assert reason == "Unschedulable"
    assert message == "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)."
    assert nodes == {"new": 1, "small": 1}


def test_spread_keeps_its_skew() -> None:
    """With a hard zone spread no zone is ahead of the emptiest by more than the skew, and a full zone blocks."""

    async def body(cluster: SimCluster) -> tuple[dict[str, int], int]:
        await cluster.add_node("a1", cpu="16", memory="64Gi", zone="a")
        await cluster.add_node("b1", cpu="2", memory="64Gi", zone="b")
        await cluster.add_replica_set("web", 9, topologySpreadConstraints=spread("topology.kubernetes.io/zone"))
        await asyncio.sleep(120)
        pods = await cluster.pods()
        return by_node([pod for pod in pods if pod.spec.node_name]), sum(not pod.spec.node_name for pod in pods)

    assert in_cluster(body).value == ({"a1": 3, "b1": 2}, 4)


def test_node_selectors_bind_to_matching_nodes_only() -> None:
    """Selector and affinity are kept; a node of another zone stays empty."""

    async def body(cluster: SimCluster) -> dict[str, int]:
        await cluster.add_node("a1", zone="a")
        await cluster.add_node("b1", zone="b")
        await cluster.add_replica_set("web", 3, nodeSelector={"topology.kubernetes.io/zone": "b"})
        await asyncio.sleep(60)
        return by_node(await cluster.pods())

    assert in_cluster(body).value == {"b1": 3}


def test_gated_pods_wait_and_higher_priority_goes_first() -> None:
    """A pod with a scheduling gate is left alone; of two that compete the one with the higher priority is bound."""

    async def body(cluster: SimCluster) -> list[str]:
        await cluster.add_replica_set("gated", 1, schedulingGates=[{"name": "wait"}])
        body: Json = {"metadata": {"name": "high"}, "value": 1000, "apiVersion": "scheduling.k8s.io/v1"}
        await cluster.admin.create(PRIORITY_CLASS, body)
        await cluster.add_replica_set("low", 1)
        await cluster.add_replica_set("high", 1, priorityClassName="high")
        await asyncio.sleep(10)
        await cluster.add_node("one", cpu="1500m")
        await asyncio.sleep(60)
        return [pod.metadata.labels["app"] for pod in await cluster.pods() if pod.spec.node_name]

    assert in_cluster(body).value == ["high"]


def test_a_deployment_rolls_to_its_new_template() -> None:
    """After a change of the template all pods are new, and there were never fewer ready than asked for."""

    async def body(cluster: SimCluster) -> tuple[int, set[str], int]:
        await cluster.add_node("one", cpu="32", memory="64Gi")
        await cluster.add_deployment("web", 4)
        await asyncio.sleep(60)
        old = {pod.metadata.uid for pod in await cluster.pods()}
        changed = workload("web", 4)["spec"]["template"]
        changed["spec"]["containers"][0]["image"] = "example:2"
        await cluster.admin.patch(DEPLOYMENT, "web", {"spec": {"template": changed}}, namespace="default")
        fewest = 4
        for _ in range(120):
            await asyncio.sleep(0.5)
            ready = [pod for pod in await cluster.pods() if pod.metadata.deletion_timestamp is None]
            fewest = min(fewest, sum(pod.status.phase == "Running" for pod in ready))
        pods = await cluster.pods()
        assert not old & {pod.metadata.uid for pod in pods}
        told = await cluster.admin.get(DEPLOYMENT, "web", namespace="default")
        return len(pods), {pod.status.phase for pod in pods}, min(fewest, told.status.ready_replicas)

    assert in_cluster(body).value == (4, {"Running"}, 4)


def test_kubelets_beat_and_finish_deletions() -> None:
    """A ready node renews its Lease; a deleted pod is gone soon; a silent machine's pod stays."""

    async def body(cluster: SimCluster) -> tuple[bool, int, list[str]]:
        await cluster.add_node("alive")
        await cluster.add_node("dead")
        await cluster.add_replica_set("web", 4)
        await asyncio.sleep(60)
        node = await cluster.admin.get(NODE, "alive")
        lease = await cluster.admin.get(LEASE, "alive", namespace="kube-node-lease")
        assert lease.spec.renew_time is not None
        age = (cluster.clock.now() - lease.spec.renew_time).total_seconds()
        cluster.kubelets.silence("dead")
        await cluster.admin.patch(REPLICA_SET, "web", {"spec": {"replicas": 0}}, namespace="default")
        await asyncio.sleep(120)
        left = [pod.spec.node_name for pod in await cluster.pods()]
        return any(taint.key.endswith("not-ready") for taint in node.spec.taints), int(age <= 10), left

    tainted, fresh, left = in_cluster(body).value
    assert not tainted
    assert fresh
    assert left
    assert set(left) == {"dead"}


def test_an_idle_cluster_comes_to_rest() -> None:
    """When nothing changes nobody writes but the kubelets' heartbeats."""

    async def main(kernel: Kernel) -> int:
        cluster = SimCluster(kernel, kubelets=KubeletSettings(heartbeat=0))
        cluster.start()
        await cluster.add_node("one")
        await cluster.add_deployment("web", 9)
        await asyncio.sleep(120)
        before = cluster.server.revision
        await asyncio.sleep(3600)
        return cluster.server.revision - before

    assert sim.run(main, seed=1).value == 0


def test_equal_seeds_make_equal_clusters() -> None:
    """The digest of a run with workloads and nodes depends on the seed alone."""

    async def body(cluster: SimCluster) -> list[str]:
        await cluster.add_node("one")
        await cluster.add_deployment("web", 6)
        await asyncio.sleep(300)
        return sorted(pod.metadata.uid for pod in await cluster.pods())

    first, again, other = in_cluster(body, seed=1), in_cluster(body, seed=1), in_cluster(body, seed=2)
    assert first == again
    assert first.digest != other.digest


def test_a_budget_grants_as_many_evictions_as_it_says() -> None:
    """minAvailable 4 of 6 pods: two evictions pass, the third is refused until others are ready again."""

    async def body(cluster: SimCluster) -> tuple[int, int, str]:
        await cluster.add_node("one", cpu="16", memory="32Gi")
        await cluster.add_replica_set("web", 6)
        spec = {"minAvailable": 4, "selector": {"matchLabels": {"app": "web"}}}
        await cluster.admin.create(
            POD_DISRUPTION_BUDGET, {"metadata": {"name": "web"}, "spec": spec}, namespace="default"
        )
        await asyncio.sleep(60)
        before = (await cluster.admin.get(POD_DISRUPTION_BUDGET, "web", namespace="default")).status
        pods = await cluster.pods()
        refused = ""
        for pod in pods[:3]:
            try:
                await cluster.admin.evict(pod.metadata.name, namespace="default")
            except TooManyRequests:
                refused = pod.metadata.name
        assert refused == pods[2].metadata.name
        await asyncio.sleep(60)
        after = (await cluster.admin.get(POD_DISRUPTION_BUDGET, "web", namespace="default")).status
        return before.disruptions_allowed, after.disruptions_allowed, refused and "refused"

    assert in_cluster(body).value == (2, 2, "refused")


@pytest.mark.parametrize(
    ("says", "allowed"), [({"maxUnavailable": "25%"}, 1), ({}, 0)], ids=["in percent", "without a number"]
)
def test_a_budget_counts_what_the_controllers_ask_for(says: Json, allowed: int) -> None:
    """maxUnavailable 25% of 6 rounds up to two; of which those that are not ready yet are taken. Without a number nothing goes."""

    async def body(cluster: SimCluster) -> tuple[int, int]:
        await cluster.add_node("one", cpu="5", memory="32Gi")
        await cluster.add_replica_set("web", 6)
        spec = {**says, "selector": {"matchLabels": {"app": "web"}}}
        await cluster.admin.create(
            POD_DISRUPTION_BUDGET, {"metadata": {"name": "web"}, "spec": spec}, namespace="default"
        )
        await asyncio.sleep(60)
        status = (await cluster.admin.get(POD_DISRUPTION_BUDGET, "web", namespace="default")).status
        return status.current_healthy, status.disruptions_allowed

    assert in_cluster(body).value == (5, allowed)


def test_a_silent_node_becomes_unknown_and_its_pods_go_elsewhere() -> None:
    """After 40 s without a heartbeat a Node is Unknown and tainted; after five minutes its pods are replaced."""

    async def body(cluster: SimCluster) -> tuple[str, bool, dict[str, int]]:
        await cluster.add_node("one")
        await cluster.add_node("two")
        await asyncio.sleep(20)
        await cluster.add_replica_set("web", 2)
        await asyncio.sleep(20)
        cluster.kubelets.silence("one")
        await asyncio.sleep(60)
        node = await cluster.admin.get(NODE, "one")
        ready = next(each.status for each in node.status.conditions if each.type == "Ready")
        tainted = any(each.key == "node.kubernetes.io/unreachable" for each in node.spec.taints)
        await asyncio.sleep(330)
        pods = [pod for pod in await cluster.pods() if pod.metadata.deletion_timestamp is None]
        return ready, tainted, by_node(pods)

    assert in_cluster(body).value == ("Unknown", True, {"two": 2})


def test_pods_of_a_node_that_is_gone_are_removed() -> None:
    """A pod bound to a Node that does not exist any more is removed, and its controller makes another."""

    async def body(cluster: SimCluster) -> dict[str, int]:
        await cluster.add_node("one")
        await asyncio.sleep(20)
        await cluster.add_replica_set("web", 2)
        await asyncio.sleep(20)
        await cluster.admin.delete(NODE, "one")
        await cluster.add_node("two")
        await asyncio.sleep(120)
        return by_node(await cluster.pods())

    assert in_cluster(body).value == {"two": 2}
