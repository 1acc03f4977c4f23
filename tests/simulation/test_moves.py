"""Moves that replace: in which order they act, what stops them, and what is left when they are taken back."""

import asyncio
import dataclasses
from typing import Any

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.nodes import NODE
from growth.controllers.disruption import Disruption
from growth.controllers.disruption.metrics import DECISIONS, FAILED_VALIDATIONS, QUEUE_FAILURES
from growth.kube.api import Api
from growth.kube.memory import MemoryApi
from tests.simulation.ending import add_pod
from tests.simulation.moving import (
    ALL,
    Recording,
    add_large,
    add_ready_pool,
    bring_up,
    claims,
    coming,
    disrupted,
    tainted,
    until_coming,
)
from tests.simulation.owning import Stage, condition, on_stage

TYPES = {"decision": "replace", "reason": "underutilized", "consolidation_type": "single"}


def test_what_replaces_is_up_before_anything_goes() -> None:
    """Taint, reason, claim; then nothing until the new machine is initialised; then the old claim is deleted."""
    holder: list[Recording] = []

    def api(real: MemoryApi) -> Api:
        holder.append(Recording(real))
        return holder[0]

    async def body(stage: Stage) -> list[list[str]]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage)
        told = condition(await stage.claim("web-1"), names.DISRUPTION_REASON)
        assert (told.status, told.reason, told.message) == ("True", "Underutilized", "Underutilized")
        assert (await stage.claim(new)).metadata.annotations[names.REPLACES_ANNOTATION] == "web-1"
        await asyncio.sleep(300)
        before = list(holder[0].done)
        await bring_up(stage, new)
        await asyncio.sleep(10)
        assert stage.env.metrics.value(DECISIONS, **TYPES) == 1
        events = await stage.events()
        for reason, kind, message in (
            (names.DISRUPTION_LAUNCHING, "NodeClaim", "Launching NodeClaim: Underutilized"),
            (names.DISRUPTION_WAITING_READINESS, "NodeClaim", "Waiting on readiness to continue disruption"),
            (names.DISRUPTION_TERMINATING, "Node", "Disrupting Node: Underutilized"),
            (names.DISRUPTION_TERMINATING, "NodeClaim", "Disrupting NodeClaim: Underutilized"),
        ):
            assert (reason, kind, message) in {(one.reason, one.involved_object.kind, one.message) for one in events}
        return [before, holder[0].done[len(before) :], sorted(set(await claims(stage)) - {new})]

    before, after, left = on_stage(body, api=api).value
    assert before == ["taint node-of-web-1", "condition web-1", "create"]
    assert after == ["delete web-1"]
    assert left == []


def test_a_move_waits_and_is_checked_again() -> None:
    """For fifteen seconds nothing is done; what protects the node by then ends the move, and it is counted."""

    async def body(stage: Stage) -> tuple[list[str], list[str], float]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(30)  # of which twenty pass before we may believe that nobody is nominated
        assert await tainted(stage) == []
        annotation = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE, "node-of-web-1", annotation)
        await asyncio.sleep(300)
        failed = stage.env.metrics.value(FAILED_VALIDATIONS, consolidation_type="single")
        return await coming(stage), await tainted(stage), failed

    assert on_stage(body).value == ([], [], 1.0)


def test_after_a_failed_check_the_next_best_follows() -> None:
    """One of two nodes was to go to the other and is protected while it waits: the other goes to it, soon after."""

    async def body(stage: Stage) -> tuple[float, list[str], list[str]]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool, cpu="3")
        await add_large(stage, "web-2", pool=pool, cpu="3")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(30)
        annotation = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE, "node-of-web-2", annotation)
        await asyncio.sleep(60)
        failed = stage.env.metrics.value(FAILED_VALIDATIONS, consolidation_type="single")
        return failed, await tainted(stage), sorted(set(await claims(stage)) - set(await coming(stage)))

    assert on_stage(body).value == (1.0, ["node-of-web-1"], ["web-2"])


