"""Nodes of a pool whose machine can be claimed by nobody: gone while its node keeps its number, or without its tags."""

import asyncio

import pytest

from growth.api.clouds import CloudError
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.ports import Response
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode import Times
from growth.sim.clouds.linode.objects import Pool
from growth.sim.ports import Answer, Request
from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.test_linode_doubles import names_machine, stored
from tests.simulation.test_linode_pools import TIERS, gone, in_node, machine_of, made, pools_of, wanted_of

# As often as the keeper collects.
PERIOD_SECONDS = 30
TTL_SECONDS = 300


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def collecting(provider: LinodeProvider, seconds: float) -> int:
    removed = 0
    for _ in range(int(seconds / PERIOD_SECONDS)):
        await asyncio.sleep(PERIOD_SECONDS)
        removed += await provider.collect()
    return removed


def lose_machine(stage: LkeStage, pool: Pool, index: int) -> None:
    """It is gone, and LKE's node keeps its number."""
    node = pool.nodes[index]
    number = node.instance
    assert number is not None
    pool.nodes.remove(node)
    stage.fake.account.end(number)
    pool.nodes.insert(index, node)
    node.instance = number


async def spare(stage: LkeStage, provider: LinodeProvider) -> Pool:
    """A pool with one claimed machine and, last, one that is nobody's."""
    await made(provider, wanted_of(stage, "stays"))
    (pool,) = pools_of(stage)
    stage.fake.account.scale(pool, 2)
    await asyncio.sleep(70)
    stage.fake.advance()
    return pool


async def waited_for(provider: LinodeProvider, wanted: NodeClaim, *, seconds: float) -> None:
    """Purchases that are tried again and again beside collections get their machine in time."""

    async def buying() -> None:
        while True:
            try:
                await provider.create(wanted)
            except CloudError:
                await asyncio.sleep(2)
            else:
                return

    collected, bought = asyncio.create_task(collecting(provider, 10 * seconds)), asyncio.create_task(buying())
    done, _ = await asyncio.wait({bought}, timeout=seconds)
    for each in (collected, bought):
        each.cancel()
    assert done, f"no machine for {wanted.metadata.name} after {seconds} s"


def test_a_node_whose_machine_is_gone_goes_after_five_minutes(tier: str) -> None:
    """LKE keeps its number: no instance is there to claim. It goes by the node's own name, and others stay."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool = await spare(stage, provider)
        first = pool.nodes[0]
        lose_machine(stage, pool, 1)
        assert await collecting(provider, TTL_SECONDS - PERIOD_SECONDS) == 0
        assert await collecting(provider, 3 * PERIOD_SECONDS) == 1
        assert (pool.count, pool.nodes) == (1, [first])
        assert await stage.held() == ["uid-of-stays"]

    on(tier, body)


def test_a_pool_whose_only_machine_is_gone_goes(tier: str) -> None:
    """It was the last node: the pool goes with it."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "vanishes"))
        (pool,) = pools_of(stage)
        await asyncio.sleep(70)
        stage.fake.advance()
        lose_machine(stage, pool, 0)
        assert await collecting(provider, TTL_SECONDS + 3 * PERIOD_SECONDS) == 1
        assert pools_of(stage) == []

    on(tier, body)


def test_a_node_whose_machine_is_gone_is_not_waited_for_for_ever(tier: str) -> None:
    """After five minutes it no longer counts: the pool grows by one for who waits, whether the node can be deleted or not, and the
    node goes once it can.
    """

    async def body(stage: LkeStage) -> None:
        stays = True

        async def refusing(request: Request) -> Response:
            if stays and request.method == "DELETE":
                return Answer(400, {}, b'{"errors": [{"reason": "This resource is locked and cannot be deleted."}]}')
            return await stage.fake(request)

        provider = stage.provider(through=refusing)
        pool = await spare(stage, provider)
        lose_machine(stage, pool, 1)
        await waited_for(provider, wanted_of(stage, "new"), seconds=TTL_SECONDS + 150)
        assert pool.count == 3
        stays = False
        await collecting(provider, 2 * PERIOD_SECONDS)
        assert (pool.count, len(pool.nodes)) == (2, 2)
        assert await stage.held() == ["uid-of-new", "uid-of-stays"]

    on(tier, body)


@pytest.mark.parametrize("how", ["goes for ever", "is in no cluster"])
def test_a_machine_that_nobody_can_claim_is_not_waited_for_for_ever(tier: str, how: str) -> None:
    """After five minutes it no longer counts. The node of one that goes is removed; what is in no cluster is not touched."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool = await spare(stage, provider)
        machine = in_node(stage, pool, 1)
        if how == "goes for ever":
            machine.status = "deleting"
        else:
            machine.cluster = None
        await waited_for(provider, wanted_of(stage, "new"), seconds=TTL_SECONDS + 150)
        await collecting(provider, 2 * PERIOD_SECONDS)
        left = {node.instance for node in pool.nodes}
        assert (machine.id in left, len(left)) == ((False, 2) if how == "goes for ever" else (True, 3))

    on(tier, body)


def test_a_node_that_was_recycled_by_hand_is_not_bought_again(tier: str) -> None:
    """The machine that LKE takes from it, claimed a moment ago, is no part of the count: the next claim gets the new one."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        lost = machine_of(stage, await made(provider, wanted_of(stage, "recycled")))
        (pool,) = pools_of(stage)
        for seconds in (6, 30):
            stage.fake.advance()
            stage.fake.account.take_down(lost)
            await asyncio.sleep(seconds)
            machine = machine_of(stage, await made(provider, wanted_of(stage, f"after-{seconds}")))
            assert machine is not lost
            assert pool.count == 1
            lost = machine

    on(tier, body)


