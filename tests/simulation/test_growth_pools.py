"""What growth pools say of themselves, and how they stand beside Karpenter's."""

import asyncio

import pytest

from growth.api import names
from growth.api.growthpools import GROWTH_POOL, NODE_REQUEST, GrowthPool
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Json
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.api.pods import POD
from tests.manifests import growth_pool, node_pool, pod
from tests.simulation.growing import GPU, Growing, growing


async def conditions(cluster: Growing, name: str = "default") -> dict[str, tuple[str, str, str]]:
    pool: GrowthPool = await cluster.admin.get(GROWTH_POOL, name)
    return {each.type: (each.status, each.reason, each.message) for each in pool.status.conditions}


async def said(cluster: Growing, body: Json) -> dict[str, tuple[str, str, str]]:
    """The conditions of a new pool."""
    await cluster.pool(body)
    await asyncio.sleep(10)
    return await conditions(cluster, body["metadata"]["name"])


def test_a_pool_is_ready_and_counts_type_by_type() -> None:
    """Names in any case are one type; the status names them in lower case."""

    async def body(cluster: Growing) -> None:
        told = await said(cluster, growth_pool("default", {"name": "CaX21", "min": 2, "max": 5}))
        assert told["Ready"][0] == "True"
        await asyncio.sleep(30)
        pool = await cluster.admin.get(GROWTH_POOL, "default")
        assert pool.status.nodes == 2
        (line,) = pool.status.server_types
        assert (line.name, line.ready, line.in_flight, line.unmet_until) == ("cax21", 2, 0, None)

    growing(body)


def test_what_is_missing_to_the_minimum_is_asked_for_at_once() -> None:
    """Also while the status, written a moment ago, is not to be written again; and the status follows."""

    async def body(cluster: Growing) -> None:
        async def wanting(least: int) -> int:
            types = [{"name": "CaX21", "min": least, "max": 9}]
            await cluster.admin.patch(GROWTH_POOL, "default", {"spec": {"serverTypes": types}})
            await asyncio.sleep(2)
            return len((await cluster.admin.list(NODE_REQUEST)).items)

        await cluster.pool(growth_pool("default", {"name": "CaX21", "min": 1, "max": 9}))
        await asyncio.sleep(30)
        assert [await wanting(least) for least in (2, 3, 5)] == [2, 3, 5]
        await asyncio.sleep(90)  # until nobody's name is reserved any more
        pool = await cluster.admin.get(GROWTH_POOL, "default")
        assert [(line.ready, line.in_flight) for line in pool.status.server_types] == [(5, 0)]
        (gone, *_) = (await cluster.admin.list(NODE_CLAIM)).items
        await cluster.admin.delete(NODE_CLAIM, gone.metadata.name)
        await asyncio.sleep(15)
        left = {each.metadata.name for each in (await cluster.admin.list(NODE_CLAIM)).items}
        assert len(left) == 5
        assert gone.metadata.name not in left

    growing(body)


def test_a_type_that_is_no_longer_sold_names_its_successor() -> None:
    """CX31 and CX32 are no longer orderable: the condition says CX33, and the rest of the pool works."""

    async def body(cluster: Growing) -> None:
        types = ({"name": "CX31", "max": 1}, {"name": "CX33", "max": 1}, {"name": "CX99", "max": 1})
        told = await said(cluster, growth_pool("default", *types))
        status, reason, message = told[names.SERVER_TYPES_ORDERABLE]
        assert (status, reason) == ("True", "NoLongerOrderable")
        assert "CX31 can no longer be ordered from hetzner: use CX33" in message
        assert "hetzner sells no server type CX99" in message
        assert told["Ready"][0] == "True"
        nothing = await said(cluster, growth_pool("old", {"name": "CX32", "max": 1}))
        assert nothing[names.SERVER_TYPES_ORDERABLE][:2] == ("False", "NoLongerOrderable")
        assert nothing["Ready"][0] == "False"

    growing(body)


