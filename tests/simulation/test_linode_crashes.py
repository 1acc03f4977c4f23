"""The LKE provider crashed after each of its requests: after a restart and a collection, machines are claims."""

import asyncio

import pytest

from growth.api import names
from growth.api.clouds import CloudMachine, CloudUnavailable, CreateError, MachineNotFound
from growth.api.karpenter import NodeClaim
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode import Faults
from tests.conformance.providers.stages import LkeStage, claim, on
from tests.simulation.crashing import Crashing, crashed

TIERS = ("lke", "lke-enterprise")
# More than any of these takes.
MOST_REQUESTS = 60


def wanted_of(stage: LkeStage, name: str, pool: str = "web") -> NodeClaim:
    return claim(stage, name, labels={names.NODE_POOL_LABEL: pool})


async def made(provider: LinodeProvider, wanted: NodeClaim) -> CloudMachine:
    for _ in range(60):
        try:
            return await provider.create(wanted)
        except (CreateError, CloudUnavailable):
            await asyncio.sleep(5)
    raise AssertionError("no machine")


async def gone(provider: LinodeProvider, which: NodeClaim) -> None:
    for _ in range(200):
        try:
            await provider.delete(which)
        except MachineNotFound:
            return
        except CloudUnavailable:
            pass
        await asyncio.sleep(5)
    raise AssertionError("it is still there")


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("pool", ["new", "old"])
@pytest.mark.parametrize("faults", [Faults(), Faults(late_tags=1.0)], ids=["lists", "late-lists"])
def test_a_purchase_that_crashes_after_any_request_is_made_once(tier: str, pool: str, faults: Faults) -> None:
    """Its pool made, or grown, or the machine tagged and nobody told: the same claim gets one machine, and no other is left."""

    async def body(stage: LkeStage) -> int:
        stage.fake.faults = faults
        expected = []
        if pool == "old":
            await made(stage.provider(), wanted_of(stage, "first"))
            expected.append("uid-of-first")
        for after in range(1, MOST_REQUESTS):
            wanted = wanted_of(stage, f"one-{after}", "web" if pool == "old" else f"web-{after}")
            cloud = Crashing(stage.fake, after)
            died = await crashed(made(stage.provider(through=cloud), wanted), cloud)
            await made(stage.provider(), wanted)
            expected.append(wanted.metadata.uid)
            assert stage.unclaimed() == 0
            assert len(stage.fake.ledger.purchases) == len(expected)
            if not died:
                assert await stage.held() == sorted(expected)
                return after
        raise AssertionError("it never ended")

    assert on(tier, body) > 8  # or it crashed nowhere


@pytest.mark.parametrize("tier", TIERS)
def test_a_deletion_that_crashes_after_any_request_ends_one_machine(tier: str) -> None:
    """Of two nodes of a pool, and of the last one, which takes the pool along."""

    async def body(stage: LkeStage) -> int:
        await made(stage.provider(), wanted_of(stage, "stays"))
        for after in range(1, MOST_REQUESTS):
            first, last = wanted_of(stage, f"one-{after}"), wanted_of(stage, f"two-{after}", f"web-{after}")
            died = False
            for each in (first, last):
                await made(stage.provider(), each)
                cloud = Crashing(stage.fake, after)
                died |= await crashed(gone(stage.provider(through=cloud), each), cloud)
                await gone(stage.provider(), each)
            assert await stage.held() == ["uid-of-stays"]
            assert len(stage.fake.account.pools) == 1
            if not died:
                return after
        raise AssertionError("it never ended")

    assert on(tier, body) > 6


@pytest.mark.parametrize("tier", TIERS)
def test_a_collection_that_crashes_after_any_request_takes_only_what_nobody_has(tier: str) -> None:
    """Two nodes that nobody claimed, in a pool with one that somebody has, and a pool of which nobody has anything."""

    async def body(stage: LkeStage) -> int:
        keeper = stage.provider()
        await made(keeper, wanted_of(stage, "stays"))
        for after in range(1, MOST_REQUESTS):
            (used,) = stage.fake.account.pools.values()
            stage.fake.account.scale(used, 3)
            cloud = Crashing(stage.fake, MOST_REQUESTS)
            other = stage.provider(through=cloud)
            task = asyncio.ensure_future(other.create(wanted_of(stage, f"lost-{after}", "lost")))
            await asyncio.sleep(2.5)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.sleep(400)
            assert stage.unclaimed() in {2, 3}
            cloud = Crashing(stage.fake, after)
            died = await crashed(stage.provider(through=cloud).collect(), cloud)
            for _ in range(3):
                await keeper.collect()
                await asyncio.sleep(30)
            assert stage.unclaimed() == 0
            assert await stage.held() == ["uid-of-stays"]
            assert len(stage.fake.account.pools) == 1
            if not died:
                return after
        raise AssertionError("it never ended")

    assert on(tier, body) > 6
