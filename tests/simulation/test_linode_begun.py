"""The type that a purchase began with, over a restart: what the process before left says which it was."""

import asyncio

import pytest

from growth.api import names
from growth.api.clouds import CreateError
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.sim.clouds.linode import Faults
from tests.conformance.providers.stages import LkeStage, need, on
from tests.simulation.test_linode_pools import TIERS, made, pools_of


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def of_any_type(stage: LkeStage, name: str) -> NodeClaim:
    """A claim that the cluster has, and that allows both types."""
    reference = {"group": stage.node_class.group, "kind": stage.node_class.kind, "name": "default"}
    spec = {"nodeClassRef": reference, "requirements": [need(names.INSTANCE_TYPE_LABEL, *stage.types)]}
    meta = {"name": name, "labels": {names.NODE_POOL_LABEL: "web"}}
    await stage.admin.create(NODE_CLAIM, {"metadata": meta, "spec": spec})
    return await stage.admin.get(NODE_CLAIM, name)


async def begun_with_the_second(stage: LkeStage) -> NodeClaim:
    """A purchase that began with the dearer type, as the other was sold out then, and whose node is on its way."""
    provider, wanted = stage.provider(), await of_any_type(stage, "begun")
    await stage.sell_out(stage.types[0])
    stage.fake.faults = Faults(late_id=1.0)
    with pytest.raises(CreateError, match="on its way"):
        await provider.create(wanted)
    await stage.sell_out()
    stage.fake.faults = Faults()
    return wanted


def test_the_next_process_waits_for_the_node_that_was_bought(tier: str) -> None:
    """The other type can be had again and is cheaper: it is not bought besides."""

    async def body(stage: LkeStage) -> None:
        wanted = await begun_with_the_second(stage)
        machine = await made(stage.provider(), wanted)
        assert machine.instance_type == stage.types[1]
        assert [(pool.kind.id, pool.count) for pool in pools_of(stage)] == [(stage.types[1], 1)]
        assert len(stage.fake.ledger.purchases) == 1

    on(tier, body)


def test_a_claim_that_is_new_gets_the_cheapest(tier: str) -> None:
    """What was left was not bought for it: it goes, or is the claim's that it was bought for."""

    async def body(stage: LkeStage) -> None:
        wanted = await begun_with_the_second(stage)
        provider = stage.provider()
        await provider.parts()
        await asyncio.sleep(30)
        new = await made(provider, await of_any_type(stage, "new"))
        assert new.instance_type == stage.types[0]
        assert (await made(provider, wanted)).instance_type == stage.types[1]
        assert len(stage.fake.ledger.purchases) == 2

    on(tier, body)
