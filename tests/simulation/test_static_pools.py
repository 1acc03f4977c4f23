"""Pools of a fixed size: they keep their number, within their limit, whatever dies, drifts or is asked of them."""

import asyncio
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import pytest

from growth.api import names
from growth.api.clouds import InsufficientCapacity
from growth.api.core import NAMESPACE
from growth.api.decisions import DecisionSpec
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.nodes import NODE
from growth.controllers.settings import ControllerSettings
from growth.controllers.sizing import Sizing
from tests.simulation import sizing
from tests.simulation.ending import add_budget, add_pod, left, start_process
from tests.simulation.owning import Stage, condition, on_stage, told
from tests.simulation.sizing import PARTS, add_static, initialized, retemplate, scale, staying, teams, told_too_many


def test_a_static_pool_gets_its_machines_without_a_pod() -> None:
    """So many claims, machines and Nodes, initialised; the pool is valid, ready, and says how many it has."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        await sizing.start(stage)
        await add_static(stage, 3)
        await asyncio.sleep(60)
        pool = await stage.pool()
        assert told(pool)["ValidationSucceeded"] == told(pool)["Ready"] == "True"
        assert pool.status.nodes == 3
        assert await initialized(stage) == 3
        raw = await stage.admin.get(NODE_CLAIM.raw, (await staying(stage))[0])
        assert raw["metadata"]["labels"]["team"] == "a"
        assert raw["metadata"]["ownerReferences"][0]["name"] == "default"
        return await left(stage)

    assert on_stage(body).value == (3, 3, 3)


def test_a_full_pool_is_not_written_to() -> None:
    """Hours of looking at a pool that has its number write nothing."""

    async def body(stage: Stage) -> int:
        await sizing.start(stage)
        await add_static(stage, 3, limits={"nodes": "5"})
        await asyncio.sleep(300)
        before = stage.writes()
        await asyncio.sleep(6 * 3600)
        return stage.writes() - before

    assert on_stage(body).value == 0


def test_scaling_up_and_down_follows_at_once() -> None:
    """By the scale subresource: what is lacking is bought, what is too many goes, past budgets; none is none."""

    async def body(stage: Stage) -> list[tuple[int, int, int]]:
        await sizing.start(stage)
        await add_static(stage, 2, disruption={"budgets": [{"nodes": "0"}]})
        seen = []
        for wanted in (2, 6, 1, 0, 2):
            await scale(stage, wanted)
            await asyncio.sleep(60)
            seen.append(await left(stage))
        return seen

    assert on_stage(body).value == [(each, each, each) for each in (2, 6, 1, 0, 2)]


def test_a_machine_that_goes_is_bought_anew() -> None:
    """Whoever deletes a claim or a Node of the pool, the pool has its number again."""

    async def body(stage: Stage) -> None:
        await sizing.start(stage)
        await add_static(stage, 3)
        await asyncio.sleep(60)
        first = await staying(stage)
        await stage.admin.delete(NODE_CLAIM, first[0])
        await stage.admin.delete(NODE, f"node-of-{first[1]}")
        await asyncio.sleep(120)
        assert await left(stage) == (3, 3, 3)
        assert first[2] in await staying(stage)

    on_stage(body)


def test_a_limit_below_the_replicas_holds() -> None:
    """`limits.nodes` counts what leaves until it is gone: at no time are there more."""

    async def body(stage: Stage) -> None:
        await sizing.start(stage)
        await add_static(stage, 5, limits={"nodes": "3"})
        await asyncio.sleep(60)
        assert await left(stage) == (3, 3, 3)
        await stage.admin.delete(NODE_CLAIM, (await staying(stage))[0])
        most = 0
        for _ in range(600):
            await asyncio.sleep(0.1)
            most = max(most, (await left(stage))[0])
        assert (most, await left(stage)) == (3, (3, 3, 3))
        await stage.admin.patch(NODE_POOL, "default", {"spec": {"limits": {"nodes": "9"}}})
        await asyncio.sleep(60)
        assert await left(stage) == (5, 5, 5)

    on_stage(body)


def test_scaling_down_takes_what_costs_least() -> None:
    """First what has no machine, then what is empty, then what is used, the least costly first, protected ones last."""

    async def body(stage: Stage) -> list[list[str]]:
        await sizing.start(stage)
        await add_static(stage, 5)
        await asyncio.sleep(60)
        protected, busy, light, bare, spare = await staying(stage)
        del bare, spare
        await add_pod(stage, "p", node=f"node-of-{protected}", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        for number in range(3):
            await add_pod(stage, f"b{number}", node=f"node-of-{busy}")
        await add_pod(stage, "l", node=f"node-of-{light}")
        stage.cloud.always = InsufficientCapacity("none left")
        stage.cloud.delays = {}
        seen = []
        for wanted in (3, 2, 1):
            await scale(stage, wanted)
            await asyncio.sleep(60)
            seen.append(await staying(stage))
        return [[{protected: "protected", busy: "busy", light: "light"}[each] for each in names_] for names_ in seen]

    named = on_stage(body).value
    assert [sorted(each) for each in named] == [["busy", "light", "protected"], ["busy", "protected"], ["protected"]]


def test_scaling_down_is_told_and_counted() -> None:
    """Events on claim and Node, and Karpenter's counter with the reason overprovisioned."""

    async def body(stage: Stage) -> None:
        await sizing.start(stage)
        await add_static(stage, 2)
        await asyncio.sleep(60)
        await scale(stage, 1)
        await asyncio.sleep(60)
        assert await told_too_many(stage) == 1

    on_stage(body)


