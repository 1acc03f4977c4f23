"""What the removal of machines costs a vendor's account: calls, and the time between the machine's end and its claim's."""

import asyncio

import pytest

from growth.api import names
from growth.api.karpenter import NODE_CLAIM
from growth.api.kinds import Json
from growth.api.workloads import DEPLOYMENT
from growth.providers.kwok.registrar import RegistrarSettings
from growth.sim.clouds.api import FakeApi
from growth.sim.seams import Step
from growth.sim.world.cluster import workload
from growth.sim.world.half import CONFIG_MAPS
from growth.sim.world.world import World, WorldSettings
from tests.manifests import growth_pool, need, node_pool
from tests.simulation.vendors import in_world_with

MACHINES = 10
# The kubelet of a machine that is gone is missed late, and its Node stays: whether the machine is there says the cloud alone.
SLOW = RegistrarSettings(deletion=5.0, node_removal=300.0, workers=1)
CLAIMS = ("karpenter.sh", "nodeclaims")
TYPES = {"hetzner": "cx23", "linode": "g6-standard-2"}


def pool_of(api: str, kind: str) -> Json:
    if api == "growth":
        return growth_pool("default", {"name": kind, "max": MACHINES}, scaleDownAfter="1m")
    disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m", "budgets": [{"nodes": "100%"}]}
    return node_pool("default", need(names.INSTANCE_TYPE_LABEL, "In", kind), disruption=disruption)


def removed(provider: str, api: str, **settings: str) -> tuple[float, float]:
    """Calls a machine from the first deletion on, and the longest time from a machine's end to its claim's."""
    found: list[tuple[float, float]] = []

    async def body(world: World) -> None:
        assert world.vendor is not None
        fake = world.vendor.fake
        assert isinstance(fake, FakeApi)
        gone: dict[str, float] = {}
        late: list[float] = []

        def see(step: Step) -> None:
            if step.new is None and step.which == CONFIG_MAPS and step.key[1].startswith("kwok-"):
                gone[step.key[1].removeprefix("kwok-")] = world.kernel.time()
            elif step.new is None and step.which == CLAIMS:
                late.append(world.kernel.time() - gone[step.key[1]])

        world.witness.listeners.append(see)
        requests = {"resources": {"requests": {"cpu": "1500m"}}}
        body = workload("web", MACHINES, containers=[{"name": "main", "image": "example", **requests}])
        await world.admin.create(DEPLOYMENT, body, namespace="default")
        await asyncio.sleep(600)
        assert len((await world.admin.list(NODE_CLAIM)).items) == MACHINES
        before = len(fake.calls)
        await world.admin.delete(DEPLOYMENT, "web", namespace="default")
        for _ in range(1200):
            await asyncio.sleep(1)
            if not (await world.admin.list(NODE_CLAIM)).items:
                break
        assert len(late) == MACHINES
        calls = list(fake.calls)[before:]
        first = next(at for at, each in enumerate(calls) if each.method == "DELETE")
        found.append((len(calls[first:]) / MACHINES, max(late)))

    in_world_with(WorldSettings(cloud=SLOW), provider, body, pool_of(api, TYPES[provider]), **settings)
    return found[0]


@pytest.mark.parametrize("api", ["growth", "karpenter"])
@pytest.mark.parametrize(
    ("provider", "settings", "most"),
    [
        ("hetzner", {}, 3.0),
        ("linode", {"linodeRegion": "us-east"}, 4.0),
        # Of a node of LKE the pool is read before each deletion, and the instance until it is gone.
        ("linode", {"linodeCluster": "standard"}, 6.0),
        ("linode", {"linodeCluster": "enterprise"}, 6.0),
    ],
)
def test_ten_machines_cost_few_calls(api: str, provider: str, settings: dict[str, str], most: float) -> None:
    """Few calls a machine, and a claim goes within five seconds of its machine, although its Node is Ready."""
    calls, late = removed(provider, api, **settings)
    assert calls <= most
    assert late <= (6.0 if "linodeCluster" in settings else 5.0)
