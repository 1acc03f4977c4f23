"""Broken nodes: who goes, how long nobody waits, and when the cause must lie elsewhere."""

import asyncio
import dataclasses
import datetime as dt
import functools
from typing import Any

import pytest

from growth.api import names
from growth.api.clouds import RepairPolicy
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.nodes import NODE
from growth.controllers.disrupted import CLAIMS_DISRUPTED
from growth.controllers.repair import UNHEALTHY_DISRUPTED, Repair
from growth.controllers.termination import Termination
from growth.kube.api import PatchType
from growth.kube.errors import Forbidden
from growth.kube.memory import MemoryApi
from growth.sim.ports import SimClock
from growth.units import parse_time, print_time
from tests.simulation.ending import add_budget, add_owned, add_pod, left, start_kubelets, start_process
from tests.simulation.owning import LateApi, Stage, on_stage

POLICIES = (
    RepairPolicy("Ready", "False", dt.timedelta(minutes=10)),
    RepairPolicy("Ready", "Unknown", dt.timedelta(minutes=10)),
    RepairPolicy("DiskHealthy", "False", dt.timedelta(minutes=30)),
)
ALL = {"budgets": [{"nodes": "100%"}]}


async def fleet(stage: Stage, number: int, *, pool: str = "default", **spec: Any) -> None:
    stage.cloud.repairs = POLICIES
    made = await stage.add_pool(pool, **{"disruption": ALL, **spec})
    for each in range(number):
        await add_owned(stage, f"{pool}-{each}", pool=made)


async def breaks(stage: Stage, name: str, condition: str = "Ready", status: str = "Unknown") -> None:
    now = f"{stage.env.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    told = {"type": condition, "status": status, "reason": "Test", "message": "", "lastTransitionTime": now}
    patch = {"status": {"conditions": [told]}}
    await stage.admin.patch(NODE, f"node-of-{name}", patch, subresource="status", patch_type=PatchType.STRATEGIC)


async def going(stage: Stage) -> list[str]:
    listed = (await stage.admin.list(NODE_CLAIM)).items
    return sorted(each.metadata.name for each in listed if each.metadata.deletion_timestamp is not None)


def test_a_node_that_stays_broken_goes_when_its_cloud_has_lost_patience() -> None:
    """Not before the toleration is over; then at once, with a deadline of now, an event and the counters."""

    async def body(stage: Stage) -> list[list[str]]:
        await fleet(stage, 5)
        await stage.start(Repair(stage.env))
        await asyncio.sleep(100)
        await breaks(stage, "default-1")
        await asyncio.sleep(597)
        seen = [await going(stage)]
        await asyncio.sleep(5)
        seen.append(await going(stage))
        claim = await stage.claim("default-1")
        deadline = parse_time(claim.metadata.annotations[names.TERMINATION_TIMESTAMP_ANNOTATION])
        assert deadline <= stage.env.clock.now()
        labels = {"condition": "Ready", "nodepool": "default", "capacity_type": "on-demand", "image_id": ""}
        assert stage.env.metrics.value(UNHEALTHY_DISRUPTED, **labels) == 1
        counted = {"reason": "unhealthy", "nodepool": "default", "capacity_type": "on-demand"}
        rest = {"consolidation_policy": "", "termination_mode": "graceful"}
        assert stage.env.metrics.value(CLAIMS_DISRUPTED, **counted, **rest) == 1
        told = {each.message for each in await stage.events(names.DISRUPTION_TERMINATING)}
        assert told == {"Disrupting Node: Unhealthy", "Disrupting NodeClaim: Unhealthy"}
        return seen

    assert on_stage(body).value == [[], ["default-1"]]


def test_a_clock_that_is_set_forward_breaks_no_node() -> None:
    """A node that was silent for a moment has its whole time to recover, however late our clock says it is."""

    async def body(stage: Stage) -> list[list[str]]:
        await fleet(stage, 5)
        clock = SimClock(stage.kernel)
        await stage.start(Repair(dataclasses.replace(stage.env, clock=clock)))
        await breaks(stage, "default-1")
        await asyncio.sleep(10)
        clock.jump(3600)
        await stage.admin.patch(NODE, "node-of-default-1", {"metadata": {"labels": {"changed": "true"}}})
        await asyncio.sleep(580)
        seen = [await going(stage)]
        await asyncio.sleep(20)
        return [*seen, await going(stage)]

    assert on_stage(body).value == [[], ["default-1"]]


