"""Machines of growth pools that are no longer what their pool asks for are replaced, within budgets, minima and maxima."""

import asyncio
from typing import Any

import pytest

from growth.api import names
from growth.api.conditions import find, is_true
from growth.api.growthpools import GROWTH_POOL, NODE_REMOVAL_REQUEST
from growth.api.karpenter import NODE_CLAIM
from growth.api.kinds import Json
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.api.policy import POD_DISRUPTION_BUDGET
from growth.api.workloads import DEPLOYMENT
from growth.sim.trials.owning.life import SETTINGS, Life
from tests.manifests import growth_pool
from tests.simulation.growing import HETZNER, Growing, growing

ONE_AT_A_TIME = {"budgets": [{"nodes": "1"}]}
HALF_AN_HOUR = 1800


def pool_body(*types: Json, **spec: Any) -> Json:
    return growth_pool("default", *(types or ({"name": "cax11", "min": 2, "max": 10},)), **spec)


async def change_template(cluster: Growing, team: str = "b") -> None:
    await cluster.admin.patch(GROWTH_POOL, "default", {"spec": {"template": {"labels": {"team": team}}}})


async def ready(cluster: Growing) -> int:
    return sum(each.is_ready for each in await cluster.nodes())


async def teams(cluster: Growing) -> list[str]:
    return sorted(each.metadata.labels.get("team", "") for each in await cluster.nodes())


async def started(cluster: Growing, machines: int) -> None:
    """So many machines with one pod each."""
    await cluster.deploy("web", machines, cpu="1500m")
    await cluster.running(machines)
    assert len(await cluster.nodes()) == machines


def test_a_changed_template_replaces_every_machine() -> None:
    """Five with `min: 2` and a budget of one: all are replaced by removals of the reason Drifted, one at a time."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(pool_body(disruption=ONE_AT_A_TIME))
        await started(cluster, 5)
        before = {each.metadata.uid for each in await cluster.claims()}
        await change_template(cluster)
        least, most = 5, 0
        reasons: set[str] = set()
        for _ in range(HALF_AN_HOUR):
            await asyncio.sleep(1)
            least = min(least, await ready(cluster))
            removals = await cluster.removals()
            reasons |= {each.spec.reason for each in removals}
            most = max(most, len(removals))
            if {each.metadata.uid for each in await cluster.claims()}.isdisjoint(before) and not removals:
                break
        assert await teams(cluster) == ["b"] * 5
        assert reasons == {"Drifted"}
        assert most == 1
        assert least >= 4
        await cluster.running(5)
        await asyncio.sleep(600)
        assert await teams(cluster) == ["b"] * 5

    growing(body)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"template": {"labels": {"team": "b"}}}, id="labels"),
        pytest.param(
            {"template": {"taints": [{"key": "example.com/soft", "effect": "PreferNoSchedule"}]}}, id="taints"
        ),
        pytest.param(
            {"nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "other"}}, id="node class"
        ),
        pytest.param({"serverTypes": [{"name": "cax21", "max": 10}]}, id="type taken off the list"),
    ],
)
def test_what_makes_a_machine_drift(change: Json) -> None:
    """The template, the node class, and a list of types without the machine's own: it is replaced by what is asked for now."""

    async def body(cluster: Growing) -> None:
        await cluster.admin.create(KWOK_NODE_CLASS, {"metadata": {"name": "other"}})
        await cluster.pool(pool_body({"name": "cax11", "max": 10}, {"name": "cax21", "max": 10, "priority": -1}))
        await started(cluster, 1)
        (before,) = await cluster.claims()
        await cluster.admin.patch(GROWTH_POOL, "default", {"spec": change})
        await cluster.until(lambda: replaced(cluster, {before.metadata.uid}, 1))
        (after,) = await cluster.claims()
        assert after.spec != before.spec or after.metadata.labels != before.metadata.labels
        await cluster.running(1)

    growing(body)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            {"nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}}, id="class"
        ),
        pytest.param(
            {"serverTypes": [{"name": "CAX11", "max": 0, "priority": 3}, {"name": "cax31", "max": 1}]}, id="types"
        ),
        pytest.param({"limits": {"nodes": 1}}, id="limits"),
        pytest.param({"scaleDownAfter": "3h"}, id="scaleDownAfter"),
    ],
)
def test_what_makes_no_machine_drift(change: Json) -> None:
    """Bounds, other types, another spelling of the type, and the default class by its name: every machine stays."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(pool_body({"name": "cax11", "max": 10}))
        await started(cluster, 1)
        (before,) = await cluster.claims()
        await cluster.admin.patch(GROWTH_POOL, "default", {"spec": change})
        await asyncio.sleep(900)
        (after,) = await cluster.claims()
        assert after.metadata.uid == before.metadata.uid
        assert find(after.status.conditions, names.DRIFTED) is None

    growing(body)


async def replaced(cluster: Growing, before: set[str], machines: int) -> bool:
    """Whether there are so many machines, none of them from before, and nothing is being removed."""
    claims = await cluster.claims()
    return (
        len(claims) == machines
        and before.isdisjoint(each.metadata.uid for each in claims)
        and all(is_true(each.status.conditions, names.INITIALIZED) for each in claims)
        and not await cluster.removals()
    )


def test_claims_without_a_hash_get_that_of_today_and_do_not_drift() -> None:
    """Machines of a release that stamped no claims: what they were made from is not known."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(pool_body())
        await started(cluster, 2)
        for each in await cluster.claims():
            gone = dict.fromkeys((names.NODE_POOL_HASH_ANNOTATION, names.NODE_POOL_HASH_VERSION_ANNOTATION))
            await cluster.admin.patch(NODE_CLAIM, each.metadata.name, {"metadata": {"annotations": gone}})
        await asyncio.sleep(120)
        pool = await cluster.admin.get(GROWTH_POOL, "default")
        stamped = pool.metadata.annotations[names.NODE_POOL_HASH_ANNOTATION]
        claims = await cluster.claims()
        assert {each.metadata.annotations.get(names.NODE_POOL_HASH_ANNOTATION) for each in claims} == {stamped}
        assert all(find(each.status.conditions, names.DRIFTED) is None for each in claims)

    growing(body)


