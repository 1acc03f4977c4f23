"""Claims that do not get to be nodes in time, and Nodes that are nobody's."""

import asyncio
import dataclasses

import pytest

from growth.api import names
from growth.api.clouds import CloudUnavailable
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.nodes import NODE
from growth.api.pools import PoolRef
from growth.controllers.health import RegistrationHealth, Verdict
from growth.controllers.lifecycle import Lifecycle
from growth.controllers.settings import ControllerSettings
from growth.sim.ports import SimClock
from tests.simulation.owning import UNREGISTERED, BlindApi, Stage, on_stage, told
from tests.simulation.test_launch_failures import disruptions

POOL = PoolRef.karpenter("default")


def test_a_claim_that_cannot_be_launched_is_given_up_after_five_minutes() -> None:
    """With an event, a count, and a failure in the pool's health that carries the cloud's reason."""

    async def body(stage: Stage) -> None:
        health = RegistrationHealth()
        await stage.start(Lifecycle(stage.env, health=health))
        pool = await stage.add_pool()
        stage.cloud.always = CloudUnavailable("the cloud is down")
        for name in ("web-1", "web-2"):
            await stage.add_claim(name, pool=pool)
        await asyncio.sleep(298)
        assert await stage.has_claim()
        await asyncio.sleep(100)
        assert not await stage.has_claim()
        assert disruptions(stage, "launch_timeout") == 2
        event = (await stage.events(names.LAUNCH_TIMEOUT))[0]
        assert "300 s: the cloud is down" in event.message
        assert health.verdict(POOL) == Verdict(False, "LaunchFailed", "the cloud is down")

    on_stage(body)


def test_a_machine_that_never_registers_is_given_up_after_a_quarter_of_an_hour() -> None:
    """Counted from the launch; a machine that registers in time is not."""

    async def body(stage: Stage) -> None:
        health = RegistrationHealth()
        await stage.start(Lifecycle(stage.env, health=health))
        pool = await stage.add_pool()
        stage.cloud.delays["web-1"] = 100
        await stage.add_claim("web-1", pool=pool)
        await stage.add_claim("web-2", pool=pool)
        await asyncio.sleep(850)
        await stage.join("node-2", provider_id="scripted://web-2")
        await asyncio.sleep(140)
        assert await stage.has_claim("web-1")
        await asyncio.sleep(30)
        assert not await stage.has_claim("web-1")
        assert await stage.has_claim("web-2")
        assert disruptions(stage, "registration_timeout", capacity_type="on-demand") == 1
        assert await stage.events(names.REGISTRATION_TIMEOUT)
        assert health.verdict(POOL) == Verdict(True), "one of two failed"

    on_stage(body)


def test_a_clock_that_is_set_forward_takes_no_time_from_a_machine() -> None:
    """Nobody is given up for it, neither while it is launched nor while it registers; both go when their time is over."""

    async def body(stage: Stage) -> list[tuple[bool, bool]]:
        clock = SimClock(stage.kernel)
        await stage.start(Lifecycle(dataclasses.replace(stage.env, clock=clock)))
        await stage.add_claim("web-1")
        await asyncio.sleep(10)
        stage.cloud.always = CloudUnavailable("the cloud is down")
        await stage.add_claim("web-2")
        await asyncio.sleep(10)
        clock.jump(3600)
        await stage.admin.patch(NODE_CLAIM, "web-1", {"metadata": {"labels": {"looked": "at"}}})
        seen = []
        for seconds in (250, 110, 500, 60):
            await asyncio.sleep(seconds)
            seen.append((await stage.has_claim("web-1"), await stage.has_claim("web-2")))
        return seen

    assert on_stage(body).value == [(True, True), (True, False), (True, False), (False, False)]


def test_a_clock_that_was_ahead_gives_a_machine_no_time_either() -> None:
    """A launch that was dated by a clock which is set back afterwards: the machine has its quarter of an hour from then."""

    async def body(stage: Stage) -> list[bool]:
        clock = SimClock(stage.kernel, skew_seconds=3600)
        await stage.start(Lifecycle(dataclasses.replace(stage.env, clock=clock)))
        await stage.add_claim("web-1")
        await asyncio.sleep(10)
        clock.jump(-3600)
        seen = []
        for seconds in (880, 60):
            await asyncio.sleep(seconds)
            await stage.admin.patch(NODE_CLAIM, "web-1", {"metadata": {"labels": {"looked": f"at-{seconds}"}}})
            await asyncio.sleep(5)
            seen.append(await stage.has_claim("web-1"))
        return seen

    assert on_stage(body).value == [True, False]


def test_a_node_that_never_becomes_usable_is_given_up_after_a_quarter_of_an_hour() -> None:
    """Counted from the registration; deleting goes through the claim, so that what runs there is drained."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim(startupTaints=[{"key": "example.com/cni", "effect": "NoExecute"}])
        await asyncio.sleep(100)
        await stage.join()
        await asyncio.sleep(890)
        assert await stage.has_claim()
        await asyncio.sleep(20)
        assert not await stage.has_claim()
        assert (await stage.node()).metadata.deletion_timestamp is None
        (event,) = await stage.events(names.INITIALIZATION_TIMEOUT)
        assert event.involved_object.name == "web-1"

    on_stage(body)


def test_an_initialised_node_is_not_the_lifecycles_business_any_more() -> None:
    """A node that turns unready later is neither told of in Initialized nor given up."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(1)
        await stage.join()
        await asyncio.sleep(1)
        await stage.set_ready(status="False")
        before = stage.writes()
        await asyncio.sleep(7200)
        assert await stage.has_claim()
        assert told(await stage.claim())["Initialized"] == "True"
        assert stage.writes() == before

    on_stage(body)


