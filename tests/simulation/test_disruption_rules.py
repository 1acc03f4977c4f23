"""The rules of disruption at work, in virtual time: what holds a move up, for how long, and what then becomes of it."""

import asyncio
import contextlib
import datetime as dt
import functools
from typing import Any

import pytest

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Kind
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.api.policy import POD_DISRUPTION_BUDGET
from growth.cluster import hashes
from growth.controllers.disruption import Disruption
from growth.controllers.drifting import Drifting
from growth.controllers.sizing import Sizing
from growth.controllers.termination import Termination
from growth.kube.errors import NotFound
from tests.simulation.ending import add_budget, add_owned, add_pod, start_kubelets
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

LIMITED = "No allowed disruptions for disruption reason {} due to node hard limit"
SOON = 60  # seconds in which whatever may be done is begun: a poll, the check of a move and what it needs
DO_NOT = names.DO_NOT_DISRUPT_ANNOTATION
MACHINE = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}


async def blocked(stage: Stage, kind: str) -> set[str]:
    """What events say is blocked, on objects of the kind."""
    found = await stage.events(names.DISRUPTION_BLOCKED)
    return {each.message for each in found if each.involved_object.kind == kind}


async def disruption(stage: Stage, **changed: Any) -> None:
    await stage.admin.patch(NODE_POOL, "default", {"spec": {"disruption": changed}})


# --- node limits


