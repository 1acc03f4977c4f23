"""`growth run --provider linode` on a real control plane, with a fake of LKE's API: fifty pods up and down."""

import pytest
import yaml

from bench.owning.autoscaler import QUICK
from growth.api.kinds import Json
from growth.ports import SystemClock, SystemRandom
from growth.sim.clouds.linode import ENTERPRISE, STANDARD, FakeSettings, LinodeFake, Times
from growth.sim.clouds.linode.rates import Rate, Rates
from growth.sim.clouds.linode.serving import serving
from tests.cluster.servers import Server
from tests.cluster.test_least_rights import acting_as
from tests.cluster.vendors import BATCH, WEB, growth_pool, karpenter_pool, prepared, running
from tests.hetzner import on_a_thread
from tests.linode import TOKEN
from tests.running import growth_alone, until
from tools.controlplane.plane import Plane

QUICKLY = Times(instance=(0.2, 0.5), listed=(1.0, 2.0), boot=(0.2, 0.5), delete=(0.2, 0.5))
MANY = Rates(lists=Rate(20_000, 60.0), others=Rate(160_000, 60.0))
REFERENCE = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "default"}

CLASS: Json = {
    "apiVersion": "karpenter.k8s.linode/v1alpha1",
    "kind": "LinodeNodeClass",
    "metadata": {"name": "default"},
    "spec": {"tags": ["team:web"]},
}
DEFAULT = growth_pool({"name": "g6-standard-4", "max": 10}, {"name": "g6-standard-8", "max": 5}, nodeClassRef=REFERENCE)
GENERAL = karpenter_pool(REFERENCE, "g6-standard-4", "g6-standard-6")


@pytest.fixture(scope="module", name="server")
def _server(plane: Plane) -> Server:
    """Both tiers share one: a plane costs more than what is tried on it."""
    return prepared(plane, "linode")


def memory_learned(server: Server) -> dict[str, str]:
    (known,) = server.items("linodenodeclasses")
    return {each["name"]: each["capacity"]["memory"] for each in known["status"].get("learnedTypes", [])}


@pytest.mark.parametrize("tier", [STANDARD, ENTERPRISE])
def test_from_the_first_pod_to_an_empty_account(plane: Plane, server: Server, tier: str) -> None:
    """Pods of both APIs get nodes of LKE pools and leave them; nothing is left, and no token anywhere."""
    settings = FakeSettings(tier=tier, tokens=frozenset({TOKEN}), times=QUICKLY, rates=MANY)
    fake = LinodeFake(clock=SystemClock(), random=SystemRandom(), settings=settings)

    with (
        on_a_thread(lambda: serving(fake)) as url,
        growth_alone(
            acting_as(plane, "growth"),
            *QUICK,
            *("--api-endpoint", url, "--linode-cluster", "growth", "--catalogue-period", "2s", "--validation", "2s"),
            provider="linode",
            LINODE_TOKEN=TOKEN,
        ) as growth,
    ):
        server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([CLASS, DEFAULT, GENERAL, WEB, BATCH]))
        until(lambda: running(server) == 50, what="fifty running pods", of=growth)
        machines = {f"linode://{each.id}": each for each in fake.machines()}
        assert {each["spec"]["providerID"] for each in server.items("nodes")} <= machines.keys()
        assert all(
            "team:web" in each.tags for each in machines.values() if any("nodeclaim" in tag for tag in each.tags)
        )
        keys = [
            (pool.kind.id, tuple(tag for tag in pool.tags if "pool:" in tag)) for pool in fake.account.pools.values()
        ]
        assert len(keys) == len(set(keys)) >= 2
        until(lambda: "g6-standard-4" in memory_learned(server), what="what nodes of the type hold", of=growth)
        assert memory_learned(server)["g6-standard-4"] != "8Gi"

        server.kubectl("delete", "deployment", "web", "batch")
        until(lambda: not fake.machines() and not server.items("nodeclaims"), what="an empty account", of=growth)
        until(lambda: not server.items("nodes"), what="no Node", of=growth)
        assert not fake.account.pools
        assert growth.stop() == 0
        text = growth.text()
    assert "orbidden" not in text
    assert TOKEN[:16] not in text
    told = server.kubectl("get", "events,nodeclaims,nodepools,growthpools,linodenodeclasses", "-A", "-o", "yaml")
    assert TOKEN[:16] not in told
    assert "UnregisteredTaintMissing" not in told
