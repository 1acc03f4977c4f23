"""What a NodePool says of itself: conditions, what it has, and the hash by which its machines are recognised."""

import asyncio
import dataclasses
from typing import Any

import pytest

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.api.nodes import NODE
from growth.api.pools import PoolRef
from growth.cluster import hashes
from growth.controllers.health import RegistrationHealth
from growth.controllers.lifecycle import Lifecycle
from growth.controllers.pools import Pools, status
from growth.controllers.pools.metrics import COST, LIMIT, UNPRICED, USAGE
from growth.controllers.settings import ControllerSettings
from tests.simulation.clouds import TYPE
from tests.simulation.owning import CRD, BlindApi, Stage, condition, on_stage, told

POOL = PoolRef.karpenter("default")


def not_ready(reason: str, message: str) -> dict[str, Any]:
    return {
        "type": "Ready",
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2030-01-07T08:00:00Z",
    }


def test_a_pool_that_can_be_bought_from_is_ready() -> None:
    """Two writes for a new pool (its hash, its status), and none after that."""

    async def body(stage: Stage) -> None:
        await stage.add_class()
        await stage.start(Pools(stage.env))
        await stage.add_pool()
        await asyncio.sleep(1)
        pool = await stage.pool()
        assert told(pool) == {
            "ValidationSucceeded": "True",
            "NodeClassReady": "True",
            "NodeRegistrationHealthy": "Unknown AwaitingReconciliation",
            "Ready": "True",
        }
        assert pool.status.resources == {"cpu": "0", "memory": "0", "pods": "0", "ephemeral-storage": "0", "nodes": "0"}
        assert pool.status.node_class_observed_generation == 1
        await asyncio.sleep(3600)
        assert stage.writes() == 2

    on_stage(body)


