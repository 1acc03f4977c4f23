"""Pools of `growth.dev` under an autoscaler that does not serve them yet: they say so, and harm nobody."""

import asyncio

from growth.api import names
from growth.api.growthpools import GROWTH_POOL, GrowthPool
from growth.api.kinds import Json
from growth.api.pods import POD
from growth.controllers.pools.unserved import UnservedPools
from tests.manifests import growth_pool, pod
from tests.simulation import buying
from tests.simulation.buying import Buyer, claims, staged
from tests.simulation.owning import Stage, on_stage

TYPE = {"name": "c-2x-amd64-linux", "max": 3}


async def seen(stage: Stage, name: str = "default") -> GrowthPool:
    return await stage.admin.get(GROWTH_POOL, name)


def test_a_growth_pool_says_that_nobody_serves_it() -> None:
    """One write for a new pool and one for each change of what it has; none after that."""

    async def body(stage: Stage) -> None:
        await stage.start(UnservedPools(stage.env))
        await stage.admin.create(GROWTH_POOL, growth_pool("default", TYPE, limits={"nodes": 1}))
        await asyncio.sleep(1)
        (ready,) = (await seen(stage)).status.conditions
        assert (ready.type, ready.status, ready.reason) == ("Ready", "False", "NotServed")
        assert "make a NodePool of karpenter.sh/v1" in ready.message
        await stage.add_claim(labels={names.POOL_LABEL: "default"})
        await asyncio.sleep(10)
        assert (await seen(stage)).status.nodes == 1
        await asyncio.sleep(3600)
        assert stage.writes() == 2

    on_stage(body)


def test_a_growth_pool_that_changes_tells_of_the_new_generation() -> None:
    """Who waits for the condition to be of today sees that it is."""

    async def body(stage: Stage) -> None:
        await stage.start(UnservedPools(stage.env))
        await stage.admin.create(GROWTH_POOL, growth_pool("default", TYPE))
        await asyncio.sleep(10)
        change: Json = {"spec": {"scaleDownAfter": "1h"}}
        await stage.admin.patch(GROWTH_POOL, "default", change)
        await asyncio.sleep(10)
        (ready,) = (await seen(stage)).status.conditions
        assert ready.observed_generation == (await seen(stage)).metadata.generation == 2

    on_stage(body)


def test_pods_of_a_growth_pool_are_told_and_others_are_served() -> None:
    """A pod that asks for the growth pool waits with the reason; one that does not gets its machine elsewhere."""

    async def body(stage: buying.Stage) -> None:
        await stage.begin()
        await stage.add_pool()
        await stage.admin.create(GROWTH_POOL, growth_pool("default", TYPE))
        Buyer(stage, stage.environment())
        mine = pod("mine", nodeSelector={names.POOL_LABEL: "default"})
        await stage.admin.create(POD, mine, namespace="default")
        await stage.admin.create(POD, pod("other"), namespace="default")
        await asyncio.sleep(30)
        assert len(await claims(stage)) == 1
        (said,) = await buying.told(stage, names.FAILED_SCHEDULING)
        assert "NodePool growth.dev/default: growth run does not serve pools of growth.dev yet" in said

    staged(body)


def test_a_cluster_with_growth_pools_alone_buys_nothing() -> None:
    """Pods say why, and no claim is made."""

    async def body(stage: buying.Stage) -> None:
        await stage.begin()
        await stage.admin.create(GROWTH_POOL, growth_pool("default", TYPE))
        Buyer(stage, stage.environment())
        await stage.admin.create(POD, pod("any"), namespace="default")
        await asyncio.sleep(30)
        assert await claims(stage) == []
        (said,) = await buying.told(stage, names.FAILED_SCHEDULING)
        assert "growth run does not serve pools of growth.dev yet" in said

    staged(body)
