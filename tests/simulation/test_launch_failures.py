"""What becomes of claims that the cloud does not give a machine, one kind of refusal after the other."""

import asyncio

import pytest

from growth.api import names
from growth.api.clouds import (
    CloudError,
    CloudUnavailable,
    CreateError,
    InsufficientCapacity,
    InvariantViolation,
    NodeClassNotReady,
    QuotaExceeded,
)
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.controllers.catalogue import CatalogueReader
from growth.controllers.disrupted import CLAIMS_DISRUPTED
from growth.controllers.lifecycle import Lifecycle
from growth.controllers.settings import ControllerSettings
from tests.simulation.owning import LateApi, Stage, condition, on_stage, told


def disruptions(stage: Stage, reason: str, *, capacity_type: str = "") -> float:
    return stage.env.metrics.value(
        CLAIMS_DISRUPTED,
        reason=reason,
        nodepool="default",
        capacity_type=capacity_type,
        consolidation_policy="",
        termination_mode="graceful",
    )


@pytest.mark.parametrize(
    ("error", "event", "word"),
    [
        (InsufficientCapacity("no stock anywhere"), "InsufficientCapacityError", "insufficient_capacity"),
        (NodeClassNotReady("KWOKNodeClass default is not ready"), "NodeClassNotReady", "nodeclass_not_ready"),
        (
            CreateError("the image does not exist", reason="ImageNotFound", retryable=False),
            "ImageNotFound",
            "launch_failed",
        ),
    ],
)
def test_a_claim_that_cannot_be_had_goes_at_once(error: CloudError, event: str, word: str) -> None:
    """No stock, no class, no sense in trying: the claim is deleted after one try, with an event and a count."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        pool = await stage.add_pool()
        stage.cloud.failures.append(error)
        await stage.add_claim(pool=pool)
        await asyncio.sleep(2)
        assert not await stage.has_claim()
        assert stage.cloud.calls["create"] == 1
        (seen,) = await stage.events(event)
        assert (seen.type, seen.involved_object.name, str(error) in seen.message) == ("Warning", "web-1", True)
        assert disruptions(stage, word) == 1

    on_stage(body)


def test_a_purchase_that_goes_on_with_other_offerings_is_not_made_to_wait() -> None:
    """Twenty attempts that each got further need twenty seconds, and the claim is not given up meanwhile."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        pool = await stage.add_pool()
        stage.cloud.failures += [CreateError("the next are tried", reason="InsufficientCapacity", seconds=1.0)] * 20
        await stage.add_claim(pool=pool)
        await asyncio.sleep(30)
        assert stage.cloud.calls["create"] == 21
        assert told(await stage.claim())["Launched"] == "True"

    on_stage(body)


def test_after_a_stock_out_the_catalogue_is_read_at_once() -> None:
    """The next plan must not ask for what was just refused."""

    async def body(stage: Stage) -> int:
        catalogue = CatalogueReader(stage.env)
        await stage.start(catalogue, Lifecycle(stage.env, catalogue=catalogue))
        await asyncio.sleep(1)
        stage.cloud.failures.append(InsufficientCapacity("none"))
        await stage.add_claim()
        await asyncio.sleep(1)
        return stage.cloud.calls["catalogue"]

    assert on_stage(body).value == 2


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (CreateError("rate limited", reason="RateLimited"), "RateLimited"),
        (CreateError("odd", reason="not a reason!"), "LaunchFailed"),
        (CloudUnavailable("timeout"), "LaunchFailed"),
        (QuotaExceeded("10 servers are allowed"), "QuotaExceeded"),
    ],
)
def test_a_launch_that_may_work_later_is_tried_again(error: CloudError, reason: str) -> None:
    """Launched is Unknown with the reason, written once; when the cloud recovers the claim is launched."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        stage.cloud.failures = [error, error]
        await stage.add_claim()
        await asyncio.sleep(0.5)
        launched = condition(await stage.claim(), names.LAUNCHED)
        assert (launched.status, launched.reason, launched.message) == ("Unknown", reason, str(error))
        await asyncio.sleep(200)
        assert told(await stage.claim())["Launched"] == "True"
        assert stage.cloud.calls["create"] == 3
        assert stage.writes() == 3, "one for the reason, two for the launch"

    on_stage(body)


def test_a_launch_is_tried_less_and_less_often() -> None:
    """A cloud that is down is not asked in a hot loop: about ten times in five minutes."""

    async def body(stage: Stage) -> int:
        await stage.start(Lifecycle(stage.env))
        stage.cloud.always = CloudUnavailable("down")
        await stage.add_claim()
        await asyncio.sleep(299)
        return stage.cloud.calls["create"]

    assert 5 <= on_stage(body).value <= 12


def test_a_contradiction_buys_and_deletes_nothing() -> None:
    """InvariantViolation: Launched is False, the claim stays past every time limit, and is tried slowly until resolved."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        stage.cloud.always = InvariantViolation("two machines carry the name web-1")
        await stage.add_claim()
        await stage.add_claim("web-2")
        await asyncio.sleep(3600)
        launched = condition(await stage.claim(), names.LAUNCHED)
        assert (launched.status, launched.reason) == ("False", "InvariantViolation")
        assert told(await stage.claim())["Ready"] == "False UnhealthyDependents"
        assert stage.cloud.calls["create"] <= 2 * 13
        assert await stage.events(names.INVARIANT_VIOLATION)
        stage.cloud.always = None
        await asyncio.sleep(301)
        assert told(await stage.claim())["Launched"] == "True"

    on_stage(body)