def test_a_missing_node_class_is_named() -> None:
    """Without nodeClassRef it is the provider's class `default`; nothing is bought while it is not there."""

    async def body(cluster: Growing) -> None:
        await cluster.admin.delete(KWOK_NODE_CLASS, "default")
        told = await said(cluster, growth_pool("default", {"name": "cax21", "min": 1, "max": 5}))
        status, reason, message = told[names.NODE_CLASS_READY]
        assert (status, reason) == ("False", names.NODE_CLASS_NOT_FOUND)
        assert "KWOKNodeClass default does not exist: create it" in message
        assert await cluster.requests() == []
        await cluster.admin.create(KWOK_NODE_CLASS, {"metadata": {"name": "default"}})
        await cluster.until(lambda: _has_types(cluster, ["cax21"]))
        foreign = {"group": "growth.dev", "kind": "HetznerNodeClass", "name": "x"}
        other = await said(cluster, growth_pool("other", {"name": "cax21", "min": 1, "max": 5}, nodeClassRef=foreign))
        assert other[names.NODE_CLASS_READY][:2] == ("False", "NodeClassNotServed")

    growing(body)


def test_a_node_class_that_is_not_ready_is_waited_for() -> None:
    """The pool says what the class says, nothing is bought until it is ready, and then it is."""

    async def body(cluster: Growing) -> None:
        await _class_says(cluster, "False", "its image does not exist")
        told = await said(cluster, growth_pool("default", {"name": "cax21", "min": 1, "max": 5}))
        status, _, message = told[names.NODE_CLASS_READY]
        assert (status, message) == ("False", "its image does not exist")
        assert told["Ready"][0] == "False"
        await cluster.deploy("web", 1)
        await asyncio.sleep(60)
        assert await cluster.claims() == []
        await _class_says(cluster, "True", "")
        await cluster.running(1)
        assert (await conditions(cluster))[names.NODE_CLASS_READY][0] == "True"

    growing(body)


async def _class_says(cluster: Growing, status: str, message: str) -> None:
    ready = {"type": "Ready", "status": status, "reason": "Checked", "message": message}
    body = {"status": {"conditions": [{**ready, "lastTransitionTime": "2030-01-07T08:00:00Z"}]}}
    await cluster.admin.patch(KWOK_NODE_CLASS, "default", body, subresource="status")


async def _has_types(cluster: Growing, types: list[str]) -> bool:
    return await cluster.types() == types


def test_pods_without_an_architecture_get_that_of_the_first_type() -> None:
    """A condition says so; a pod that names the other architecture gets it."""

    async def body(cluster: Growing) -> None:
        types = ({"name": "cax21", "max": 5}, {"name": "cx33", "max": 5})
        told = await said(cluster, growth_pool("default", *types))
        status, reason, message = told[names.ONE_ARCHITECTURE]
        assert (status, reason) == ("False", "SeveralArchitectures")
        assert "get arm64" in message
        await cluster.deploy("any", 1)
        await cluster.running(1)
        assert await cluster.types() == ["cax21"]
        await cluster.deploy("intel", 1, nodeSelector={names.ARCH_LABEL: "amd64"})
        await cluster.running(2)
        assert await cluster.types() == ["cax21", "cx33"]

    growing(body)


def test_greater_priority_is_bought_first() -> None:
    """A lower type comes only when no higher one can hold the pod: here because its max is reached."""

    async def body(cluster: Growing) -> None:
        types = ({"name": "cax31", "max": 1, "priority": 10}, {"name": "cax11", "max": 5})
        await cluster.pool(growth_pool("default", *types))
        await cluster.deploy("web", 8, cpu="900m")
        await cluster.running(8)
        assert await cluster.types() == ["cax31"]
        await cluster.deploy("more", 2, cpu="900m")
        await cluster.running(10)
        assert (await cluster.types())[0] == "cax11"

    growing(body)