def test_a_machine_that_takes_its_time_to_go_is_not_counted(tier: str) -> None:
    """LKE took its node away minutes ago, and the machine only says that it is off: the next claim needs one more, not two."""

    async def body(stage: LkeStage) -> None:
        async def off(request: Request) -> Response:
            answer = await stage.fake(request)
            return Answer(
                answer.status, dict(answer.headers), answer.body.replace(b'"status":"deleting"', b'"status":"offline"')
            )

        provider, goes = stage.provider(through=off), wanted_of(stage, "goes")
        await made(provider, goes)
        await made(provider, wanted_of(stage, "stays"))
        await asyncio.sleep(70)
        stage.fake.account.times = Times(instance=(40, 40), delete=(400, 400))
        await provider.delete(goes)
        await asyncio.sleep(150)
        await made(provider, wanted_of(stage, "new"))
        (pool,) = pools_of(stage)
        assert pool.count == 2
        await gone(provider, goes)

    on(tier, body)


def test_an_unclaimed_machine_without_its_tags_goes(tier: str) -> None:
    """Somebody's tool replaced them, or they never came: it can be no member, and costs all the same."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool = await spare(stage, provider)
        stage.fake.account.retag(in_node(stage, pool, 1), ("team:web",))
        assert await collecting(provider, TTL_SECONDS - 120) == 0
        assert await collecting(provider, 240) == 1
        assert pool.count == 1
        assert await stage.held() == ["uid-of-stays"]

    on(tier, body)


def test_a_machine_without_its_tags_is_not_waited_for_for_ever() -> None:
    """While a purchase counts on it nothing goes: it no longer counts, the pool grows, and then it goes."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool = await spare(stage, provider)
        odd = in_node(stage, pool, 1)
        stage.fake.account.retag(odd, ("team:web",))
        await waited_for(provider, wanted_of(stage, "new"), seconds=TTL_SECONDS + 150)
        await collecting(provider, TTL_SECONDS)
        assert pool.count == 2
        assert odd.id not in {node.instance for node in pool.nodes}

    on("lke-enterprise", body)


def test_a_machine_that_a_claim_names_is_the_claims_whatever_its_tags_say(tier: str) -> None:
    """It is not collected and not claimed for another, and nobody waits for it."""

    async def body(stage: LkeStage) -> None:
        provider, wanted = stage.provider(), await stored(stage)
        machine = machine_of(stage, await made(provider, wanted))
        await names_machine(stage, wanted, machine)
        (pool,) = pools_of(stage)
        await asyncio.sleep(2 * TTL_SECONDS)
        stage.fake.account.retag(machine, ("team:web",))
        assert await collecting(provider, 2 * TTL_SECONDS) == 0
        other = machine_of(stage, await made(provider, wanted_of(stage, "other")))
        assert other is not machine
        assert pool.count == 2
        assert await collecting(provider, 2 * TTL_SECONDS) == 0

    on(tier, body)


def test_a_machine_without_the_clusters_tag_goes_once_its_claim_is_gone(tier: str) -> None:
    """Sweeps do not see it any more. While its claim is there it is the claim's."""

    async def body(stage: LkeStage) -> None:
        provider, wanted = stage.provider(), await stored(stage)
        await made(provider, await stored(stage, "stays"))
        machine = machine_of(stage, await made(provider, wanted))
        (pool,) = pools_of(stage)
        await asyncio.sleep(200)
        left = [each for each in machine.tags if not each.startswith("growth.dev/cluster")]
        stage.fake.account.retag(machine, tuple(left))
        provider = stage.provider()  # which knows the machine by its tags alone
        assert await collecting(provider, 2 * TTL_SECONDS) == 0
        await stage.admin.delete(NODE_CLAIM, wanted.metadata.name)
        assert await collecting(provider, 2 * TTL_SECONDS) == 1
        assert pool.count == 1
        assert machine.id not in {node.instance for node in pool.nodes}

    on(tier, body)


def test_a_machine_whose_tags_are_written_with_equals_is_listed(tier: str) -> None:
    """As it is read with both."""

    async def body(stage: LkeStage) -> None:
        machine = machine_of(stage, await made(stage.provider(), await stored(stage)))
        stage.fake.account.retag(machine, tuple(each.replace(":", "=") for each in machine.tags))
        await asyncio.sleep(60)
        assert [each.claim for each in await stage.provider().list()] == ["web-1"]

    on(tier, body)
