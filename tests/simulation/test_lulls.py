"""How long a node has been quiet, over a change of who leads."""

import asyncio
import functools
from collections.abc import Awaitable, Callable

import pytest

from growth.api import names
from growth.api.karpenter import NODE_CLAIM
from growth.api.pods import POD
from growth.controllers.disruption import Disruption
from growth.controllers.disruption.lulls import Lull, lull_of
from growth.units import parse_time
from tests.simulation.ending import add_owned, add_pod
from tests.simulation.moving import ALL, claims
from tests.simulation.owning import Stage, on_stage

MINUTE = 60
HOUR: dict[str, object] = {**ALL, "consolidateAfter": "1h"}


async def led(stage: Stage, seconds: float) -> None:
    """Somebody leads for so long, and dies."""
    leads = asyncio.create_task(Disruption(stage.env).run())
    await asyncio.sleep(seconds)
    leads.cancel()
    await asyncio.gather(leads, return_exceptions=True)


async def goes_after(stage: Stage) -> int:
    """Minutes until no claim is left, with somebody else who leads; an hour and a half at most."""
    stage.tasks.append(asyncio.create_task(Disruption(stage.env).run()))
    for minute in range(90):
        if not await claims(stage):
            return minute
        await asyncio.sleep(MINUTE)
    return 90


async def nothing(_: Stage) -> None:
    """Nobody comes or goes."""


async def leaves(stage: Stage) -> None:
    await stage.admin.delete(POD, "idle", namespace="default", grace_seconds=0)


async def unwritten(stage: Stage) -> None:
    await stage.admin.patch(NODE_CLAIM, "web-1", {"metadata": {"annotations": {names.QUIET_SINCE_ANNOTATION: None}}})


async def garbled(stage: Stage) -> None:
    await stage.admin.patch(NODE_CLAIM, "web-1", {"metadata": {"annotations": {names.QUIET_SINCE_ANNOTATION: "soon"}}})


@pytest.mark.parametrize(("meanwhile", "minutes"), [(nothing, 20), (leaves, 60), (unwritten, 60), (garbled, 60)])
def test_who_leads_next_goes_on_counting(meanwhile: Callable[[Stage], Awaitable[None]], minutes: int) -> None:
    """Forty minutes of the hour were quiet before. Where a pod left while nobody looked, or nothing can be read, it counts
    anew.
    """

    async def body(stage: Stage) -> int:
        pool = await stage.add_pool(disruption=HOUR)
        await add_owned(stage, pool=pool)
        cost = {"controller.kubernetes.io/pod-deletion-cost": "-2147483648"}
        await add_pod(stage, "idle", owner="StatefulSet", annotations=cost)
        await stage.start()
        await led(stage, 40 * MINUTE)
        await meanwhile(stage)
        await asyncio.sleep(5)
        return await goes_after(stage)

    assert minutes <= on_stage(body).value <= minutes + 2


def test_what_the_leader_before_saw_come_and_go_counts_for_the_next_one() -> None:
    """For an hour a pod comes and goes every five minutes; who leads then finds the pods of the lull before, and believes it
    not.
    """

    async def body(stage: Stage) -> int:
        pool = await stage.add_pool(disruption=HOUR)
        await add_owned(stage, pool=pool)
        await stage.start()
        leads = asyncio.create_task(led(stage, 71 * MINUTE))
        await asyncio.sleep(10 * MINUTE)
        assert lull_of(await stage.claim("web-1")) is not None
        for number in range(12):
            await add_pod(stage, f"brief-{number}", owner="StatefulSet")
            await asyncio.sleep(MINUTE)
            await stage.admin.delete(POD, f"brief-{number}", namespace="default", grace_seconds=0)
            await asyncio.sleep(4 * MINUTE)
        await leads
        return await goes_after(stage)

    assert on_stage(body).value >= 55


def test_a_lull_is_written_once_and_a_busy_node_never() -> None:
    """Nor is one of a pool that waits for a short time only."""

    async def body(stage: Stage) -> tuple[dict[str, Lull | None], int]:
        for name, after in (("long", "10h"), ("short", "15m")):
            pool = await stage.add_pool(
                name, disruption={**ALL, "consolidateAfter": after, "budgets": [{"nodes": "0"}]}
            )
            await add_owned(stage, f"{name}-idle", pool=pool)
            await add_owned(stage, f"{name}-busy", pool=pool)
        await stage.start(Disruption(stage.env))
        for number in range(12):
            await asyncio.sleep(20 * MINUTE)
            for name in ("long", "short"):
                await add_pod(stage, f"{name}-{number}", node=f"node-of-{name}-busy", owner="StatefulSet")
        written = {name: lull_of(each) for name, each in (await claims(stage)).items()}
        before = stage.writes()
        await asyncio.sleep(20 * MINUTE)
        return written, stage.writes() - before

    written, more = on_stage(body).value
    assert [name for name, lull in written.items() if lull is not None] == ["long-idle"]
    assert more == 0


def test_a_change_is_written_when_it_is_over() -> None:
    """A tenth of what the pool waits for later; until then nothing is written."""

    async def body(stage: Stage) -> list[Lull | None]:
        pool = await stage.add_pool(disruption={**HOUR, "budgets": [{"nodes": "0"}]})
        await add_owned(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(10 * MINUTE)
        seen = [lull_of(await stage.claim("web-1"))]
        await add_pod(stage, "a", owner="StatefulSet")
        for minutes in (5, 2):
            await asyncio.sleep(minutes * MINUTE)
            seen.append(lull_of(await stage.claim("web-1")))
        return seen

    first, soon, later = on_stage(body).value
    assert first is not None
    assert later is not None
    assert soon is None
    assert (later.since - first.since).total_seconds() == pytest.approx(10 * MINUTE, abs=2)
    assert later.pods != first.pods


def test_what_is_written_can_be_read() -> None:
    """A time of whole seconds and who was there."""

    async def body(stage: Stage, text: str) -> Lull | None:
        pool = await stage.add_pool(disruption=HOUR)
        await add_owned(stage, pool=pool)
        await stage.admin.patch(
            NODE_CLAIM, "web-1", {"metadata": {"annotations": {names.QUIET_SINCE_ANNOTATION: text}}}
        )
        return lull_of(await stage.claim("web-1"))

    lull = Lull(parse_time("2030-01-07T08:00:00Z"), "0123456789abcdef")
    assert on_stage(functools.partial(body, text=str(lull))).value == lull
    assert on_stage(functools.partial(body, text="yesterday")).value is None