def test_a_large_pool_is_counted_a_few_machines_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody else has a turn in between, and the sum is right."""
    real, seen = status.held, []

    def held(claims: Any) -> Any:
        listed = list(claims)
        seen.append(len(listed))
        return real(listed)

    monkeypatch.setattr(status, "held", held)

    async def body(stage: Stage) -> None:
        await stage.add_class()
        pool = await stage.add_pool()
        for number in range(450):
            await stage.add_claim(f"web-{number}", pool=pool)
            machine = {"providerID": f"scripted://web-{number}", "capacity": {"cpu": "4"}}
            await stage.admin.patch(NODE_CLAIM, f"web-{number}", {"status": machine}, subresource="status")
        await stage.start(Pools(stage.env))
        await asyncio.sleep(10)
        told = (await stage.pool()).status
        assert (told.nodes, told.resources["nodes"], told.resources["cpu"]) == (450, "450", "1800")

    on_stage(body)
    assert sum(seen) >= 450
    assert max(seen) <= 200


def test_a_pool_that_names_types_that_ended_is_told_their_successors() -> None:
    """For as long as it names them: False where nothing else can be bought, True with the reason where something can; a type
    that ends while the pool is there is told too.
    """
    successors = {"cx32": TYPE}

    async def body(stage: Stage) -> list[str]:
        await stage.add_class()
        await stage.start(Pools(stage.env))
        seen = []

        async def names_types(*types: str) -> None:
            wanted = [{"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": list(types)}]
            await stage.admin.patch(NODE_POOL, "default", {"spec": {"template": {"spec": {"requirements": wanted}}}})
            await asyncio.sleep(6)
            await look()

        async def look() -> None:
            pool = await stage.pool()
            said = told(pool).get("ServerTypesOrderable", "")
            seen.append(f"{said}: {condition(pool, 'ServerTypesOrderable').message}" if said else "")

        await stage.add_pool()
        await names_types(TYPE, "cx32")
        assert stage.env.state.catalogue is not None
        stage.env.state.catalogue = dataclasses.replace(stage.env.state.catalogue, successors=successors)
        await asyncio.sleep(300)
        await look()
        await names_types("cx32")
        (event,) = await stage.events(names.NO_COMPATIBLE_INSTANCE_TYPES)
        assert f"use {TYPE}" in event.message
        await names_types(TYPE)
        assert told(await stage.pool())["Ready"] == "True"
        return seen

    ended = f"spec.template.spec.requirements: cx32 can no longer be ordered from kwok: use {TYPE}"
    assert on_stage(body).value == ["", f"True NoLongerOrderable: {ended}", f"False NoLongerOrderable: {ended}", ""]


def test_a_pool_follows_its_node_class() -> None:
    """Missing, not ready, ready, being deleted: NodeClassReady says each, and Ready follows it."""

    async def body(stage: Stage) -> list[tuple[str, str, str]]:
        await stage.start(Pools(stage.env))
        await stage.add_pool()
        seen = []

        async def look() -> None:
            await asyncio.sleep(6)
            pool = await stage.pool()
            seen.append((told(pool)["NodeClassReady"], condition(pool, "NodeClassReady").message, told(pool)["Ready"]))

        await look()
        await stage.add_class()
        await look()
        patch: dict[str, Any] = {"status": {"conditions": [not_ready("ImageMissing", "there is no image")]}}
        await stage.admin.patch(KWOK_NODE_CLASS, "default", patch, subresource="status")
        await look()
        patch = {"status": {"conditions": []}}
        await stage.admin.patch(KWOK_NODE_CLASS, "default", patch, subresource="status")
        await look()
        await stage.admin.patch(KWOK_NODE_CLASS, "default", {"metadata": {"finalizers": ["example.com/hold"]}})
        await stage.admin.delete(KWOK_NODE_CLASS, "default")
        await look()
        return seen

    assert on_stage(body).value == [
        (
            "False NodeClassNotFound",
            "the node class that nodeClassRef names does not exist",
            "False UnhealthyDependents",
        ),
        ("True", "", "True"),
        ("False ImageMissing", "there is no image", "False UnhealthyDependents"),
        ("Unknown NodeClassReadinessUnknown", "Node Class Readiness Unknown", "Unknown ReconcilingDependents"),
        ("False NodeClassTerminating", "NodeClass is Terminating", "False UnhealthyDependents"),
    ]


def test_a_pool_that_contradicts_itself_says_so_and_harms_no_other() -> None:
    """ValidationSucceeded is False and names the field; mended, it is True; another pool is ready all along."""

    async def body(stage: Stage) -> None:
        await stage.add_class()
        await stage.start(Pools(stage.env))
        arch = {"key": "kubernetes.io/arch", "operator": "In"}
        both = [{**arch, "values": ["amd64"]}, {**arch, "values": ["arm64"]}]
        await stage.add_pool("bad", template={"requirements": both})
        await stage.add_pool("good")
        await asyncio.sleep(1)
        failed = condition(await stage.pool("bad"), names.VALIDATION_SUCCEEDED)
        assert (failed.status, failed.reason) == ("False", "NodePoolValidationFailed")
        assert "spec.template.spec.requirements[1] (kubernetes.io/arch): no value satisfies" in failed.message
        assert told(await stage.pool("bad"))["Ready"] == "False UnhealthyDependents"
        assert told(await stage.pool("good"))["Ready"] == "True"
        patch = {"spec": {"template": {"spec": {"requirements": both[:1]}}}}
        await stage.admin.patch(NODE_POOL, "bad", patch)
        await asyncio.sleep(6)
        assert told(await stage.pool("bad"))["Ready"] == "True"

    on_stage(body)


@pytest.mark.parametrize(
    "wrong", [{"operator": "Gt", "values": ["abc"]}, {"operator": "Near", "values": ["4"]}], ids=["number", "operator"]
)
def test_a_pool_with_a_requirement_that_cannot_be_read_says_so(wrong: dict[str, Any]) -> None:
    """Also where it names a type that ended: nothing can be bought from it, and both are told."""

    async def body(stage: Stage) -> None:
        await stage.add_class()
        assert stage.env.state.catalogue is not None
        stage.env.state.catalogue = dataclasses.replace(stage.env.state.catalogue, successors={"cx32": TYPE})
        lenient = await stage.admin.get(CRD, str(NODE_POOL))  # as somebody else's definition may be
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        lenient["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": anything}
        await stage.admin.update(CRD, str(NODE_POOL), lenient)
        await asyncio.sleep(1)
        await stage.start(Pools(stage.env))
        unreadable = {"key": "example.com/cores", **wrong}
        types = {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [TYPE, "cx32"]}
        await stage.add_pool("bad", template={"requirements": [unreadable]})
        await stage.add_pool("worse", template={"requirements": [unreadable, types]})
        await asyncio.sleep(1)
        for name in ("bad", "worse"):
            failed = condition(await stage.pool(name), names.VALIDATION_SUCCEEDED)
            assert (failed.status, failed.reason) == ("False", "NodePoolValidationFailed")
            assert "spec.template.spec.requirements[0] (example.com/cores)" in failed.message
        assert told(await stage.pool("worse"))["ServerTypesOrderable"] == "False NoLongerOrderable"

    on_stage(body)


def test_a_pool_counts_what_its_machines_have() -> None:
    """From the launch on, as the Node says once it is initialised; claims of other pools do not count."""

    async def body(stage: Stage) -> list[tuple[int, str, str]]:
        await stage.add_class()
        await stage.start(Lifecycle(stage.env), Pools(stage.env))
        pool, other = await stage.add_pool(limits={"cpu": "100", "nodes": "7"}), await stage.add_pool("other")
        seen = []

        async def look() -> None:
            await asyncio.sleep(6)
            status = (await stage.pool()).status
            seen.append((status.nodes, str(status.resources["nodes"]), str(status.resources["cpu"])))

        await look()
        for name in ("web-1", "web-2"):
            await stage.add_claim(name, pool=pool)
        await stage.add_claim("elsewhere", pool=other)
        await look()
        await stage.join()
        status = {"status": {"capacity": {"cpu": "5"}}}
        await stage.admin.patch(NODE, "node-1", status, subresource="status")
        await look()
        await stage.admin.patch(NODE_CLAIM, "web-2", {"metadata": {"finalizers": None}})
        await stage.admin.delete(NODE_CLAIM, "web-2")
        await look()
        metrics = stage.env.metrics
        assert metrics.value(USAGE, resource_type="cpu", nodepool="default") == 5
        assert metrics.value(USAGE, resource_type="nodes", nodepool="default") == 1
        assert metrics.value(LIMIT, resource_type="cpu", nodepool="default") == 100
        assert metrics.value(LIMIT, resource_type="nodes", nodepool="default") == 7
        (kind,) = (each for each in stage.cloud.sold.types if each.name == TYPE)
        (price,) = {
            each.price for each in kind.offerings if (each.zone, each.capacity_type) == ("test-zone-a", "on-demand")
        }
        assert price is not None
        assert metrics.value(COST, nodepool="default") == pytest.approx(price / 1e9)
        assert metrics.value(UNPRICED, nodepool="default") == 0
        return seen

    assert on_stage(body).value == [(0, "0", "0"), (2, "2", "8"), (2, "2", "9"), (1, "1", "5")]


def test_a_burst_of_machines_is_a_few_writes_on_the_pool() -> None:
    """While a pool changes, its status is written at most once in five seconds."""

    async def body(stage: Stage) -> int:
        await stage.add_class()
        await stage.start(Pools(stage.env))
        pool = await stage.add_pool()
        await asyncio.sleep(10)
        before = stage.writes()
        for number in range(200):
            claim = await stage.add_claim(f"web-{number}", pool=pool, annotations=hashes.stamp(pool))
            patch = {"status": {"providerID": f"scripted://{number}", "capacity": {"cpu": "4"}}}
            await stage.admin.patch(NODE_CLAIM, claim.metadata.name, patch, subresource="status")
            await asyncio.sleep(0.1)
        await asyncio.sleep(10)
        assert (await stage.pool()).status.nodes == 200
        return stage.writes() - before

    assert on_stage(body).value <= 6


@pytest.mark.parametrize("where", ["pool", "cluster"])
def test_a_pause_is_told_and_its_end_too(where: str) -> None:
    """The condition Paused names what pauses the pool; it goes away with the pause. Ready is not touched."""

    async def body(stage: Stage) -> None:
        await stage.add_class()
        await stage.start(Pools(stage.env))
        await stage.add_pool(annotations={names.PAUSED_ANNOTATION: "true"} if where == "pool" else None)
        await asyncio.sleep(1)
        pool = await stage.pool()
        assert told(pool)["Paused"] == "True"
        assert told(pool)["Ready"] == "True"
        message = condition(pool, "Paused").message
        assert ("setting" if where == "cluster" else names.PAUSED_ANNOTATION) in message
        if where == "pool":
            patch = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "false"}}}
            await stage.admin.patch(NODE_POOL, "default", patch)
            await asyncio.sleep(6)
            assert "Paused" not in told(await stage.pool())

    on_stage(body, settings=ControllerSettings(paused=where == "cluster"))


def test_pools_of_other_providers_are_told_of_once_and_left_alone() -> None:
    """A kind of class that nobody serves gets an event; one that another autoscaler serves gets nothing."""

    async def body(stage: Stage) -> list[str]:
        await stage.start(Pools(stage.env))
        ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        await stage.add_pool("nobodys", template={"nodeClassRef": ref})
        await stage.add_pool("somebodys", template={"nodeClassRef": ref})
        patch = {"status": {"conditions": [not_ready("Other", "")]}}
        await stage.admin.patch(NODE_POOL, "somebodys", patch, subresource="status")
        await asyncio.sleep(1000)
        assert stage.writes() == 0
        return [f"{each.involved_object.name} {each.reason}" for each in await stage.events()]

    assert on_stage(body).value == ["nobodys NodeClassUnknown"]


def test_a_fleet_taken_over_from_karpenter_is_stamped_anew_and_not_drifted() -> None:
    """Hashes of another version are replaced, on the claims first; a claim that had drifted keeps its old one."""

    async def body(stage: Stage) -> None:
        await stage.add_class()
        theirs = {names.NODE_POOL_HASH_ANNOTATION: "123", names.NODE_POOL_HASH_VERSION_ANNOTATION: "v3"}
        pool = await stage.add_pool(annotations=theirs)
        for name in ("web-1", "web-2"):
            await stage.add_claim(name, pool=pool, annotations=theirs)
        await stage.add_claim("bare", pool=pool)
        drifted = {**not_ready("NodePoolDrifted", ""), "type": "Drifted", "status": "True"}
        await stage.admin.patch(NODE_CLAIM, "web-2", {"status": {"conditions": [drifted]}}, subresource="status")
        await stage.start(Pools(stage.env))
        await asyncio.sleep(10)
        ours = hashes.stamp(await stage.pool())
        assert (await stage.pool()).metadata.annotations == ours
        assert (await stage.claim("web-1")).metadata.annotations == ours
        assert (await stage.claim("bare")).metadata.annotations == ours
        kept = {names.NODE_POOL_HASH_ANNOTATION: "123", names.NODE_POOL_HASH_VERSION_ANNOTATION: hashes.VERSION}
        assert (await stage.claim("web-2")).metadata.annotations == kept
        before = stage.writes()
        await asyncio.sleep(1000)
        assert stage.writes() == before

    on_stage(body)


def test_a_changed_template_changes_the_pools_hash_and_no_claims() -> None:
    """That is how machines of an older template are recognised."""

    async def body(stage: Stage) -> None:
        await stage.add_class()
        await stage.start(Pools(stage.env))
        pool = await stage.add_pool()
        old = hashes.stamp(pool)
        await stage.add_claim(pool=pool, annotations=old)
        await asyncio.sleep(6)
        patch = {"spec": {"template": {"metadata": {"labels": {"team": "web"}}}}}
        await stage.admin.patch(NODE_POOL, "default", patch)
        await asyncio.sleep(6)
        new = (await stage.pool()).metadata.annotations
        assert new[names.NODE_POOL_HASH_ANNOTATION] != old[names.NODE_POOL_HASH_ANNOTATION]
        assert (await stage.claim()).metadata.annotations == old

    on_stage(body)


def test_a_pool_tells_how_its_last_machines_fared() -> None:
    """NodeRegistrationHealthy follows the outcomes, survives a restart, and begins anew when pool or class change."""

    async def body(stage: Stage) -> list[str]:
        await stage.add_class()
        health = RegistrationHealth()
        await stage.start(Pools(stage.env, health=health))
        await stage.add_pool()
        seen = []

        async def look() -> None:
            await asyncio.sleep(6)
            seen.append(told(await stage.pool())["NodeRegistrationHealthy"])

        health.record(POOL, ok=True)
        await look()
        health.record(POOL, ok=False, reason="RegistrationFailed", message="Failed to register node")
        health.record(POOL, ok=False, reason="ImageMissing", message="no image")
        await look()
        await stage.admin.patch(NODE_POOL, "default", {"spec": {"weight": 3}})
        await look()
        for _ in range(2):
            health.record(POOL, ok=False, reason="ImageMissing", message="no image")
        await look()
        patch = {"spec": {"nodeRegistrationDelay": "1s"}}
        await stage.admin.patch(KWOK_NODE_CLASS, "default", patch)
        await look()
        return seen

    assert on_stage(body).value == [
        "True",
        "False ImageMissing",
        "Unknown AwaitingReconciliation",
        "False ImageMissing",
        "Unknown AwaitingReconciliation",
    ]


def test_an_unhealthy_pool_stays_so_after_a_restart() -> None:
    """One machine that registers does not outweigh what the process before had seen."""

    async def body(stage: Stage) -> list[str]:
        await stage.add_class()
        pool = await stage.add_pool()
        health = RegistrationHealth()
        unhealthy = {**not_ready("RegistrationFailed", "m"), "type": "NodeRegistrationHealthy", "observedGeneration": 1}
        patch = {"status": {"conditions": [unhealthy], "nodeClassObservedGeneration": 1}}
        await stage.admin.patch(NODE_POOL, pool.metadata.name, patch, subresource="status")
        await stage.start(Pools(stage.env, health=health))
        seen = []
        for _ in range(3):
            await asyncio.sleep(6)
            seen.append(told(await stage.pool())["NodeRegistrationHealthy"])
            health.record(POOL, ok=True)
        await asyncio.sleep(6)
        return [*seen, told(await stage.pool())["NodeRegistrationHealthy"]]

    assert on_stage(body).value == [*["False RegistrationFailed"] * 3, "True"]


def test_a_look_that_finds_nothing_to_tell_asks_the_server_nothing() -> None:
    """Claims change all the time; a pool that says all there is to say costs no request."""

    async def body(stage: Stage) -> int:
        api = stage.env.api
        assert isinstance(api, BlindApi)
        await stage.add_class()
        await stage.start(Pools(stage.env))
        pool = await stage.add_pool()
        await stage.add_claim(pool=pool, annotations=hashes.stamp(pool))
        await asyncio.sleep(30)
        before = api.gets
        for number in range(10):
            await stage.admin.patch(NODE_CLAIM, "web-1", {"metadata": {"labels": {"changed": str(number)}}})
            await asyncio.sleep(10)
        return api.gets - before

    assert on_stage(body, api=BlindApi).value == 0
