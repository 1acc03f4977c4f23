"""Machines that reach their age: at the very moment, whatever budgets and limits say, and with the drain of every end."""

import asyncio
import dataclasses
import functools
from typing import TypeVar

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Kind
from growth.api.nodes import NODE
from growth.controllers.disrupted import CLAIMS_DISRUPTED, PODS_DISRUPTED
from growth.controllers.expiration import Expiration
from growth.controllers.settings import ControllerSettings
from growth.controllers.termination import Termination
from growth.kube.passing import PassingApi
from growth.sim.ports import SimClock
from tests.simulation.ending import add_budget, add_owned, add_pod, left, start_kubelets, start_process
from tests.simulation.owning import LateApi, Stage, on_stage

T = TypeVar("T")
FROZEN = {"budgets": [{"nodes": "0"}]}


async def staying(stage: Stage) -> list[str]:
    """Names of the claims that nobody has deleted."""
    listed = (await stage.admin.list(NODE_CLAIM)).items
    return sorted(each.metadata.name for each in listed if each.metadata.deletion_timestamp is None)


def test_a_claim_goes_at_its_age_and_not_a_second_before() -> None:
    """The claim's own expireAfter counts, from its creation on; Never is never."""

    async def body(stage: Stage) -> list[list[str]]:
        pool = await stage.add_pool(template={"expireAfter": "1h"})
        await add_owned(stage, "ten", pool=pool, expireAfter="10m")
        await add_owned(stage, "twenty", pool=pool, expireAfter="20m")
        await add_owned(stage, "never", pool=pool, expireAfter="Never")
        born = (await stage.claim("ten")).metadata.creation_timestamp
        assert born is not None
        await stage.start(Expiration(stage.env))
        seen = []
        for minutes in (10, 20):
            passed = (stage.env.clock.now() - born).total_seconds()
            await asyncio.sleep(minutes * 60 - 2 - passed)
            seen.append(await staying(stage))
            await asyncio.sleep(3)
            seen.append(await staying(stage))
        await asyncio.sleep(2 * 86400)
        return [*seen, await staying(stage)]

    before, after = ["never", "ten", "twenty"], ["never", "twenty"]
    assert on_stage(body).value == [before, after, after, ["never"], ["never"]]


def test_a_clock_that_is_set_back_at_the_last_moment_delays_and_no_more() -> None:
    """Between two looks at the clock the age may be gone again; it is waited for anew."""

    async def body(stage: Stage) -> list[list[str]]:
        clock = SimClock(stage.kernel)

        class Late(PassingApi):
            async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
                if kind == NODE_CLAIM and stage.kernel.time() < 650:
                    clock.jump(-300)
                return await super().get(kind, name, namespace=namespace)

        await add_owned(stage, "ten", pool=await stage.add_pool(), expireAfter="10m")
        await stage.start(Expiration(dataclasses.replace(stage.env, clock=clock, api=Late(stage.env.api))))
        await asyncio.sleep(700)
        seen = [await staying(stage)]
        await asyncio.sleep(300)
        return [*seen, await staying(stage)]

    assert on_stage(body).value == [["ten"], []]


def test_neither_budgets_nor_limits_nor_marks_on_the_node_hold_it() -> None:
    """Expiration is forceful: a budget of none, a full node limit and do-not-disrupt on the Node change nothing."""

    async def body(stage: Stage) -> list[str]:
        pool = await stage.add_pool(disruption=FROZEN, limits={"nodes": "2"})
        for name in ("a", "b"):
            await add_owned(
                stage, name, pool=pool, expireAfter="10m", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"}
            )
        await stage.start(Expiration(stage.env))
        await asyncio.sleep(601)
        return await staying(stage)

    assert on_stage(body).value == []


def test_machines_of_one_age_go_together() -> None:
    """A burst that was bought together expires together."""

    async def body(stage: Stage) -> list[int]:
        pool = await stage.add_pool(disruption=FROZEN)
        for number in range(12):
            await add_owned(stage, f"web-{number}", pool=pool, expireAfter="1h")
        await stage.start(Expiration(stage.env))
        await asyncio.sleep(3590)
        before = len(await staying(stage))
        await asyncio.sleep(12)
        return [before, len(await staying(stage))]

    assert on_stage(body).value == [12, 0]


def test_an_end_is_told_and_counted_with_the_pods_that_it_moves() -> None:
    """One event on the claim and one on its Node, and Karpenter's counters with the reason expired."""

    async def body(stage: Stage) -> None:
        pool = await stage.add_pool()
        await add_owned(stage, pool=pool, expireAfter="10m")
        await add_pod(stage, "a")
        await add_pod(stage, "daemon", owner="DaemonSet")
        start_kubelets(stage)
        await stage.start(Termination(stage.env), Expiration(stage.env))
        await asyncio.sleep(660)
        told = {(each.involved_object.kind, each.message) for each in await stage.events(names.DISRUPTION_TERMINATING)}
        assert told == {("Node", "Disrupting Node: Expired"), ("NodeClaim", "Disrupting NodeClaim: Expired")}
        labels = {
            "reason": "expired",
            "nodepool": "default",
            "capacity_type": "on-demand",
            "consolidation_policy": "",
            "termination_mode": "graceful",
        }
        assert stage.env.metrics.value(CLAIMS_DISRUPTED, **labels) == 1
        assert stage.env.metrics.value(PODS_DISRUPTED, **labels) == 1
        assert await left(stage) == (0, 0, 0)

    on_stage(body)


