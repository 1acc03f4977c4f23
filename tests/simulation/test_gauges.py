"""What a scrape is told: Nodes, conditions, calls of the cloud, the catalogue's age."""

import asyncio
from typing import Any

import pytest

from growth.api.clouds import CloudError, CloudUnavailable, InsufficientCapacity, MachineNotFound
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NODE_CLAIM
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.controllers import gauges
from growth.controllers.catalogue import AGE, CatalogueReader
from growth.controllers.gauges import conditions, nodes
from growth.controllers.lifecycle import Lifecycle
from growth.controllers.lifecycle.registration import NODES_CREATED
from growth.controllers.settings import ControllerSettings
from growth.kube.errors import GateClosed
from growth.providers.measured import DURATION, ERRORS, Measured
from growth.telemetry.logs import about
from growth.telemetry.metrics import Gauge
from tests.simulation.clouds import TYPE
from tests.simulation.owning import Stage, on_stage


def pod(name: str, *, cpu: str, owner: str = "ReplicaSet", **limits: str) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": owner, "name": owner, "uid": owner, "controller": True}
    resources = {"requests": {"cpu": cpu}, "limits": limits}
    container = {"name": "c", "image": "i", "resources": resources}
    return {
        "metadata": {"name": name, "ownerReferences": [reference]},
        "spec": {"nodeName": "node-1", "containers": [container]},
    }


def test_nodes_tell_what_they_have_and_what_is_asked_of_them() -> None:
    """Allocatable, requests, limits, those of DaemonSets, overhead, age, utilisation; gone with the node."""

    async def body(stage: Stage) -> None:
        gauges.declare(stage.env)
        await stage.start(Lifecycle(stage.env))
        pool = await stage.add_pool()
        await stage.add_claim(pool=pool)
        await asyncio.sleep(1)
        await stage.join()
        await asyncio.sleep(1)
        await stage.admin.create(POD, pod("one", cpu="500m"), namespace="default")
        await stage.admin.create(POD, pod("two", cpu="1", owner="DaemonSet", memory="1Gi"), namespace="default")
        await asyncio.sleep(98)
        labels = {
            "nodepool": "default",
            "zone": "test-zone-a",
            "region": "",
            "instance_type": TYPE,
            "arch": "amd64",
            "os": "",
            "capacity_type": "on-demand",
            "windows_build": "",
            "node_name": "node-1",
            "phase": "",
            "managed": "true",
        }

        def value(gauge: Gauge, resource: str) -> float:
            return stage.env.metrics.value(gauge, **labels, resource_type=resource)

        assert value(nodes.ALLOCATABLE, "cpu") == 3.9
        assert value(nodes.ALLOCATABLE, "memory") == 8 << 30
        assert value(nodes.POD_REQUESTS, "cpu") == 1.5
        assert value(nodes.POD_REQUESTS, "pods") == 2
        assert value(nodes.DAEMON_REQUESTS, "cpu") == 1
        assert value(nodes.POD_LIMITS, "memory") == 1 << 30
        assert value(nodes.DAEMON_LIMITS, "memory") == 1 << 30
        assert value(nodes.OVERHEAD, "cpu") == pytest.approx(0.1)
        assert stage.env.metrics.value(nodes.LIFETIME, **labels) == 99
        assert stage.env.metrics.value(nodes.UTILIZATION, resource_type="cpu") == pytest.approx(100 * 1.5 / 3.9)
        assert stage.env.metrics.value(NODES_CREATED, nodepool="default", zone="test-zone-a") == 1

    on_stage(body)


def test_conditions_are_told_and_their_changes_counted() -> None:
    """One series a condition, with its age; transitions with how long the status before had lasted."""

    async def body(stage: Stage) -> None:
        gauges.declare(stage.env)
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(20)
        await stage.join()
        await asyncio.sleep(10)
        metrics = stage.env.metrics
        about_claim = {"namespace": "", "name": "web-1", "group": "karpenter.sh", "kind": "NodeClaim"}
        registered = {"type": "Registered", "status": "True", "reason": "Registered"}
        assert metrics.value(conditions.COUNT, **about_claim, **registered) == 1
        assert metrics.value(conditions.CURRENT, **about_claim, **registered) == 10
        kind = {"group": "karpenter.sh", "kind": "NodeClaim"}
        assert metrics.value(conditions.TRANSITIONS, **kind, **registered) == 1
        unknown = {"type": "Registered", "status": "Unknown", "reason": "NodeNotFound"}
        assert metrics.value(conditions.TRANSITIONS, **kind, **unknown) == 1
        assert metrics.value(conditions.COUNT, **about_claim, **unknown) == 0
        ready = {"group": "", "kind": "Node", "type": "Ready", "status": "True", "reason": "Kubelet"}
        assert metrics.value(conditions.TRANSITIONS, **ready) == 1
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(5)
        assert metrics.value(conditions.TERMINATING, **about_claim) == 5
        await stage.admin.patch(NODE_CLAIM, "web-1", {"metadata": {"finalizers": None}})
        await asyncio.sleep(1)
        assert metrics.value(conditions.TERMINATING, **about_claim) == 0
        shown = {family.name: family for family in metrics.collect()}
        for name, seconds in ((conditions.LASTED.name, 20.0), (conditions.TERMINATED.name, 5.0)):
            sums = [
                sample.value
                for sample in shown[name].samples
                if sample.name.endswith("_sum")
                and sample.labels["kind"] == "NodeClaim"
                and sample.labels.get("type", "Registered") == "Registered"
            ]
            assert sums == [pytest.approx(seconds, abs=0.1)]

    on_stage(body)


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (InsufficientCapacity("none"), "InsufficientCapacityError"),
        (MachineNotFound("none"), "NodeClaimNotFoundError"),
        (CloudUnavailable("down"), "CloudUnavailable"),
        (KeyError("a bug"), "KeyError"),
    ],
)
def test_calls_of_the_cloud_are_timed_and_failures_counted(error: Exception, word: str) -> None:
    """By controller, method and provider; what is no error of a cloud is a bug, and told as an unknown outcome."""

    async def body(stage: Stage) -> None:
        metrics = stage.env.metrics
        cloud = Measured(stage.cloud, metrics=metrics, clock=stage.env.clock)
        claim = await stage.add_claim()
        stage.cloud.failures.append(error)
        stage.cloud.delays["web-1"] = 2
        labels = {"controller": "nodeclaim.lifecycle", "method": "Create", "provider": "scripted"}
        with about(reconciler="nodeclaim.lifecycle"):
            with pytest.raises(CloudError) as caught:
                await cloud.create(claim)
            assert (await cloud.create(claim)).claim == "web-1"
        assert type(caught.value) is (type(error) if isinstance(error, CloudError) else CloudUnavailable)
        assert metrics.value(ERRORS, **labels, error=word) == 1
        (family,) = [each for each in metrics.collect() if each.name == DURATION.name]
        assert {sample.name: sample.value for sample in family.samples if "bucket" not in sample.name} == {
            f"{DURATION.name}_count": 2,
            f"{DURATION.name}_sum": 4,
        }

    on_stage(body)


