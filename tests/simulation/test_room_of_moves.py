"""Whether the pods of a move have a place is asked of the server, not of the cache, before its claims are deleted."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NodeClaim, NodePool
from growth.api.kinds import Kind
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.controllers.disruption import Disruption, surroundings
from growth.kube.api import Api
from growth.kube.memory import MemoryApi
from tests.simulation.ending import add_budget, add_pod
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
    tainted,
)
from tests.simulation.owning import Stage, on_stage

PROTECTED = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}}


class Deaf:
    """An API that from some moment on hears nothing more of one kind: its watch is open, and silent."""

    def __init__(self, api: MemoryApi, kind: str = "Pod") -> None:
        self._api = api
        self._kind = kind
        self.deaf = False
        self.lists: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def list(self, kind: Kind[Any], **more: Any) -> Any:
        if self.deaf and kind.kind == "Pod":
            self.lists.append(more.get("fields", ""))
        return await self._api.list(kind, **more)

    @contextlib.asynccontextmanager
    async def watch(self, kind: Kind[Any], **more: Any) -> AsyncIterator[AsyncIterator[Any]]:
        async with self._api.watch(kind, **more) as events:
            yield events if kind.kind != self._kind else self._heard(events)

    async def _heard(self, events: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for event in events:
            if not self.deaf:
                yield event


def deafened(kind: str = "Pod") -> tuple[list[Deaf], Any]:
    holder: list[Deaf] = []

    def api(real: MemoryApi) -> Api:
        holder.append(Deaf(real, kind))
        return holder[0]

    return holder, api


async def two_halves(stage: Stage) -> None:
    """Two large machines with a little on each: one of them is enough. None may be bought."""
    pool = await add_ready_pool(stage, limits={"nodes": "2"})
    await add_large(stage, pool=pool, cpu="3")
    await add_large(stage, "web-2", pool=pool, cpu="3")
    await stage.start(Disruption(stage.env))
    await asyncio.sleep(30)


async def one_may_go(stage: Stage) -> None:
    """Three large machines: the first has little on it, the others are protected, and each has room for that."""
    pool = await add_ready_pool(stage, limits={"nodes": "3"})
    for name, cpu in (("web-1", "3"), ("web-2", "10"), ("web-3", "10")):
        await add_large(stage, name, pool=pool, cpu=cpu)
    for name in ("web-2", "web-3"):
        await stage.admin.patch(NODE, f"node-of-{name}", PROTECTED)
    await stage.start(Disruption(stage.env))
    await asyncio.sleep(30)


def asks(cpu: str) -> list[dict[str, Any]]:
    return [{"name": "main", "image": "example", "resources": {"requests": {"cpu": cpu}}}]


def test_room_that_is_gone_while_the_watch_is_silent() -> None:
    """The nodes that could take the pods are full by now, which the cache has not heard: nothing goes or stays marked."""
    holder, api = deafened()

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        await one_may_go(stage)
        holder[0].deaf = True
        for name in ("web-2", "web-3"):
            await add_pod(stage, f"thief-{name}", node=f"node-of-{name}", owner="StatefulSet", containers=asks("5"))
        await asyncio.sleep(20)
        return sorted(await claims(stage)), await tainted(stage)

    assert on_stage(body, api=api).value == (["web-1", "web-2", "web-3"], [])


def test_a_budget_of_pods_that_came_while_the_watch_is_silent() -> None:
    """The pods may not be asked to leave any more, which the cache has not heard: nothing goes or stays marked."""
    holder, api = deafened("PodDisruptionBudget")

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        await one_may_go(stage)
        holder[0].deaf = True
        await add_budget(stage, "zero", app="on-web-1-0", maxUnavailable=0)
        await asyncio.sleep(20)
        return sorted(await claims(stage)), await tainted(stage)

    assert on_stage(body, api=api).value == (["web-1", "web-2", "web-3"], [])


async def add_in_line(stage: Stage, nominated: str) -> None:
    """A pod that waits for a place; with a name, for others to leave that node, where kube-scheduler has asked them to."""
    body = {"metadata": {"name": "in-line"}, "spec": {"containers": asks("11")}}
    await stage.admin.create(POD, body, namespace="default")
    if nominated:
        status = {"status": {"nominatedNodeName": nominated}}
        await stage.admin.patch(POD, "in-line", status, namespace="default", subresource="status")


@pytest.mark.parametrize("nominated", ["", "node-of-web-2"])
def test_pods_in_line_come_first(nominated: str) -> None:
    """A pod that waits and of which the cache has not heard takes the room: nothing goes."""
    holder, api = deafened()

    async def body(stage: Stage) -> list[str]:
        await two_halves(stage)
        holder[0].deaf = True
        await add_in_line(stage, nominated)
        await asyncio.sleep(20)
        return sorted(await claims(stage))

    assert on_stage(body, api=api).value == ["web-1", "web-2"]


@pytest.mark.parametrize("nominated", ["", "node-of-web-2"])
def test_no_move_is_begun_into_room_that_pods_in_line_need(nominated: str) -> None:
    """Known from the start: no node is even marked, and when the pod is gone one of the two goes."""

    async def body(stage: Stage) -> list[object]:
        await add_in_line(stage, nominated)
        await two_halves(stage)
        seen: list[object] = []
        for _ in range(20):
            seen += await tainted(stage)
            await asyncio.sleep(1)
        await stage.admin.delete(POD, "in-line", namespace="default")
        await asyncio.sleep(120)
        return [*seen, len(await claims(stage))]

    assert on_stage(body).value == [1]


def test_a_place_that_takes_nobody_any_more() -> None:
    """The nodes are cordoned, which the cache has not heard: nothing goes."""
    holder, api = deafened("Node")

    async def body(stage: Stage) -> list[str]:
        await two_halves(stage)
        holder[0].deaf = True
        for number in (1, 2):
            await stage.admin.patch(NODE, f"node-of-web-{number}", {"spec": {"unschedulable": True}})
        await asyncio.sleep(20)
        return sorted(await claims(stage))

    assert on_stage(body, api=api).value == ["web-1", "web-2"]


@pytest.mark.parametrize("late", [0, 32])
def test_a_place_of_which_nobody_knows_whose_it_is(late: int) -> None:
    """The only other machine has two Nodes, from the start or since the move was decided: no room there, nothing goes."""

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        pool = await add_ready_pool(stage, limits={"nodes": "2"})
        await add_large(stage, pool=pool, cpu="3")
        await add_large(stage, "web-2", pool=pool, cpu="10")
        await stage.admin.patch(NODE, "node-of-web-2", PROTECTED)
        twin = await stage.admin.get(NODE.raw, "node-of-web-2")
        twin["metadata"] = {"name": "twin", "labels": {**twin["metadata"]["labels"], names.HOSTNAME_LABEL: "twin"}}
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(late)
        await stage.admin.create(NODE, twin)
        await asyncio.sleep(90)
        return sorted(await claims(stage)), await tainted(stage)

    assert on_stage(body).value == (["web-1", "web-2"], [])


def test_a_move_whose_room_others_have_taken() -> None:
    """Its pods are waited for some minutes, not as long as a machine may take; then it is taken back, and nobody is marked."""

    async def body(stage: Stage) -> list[list[str]]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"}, limits={"nodes": "2"})
        await add_large(stage, pool=pool, cpu="3")
        await drift(stage, "web-1")
        await mark(stage, "web-1")
        await add_replacement(stage, "new-1", pool=pool)
        await bring_up(stage, "new-1")
        await add_pod(stage, "thief", node="node-of-new-1", owner="StatefulSet", containers=asks("3"))
        await stage.start(Disruption(stage.env))
        seen = []
        for _ in range(2):
            await asyncio.sleep(100)
            seen.append(await tainted(stage))
        return [*seen, sorted(await claims(stage))]

    assert on_stage(body).value == [["node-of-web-1"], [], ["new-1", "web-1"]]


def test_what_is_given_back_is_marked_though_the_cache_has_not_seen_its_node() -> None:
    """Its claim says which Node it has: that one is closed before the claim goes, so that no pod comes in between."""
    holder, api = deafened("Node")

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"}, limits={"nodes": "2"})
        await add_large(stage, pool=pool, cpu="3")
        await drift(stage, "web-1")
        await mark(stage, "web-1")
        await stage.admin.patch(NODE, "node-of-web-1", PROTECTED)
        await add_replacement(stage, "new-1", pool=pool)
        await stage.start()
        await asyncio.sleep(1)
        holder[0].deaf = True
        await bring_up(stage, "new-1")
        stage.tasks.append(asyncio.create_task(Disruption(stage.env).run()))
        await asyncio.sleep(60)
        return await tainted(stage), sorted(await claims(stage))

    assert on_stage(body, api=api).value == (["node-of-new-1"], ["web-1"])


@pytest.mark.parametrize("full", ["web-2", "web-3"])
def test_room_elsewhere_is_found(full: str) -> None:
    """Whichever node that could take the pods is full by now, the other one is looked at too, and takes them."""
    holder, api = deafened()

    async def body(stage: Stage) -> list[str]:
        await one_may_go(stage)
        holder[0].deaf = True
        await add_pod(stage, "thief", node=f"node-of-{full}", owner="StatefulSet", containers=asks("5"))
        await asyncio.sleep(20)
        return sorted(await claims(stage))

    assert on_stage(body, api=api).value == ["web-2", "web-3"]


def test_only_the_places_that_are_counted_on_are_read() -> None:
    """Three lists of pods: of the node that goes, of the one that takes its pods, and of those that wait."""
    holder, api = deafened()

    async def body(stage: Stage) -> list[str]:
        await one_may_go(stage)
        holder[0].deaf = True
        await asyncio.sleep(20)
        return holder[0].lists

    lists = on_stage(body, api=api).value
    assert len(lists) == 3
    assert lists.count("spec.nodeName=") == 1


def test_many_places_are_read_by_one_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above a number of nodes all pods are asked for at once."""
    monkeypatch.setattr(surroundings, "FEW", 0)
    holder, api = deafened()

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        await two_halves(stage)
        holder[0].deaf = True
        await asyncio.sleep(20)
        return sorted(await claims(stage)), holder[0].lists

    left, lists = on_stage(body, api=api).value
    assert len(left) == 1
    assert "" in lists
    assert "spec.nodeName=" not in lists