def test_machines_kept_warm_are_replaced_before_they_go() -> None:
    """`min: 2` without any pod: the new machine of the type is ready before the old one goes, one after the other."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(
            pool_body({"name": "cax11", "min": 2, "max": 3}, {"name": "cax21", "max": 3}, disruption=ONE_AT_A_TIME)
        )
        await cluster.until(lambda: warm(cluster, 2))
        before = {each.metadata.uid for each in await cluster.claims()}
        await change_template(cluster)
        least = 2
        for _ in range(HALF_AN_HOUR):
            await asyncio.sleep(1)
            least = min(least, await ready(cluster))
            if await replaced(cluster, before, 2):
                break
        assert least == 2
        assert await teams(cluster) == ["b", "b"]
        assert await cluster.types() == ["cax11", "cax11"]

    growing(body)


async def warm(cluster: Growing, machines: int) -> bool:
    return await ready(cluster) == machines


@pytest.mark.parametrize("bound", ["max", "limits.nodes"])
def test_without_room_for_a_replacement_machines_stay_and_the_pool_says_so(bound: str) -> None:
    """At `max`, or at `limits.nodes`: the condition `DriftBlocked` names it; with room for one more all are replaced."""

    async def body(cluster: Growing) -> None:
        most, limits = (2, {}) if bound == "max" else (9, {"nodes": 2})
        await cluster.pool(pool_body({"name": "cax11", "min": 2, "max": most}, limits=limits, disruption=ONE_AT_A_TIME))
        await started(cluster, 2)
        before = {each.metadata.uid for each in await cluster.claims()}
        await change_template(cluster)

        async def is_said() -> bool:
            pool = await cluster.admin.get(GROWTH_POOL, "default")
            told = find(pool.status.conditions, names.DRIFT_BLOCKED)
            return told is not None and told.status == "True" and bound.removesuffix(".nodes") in told.message

        await cluster.until(is_said)
        await asyncio.sleep(600)
        assert {each.metadata.uid for each in await cluster.claims()} == before
        assert await is_said()
        more: Json = (
            {"serverTypes": [{"name": "cax11", "min": 2, "max": 3}]} if bound == "max" else {"limits": {"nodes": 3}}
        )
        await cluster.admin.patch(GROWTH_POOL, "default", {"spec": more})
        await cluster.until(lambda: replaced(cluster, before, 2), seconds=HALF_AN_HOUR)

        async def is_over() -> bool:
            pool = await cluster.admin.get(GROWTH_POOL, "default")
            return find(pool.status.conditions, names.DRIFT_BLOCKED) is None

        await cluster.until(is_over)

    growing(body)


@pytest.mark.parametrize(
    "budgets",
    [
        pytest.param([{"nodes": "0"}], id="none"),
        pytest.param([{"nodes": "0", "reasons": ["Drifted"]}], id="none for drift"),
        pytest.param([{"nodes": "0", "schedule": "* * * * *", "duration": "2m"}, {"nodes": "100%"}], id="at times"),
        pytest.param([{"nodes": "100%"}, {"nodes": "0%"}], id="the smallest"),
    ],
)
def test_a_budget_of_none_opts_out(budgets: list[Json]) -> None:
    """Drifted machines stay and say that they have drifted; without the budget they go."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(pool_body(disruption={"budgets": budgets}))
        await started(cluster, 2)
        before = {each.metadata.uid for each in await cluster.claims()}
        await change_template(cluster)
        await asyncio.sleep(900)
        claims = await cluster.claims()
        assert {each.metadata.uid for each in claims} == before
        assert all(is_true(each.status.conditions, names.DRIFTED) for each in claims)
        await cluster.admin.patch(GROWTH_POOL, "default", {"spec": {"disruption": {"budgets": []}}})
        await cluster.until(lambda: replaced(cluster, before, 2), seconds=HALF_AN_HOUR)

    growing(body)


