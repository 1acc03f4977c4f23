"""What was bought for a move that is not made, and people who keep it: until the last look before it goes."""

import asyncio

import pytest

from growth.api import names
from growth.api.growthpools import GROWTH_POOL
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodePool
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.controllers.disruption import Disruption
from growth.controllers.disruption.returning import returned
from tests.manifests import growth_pool
from tests.simulation.moving import (
    ALL,
    add_large,
    add_ready_pool,
    add_replacement,
    bring_up,
    claims,
    coming,
    drift,
    mark,
    tainted,
)
from tests.simulation.owning import Stage, on_stage
from tests.simulation.silence import PROTECTED, deafened

PAUSED: Json = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "true"}}}


async def protected_node(stage: Stage) -> NodePool:
    """A node that nobody may replace, in a pool of which nothing is ever consolidated."""
    pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
    await add_large(stage, pool=pool)
    await stage.admin.patch(NODE, "node-of-web-1", PROTECTED)
    return pool


async def say(stage: Stage, said: Json, of: str) -> None:
    kind, name = {
        "Node": (NODE, "node-of-new-1"),
        "NodeClaim": (NODE_CLAIM, "new-1"),
        "NodePool": (NODE_POOL, "default"),
    }[of]
    await stage.admin.patch(kind, name, said)


@pytest.mark.parametrize(
    ("said", "of"),
    [(PROTECTED, "Node"), (PROTECTED, "NodeClaim"), (PAUSED, "Node"), (PAUSED, "NodeClaim"), (PAUSED, "NodePool")],
    ids=["protected", "claim", "paused", "claim paused", "pool"],
)
def test_whoever_keeps_it_while_it_is_on_its_way_out_is_heard(said: Json, of: str) -> None:
    """It is tainted, and a second later its pods are looked at: what people said of it by then counts, and the taint goes."""

    async def body(stage: Stage) -> tuple[list[str], list[str], list[str]]:
        pool = await protected_node(stage)
        await add_replacement(stage, "new-1", pool=pool)
        await bring_up(stage, "new-1")
        await stage.start(Disruption(stage.env))
        for _ in range(600):
            await asyncio.sleep(0.05)
            if await tainted(stage):
                break
        await say(stage, said, of)
        await asyncio.sleep(40)
        return sorted(await claims(stage)), await coming(stage), await tainted(stage)

    assert on_stage(body).value == (["new-1", "web-1"], [], [])


def test_a_pause_of_its_pool_is_heard_though_the_cache_has_not() -> None:
    """The watch of NodePools is silent: the pool is asked for before the machine goes."""
    holder, api = deafened("NodePool")

    async def body(stage: Stage) -> list[str]:
        pool = await protected_node(stage)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(5)
        holder[0].deaf = True
        await say(stage, PAUSED, "NodePool")
        await add_replacement(stage, "new-1", pool=pool)
        await bring_up(stage, "new-1")
        await asyncio.sleep(40)
        return sorted(await claims(stage))

    assert on_stage(body, api=api).value == ["new-1", "web-1"]


@pytest.mark.parametrize("of", ["Node", "NodeClaim", "NodePool"])
def test_what_is_paused_stays_though_it_is_not_initialised(of: str) -> None:
    """A person may want to look at why it does not come up."""

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        pool = await protected_node(stage)
        await add_replacement(stage, "new-1", pool=pool)
        if of == "Node":
            await bring_up(stage, "new-1")
            raw = await stage.admin.get(NODE_CLAIM.raw, "new-1")
            begun = [each for each in raw["status"]["conditions"] if each["type"] in {names.LAUNCHED, names.REGISTERED}]
            await stage.admin.patch(NODE_CLAIM, "new-1", {"status": {"conditions": begun}}, subresource="status")
        await say(stage, PAUSED, of)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(40)
        return sorted(await claims(stage)), await coming(stage)

    assert on_stage(body).value == (["new-1", "web-1"], [])


@pytest.mark.parametrize(("paused", "left"), [("true", ["new-1"]), ("false", [])])
def test_a_pause_of_a_growth_pool_is_heard_too(paused: str, left: list[str]) -> None:
    """Pools of both APIs may have one name: the claim tells whose it is."""

    async def body(stage: Stage) -> list[str]:
        pool = await stage.add_pool()
        said = {"annotations": {names.PAUSED_ANNOTATION: paused}}
        await stage.admin.create(GROWTH_POOL, growth_pool("default", metadata=said))
        await add_replacement(stage, "new-1", pool=pool)
        labels = {names.NODE_POOL_LABEL: None, names.POOL_LABEL: "default"}
        await stage.admin.patch(NODE_CLAIM, "new-1", {"metadata": {"labels": labels, "finalizers": None}})
        await returned(stage.env, "new-1", budgeted=True)
        return sorted(await claims(stage))

    assert on_stage(body).value == left


def test_do_not_disrupt_keeps_nothing_that_is_not_initialised() -> None:
    """It protects nodes, and what is not up yet is none: a template may give it to every claim of its pool."""

    async def body(stage: Stage) -> list[str]:
        pool = await protected_node(stage)
        await add_replacement(stage, "new-1", pool=pool)
        await say(stage, PROTECTED, "NodeClaim")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(40)
        return sorted(await claims(stage))

    assert on_stage(body).value == ["web-1"]


@pytest.mark.parametrize("up", [False, True], ids=["on their way", "up"])
def test_of_two_that_were_bought_for_the_same_node_one_replaces_it_and_the_other_goes(up: bool) -> None:  # noqa: FBT001 - one of two cases
    """Two processes died that had both bought for it: each machine is all that its own move needs."""

    async def body(stage: Stage) -> tuple[int, int, list[str]]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_large(stage, pool=pool)
        await drift(stage, "web-1")
        await mark(stage, "web-1")
        for name in ("new-1", "new-2"):
            await add_replacement(stage, name, pool=pool)
            if up:
                await bring_up(stage, name)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(30)
        bought = len(set(await claims(stage)) - {"web-1"})
        if not up:
            (left,) = await coming(stage)
            await bring_up(stage, left)
        await asyncio.sleep(60)
        left_over = await claims(stage)
        return bought, len(left_over), sorted(set(left_over) & {"web-1"})

    assert on_stage(body).value == (1, 1, [])


def test_all_that_one_move_bought_for_a_node_is_gone_on_with_together() -> None:
    """Two machines come for one node: neither is one too many, and when both are up the node goes."""

    async def body(stage: Stage) -> list[list[str]]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_large(stage, pool=pool)
        await drift(stage, "web-1")
        await mark(stage, "web-1")
        for name in ("new-1", "new-2"):
            await add_replacement(stage, name, pool=pool, group=("new-1", "new-2"))
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(30)
        seen = [sorted(await claims(stage))]
        for name in ("new-1", "new-2"):
            await bring_up(stage, name)
        await asyncio.sleep(30)
        return [*seen, sorted(await claims(stage))]

    assert on_stage(body).value == [["new-1", "new-2", "web-1"], ["new-1", "new-2"]]
