"""Pods that spread over zones leave their node only where kube-scheduler would let them in elsewhere, as it counts zones."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NodeClaim, NodePool
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.controllers.disruption import Disruption
from tests.simulation.ending import add_pod
from tests.simulation.moving import (
    ALL,
    LARGE,
    add_large,
    add_ready_pool,
    add_replacement,
    bring_up,
    claims,
    drift,
    mark,
)
from tests.simulation.owning import Stage, on_stage
from tests.simulation.silence import PROTECTED, asks, deafened

SPREAD = {
    "maxSkew": 1,
    "topologyKey": names.ZONE_LABEL,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
IN_A_OR_B = {"key": names.ZONE_LABEL, "operator": "In", "values": ["test-zone-a", "test-zone-b"]}
WEB: dict[str, Any] = {"containers": asks("1"), "topologySpreadConstraints": [SPREAD]}
# Without this a spread counts the zones in which machines could be bought.
WEB_IN_A_OR_B: dict[str, Any] = {
    **WEB,
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [IN_A_OR_B]}]}
        }
    },
}
NEVER = {**ALL, "consolidateAfter": "Never"}


async def add_in_zone(stage: Stage, name: str, zone: str, *, pool: NodePool, full: str = "") -> None:
    """A large machine in the zone; `full` is what a pod of no spread asks for there."""
    await add_large(stage, name, pool=pool, pods=1 if full else 0, cpu=full or "1")
    labels = {names.ZONE_LABEL: f"test-zone-{zone}"}
    await stage.admin.patch(NODE, f"node-of-{name}", {"metadata": {"labels": labels}})


async def add_web(stage: Stage, name: str, web: dict[str, Any] = WEB) -> None:
    """A pod of the spread on the machine."""
    await add_pod(stage, f"on-{name}", node=f"node-of-{name}", owner="StatefulSet", labels={"app": "web"}, **web)


async def add_waiting(stage: Stage, web: dict[str, Any] = WEB) -> None:
    """A pod of the spread without a place."""
    waits = {"metadata": {"name": "waits", "labels": {"app": "web"}}, "spec": web}
    await stage.admin.create(POD, waits, namespace="default")


async def begin_move(stage: Stage, *, pool: NodePool) -> None:
    """What is left of a move of web-1 is its end: what replaces it is up."""
    await drift(stage, "web-1")
    await mark(stage, "web-1")
    await add_replacement(stage, "new-1", pool=pool)
    await bring_up(stage, "new-1")


async def claim_in_b(stage: Stage, name: str, *, pool: NodePool) -> NodeClaim:
    """A claim of a large machine that nobody has made yet."""
    zone = {"key": names.ZONE_LABEL, "operator": "In", "values": ["test-zone-b"]}
    kind = {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [LARGE]}
    return await stage.add_claim(name, pool=pool, requirements=[zone, kind])


async def launch_in_b(stage: Stage, name: str, *, pool: NodePool) -> tuple[NodeClaim, str]:
    """A claim whose machine is made and has no Node yet, with the machine's provider ID."""
    claim = await claim_in_b(stage, name, pool=pool)
    machine = await stage.cloud.create(claim)
    status = {"status": {"providerID": machine.provider_id}}
    await stage.admin.patch(NODE_CLAIM, name, status, subresource="status")
    return claim, machine.provider_id


async def stays(stage: Stage, until: Callable[[], Awaitable[object]]) -> list[bool]:
    """Whether web-1 is there after two minutes, and two more after this has happened."""
    await stage.start(Disruption(stage.env))
    await asyncio.sleep(120)
    seen = ["web-1" in await claims(stage)]
    await until()
    await asyncio.sleep(120)
    return [*seen, "web-1" in await claims(stage)]


@pytest.mark.parametrize("left", [True, False])
def test_pods_that_left_a_third_node_while_the_watch_is_silent(*, left: bool) -> None:
    """Where the pod could go it is then one too many for its spread, which the cache has not heard: nothing goes."""
    holder, api = deafened()

    async def body(stage: Stage) -> bool:
        pool = await add_ready_pool(stage, limits={"nodes": "3"})
        for name, zone, cpu in (("web-1", "a", "1"), ("web-2", "b", "10"), ("web-3", "a", "14")):
            await add_in_zone(stage, name, zone, pool=pool, full=cpu)
            await add_web(stage, name, WEB_IN_A_OR_B)
        for name in ("web-2", "web-3"):
            await stage.admin.patch(NODE, f"node-of-{name}", PROTECTED)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(30)
        holder[0].deaf = True
        if left:
            await stage.admin.delete(POD, "on-web-3", namespace="default", grace_seconds=0)
        await asyncio.sleep(20)
        return "web-1" in await claims(stage)

    assert on_stage(body, api=api).value == left


