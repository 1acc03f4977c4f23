"""What people and broken programs do to objects behind Growth's back: no limit gives way, and nobody else's thing is taken."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator
from typing import Any, TypeVar

from growth.api import names
from growth.api.buffers import CAPACITY_BUFFER
from growth.api.clouds import CloudMachine, InvariantViolation
from growth.api.core import NAMESPACE
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Kind
from growth.api.nodes import NODE
from growth.controllers.collection import Collection
from growth.controllers.disruption import Disruption
from growth.controllers.lifecycle import Lifecycle
from growth.controllers.termination import Termination
from growth.kube.api import WatchEvent
from growth.kube.memory import MemoryApi
from tests.manifests import need
from tests.simulation import buying
from tests.simulation.buying import Buyer, join, staged
from tests.simulation.ending import add_owned, left, start_kubelets
from tests.simulation.owning import Stage, on_stage

T = TypeVar("T")

SMALL = need(names.INSTANCE_TYPE_LABEL, "In", "c-2x-amd64-linux")


# --- limits


def test_a_node_that_somebody_relabels_still_counts_for_its_own_pool() -> None:
    """The claim says whose machine it is; a label on the Node is anybody's to change."""

    async def body(stage: buying.Stage) -> int:
        await stage.begin()
        await stage.add_pool("default", SMALL, limits={"nodes": "1"})
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("first", 1)
        await asyncio.sleep(20)
        (made,) = await buying.claims(stage)
        node = await join(stage, made)
        await stage.admin.patch(NODE, node, {"metadata": {"labels": {names.NODE_POOL_LABEL: "other"}}})
        await stage.cluster.add_replica_set("second", 3)
        await asyncio.sleep(120)
        return len(await buying.claims(stage))

    assert staged(body).value == 1


def test_a_claim_of_types_that_are_no_longer_sold_counts_at_the_most_that_it_may_be() -> None:
    """Its machine may have been bought before the types went; unknown is not the little that its pods ask for."""

    async def body(stage: buying.Stage) -> int:
        await stage.begin()
        await stage.add_pool("default", SMALL, limits={"cpu": "6"})
        buyer = Buyer(stage, stage.environment())
        await add_by_hand(stage, [need(names.INSTANCE_TYPE_LABEL, "In", "gone-16x")])
        await asyncio.sleep(5)
        await stage.cluster.add_replica_set("web", 5)
        await asyncio.sleep(60)
        assert buyer.env.state.claims.synced
        return len(await buying.claims(stage))

    assert staged(body).value == 1


def test_a_claim_made_by_hand_for_any_type_counts_at_the_most_that_it_may_be() -> None:
    """Until it is known what was bought for it, nothing else is bought that might not fit beside it."""

    async def body(stage: buying.Stage) -> int:
        await stage.begin()
        await stage.add_pool("default", SMALL, limits={"cpu": "6"})
        Buyer(stage, stage.environment())
        await add_by_hand(stage, [])
        await asyncio.sleep(5)
        await stage.cluster.add_replica_set("web", 5)
        await asyncio.sleep(60)
        return len(await buying.claims(stage))

    assert staged(body).value == 1


async def add_by_hand(stage: buying.Stage, requirements: list[Any]) -> None:
    uses = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    spec = {"nodeClassRef": uses, "requirements": requirements, "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": "by-hand", "labels": {names.NODE_POOL_LABEL: "default"}}
    await stage.admin.create(NODE_CLAIM, {"metadata": metadata, "spec": spec})


class LatePools(MemoryApi):
    """The watch tells of changed pools half a minute late."""

    @contextlib.asynccontextmanager
    async def watch(self, kind: Kind[T], **how: Any) -> AsyncIterator[AsyncIterator[WatchEvent[T]]]:
        async with super().watch(kind, **how) as events:
            yield self._late(events) if kind == NODE_POOL else events

    async def _late(self, events: AsyncIterator[WatchEvent[T]]) -> AsyncIterator[WatchEvent[T]]:
        async for event in events:
            await asyncio.sleep(30)
            yield event


def test_a_limit_that_the_watch_has_not_shown_yet_holds() -> None:
    """Nothing is bought for a pool before a look at it as it is now."""

    async def body(stage: buying.Stage) -> int:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        Buyer(stage, stage.environment(api=LatePools(stage.cluster.server, user="growth")))
        await asyncio.sleep(20)
        await stage.admin.patch(NODE_POOL, "default", {"spec": {"limits": {"nodes": "1"}}})
        await stage.cluster.add_replica_set("web", 3)
        await asyncio.sleep(120)
        return len(await buying.claims(stage))

    assert staged(body).value == 1


# --- nothing leaks


