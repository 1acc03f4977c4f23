"""`growth run --provider hetzner` on a real control plane, with a fake of Hetzner's API and the rights that `growth rbac`
prints: the whole story from the first pod to an account with nothing in it.
"""

from typing import Any

import yaml

from bench.owning.autoscaler import QUICK
from growth.api.kinds import Json
from growth.ports import SystemClock, SystemRandom
from growth.sim.clouds.hetzner import FakeSettings, HetznerFake, Limits, Times
from tests.cluster.test_least_rights import acting_as
from tests.cluster.vendors import BATCH, TYPE, WEB, growth_pool, karpenter_pool, prepared, running
from tests.hetzner import TOKEN, served
from tests.running import growth_alone, until
from tools.controlplane.plane import Plane

QUICKLY = Times(create=(0.2, 0.5), start=(0.1, 0.2), attach=(0.1, 0.2), delete=(0.2, 0.5), other=(0.1, 0.2))

CLASS: Json = {
    "apiVersion": "growth.dev/v1alpha1",
    "kind": "HetznerNodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "locations": ["fsn1", "nbg1"],
        "userData": {"mode": "kubeadm", "secretRef": {"name": "join"}, "cloudProvider": "none"},
    },
}
SECRET: Json = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "join", "namespace": "growth"},
    "stringData": {"apiServerEndpoint": "10.0.0.2:6443", "caCertHashes": "sha256:" + "ab" * 32},
}
DEFAULT = growth_pool(
    {"name": "CAX11", "max": 10},
    {"name": "CAX21", "min": 1, "max": 5},
    {"name": "CAX31", "max": 1},
    {"name": "CX32", "max": 1},
)
GENERAL = karpenter_pool({"group": "growth.dev", "kind": "HetznerNodeClass", "name": "default"}, "cx33", "cpx32")


def test_from_the_first_pod_to_an_empty_account(plane: Plane) -> None:
    """Scale up, stock-out and fallback, recovery and return, scale to zero; nothing is left, and no token anywhere."""
    server = prepared(plane, "hetzner")
    clock = SystemClock()
    settings = FakeSettings(
        tokens=frozenset({TOKEN}), limits=Limits(servers=100), times=QUICKLY, calls_per_hour=360_000
    )
    fake = HetznerFake(clock=clock, random=SystemRandom(), settings=settings)

    def types(pool: str) -> list[str]:
        label = "karpenter.sh/nodepool" if pool == "general" else "growth.dev/pool"
        labels = [
            each["metadata"]["labels"] for each in server.items("nodes") if "deletionTimestamp" not in each["metadata"]
        ]
        return sorted(each[TYPE] for each in labels if each.get(label) == pool)

    def condition(kind: str, name: str, type_: str) -> dict[str, Any]:
        (found,) = [each for each in server.items(kind) if each["metadata"]["name"] == name]
        return next((each for each in found.get("status", {}).get("conditions", ()) if each["type"] == type_), {})

    with (
        served(fake) as url,
        growth_alone(
            acting_as(plane, "growth"),
            *QUICK,
            *("--api-endpoint", url, "--refused-ttl", "20s", "--validation", "2s", "--catalogue-period", "2s"),
            provider="hetzner",
            HCLOUD_TOKEN=TOKEN,
        ) as growth,
    ):
        everything = [SECRET, CLASS, DEFAULT, GENERAL, WEB, BATCH]
        server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(everything))
        until(lambda: running(server) == 50, what="fifty running pods", of=growth)
        assert set(types("default")) <= {"cax11", "cax21", "cax31"}
        assert set(types("general")) == {"cx33"}
        orderable = condition("growthpools", "default", "ServerTypesOrderable")
        assert "use CX33" in orderable["message"]
        assert condition("hetznernodeclasses", "default", "Ready")["status"] == "True"
        machines = {f"hcloud://{each.id}": each for each in fake.machines()}
        assert {each["spec"]["providerID"] for each in server.items("nodes")} <= machines.keys()
        assert all("kubeadm join" in each.user_data for each in machines.values())

        fake.market.stock("cx33", "*", 0)
        server.kubectl("scale", "deployment", "batch", "--replicas=24")
        until(lambda: running(server) == 54, what="pods on the fallback", of=growth)
        assert "cpx32" in types("general")

        fake.market.stock("cx33", "*", None)
        until(lambda: set(types("general")) == {"cx33"} and running(server) == 54, what="the return to cx33", of=growth)

        (learned,) = [
            each for each in server.items("hetznernodeclasses")[0]["status"]["learnedTypes"] if each["name"] == "cx33"
        ]
        assert learned["capacity"]["memory"] != "8Gi"

        server.kubectl("delete", "deployment", "web", "batch")
        until(lambda: types("general") == [] and types("default") == ["cax21"], what="one warm machine", of=growth)
        server.kubectl("delete", "growthpool", "default", "--wait=false")
        server.kubectl("delete", "nodepool", "general", "--wait=false")
        until(lambda: not fake.machines() and not server.items("nodeclaims"), what="an empty account", of=growth)
        until(lambda: not server.items("nodes"), what="no Node", of=growth)
        assert growth.stop() == 0
        text = growth.text()
    assert "orbidden" not in text
    assert not any(part in text for part in (TOKEN, TOKEN[:16], TOKEN[16:]))
    told = server.kubectl("get", "events,nodeclaims,nodepools,growthpools,hetznernodeclasses", "-A", "-o", "yaml")
    assert not any(part in told for part in (TOKEN, TOKEN[:16], TOKEN[16:]))
