"""A type whose count LKE takes and whose nodes do not come: others that a claim allows are tried instead."""

import asyncio
import contextlib

import pytest

from growth.api import names
from growth.api.clouds import CloudError, CreateError
from growth.api.karpenter import NodeClaim
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode import Faults
from tests.conformance.providers.stages import LkeStage, claim, need, on
from tests.simulation.test_linode_lost_machines import TTL_SECONDS, collecting
from tests.simulation.test_linode_pools import TIERS, machine_of, made, pools_of, wanted_of


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["stuck", "partial"])
def fault(request: pytest.FixtureRequest) -> str:
    """A node that never gets its machine; a count that no node stands for."""
    return str(request.param)


def of_any_type(stage: LkeStage, name: str) -> NodeClaim:
    kinds = need(names.INSTANCE_TYPE_LABEL, *stage.types)
    return claim(stage, name, kinds, labels={names.NODE_POOL_LABEL: "web"})


async def in_vain(provider: LinodeProvider, wanted: NodeClaim, seconds: float) -> None:
    """Purchases of the claim, again and again, beside collections."""

    async def buying() -> None:
        while True:
            with contextlib.suppress(CloudError):
                await provider.create(wanted)
            await asyncio.sleep(5)

    bought = asyncio.create_task(buying())
    await collecting(provider, seconds)
    bought.cancel()
    await asyncio.gather(bought, return_exceptions=True)


def asked(stage: LkeStage) -> list[str]:
    return sorted(pool.kind.id for pool in pools_of(stage))


def test_another_type_is_asked_for(tier: str, fault: str) -> None:
    """Once the first has been missing for five minutes, in the same claim too. An enterprise pool lists its nodes late."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        stage.fake.faults = Faults(**{fault: 1.0})
        await in_vain(provider, of_any_type(stage, "first"), TTL_SECONDS - 30)
        assert asked(stage) == [stage.types[0]]
        await in_vain(provider, of_any_type(stage, "first"), 240)
        assert stage.types[1] in asked(stage)

    on(tier, body)


def test_it_comes_last_for_a_while(tier: str, fault: str) -> None:
    """New claims get the next one; later it is tried again."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        stage.fake.faults = Faults(**{fault: 1.0})
        await in_vain(provider, wanted_of(stage, "first"), TTL_SECONDS + 60)
        stage.fake.faults = Faults()
        second = machine_of(stage, await made(provider, of_any_type(stage, "second")))
        await collecting(provider, 1800)
        third = machine_of(stage, await made(provider, of_any_type(stage, "third")))
        assert [each.kind.id for each in (second, third)] == [stage.types[1], stage.types[0]]

    on(tier, body)


def test_a_claim_that_allows_no_other_asks_again(tier: str, fault: str) -> None:
    """And says what it waits for."""

    async def body(stage: LkeStage) -> None:
        provider, wanted = stage.provider(), wanted_of(stage, "first")
        stage.fake.faults = Faults(**{fault: 1.0})
        await in_vain(provider, wanted, TTL_SECONDS + 60)
        with pytest.raises(CreateError, match="has not come up with the node"):
            await provider.create(wanted)
        stage.fake.faults = Faults()
        assert machine_of(stage, await made(provider, wanted)).kind.id == stage.types[0]

    on(tier, body)