def test_types_that_are_sold_no_more_end_the_move() -> None:
    """What a replacement lists must still be had for its price when the move is checked again."""

    async def body(stage: Stage) -> list[str]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(30)
        large = [kind for kind in stage.cloud.sold.types if kind.name == "c-16x-amd64-linux"]
        stage.env.state.catalogue = dataclasses.replace(stage.cloud.sold, types=tuple(large))
        await asyncio.sleep(300)
        return [*await coming(stage), *await tainted(stage)]

    assert on_stage(body).value == []


def test_a_replacement_that_vanishes_takes_the_move_back() -> None:
    """Its claim is deleted before it is up, as without stock: the node takes pods again, and it is counted."""

    async def body(stage: Stage) -> tuple[Any, ...]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage)
        await stage.admin.patch(NODE_CLAIM, new, {"metadata": {"finalizers": None}})
        await stage.admin.delete(NODE_CLAIM, new)
        await asyncio.sleep(15)
        failures = stage.env.metrics.value(QUEUE_FAILURES, **TYPES)
        return await tainted(stage), await disrupted(stage), sorted(await claims(stage)), failures

    assert on_stage(body).value == ([], [], ["web-1"], 1.0)


def test_what_does_not_come_up_is_given_up_after_ten_minutes() -> None:
    """The taint goes, and so does the machine that nobody needs."""

    async def body(stage: Stage) -> tuple[Any, ...]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage)
        await asyncio.sleep(540)
        seen = [new in await claims(stage), *await tainted(stage)]
        await asyncio.sleep(90)
        return seen, new in await claims(stage), await tainted(stage), await disrupted(stage)

    assert on_stage(body).value == ([True, "node-of-web-1"], False, [], [])


def test_a_replacement_with_pods_stays_when_the_move_is_taken_back() -> None:
    """Somebody's pod is on it: it replaces nobody any more, and is a machine like any other."""

    async def body(stage: Stage) -> tuple[Any, ...]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage)
        annotation = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE, "node-of-web-1", annotation)
        await bring_up(stage, new)
        await add_pod(stage, "quick", node=f"node-of-{new}", owner="StatefulSet")
        await asyncio.sleep(10)
        return await coming(stage), new in await claims(stage), await tainted(stage), "web-1" in await claims(stage)

    assert on_stage(body).value == ([], True, [], True)


def test_a_budget_that_closes_meanwhile_is_waited_for() -> None:
    """The new machine is up and the budget allows nothing: the node goes when it does again."""

    async def body(stage: Stage) -> list[bool]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage)
        closed = {"spec": {"disruption": {**ALL, "budgets": [{"nodes": "0"}]}}}
        await stage.admin.patch(NODE_POOL, "default", closed)
        await bring_up(stage, new)
        await asyncio.sleep(100)
        seen = ["web-1" in await claims(stage)]
        await stage.admin.patch(NODE_POOL, "default", {"spec": {"disruption": ALL}})
        await asyncio.sleep(30)
        return [*seen, "web-1" in await claims(stage), new in await claims(stage)]

    assert on_stage(body).value == [True, False, True]


def test_pods_must_have_a_place_when_their_node_goes() -> None:
    """The new machine is up but others have taken its room: nothing goes, and in the end the move is taken back."""

    async def body(stage: Stage) -> tuple[Any, ...]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage)
        await bring_up(stage, new)
        full = [{"name": "main", "image": "example", "resources": {"requests": {"cpu": "1800m"}}}]
        await add_pod(stage, "thief", node=f"node-of-{new}", owner="StatefulSet", containers=full)
        await asyncio.sleep(30)
        seen = ["web-1" in await claims(stage), *await tainted(stage)]
        await asyncio.sleep(700)
        return seen, new in await claims(stage), "web-1" in await claims(stage)

    assert on_stage(body).value == ([True, "node-of-web-1"], True, True)