def test_each_condition_has_its_own_patience() -> None:
    """What the cloud does not list is no reason; what it lists counts from its own transition."""

    async def body(stage: Stage) -> list[list[str]]:
        await fleet(stage, 10)
        await stage.start(Repair(stage.env))
        await breaks(stage, "default-1", "DiskHealthy", "False")
        await breaks(stage, "default-2", "DiskHealthy", "Unknown")
        await breaks(stage, "default-3", "MemoryPressure", "True")
        await asyncio.sleep(1790)
        seen = [await going(stage)]
        await asyncio.sleep(20)
        return [*seen, await going(stage)]

    assert on_stage(body).value == [[], ["default-1"]]


def test_a_node_that_recovers_in_time_stays() -> None:
    """The clock begins anew with every transition."""

    async def body(stage: Stage) -> list[str]:
        await fleet(stage, 5)
        await stage.start(Repair(stage.env))
        for _ in range(5):
            await breaks(stage, "default-1")
            await asyncio.sleep(500)
            await breaks(stage, "default-1", status="True")
            await asyncio.sleep(500)
        return await going(stage)

    assert on_stage(body).value == []


def test_more_than_a_fifth_of_a_pool_is_nobodys_fault() -> None:
    """Of ten nodes two are repaired; of three broken ones none is, and events say why, on Node, claim and pool."""

    async def body(stage: Stage, number: int) -> tuple[int, set[str]]:
        await fleet(stage, 10)
        await fleet(stage, 2, pool="other")
        await stage.start(Repair(stage.env))
        for each in range(number):
            await breaks(stage, f"default-{each}")
        await asyncio.sleep(1200)
        blocked = await stage.events(names.NODE_REPAIR_BLOCKED)
        assert all("3 of 10 nodes are unhealthy, and repair stops above 2" in each.message for each in blocked)
        return len(await going(stage)), {each.involved_object.kind for each in blocked}

    assert on_stage(functools.partial(body, number=2)).value == (2, set())
    assert on_stage(functools.partial(body, number=3)).value == (0, {"Node", "NodeClaim", "NodePool"})


def test_the_share_is_rounded_up() -> None:
    """One broken node of one, or of four, is repaired."""

    async def body(stage: Stage, size: int) -> list[str]:
        await fleet(stage, size)
        await stage.start(Repair(stage.env))
        await breaks(stage, "default-0")
        await asyncio.sleep(700)
        return await going(stage)

    for size in (1, 4):
        assert on_stage(functools.partial(body, size=size)).value == ["default-0"], size


