"""Purchases of LKE nodes where every call takes long: each gets its machine nevertheless, and no more are bought."""

import asyncio

import pytest

from growth.ports import Response
from growth.sim.ports import Request
from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.test_linode_pools import made, pools_of, wanted_of

TIERS = ("lke", "lke-enterprise")


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(("seconds", "claims", "within"), [(3, 1, 50), (4, 1, 60), (2, 5, 120), (1, 10, 130)])
def test_a_claim_gets_its_machine_however_slow_every_call_is(tier: str, seconds: int, claims: int, within: int) -> None:
    """A pass that has begun is not broken off, so that each try gets further than the one before."""

    async def body(stage: LkeStage) -> None:
        async def slow(request: Request) -> Response:
            await asyncio.sleep(seconds)
            return await stage.fake(request)

        provider, loop = stage.provider(through=slow), asyncio.get_running_loop()
        wanted = [wanted_of(stage, f"claim-{each}") for each in range(claims)]
        began = loop.time()
        await asyncio.gather(*(made(provider, each) for each in wanted))
        assert loop.time() - began <= within
        assert await stage.held() == sorted(each.metadata.uid for each in wanted)
        assert [pool.count for pool in pools_of(stage)] == [claims]

    on(tier, body)