IN_A = {names.ZONE_LABEL: "test-zone-a"}
IN_A_OR_B = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": names.ZONE_LABEL, "operator": "In", "values": ["test-zone-a", "test-zone-b"]}]}
    ]
}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": names.ZONE_LABEL,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


@pytest.mark.parametrize("left", [True, False])
def test_pods_that_left_a_third_node_while_the_watch_is_silent(*, left: bool) -> None:
    """Where the pod could go it is then one too many for its spread, which the cache has not heard: nothing goes."""
    holder, api = deafened()
    web: dict[str, Any] = {
        "containers": asks("1"),
        "topologySpreadConstraints": [SPREAD],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": IN_A_OR_B}},
    }

    async def body(stage: Stage) -> bool:
        pool = await add_ready_pool(stage, limits={"nodes": "3"})
        for name, zone, cpu in (("web-1", "a", "1"), ("web-2", "b", "10"), ("web-3", "a", "14")):
            await add_large(stage, name, pool=pool, cpu=cpu)
            labels = {"metadata": {"labels": {names.ZONE_LABEL: f"test-zone-{zone}"}}}
            await stage.admin.patch(NODE, f"node-of-{name}", labels)
            await add_pod(
                stage, f"spread-{name}", node=f"node-of-{name}", owner="StatefulSet", labels={"app": "web"}, **web
            )
        for name in ("web-2", "web-3"):
            await stage.admin.patch(NODE, f"node-of-{name}", PROTECTED)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(30)
        holder[0].deaf = True
        if left:
            await stage.admin.delete(POD, "spread-web-3", namespace="default", grace_seconds=0)
        await asyncio.sleep(20)
        return "web-1" in await claims(stage)

    assert on_stage(body, api=api).value == left