def test_a_closed_gate_passes_through() -> None:
    """Whoever may no longer act must hear of it as such, and not as trouble with the cloud."""

    async def body(stage: Stage) -> None:
        cloud = Measured(stage.cloud, metrics=stage.env.metrics, clock=stage.env.clock)
        stage.cloud.always = GateClosed("no lease")
        with pytest.raises(GateClosed):
            await cloud.create(await stage.add_claim())

    on_stage(body)


def test_a_scrape_of_many_nodes_is_made_in_steps_while_they_change() -> None:
    """A step is at most a hundred nodes or five hundred series; who was there all the while is told once."""

    async def body(stage: Stage) -> None:
        gauges.declare(stage.env)
        await stage.start()
        for number in range(350):
            await stage.admin.create(NODE, {"metadata": {"name": f"old-{number}"}, "spec": {}})
            status = {"allocatable": {"cpu": "4", "pods": "110"}}
            await stage.admin.patch(NODE, f"old-{number}", {"status": status}, subresource="status")
        await asyncio.sleep(1)
        shown, steps = {}, 0
        for step in stage.env.metrics.gathered():
            if step is not None:
                family = step()
                shown[family.name] = [each.labels["node_name"] for each in family.samples if "node_name" in each.labels]
                continue
            await stage.admin.create(NODE, {"metadata": {"name": f"new-{steps}"}, "spec": {}})
            await stage.admin.delete(NODE, f"old-{steps}")
            steps += 1
            await asyncio.sleep(0.1)
        assert steps >= 350 // 100 + 700 // 500
        told = [name for name in shown[nodes.ALLOCATABLE.name] if name.startswith("old-")]
        assert sorted(told) == sorted(2 * [f"old-{number}" for number in range(350)])
        again = {family.name: family for family in stage.env.metrics.collect()}[nodes.LIFETIME.name].samples
        left = {f"old-{number}" for number in range(steps, 350)}
        assert {each.labels["node_name"] for each in again} == left | {f"new-{number}" for number in range(steps)}

    on_stage(body)


def test_the_catalogue_stays_fresh_and_survives_a_cloud_that_is_down() -> None:
    """Read every minute, and once after refusals; a failed read changes nothing and is repeated soon; the age is told."""

    async def body(stage: Stage) -> None:
        reader = CatalogueReader(stage.env)
        await stage.start(reader)
        await asyncio.sleep(290)
        assert stage.cloud.calls["catalogue"] == 5
        assert stage.env.metrics.value(AGE) == 50
        stage.cloud.failures = [CloudUnavailable("down")] * 3
        await asyncio.sleep(60)
        assert stage.env.state.catalogue is not None
        assert stage.cloud.calls["catalogue"] == 5 + 3 + 1
        claim = await stage.add_claim()
        for _ in range(10):
            assert reader.refused(claim)
        await asyncio.sleep(1)
        assert stage.cloud.calls["catalogue"] == 10

    on_stage(body, settings=ControllerSettings(catalogue_period=60))


def test_an_odd_catalogue_ends_no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a provider stumbles over, what was known stays and is read again soon; only a closed gate ends it."""

    async def body(stage: Stage) -> None:
        read = stage.cloud.catalogue
        failures: list[Exception] = [ArithmeticError("NaN"), ArithmeticError("NaN")]

        async def odd() -> Catalogue:
            if failures:
                raise failures.pop()
            return await read()

        reader = CatalogueReader(stage.env)
        await stage.start(reader)
        await asyncio.sleep(1)
        known = stage.env.state.catalogue
        monkeypatch.setattr(stage.cloud, "catalogue", odd)
        await asyncio.sleep(70)
        assert (failures, stage.env.state.catalogue) == ([], known)
        assert stage.env.metrics.value(AGE) < 10
        failures.append(GateClosed("no longer the leader"))
        with pytest.raises(GateClosed):
            await reader.run()

    on_stage(body, settings=ControllerSettings(catalogue_period=60))


def test_every_metric_is_declared_once() -> None:
    """Two metrics of one name would hide each other; names that Karpenter has begin as its own do."""

    async def body(stage: Stage) -> None:
        gauges.declare(stage.env)
        stage.env.metrics.declare(*gauges.METRICS)
        for metric in gauges.METRICS:
            assert metric.name.startswith(("karpenter_", "operator_", "growth_"))

    on_stage(body)
