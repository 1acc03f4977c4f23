"""The lock of a pool and type: what waits for it, what does not, and that nobody keeps it who only waits."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from growth.api.clouds import CreateError
from growth.providers.linode import tags
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode import Faults
from growth.sim.clouds.linode.market import KINDS
from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.test_linode_pools import TIERS, add_pool, gone, made, pools_of, wanted_of, writes

Work = Callable[[LkeStage, LinodeProvider], Awaitable[object]]


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def _buys(stage: LkeStage, provider: LinodeProvider) -> None:
    await made(provider, wanted_of(stage, "next"))


async def _deletes(stage: LkeStage, provider: LinodeProvider) -> None:
    await gone(provider, wanted_of(stage, "first"))


async def _collects(stage: LkeStage, provider: LinodeProvider) -> None:
    assert await provider.collect() == 1
    assert stage.fake.account.pools


def _left_over(stage: LkeStage) -> None:
    """A machine that nobody has, old enough to be collected."""
    (pool,) = pools_of(stage)
    stage.fake.account.scale(pool, 2)


def _nothing(stage: LkeStage) -> None:
    """The pool has what its claim has."""
    assert pools_of(stage)


async def _waits_for_the_lock(
    stage: LkeStage, before: Callable[[LkeStage], None], work: Work, *, seconds: float
) -> None:
    """Nothing is written while another is at work on the key."""
    provider = stage.provider()
    first = wanted_of(stage, "first")
    await made(provider, first)
    before(stage)
    await asyncio.sleep(seconds)
    held = (await provider.parts()).held
    async with held.locks.held(tags.key_of(first, stage.types[0])):
        written = writes(stage)
        working = asyncio.ensure_future(work(stage, provider))
        await asyncio.sleep(10)
        assert writes(stage) == written
        assert not working.done()
    await asyncio.wait_for(working, 300)
    assert len(writes(stage)) > len(written)


def test_a_count_is_written_under_the_lock(tier: str) -> None:
    """A purchase that makes its pool grow waits for others that are at work on the key."""
    on(tier, lambda stage: _waits_for_the_lock(stage, _nothing, _buys, seconds=70))


def test_a_machine_is_chosen_and_claimed_under_the_lock(tier: str) -> None:
    """A purchase that finds a machine which nobody has waits for others that are at work on the key."""
    on(tier, lambda stage: _waits_for_the_lock(stage, _left_over, _buys, seconds=70))


def test_a_node_is_deleted_under_the_lock(tier: str) -> None:
    """A deletion waits for others that are at work on the key."""
    on(tier, lambda stage: _waits_for_the_lock(stage, _nothing, _deletes, seconds=70))


def test_capacity_that_nobody_claimed_is_collected_under_the_lock(tier: str) -> None:
    """A collection waits for others that are at work on the key."""
    on(tier, lambda stage: _waits_for_the_lock(stage, _left_over, _collects, seconds=400))


def test_a_pool_is_looked_for_and_made_under_its_lock(tier: str) -> None:
    """So two purchases that find none make one."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        wanted = [wanted_of(stage, f"web-{number}") for number in range(5)]
        held = (await provider.parts()).held
        async with held.locks.held(tags.key_of(wanted[0], stage.types[0])):
            buying = [asyncio.ensure_future(made(provider, each)) for each in wanted]
            await asyncio.sleep(10)
            assert writes(stage) == []
        await asyncio.gather(*buying)
        (pool,) = pools_of(stage)
        assert pool.count == 5
        assert [method for method, path in writes(stage) if path.endswith("/pools")] == ["POST"]

    on(tier, body)


def test_a_lock_stops_no_other_pool_or_type(tier: str) -> None:
    """Who works on one key keeps nobody from another: another pool of that type, another type of that pool."""

    async def body(stage: LkeStage) -> None:
        provider, (small, large) = stage.provider(), stage.types
        held = (await provider.parts()).held
        async with held.locks.held(tags.key_of(wanted_of(stage, "a"), small)):
            await made(provider, wanted_of(stage, "b", "db", type_=small))
            await made(provider, wanted_of(stage, "c", "web", type_=large))
            with pytest.raises(CreateError) as told:
                await provider.create(wanted_of(stage, "a"))
        assert (told.value.reason, told.value.retryable) == ("NodePoolProvisioning", True)

    on(tier, body)