def test_what_pods_need_of_a_place_stands_in_the_request() -> None:
    """A pod for one zone gets a machine there and no second one; a pod without such a wish leaves the place open."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax11", "max": 5}))
        await cluster.deploy("there", 1, nodeSelector={names.ZONE_LABEL: "hel1"})
        await cluster.running(1)
        (request,) = await cluster.requests()
        assert [(each.key, each.values) for each in request.spec.requirements] == [(names.ZONE_LABEL, ("hel1",))]
        (claim,) = await cluster.claims()
        assert claim.metadata.labels[names.ZONE_LABEL] == "hel1"
        await cluster.deploy("any", 1, cpu="1500m")
        await cluster.running(2)
        assert [each for each in await cluster.requests() if not each.spec.requirements] != []

    growing(body)


def test_the_claim_is_the_pools_and_names_its_request() -> None:
    """Owner from its first moment, exactly one type, no expiry, no NodePool of Karpenter's; the Node carries the label."""

    async def body(cluster: Growing) -> None:
        pool = await cluster.pool(
            growth_pool("default", {"name": "cax11", "max": 5}, template={"labels": {"team": "a"}})
        )
        await cluster.deploy("web", 1)
        await cluster.running(1)
        (claim,), (request,), (node,) = await cluster.claims(), await cluster.requests(), await cluster.nodes()
        assert [(each.kind, each.uid) for each in claim.metadata.owner_references] == [("NodePool", pool.metadata.uid)]
        assert [(each.kind, each.uid) for each in request.metadata.owner_references] == [
            ("NodePool", pool.metadata.uid)
        ]
        assert request.metadata.name.startswith("default-pool-")
        assert request.status.node_claim_name == claim.metadata.name
        assert request.status.node_id == claim.status.provider_id
        assert claim.spec.expire_after == "Never"
        listed = [each.values for each in claim.spec.requirements if each.key == names.INSTANCE_TYPE_LABEL]
        assert listed == [("cax11",)]
        assert names.NODE_POOL_LABEL not in claim.metadata.labels
        assert node.metadata.labels[names.POOL_LABEL] == "default"
        assert node.metadata.labels["team"] == "a"

    growing(body)


def test_karpenters_pools_are_asked_first_and_the_default_pool_after_them() -> None:
    """A pod for nobody in particular goes to Karpenter's pool while that can hold it, one that names ours to ours."""

    async def body(cluster: Growing) -> None:
        await cluster.admin.create(NODE_POOL, node_pool("theirs", limits={"nodes": "1"}))
        await cluster.pool(growth_pool("default", {"name": "cax31", "max": 5}))
        await cluster.admin.create(POD, pod("any", cpu="1"), namespace="default")
        await cluster.running(1)
        (first,) = await cluster.claims()
        assert first.metadata.labels[names.NODE_POOL_LABEL] == "theirs"
        ours = pod("ours", cpu="1", nodeSelector={names.POOL_LABEL: "default"})
        await cluster.admin.create(POD, ours, namespace="default")
        await cluster.running(2)
        assert len(await cluster.requests()) == 1
        await cluster.deploy("large", 1, cpu="6")
        await cluster.running(3)

    growing(body)


def test_the_pool_of_graphics_machines_runs() -> None:
    """A type that people own is had by the pool that names it, and by nobody else."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(GPU)
        asks = pod("gpu", cpu="1", requests={"nvidia.com/gpu": "1"}, nodeSelector={names.POOL_LABEL: "gpu"})
        await cluster.admin.create(POD, asks, namespace="default")
        await cluster.running(1)
        assert await cluster.types() == ["gex44"]

    growing(body)


@pytest.mark.parametrize("offering", ["hetzner-cx99", "linode-cax11"])
def test_a_request_for_what_nobody_sells_stays_pending_and_says_why(offering: str) -> None:
    """Made by hand: it becomes the pool's, and its story says what is wrong."""

    async def body(cluster: Growing) -> None:
        await cluster.pool(growth_pool("default", {"name": "cax11", "max": 5}))
        made = {"metadata": {"name": "mine"}, "spec": {"targetOffering": offering, "pool": "default"}}
        await cluster.admin.create(NODE_REQUEST, made)
        await asyncio.sleep(120)
        (request,) = await cluster.requests()
        assert request.status.phase == "Pending"
        assert [each.name for each in request.status.events] == ["nodeRequested", "nodeRequestFailed"]
        assert request.status.events[1].reason == f"{offering} is no offering of hetzner"
        assert await cluster.claims() == []

    growing(body)


def test_a_request_made_by_hand_is_fulfilled_within_the_pools_bounds() -> None:
    """People may ask themselves; beyond `max` the request goes, and the pool's events say why."""

    async def body(cluster: Growing) -> None:
        pool = await cluster.pool(growth_pool("default", {"name": "cax11", "max": 1}, scaleDownAfter="1h"))
        for name in ("first", "second"):
            made = {"metadata": {"name": name}, "spec": {"targetOffering": "hetzner-cax11", "pool": "default"}}
            await cluster.admin.create(NODE_REQUEST, made)
            await asyncio.sleep(60)
        (request,) = await cluster.requests()
        assert (request.metadata.name, request.status.phase) == ("first", "Ready")
        assert [each.uid for each in request.metadata.owner_references] == [pool.metadata.uid]
        assert any("max 1 of type cax11" in each for each in await cluster.told(names.NODE_NOT_COMING))

    growing(body)
