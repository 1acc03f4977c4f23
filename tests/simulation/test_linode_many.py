"""Machines that nobody claims, many at once: none of them goes until somebody confirms exactly that list."""

import asyncio

import pytest

from growth.api import names
from growth.api.clouds import CreateError, InvariantViolation
from growth.api.core import CONFIG_MAP, ConfigMap
from growth.api.nodes import NODE
from growth.kube.errors import NotFound
from growth.ports import Response, TransportError
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode import Faults
from growth.sim.clouds.linode.objects import Pool
from growth.sim.ports import Request
from tests.conformance.providers.stages import HOME, LkeStage, on
from tests.simulation.test_linode_leaving import drained, joined
from tests.simulation.test_linode_lost_machines import PERIOD_SECONDS, TTL_SECONDS, collecting
from tests.simulation.test_linode_pools import TIERS, add_pool, in_node, made, pools_of, wanted_of

NAME = "growth-collection-lke"


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def with_surplus(stage: LkeStage, provider: LinodeProvider, number: int) -> Pool:
    """A pool with a claimed machine, to which somebody else added so many, long ago."""
    await made(provider, wanted_of(stage, "stays"))
    (pool,) = pools_of(stage)
    stage.fake.account.scale(pool, 1 + number)
    await asyncio.sleep(TTL_SECONDS + 70)
    return pool


async def listed(stage: LkeStage) -> ConfigMap | None:
    try:
        return await stage.admin.get(CONFIG_MAP, NAME, namespace=HOME)
    except NotFound:
        return None


async def confirm(stage: LkeStage) -> None:
    held = await listed(stage)
    assert held is not None
    marked = {"metadata": {"annotations": {names.CONFIRM_COLLECTION_ANNOTATION: held.data["hash"]}}}
    await stage.admin.patch(CONFIG_MAP, NAME, marked, namespace=HOME)


def test_a_pass_that_would_take_many_takes_none(tier: str) -> None:
    """The list stands in a ConfigMap and is counted. Once it is confirmed it goes, and nothing stands there any more."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool = await with_surplus(stage, provider, 39)
        assert await collecting(provider, 4 * PERIOD_SECONDS) == 0
        assert (pool.count, provider.held_back) == (40, 39)
        held = await listed(stage)
        assert held is not None
        assert len(held.data["machines"].splitlines()) == 39
        assert held.data["why"].startswith("39 of 40 machines that nobody claims")
        await confirm(stage)
        assert await collecting(provider, 2 * PERIOD_SECONDS) == 39
        assert (pool.count, provider.held_back) == (1, 0)
        assert await listed(stage) is None
        assert await stage.held() == ["uid-of-stays"]

    on(tier, body)


def test_few_go_unasked(tier: str) -> None:
    """Three, of however few."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool = await with_surplus(stage, provider, 3)
        assert await collecting(provider, PERIOD_SECONDS) == 3
        assert pool.count == 1

    on(tier, body)


def test_a_confirmation_is_of_exactly_one_list(tier: str) -> None:
    """One more that nobody claims makes another list, which somebody must look at."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool = await with_surplus(stage, provider, 5)
        await collecting(provider, PERIOD_SECONDS)
        stage.fake.account.scale(pool, 7)
        await asyncio.sleep(TTL_SECONDS + 70)
        await confirm(stage)
        assert await collecting(provider, 2 * PERIOD_SECONDS) == 0
        assert pool.count == 7

    on(tier, body)


def test_a_list_that_is_no_longer_true_stands_no_longer(tier: str) -> None:
    """Somebody took the nodes away: the next process does not show what is not so either."""

    async def body(stage: LkeStage) -> None:
        first = stage.provider()
        pool = await with_surplus(stage, first, 5)
        await collecting(first, PERIOD_SECONDS)
        assert await listed(stage) is not None
        stage.fake.account.scale(pool, 1)
        await collecting(stage.provider(), PERIOD_SECONDS)
        assert await listed(stage) is None

    on(tier, body)


def test_surplus_of_its_own_goes_however_much_it_is(tier: str) -> None:
    """Claims of a burst that went before their nodes came: the process asked for them itself, and nobody has to confirm it."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "stays"))
        stage.fake.faults = Faults(late_id=1.0)
        burst = [provider.create(wanted_of(stage, f"burst-{each}")) for each in range(8)]
        found = await asyncio.gather(*burst, return_exceptions=True)
        assert all(isinstance(each, CreateError) for each in found)
        (pool,) = pools_of(stage)
        assert pool.count == 9
        await asyncio.sleep(TTL_SECONDS + 70)
        assert await collecting(provider, 2 * PERIOD_SECONDS) == 8
        assert (pool.count, await listed(stage)) == (1, None)

    on(tier, body)


