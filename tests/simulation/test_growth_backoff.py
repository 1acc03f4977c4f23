"""Pods of growth pools that nothing can hold: told, looked at less and less, left out, and back when it may help."""

import asyncio

from growth.api import names
from growth.api.events import EVENT, WARNING
from growth.api.growthpools import GROWTH_POOL
from growth.sim.network import Faults
from tests.manifests import growth_pool
from tests.simulation.growing import Growing, growing

SMALL = growth_pool("default", {"name": "cax11", "max": 10})


async def marked(cluster: Growing) -> int:
    return sum(names.BACK_OFF_ANNOTATION in each.metadata.annotations for each in await cluster.pods())


async def all_in_back_off(cluster: Growing) -> None:
    """Eight pods of a pool whose one type the cloud has none of, marked."""
    await cluster.pool(SMALL)
    await cluster.faults(noCapacity="cax11/*/*")
    await cluster.deploy("web", 8)

    async def all_are_marked() -> bool:
        return await marked(cluster) == 8

    await cluster.until(all_are_marked, seconds=7200)


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
        events = [each for each in (await cluster.admin.list(EVENT)).items if each.reason == names.BACK_OFF]
        assert [each.type for each in events] == [WARNING] * 3
        types = [{"name": "cax11", "max": 10}, {"name": "cax31", "max": 3}]
        await cluster.admin.patch(GROWTH_POOL, "default", {"spec": {"serverTypes": types}})
        await cluster.running(3)
        assert await marked(cluster) == 0

    growing(body)


def test_a_mark_that_meets_a_conflict_is_set_a_moment_later() -> None:
    """It, and what is told with it: a pod that plans leave out must say so."""

    async def body(cluster: Growing) -> tuple[int, int]:
        cluster.replica.faults = Faults(conflict=0.5)
        await cluster.pool(SMALL)
        await cluster.deploy("large", 8, cpu="6")
        await asyncio.sleep(1800)
        return await marked(cluster), len(await cluster.told(names.BACK_OFF))

    assert growing(body).value == (8, 8)


def test_pods_that_are_all_in_back_off_come_back_when_a_type_can_be_had_again() -> None:
    """When the time of the unmet type is over one of them is planned for; its machine brings back the others."""

    async def body(cluster: Growing) -> None:
        await all_in_back_off(cluster)
        await cluster.no_faults()
        await cluster.running(8, seconds=1200)
        assert await marked(cluster) == 0

    growing(body)


def test_marked_pods_survive_a_restart_and_come_back_after_it() -> None:
    """The mark is in the cluster: the next process leaves them out too, and finds out by itself that a type is back."""

    async def body(cluster: Growing) -> None:
        await all_in_back_off(cluster)
        process = cluster.replica.process
        assert process is not None
        process.crash()
        await cluster.no_faults()
        await cluster.running(8, seconds=1200)

    growing(body)
