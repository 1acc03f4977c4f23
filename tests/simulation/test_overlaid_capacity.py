"""A resource that the cloud does not know and an overlay promises, as device plugins need it."""

import asyncio

from growth.api import names
from growth.api.conditions import find, is_true
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.nodes import NODE
from growth.api.overlays import NODE_OVERLAY
from growth.api.pods import POD
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.replica import Replica
from growth.sim.trials.owning.stage import Pool, Stage
from tests.manifests import pod

DONGLE = "example.com/dongle"


def test_a_machine_is_bought_for_a_resource_that_only_an_overlay_knows() -> None:
    """One claim is made and launched; it is initialised when the Node has the resource, and the pod runs there."""

    async def main(kernel: Kernel) -> None:
        stage = Stage(kernel)
        await stage.prepare(Pool())
        await stage.admin.create(
            NODE_OVERLAY, {"metadata": {"name": "dongles"}, "spec": {"requirements": [], "capacity": {DONGLE: "2"}}}
        )
        Replica(kernel, stage.cluster.server).start()
        await stage.admin.create(POD, pod("p", requests={DONGLE: "1"}), namespace="default")
        await asyncio.sleep(60)
        claim = await only_claim(stage)
        assert is_true(claim.status.conditions, names.REGISTERED)
        waits = find(claim.status.conditions, names.INITIALIZED)
        assert waits is not None
        assert waits.reason == "ResourceNotRegistered"
        room = {"capacity": {DONGLE: "2"}, "allocatable": {DONGLE: "2"}}
        await stage.admin.patch(NODE, claim.status.node_name, {"status": room}, subresource="status")
        await asyncio.sleep(60)
        assert is_true((await only_claim(stage)).status.conditions, names.INITIALIZED)
        assert (await stage.pods())[0].spec.node_name == claim.status.node_name

    sim.run(main, seed=1, limit_seconds=100_000)


async def only_claim(stage: Stage) -> NodeClaim:
    (claim,) = (await stage.admin.list(NODE_CLAIM)).items
    return claim
