"""Moves that replace: in which order they act, what stops them, and what is left when they are taken back."""

import asyncio
import dataclasses
import functools
import itertools
from typing import Any

import pytest

from growth.api import names
from growth.api.instance_types import InstanceType
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.cluster.replacing import kind_of
from growth.controllers.disruption import Disruption
from growth.controllers.disruption.metrics import DECISIONS, FAILED_VALIDATIONS, QUEUE_FAILURES
from growth.controllers.settings import ControllerSettings
from growth.kube.api import Api
from growth.kube.errors import Forbidden
from growth.kube.memory import MemoryApi
from growth.sim.ports import SimClock
from tests.simulation.ending import add_pod, start_process
from tests.simulation.moving import (
    ALL,
    REQUIREMENTS,
    Recording,
    add_large,
    add_ready_pool,
    add_replacement,
    bring_up,
    claims,
    coming,
    disrupted,
    drift,
    mark,
    tainted,
    until_coming,
)
from tests.simulation.owning import Stage, condition, on_stage

TYPES = {"decision": "replace", "reason": "underutilized", "consolidation_type": "single"}


def test_what_replaces_is_up_before_anything_goes() -> None:
    """Reason, taint, claim; then nothing until the new machine is initialised; then the old claim is deleted."""
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
        annotations = (await stage.claim(new)).metadata.annotations
        assert annotations[names.REPLACES_ANNOTATION] == "web-1"
        assert annotations[names.GIVEN_UP_ANNOTATION] == kind_of((await stage.claim("web-1")).metadata.labels) != ""
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
        assert {one.count for one in events} == {1}, "five minutes of waiting are told once"
        return [before, holder[0].done[len(before) :], sorted(set(await claims(stage)) - {new})]

    before, after, left = on_stage(body, api=api).value
    assert before == ["condition web-1", "taint node-of-web-1", "create"]
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
        pool = await add_ready_pool(stage, limits={"nodes": "2"})
        await add_large(stage, pool=pool, cpu="3")
        await add_large(stage, "web-2", pool=pool, cpu="3")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(30)
        annotation = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE, "node-of-web-1", annotation)
        await asyncio.sleep(60)
        failed = stage.env.metrics.value(FAILED_VALIDATIONS, consolidation_type="single")
        return failed, await tainted(stage), sorted(set(await claims(stage)) - set(await coming(stage)))

    assert on_stage(body).value == (1.0, ["node-of-web-2"], ["web-1"])


def _sold_out(kind: InstanceType) -> InstanceType:
    offerings = tuple(dataclasses.replace(each, available=False) for each in kind.offerings)
    return dataclasses.replace(kind, offerings=offerings)


@pytest.mark.parametrize("named", [True, False])
def test_types_that_are_sold_no_more_end_the_move(*, named: bool) -> None:
    """All that a replacement lists must still be had for its price when the move is checked again; it is decided anew without."""
    cheapest = "c-2x-amd64-linux"

    async def body(stage: Stage) -> tuple[float, tuple[str, ...]]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(30)
        sold = stage.cloud.sold
        left = tuple(_sold_out(kind) if kind.name == cheapest else kind for kind in sold.types)
        types = left if named else tuple(kind for kind in left if kind.name != cheapest)
        stage.env.state.catalogue = dataclasses.replace(sold, types=types)
        (new,) = await until_coming(stage, seconds=300)
        failed = stage.env.metrics.value(FAILED_VALIDATIONS, consolidation_type="single")
        listed = (each for each in (await stage.claim(new)).spec.requirements if each.key == names.INSTANCE_TYPE_LABEL)
        return failed, next(listed).values

    failed, listed = on_stage(body).value
    assert failed == 1.0
    assert listed
    assert cheapest not in listed


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


