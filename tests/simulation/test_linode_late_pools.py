"""A pool of LKE whose making goes without an answer: no second one is asked for while it may be on its way."""

import asyncio

import pytest

from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.test_linode_pools import Late, made, pools_of, wanted_of

TIERS = ("lke", "lke-enterprise")


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("seconds", [3, 12, 30, 50])
def test_a_pool_that_is_made_late_is_not_made_twice(tier: str, seconds: int) -> None:
    """Those who wait take what comes of it, and ask for what is left to ask for."""

    async def body(stage: LkeStage) -> None:
        late = Late(stage, "POST", "/pools", alone=True, seconds=seconds)
        provider = stage.provider(through=late)
        claims = [wanted_of(stage, f"claim-{each}") for each in range(4)]
        await asyncio.gather(*(made(provider, each) for each in claims))
        assert late.arrived.is_set()
        assert [pool.count for pool in pools_of(stage)] == [len(claims)]
        assert len(stage.fake.ledger.purchases) == len(claims)

    on(tier, body)