def test_what_others_added_is_no_surplus_of_its_own(tier: str) -> None:
    """What was claimed since, or went, is not counted as asked for."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        for name in "abcdef":
            await made(provider, wanted_of(stage, name))
        (pool,) = pools_of(stage)
        stage.fake.account.scale(pool, 12)
        await asyncio.sleep(TTL_SECONDS + 70)
        assert await collecting(provider, 2 * PERIOD_SECONDS) == 0
        assert pool.count == 12

    on(tier, body)


def test_ends_that_were_begun_are_not_asked_for_again(tier: str) -> None:
    """Machines that are drained go when their Nodes are gone, whoever leads by then, beside others that are held back."""

    async def body(stage: LkeStage) -> None:
        first = stage.provider()
        pool = await with_surplus(stage, first, 3)
        machines = [in_node(stage, pool, index) for index in (1, 2, 3)]
        for machine in machines:
            await joined(stage, machine)
        assert await collecting(first, PERIOD_SECONDS) == 0
        stage.fake.account.scale(pool, 9)
        await asyncio.sleep(TTL_SECONDS + 70)
        second = stage.provider()
        assert await collecting(second, 2 * PERIOD_SECONDS) == 0
        assert second.held_back == 5
        for machine in machines:
            assert (await stage.admin.get(NODE, machine.label)).metadata.deletion_timestamp is not None
            await drained(stage, machine)
        assert await collecting(second, 2 * PERIOD_SECONDS) == 3
        assert pool.count == 6

    on(tier, body)


def test_a_second_pool_of_many_is_nobodys_to_remove(tier: str) -> None:
    """An answer that was lost made a pool of one."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        second = add_pool(stage, *pool.tags, count=20)
        await asyncio.sleep(30)
        with pytest.raises(InvariantViolation, match="2 pools"):
            await provider.create(wanted_of(stage, "b"))
        assert second.count == 20

    on(tier, body)


def test_who_looks_for_a_machine_decides_nothing(tier: str) -> None:
    """Old ones that never joined are not claimed; that is no reason for them to go unconfirmed."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool = await with_surplus(stage, provider, 10)
        assert await collecting(provider, PERIOD_SECONDS) == 0
        await made(provider, wanted_of(stage, "new"))
        assert await collecting(provider, 4 * PERIOD_SECONDS) == 0
        assert pool.count == 12

    on(tier, body)


def test_tags_that_nobody_answered_for_make_no_surplus_of_its_own(tier: str) -> None:
    """What may have been claimed counts as claimed: what somebody else added later is looked at by people."""

    async def body(stage: LkeStage) -> None:
        lost: list[str] = []

        async def unanswered(request: Request) -> Response:
            answer = await stage.fake(request)
            if request.method == "PUT" and "/linode/instances/" in request.url and request.url not in lost:
                lost.append(request.url)
                raise TransportError("the connection broke")
            return answer

        provider = stage.provider(through=unanswered)
        for name in "abcd":
            await made(provider, wanted_of(stage, name))
        (pool,) = pools_of(stage)
        stage.fake.account.scale(pool, 8)
        await asyncio.sleep(TTL_SECONDS + 70)
        assert await collecting(provider, 2 * PERIOD_SECONDS) == 0
        assert (len(lost), pool.count) == (4, 8)

    on(tier, body)