def test_what_does_not_come_up_in_time_is_not_bought_again_at_once() -> None:
    """The move is taken back after ten minutes, and the next is begun a minute later at the earliest."""

    async def body(stage: Stage) -> tuple[float, float]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage)
        begun = stage.kernel.time()
        for _ in range(900):
            await asyncio.sleep(1)
            if not await tainted(stage):
                break
        back = stage.kernel.time()
        assert new not in await coming(stage)
        await until_coming(stage, seconds=600)
        return back - begun, stage.kernel.time() - back

    lasted, paused = on_stage(body).value
    assert 540 <= lasted < 630
    assert 60 <= paused < 120


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


def test_what_was_bought_for_nothing_is_not_bought_again_at_once() -> None:
    """Others have taken the room of the new machine: the next is bought a minute later, the one after that two."""

    async def body(stage: Stage) -> list[float]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        full = [{"name": "main", "image": "example", "resources": {"requests": {"cpu": "1800m"}}}]
        (new,) = await until_coming(stage)
        gaps: list[float] = []
        for turn in range(2):
            await bring_up(stage, new)
            await add_pod(stage, f"thief-{turn}", node=f"node-of-{new}", owner="StatefulSet", containers=full)
            for _ in range(300):
                await asyncio.sleep(1)
                if not await tainted(stage):
                    break
            back = stage.kernel.time()
            (new,) = await until_coming(stage, seconds=600)
            gaps.append(stage.kernel.time() - back)
        return gaps

    first, second = on_stage(body).value
    assert 60 <= first < 120 <= second < 180


def test_drift_acts_at_once() -> None:
    """A drifted node does not become another one by waiting: its replacement is bought in the first decision."""

    async def body(stage: Stage) -> tuple[list[str], bool]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_large(stage, pool=pool)
        await drift(stage, "web-1")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(25)
        return await tainted(stage), len(await coming(stage)) == 1

    assert on_stage(body).value == (["node-of-web-1"], True)


def test_failing_drift_waits_and_blocks_no_other_pool() -> None:
    """Where a drifted node could not be replaced its pool waits, each time longer; another pool goes on meanwhile."""

    async def body(stage: Stage) -> tuple[list[tuple[str, int]], list[int]]:
        disruption = {**ALL, "consolidateAfter": "Never"}
        for name in ("bad", "good"):
            labels = {"metadata": {"labels": {"team": name}}}
            pool = await add_ready_pool(stage, name, disruption=disruption, **labels)
            await add_large(stage, f"of-{name}", pool=pool, selector={"team": name})
        await drift(stage, "of-bad")
        await stage.start(Disruption(stage.env))
        tries: list[int] = []
        replaced: list[tuple[str, int]] = []
        for second in range(400):
            await asyncio.sleep(1)
            if tries and second == tries[0] + 5:
                await drift(stage, "of-good")
            for new in await coming(stage):
                claim = await stage.claim(new)
                if claim.metadata.labels[names.NODE_POOL_LABEL] == "bad":
                    tries.append(second)
                    await stage.admin.patch(NODE_CLAIM, new, {"metadata": {"finalizers": None}})
                    await stage.admin.delete(NODE_CLAIM, new)
                elif not claim.status.provider_id:
                    await bring_up(stage, new)
                    replaced.append((claim.metadata.annotations[names.REPLACES_ANNOTATION], second - tries[0]))
        return replaced, [after - before for before, after in itertools.pairwise(tries)]

    replaced, pauses = on_stage(body).value
    ((name, after),) = replaced
    assert (name, len(tuple(pauses))) == ("of-good", 2)
    assert after < 40, "the pool that waits does so for a minute"
    assert 60 <= pauses[0] < 90
    assert 120 <= pauses[1] < 150


def test_drifted_nodes_whose_pods_have_no_place_hold_up_no_other() -> None:
    """More of them than one decision tries are older: the one that can be replaced is, soon after. Of the others it is said once
    that they stay.
    """

    async def body(stage: Stage) -> tuple[list[str], set[int], int]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        for number in range(45):
            name = f"old-{number:02}"
            await add_large(stage, name, pool=pool, selector={names.HOSTNAME_LABEL: name} if number < 44 else {})
            await drift(stage, name)
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage, seconds=90)
        claim = await stage.claim(new)
        await bring_up(stage, new)
        await asyncio.sleep(60)
        told = {(each.metadata.uid, each.count) for each in await stage.events()}
        await asyncio.sleep(900)
        after = {(each.metadata.uid, each.count) for each in await stage.events()}
        return [claim.metadata.annotations[names.REPLACES_ANNOTATION]], {count for _, count in told}, len(after - told)

    assert on_stage(body).value == (["old-44"], {1}, 0)


