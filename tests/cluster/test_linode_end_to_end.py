"""`growth run --provider linode` on a real control plane, with a fake of LKE's API: fifty pods up and down."""

import json
import subprocess

import pytest
import yaml

from bench.owning.autoscaler import QUICK
from growth.api.crds import all_crds
from growth.api.kinds import Json
from growth.ports import SystemClock, SystemRandom
from growth.sim.clouds.linode import ENTERPRISE, STANDARD, FakeSettings, LinodeFake, Times
from growth.sim.clouds.linode.rates import Rate, Rates
from growth.sim.clouds.linode.serving import serving
from tests.cluster.servers import Server
from tests.cluster.test_hetzner_end_to_end import ACCOUNT, TYPE, bound_to_growth, deployment
from tests.cluster.test_least_rights import acting_as
from tests.hetzner import on_a_thread
from tests.linode import TOKEN
from tests.running import GROWTH, growth_alone, until
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
DEFAULT: Json = {
    "apiVersion": "growth.dev/v1alpha1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "scaleDownAfter": "2s",
        "nodeClassRef": REFERENCE,
        "serverTypes": [{"name": "g6-standard-4", "max": 10}, {"name": "g6-standard-8", "max": 5}],
    },
}
GENERAL: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "general"},
    "spec": {
        "disruption": {"consolidateAfter": "1s", "budgets": [{"nodes": "100%"}]},
        "template": {
            "spec": {
                "nodeClassRef": REFERENCE,
                "requirements": [{"key": TYPE, "operator": "In", "values": ["g6-standard-4", "g6-standard-6"]}],
            }
        },
    },
}


def prepared(plane: Plane) -> Server:
    server = Server(plane)
    server.install(all_crds())
    server.kubectl("create", "namespace", "growth")
    for provider in ("linode", "kwok"):
        printed = subprocess.run(
            [str(GROWTH), "rbac", "--provider", provider], capture_output=True, text=True, check=True
        ).stdout
        server.kubectl("apply", "-f", "-", stdin=printed)
    bindings = [each for each in yaml.safe_load_all(printed) if each["kind"].endswith("Binding")]
    kwok = [bound_to_growth(each) for each in bindings if each["metadata"]["name"] == "growth-kwok"]
    server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(kwok))
    server.until_allowed(ACCOUNT, "create", "nodes")
    return server


@pytest.fixture(scope="module", name="server")
def _server(plane: Plane) -> Server:
    """Both tiers share one: a plane costs more than what is tried on it."""
    return prepared(plane)


@pytest.mark.parametrize("tier", [STANDARD, ENTERPRISE])
def test_from_the_first_pod_to_an_empty_account(plane: Plane, server: Server, tier: str) -> None:
    """Pods of both APIs get nodes of LKE pools and leave them; nothing is left, and no token anywhere."""
    settings = FakeSettings(tier=tier, tokens=frozenset({TOKEN}), times=QUICKLY, rates=MANY)
    fake = LinodeFake(clock=SystemClock(), random=SystemRandom(), settings=settings)

    def items(kind: str) -> list[Json]:
        found: list[Json] = json.loads(server.kubectl("get", kind, "-A", "-o", "json"))["items"]
        return found

    def running() -> int:
        return sum(pod["status"]["phase"] == "Running" for pod in items("pods"))

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
        web, batch = (
            deployment("web", 30, cpu="500m", selector={"growth.dev/pool": "default"}),
            deployment("batch", 20, cpu="900m", selector={"karpenter.sh/nodepool": "general"}),
        )
        server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([CLASS, DEFAULT, GENERAL, web, batch]))
        until(lambda: running() == 50, what="fifty running pods", of=growth)
        machines = {f"linode://{each.id}": each for each in fake.machines()}
        assert {each["spec"]["providerID"] for each in items("nodes")} <= machines.keys()
        assert all(
            "team:web" in each.tags for each in machines.values() if any("nodeclaim" in tag for tag in each.tags)
        )
        keys = [
            (pool.kind.id, tuple(tag for tag in pool.tags if "pool:" in tag)) for pool in fake.account.pools.values()
        ]
        assert len(keys) == len(set(keys)) >= 2

        server.kubectl("delete", "deployment", "web", "batch")
        until(lambda: not fake.machines() and not items("nodeclaims"), what="an empty account", of=growth)
        until(lambda: not items("nodes"), what="no Node", of=growth)
        assert not fake.account.pools
        assert growth.stop() == 0
        text = growth.text()
    assert "orbidden" not in text
    assert TOKEN[:16] not in text
    told = server.kubectl("get", "events,nodeclaims,nodepools,growthpools,linodenodeclasses", "-A", "-o", "yaml")
    assert TOKEN[:16] not in told
    assert "UnregisteredTaintMissing" not in told
