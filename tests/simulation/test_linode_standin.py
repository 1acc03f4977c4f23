"""The stand-in for kubelets of a fake's machines: Nodes come with claimed machines and go with them."""

import asyncio

import pytest

from growth.api import names
from growth.api.karpenter import NODE_CLAIM
from growth.api.nodes import NODE
from growth.providers.linode.standin import StandIn
from tests.conformance.providers.stages import OURS, LkeStage, on
from tests.simulation.test_linode_pools import gone, made


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
        reference = {"group": stage.node_class.group, "kind": stage.node_class.kind, "name": "default"}
        need = {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [stage.types[0]]}
        spec = {
            "nodeClassRef": reference,
            "requirements": [need],
            "taints": [{"key": "example.com/own", "effect": "NoSchedule"}],
        }
        await stage.admin.create(NODE_CLAIM, {"metadata": {"name": "web-1"}, "spec": spec})
        wanted = await stage.admin.get(NODE_CLAIM, "web-1")
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