def test_another_process_goes_on_with_a_move() -> None:
    """The first dies while the new machine comes up; the second waits for it, and then the node goes. Nothing is bought
    again.
    """

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        first = start_process(stage, Disruption)
        (new,) = await until_coming(stage)
        first.crash()
        start_process(stage, Disruption, name="again")
        await asyncio.sleep(60)
        assert await coming(stage) == [new]
        assert await tainted(stage) == ["node-of-web-1"]
        await bring_up(stage, new)
        await asyncio.sleep(10)
        return sorted(set(await claims(stage)) - {new}), await disrupted(stage)

    assert on_stage(body).value == ([], [])


def test_a_move_that_was_half_bought_is_taken_back() -> None:
    """Of two claims that were to come only one exists when the process dies: it goes, and the node stays as it was."""

    async def body(stage: Stage) -> tuple[list[str], list[str], list[str]]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_large(stage, pool=pool)
        await mark(stage, "web-1")
        await add_replacement(stage, "new-1", pool=pool, group=("new-1", "new-2"))
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(10)
        return sorted(await claims(stage)), await tainted(stage), await disrupted(stage)

    assert on_stage(body).value == (["web-1"], [], [])


@pytest.mark.parametrize("kept", [False, True], ids=["given back", "not let go"])
def test_what_another_process_bought_for_a_node_that_is_being_replaced_holds_nothing_up(kept: bool) -> None:  # noqa: FBT001 - one of two cases
    """A claim comes late, of a process that led before: the move that runs is made as soon as its own machine is up, and the
    other machine goes unless somebody's policy keeps it.
    """

    class Denying(MemoryApi):
        async def delete(self, kind: Any, name: str, **how: Any) -> None:
            if kept and (kind, name) == (NODE_CLAIM, "late"):
                raise Forbidden("this one is not to be deleted")
            await super().delete(kind, name, **how)

    async def body(stage: Stage) -> None:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_large(stage, pool=pool)
        await drift(stage, "web-1")
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage)
        await add_replacement(stage, "late", pool=pool)
        await asyncio.sleep(15)
        await bring_up(stage, new)
        await asyncio.sleep(30)
        assert sorted(await claims(stage)) == sorted([new, *(["late"] if kept else [])])

    on_stage(body, api=lambda api: Denying(api._server, user="growth"))


def test_a_claim_that_replaces_nothing_goes_unless_it_is_used() -> None:
    """It came late, after its move had been taken back: empty it goes, with pods it stays and replaces nobody."""

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_large(stage, pool=pool)
        for name in ("idle", "used"):
            await add_replacement(stage, name, pool=pool)
            await bring_up(stage, name)
        await add_pod(stage, "here", node="node-of-used", owner="StatefulSet")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(10)
        return sorted(await claims(stage)), await coming(stage)

    assert on_stage(body).value == (["used", "web-1"], [])


def test_what_is_given_back_counts_against_the_budgets() -> None:
    """Of three machines that came for moves which are not made one may go at a time; the others are like any other then, and
    so is one whose pool lets nothing go. A machine that is not up yet is no node of its pool, and goes in any case.
    """

    async def body(stage: Stage, allowed: str) -> tuple[int, list[str], list[str], bool]:
        disruption = {"consolidateAfter": "Never", "budgets": [{"nodes": allowed}]}
        pool = await add_ready_pool(stage, disruption=disruption)
        await add_large(stage, pool=pool)
        for name in ("new-1", "new-2", "new-3", "early"):
            await add_replacement(stage, name, pool=pool)
            if name != "early":
                await bring_up(stage, name)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(60)
        left = await claims(stage)
        return len(left), await coming(stage), await tainted(stage), "early" in left

    for allowed, left in (("1", 3), ("0", 4), ("2", 2), ("100%", 1)):
        number, coming_yet, marked, early = on_stage(functools.partial(body, allowed=allowed)).value
        assert (number, coming_yet, early) == (left, [], False), allowed
        assert len(marked) == 4 - left, "only what goes is marked"