async def launch_in_b(stage: Stage, name: str, *, pool: NodePool) -> tuple[NodeClaim, str]:
    """A claim whose machine is made and has no Node yet, with the machine's provider ID."""
    zone = {"key": names.ZONE_LABEL, "operator": "In", "values": ["test-zone-b"]}
    kind = {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [LARGE]}
    claim = await stage.add_claim(name, pool=pool, requirements=[zone, kind])
    machine = await stage.cloud.create(claim)
    status = {"status": {"providerID": machine.provider_id}}
    await stage.admin.patch(NODE_CLAIM, name, status, subresource="status")
    return claim, machine.provider_id


@pytest.mark.parametrize("registered", [True, False])
def test_a_node_that_is_not_up_yet_is_a_zone_without_pods(*, registered: bool) -> None:
    """As for kube-scheduler, from when it registers: those who spread may not go elsewhere until it takes some of them."""
    spread: dict[str, Any] = {"containers": asks("1"), "topologySpreadConstraints": [SPREAD]}

    async def body(stage: Stage) -> bool:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        for name in ("web-1", "web-2"):
            await add_large(stage, name, pool=pool, pods=0)
            await stage.admin.patch(NODE, f"node-of-{name}", {"metadata": {"labels": IN_A}})
            await add_pod(
                stage, f"on-{name}", node=f"node-of-{name}", owner="StatefulSet", labels={"app": "web"}, **spread
            )
        await drift(stage, "web-1")
        await mark(stage, "web-1")
        await add_replacement(stage, "new-1", pool=pool)
        await bring_up(stage, "new-1")
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
    spread: dict[str, Any] = {"containers": asks("1"), "topologySpreadConstraints": [SPREAD]}

    async def body(stage: Stage) -> list[bool]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        for name, zone, full in (("web-1", "a", 0), ("web-2", "a", 0), ("web-3", "c", 1)):
            await add_large(stage, name, pool=pool, pods=full, cpu="14")
            labels = {names.ZONE_LABEL: f"test-zone-{zone}"}
            await stage.admin.patch(NODE, f"node-of-{name}", {"metadata": {"labels": labels}})
            await add_pod(
                stage, f"on-{name}", node=f"node-of-{name}", owner="StatefulSet", labels={"app": "web"}, **spread
            )
        await drift(stage, "web-1")
        await mark(stage, "web-1")
        await add_replacement(stage, "new-1", pool=pool)
        await bring_up(stage, "new-1")
        await launch_in_b(stage, "web-4", pool=pool)
        waits = {"metadata": {"name": "waits", "labels": {"app": "web"}}, "spec": spread}
        await stage.admin.create(POD, waits, namespace="default")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(120)
        seen = ["web-1" in await claims(stage)]
        await stage.admin.delete(POD, "waits", namespace="default", grace_seconds=0)
        await asyncio.sleep(60)
        return [*seen, "web-1" in await claims(stage)]

    assert on_stage(body).value == [True, False]