def test_who_waits_for_a_node_does_not_keep_the_lock(tier: str) -> None:
    """Others of the key claim, grow and delete meanwhile."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        old = wanted_of(stage, "old")
        await made(provider, old)
        await asyncio.sleep(70)
        stage.fake.faults = Faults(late_id=1.0)
        waiting = asyncio.ensure_future(made(provider, wanted_of(stage, "slow")))
        await asyncio.sleep(3)
        stage.fake.faults = Faults()
        began = stage.clock.monotonic()
        await provider.delete(old)
        assert stage.clock.monotonic() - began < 5
        await made(provider, wanted_of(stage, "quick"))
        await waiting
        await gone(provider, old)
        assert await stage.held() == ["uid-of-quick", "uid-of-slow"]

    on(tier, body)


def test_a_purchase_that_grew_its_pool_and_is_never_repeated_leaves_nothing(tier: str) -> None:
    """The claim went before its machine came: after five minutes the capacity is gone, and nothing else."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "kept"))
        stage.fake.faults = Faults(late_id=1.0)
        with pytest.raises(CreateError):
            await provider.create(wanted_of(stage, "given-up"))
        (pool,) = pools_of(stage)
        assert pool.count == 2
        await asyncio.sleep(60)
        came = max(each.created for each in stage.fake.machines())
        await asyncio.sleep((came - stage.clock.now()).total_seconds() + 295)
        assert await provider.collect() == 0
        await asyncio.sleep(10)
        assert await provider.collect() == 1
        assert (pool.count, await stage.held()) == (1, ["uid-of-kept"])

    on(tier, body)


def test_an_enterprise_machine_of_another_type_or_pool_is_not_a_member() -> None:
    """Machines are found by the pool's tag; those of another type, and those of a longer name, are left out here."""

    async def body(stage: LkeStage) -> None:
        provider, (small, large) = stage.provider(), stage.types
        await made(provider, wanted_of(stage, "a", type_=large))
        (pool,) = pools_of(stage)
        stage.fake.account.scale(pool, 2)
        longer = add_pool(stage, *(tag.replace(":web", ":web-2") for tag in pool.tags), type_=small)
        await asyncio.sleep(70)
        machine = await made(provider, wanted_of(stage, "b", type_=small))
        assert machine.instance_type == small
        bought = stage.fake.account.instances[int(machine.provider_id.removeprefix("linode://"))]
        assert bought.pool not in {pool.id, longer.id}

    on("lke-enterprise", body)


@pytest.mark.parametrize("wrong", ["type", "tag"])
def test_an_enterprise_machine_is_a_member_by_its_tag_and_its_type(wrong: str) -> None:
    """Also where LKE's own tag says that it is in the pool: of another type, or without our tag, it is not claimed. One of the
    pool's type counts all the same where a count is written: LKE might take it.
    """

    async def body(stage: LkeStage) -> None:
        provider, (small, large) = stage.provider(), stage.types
        await made(provider, wanted_of(stage, "a", type_=small))
        (pool,) = pools_of(stage)
        lke = (f"lke{pool.cluster.id}", f"nodepool={pool.id}")
        ours = [each for each in pool.tags if wrong == "type" or not each.startswith("karpenter.sh/nodepool")]
        odd = stage.fake.account.buy(
            label="odd",
            kind=KINDS[large if wrong == "type" else small],
            region=stage.zone,
            tags=(*ours, *lke),
            cluster=pool.cluster.id,
        )
        await asyncio.sleep(70)
        machine = await made(provider, wanted_of(stage, "b", type_=small))
        assert (machine.instance_type, pool.count) == (small, 2 if wrong == "type" else 3)
        assert machine.provider_id != tags.provider_id(odd.id)
        assert not tags.values(odd.tags, tags.CLAIM)

    on("lke-enterprise", body)