def test_what_a_move_is_taken_back_with_goes_within_the_budgets() -> None:
    """Its own nodes stay, and take no room of the budget: what came for them may go in their stead, one at a time."""

    async def body(stage: Stage) -> tuple[list[str], list[str], int]:
        pool = await add_ready_pool(stage, disruption={**ALL, "budgets": [{"nodes": "1"}]})
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage)
        annotation = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE, "node-of-web-1", annotation)
        await bring_up(stage, new)
        await asyncio.sleep(10)
        return sorted(await claims(stage)), await coming(stage), len(await tainted(stage))

    assert on_stage(body).value == (["web-1"], [], 1)


@pytest.mark.parametrize("kept", ["protected", "claim", "paused", "pool"])
@pytest.mark.parametrize("crash", [False, True], ids=["same process", "next process"])
def test_what_a_move_is_taken_back_with_stays_where_somebody_keeps_it(kept: str, crash: bool) -> None:  # noqa: FBT001 - one of two cases
    """It is up, and somebody said do-not-disrupt of it, or paused it or its pool: it is a machine like any other."""

    async def body(stage: Stage) -> tuple[list[str], list[str], list[str]]:
        key = names.DO_NOT_DISRUPT_ANNOTATION if kept in {"protected", "claim"} else names.PAUSED_ANNOTATION
        said = {"metadata": {"annotations": {key: "true"}}}
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_large(stage, pool=pool)
        await add_replacement(stage, "new-1", pool=pool)
        await bring_up(stage, "new-1")
        if not crash:
            await mark(stage, "web-1")
        if kept == "pool":
            await stage.admin.patch(NODE_POOL, "default", said)
        elif kept == "claim":
            await stage.admin.patch(NODE_CLAIM, "new-1", said)
        else:
            await stage.admin.patch(NODE, "node-of-new-1", said)
        annotation = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE, "node-of-web-1", annotation)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(60)
        return sorted(await claims(stage)), await coming(stage), await tainted(stage)

    assert on_stage(body).value == (["new-1", "web-1"], [], [])


def test_what_a_move_left_behind_that_was_made_stays() -> None:
    """The node that it replaced is on its way out, and its pods have yet to come: the new machine is not taken away."""

    async def body(stage: Stage) -> list[str]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        await add_large(stage, pool=pool)
        await mark(stage, "web-1")
        await add_replacement(stage, "new-1", pool=pool)
        await bring_up(stage, "new-1")
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(400)
        return sorted(await claims(stage))

    assert on_stage(body).value == ["new-1"]


def test_what_a_move_left_behind_that_was_half_made_stays_though_the_rest_is_taken_back() -> None:
    """Of two nodes one goes already, and its pods have yet to come; somebody protects the other: the new machine stays."""

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        for name in ("web-1", "web-2"):
            await add_large(stage, name, pool=pool)
            await mark(stage, name)
        await add_replacement(stage, "new-1", pool=pool, replaces="web-1,web-2")
        await bring_up(stage, "new-1")
        await stage.admin.delete(NODE_CLAIM, "web-1")
        annotation = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE, "node-of-web-2", annotation)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(60)
        return sorted(await claims(stage)), await tainted(stage)

    assert on_stage(body).value == (["new-1", "web-2"], ["node-of-web-1"])