def test_at_a_hard_limit_deletions_go_on_and_replacements_wait() -> None:
    """Two nodes, limit two: the empty one goes; the large one is replaced only when its machine is gone, and the pool
    says until then that the limit, and no budget, is in the way.
    """

    async def body(stage: Stage) -> tuple[list[str], list[str], set[str], int]:
        pool = await add_ready_pool(stage, limits={"nodes": "2"})
        await add_large(stage, pool=pool)
        await add_owned(stage, "web-2", pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(SOON)
        seen = (sorted(await claims(stage)), await coming(stage), await blocked(stage, "NodePool"))
        start_kubelets(stage)
        ending = asyncio.create_task(Termination(stage.env).run())
        await until_coming(stage)
        ending.cancel()
        return *seen, len(await claims(stage))

    stayed, replacing, told, count = on_stage(body).value
    assert (stayed, replacing, count) == (["web-1"], [], 2)
    assert LIMITED.format("Underutilized") in told
    assert LIMITED.format("Empty") not in told, (
        "nothing comes in the place of an empty node: the limit is not in its way"
    )


def test_at_a_soft_limit_replacements_come_first_and_nothing_fights_them() -> None:
    """One node, limit one: for a while there are two, and neither is taken for a surplus; in the end there is one."""

    async def body(stage: Stage) -> tuple[int, list[str], set[str]]:
        pool = await add_ready_pool(stage, limits={"nodes": "1"}, disruption={**ALL, "nodeLimitMode": "Soft"})
        await add_large(stage, pool=pool)
        start_kubelets(stage)
        await stage.start(Disruption(stage.env), Sizing(stage.env), Termination(stage.env))
        (new,) = await until_coming(stage)
        await asyncio.sleep(120)
        between = len(await claims(stage))
        await bring_up(stage, new)
        await asyncio.sleep(15)
        left = ["new" if name == new else name for name in await claims(stage)]
        return between, left, await blocked(stage, "NodePool")

    between, left, told = on_stage(body).value
    assert (between, left) == (2, ["new"])
    assert not any("node hard limit" in each for each in told)


def test_at_a_hard_limit_drift_waits_too_and_says_so() -> None:
    """The event is a Normal one of the pool and names the reason; with room under the limit it goes on."""

    async def body(stage: Stage) -> tuple[list[str], set[tuple[str, str, str]]]:
        pool = await add_ready_pool(stage, limits={"nodes": "1"}, disruption={**ALL, "consolidateAfter": "Never"})
        await add_large(stage, pool=pool, pods=12)
        stage.cloud.drift["web-1"] = "ImageDrifted"
        await stage.admin.patch(NODE_CLAIM, "web-1", {"metadata": {"labels": MACHINE}})
        await stage.start(Disruption(stage.env), Drifting(stage.env))
        await asyncio.sleep(2 * SOON)
        events = await stage.events(names.DISRUPTION_BLOCKED)
        seen = (
            await coming(stage),
            {(each.type, each.involved_object.kind, each.message) for each in events},
        )
        await stage.admin.patch(NODE_POOL, "default", {"spec": {"limits": {"nodes": "2"}}})
        await until_coming(stage)
        return seen

    replacing, told = on_stage(body).value
    assert replacing == []
    assert ("Normal", "NodePool", LIMITED.format("Drifted")) in told


async def add_drifted(stage: Stage, name: str, *, node: str, **spec: Any) -> None:
    """A pool of one node, which has drifted, and of no other."""
    team = {"metadata": {"labels": {"team": name}}}
    still = {**ALL, "consolidateAfter": "Never"}
    pool = await add_ready_pool(stage, name, **{"limits": {"nodes": "1"}, "disruption": still, **spec}, **team)
    await add_large(stage, node, pool=pool, selector={"team": name})
    await drift(stage, node)


async def told_pools(stage: Stage) -> set[tuple[str, str]]:
    """Which pools were told what blocks them."""
    found = await stage.events(names.DISRUPTION_BLOCKED)
    about = [(each.involved_object, each.message) for each in found]
    return {(pool.name, message) for pool, message in about if pool.kind == "NodePool"}


def test_a_static_pool_at_its_limit_is_not_said_to_be_blocked() -> None:
    """It replaces its drifted nodes in place, whatever the limit leaves. The other pool is blocked, and says so."""

    async def body(stage: Stage) -> set[tuple[str, str]]:
        await add_drifted(stage, "fixed", node="web-1", replicas=1)
        await add_drifted(stage, "free", node="web-2")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(SOON)
        return await told_pools(stage)

    assert on_stage(body).value == {("free", LIMITED.format("Drifted"))}


def test_a_pool_is_blocked_only_where_some_node_of_its_own_would_go() -> None:
    """That nodes of another pool have drifted is nothing that its limit or its budget is in the way of."""

    async def body(stage: Stage) -> set[tuple[str, str]]:
        still = {**ALL, "consolidateAfter": "Never"}
        await add_drifted(stage, "free", node="web-1")
        for name, own in (
            ("full", {"limits": {"nodes": "1"}}),
            ("shut", {"disruption": {**still, "budgets": [{"nodes": "0"}]}}),
        ):
            pool = await add_ready_pool(stage, name, **{"disruption": still, **own})
            await add_large(stage, f"of-{name}", pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(SOON)
        return await told_pools(stage)

    assert on_stage(body).value == {("free", LIMITED.format("Drifted"))}


# --- failed purchases


def test_while_purchases_rest_the_budget_is_for_what_needs_none() -> None:
    """The replacement of one node is refused again and again: a node whose pods fit elsewhere goes in the meantime."""

    async def body(stage: Stage) -> tuple[int, list[str]]:
        pool = await add_ready_pool(stage, disruption={**ALL, "budgets": [{"nodes": "1"}]})
        there = {names.ZONE_LABEL: "test-zone-b"}
        await add_large(stage, "dear", pool=pool, selector=there)
        await stage.admin.patch(NODE, "node-of-dear", {"metadata": {"labels": there}})
        for name, number in (("idle", 1), ("busy", 2)):
            await add_owned(stage, name, pool=pool)
            small = [{"name": "main", "image": "example", "resources": {"requests": {"cpu": "900m"}}}]
            for at in range(number):
                node = f"node-of-{name}"
                await add_pod(stage, f"on-{name}-{at}", node=node, owner="StatefulSet", containers=small)
        await stage.start(Disruption(stage.env))
        tries = 0
        for _ in range(4 * SOON):
            await asyncio.sleep(1)
            for new in await coming(stage):
                tries += 1
                await stage.admin.patch(NODE_CLAIM, new, {"metadata": {"finalizers": None}})
                await stage.admin.delete(NODE_CLAIM, new)
        return tries, sorted(set(await claims(stage)) - set(await coming(stage)))

    tries, left = on_stage(body).value
    assert tries
    assert left == ["busy", "dear"]


def test_a_node_that_goes_without_a_purchase_ends_no_rest() -> None:
    """What failed is tried after a minute, and then after two, although another node of the pool went in the meantime."""

    async def body(stage: Stage) -> list[float]:
        pool = await add_ready_pool(stage, disruption={**ALL, "budgets": [{"nodes": "1"}]})
        there = {names.ZONE_LABEL: "test-zone-b"}
        await add_large(stage, "dear", pool=pool, selector=there)
        await stage.admin.patch(NODE, "node-of-dear", {"metadata": {"labels": there}})
        for name in ("idle", "busy"):
            await add_owned(stage, name, pool=pool)
            small = [{"name": "main", "image": "example", "resources": {"requests": {"cpu": "900m"}}}]
            await add_pod(stage, f"on-{name}", node=f"node-of-{name}", owner="StatefulSet", containers=small)
        await stage.start(Disruption(stage.env))
        tries: list[float] = []
        for _ in range(6 * SOON):
            await asyncio.sleep(1)
            for new in await coming(stage):
                tries.append(stage.env.clock.monotonic())
                await stage.admin.patch(NODE_CLAIM, new, {"metadata": {"finalizers": None}})
                await stage.admin.delete(NODE_CLAIM, new)
            for gone in {"idle", "busy"}.difference(await claims(stage)):
                with contextlib.suppress(NotFound):
                    await stage.admin.delete(NODE, f"node-of-{gone}")
                    await stage.admin.patch(NODE, f"node-of-{gone}", {"metadata": {"finalizers": None}})
                with contextlib.suppress(NotFound):
                    await stage.admin.patch(NODE_CLAIM, gone, {"metadata": {"finalizers": None}})
        return tries

    first, second, third = on_stage(body).value[:3]
    assert second - first > 60
    assert third - second > 120


# --- protection


@pytest.mark.parametrize("value", ["4 hours", "True", "-1h", "false", "2h"])
def test_a_protection_that_cannot_be_read_is_told_while_there_is_time(value: str) -> None:
    """Long before anybody is asked to leave: once, on one pod of each owner. What can be read is nothing to tell."""

    async def body(stage: Stage) -> list[tuple[str, str, int]]:
        pool = await add_ready_pool(stage, disruption={**ALL, "budgets": [{"nodes": "0"}]})
        await add_owned(stage, pool=pool)
        for name in ("run-1", "run-2"):
            await add_pod(stage, name, node="node-of-web-1", owner="StatefulSet", annotations={DO_NOT: value})
        first = await stage.admin.get(POD.raw, "run-1", namespace="default")
        same = {"metadata": {"ownerReferences": first["metadata"]["ownerReferences"]}}
        await stage.admin.patch(POD, "run-2", same, namespace="default")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(30 * SOON)
        told = await stage.events(names.INVALID_DO_NOT_DISRUPT_ANNOTATION)
        return [(each.type, each.message.partition(": ")[0], each.count) for each in told]

    told = on_stage(body).value
    assert told == ([("Warning", f"Invalid {DO_NOT} annotation", 1)] if value not in {"false", "2h"} else [])


# --- time


def test_a_pods_protection_ends_with_its_time() -> None:
    """do-not-disrupt for half an hour from its start: not a minute less, and soon after."""

    async def body(stage: Stage) -> list[int]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        protect = {"metadata": {"annotations": {DO_NOT: "30m"}}}
        await stage.admin.patch(POD, "on-web-1-0", protect, namespace="default")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(1795)
        seen = [len(await coming(stage))]
        await asyncio.sleep(SOON)
        return [*seen, len(await coming(stage))]

    assert on_stage(body).value == [0, 1]


def test_nothing_is_moved_to_where_pods_came_a_moment_ago() -> None:
    """Nothing can be bought, so that a node can only go to the other: it waits until that has been quiet for long enough."""

    async def body(stage: Stage) -> list[list[str]]:
        pool = await add_ready_pool(stage, limits={"nodes": "2"}, disruption={**ALL, "consolidateAfter": "10m"})
        await add_large(stage, "web-1", pool=pool)
        await add_large(stage, "web-2", pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(300)
        await add_pod(stage, "late", node="node-of-web-2", owner="StatefulSet")
        await asyncio.sleep(420)  # the first has been quiet for 12 minutes, the second for 7
        seen = [sorted(await claims(stage))]
        await asyncio.sleep(180 + SOON)
        return [*seen, sorted(await claims(stage))]

    before, after = on_stage(body).value
    assert before == ["web-1", "web-2"]
    assert len(after) == 1


def test_a_budget_of_nothing_holds_while_its_window_lasts() -> None:
    """From the full hour for half an hour, in UTC; then moves begin."""

    async def body(stage: Stage) -> list[int]:
        now = stage.env.clock.now()
        begins = now.replace(minute=0, second=0, microsecond=0)
        window = {"nodes": "0", "schedule": f"0 {begins.hour} * * *", "duration": "1h30m"}
        pool = await add_ready_pool(stage, disruption={**ALL, "budgets": [{"nodes": "100%"}, window]})
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        ends = begins + dt.timedelta(minutes=90)
        await asyncio.sleep((ends - now).total_seconds() - 5)
        seen = [len(await coming(stage))]
        await asyncio.sleep(SOON)
        return [*seen, len(await coming(stage))]

    assert on_stage(body).value == [0, 1]


# --- protection


def test_a_budget_of_pods_holds_its_node_until_it_allows_an_eviction() -> None:
    """The node says which budget; when that has room the move is made."""

    async def body(stage: Stage) -> tuple[list[str], set[str]]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        start_kubelets(stage)
        await add_budget(stage, "web", app="on-web-1-0", maxUnavailable=0)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(300)
        seen = (await coming(stage), await blocked(stage, "Node"))
        await stage.admin.patch(POD_DISRUPTION_BUDGET, "web", {"spec": {"maxUnavailable": 1}}, namespace="default")
        await until_coming(stage)
        return seen

    replacing, told = on_stage(body).value
    assert replacing == []
    assert "PodDisruptionBudget default/web allows no eviction of pod default/on-web-1-0" in told


@pytest.mark.parametrize("where", ["node", "claim"])
def test_a_nodes_own_annotation_holds_it(where: str) -> None:
    """On the Node or on its claim; taken off, the node goes."""

    async def body(stage: Stage) -> list[str]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        mark: Any = {"metadata": {"annotations": {DO_NOT: "true"}}}
        clear: Any = {"metadata": {"annotations": {DO_NOT: None}}}
        kind: Kind[Any] = NODE if where == "node" else NODE_CLAIM
        name = "node-of-web-1" if where == "node" else "web-1"
        await stage.admin.patch(kind, name, mark)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(300)
        seen = await coming(stage)
        await stage.admin.patch(kind, name, clear)
        await until_coming(stage)
        return seen

    assert on_stage(body).value == []


# --- policies


async def _lopsided(stage: Stage, policy: str) -> list[str]:
    """A small node whose one pod would fit elsewhere, in a pool whose cost is nearly all another's."""
    pool = await add_ready_pool(stage, disruption={**ALL, "consolidationPolicy": policy})
    await add_large(stage, "rich", pool=pool, pods=0)
    await stage.admin.patch(NODE, "node-of-rich", {"metadata": {"annotations": {DO_NOT: "true"}}})
    await add_owned(stage, "poor", pool=pool)
    asked = [{"name": "main", "image": "example", "resources": {"requests": {"cpu": "1"}}}]
    await add_pod(stage, "only", node="node-of-poor", owner="StatefulSet", containers=asked)
    await stage.start(Disruption(stage.env))
    await asyncio.sleep(300)
    return sorted(await claims(stage))


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ("WhenEmpty", ["poor", "rich"]),
        ("Balanced", ["poor", "rich"]),
        ("WhenEmptyOrUnderutilized", ["rich"]),
    ],
)
def test_what_is_worth_a_move_is_the_policys_choice(policy: str, left: list[str]) -> None:
    """A fifth of the cost for two thirds of the disruption: too little for Balanced, and no matter for WhenEmpty."""
    assert on_stage(functools.partial(_lopsided, policy=policy)).value == left


# --- drift


async def _drifting(stage: Stage, *, pods: int = 12, **spec: Any) -> None:
    """Two full nodes of a pool that wants nothing but drift, of which the first is the older; then its template changes."""
    wishes = {**ALL, "consolidateAfter": "Never", **spec.pop("disruption", {})}
    pool = await add_ready_pool(stage, disruption=wishes, **spec)
    for name in ("web-1", "web-2"):
        await add_large(stage, name, pool=pool, pods=pods)
        meta = {"labels": MACHINE, "annotations": hashes.stamp(pool)}
        await stage.admin.patch(NODE_CLAIM, name, {"metadata": meta})
        await asyncio.sleep(5)
    await stage.start(Disruption(stage.env), Drifting(stage.env))
    await asyncio.sleep(SOON)
    assert await tainted(stage) == []
    changed = {"spec": {"template": {"metadata": {"labels": {"team": "b"}}}}}
    await stage.admin.patch(NODE_POOL, "default", changed)


def test_drifted_nodes_are_replaced_the_oldest_first_and_as_many_as_the_budget_allows() -> None:
    """With a budget of one the next is begun when the first is gone."""

    async def body(stage: Stage) -> list[list[str]]:
        await _drifting(stage, disruption={"budgets": [{"nodes": "1"}]})
        start_kubelets(stage)
        (new,) = await until_coming(stage)
        await asyncio.sleep(120)
        seen = [await tainted(stage)]
        assert await coming(stage) == [new]
        await bring_up(stage, new)
        await asyncio.sleep(10)
        seen.append(sorted(set(await claims(stage)) - {new}))
        ending = asyncio.create_task(Termination(stage.env).run())
        await asyncio.sleep(SOON)
        ending.cancel()
        return [*seen, sorted(set(await claims(stage)) - {new})]

    assert on_stage(body).value == [["node-of-web-1"], ["web-2"], []]


def test_a_budget_of_nothing_for_drift_keeps_drifted_nodes() -> None:
    """And says so on the pool."""

    async def body(stage: Stage) -> tuple[list[str], set[str]]:
        await _drifting(stage, disruption={"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]})
        await asyncio.sleep(300)
        return await tainted(stage), await blocked(stage, "NodePool")

    marked, told = on_stage(body).value
    assert marked == []
    assert "No allowed disruptions for disruption reason Drifted due to blocking budget" in told


@pytest.mark.parametrize(("grace", "goes"), [(None, False), ("1h", True)])
def test_drift_passes_protected_pods_only_where_their_machine_ends_some_time(grace: str | None, *, goes: bool) -> None:
    """Without a termination grace period do-not-disrupt holds a drifted node; with one it does not."""

    async def body(stage: Stage) -> list[str]:
        pool = await add_ready_pool(stage, disruption={**ALL, "consolidateAfter": "Never"})
        spec: dict[str, Any] = {} if grace is None else {"terminationGracePeriod": grace}
        await add_owned(stage, pool=pool, **spec)
        asked = [{"name": "main", "image": "example", "resources": {"requests": {"cpu": "3"}}}]
        await add_pod(stage, "held", annotations={DO_NOT: "true"}, owner="StatefulSet", containers=asked)
        stage.cloud.drift["web-1"] = "ImageDrifted"
        await stage.admin.patch(NODE_CLAIM, "web-1", {"metadata": {"labels": MACHINE}})
        await stage.start(Disruption(stage.env), Drifting(stage.env))
        await asyncio.sleep(300)
        return [*await tainted(stage), *(["deleted"] if "web-1" not in await claims(stage) else [])]

    assert bool(on_stage(body).value) is goes
