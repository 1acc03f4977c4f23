"""The stand-in for kubelets of a fake's machines: Nodes come with claimed machines and go with them."""

import asyncio
from typing import Any

import pytest

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.nodes import NODE
from growth.providers.linode.standin import StandIn
from tests.conformance.providers.stages import OURS, LkeStage, on
from tests.simulation.test_linode_pools import gone, made


async def claimed(stage: LkeStage, name: str, **spec: Any) -> NodeClaim:
    """A claim that is in the cluster."""
    reference = {"group": stage.node_class.group, "kind": stage.node_class.kind, "name": "default"}
    need = {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [stage.types[0]]}
    body = {"metadata": {"name": name}, "spec": {"nodeClassRef": reference, "requirements": [need], **spec}}
    await stage.admin.create(NODE_CLAIM, body)
    return await stage.admin.get(NODE_CLAIM, name)


@pytest.mark.parametrize(
    ("cloud", "taints"),
    [
        ("lke", {"example.com/own"}),
        ("lke-enterprise", {"example.com/own"}),
        ("linode-instances", {"example.com/own", "karpenter.sh/unregistered"}),
    ],
)
def test_a_node_comes_and_goes_with_its_machine(cloud: str, taints: set[str]) -> None:
    """Under the machine's label, with its provider ID; unclaimed capacity gets none."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        wanted = await claimed(stage, "web-1", taints=[{"key": "example.com/own", "effect": "NoSchedule"}])
        running = stage.kernel.create_task(
            StandIn(stage.admin, provider, cluster=OURS, clock=stage.clock).run(), name="stand-in"
        )
        machine = await made(provider, wanted)
        for pool in stage.fake.account.pools.values():
            stage.fake.account.scale(pool, 2)
        await asyncio.sleep(120)
        (node,) = (await stage.admin.list(NODE)).items
        assert node.spec.provider_id == machine.provider_id
        assert node.metadata.labels[names.INSTANCE_TYPE_LABEL] == stage.types[0]
        assert {taint.key for taint in node.spec.taints} >= taints
        assert ("karpenter.sh/unregistered" in {taint.key for taint in node.spec.taints}) == (len(taints) == 2)
        assert provider.guards_nodes == (len(taints) == 2)
        await gone(provider, wanted)
        await asyncio.sleep(60)
        assert not (await stage.admin.list(NODE)).items
        running.cancel()

    on(cloud, body)


TAINTS = [{"key": "example.com/kept", "effect": "NoSchedule"}, {"key": "example.com/gone", "effect": "NoSchedule"}]


@pytest.mark.parametrize("cloud", ["lke", "lke-enterprise"])
def test_a_taint_that_a_pool_no_longer_asks_for_is_not_on_new_nodes(cloud: str) -> None:
    """Nodes come with the taints of their LKE pool, and what a claim lacks is taken from it. Nothing is added to a pool that
    stands, and startup taints leave it: LKE would put them on nodes that are in use.
    """

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        running = stage.kernel.create_task(
            StandIn(stage.admin, provider, cluster=OURS, clock=stage.clock).run(), name="stand-in"
        )
        start = [{"key": "example.com/starts", "effect": "NoSchedule"}]
        await made(provider, await claimed(stage, "old", taints=TAINTS, startupTaints=start))
        (pool,) = stage.fake.account.pools.values()
        assert [taint["key"] for taint in pool.taints] == ["example.com/kept", "example.com/gone", "example.com/starts"]
        more = [TAINTS[0], {"key": "example.com/new", "effect": "NoExecute"}]
        machine = await made(provider, await claimed(stage, "new", taints=more, startupTaints=start))
        assert [taint["key"] for taint in pool.taints] == ["example.com/kept"]
        await asyncio.sleep(120)
        nodes = {node.spec.provider_id: node for node in (await stage.admin.list(NODE)).items}
        assert "example.com/kept" in {taint.key for taint in nodes[machine.provider_id].spec.taints}
        assert "example.com/gone" not in {taint.key for taint in nodes[machine.provider_id].spec.taints}
        await made(provider, await claimed(stage, "next", taints=more, startupTaints=start))
        assert (pool.count, [taint["key"] for taint in pool.taints]) == (3, ["example.com/kept"])
        running.cancel()

    on(cloud, body)
