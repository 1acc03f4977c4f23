"""The mark on nodes that are the next to go: when it is written, and that it never outlives its reason."""

import asyncio

from growth.api import names
from growth.api.karpenter import NODE_POOL
from growth.api.nodes import NODE
from growth.controllers.disruption import Disruption
from growth.controllers.settings import ControllerSettings
from tests.simulation.ending import add_owned
from tests.simulation.moving import ALL, LARGE, REQUIREMENTS, add_large, add_ready_pool, claims, tainted
from tests.simulation.owning import Stage, on_stage

ONE_AT_A_TIME = {**ALL, "budgets": [{"nodes": "1"}]}
CLOSED = {**ALL, "budgets": [{"nodes": "0"}]}
LARGE_ONLY = {"requirements": [*REQUIREMENTS, {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [LARGE]}]}


async def marked(stage: Stage) -> list[str]:
    listed = (await stage.admin.list(NODE)).items
    return sorted(
        each.metadata.name
        for each in listed
        if any(
            (taint.key, taint.effect) == (names.LEAVING_SOON_TAINT, "PreferNoSchedule") for taint in each.spec.taints
        )
    )


async def until_marked(stage: Stage) -> list[str]:
    for _ in range(60):
        await asyncio.sleep(1)
        if found := await marked(stage):
            return found
    raise AssertionError("nothing was marked within a minute")


async def three_large(stage: Stage, disruption: dict[str, object]) -> None:
    pool = await add_ready_pool(stage, disruption=disruption, template=LARGE_ONLY)
    for name in ("web-1", "web-2", "web-3"):
        await add_large(stage, name, pool=pool)


def test_the_next_to_go_are_marked_before_any_pod_leaves() -> None:
    """Three machines are to become one, one at a time: of the two that stay for now the one that follows is marked while
    the first still waits for its second look, and nothing else is.
    """

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        await three_large(stage, ONE_AT_A_TIME)
        await stage.start(Disruption(stage.env))
        return await until_marked(stage), await tainted(stage)

    found, gone = on_stage(body).value
    assert (len(found), gone) == (1, [])


def test_a_mark_that_nobody_wants_any_more_goes_after_a_minute() -> None:
    """Budgets close while others go: nobody knows when the turn of the rest comes. It is not taken off at once, for targets
    change with every pod.
    """

    async def body(stage: Stage) -> tuple[int, int, list[str]]:
        await three_large(stage, ONE_AT_A_TIME)
        await stage.start(Disruption(stage.env))
        await until_marked(stage)
        await stage.admin.patch(NODE_POOL, "default", {"spec": {"disruption": CLOSED}})
        await asyncio.sleep(45)
        soon = len(await marked(stage))
        await asyncio.sleep(45)
        return soon, len(await marked(stage)), sorted(await claims(stage))

    assert on_stage(body).value == (1, 0, ["web-1", "web-2", "web-3"])


def test_what_a_dead_process_marked_is_taken_off() -> None:
    """Whoever leads next finds it, and takes it off machines of ours alone."""

    async def body(stage: Stage) -> list[str]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_owned(stage, "web-1", pool=pool)
        mark = {"key": names.LEAVING_SOON_TAINT, "effect": "PreferNoSchedule"}
        await stage.set_taints("node-of-web-1", [mark])
        await stage.join("somebodys", provider_id="other://1", taints=[mark])
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(120)
        return await marked(stage)

    assert on_stage(body).value == ["somebodys"]


def test_who_only_observes_marks_nothing() -> None:
    """It says what it would do, and writes no Node."""

    async def body(stage: Stage) -> list[str]:
        await three_large(stage, ONE_AT_A_TIME)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(120)
        return await marked(stage)

    assert on_stage(body, settings=ControllerSettings(observe=True)).value == []