def test_what_is_done_stands_in_decisions() -> None:
    """What was bought, what went and why, with types and prices, one Decision for each act."""

    async def body(stage: Stage) -> list[str]:
        said: list[DecisionSpec] = []
        await stage.add_class()
        sizing.begin(stage)
        parts = (part(stage.env) for part in PARTS if part is not Sizing)
        await stage.start(*parts, Sizing(stage.env, tell=said.append))
        await add_static(stage, 2, limits={"nodes": "3"})
        await asyncio.sleep(60)
        await retemplate(stage)
        await asyncio.sleep(120)
        await scale(stage, 1)
        await asyncio.sleep(30)
        assert all(each.price and each.instance_type for one in said for each in one.actions)
        assert {(each.controller, each.outcome) for each in said} == {("sizing", "Acted")}
        return [each.summary for each in said]

    one = "buys a machine for NodePool default: to replace what drifted (1)"
    gone = "takes down a machine of NodePool default: it has drifted, and its replacement is up"
    assert on_stage(body).value == [
        "buys 2 machines for NodePool default: it lacks 2 of 2 replicas",
        *(one, gone, one, gone),
        "takes down a machine of NodePool default: it has 2 machines, of 1 that it may keep",
    ]


def test_a_pause_stops_buying_and_scaling_down() -> None:
    """A paused pool stays as it is; afterwards it gets its number within a minute."""

    async def body(stage: Stage) -> list[int]:
        await sizing.start(stage)
        await add_static(stage, 2)
        await asyncio.sleep(60)
        await stage.admin.patch(NODE_POOL, "default", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "true"}}})
        seen = []
        for wanted in (5, 1):
            await scale(stage, wanted)
            await asyncio.sleep(200)
            seen.append(len(await staying(stage)))
        await stage.admin.patch(NODE_POOL, "default", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
        await asyncio.sleep(61)
        return [*seen, len(await staying(stage))]

    assert on_stage(body).value == [2, 2, 1]


def test_the_caps_of_the_cluster_hold() -> None:
    """`--max-nodes` bounds static pools as every other."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        await stage.admin.create(NAMESPACE, {"metadata": {"name": stage.env.settings.namespace}})
        await sizing.start(stage)
        await add_static(stage, 5)
        await asyncio.sleep(300)
        return await left(stage)

    assert on_stage(body, settings=ControllerSettings(max_nodes=2)).value == (2, 2, 2)


def test_a_cloud_without_stock_is_not_asked_in_a_rush() -> None:
    """Claims that it refuses go later and later, and so do those after them; when it has stock, the pool fills up."""

    async def body(stage: Stage) -> tuple[int, tuple[int, int, int]]:
        await sizing.start(stage)
        stage.cloud.always = InsufficientCapacity("none left")
        await add_static(stage, 2)
        await asyncio.sleep(600)
        asked = stage.cloud.calls["create"]
        stage.cloud.always = None
        await asyncio.sleep(400)
        return asked, await left(stage)

    asked, end = on_stage(body).value
    assert 2 <= asked <= 20
    assert end == (2, 2, 2)


def test_a_pool_that_can_buy_nothing_says_so() -> None:
    """The event on the pool says why its replicas are missing."""

    async def body(stage: Stage) -> list[str]:
        await sizing.start(stage)
        wanted = [{"key": "kubernetes.io/arch", "operator": "In", "values": ["sparc"]}]
        await add_static(stage, 2, template={"requirements": wanted})
        await asyncio.sleep(120)
        assert await left(stage) == (0, 0, 0)
        return [each.message for each in await stage.events(names.NO_COMPATIBLE_INSTANCE_TYPES)]

    assert any("2 replicas" in each for each in on_stage(body).value)


# --- drift


def test_drifted_machines_are_replaced_first_and_go_then() -> None:
    """Where the limit leaves room there are never fewer than the replicas that can take pods."""

    async def body(stage: Stage, **limits: str) -> tuple[int, int, list[str]]:
        await sizing.start(stage)
        await add_static(stage, 3, limits=limits)
        await asyncio.sleep(60)
        await retemplate(stage)
        least, most = 3, 0
        for _ in range(3000):
            await asyncio.sleep(0.1)
            claims = (await stage.admin.list(NODE_CLAIM)).items
            usable = [
                each
                for each in claims
                if each.metadata.deletion_timestamp is None and told(each).get(names.INITIALIZED) == "True"
            ]
            least, most = min(least, len(usable)), max(most, len(claims))
        return least, most, await teams(stage)

    assert on_stage(body).value == (3, 6, ["b"] * 3)
    assert on_stage(functools.partial(body, nodes="4")).value == (3, 4, ["b"] * 3)


def test_a_budget_bounds_how_many_are_replaced_at_a_time() -> None:
    """One of four at a time; none with a budget of none, and a Normal event of the pool says so."""

    async def body(stage: Stage, nodes: str) -> tuple[int, list[str], bool]:
        await sizing.start(stage)
        budget = {"nodes": nodes, "reasons": ["Drifted"]}
        await add_static(stage, 4, disruption={"budgets": [budget]})
        await asyncio.sleep(60)
        await retemplate(stage)
        most = 0
        for _ in range(600):
            await asyncio.sleep(1)
            most = max(most, len((await stage.admin.list(NODE_CLAIM)).items))
        blocked = await stage.events(names.DISRUPTION_BLOCKED)
        said = any(each.type == "Normal" and "Drifted due to blocking budget" in each.message for each in blocked)
        return most, await teams(stage), said

    most, after, _ = on_stage(functools.partial(body, nodes="1")).value
    assert (most, after) == (5, ["b"] * 4)
    assert on_stage(functools.partial(body, nodes="0")).value == (4, ["a"] * 4, True)


@pytest.mark.parametrize("mode", ["Hard", "Soft"])
def test_at_the_limit_soft_replaces_first_and_hard_deletes_first(mode: str) -> None:
    """Hard: never more than the limit, one at a time, the next only when all are up. Soft: one more, never fewer."""

    async def body(stage: Stage) -> tuple[int, int, list[str]]:
        await sizing.start(stage)
        await add_static(
            stage, 3, limits={"nodes": "3"}, disruption={"budgets": [{"nodes": "1"}], "nodeLimitMode": mode}
        )
        await asyncio.sleep(60)
        await retemplate(stage)
        least, most = 3, 0
        for _ in range(4000):
            await asyncio.sleep(0.1)
            claims = (await stage.admin.list(NODE_CLAIM)).items
            alive = [each for each in claims if each.metadata.deletion_timestamp is None]
            least = min(least, sum(told(each).get(names.INITIALIZED) == "True" for each in alive))
            most = max(most, len(claims))
            assert len(stage.cloud.machines) <= most
        return least, most, await teams(stage)

    assert on_stage(body).value == ((2, 3, ["b"] * 3) if mode == "Hard" else (3, 4, ["b"] * 3))


def test_deleting_first_waits_until_the_machine_is_gone() -> None:
    """A drain that takes long holds everything up: nothing is bought, and no second machine goes."""

    async def body(stage: Stage) -> None:
        await sizing.start(stage)
        await add_static(stage, 2, limits={"nodes": "2"})
        await asyncio.sleep(60)
        for name in await staying(stage):
            await add_pod(stage, f"on-{name}", node=f"node-of-{name}", labels={"app": "slow"})
        await add_budget(stage, "slow", app="slow", minAvailable=1)
        await retemplate(stage)
        await asyncio.sleep(120)
        # One pod was evicted; with the other its machine may not go.
        assert (len(await staying(stage)), len(stage.cloud.machines)) == (2, 2)
        assert sorted(await teams(stage)) == ["a", "b"]

    on_stage(body)


def test_the_pool_says_that_it_deletes_first() -> None:
    """A condition, as long as a Hard limit leaves no room beside the replicas; with Soft or a higher limit it goes."""

    async def body(stage: Stage) -> list[bool]:
        await sizing.start(stage)
        await add_static(stage, 2, limits={"nodes": "2"})
        await asyncio.sleep(30)
        seen = [names.REPLACES_IN_PLACE in told(await stage.pool())]
        assert "one at a time" in condition(await stage.pool(), names.REPLACES_IN_PLACE).message
        changes: tuple[dict[str, Any], ...] = (
            {"disruption": {"nodeLimitMode": "Soft"}},
            {"disruption": {"nodeLimitMode": "Hard"}},
            {"limits": {"nodes": "3"}},
        )
        for spec in changes:
            await stage.admin.patch(NODE_POOL, "default", {"spec": spec})
            await asyncio.sleep(10)
            seen.append(names.REPLACES_IN_PLACE in told(await stage.pool()))
        return seen

    assert on_stage(body).value == [True, False, True, False]


def test_what_cannot_be_bought_anew_is_not_given_away() -> None:
    """With nothing to buy, a drifted machine stays, whichever way round."""

    async def body(stage: Stage, limit: str) -> list[str]:
        await sizing.start(stage)
        await add_static(stage, 2, limits={"nodes": limit})
        await asyncio.sleep(60)
        sold = stage.cloud.sold
        unavailable = tuple(
            dataclasses.replace(
                kind, offerings=tuple(dataclasses.replace(each, available=False) for each in kind.offerings)
            )
            for kind in sold.types
        )
        stage.env.state.catalogue = dataclasses.replace(sold, types=unavailable)
        await retemplate(stage)
        await asyncio.sleep(600)
        return await teams(stage)

    for limit in ("2", "3"):
        assert on_stage(functools.partial(body, limit=limit)).value == ["a", "a"], limit


@pytest.mark.parametrize("limit", ["2", "4"])
def test_protected_machines_are_not_replaced_unless_their_grace_ends(limit: str) -> None:
    """do-not-disrupt on a pod keeps its drifted node; with a terminationGracePeriod the node goes all the same."""

    async def body(stage: Stage, **template: str) -> list[str]:
        await sizing.start(stage)
        await add_static(stage, 2, limits={"nodes": limit}, template=template)
        await asyncio.sleep(60)
        (first, _) = await staying(stage)
        await add_pod(stage, "kept", node=f"node-of-{first}", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        await retemplate(stage)
        await asyncio.sleep(900)
        return await teams(stage)

    assert on_stage(body).value == ["a", "b"]
    assert on_stage(functools.partial(body, terminationGracePeriod="60s")).value == ["b", "b"]


def test_a_replacement_that_never_comes_up_is_tried_later_and_later() -> None:
    """The drifted machines stay meanwhile, and no other is begun in a rush."""

    async def body(stage: Stage) -> tuple[int, list[str]]:
        await sizing.start(stage)
        await add_static(stage, 2)
        await asyncio.sleep(60)
        before = stage.cloud.calls["create"]
        stage.cloud.always = InsufficientCapacity("none left")
        await retemplate(stage)
        await asyncio.sleep(3600)
        return stage.cloud.calls["create"] - before, await teams(stage)

    asked, after = on_stage(body).value
    assert after[:2] == ["a", "a"]
    assert 2 <= asked <= 30


def test_scaling_comes_before_drift() -> None:
    """A pool that is asked to shrink shrinks first; what goes then is not replaced."""

    async def body(stage: Stage) -> tuple[int, list[str]]:
        await sizing.start(stage)
        await add_static(stage, 4)
        await asyncio.sleep(60)
        spec = {"replicas": 2, "template": {"metadata": {"labels": {"team": "b"}}}}
        await stage.admin.patch(NODE_POOL, "default", {"spec": spec})
        await asyncio.sleep(300)
        return stage.cloud.calls["create"], await teams(stage)

    assert on_stage(body).value == (6, ["b", "b"])


# --- crashes, and two who lead


Act = Callable[[Stage], Any]


async def _grow(stage: Stage) -> None:
    await scale(stage, 5)


async def _shrink(stage: Stage) -> None:
    await scale(stage, 1)


async def _drift(stage: Stage) -> None:
    await retemplate(stage)


@pytest.mark.parametrize(
    ("act", "limit", "mode", "after"),
    [
        (_grow, "9", "Hard", ["a"] * 5),
        (_shrink, "9", "Hard", ["a"]),
        (_drift, "9", "Hard", ["b"] * 3),
        (_drift, "3", "Hard", ["b"] * 3),
        (_drift, "3", "Soft", ["b"] * 3),
    ],
    ids=["growing", "shrinking", "replacing", "deleting first", "past a soft limit"],
)
def test_a_crash_after_any_write_leaves_the_pool_at_its_number(
    act: Act, limit: str, mode: str, after: list[str]
) -> None:
    """Whatever was written last: no claim too many, no machine without a claim, no mark on a Node that stays."""

    async def body(stage: Stage, crash_after: int) -> int:
        await stage.add_class()
        sizing.begin(stage)
        await add_static(stage, 3, limits={"nodes": limit}, disruption={**sizing.ANY_TIME, "nodeLimitMode": mode})
        first = start_process(stage, *PARTS)
        await asyncio.sleep(40)
        before = stage.writes()
        if crash_after:
            first.crash_after_write(crash_after)
        await act(stage)
        most = 0
        for second in range(400):
            await asyncio.sleep(1)
            most = max(most, (await left(stage))[0])
            if first.dead and second % 5 == 0:
                first = start_process(stage, *PARTS, name=f"after-{second}")
        assert await teams(stage) == after
        assert await left(stage) == (len(after),) * 3
        assert mode == "Soft" or most <= int(limit)
        nodes = (await stage.admin.list(NODE)).items
        assert not [each for each in nodes if any(taint.key == names.DISRUPTED_TAINT for taint in each.spec.taints)]
        return stage.writes() - before

    unbroken = on_stage(functools.partial(body, crash_after=0)).value
    assert unbroken >= 4
    for n in range(1, unbroken + 1):
        on_stage(functools.partial(body, crash_after=n))


@pytest.mark.parametrize("seed", range(4))
def test_two_who_lead_at_the_same_time_hold_numbers_and_limits(seed: int) -> None:
    """Growing, shrinking and drifting under both: never more claims than the limit, and in the end the number."""

    async def body(stage: Stage) -> None:
        await stage.add_class()
        sizing.begin(stage)
        for name in ("one", "two"):
            start_process(stage, *PARTS, name=name)
        await add_static(stage, 4, limits={"nodes": "5"})
        for step in range(6):
            for _ in range(60):
                await asyncio.sleep(1)
                assert (await left(stage))[0] <= 5
            if step % 2:
                await retemplate(stage, team=f"t{step}")
            else:
                await scale(stage, (2, 5, 3)[step // 2])
        await asyncio.sleep(240)
        assert await left(stage) == (3, 3, 3)
        assert await teams(stage) == ["t5"] * 3

    on_stage(body, seed=seed)