def test_protected_pods_keep_a_drifted_machine() -> None:
    """A pod with do-not-disrupt stays where it is, and so does its machine; the others are replaced."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(pool_body({"name": "cax11", "max": 10}, disruption={"budgets": []}))
        await started(cluster, 3)
        kept = (await cluster.pods())[0]
        note = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}}
        await cluster.admin.patch(POD, kept.metadata.name, note, namespace="default")
        await change_template(cluster)

        async def two_are_new() -> bool:
            return await teams(cluster) == ["", "b", "b"]

        await cluster.until(two_are_new, seconds=HALF_AN_HOUR)
        await asyncio.sleep(600)
        assert await two_are_new()
        assert (await cluster.admin.get(NODE, kept.spec.node_name)).metadata.labels.get("team") is None
        assert (await cluster.admin.get(POD, kept.metadata.name, namespace="default")).metadata.uid == kept.metadata.uid

    growing(body)


def test_drifted_machines_without_pods_go_for_nothing() -> None:
    """Beyond the minimum nothing is bought in the place of a machine that no pod needs."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(pool_body({"name": "cax11", "max": 10}, scaleDownAfter="24h", disruption={"budgets": []}))
        await started(cluster, 3)
        await cluster.admin.delete(DEPLOYMENT, "web", namespace="default")
        await asyncio.sleep(60)
        asked = len(await cluster.requests())
        await change_template(cluster)

        async def none_is_left() -> bool:
            return not await cluster.claims()

        await cluster.until(none_is_left, seconds=HALF_AN_HOUR)
        assert len(await cluster.requests()) <= asked

    growing(body)