def test_a_hard_limit_without_room_blocks_replacing_only() -> None:
    """The pool has as many nodes as it may: no replacement, and its event says why; empty nodes go all the same."""

    async def body(stage: Stage) -> tuple[list[str], list[str], set[str]]:
        pool = await add_ready_pool(stage, limits={"nodes": "2"})
        await add_large(stage, pool=pool, cpu="12")
        await add_large(stage, "web-2", pool=pool, pods=0)
        await drift(stage, "web-1")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(60)
        told = {each.message for each in await stage.events(names.DISRUPTION_BLOCKED)}
        return sorted(await claims(stage)), await coming(stage), told

    left, new, told = on_stage(body).value
    assert left == ["web-1"]
    assert new == []
    assert "No allowed disruptions for disruption reason Drifted due to node hard limit" in told


def test_a_limit_that_is_far_away_lets_several_machines_come_for_one_node() -> None:
    """The budget is of one node, which has drifted and needs three smaller machines in its place: they come, and it goes."""

    async def body(stage: Stage) -> tuple[int, bool]:
        small = {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": ["c-8x-amd64-linux"]}
        pool = await add_ready_pool(
            stage,
            limits={"nodes": "100"},
            disruption={"consolidateAfter": "Never", "budgets": [{"nodes": "10%"}]},
            template={"requirements": [*REQUIREMENTS, small]},
        )
        await add_large(stage, pool=pool, pods=15)
        await drift(stage, "web-1")
        await stage.start(Disruption(stage.env))
        new = await until_coming(stage, number=3)
        for name in new:
            await bring_up(stage, name)
        await asyncio.sleep(30)
        return len(new), "web-1" in await claims(stage)

    assert on_stage(body).value == (3, False)


def test_a_soft_limit_lets_the_replacement_come_first() -> None:
    """The pool has as many nodes as it may: one more comes for a while, the old one goes, and the number is kept."""

    async def body(stage: Stage) -> tuple[int, list[str]]:
        disruption = {**ALL, "consolidateAfter": "Never", "nodeLimitMode": "Soft"}
        pool = await add_ready_pool(stage, limits={"nodes": "1"}, disruption=disruption)
        await add_large(stage, pool=pool)
        await drift(stage, "web-1")
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage)
        most = len(await claims(stage))
        await bring_up(stage, new)
        await asyncio.sleep(300)
        return most, sorted(set(await claims(stage)) - {new})

    assert on_stage(body).value == (2, [])


def test_a_cap_of_the_cluster_holds_for_replacements() -> None:
    """As many machines as the whole cluster may have: nothing is bought, and the node is as it was."""

    async def body(stage: Stage) -> tuple[list[str], list[str], list[str]]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(120)
        return sorted(await claims(stage)), await tainted(stage), await disrupted(stage)

    assert on_stage(body, settings=ControllerSettings(max_nodes=1)).value == (["web-1"], [], [])


def test_what_was_bought_for_a_move_stays_for_a_while_though_our_clock_is_ahead() -> None:
    """The server's clock, by which pods are older than the move that brought them, is not asked."""

    async def body(stage: Stage) -> list[bool]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        ahead = SimClock(stage.kernel, skew_seconds=2.0)
        start_process(stage, lambda env: Disruption(dataclasses.replace(env, clock=ahead)))
        (new,) = await until_coming(stage)
        await bring_up(stage, new)
        for _ in range(1000):
            await asyncio.sleep(0.05)
            if "web-1" not in await claims(stage):  # its pods leave at once
                break
        old = await stage.admin.get(POD.raw, "on-web-1-0", namespace="default")
        await stage.admin.delete(POD, "on-web-1-0", namespace="default", grace_seconds=0)
        await add_pod(stage, "again", node=f"node-of-{new}", containers=old["spec"]["containers"])
        owned = {"ownerReferences": old["metadata"]["ownerReferences"]}
        await stage.admin.patch(POD, "again", {"metadata": owned}, namespace="default")
        await add_large(stage, "web-2", pool=pool, pods=0)
        await add_pod(stage, "held", node="node-of-web-2", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        seen: list[bool] = []
        for seconds in (300, 300, 600):
            await asyncio.sleep(seconds)
            seen.append(new in await claims(stage))
        return seen

    assert on_stage(body).value == [True, True, False]
