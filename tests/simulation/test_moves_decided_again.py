"""A consolidation waits fifteen seconds and is decided again: what has changed by then, and what comes of it."""

import asyncio
import dataclasses
import itertools
from collections.abc import Callable

import pytest

from growth.api import names
from growth.api.instance_types import InstanceType, Offering
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.controllers.disruption import Disruption, executing
from growth.controllers.disruption.metrics import EVALUATION_SECONDS, FAILED_VALIDATIONS
from growth.controllers.disruption.question import Question, Verdict, situation_of, validated
from growth.planning.disruption.model import Move
from tests.simulation.ending import add_owned, add_pod
from tests.simulation.moving import ALL, LARGE, add_large, add_ready_pool, claims, coming, tainted
from tests.simulation.owning import Stage, on_stage

WAITING = 30  # seconds after the start: twenty pass before we may believe that nobody is nominated, then it is decided
DECIDED = 30  # seconds more until it is decided again, and what is left of it is begun


async def failed(stage: Stage) -> float:
    return stage.env.metrics.value(FAILED_VALIDATIONS, consolidation_type="single")


def offered(stage: Stage, change: Callable[[InstanceType, Offering], Offering]) -> None:
    """The cloud's offers, changed."""
    sold = stage.cloud.sold
    types = tuple(
        dataclasses.replace(kind, offerings=tuple(change(kind, each) for each in kind.offerings)) for kind in sold.types
    )
    stage.env.state.catalogue = dataclasses.replace(sold, types=types)


def decisions(stage: Stage) -> int:
    """How many have been made."""
    families = (family for family in stage.env.metrics.collect() if family.name == EVALUATION_SECONDS.name)
    return sum(int(each.value) for family in families for each in family.samples if each.name.endswith("_count"))


def test_nothing_is_bought_where_room_was_freed_meanwhile() -> None:
    """Pods of another node end while the move waits: it is given up, and its node goes without a purchase."""

    async def body(stage: Stage) -> tuple[list[str], float, list[str], list[str]]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await add_large(stage, "web-2", pool=pool, pods=15)
        annotation = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE, "node-of-web-2", annotation)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(WAITING)
        before = await tainted(stage)
        for number in range(3):
            await stage.admin.delete(POD, f"on-web-2-{number}", namespace="default", grace_seconds=0)
        bought: set[str] = set()
        for _ in range(4 * DECIDED):
            await asyncio.sleep(1)
            bought.update(await coming(stage))
        return before, await failed(stage), sorted(bought), sorted(await claims(stage))

    assert on_stage(body).value == ([], 1.0, [], ["web-2"])


def test_a_move_that_was_decided_later_takes_no_room_from_one_before_it() -> None:
    """The first has the only room; for the second, which waits, a machine is bought. Both are made, and none is given up."""

    async def body(stage: Stage) -> tuple[float, list[str], int]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await add_large(stage, "web-2", pool=pool, pods=14)
        await add_large(stage, "web-3", pool=pool)
        for name in ("web-2", "web-3"):
            annotation = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}}
            await stage.admin.patch(NODE, f"node-of-{name}", annotation)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(WAITING - 5)
        free = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: None}}}
        await stage.admin.patch(NODE, "node-of-web-3", free)
        await asyncio.sleep(DECIDED)
        bought = await coming(stage)
        return await failed(stage), sorted(set(await claims(stage)) - set(bought)), len(bought)

    assert on_stage(body).value == (0.0, ["web-2", "web-3"], 1)


def test_nothing_is_bought_for_pods_that_left_meanwhile() -> None:
    """A Deployment is scaled down while the move waits: what comes is for those that are left."""

    async def body(stage: Stage) -> tuple[float, list[str]]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool, pods=6)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(WAITING)
        for number in range(5):
            await stage.admin.delete(POD, f"on-web-1-{number}", namespace="default", grace_seconds=0)
        await asyncio.sleep(2 * DECIDED)
        (new,) = await coming(stage)
        claim = await stage.admin.get(NODE_CLAIM, new)
        (types,) = (each.values for each in claim.spec.requirements if each.key == names.INSTANCE_TYPE_LABEL)
        return await failed(stage), sorted(types)[:1]

    assert on_stage(body).value == (1.0, ["c-2x-amd64-linux"])


def test_pods_that_keep_leaving_do_not_hold_up_a_move_for_ever() -> None:
    """It is put off four times; then what was decided last is bought."""

    async def body(stage: Stage) -> tuple[float, int]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool, pods=120, cpu="100m")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(WAITING)
        for number in range(100):
            await stage.admin.delete(POD, f"on-web-1-{number}", namespace="default", grace_seconds=0)
            await asyncio.sleep(1)
            if await coming(stage):
                break
        return await failed(stage), number

    times, left = on_stage(body).value
    assert times == 4.0
    assert left < 90


def test_a_move_that_saves_too_little_by_now_is_not_made() -> None:
    """The large machine costs no more than the small one, now that the move is decided again."""

    async def body(stage: Stage) -> tuple[list[str], list[str], float]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(WAITING)
        cheap = min(each.price or 0 for kind in stage.cloud.sold.types for each in kind.offerings)

        def cheaper(kind: InstanceType, offering: Offering) -> Offering:
            return dataclasses.replace(offering, price=cheap) if kind.name == LARGE else offering

        offered(stage, cheaper)
        await asyncio.sleep(4 * DECIDED)
        return await coming(stage), await tainted(stage), await failed(stage)

    assert on_stage(body).value == ([], [], 1.0)


