"""Pools of growth.dev from demand to nodes, with the whole autoscaler."""

import asyncio

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