@pytest.mark.parametrize("write", range(1, 60, 4))
def test_the_process_may_die_at_any_write_of_an_exchange(write: int) -> None:
    """Every machine is replaced all the same, `min` are ready throughout, and nothing is bought twice."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(pool_body({"name": "cax11", "min": 2, "max": 4}, disruption=ONE_AT_A_TIME))
        await started(cluster, 3)
        before = {each.metadata.uid for each in await cluster.claims()}
        await change_template(cluster)
        cluster.replica.crash_after_write(write)
        for _ in range(HALF_AN_HOUR):
            await asyncio.sleep(1)
            cluster.stage.check()
            assert await ready(cluster) >= 2
            assert len(await cluster.claims()) <= 4
            if await replaced(cluster, before, 3):
                break
        assert await teams(cluster) == ["b"] * 3
        await cluster.running(3)

    growing(body)


@pytest.mark.parametrize("seed", range(1, 5))
def test_two_leaders_at_once_keep_minimum_and_maximum(seed: int) -> None:
    """Both replace the same machines: never more than `max`, never fewer than `min` ready, and all are replaced in the end.

    While both lead one may undo what the other has begun; then one of them stands still.
    """

    async def body(cluster: Growing) -> None:
        life = Life(settings=SETTINGS, catalogue=HETZNER)
        await cluster.pool(
            pool_body({"name": "cax11", "min": 2, "max": 4}, disruption={"budgets": [{"nodes": "100%"}]})
        )
        await started(cluster, 3)
        other = cluster.stage.start("other", life, lease="other")
        await asyncio.sleep(30)
        before = {each.metadata.uid for each in await cluster.claims()}
        await change_template(cluster)
        for second in range(2 * HALF_AN_HOUR):
            await asyncio.sleep(1)
            if second == HALF_AN_HOUR and other.process is not None:
                other.process.freeze(2 * HALF_AN_HOUR)
            cluster.stage.check()
            assert await ready(cluster) >= 2
            if before.isdisjoint(each.metadata.uid for each in await cluster.claims()):
                break
        assert set(await teams(cluster)) == {"b"}
        await cluster.running(3)

    growing(body, seed=seed)


def test_a_budget_of_pods_is_kept_and_a_machine_that_it_holds_stays() -> None:
    """Of a PodDisruptionBudget that allows none: no pod is evicted; when it allows one at a time every machine is replaced."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(pool_body({"name": "cax11", "max": 10}, disruption={"budgets": []}))
        await started(cluster, 2)
        spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
        await cluster.admin.create(
            POD_DISRUPTION_BUDGET, {"metadata": {"name": "web"}, "spec": spec}, namespace="default"
        )
        before = {each.metadata.uid for each in await cluster.claims()}
        pods = {each.metadata.uid for each in await cluster.pods()}
        await change_template(cluster)
        await asyncio.sleep(900)
        assert {each.metadata.uid for each in await cluster.claims()} == before
        assert {each.metadata.uid for each in await cluster.pods()} == pods
        less = {"spec": {"minAvailable": 1}}
        await cluster.admin.patch(POD_DISRUPTION_BUDGET, "web", less, namespace="default")
        await cluster.until(lambda: replaced(cluster, before, 2), seconds=HALF_AN_HOUR)

    growing(body)


def test_pods_on_every_node_of_a_machine_hold_up_its_removal() -> None:
    """A machine that registered twice: the cloud is not asked over the head of a pod on its second Node."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(pool_body({"name": "cax11", "max": 3}))
        await started(cluster, 1)
        (claim,), (first,) = await cluster.claims(), await cluster.nodes()
        twin: Json = {"metadata": {"name": "twin"}, "spec": {"providerID": first.spec.provider_id}}
        await cluster.admin.create(NODE, twin)
        await cluster.admin.delete(DEPLOYMENT, "web", namespace="default")
        container = {"name": "main", "image": "x"}
        meta = {"name": "held", "annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}
        held = {"metadata": meta, "spec": {"nodeName": "twin", "containers": [container]}}
        await cluster.admin.create(POD, held, namespace="default")
        removal = {"reason": "NotReady", "nodeClaimName": claim.metadata.name}
        await cluster.admin.create(NODE_REMOVAL_REQUEST, {"metadata": {"name": claim.metadata.name}, "spec": removal})
        await asyncio.sleep(120)
        (asked,) = await cluster.removals()
        assert asked.status.removal_attempt == 0
        assert all(
            "growth.dev/scale-down" in {taint.key for taint in each.spec.taints} for each in await cluster.nodes()
        )

    growing(body)
