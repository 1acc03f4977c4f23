"""Pods of growth pools that nothing can hold: told, looked at less and less, left out, and back when it may help."""

import asyncio

import pytest

from growth.api import names
from growth.api.growthpools import GROWTH_POOL
from growth.api.pods import POD
from tests.manifests import growth_pool, pod
from tests.simulation.growing import Growing, growing

SMALL = growth_pool("default", {"name": "cax11", "max": 10})


async def marked(cluster: Growing) -> int:
    return sum(names.BACK_OFF_ANNOTATION in each.metadata.annotations for each in await cluster.pods())


def test_a_pod_that_nothing_can_hold_is_marked_and_comes_back_when_the_pool_changes() -> None:
    """Three passes, then longer and longer rests, then the mark and its event; a change of the pool takes it off."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.deploy("large", 3, cpu="6")
        await asyncio.sleep(60)
        assert await marked(cluster) == 0
        assert any("cpu" in each for each in await cluster.told(names.FAILED_SCHEDULING))

        async def all_are_marked() -> bool:
            return await marked(cluster) == 3

        await cluster.until(all_are_marked, seconds=1800)
        assert len(await cluster.told(names.BACK_OFF)) == 3
        types = [{"name": "cax11", "max": 10}, {"name": "cax31", "max": 3}]
        await cluster.admin.patch(GROWTH_POOL, "default", {"spec": {"serverTypes": types}})
        await cluster.running(3)
        assert await marked(cluster) == 0

    growing(body)


def test_pods_that_are_all_in_back_off_come_back_when_a_type_can_be_had_again() -> None:
    """When the time of the unmet type is over one of them is planned for; its machine brings back the others."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.faults(noCapacity="cax11/*/*")
        await cluster.deploy("web", 8)

        async def all_are_marked() -> bool:
            return await marked(cluster) == 8

        await cluster.until(all_are_marked, seconds=7200)
        await cluster.no_faults()
        await cluster.running(8, seconds=1200)
        assert await marked(cluster) == 0

    growing(body)


def test_marked_pods_survive_a_restart_and_come_back_after_it() -> None:
    """The mark is in the cluster: the next process leaves them out too, and finds out by itself that a type is back."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(SMALL)
        await cluster.faults(noCapacity="cax11/*/*")
        await cluster.deploy("web", 8)

        async def all_are_marked() -> bool:
            return await marked(cluster) == 8

        await cluster.until(all_are_marked, seconds=7200)
        process = cluster.replica.process
        assert process is not None
        process.crash()
        await cluster.no_faults()
        await cluster.running(8, seconds=1200)

    growing(body)


@pytest.mark.parametrize(
    ("selector", "pools", "reason"),
    [
        ({}, [], names.NO_NODE_POOL),
        ({}, ["other"], names.NO_NODE_POOL),
        ({"growth.dev/pool": "web"}, ["default"], names.NODE_POOL_NOT_FOUND),
        ({"growth.dev/pool": "web"}, [], names.NODE_POOL_NOT_FOUND),
    ],
)
def test_a_pod_without_a_pool_is_told_so(selector: dict[str, str], pools: list[str], reason: str) -> None:
    """No pool asked for and no default: `NoNodePool`. One that does not exist: `NodePoolNotFound`. Nothing is bought."""

    async def body(cluster: Growing) -> None:
        for name in pools:
            await cluster.pool(growth_pool(name, {"name": "cax11", "max": 10}))
        await cluster.admin.create(POD, pod("lone", nodeSelector=selector), namespace="default")
        await asyncio.sleep(30)
        assert len(await cluster.told(reason)) == 1
        assert await cluster.claims() == []

    growing(body)