def test_do_not_repair_spares_a_node() -> None:
    """On the Node or on the claim; taken off, the node goes within five minutes."""

    async def body(stage: Stage) -> list[list[str]]:
        await fleet(stage, 10)
        spare = {"metadata": {"annotations": {names.DO_NOT_REPAIR_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE, "node-of-default-1", spare)
        await stage.admin.patch(NODE_CLAIM, "default-2", spare)
        await stage.start(Repair(stage.env))
        for name in ("default-1", "default-2"):
            await breaks(stage, name)
        await asyncio.sleep(3600)
        seen = [await going(stage)]
        await stage.admin.patch(
            NODE_CLAIM, "default-2", {"metadata": {"annotations": {names.DO_NOT_REPAIR_ANNOTATION: None}}}
        )
        await asyncio.sleep(310)
        return [*seen, await going(stage)]

    assert on_stage(body).value == [[], ["default-2"]]


def test_budgets_for_the_reason_unhealthy_bound_it() -> None:
    """They count machines on their way out; that the node itself is not ready takes nothing off them."""

    async def body(stage: Stage, **budget: Any) -> int:
        await fleet(stage, 10, disruption={"budgets": [budget]})
        await stage.start(Repair(stage.env))
        for name in ("default-1", "default-2"):
            await breaks(stage, name)
        await asyncio.sleep(3600)
        return len(await going(stage))

    assert on_stage(functools.partial(body, nodes="0")).value == 0
    assert on_stage(functools.partial(body, nodes="1")).value == 1
    assert on_stage(functools.partial(body, nodes="10%", reasons=["Unhealthy"])).value == 1
    assert on_stage(functools.partial(body, nodes="0", reasons=["Empty", "Drifted", "Underutilized"])).value == 2


def test_nodes_that_are_being_disrupted_use_its_budget_up_and_do_not_hold_themselves_back() -> None:
    """One at a time: while a move has marked another node nothing is repaired; its own mark is no reason against it."""

    async def body(stage: Stage, marked: str) -> list[str]:
        await fleet(stage, 10, disruption={"budgets": [{"nodes": "1"}]})
        taint = {"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}
        await stage.set_taints(f"node-of-{marked}", [taint])
        await stage.start(Repair(stage.env))
        await breaks(stage, "default-1")
        await asyncio.sleep(3600)
        return await going(stage)

    assert on_stage(functools.partial(body, marked="default-2")).value == []
    assert on_stage(functools.partial(body, marked="default-1")).value == ["default-1"]


def test_its_budgets_count_what_all_budgets_count() -> None:
    """A share is of the initialised nodes, and a machine whose end has begun at the cloud uses nothing up."""

    async def tell(stage: Stage, name: str, type_: str, status: str) -> None:
        """A condition of the claim."""
        raw = await stage.admin.get(NODE_CLAIM.raw, name)
        others = [each for each in raw["status"]["conditions"] if each["type"] != type_]
        when = f"{stage.env.clock.now():%Y-%m-%dT%H:%M:%SZ}"
        told = {"type": type_, "status": status, "reason": type_, "message": "", "lastTransitionTime": when}
        await stage.admin.patch(NODE_CLAIM, name, {"status": {"conditions": [*others, told]}}, subresource="status")

    async def share(stage: Stage, starting: int) -> list[str]:
        await fleet(stage, 10, disruption={"budgets": [{"nodes": "20%"}]})
        for number in range(10 - starting, 10):
            await tell(stage, f"default-{number}", names.INITIALIZED, "False")
        await stage.start(Repair(stage.env))
        for name in ("default-1", "default-2"):
            await breaks(stage, name)
        await asyncio.sleep(3600)
        return await going(stage)

    async def ending(stage: Stage, machine: str) -> list[str]:
        await fleet(stage, 10, disruption={"budgets": [{"nodes": "1"}]})
        await tell(stage, "default-5", names.INSTANCE_TERMINATING, machine)
        await stage.admin.patch(NODE_CLAIM, "default-5", {"metadata": {"finalizers": ["example.com/held"]}})
        await stage.admin.delete(NODE_CLAIM, "default-5")
        await stage.start(Repair(stage.env))
        await breaks(stage, "default-1")
        await asyncio.sleep(3600)
        return await going(stage)

    assert len(on_stage(functools.partial(share, starting=0)).value) == 2
    assert len(on_stage(functools.partial(share, starting=5)).value) == 1
    assert on_stage(functools.partial(ending, machine="False")).value == ["default-5"]
    assert on_stage(functools.partial(ending, machine="True")).value == ["default-1", "default-5"]


def test_where_no_node_is_initialised_the_broken_one_is_its_own_share() -> None:
    """A tenth of nothing would keep a machine for ever that never came up."""

    async def body(stage: Stage) -> list[str]:
        await fleet(stage, 1, disruption={"budgets": [{"nodes": "10%"}]})
        await stage.admin.patch(NODE_CLAIM, "default-0", {"status": {"conditions": []}}, subresource="status")
        await stage.start(Repair(stage.env))
        await breaks(stage, "default-0")
        await asyncio.sleep(3600)
        return await going(stage)

    assert on_stage(body).value == ["default-0"]


def test_a_pause_holds_it() -> None:
    """Nothing is repaired in a paused pool."""

    async def body(stage: Stage) -> list[list[str]]:
        await fleet(stage, 5)
        pause: Any = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE_POOL, "default", pause)
        await stage.start(Repair(stage.env))
        await breaks(stage, "default-1")
        await asyncio.sleep(3600)
        seen = [await going(stage)]
        pause["metadata"]["annotations"][names.PAUSED_ANNOTATION] = None
        await stage.admin.patch(NODE_POOL, "default", pause)
        await asyncio.sleep(310)
        return [*seen, await going(stage)]

    assert on_stage(body).value == [[], ["default-1"]]


def test_a_pause_of_the_node_holds_it_even_if_the_cache_has_not_heard_of_it() -> None:
    """The Node is read afresh before its claim goes; nothing is written to it or to its claim."""

    async def body(stage: Stage) -> tuple[list[str], int]:
        await fleet(stage, 5)
        await stage.start(Repair(stage.env))
        await breaks(stage, "default-1")
        await asyncio.sleep(595)
        pause = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE, "node-of-default-1", pause)
        await asyncio.sleep(3600)
        return await going(stage), stage.writes()

    assert on_stage(body, api=lambda api: LateApi(api, NODE)).value == ([], 0)


def test_a_claim_that_is_spared_before_the_cache_has_heard_of_it_keeps_no_deadline() -> None:
    """Otherwise its pods would be killed at once whenever it goes for another reason."""

    async def body(stage: Stage) -> tuple[list[str], bool]:
        await fleet(stage, 5)
        await stage.start(Repair(stage.env))
        await breaks(stage, "default-1")
        await asyncio.sleep(599)
        spare = {"metadata": {"annotations": {names.DO_NOT_REPAIR_ANNOTATION: "true"}}}
        await stage.admin.patch(NODE_CLAIM, "default-1", spare)
        await asyncio.sleep(3600)
        held = (await stage.claim("default-1")).metadata.annotations
        return await going(stage), names.TERMINATION_TIMESTAMP_ANNOTATION in held

    assert on_stage(body, api=lambda api: LateApi(api, NODE_CLAIM)).value == ([], False)


def test_a_claim_whose_deadline_was_taken_off_at_once_does_not_go_without_one() -> None:
    """Another process holds the repair back in that moment: without the deadline the drain might never end. Later it goes with
    one.
    """

    class Overtaken(MemoryApi):
        times = 0

        async def patch(self, kind: Any, name: str, patch: Any, **how: Any) -> Any:
            found = await super().patch(kind, name, patch, **how)
            deadline = patch.get("metadata", {}).get("annotations", {}).get(names.TERMINATION_TIMESTAMP_ANNOTATION)
            if deadline is not None and not self.times:
                self.times += 1
                annotations = {names.TERMINATION_TIMESTAMP_ANNOTATION: None}
                await super().patch(kind, name, {"metadata": {"annotations": annotations}})
            return found

    async def body(stage: Stage) -> tuple[list[str], list[str], bool]:
        await fleet(stage, 5)
        await stage.start(Repair(stage.env))
        await breaks(stage, "default-1")
        await asyncio.sleep(620)
        before = await going(stage)
        await asyncio.sleep(300)
        held = (await stage.claim("default-1")).metadata.annotations
        return before, await going(stage), names.TERMINATION_TIMESTAMP_ANNOTATION in held

    found = on_stage(body, api=lambda api: Overtaken(api._server, user="growth")).value
    assert found == ([], ["default-1"], True)


def test_nothing_on_a_broken_node_holds_its_end_up() -> None:
    """Past the deadline neither a disruption budget nor do-not-disrupt keeps a pod there."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        await fleet(stage, 1)
        await add_pod(stage, "a", node="node-of-default-0")
        await add_pod(stage, "b", node="node-of-default-0", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        start_kubelets(stage)
        await add_budget(stage, "keep", app="a", maxUnavailable=0)
        await stage.start(Termination(stage.env), Repair(stage.env))
        await breaks(stage, "default-0", "DiskHealthy", "False")
        await asyncio.sleep(1860)
        return await left(stage)

    assert on_stage(body).value == (0, 0, 0)


def test_a_deadline_that_a_crash_left_is_taken_back_from_a_node_that_recovered() -> None:
    """Otherwise its pods would be killed at once whenever it goes for another reason."""

    async def body(stage: Stage) -> None:
        await fleet(stage, 5)
        first = start_process(stage, Repair, crash_after=1)
        await breaks(stage, "default-1")
        await asyncio.sleep(620)
        assert first.dead
        assert names.TERMINATION_TIMESTAMP_ANNOTATION in (await stage.claim("default-1")).metadata.annotations
        assert await going(stage) == []
        await breaks(stage, "default-1", status="True")
        start_process(stage, Repair, name="second")
        await asyncio.sleep(60)
        assert names.TERMINATION_TIMESTAMP_ANNOTATION not in (await stage.claim("default-1")).metadata.annotations

    on_stage(body)


@pytest.mark.parametrize("why", ["spared", "paused", "budget", "many"])
def test_a_deadline_that_a_crash_left_is_taken_back_from_a_node_that_is_not_to_be_repaired_any_more(why: str) -> None:
    """It is broken yet, but its pods may run; they would be killed at once whenever it goes for another reason."""

    async def hold(stage: Stage) -> None:
        if why == "budget":
            await stage.admin.patch(NODE_POOL, "default", {"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}})
        elif why == "many":
            await breaks(stage, "default-2")
        else:
            key = names.DO_NOT_REPAIR_ANNOTATION if why == "spared" else names.PAUSED_ANNOTATION
            await stage.admin.patch(NODE, "node-of-default-1", {"metadata": {"annotations": {key: "true"}}})

    async def body(stage: Stage) -> None:
        await fleet(stage, 5)
        first = start_process(stage, Repair, crash_after=1)
        await breaks(stage, "default-1")
        await asyncio.sleep(620)
        assert first.dead
        assert names.TERMINATION_TIMESTAMP_ANNOTATION in (await stage.claim("default-1")).metadata.annotations
        await hold(stage)
        start_process(stage, Repair, name="second")
        await asyncio.sleep(60)
        assert await going(stage) == []
        assert names.TERMINATION_TIMESTAMP_ANNOTATION not in (await stage.claim("default-1")).metadata.annotations

    on_stage(body)


@pytest.mark.parametrize("why", ["budget", "many"])
def test_that_a_repair_is_held_back_is_told_though_its_deadline_cannot_be_taken_off(why: str) -> None:
    """A crash left the deadline, and the server lets nobody change the claim: Node, claim and pool say what holds it back."""

    class Denying(MemoryApi):
        async def patch(self, kind: Any, name: str, patch: Any, **how: Any) -> Any:
            if kind.kind == NODE_CLAIM.kind:
                raise Forbidden("claims are not to be changed")
            return await super().patch(kind, name, patch, **how)

    async def body(stage: Stage) -> set[str]:
        await fleet(stage, 5, disruption={"budgets": [{"nodes": "0"}]} if why == "budget" else ALL)
        deadline = {names.TERMINATION_TIMESTAMP_ANNOTATION: print_time(stage.env.clock.now())}
        await stage.admin.patch(NODE_CLAIM, "default-1", {"metadata": {"annotations": deadline}})
        await stage.start(Repair(stage.env))
        await breaks(stage, "default-1")
        if why == "many":
            await breaks(stage, "default-2")
        await asyncio.sleep(700)
        told = await stage.events(names.NODE_REPAIR_BLOCKED)
        return {f"{each.involved_object.kind} {each.involved_object.name}" for each in told}

    found = on_stage(body, api=lambda api: Denying(api._server, user="growth")).value
    assert found >= {"Node node-of-default-1", "NodeClaim default-1", "NodePool default"}


def test_a_crash_after_any_write_repairs_once() -> None:
    """Whatever was written last, the broken machine goes and the others stay."""

    async def body(stage: Stage, crash_after: int) -> int:
        await fleet(stage, 5)
        start_kubelets(stage)
        first = start_process(stage, Termination, Repair, crash_after=crash_after)
        await breaks(stage, "default-1", "DiskHealthy", "False")
        await asyncio.sleep(1900)
        if crash_after:
            assert first.dead
            start_process(stage, Termination, Repair, name="second")
        await asyncio.sleep(120)
        assert await left(stage) == (4, 4, 4)
        return stage.writes()

    unbroken = on_stage(functools.partial(body, crash_after=0)).value
    for n in range(1, unbroken + 1):
        on_stage(functools.partial(body, crash_after=n))
