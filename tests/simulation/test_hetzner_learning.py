"""A pod that fits what is advertised and not what is there: the autoscaler learns, and does not buy one machine after the other."""

import asyncio

from growth.api import names
from growth.api.kinds import Json
from growth.api.pods import POD
from growth.sim.world.world import World
from tests.manifests import pod
from tests.simulation.vendors import in_world

# Of 8 GiB 93 % are reckoned with at first, and a kubelet leaves 91 %.
TOO_MUCH = "7500Mi"
POOL: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "general"},
    "spec": {
        "disruption": {"consolidateAfter": "Never"},
        "template": {
            "spec": {
                "nodeClassRef": {"group": "growth.dev", "kind": "HetznerNodeClass", "name": "default"},
                "requirements": [{"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": ["cx33", "cx43"]}],
                "expireAfter": "Never",
            }
        },
    },
}


def big(name: str) -> Json:
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": TOO_MUCH}}
    return made


async def phase(world: World, name: str) -> str:
    return (await world.admin.get(POD, name, namespace="default")).status.phase


def test_a_pod_that_fits_only_the_advertised_size_costs_one_machine_too_many_and_no_more() -> None:
    """The first machine is too small; the next is larger, and the next pod of that size gets such a one at once, also from an
    autoscaler that was restarted.
    """

    async def body(world: World) -> None:
        half = world.hetzner
        assert half is not None

        def bought() -> list[str]:
            return [each.type for each in half.fake.ledger.purchases]

        await world.create([POOL])
        await asyncio.sleep(60)
        await world.create([big("first")])
        await asyncio.sleep(900)
        assert await phase(world, "first") == "Running"
        assert bought() == ["cx33", "cx43"]
        for replica in world.replicas:
            assert replica.process is not None
            replica.process.crash()
        await world.create([big("second")])
        await asyncio.sleep(900)
        assert await phase(world, "second") == "Running"
        assert bought() == ["cx33", "cx43", "cx43"]

    in_world("hetzner", body)