@pytest.mark.parametrize("registered", [True, False])
def test_a_node_that_is_not_up_yet_is_a_zone_without_pods(*, registered: bool) -> None:
    """As for kube-scheduler, from when it registers: those who spread may not go elsewhere until it takes some of them."""

    async def body(stage: Stage) -> bool:
        pool = await add_ready_pool(stage, disruption=NEVER)
        for name in ("web-1", "web-2"):
            await add_in_zone(stage, name, "a", pool=pool)
            await add_web(stage, name)
        await begin_move(stage, pool=pool)
        claim, provider_id = await launch_in_b(stage, "web-3", pool=pool)
        if registered:
            labels = {**claim.metadata.labels, names.ZONE_LABEL: "test-zone-b"}
            await stage.join("node-of-web-3", provider_id=provider_id, ready=False, labels=labels)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(120)
        return "web-1" in await claims(stage)

    assert on_stage(body).value == registered


def test_who_waits_for_a_machine_without_a_node_may_take_the_place_that_a_move_frees() -> None:
    """A pod has none for its spread until one like it leaves: then kube-scheduler binds it there, and the one that left would
    wait in its stead for the machine that comes in a zone of which nobody has heard.
    """

    async def body(stage: Stage) -> list[bool]:
        pool = await add_ready_pool(stage, disruption=NEVER)
        for name, zone, full in (("web-1", "a", ""), ("web-2", "a", ""), ("web-3", "c", "14")):
            await add_in_zone(stage, name, zone, pool=pool, full=full)
            await add_web(stage, name)
        await begin_move(stage, pool=pool)
        await launch_in_b(stage, "web-4", pool=pool)
        await add_waiting(stage)
        return await stays(stage, until=lambda: stage.admin.delete(POD, "waits", namespace="default", grace_seconds=0))

    assert on_stage(body).value == [True, False]


def test_whom_a_machine_will_hold_that_is_not_up_yet_does_not_count() -> None:
    """Pods spread over two zones, and one that waits for a machine in the emptier one: until it is there, those in the
    other zone have no second place there. Room on a node that is up is another matter.
    """

    async def body(stage: Stage) -> list[bool]:
        pool = await add_ready_pool(stage, limits={"nodes": "4"})
        for name, zone in (("web-1", "a"), ("web-2", "a"), ("web-3", "b")):
            await add_in_zone(stage, name, zone, pool=pool)
        for name in ("web-2", "web-3"):
            await stage.admin.patch(NODE, f"node-of-{name}", PROTECTED)
        for name in ("web-1", "web-2"):
            await add_web(stage, name, WEB_IN_A_OR_B)
        await add_pod(stage, "full", node="node-of-web-3", owner="StatefulSet", containers=asks("15500m"))
        await claim_in_b(stage, "web-4", pool=pool)
        await add_waiting(stage, WEB_IN_A_OR_B)
        return await stays(stage, until=lambda: stage.admin.delete(POD, "full", namespace="default", grace_seconds=0))

    assert on_stage(body).value == [True, False]


@pytest.mark.parametrize("ends", ["deleted", "moved"])
def test_a_node_on_its_way_out_is_a_zone_until_it_is_gone(ends: str) -> None:
    """As for kube-scheduler: nobody comes there, and whoever runs there counts. While it stands empty those who spread have no
    second place in the other zone, whoever ends it: a person, or another move of ours.
    """

    async def body(stage: Stage) -> list[bool]:
        pool = await add_ready_pool(stage, disruption=NEVER)
        for name, zone in (("web-1", "a"), ("web-2", "a"), ("web-3", "b")):
            await add_in_zone(stage, name, zone, pool=pool)
        for name in ("web-1", "web-2"):
            await add_web(stage, name)
        await begin_move(stage, pool=pool)
        if ends == "deleted":
            await stage.admin.delete(NODE_CLAIM, "web-3")
        else:
            await drift(stage, "web-3")
            await mark(stage, "web-3")
            await add_replacement(stage, "new-3", pool=pool, replaces="web-3")

        async def gone() -> None:
            await stage.admin.delete(NODE_CLAIM, "web-3")
            await stage.admin.patch(NODE, "node-of-web-3", {"metadata": {"finalizers": None}})
            await stage.admin.patch(NODE_CLAIM, "web-3", {"metadata": {"finalizers": None}})  # its Node goes with it

        return await stays(stage, until=gone)

    assert on_stage(body).value == [True, False]
