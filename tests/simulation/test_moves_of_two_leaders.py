"""Two processes that both believe that they lead: what the one takes back the other does not delete, at whatever moment."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from growth.api.karpenter import NODE_CLAIM
from growth.api.kinds import Kind
from growth.api.nodes import NODE
from growth.controllers.disruption import Disruption, marking
from growth.controllers.disruption.returning import returned, settled
from growth.kube.memory import MemoryApi
from tests.simulation.ending import add_owned
from tests.simulation.moving import (
    ALL,
    add_large,
    add_ready_pool,
    add_replacement,
    bring_up,
    claims,
    coming,
    disrupted,
    mark,
    tainted,
    until_coming,
)
from tests.simulation.owning import Stage, on_stage

Before = dict[tuple[str, str], Callable[[], Awaitable[None]]]
"""By verb and name: what somebody else does just before this request is carried out, once."""


def overtaken(before: Before) -> Callable[[MemoryApi], MemoryApi]:
    class Late(MemoryApi):
        async def patch(self, kind: Kind[Any], name: str, patch: Any, **more: Any) -> Any:
            if act := before.pop((f"patch {kind.kind}", name), None):
                await act()
            return await super().patch(kind, name, patch, **more)

        async def delete(self, kind: Kind[Any], name: str, **more: Any) -> Any:
            if act := before.pop((f"delete {kind.kind}", name), None):
                await act()
            return await super().delete(kind, name, **more)

    return lambda api: Late(api._server)


def test_an_empty_node_whose_mark_the_other_took_off_stays() -> None:
    """One has marked and looked, and is late with the deletion; the other found a mark of nobody, and took it off."""
    before: Before = {}

    async def body(stage: Stage) -> tuple[list[str], list[str], list[str]]:
        pool = await add_ready_pool(stage)
        await add_owned(stage, "web-1", pool=pool)

        met = asyncio.Event()

        async def other() -> None:
            met.set()
            node = await stage.admin.get(NODE, "node-of-web-1")
            await marking.unmark(stage.env, node, await stage.claim("web-1"), why="nobody is disrupting it")
            assert await tainted(stage) == []

        before["delete NodeClaim", "web-1"] = other
        await stage.start(Disruption(stage.env))
        await met.wait()
        await asyncio.sleep(2)
        return [*await claims(stage)], await tainted(stage), await disrupted(stage)

    assert on_stage(body, api=overtaken(before)).value == (["web-1"], [], [])


def test_a_move_that_the_other_takes_back_deletes_nothing() -> None:
    """What was bought is up and looked at; the claim's reason goes before anything else is taken back."""
    before: Before = {}

    async def body(stage: Stage) -> tuple[bool, list[str]]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)

        met = asyncio.Event()

        async def other() -> None:
            met.set()
            await marking.withdraw(stage.env, await stage.claim("web-1"))

        before["delete NodeClaim", "web-1"] = other
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage)
        await bring_up(stage, new)
        await met.wait()
        await asyncio.sleep(10)
        return "web-1" in await claims(stage), await tainted(stage)

    assert on_stage(body, api=overtaken(before)).value == (True, [])


def test_the_mark_of_a_claim_that_the_other_deletes_stays() -> None:
    """One takes a mark off while the other deletes the claim: the Node keeps its taint."""
    before: Before = {}

    async def body(stage: Stage) -> list[str]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_owned(stage, "web-1", pool=pool)
        await mark(stage, "web-1")

        async def other() -> None:
            await stage.admin.delete(NODE_CLAIM, "web-1")

        before["patch NodeClaim", "web-1"] = other
        await marking.unmark(
            stage.env, await stage.admin.get(NODE, "node-of-web-1"), await stage.claim("web-1"), why="a test"
        )
        return await tainted(stage)

    assert on_stage(body, api=overtaken(before)).value == ["node-of-web-1"]


def test_a_mark_that_the_other_makes_meanwhile_is_taken_off_whole() -> None:
    """One takes an old mark off, and before it comes to the Node the other has marked it anew: no half of a mark is left."""
    before: Before = {}

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_owned(stage, "web-1", pool=pool)
        await mark(stage, "web-1")
        node, claim = await stage.admin.get(NODE, "node-of-web-1"), await stage.claim("web-1")

        async def other() -> None:
            await stage.set_taints("node-of-web-1", [])
            await marking.mark(stage.env, node, claim, reason="Drifted")

        before["patch Node", "node-of-web-1"] = other
        await marking.unmark(stage.env, node, claim, why="a test")
        return await tainted(stage), await disrupted(stage)

    assert on_stage(body, api=overtaken(before)).value == ([], [])


def test_a_replacement_that_the_other_made_a_machine_like_any_other_stays() -> None:
    """One returns it as it is empty; the other says meanwhile that pods are on their way to it."""
    before: Before = {}

    async def body(stage: Stage) -> tuple[bool, list[str]]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_large(stage, pool=pool)
        await add_replacement(stage, "new-1", pool=pool)
        await bring_up(stage, "new-1")

        met = asyncio.Event()

        async def other() -> None:
            met.set()
            await settled(stage.env, "new-1")

        before["delete NodeClaim", "new-1"] = other
        await stage.start(Disruption(stage.env))
        await met.wait()
        await asyncio.sleep(30)
        await returned(stage.env, "new-1", budgeted=True)
        return "new-1" in await claims(stage), [*await coming(stage), *await tainted(stage)]

    assert on_stage(body, api=overtaken(before)).value == (True, [])