def test_whom_a_machine_will_hold_that_is_not_up_yet_does_not_count() -> None:
    """Pods spread over two zones, and one that waits for a machine in the emptier one: until it is there, those in the
    other zone have no second place there. Room on a node that is up is another matter.
    """
    web: dict[str, Any] = {
        "containers": asks("1"),
        "topologySpreadConstraints": [SPREAD],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": IN_A_OR_B}},
    }

    async def body(stage: Stage) -> list[bool]:
        pool = await add_ready_pool(stage, limits={"nodes": "4"})
        protected = {names.DO_NOT_DISRUPT_ANNOTATION: "true"}
        for name, where, own in (("web-1", "a", {}), ("web-2", "a", protected), ("web-3", "b", protected)):
            await add_large(stage, name, pool=pool, pods=0)
            meta = {"labels": {names.ZONE_LABEL: f"test-zone-{where}"}, "annotations": own}
            await stage.admin.patch(NODE, f"node-of-{name}", {"metadata": meta})
        for name in ("web-1", "web-2"):
            labels = {"app": "web"}
            await add_pod(stage, f"on-{name}", node=f"node-of-{name}", owner="StatefulSet", labels=labels, **web)
        await add_pod(stage, "full", node="node-of-web-3", owner="StatefulSet", containers=asks("15500m"))
        zone = {"key": names.ZONE_LABEL, "operator": "In", "values": ["test-zone-b"]}
        kind = {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [LARGE]}
        await stage.add_claim("web-4", pool=pool, requirements=[zone, kind])
        waiting = {"metadata": {"name": "waiting", "labels": {"app": "web"}}, "spec": web}
        await stage.admin.create(POD, waiting, namespace="default")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(120)
        seen = ["web-1" in await claims(stage)]
        await stage.admin.delete(POD, "full", namespace="default", grace_seconds=0)
        await asyncio.sleep(120)
        return [*seen, "web-1" in await claims(stage)]

    assert on_stage(body).value == [True, False]


@pytest.mark.parametrize("ends", ["deleted", "moved"])
def test_a_node_on_its_way_out_is_a_zone_until_it_is_gone(ends: str) -> None:
    """As for kube-scheduler: nobody comes there, and whoever runs there counts. While it stands empty those who spread have no
    second place in the other zone, whoever ends it: a person, or another move of ours.
    """
    spread: dict[str, Any] = {"containers": asks("1"), "topologySpreadConstraints": [SPREAD]}

    async def body(stage: Stage) -> list[bool]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        for name, zone in (("web-1", "a"), ("web-2", "a"), ("web-3", "b")):
            await add_large(stage, name, pool=pool, pods=0)
            labels = {names.ZONE_LABEL: f"test-zone-{zone}"}
            await stage.admin.patch(NODE, f"node-of-{name}", {"metadata": {"labels": labels}})
        for name in ("web-1", "web-2"):
            await add_pod(
                stage, f"on-{name}", node=f"node-of-{name}", owner="StatefulSet", labels={"app": "web"}, **spread
            )
        await drift(stage, "web-1")
        await mark(stage, "web-1")
        await add_replacement(stage, "new-1", pool=pool)
        await bring_up(stage, "new-1")
        if ends == "deleted":
            await stage.admin.delete(NODE_CLAIM, "web-3")
        else:
            await drift(stage, "web-3")
            await mark(stage, "web-3")
            await add_replacement(stage, "new-3", pool=pool, replaces="web-3")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(120)
        seen = ["web-1" in await claims(stage)]
        await stage.admin.delete(NODE_CLAIM, "web-3")
        await stage.admin.patch(NODE, "node-of-web-3", {"metadata": {"finalizers": None}})
        await stage.admin.patch(NODE_CLAIM, "web-3", {"metadata": {"finalizers": None}})  # its Node goes with it
        await asyncio.sleep(120)
        return [*seen, "web-1" in await claims(stage)]

    assert on_stage(body).value == [True, False]