@pytest.mark.parametrize(
    "error",
    [
        CreateError("the image does not exist", reason="ImageNotFound", retryable=False),
        NodeClassNotReady("KWOKNodeClass default is not ready"),
        InsufficientCapacity("none of the 0 offerings that it allows"),
    ],
)
def test_claims_refused_for_good_do_not_follow_each_other_in_a_hot_loop(error: CloudError) -> None:
    """A pool whose every claim is refused for good gets to make a new one less and less often.

    No stock is among it where the claim allows nothing that is sold, so that nothing can be left out of plans.
    """

    async def body(stage: Stage) -> int:
        catalogue = CatalogueReader(stage.env)
        await stage.start(catalogue, Lifecycle(stage.env, catalogue=catalogue))
        pool = await stage.add_pool()
        nothing = [{"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": ["not-sold"]}]
        stage.cloud.always = error
        for round_ in range(600):
            names_ = [claim.metadata.name for claim in (await stage.admin.list(NODE_CLAIM)).items]
            for name in names_:
                claim = await stage.claim(name)
                if claim.metadata.deletion_timestamp is not None:
                    await stage.admin.patch(NODE_CLAIM, name, {"metadata": {"finalizers": None}})
            if not names_:
                await stage.add_claim(f"web-{round_}", pool=pool, requirements=nothing)
            await asyncio.sleep(1)
        return stage.cloud.calls["create"]

    assert on_stage(body).value <= 10


def test_a_bug_in_a_provider_harms_its_claim_only() -> None:
    """An exception that no provider may raise is survived; other claims are launched meanwhile."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        stage.cloud.failures.append(KeyError("surprise"))
        await stage.add_claim("web-1")
        await stage.add_claim("web-2")
        await asyncio.sleep(30)
        assert told(await stage.claim("web-1"))["Launched"] == "True"
        assert told(await stage.claim("web-2"))["Launched"] == "True"

    on_stage(body)


def test_one_slow_launch_holds_up_nobody() -> None:
    """While a cloud call takes minutes, a hundred other claims are launched and registered."""

    async def body(stage: Stage) -> int:
        await stage.start(Lifecycle(stage.env))
        stage.cloud.delays["slow"] = 120
        await stage.add_claim("slow")
        for number in range(100):
            await stage.add_claim(f"web-{number}")
        await asyncio.sleep(5)
        claims = (await stage.admin.list(NODE_CLAIM)).items
        return sum(told(claim).get("Launched") == "True" for claim in claims)

    assert on_stage(body).value == 100


def test_a_claim_made_by_hand_gets_its_finalizer_before_its_machine() -> None:
    """A machine is bought only for a claim that cannot vanish without giving it back."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        stage.cloud.delays["web-1"] = 10
        await stage.add_claim(finalizers=())
        await asyncio.sleep(1)
        assert (await stage.claim()).metadata.finalizers == (names.TERMINATION_FINALIZER,)
        assert stage.cloud.machines == {}
        await asyncio.sleep(20)
        assert len(stage.cloud.machines) == 1

    on_stage(body)


