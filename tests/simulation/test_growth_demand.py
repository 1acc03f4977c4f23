"""Pools of growth.dev from demand to nodes, with the whole autoscaler."""

import asyncio

from growth.api.growthpools import GROWTH_POOL
from tests.manifests import growth_pool
from tests.simulation.growing import Growing, growing


def test_pods_get_machines_of_the_pool_and_the_minimum_is_warm() -> None:
    """`min` comes without load; pods that fit there cost nothing, the others get the cheapest mix of the types."""

    async def body(cluster: Growing) -> None:
        await cluster.pool()
        await asyncio.sleep(30)
        assert await cluster.types() == ["cax21"]
        await cluster.deploy("web", 6)
        await cluster.running(6)
        assert await cluster.types() == ["cax21", "cax21"]
        assert {each.status.phase for each in await cluster.requests()} == {"Ready"}

    growing(body)


def test_a_type_without_stock_is_unmet_planned_around_and_bought_again_later() -> None:
    """Its request says so before the claim goes; pods get another type with the next plan; after the TTL it is asked again."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax11", "max": 10}, {"name": "cax31", "max": 1}))
        await cluster.faults(noCapacity="cax11/*/*")
        await cluster.deploy("web", 1)
        await cluster.running(1)
        assert await cluster.types() == ["cax31"]
        (unmet,) = [each for each in await cluster.requests() if each.status.phase == "Unmet"]
        assert unmet.spec.target_offering == "hetzner-cax11"
        assert [each.name for each in unmet.status.events] == ["nodeRequested", "nodeRequestFailed"]
        assert unmet.status.unmet_until is not None
        await asyncio.sleep(10)
        pool = await cluster.admin.get(GROWTH_POOL, "default")
        assert pool.status.server_types[0].unmet_until == unmet.status.unmet_until
        await cluster.no_faults()
        await cluster.deploy("more", 12)
        await asyncio.sleep(300)
        assert await cluster.types() == ["cax31"]
        await cluster.running(13, seconds=600)
        assert set(await cluster.types()) == {"cax11", "cax31"}

    growing(body)
