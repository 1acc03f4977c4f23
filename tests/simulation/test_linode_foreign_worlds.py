"""The whole autoscaler beside an LKE pool that Karpenter's provider made for the pool and type that it buys."""

import asyncio

import pytest

from growth.api import names
from growth.api.conditions import find
from growth.api.events import EVENT
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.pods import POD
from growth.sim.clouds.linode.market import KINDS
from growth.sim.clouds.linode.objects import Pool
from growth.sim.scenario.oddities import pod
from growth.sim.world.world import World
from tests.simulation.test_learning_worlds import LINODE, phase, pool
from tests.simulation.vendors import in_world

KIND = "g6-standard-2"


async def foreign(world: World) -> Pool:
    half = world.linode
    assert half is not None
    account, cluster = half.fake.account, half.fake.cluster
    marks = ("karpenter.sh/nodepool=general", "karpenter.k8s.linode/lke-managed=true")
    made = Pool(
        id=account.number(),
        cluster=cluster,
        kind=KINDS[KIND],
        tags=marks,
        created=account.now,
        autoscaler={"enabled": False},
    )
    account.pools[made.id] = made
    account.scale(made, 1)
    await asyncio.sleep(60)
    return made


async def claims(world: World) -> list[NodeClaim]:
    return list((await world.admin.list(NODE_CLAIM)).items)


@pytest.mark.parametrize("tier", ["standard", "enterprise"])
def test_a_pod_waits_with_the_reason_and_runs_once_the_pool_is_gone(tier: str) -> None:
    """One claim says why, with an event, for as long as the pod waits; with the pod it goes, and it buys at once when the pool is
    removed.
    """

    async def body(world: World) -> None:
        theirs = await foreign(world)
        half = world.linode
        assert half is not None
        await world.create([pool(LINODE, KIND), pod("waits"), pod("goes")])
        await asyncio.sleep(60)
        (first,) = await claims(world)
        await asyncio.sleep(3600)
        (claim,) = await claims(world)
        assert claim.metadata.uid == first.metadata.uid
        told = find(claim.status.conditions, names.LAUNCHED)
        assert told is not None
        assert (told.status, told.reason) == ("False", names.INVARIANT_VIOLATION)
        assert f"LKE pool {theirs.id} is tagged for general/{KIND} and is not Growth's" in told.message
        said = [each for each in (await world.admin.list(EVENT)).items if each.reason == names.INVARIANT_VIOLATION]
        assert {each.involved_object.name for each in said} == {claim.metadata.name}
        assert list(half.fake.account.pools) == [theirs.id]
        assert theirs.count == 1
        await world.admin.delete(POD, "goes", namespace="default")
        half.fake.account.pools[theirs.id].tags = ()
        await asyncio.sleep(240)
        assert await phase(world, "waits") == "Running"

    in_world("linode", body, linodeCluster=tier)


@pytest.mark.parametrize("tier", ["standard", "enterprise"])
def test_nothing_is_bought_for_a_pod_that_went_meanwhile(tier: str) -> None:
    """Its claim goes while the pool is there; when that is removed nothing is bought."""

    async def body(world: World) -> None:
        theirs = await foreign(world)
        half = world.linode
        assert half is not None
        await world.create([pool(LINODE, KIND), pod("goes")])
        await asyncio.sleep(900)
        await world.admin.delete(POD, "goes", namespace="default")
        await asyncio.sleep(600)
        assert await claims(world) == []
        theirs.tags = ()
        await asyncio.sleep(600)
        assert list(half.fake.account.pools) == [theirs.id]

    in_world("linode", body, linodeCluster=tier)