def test_the_drain_keeps_disruption_budgets_of_pods() -> None:
    """Forceful is the decision, not the drain: a pod whose budget forbids its eviction stays, and the machine with it."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        pool = await stage.add_pool()
        await add_owned(stage, pool=pool, expireAfter="10m")
        await add_pod(stage, "a")
        start_kubelets(stage)
        await add_budget(stage, "keep", app="a", maxUnavailable=0)
        await stage.start(Termination(stage.env), Expiration(stage.env))
        await asyncio.sleep(3600)
        assert await staying(stage) == []
        return await left(stage)

    assert on_stage(body).value == (1, 1, 1)


def test_a_pause_holds_it_and_its_end_releases_it() -> None:
    """Nothing expires in a paused pool; once the pause is over, what is due goes at once."""

    async def body(stage: Stage) -> list[list[str]]:
        pool = await stage.add_pool(annotations={names.PAUSED_ANNOTATION: "true"})
        await add_owned(stage, pool=pool, expireAfter="10m")
        await stage.start(Expiration(stage.env))
        await asyncio.sleep(7200)
        seen = [await staying(stage)]
        await stage.admin.patch(NODE_POOL, "default", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
        await asyncio.sleep(1)
        return [*seen, await staying(stage)]

    assert on_stage(body).value == [["web-1"], []]


def test_a_pause_of_the_node_holds_it_and_its_end_releases_it() -> None:
    """The annotation on a Node keeps that one alone, from the first look of a process on; without it, it goes at once."""

    async def body(stage: Stage) -> list[list[str]]:
        pool = await stage.add_pool()
        paused = {names.PAUSED_ANNOTATION: "true"}
        await add_owned(stage, "kept", pool=pool, expireAfter="10m", annotations=paused)
        await add_owned(stage, "other", pool=pool, expireAfter="10m")
        await asyncio.sleep(660)
        await stage.start(Expiration(stage.env))
        await asyncio.sleep(7200)
        seen = [await staying(stage)]
        await stage.admin.patch(NODE, "node-of-kept", {"metadata": {"annotations": dict.fromkeys(paused)}})
        await asyncio.sleep(1)
        return [*seen, await staying(stage)]

    assert on_stage(body).value == [["kept"], []]


def test_a_pause_that_the_cache_has_not_heard_of_holds_it() -> None:
    """The Node is read afresh before its claim goes: late news of Nodes cost nobody their machine."""

    async def body(stage: Stage) -> list[str]:
        await add_owned(stage, pool=await stage.add_pool(), expireAfter="10m")
        await stage.start(Expiration(stage.env))
        born = (await stage.claim()).metadata.creation_timestamp
        assert born is not None
        await asyncio.sleep(600 - (stage.env.clock.now() - born).total_seconds() - 1)
        pause = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE, "node-of-web-1", pause)
        await asyncio.sleep(3600)
        return await staying(stage)

    assert on_stage(body, api=lambda api: LateApi(api, NODE)).value == ["web-1"]


def test_a_paused_cluster_expires_nothing() -> None:
    """With `--paused` everything stays, however old."""

    async def body(stage: Stage) -> list[str]:
        await add_owned(stage, pool=await stage.add_pool(), expireAfter="10m")
        await stage.start(Expiration(stage.env))
        await asyncio.sleep(86400)
        return await staying(stage)

    assert on_stage(body, settings=ControllerSettings(paused=True)).value == ["web-1"]


def test_claims_of_other_providers_are_left_alone() -> None:
    """Their expiry is their provider's business."""

    async def body(stage: Stage) -> list[str]:
        ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        await stage.add_claim("theirs", nodeClassRef=ref, expireAfter="10m")
        await stage.add_claim("by-hand", expireAfter="10m")
        await stage.start(Expiration(stage.env))
        await asyncio.sleep(3600)
        return await staying(stage)

    assert on_stage(body).value == ["theirs"]


def test_what_is_due_waits_without_a_write() -> None:
    """A fleet far from its age is not written to."""

    async def body(stage: Stage) -> int:
        pool = await stage.add_pool()
        for number in range(5):
            await add_owned(stage, f"web-{number}", pool=pool)
        await stage.start(Expiration(stage.env))
        await asyncio.sleep(2 * 86400)
        return stage.writes()

    assert on_stage(body).value == 0


def test_a_crash_after_any_write_ends_each_claim_once() -> None:
    """Whatever was written last, the next process goes on: no claim, Node or machine is left."""

    async def body(stage: Stage, crash_after: int) -> int:
        pool = await stage.add_pool()
        for name in ("a", "b"):
            await add_owned(stage, name, pool=pool, expireAfter="10m")
        await add_pod(stage, "app", node="node-of-a")
        start_kubelets(stage)
        first = start_process(stage, Termination, Expiration, crash_after=crash_after)
        await asyncio.sleep(660)
        if crash_after:
            assert first.dead
            start_process(stage, Termination, Expiration, name="second")
        await asyncio.sleep(120)
        assert await left(stage) == (0, 0, 0)
        return stage.writes()

    unbroken = on_stage(functools.partial(body, crash_after=0)).value
    for n in range(1, unbroken + 1):
        on_stage(functools.partial(body, crash_after=n))