@pytest.mark.parametrize("where", ["pool", "node", "cluster"])
def test_nobody_is_given_up_while_paused(where: str) -> None:
    """A node that does not become usable stays while its pool, itself or the cluster is paused."""

    async def body(stage: Stage) -> None:
        lifecycle = Lifecycle(stage.env)
        pool = await stage.add_pool()
        if where == "cluster":
            claim = await stage.add_claim(pool=pool)
            since = {"reason": "Done", "message": "", "lastTransitionTime": "2030-01-07T08:00:00Z"}
            status = {
                "conditions": [{"type": each, "status": "True", **since} for each in ("Launched", "Registered")],
                "providerID": "scripted://web-1",
                "nodeName": "node-1",
            }
            patch = {"status": status}
            await stage.admin.patch(NODE_CLAIM, claim.metadata.name, patch, subresource="status")
            await stage.join(ready=False, labels={names.REGISTERED_LABEL: "true"})
            await stage.start(lifecycle)
        else:
            await stage.start(lifecycle)
            await stage.add_claim(pool=pool)
            await asyncio.sleep(1)
            await stage.join(ready=False)
        await asyncio.sleep(1)
        paused = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "true"}}}
        if where == "node":
            await stage.admin.patch(NODE, "node-1", paused)
        if where == "pool":
            await stage.admin.patch(NODE_POOL, "default", paused)
        await asyncio.sleep(7200)
        assert await stage.has_claim()

    on_stage(body, settings=ControllerSettings(paused=where == "cluster"))


def test_nobody_is_given_up_while_nodes_cannot_be_seen() -> None:
    """A Node may have registered while the watch was broken: unknown is not «not there»."""

    async def body(stage: Stage) -> None:
        api = stage.env.api
        assert isinstance(api, BlindApi)
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(800)
        api.blind.append(NODE)
        stage.server.cut_watches()
        await asyncio.sleep(60)
        await stage.join()
        await asyncio.sleep(600)
        assert await stage.has_claim()
        api.blind.clear()
        await asyncio.sleep(60)
        assert told(await stage.claim())["Ready"] == "True"

    on_stage(body, api=BlindApi)


def test_a_claim_that_was_deleted_is_left_to_its_end() -> None:
    """Once deleted, a claim is not launched, registered or told about any more."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(1)
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(1)
        before = stage.writes()
        await stage.join()
        await asyncio.sleep(7200)
        assert stage.writes() == before
        assert (await stage.node()).metadata.finalizers == ()

    on_stage(body)


def test_a_node_with_our_marks_and_no_claim_is_told_of_and_left_alone() -> None:
    """One event on the Node after two minutes, whether its provider ID is missing or nobody's; no write on it."""

    async def body(stage: Stage) -> dict[str, list[str]]:
        await stage.start(Lifecycle(stage.env))
        pool_label = {names.NODE_POOL_LABEL: "default"}
        await stage.join("no-id", provider_id="", taints=[UNREGISTERED])
        await stage.join("foreign", provider_id="other://1", labels=pool_label, taints=())
        await stage.join("control-plane", provider_id="", taints=())
        await stage.join("plain", provider_id="other://2", taints=())
        await asyncio.sleep(60)
        assert await stage.events() == []
        await stage.add_claim()
        for _ in range(100):
            await stage.set_ready("foreign")
            await asyncio.sleep(60)
        assert told(await stage.claim())["Launched"] == "True", "everything else goes on"
        seen: dict[str, list[str]] = {}
        for event in await stage.events():
            if event.involved_object.kind == "Node":
                seen.setdefault(event.involved_object.name, []).append(event.reason)
        return seen

    assert on_stage(body).value == {"no-id": ["ProviderIDMissing"], "foreign": ["NodeClaimNotFound"]}


def test_a_node_whose_provider_id_comes_late_is_no_stranger() -> None:
    """A cloud's controller sets the provider ID after the kubelet registered: then the claim takes the Node."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        await stage.add_claim()
        await asyncio.sleep(1)
        await stage.join(provider_id="")
        await asyncio.sleep(60)
        await stage.admin.patch(NODE, "node-1", {"spec": {"providerID": "scripted://web-1"}})
        await asyncio.sleep(300)
        assert told(await stage.claim())["Ready"] == "True"
        assert await stage.events() == []

    on_stage(body)


def test_two_failures_among_the_last_four_make_a_pool_unhealthy() -> None:
    """Older outcomes are forgotten; nothing is known of a pool without any."""
    health = RegistrationHealth()
    verdicts = []
    for ok in (False, True, False, True, True, True):
        health.record(POOL, ok=ok, reason="r")
        verdict = health.verdict(POOL)
        verdicts.append(verdict is not None and verdict.healthy)
    assert verdicts == [True, True, False, False, True, True]
    assert RegistrationHealth().verdict(POOL) is None


def test_what_an_earlier_process_found_outlives_one_success() -> None:
    """An unhealthy pool stays so until its failures have left the last four."""
    health = RegistrationHealth()
    health.assume(POOL, Verdict(False, "r", "m"))
    verdicts = []
    for _ in range(3):
        health.record(POOL, ok=True)
        verdict = health.verdict(POOL)
        verdicts.append(verdict is not None and verdict.healthy)
    assert verdicts == [False, False, True]
