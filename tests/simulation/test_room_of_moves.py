"""Whether the pods of a move have a place is asked of the server, not of the cache, before its claims are deleted."""

import asyncio
from typing import Any

import pytest

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Kind
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.controllers.disruption import Disruption, surroundings
from growth.controllers.growth import marking
from growth.kube.api import Api
from growth.kube.memory import MemoryApi
from growth.units import parse_time
from tests.simulation.ending import add_budget, add_pod
from tests.simulation.moving import (
    ALL,
    Recording,
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
from tests.simulation.silence import PROTECTED, Deaf, asks, deafened


async def two_halves(stage: Stage) -> None:
    """Two large machines with a little on each: one of them is enough. None may be bought."""
    pool = await add_ready_pool(stage, limits={"nodes": "2"})
    await add_large(stage, pool=pool, cpu="3")
    await add_large(stage, "web-2", pool=pool, cpu="3")
    await stage.start(Disruption(stage.env))
    await asyncio.sleep(30)


async def one_may_go(stage: Stage, *, third: str = "10") -> None:
    """Three large machines: the first has little on it, the others are protected, and each has room for that."""
    pool = await add_ready_pool(stage, limits={"nodes": "3"})
    for name, cpu in (("web-1", "3"), ("web-2", "10"), ("web-3", third)):
        await add_large(stage, name, pool=pool, cpu=cpu)
    for name in ("web-2", "web-3"):
        await stage.admin.patch(NODE, f"node-of-{name}", PROTECTED)
    await stage.start(Disruption(stage.env))
    await asyncio.sleep(30)


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


def test_a_drifted_node_whose_move_is_taken_back_is_not_tried_again_at_once() -> None:
    """There is room by the cache and none by the server: it is marked a few times, further and further apart, not every
    second. When there is room it goes.
    """
    recorded: list[Recording] = []
    holder, deaf = deafened()

    def api(real: MemoryApi) -> Api:
        recorded.append(Recording(deaf(real)))
        return recorded[0]

    async def body(stage: Stage) -> tuple[int, list[str], list[str]]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"}, limits={"nodes": "2"})
        await add_large(stage, pool=pool, cpu="3")
        await add_large(stage, "web-2", pool=pool, cpu="10")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(30)
        holder[0].deaf = True
        await add_pod(stage, "thief", node="node-of-web-2", owner="StatefulSet", containers=asks("5"))
        await drift(stage, "web-1")
        await asyncio.sleep(200)
        tries, before = recorded[0].done.count("taint node-of-web-1"), sorted(await claims(stage))
        await stage.admin.delete(POD, "thief", namespace="default", grace_seconds=0)
        await asyncio.sleep(200)
        return tries, before, sorted(await claims(stage))

    tries, before, after = on_stage(body, api=api).value
    assert 3 <= tries <= 6
    assert (before, after) == (["web-1", "web-2"], ["web-2"])


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


def test_a_machine_of_ours_that_is_not_up_is_no_place_though_nobody_heard_of_its_claim() -> None:
    """Its Node is there and has no mark of ours yet: to a cache without its claim it looks like anybody's, with room for all.
    But that is for whom it was bought. Nothing goes until it is up.
    """
    holder, api = deafened("NodeClaim")

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        pool = await add_ready_pool(stage, limits={"nodes": "2"})
        await add_large(stage, pool=pool, cpu="3")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(30)
        holder[0].deaf = True
        await add_large(stage, "web-2", pool=pool, cpu="1")
        marks = {names.REGISTERED_LABEL: None, names.INITIALIZED_LABEL: None, names.NODE_POOL_LABEL: None}
        await stage.admin.patch(NODE, "node-of-web-2", {"metadata": {"labels": marks}})
        await asyncio.sleep(60)
        return sorted(await claims(stage)), await tainted(stage)

    assert on_stage(body, api=api).value == (["web-1", "web-2"], [])


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


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize(("kind", "name"), [(NODE_CLAIM, "web-3"), (NODE, "node-of-web-3")])
def test_a_machine_elsewhere_that_leaves_while_the_watch_is_silent(kind: Kind[Any], name: str, *, leaves: bool) -> None:
    """Its pods want the same room, which the cache has not heard: nothing goes by what it says. Whichever of the two objects
    of the machine is being deleted: a cloud takes the Node away whose machine is gone, and nobody touches the claim.
    """
    holder, api = deafened(kind.kind)

    async def body(stage: Stage) -> bool:
        await one_may_go(stage)
        holder[0].deaf = True
        if leaves:
            await stage.admin.delete(kind, name)
        await asyncio.sleep(20)
        return "web-1" in await claims(stage)

    assert on_stage(body, api=api).value == leaves


def test_a_node_that_another_process_replaces_while_the_watch_is_silent() -> None:
    """What comes for it is not up, which the cache has not even heard of: the node stays until that is known."""
    holder, api = deafened("NodeClaim")

    async def body(stage: Stage) -> bool:
        await one_may_go(stage)
        holder[0].deaf = True
        await add_replacement(stage, "new-1", pool=await stage.admin.get(NODE_POOL, "default"), replaces="web-1")
        await asyncio.sleep(40)
        return "web-1" in await claims(stage)

    assert on_stage(body, api=api).value


@pytest.mark.parametrize("silent", ["NodeClaim", "Node"])
def test_a_machine_that_is_known_to_leave_holds_nothing_up(silent: str) -> None:
    """One of its two objects tells the cache, and its pods are in line: that the other is being deleted too is no news."""
    holder, api = deafened(silent)

    async def body(stage: Stage) -> bool:
        await one_may_go(stage, third="2")
        holder[0].deaf = True
        await stage.admin.delete(NODE_CLAIM, "web-3")
        await stage.admin.delete(NODE, "node-of-web-3")
        await asyncio.sleep(20)
        return "web-1" in await claims(stage)

    assert not on_stage(body, api=api).value


class GoneByTheAnswer(Deaf):
    """An API that tells of a Node which is being deleted when it has gone, and the cache has heard so."""

    async def list(self, kind: Kind[Any], **more: Any) -> Any:
        answer = await super().list(kind, **more)
        if kind is NODE and any(node.metadata.deletion_timestamp is not None for node in answer.items):
            await self._api.patch(NODE, "node-of-web-3", {"metadata": {"finalizers": None}})
            await asyncio.sleep(1)
        return answer


def test_a_machine_that_has_gone_by_the_answer_holds_nothing_up() -> None:
    """The cache knew that it leaves when the server was asked: it is ahead of the answer, not behind."""

    async def body(stage: Stage) -> bool:
        await one_may_go(stage, third="2")
        await stage.admin.delete(NODE, "node-of-web-3")
        await asyncio.sleep(20)
        return "web-1" in await claims(stage)

    assert not on_stage(body, api=GoneByTheAnswer).value


class MarkedMeanwhile(Deaf):
    """An API whose one node gets the mark of scale-down when a move is about to look at its pool."""

    def __init__(self, api: MemoryApi) -> None:
        super().__init__(api)
        self.marked_at_the_end: list[bool] = []

    async def get(self, kind: Kind[Any], name: str, **more: Any) -> Any:
        if kind is NODE_POOL and await self._tainted("node-of-web-1", names.DISRUPTED_TAINT):
            marked = await self._api.get(NODE, "node-of-web-2")
            await marking.mark(self._api, marked, at=parse_time("2031-01-01T00:00:00Z"))
            await asyncio.sleep(1)
        return await self._api.get(kind, name, **more)

    async def delete(self, kind: Kind[Any], name: str, **more: Any) -> Any:
        if kind is NODE_CLAIM:
            self.marked_at_the_end.append(await self._tainted("node-of-web-2", names.SCALE_DOWN_TAINT))
        return await self._api.delete(kind, name, **more)

    async def _tainted(self, node: str, key: str) -> bool:
        return any(taint.key == key for taint in (await self._api.get(NODE, node)).spec.taints)


def test_room_on_a_node_that_is_marked_for_scale_down_meanwhile() -> None:
    """Its mark comes off first: until then no pod could go there."""
    holder: list[MarkedMeanwhile] = []

    def api(real: MemoryApi) -> Api:
        holder.append(MarkedMeanwhile(real))
        return holder[0]

    async def body(stage: Stage) -> list[str]:
        await one_may_go(stage)
        await add_pod(stage, "thief", node="node-of-web-3", owner="StatefulSet", containers=asks("5"))
        await asyncio.sleep(60)
        return sorted(await claims(stage))

    assert on_stage(body, api=api).value == ["web-2", "web-3"]
    assert holder[0].marked_at_the_end == [False]
