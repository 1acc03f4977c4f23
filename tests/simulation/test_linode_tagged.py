"""Machines that have the tag of a claim and little else: written by hand, or left by somebody who took the other tags off.

The tag `karpenter.sh/nodeclaim` alone says whose a machine is.
"""

import asyncio

import pytest

from growth.api.clouds import InvariantViolation
from growth.api.karpenter import NodeClaim
from growth.providers.linode.holdings import Doubled
from growth.providers.linode.tags import provider_id
from growth.sim.clouds.linode.objects import Instance, Pool
from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.test_linode_doubles import stored
from tests.simulation.test_linode_lost_machines import collecting
from tests.simulation.test_linode_pools import TIERS, add_pool, gone, in_node, machine_of, made, pools_of, wanted_of

CLAIM, UID, CLUSTER = "karpenter.sh/nodeclaim", "growth.dev/uid", "growth.dev/cluster"


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def without(machine: Instance, *keys: str) -> tuple[str, ...]:
    return tuple(each for each in machine.tags if not each.startswith(keys))


async def grown(stage: LkeStage, *, by: int) -> Pool:
    """A pool with one claimed machine and some that are nobody's."""
    await made(stage.provider(), wanted_of(stage, "stays"))
    (pool,) = pools_of(stage)
    stage.fake.account.scale(pool, 1 + by)
    await asyncio.sleep(70)
    stage.fake.advance()
    return pool


async def without_uid(stage: LkeStage) -> tuple[NodeClaim, Instance]:
    """A claim that names no machine, and its machine, from which somebody took the UID."""
    wanted = await stored(stage, "web-1")
    machine = machine_of(stage, await made(stage.provider(), wanted))
    await asyncio.sleep(60)
    stage.fake.account.retag(machine, without(machine, UID))
    return wanted, machine


def give(stage: LkeStage, machine: Instance, *tags: str) -> None:
    stage.fake.account.retag(machine, (*machine.tags, *tags))


def test_a_machine_whose_uid_was_taken_off_is_still_its_claims(tier: str) -> None:
    """A purchase answers with it, buys no other and puts the UID back."""

    async def body(stage: LkeStage) -> None:
        wanted, machine = await without_uid(stage)
        provider = stage.provider()
        await asyncio.sleep(200)
        found = await provider.create(wanted)
        assert (machine_of(stage, found).id, found.claim, found.claim_uid) == (machine.id, "web-1", wanted.metadata.uid)
        assert any(each.startswith(UID) for each in machine.tags)
        assert sum(pool.count for pool in pools_of(stage)) == 1

    on(tier, body)


def test_a_machine_whose_uid_was_taken_off_goes_with_its_claim(tier: str) -> None:
    """Also where the claim does not name it: nobody says that it has none while it runs."""

    async def body(stage: LkeStage) -> None:
        wanted, machine = await without_uid(stage)
        provider = stage.provider()
        await asyncio.sleep(200)
        await gone(provider, wanted)
        assert machine.id not in {each.id for each in stage.fake.machines()}

    on(tier, body)


def test_another_claim_of_that_name_does_not_get_a_machine_with_a_uid(tier: str) -> None:
    """The name alone says whose it is only where no UID does."""

    async def body(stage: LkeStage) -> None:
        first = wanted_of(stage, "web-1")
        provider = stage.provider()
        machine = machine_of(stage, await made(provider, first))
        await asyncio.sleep(200)
        stage.fake.account.retag(machine, (*without(machine, UID), f"{UID}:{'0' * 32}"))
        await asyncio.sleep(60)
        with pytest.raises(InvariantViolation):
            await stage.provider().create(first)

    on(tier, body)


# Seconds since the process began: it looks at what it found, and relies on the lists later.
@pytest.mark.parametrize("separator", [":", "="])
@pytest.mark.parametrize("age", [5, 200])
def test_a_machine_that_was_tagged_by_hand_is_its_claims(tier: str, separator: str, age: int) -> None:
    """With nothing but the claim's tag, on either tier: no other is bought, and it gets the other tags."""

    async def body(stage: LkeStage) -> None:
        pool = await grown(stage, by=1)
        machine = in_node(stage, pool, 1)
        give(stage, machine, f"{CLAIM}{separator}web-1")
        provider = stage.provider()
        await provider.list()
        await asyncio.sleep(age)
        (found,) = await asyncio.gather(made(provider, wanted_of(stage, "web-1")), return_exceptions=True)
        assert (getattr(found, "provider_id", found), pool.count) == (provider_id(machine.id), 2)
        assert {UID, CLUSTER, CLAIM} <= {each.partition(":")[0] for each in machine.tags}
        assert (await provider.get(provider_id(machine.id))).claim == "web-1"

    on(tier, body)


@pytest.mark.parametrize("age", [5, 200])
def test_two_machines_that_were_tagged_by_hand_are_a_contradiction(tier: str, age: int) -> None:
    """Nothing is bought, and neither is taken for the claim's."""

    async def body(stage: LkeStage) -> None:
        pool = await grown(stage, by=2)
        for index in (1, 2):
            give(stage, in_node(stage, pool, index), f"{CLAIM}:web-1")
        provider = stage.provider()
        await provider.list()
        await asyncio.sleep(age)
        with pytest.raises(Doubled):
            await made(provider, wanted_of(stage, "web-1"))
        assert pool.count == 3

    on(tier, body)


def test_a_machine_of_two_claims_is_not_collected(tier: str) -> None:
    """Whatever tags it lacks: nothing of its key is, until somebody takes one of the two off."""

    async def body(stage: LkeStage) -> None:
        pool = await grown(stage, by=2)
        machine = in_node(stage, pool, 2)
        give(stage, machine, f"{CLAIM}:one", f"{CLAIM}:two")
        provider = stage.provider()
        assert await collecting(provider, 900) == 0
        assert (machine.status, pool.count) == ("running", 3)
        stage.fake.account.retag(machine, without(machine, CLAIM))
        assert await collecting(provider, 900) == 2

    on(tier, body)


def test_a_second_pool_that_lke_scales_is_nobodys_lost_answer(tier: str) -> None:
    """Growth makes none such: somebody works with it, so it is the hard error and stays."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "stays"))
        (pool,) = pools_of(stage)
        second = add_pool(stage, *pool.tags, count=1)
        second.autoscaler = {"enabled": True, "min": 1, "max": 5}
        with pytest.raises(InvariantViolation):
            await provider.create(wanted_of(stage, "web-1"))
        assert {each.id for each in pools_of(stage)} == {pool.id, second.id}

    on(tier, body)


def test_a_purchase_tells_the_whole_name_of_its_claim(tier: str) -> None:
    """Though no tag can hold it."""

    async def body(stage: LkeStage) -> None:
        name = "a-claim-with-quite-a-long-name-that-does-not-fit"
        provider, wanted = stage.provider(), wanted_of(stage, "a-claim-with-quite-a-long-name-that-does-not-fit")
        assert (await made(provider, wanted)).claim == name
        assert (await provider.create(wanted)).claim == name

    on(tier, body)
