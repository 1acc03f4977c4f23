"""Deletions of LKE nodes that arrive late, and deletions of claims whose machines come to light late: no claim loses by them."""

import asyncio
import contextlib

import pytest

from growth.api.clouds import CloudUnavailable, CreateError
from growth.ports import Response
from growth.sim.clouds.linode import Faults
from growth.sim.clouds.linode.account import Times
from growth.sim.ports import Answer, Request
from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.test_linode_pools import Late, gone, made, pools_of, wanted_of

TIERS = ("lke", "lke-enterprise")


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_machine_whose_deletion_may_be_on_its_way_is_not_claimed(tier: str) -> None:
    """Collection's deletion of what nobody has goes without an answer and arrives late: it takes no claim's machine."""

    async def body(stage: LkeStage) -> None:
        late = Late(stage, "DELETE", "/nodes/", seconds=8)
        provider = stage.provider(through=late)
        await made(provider, wanted_of(stage, "first"))
        stage.fake.faults = Faults(late_id=1.0)
        with pytest.raises(CreateError):
            await provider.create(wanted_of(stage, "gives-up"))
        stage.fake.faults = Faults()
        while not late.sent.is_set():
            await asyncio.sleep(30)
            await provider.collect()
        await made(provider, wanted_of(stage, "second"))
        await asyncio.wait_for(late.arrived.wait(), 60)
        await asyncio.sleep(60)
        assert await stage.held() == ["uid-of-first", "uid-of-second"]

    on(tier, body)


def test_a_node_without_a_machine_whose_deletion_may_be_on_its_way_is_not_counted_on() -> None:
    """Its machine comes between the deletion's sending and its arrival: nobody is given it."""

    async def body(stage: LkeStage) -> None:
        late = Late(stage, "DELETE", "/nodes/", seconds=45)
        provider = stage.provider(through=late)
        await made(provider, wanted_of(stage, "first"))
        stage.fake.account.times, usual = Times(instance=(330, 330)), stage.fake.account.times
        with pytest.raises(CreateError):
            await provider.create(wanted_of(stage, "gives-up"))
        stage.fake.account.times = usual
        while not late.sent.is_set():
            await asyncio.sleep(5)
            await provider.collect()
        (pool,) = pools_of(stage)
        assert [node.instance is None for node in pool.nodes] == [False, True]
        await asyncio.sleep(30)
        stage.fake.advance()
        assert pool.nodes[1].instance is not None
        await made(provider, wanted_of(stage, "second"))
        await asyncio.wait_for(late.arrived.wait(), 60)
        await asyncio.sleep(60)
        assert await stage.held() == ["uid-of-first", "uid-of-second"]

    on("lke", body)


@pytest.mark.parametrize("after", [9.5, 9.8, 9.9, 9.95])
def test_a_deletion_that_begins_before_all_is_settled_does_not_say_that_nothing_is_there(
    tier: str, after: float
) -> None:
    """Lists show the machine's tags late, and what the process before left was not looked at when the deletion began."""

    async def body(stage: LkeStage) -> None:
        old = stage.provider()
        await made(old, wanted_of(stage, "stays"))
        stage.fake.faults = Faults(late_tags=1.0)
        await made(old, wanted_of(stage, "goes"))
        new = stage.provider()
        await new.parts()
        await asyncio.sleep(after)
        with contextlib.suppress(CloudUnavailable):
            await new.delete(wanted_of(stage, "goes"))
        await gone(new, wanted_of(stage, "goes"))
        assert await stage.held() == ["uid-of-stays"]

    on(tier, body)


def test_a_deletion_that_was_accepted_is_not_asked_for_again() -> None:
    """Though the machine does not say yet that it goes: the second one waits for the lock, and then it is done already."""

    async def body(stage: LkeStage) -> None:
        deletions = []

        async def behind(request: Request) -> Response:
            if request.method == "DELETE":
                deletions.append(request.url)
            answer = await stage.fake(request)
            return Answer(answer.status, dict(answer.headers), answer.body.replace(b'"deleting"', b'"running"'))

        provider, wanted = stage.provider(through=behind), wanted_of(stage, "goes")
        await made(provider, wanted_of(stage, "stays"))
        await made(provider, wanted)
        await asyncio.sleep(70)
        await asyncio.gather(provider.delete(wanted), provider.delete(wanted))
        assert len(deletions) == 1
        await asyncio.sleep(60)
        assert await stage.held() == ["uid-of-stays"]

    on("lke-enterprise", body)
