"""Machines of growth pools at LKE Enterprise whose node no list shows yet when they are to go, with the whole autoscaler."""

import asyncio

import pytest

from growth.api.growthpools import NODE_REMOVAL_REQUEST
from growth.api.karpenter import NODE_CLAIM
from growth.api.pods import POD
from growth.sim.clouds.linode.account import Times
from growth.sim.world.world import World
from tests.manifests import growth_pool, pod
from tests.simulation.test_learning_worlds import phase
from tests.simulation.vendors import in_world

LATE_SECONDS = 300.0


@pytest.mark.parametrize("retry_after", ["5s", "1h"])
def test_a_removal_is_not_given_up_while_lke_does_not_list_the_node(retry_after: str) -> None:
    """One attempt goes on for as long as that takes, whatever `removalRetryAfter` is, and the machine goes soon after."""

    async def body(world: World) -> None:
        half = world.linode
        assert half is not None
        times = half.fake.account.times
        half.fake.account.times = Times(boot=times.boot, delete=times.delete, listed=(LATE_SECONDS, LATE_SECONDS))
        await world.create([growth_pool("plain", {"name": "g6-standard-2", "max": 2}, scaleDownAfter="5s")])
        await asyncio.sleep(30)
        chosen = {"growth.dev/pool": "plain"}
        await world.create([pod(name, cpu="1200m", nodeSelector=chosen) for name in ("long", "short")])
        began = asyncio.get_running_loop().time()
        while {await phase(world, name) for name in ("long", "short")} != {"Running"}:
            await asyncio.sleep(1)
            assert asyncio.get_running_loop().time() - began < 150
        await world.admin.delete(POD, "short", namespace="default")
        await asyncio.sleep(began + 250 - asyncio.get_running_loop().time())
        (removal,) = (await world.admin.list(NODE_REMOVAL_REQUEST)).items
        assert (removal.status.phase, removal.status.removal_attempt) == ("CouldNotRemove", 1)
        await asyncio.sleep(LATE_SECONDS + 60 - 250)
        assert [pool.count for pool in half.fake.account.pools.values()] == [1]
        await asyncio.sleep(120)
        assert len((await world.admin.list(NODE_CLAIM)).items) == 1
        assert (await world.admin.list(NODE_REMOVAL_REQUEST)).items == ()

    in_world("linode", body, linodeCluster="enterprise", removalRetryAfter=retry_after)