def test_a_claim_made_by_hand_is_launched_whatever_its_pool_allows() -> None:
    """Limits are kept by those who plan; whoever makes a claim has decided."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        pool = await stage.add_pool(limits={"nodes": "1"})
        for name in ("web-1", "web-2"):
            await stage.add_claim(name, pool=pool, finalizers=())
        await stage.add_claim("of-no-pool", finalizers=())
        await asyncio.sleep(10)
        assert len(stage.cloud.machines) == 3

    on_stage(body)


@pytest.mark.parametrize("where", ["pool", "cluster"])
def test_nothing_is_bought_while_paused(where: str) -> None:
    """Paused by the pool's annotation or by the setting, claims wait; unpaused, they go on."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        paused = {names.PAUSED_ANNOTATION: "true"} if where == "pool" else {}
        pool = await stage.add_pool(annotations=paused)
        await stage.add_claim(pool=pool)
        await asyncio.sleep(60)
        assert stage.cloud.calls["create"] == 0
        assert stage.writes() == 0
        if where == "pool":
            await stage.admin.patch(
                NODE_POOL, "default", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}}
            )
            await asyncio.sleep(1)
            assert stage.cloud.calls["create"] == 1

    on_stage(body, settings=ControllerSettings(paused=where == "cluster"))


def test_no_machine_is_bought_for_a_pool_that_is_gone() -> None:
    """A claim whose owner is going is about to be collected: it is not launched, and given up if nobody collects it."""

    async def body(stage: Stage) -> None:
        lifecycle = Lifecycle(stage.env)
        pool = await stage.add_pool(annotations={names.PAUSED_ANNOTATION: "true"})
        await stage.start(lifecycle)
        await stage.admin.patch(NODE_POOL, "default", {"metadata": {"finalizers": ["example.com/hold"]}})
        await stage.add_claim(pool=pool)
        await stage.admin.delete(NODE_POOL, "default")
        await stage.admin.patch(NODE_POOL, "default", {"metadata": {"annotations": None}})
        await asyncio.sleep(290)
        assert await stage.has_claim()
        await asyncio.sleep(60)
        assert not await stage.has_claim()
        assert stage.cloud.calls["create"] == 0

    on_stage(body)


def test_secrets_in_a_cloud_s_answer_reach_neither_condition_nor_event() -> None:
    """What a provider's message should not have held is cut out before people see it."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        stage.cloud.always = CloudUnavailable("refused: Authorization: Bearer abcdef0123456789 was wrong")
        await stage.add_claim()
        await asyncio.sleep(1)
        texts = [
            condition(await stage.claim(), names.LAUNCHED).message,
            *(each.message for each in await stage.events()),
        ]
        assert len(texts) == 2
        assert not any("abcdef" in text for text in texts)

    on_stage(body)


@pytest.mark.parametrize(
    ("answer", "waits"), [(CloudUnavailable("timeout"), True), (CreateError("no", retryable=True), False)]
)
def test_a_purchase_without_an_answer_is_waited_for_before_its_claim_goes(answer: CloudError, *, waits: bool) -> None:
    """Its machine may come yet, whatever is answered to the next purchase, until it is known."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        stage.cloud.always = answer
        claim = await stage.add_claim()
        await asyncio.sleep(1)
        over = stage.env.launches.over_at(claim.metadata.uid)
        assert (over > stage.env.clock.monotonic()) == waits
        stage.cloud.always = CreateError("no", retryable=True)
        await asyncio.sleep(30)
        assert stage.env.launches.over_at(claim.metadata.uid) == over
        stage.cloud.always = None
        await asyncio.sleep(60)
        assert (await stage.claim()).status.provider_id
        assert stage.env.launches.over_at(claim.metadata.uid) < 0

    on_stage(body)


def test_a_claim_deleted_while_its_machine_is_made_still_learns_of_it() -> None:
    """Whoever ends the claim must know that a machine is on its way, and then which one it is."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        stage.cloud.delays["web-1"] = 10
        claim = await stage.add_claim()
        await asyncio.sleep(1)
        assert stage.env.launches.under_way == {claim.metadata.uid}
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(5)
        assert stage.env.launches.under_way == {claim.metadata.uid}
        await asyncio.sleep(5)
        assert stage.env.launches.under_way == set()
        assert (await stage.claim()).status.provider_id == "scripted://web-1"

    on_stage(body)


def test_no_machine_is_bought_for_a_claim_that_the_watch_does_not_know_to_be_deleted() -> None:
    """The last look before buying is at the server, not at the cache."""

    async def body(stage: Stage) -> None:
        await stage.start(Lifecycle(stage.env))
        await asyncio.sleep(1)
        await stage.add_claim()
        await asyncio.sleep(5)
        await stage.admin.delete(NODE_CLAIM, "web-1")
        await asyncio.sleep(60)
        assert stage.cloud.calls["create"] == 0

    on_stage(body, api=LateApi)
