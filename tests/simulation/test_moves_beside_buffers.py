"""Room that a CapacityBuffer keeps is no room for the pods of a move: somebody would buy it anew."""

import asyncio

from growth.api.buffers import CAPACITY_BUFFER
from growth.api.kinds import Json
from growth.api.pods import POD_TEMPLATE
from growth.controllers.buffers import Buffers
from growth.controllers.disruption import Disruption
from tests.simulation.moving import add_large, add_ready_pool, claims, tainted
from tests.simulation.owning import Stage, on_stage

ASKED = {"name": "main", "image": "example", "resources": {"requests": {"cpu": "1"}}}


async def add_buffer(stage: Stage, pods: int) -> None:
    template: Json = {"metadata": {"name": "spare"}, "template": {"spec": {"containers": [ASKED]}}}
    await stage.admin.create(POD_TEMPLATE, template, namespace="default")
    spec = {"podTemplateRef": {"name": "spare"}, "replicas": pods}
    await stage.admin.create(CAPACITY_BUFFER, {"metadata": {"name": "spare"}, "spec": spec}, namespace="default")


def test_a_move_leaves_buffers_their_room() -> None:
    """Five pods on each of two nodes would fit on one of them, but not beside eight of a buffer: both stay until it goes."""

    async def body(stage: Stage) -> list[int]:
        pool = await add_ready_pool(stage, limits={"nodes": "2"})
        await add_buffer(stage, 8)
        for name in ("web-1", "web-2"):
            await add_large(stage, name, pool=pool, pods=5)
        await stage.start(Buffers(stage.env), Disruption(stage.env))
        await asyncio.sleep(400)
        seen = [len(await claims(stage))]
        await stage.admin.delete(CAPACITY_BUFFER, "spare", namespace="default")
        await asyncio.sleep(60)
        return [*seen, len(await claims(stage))]

    assert on_stage(body).value == [2, 1]


def test_a_buffer_that_has_no_room_anyway_holds_nothing_up() -> None:
    """More than all nodes could ever hold: what a move saves is saved all the same."""

    async def body(stage: Stage) -> int:
        pool = await add_ready_pool(stage, limits={"nodes": "2"})
        await add_buffer(stage, 1)
        huge = {"template": {"spec": {"containers": [{**ASKED, "resources": {"requests": {"cpu": "500"}}}]}}}
        await stage.admin.patch(POD_TEMPLATE, "spare", huge, namespace="default")
        for name in ("web-1", "web-2"):
            await add_large(stage, name, pool=pool, pods=5)
        await stage.start(Buffers(stage.env), Disruption(stage.env))
        await asyncio.sleep(100)
        return len(await claims(stage))

    assert on_stage(body).value == 1


def test_a_buffer_that_grew_meanwhile_keeps_a_move_from_being_begun() -> None:
    """Between the decision and its check a quarter of a minute passes: the room that was free is kept for somebody by then."""

    async def body(stage: Stage) -> tuple[int, list[str]]:
        pool = await add_ready_pool(stage, limits={"nodes": "2"})
        for name in ("web-1", "web-2"):
            await add_large(stage, name, pool=pool, pods=5)
        await stage.start(Buffers(stage.env), Disruption(stage.env))
        await asyncio.sleep(30)  # decided after the nominations' 20 s, and begun 15 s later
        await add_buffer(stage, 8)
        await asyncio.sleep(120)
        return len(await claims(stage)), await tainted(stage)

    assert on_stage(body).value == (2, [])


def test_where_pods_of_buffers_are_is_nobodys_concern() -> None:
    """They find room on the third node, wherever they were thought of first: the move is made."""

    async def body(stage: Stage) -> int:
        pool = await add_ready_pool(stage, limits={"nodes": "3"})
        await add_buffer(stage, 10)
        for name in ("web-1", "web-2", "web-3"):
            await add_large(stage, name, pool=pool, pods=5)
        await stage.start(Buffers(stage.env), Disruption(stage.env))
        await asyncio.sleep(200)
        return len(await claims(stage))

    assert on_stage(body).value == 2