def test_what_is_sold_on_other_terms_only_ends_the_move() -> None:
    """The claim would ask for machines on demand: that the same type is to be had as spot is no help."""

    async def body(stage: Stage) -> tuple[list[str], list[str], float]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(WAITING)

        def only_spot(_: InstanceType, offering: Offering) -> Offering:
            return dataclasses.replace(offering, available=offering.capacity_type == names.SPOT)

        offered(stage, only_spot)
        await asyncio.sleep(4 * DECIDED)
        return await coming(stage), await tainted(stage), await failed(stage)

    assert on_stage(body).value == ([], [], 1.0)


@pytest.mark.parametrize("meanwhile", ["nominated", "over its budget"])
def test_a_node_that_may_not_go_by_now_ends_the_move(meanwhile: str) -> None:
    """A pending pod was promised to it, or the pool's budget has closed."""

    async def body(stage: Stage) -> tuple[list[str], list[str], float]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(WAITING)
        if meanwhile == "nominated":
            stage.env.state.nominate("node-of-web-1", seconds=1000)
        else:
            await stage.admin.patch(NODE_POOL, "default", {"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}})
        await asyncio.sleep(4 * DECIDED)
        return await coming(stage), await tainted(stage), await failed(stage)

    assert on_stage(body).value == ([], [], 1.0)


def test_a_consolidation_is_made_as_a_whole_or_not_at_all() -> None:
    """One of its two nodes is protected while it waits: neither is touched, until something else is decided."""

    async def body(stage: Stage) -> tuple[list[str], float, list[str], list[str]]:
        pool = await add_ready_pool(stage)
        term = {"topologyKey": names.HOSTNAME_LABEL, "labelSelector": {"matchLabels": {"app": "apart"}}}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        for name in ("web-1", "web-2"):
            node = f"node-of-{name}"
            await add_large(stage, name, pool=pool, pods=0)
            await stage.admin.patch(NODE, node, {"metadata": {"labels": {names.HOSTNAME_LABEL: node}}})
            await add_pod(stage, f"on-{name}", node=node, owner="StatefulSet", labels={"app": "apart"}, affinity=apart)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(WAITING)
        annotation = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE, "node-of-web-2", annotation)
        await asyncio.sleep(10)
        lost = stage.env.metrics.value(FAILED_VALIDATIONS, consolidation_type="multi")
        before = [*await coming(stage), *await tainted(stage)]
        await asyncio.sleep(DECIDED)
        return before, lost, await tainted(stage), sorted(set(await claims(stage)) - set(await coming(stage)))

    assert on_stage(body).value == ([], 2.0, ["node-of-web-1"], ["web-1", "web-2"])


def test_of_several_empty_nodes_those_go_that_are_still_empty() -> None:
    """A pod comes to one of three while they wait: the others go without it, and the one is counted."""

    async def body(stage: Stage) -> tuple[list[str], list[str], float]:
        pool = await stage.add_pool(disruption={**ALL, "consolidationPolicy": "WhenEmpty"})
        for name in ("web-1", "web-2", "web-3"):
            await add_owned(stage, name, pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(WAITING)
        assert await tainted(stage) == []
        await add_pod(stage, "late", node="node-of-web-2", owner="StatefulSet")
        await asyncio.sleep(DECIDED)
        empty = stage.env.metrics.value(FAILED_VALIDATIONS, consolidation_type="empty")
        return sorted(await claims(stage)), await tainted(stage), empty

    left, marked, lost = on_stage(body).value
    assert (left, lost) == (["web-2"], 1.0)
    assert "node-of-web-2" not in marked


def test_what_has_not_changed_is_decided_again_after_five_minutes_only() -> None:
    """Budgets open with time, so that not even an idle cluster is left alone for ever; a change is looked at in the next
    ten seconds.
    """

    async def body(stage: Stage) -> list[int]:
        pool = await stage.add_pool(disruption={**ALL, "consolidationPolicy": "WhenEmpty"})
        await add_owned(stage, pool=pool)
        await add_pod(stage, "a", owner="StatefulSet")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(2 * WAITING)
        counts = [decisions(stage)]
        for seconds in (3000, 15):
            await asyncio.sleep(seconds)
            counts.append(decisions(stage))
            await stage.admin.patch(NODE, "node-of-web-1", {"metadata": {"labels": {"example.com/seen": "true"}}})
        return [after - before for before, after in itertools.pairwise(counts)]

    assert on_stage(body).value == [10, 1]


def test_a_move_that_is_given_up_again_and_again_leaves_its_budget_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two looks at the same cluster may differ, for whatever reason: the nodes rest longer each time, and who is empty goes."""
    asked: list[str] = []

    def judged(question: Question, move: Move, **_: object) -> Verdict:
        asked.append(move.reason)
        if move.reason == names.EMPTY:
            return validated(question, move)
        return Verdict(nodes=(), why="no place", homeless=True, situation=situation_of(question))

    monkeypatch.setattr(executing, "validated", judged)

    async def body(stage: Stage) -> list[str]:
        pool = await add_ready_pool(stage, disruption={**ALL, "budgets": [{"nodes": "1"}]})
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(WAITING)
        await add_owned(stage, "idle", pool=pool)
        await asyncio.sleep(600)
        return sorted(await claims(stage))

    assert on_stage(body).value == ["web-1"]
    assert asked == [names.UNDERUTILIZED, names.UNDERUTILIZED, names.EMPTY]