def test_the_machine_of_a_claim_made_by_hand_is_collected() -> None:
    """Its Node has no label of a pool or a class, and somebody took the claim's finalizer away."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        await stage.admin.create(NAMESPACE, {"metadata": {"name": "growth"}})
        await add_owned(stage, "kept")
        await stage.add_claim("web-1")
        await stage.start(Lifecycle(stage.env), Termination(stage.env), Collection(stage.env))
        start_kubelets(stage)
        await asyncio.sleep(5)
        await stage.join("node-of-web-1")
        await asyncio.sleep(30)
        assert (await stage.claim()).status.node_name == "node-of-web-1"
        await stage.admin.patch(NODE_CLAIM, "web-1", {"metadata": {"finalizers": None}})
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(1200)
        return await left(stage)

    assert on_stage(body).value == (1, 1, 1)


def test_a_machine_that_the_cloud_cannot_explain_keeps_no_leak_alive() -> None:
    """One claim names a machine that is none of this cloud's; everybody else's leaks are collected all the same."""

    async def body(stage: Stage) -> tuple[list[str], bool]:
        await stage.admin.create(NAMESPACE, {"metadata": {"name": "growth"}})
        for name in ("strange", "web-1", "web-2"):
            await add_owned(stage, name)
        strange = await stage.claim("strange")
        stage.cloud.machines.pop(strange.metadata.uid)
        stage.cloud.machines["lost"] = CloudMachine(
            provider_id="scripted://lost",
            claim="lost",
            claim_uid="lost",
            created=stage.env.clock.now() - dt.timedelta(hours=1),
        )
        known = stage.cloud.get

        async def get(provider_id: str) -> CloudMachine:
            if provider_id == strange.status.provider_id:
                raise InvariantViolation(f"{provider_id} is no machine of this cloud")
            return await known(provider_id)

        stage.cloud.get = get  # type: ignore[method-assign]
        await stage.start(Collection(stage.env))
        await asyncio.sleep(600)
        left = sorted(each.claim for each in stage.cloud.machines.values())
        return left, await stage.has_claim("strange")

    assert on_stage(body).value == (["web-1", "web-2"], True)


# --- nothing foreign is taken


def test_a_foreign_node_of_the_same_name_is_left_alone() -> None:
    """The claim's Node was taken away by force, and another, without a provider ID, has its name now."""

    async def body(stage: Stage) -> tuple[bool, list[str], bool]:
        await add_owned(stage)
        await stage.admin.patch(NODE, "node-of-web-1", {"metadata": {"finalizers": None}})
        await stage.admin.delete(NODE, "node-of-web-1")
        await stage.join("node-of-web-1", provider_id="", taints=())
        start_kubelets(stage)
        await stage.start(Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(120)
        listed = (await stage.admin.list(NODE)).items
        untouched = all(not each.spec.taints for each in listed)
        return await stage.has_claim(), [each.metadata.name for each in listed], untouched

    assert on_stage(body).value == (False, ["node-of-web-1"], True)


# --- scale-down


def test_a_budget_that_is_closed_while_a_node_is_looked_at_holds() -> None:
    """The pool as it is at the last look decides, its budgets included."""

    async def body(stage: Stage) -> bool:
        pool = await stage.add_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]})
        await add_owned(stage, pool=pool)
        start_kubelets(stage)
        await stage.start(Disruption(stage.env))
        for _ in range(600):
            await asyncio.sleep(0.1)
            if (await stage.node("node-of-web-1")).spec.taints:
                break
        closed = {"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}
        await stage.admin.patch(NODE_POOL, "default", closed)
        await asyncio.sleep(120)
        return await stage.has_claim() and not (await stage.node("node-of-web-1")).spec.taints

    assert on_stage(body).value


# --- what is synced once


def test_a_node_that_lost_its_label_gets_the_label_back_and_no_taint() -> None:
    """Startup taints are for the first moments of a machine: on one with pods they would throw them out."""
    startup = {"key": "example.com/cni", "effect": "NoExecute"}

    async def body(stage: Stage) -> tuple[str | None, list[str]]:
        await stage.add_claim(startupTaints=[startup])
        await stage.start(Lifecycle(stage.env))
        await asyncio.sleep(5)
        await stage.join("node-1")
        await asyncio.sleep(5)
        assert [each.key for each in (await stage.node()).spec.taints] == ["example.com/cni"]
        await stage.set_taints("node-1", [])
        await asyncio.sleep(60)
        assert names.INITIALIZED_LABEL in (await stage.node()).metadata.labels
        await stage.admin.patch(NODE, "node-1", {"metadata": {"labels": {names.REGISTERED_LABEL: None}}})
        await asyncio.sleep(60)
        node = await stage.node()
        return node.metadata.labels.get(names.REGISTERED_LABEL), [each.key for each in node.spec.taints]

    assert on_stage(body).value == ("true", [])


# --- time


def test_a_claim_that_nobody_has_tried_to_launch_is_tried_first() -> None:
    """Growth was away for long, or its clock is ahead of the server's: giving up unseen would go on for ever."""

    async def body(stage: Stage) -> tuple[bool, int]:
        await stage.add_claim()
        await asyncio.sleep(600)
        await stage.start(Lifecycle(stage.env), Termination(stage.env))
        await asyncio.sleep(30)
        return await stage.has_claim(), len(stage.cloud.machines)

    assert on_stage(body).value == (True, 1)


# --- buffers


def test_a_buffer_that_asks_for_absurdly_much_harms_only_itself() -> None:
    """Its status says what it may ask for; pods go on getting their machines."""

    async def body(stage: buying.Stage) -> tuple[int, str]:
        await stage.begin()
        await stage.add_pool("default", SMALL)
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 1)
        scalable = {"apiGroup": "apps", "kind": "ReplicaSet", "name": "web"}
        huge = {"metadata": {"name": "huge"}, "spec": {"scalableRef": scalable, "replicas": 2_000_000_000}}
        await stage.admin.create(CAPACITY_BUFFER, huge, namespace="default")
        await asyncio.sleep(60)
        (told,) = [
            each.message
            for each in (await stage.admin.get(CAPACITY_BUFFER, "huge", namespace="default")).status.conditions
            if each.type == names.READY_FOR_PROVISIONING
        ]
        return len(await buying.claims(stage)), told

    number, told = staged(body).value
    assert number == 1
    assert "room for 2000000000 pods" in told
    assert "at most" in told
