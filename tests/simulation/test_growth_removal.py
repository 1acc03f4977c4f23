"""Scale-down of growth pools, with the whole autoscaler."""

import asyncio

import pytest

from growth.api import names
from growth.api.growthpools import GROWTH_POOL, NODE_REMOVAL_REQUEST
from growth.api.workloads import DEPLOYMENT
from tests.manifests import growth_pool
from tests.simulation.growing import Growing, growing

QUICK = growth_pool("default", {"name": "cax11", "max": 10}, {"name": "CAX21", "min": 1, "max": 5}, scaleDownAfter="1m")


async def scale(cluster: Growing, replicas: int) -> None:
    await cluster.admin.patch(DEPLOYMENT, "web", {"spec": {"replicas": replicas}}, namespace="default")


def test_scale_down_removes_all_but_the_minimum() -> None:
    """Empty nodes are marked, and gone after `scaleDownAfter`; the machine that `min` keeps is never marked."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(QUICK)
        await cluster.deploy("web", 10)
        await cluster.running(10)
        await scale(cluster, 0)

        async def one_is_left() -> bool:
            kept = [each for each in await cluster.nodes() if not each.spec.taints]
            assert kept, "the minimum was marked too"
            return await cluster.types() == ["cax21"] and not await cluster.removals()

        await cluster.until(one_is_left)
        await asyncio.sleep(600)
        assert await cluster.types() == ["cax21"]
        (node,) = await cluster.nodes()
        assert not node.spec.taints
        assert names.SCALE_DOWN_AT_ANNOTATION not in node.metadata.annotations

    growing(body)


def test_a_pending_pod_that_would_fit_cancels_a_scale_down() -> None:
    """The marked node is used before another is bought."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax21", "max": 5}, scaleDownAfter="10m"))
        await cluster.deploy("web", 3)
        await cluster.running(3)
        (before,) = await cluster.claims()
        await scale(cluster, 0)
        await cluster.until(lambda: _marked(cluster))
        await scale(cluster, 3)
        await cluster.running(3)
        (after,) = await cluster.claims()
        assert after.metadata.uid == before.metadata.uid
        assert not (await cluster.nodes())[0].spec.taints
        assert await cluster.told(names.SCALE_DOWN_CANCELLED) != []

    growing(body)


async def _marked(cluster: Growing) -> bool:
    return any(names.SCALE_DOWN_AT_ANNOTATION in each.metadata.annotations for each in await cluster.nodes())


def test_a_lowered_limit_brings_the_surplus_down() -> None:
    """Past `min` and with pods that move; no more than the surplus goes."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax21", "min": 3, "max": 5}))

        async def has(number: int) -> bool:
            return len(await cluster.claims()) == number and not await cluster.removals()

        await cluster.until(lambda: has(3))
        await cluster.deploy("web", 1)
        await cluster.running(1)
        await cluster.admin.patch(GROWTH_POOL, "default", {"spec": {"limits": {"nodes": 1}}})
        await cluster.until(lambda: has(1))
        await cluster.running(1)
        await asyncio.sleep(300)
        assert len(await cluster.claims()) == 1

    growing(body)


def test_a_machine_that_is_not_ready_in_time_goes() -> None:
    """The request says why, hands over to a NodeRemovalRequest and is gone; pods get another machine."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax21", "max": 2}, {"name": "cax31", "max": 1}))
        await cluster.faults(neverReady="cax21")
        await cluster.deploy("web", 1)

        async def handed_over() -> bool:
            return [each.spec.reason for each in await cluster.removals()] == ["NotReady"]

        await cluster.until(handed_over, seconds=900)
        await cluster.no_faults()
        await cluster.running(1, seconds=900)

        async def one_is_left() -> bool:
            return len(await cluster.claims()) == 1 and not await cluster.removals()

        await cluster.until(one_is_left)

    growing(body)


@pytest.mark.parametrize("word", ["nodeName", "nodeClaimName"])
def test_a_removal_that_people_ask_for_empties_the_node_once(word: str) -> None:
    """Whether they name the Node or the claim: nobody takes the mark off meanwhile, and no pod comes back to the node."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax21", "max": 5}))
        await cluster.deploy("web", 2)
        await cluster.running(2)
        (claim,) = await cluster.claims()
        name = {"nodeName": claim.status.node_name, "nodeClaimName": claim.metadata.name}[word]
        asked = {"metadata": {"name": "by-hand"}, "spec": {"reason": "NotReady", word: name}}
        await cluster.admin.create(NODE_REMOVAL_REQUEST, asked)

        async def is_gone() -> bool:
            gone = all(each.metadata.uid != claim.metadata.uid for each in await cluster.claims())
            return gone and not await cluster.removals()

        await cluster.until(is_gone)
        await cluster.running(2)
        assert len(await cluster.told(names.EVICTED)) == 2
        assert await cluster.told(names.SCALE_DOWN_CANCELLED) == []

    growing(body)
