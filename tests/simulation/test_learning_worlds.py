"""A pod that fits what is advertised and not what is there: the autoscaler learns, and does not buy one machine after the other."""

import asyncio

import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.api.pods import POD
from growth.sim.world import hetzner, linode
from growth.sim.world.world import World
from tests.manifests import pod
from tests.simulation.vendors import in_world

# Of 8 GiB a little more than nine tenths is reckoned with at first, and a kubelet leaves 91 %.
TOO_MUCH = "7500Mi"
LEFT_PERCENT = 91
HETZNER: Json = {"group": "growth.dev", "kind": "HetznerNodeClass", "name": "default"}
LINODE: Json = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}


def pool(reference: Json, *types: str) -> Json:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "general"},
        "spec": {
            "disruption": {"consolidateAfter": "Never"},
            "template": {
                "spec": {
                    "nodeClassRef": reference,
                    "requirements": [{"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": list(types)}],
                    "expireAfter": "Never",
                }
            },
        },
    }


POOL = pool(HETZNER, "cx33", "cx43")


def big(name: str) -> Json:
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": TOO_MUCH}}
    return made


async def phase(world: World, name: str) -> str:
    return (await world.admin.get(POD, name, namespace="default")).status.phase


@pytest.mark.parametrize(
    ("provider", "settings", "reference", "types"),
    [
        ("hetzner", {}, HETZNER, ("cx33", "cx43")),
        ("linode", {"linodeCluster": "standard"}, LINODE, ("g6-standard-4", "g6-standard-6")),
        ("linode", {"linodeCluster": "enterprise"}, LINODE, ("g6-standard-4", "g6-standard-6")),
        ("linode", {"linodeRegion": "us-east"}, LINODE, ("g6-standard-4", "g6-standard-6")),
    ],
    ids=["hetzner", "lke", "lke-enterprise", "linode-instances"],
)
def test_a_pod_that_fits_only_the_advertised_size_costs_one_machine_too_many_and_no_more(
    provider: str, settings: dict[str, str], reference: Json, types: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first machine is too small; the next is larger, and the next pod of that size gets such a one at once, also from an
    autoscaler that was restarted.
    """
    for vendor in (hetzner, linode):
        monkeypatch.setattr(vendor, "POD_PERCENT", LEFT_PERCENT)
    small, large = types

    async def body(world: World) -> None:
        half = world.hetzner or world.linode
        assert half is not None

        def bought() -> list[str]:
            return [each.type for each in half.fake.ledger.purchases]

        await world.create([pool(reference, *types)])
        await asyncio.sleep(60)
        await world.create([big("first")])
        await asyncio.sleep(900)
        assert await phase(world, "first") == "Running"
        assert bought() == [small, large]
        for replica in world.replicas:
            assert replica.process is not None
            replica.process.crash()
        await world.create([big("second")])
        await asyncio.sleep(900)
        assert await phase(world, "second") == "Running"
        assert bought() == [small, large, large]

    in_world(provider, body, **settings)
