"""A machine was bought for a move, and when it is up the pods may not be asked to leave: what is waited for, and for how long."""

import asyncio

import pytest

from growth.api import names
from growth.api.karpenter import NODE_POOL
from growth.api.kinds import Json
from growth.api.pods import POD
from growth.api.policy import POD_DISRUPTION_BUDGET
from growth.controllers.disruption import Disruption
from tests.simulation.ending import add_budget
from tests.simulation.moving import (
    ALL,
    add_large,
    add_ready_pool,
    bring_up,
    claims,
    coming,
    drift,
    tainted,
    until_coming,
)
from tests.simulation.owning import Stage, on_stage

BOTH = pytest.mark.parametrize("drifts", [True, False])
PATIENCE = 600  # seconds that a move may take


async def bought(stage: Stage, *, drifts: bool, **budget: object) -> str:
    """What came in the place of a node whose pod has a budget that allows an eviction."""
    never: Json = {"consolidateAfter": "Never"} if drifts else {}
    pool = await add_ready_pool(stage, disruption={**ALL, **never})
    await add_large(stage, pool=pool)
    await add_budget(stage, "web", app="on-web-1-0", **(budget or {"minAvailable": 1}))
    await allow(stage, 1)
    if drifts:
        await drift(stage, "web-1")
    await stage.start(Disruption(stage.env))
    (new,) = await until_coming(stage)
    return new


async def allow(stage: Stage, evictions: int) -> None:
    status = {"status": {"disruptionsAllowed": evictions}}
    await stage.admin.patch(POD_DISRUPTION_BUDGET, "web", status, namespace="default", subresource="status")


async def protect(stage: Stage, value: str) -> None:
    annotation = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: value}}}
    await stage.admin.patch(POD, "on-web-1-0", annotation, namespace="default")


async def is_marked(stage: Stage) -> bool:
    return "node-of-web-1" in await tainted(stage)


async def until_free(stage: Stage, *, seconds: int) -> float:
    """When the node was not tainted any more."""
    for _ in range(seconds):
        await asyncio.sleep(1)
        if not await is_marked(stage):
            return stage.kernel.time()
    raise AssertionError(f"still tainted after {seconds} s")


@BOTH
def test_a_budget_of_pods_that_closes_meanwhile_is_waited_for(*, drifts: bool) -> None:
    """Another rollout uses it up when the new machine comes up: that machine stays, and the node goes when it may."""

    async def body(stage: Stage) -> tuple[list[str], bool, list[str]]:
        new = await bought(stage, drifts=drifts)
        await allow(stage, 0)
        await bring_up(stage, new)
        await asyncio.sleep(100)
        there, closed = sorted({*await claims(stage)} - {new}), await is_marked(stage)
        await allow(stage, 1)
        await asyncio.sleep(10)
        assert new in await claims(stage)
        return there, closed, sorted({*await claims(stage)} - {new})

    assert on_stage(body).value == (["web-1"], True, [])


@BOTH
def test_what_came_up_for_nothing_is_not_bought_again_at_once(*, drifts: bool) -> None:
    """The budget is closed for as long as a move may take, and opens when that is given up: the next machine is bought a
    minute later, the one after that two.
    """

    async def body(stage: Stage) -> list[float]:
        new = await bought(stage, drifts=drifts)
        gaps: list[float] = []
        for _ in range(2):
            await allow(stage, 0)
            await bring_up(stage, new)
            await asyncio.sleep(PATIENCE - 60)
            assert [await coming(stage), await is_marked(stage)] == [[new], True]
            back = await until_free(stage, seconds=120)
            assert await coming(stage) == []
            await allow(stage, 1)
            (new,) = await until_coming(stage, seconds=600)
            gaps.append(stage.kernel.time() - back)
        return gaps

    first, second = on_stage(body).value
    assert 60 <= first < 120 <= second < 180


def test_a_drifted_node_that_had_its_chance_lets_the_next_one_go_first() -> None:
    """What was bought for it came up for nothing: it rests, and the other drifted node of its pool does not."""

    async def body(stage: Stage) -> str:
        new = await bought(stage, drifts=True)
        await allow(stage, 0)
        await bring_up(stage, new)
        await until_free(stage, seconds=PATIENCE + 60)
        await allow(stage, 1)
        await add_large(stage, "web-2", pool=await stage.admin.get(NODE_POOL, "default"))
        await drift(stage, "web-2")
        (other,) = await until_coming(stage, seconds=50)
        return (await stage.claim(other)).metadata.annotations[names.REPLACES_ANNOTATION]

    assert on_stage(body).value == "web-2"


@BOTH
def test_a_budget_that_never_allows_an_eviction_is_not_waited_for(*, drifts: bool) -> None:
    """Somebody wrote so meanwhile: what was bought is given back, and nothing is bought until they write otherwise."""

    async def body(stage: Stage) -> tuple[list[str], bool]:
        new = await bought(stage, drifts=drifts, maxUnavailable=1)
        await stage.admin.patch(POD_DISRUPTION_BUDGET, "web", {"spec": {"maxUnavailable": 0}}, namespace="default")
        await allow(stage, 0)
        await bring_up(stage, new)
        await asyncio.sleep(300)
        return sorted(await claims(stage)), await is_marked(stage)

    assert on_stage(body).value == (["web-1"], False)


@BOTH
@pytest.mark.parametrize(("value", "waits"), [("3m", True), ("2h", False), ("true", False)])
def test_an_annotation_is_waited_for_where_it_ends_soon(value: str, *, drifts: bool, waits: bool) -> None:
    """A pod has become protected meanwhile: for some minutes, which are waited for, or for longer than any move may take."""

    async def body(stage: Stage) -> tuple[bool, bool]:
        new = await bought(stage, drifts=drifts)
        await protect(stage, value)
        await bring_up(stage, new)
        await asyncio.sleep(30)
        stays = new in await claims(stage)
        await asyncio.sleep(180)
        return stays, "web-1" not in await claims(stage)

    assert on_stage(body).value == (waits, waits)
