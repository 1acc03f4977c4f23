"""`growth run --provider hetzner` on a real control plane, with a fake of Hetzner's API and the rights that `growth rbac`
prints: the whole story from the first pod to an account with nothing in it.
"""

import json
import subprocess
from typing import Any

import yaml

from bench.owning.autoscaler import QUICK
from growth.api.crds import all_crds
from growth.api.kinds import Json
from growth.ports import SystemClock, SystemRandom
from growth.sim.clouds.hetzner import FakeSettings, HetznerFake, Limits, Times
from tests.cluster.servers import Server
from tests.cluster.test_least_rights import acting_as
from tests.hetzner import TOKEN, served
from tests.running import GROWTH, growth_alone, until
from tools.controlplane.plane import Plane

ACCOUNT = "system:serviceaccount:growth:growth"
QUICKLY = Times(create=(0.2, 0.5), start=(0.1, 0.2), attach=(0.1, 0.2), delete=(0.2, 0.5), other=(0.1, 0.2))
TYPE = "node.kubernetes.io/instance-type"

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
DEFAULT: Json = {
    "apiVersion": "growth.dev/v1alpha1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "scaleDownAfter": "2s",
        "serverTypes": [
            {"name": "CAX11", "max": 10},
            {"name": "CAX21", "min": 1, "max": 5},
            {"name": "CAX31", "max": 1},
            {"name": "CX32", "max": 1},
        ],
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
                "nodeClassRef": {"group": "growth.dev", "kind": "HetznerNodeClass", "name": "default"},
                "requirements": [{"key": TYPE, "operator": "In", "values": ["cx33", "cpx32"]}],
            }
        },
    },
}


def deployment(name: str, replicas: int, *, cpu: str, selector: Json) -> Json:
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "nodeSelector": selector, "terminationGracePeriodSeconds": 1}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def bound_to_growth(role: Json) -> Json:
    """The binding of a role, for Growth's own account: it plays the kubelets of the fake's machines."""
    subject = {"kind": "ServiceAccount", "name": "growth", "namespace": "growth"}
    name = f"{role['metadata']['name']}-of-growth"
    return {**role, "metadata": {**role["metadata"], "name": name}, "subjects": [subject]}


def prepared(plane: Plane) -> Server:
    server = Server(plane)
    server.install(all_crds())
    server.kubectl("create", "namespace", "growth")
    for provider in ("hetzner", "kwok"):
        printed = subprocess.run(
            [str(GROWTH), "rbac", "--provider", provider], capture_output=True, text=True, check=True
        ).stdout
        server.kubectl("apply", "-f", "-", stdin=printed)
    bindings = [each for each in yaml.safe_load_all(printed) if each["kind"].endswith("Binding")]
    kwok = [bound_to_growth(each) for each in bindings if each["metadata"]["name"] == "growth-kwok"]
    server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(kwok))
    server.until_allowed(ACCOUNT, "create", "nodes")
    return server


def test_from_the_first_pod_to_an_empty_account(plane: Plane) -> None:
    """Scale up, stock-out and fallback, recovery and return, scale to zero; nothing is left, and no token anywhere."""
    server = prepared(plane)
    clock = SystemClock()
    settings = FakeSettings(
        tokens=frozenset({TOKEN}), limits=Limits(servers=100), times=QUICKLY, calls_per_hour=360_000
    )
    fake = HetznerFake(clock=clock, random=SystemRandom(), settings=settings)

    def items(kind: str) -> list[Json]:
        found: list[Json] = json.loads(server.kubectl("get", kind, "-A", "-o", "json"))["items"]
        return found

    def running() -> int:
        return sum(pod["status"]["phase"] == "Running" for pod in items("pods"))

    def types(pool: str) -> list[str]:
        label = "karpenter.sh/nodepool" if pool == "general" else "growth.dev/pool"
        labels = [each["metadata"]["labels"] for each in items("nodes") if "deletionTimestamp" not in each["metadata"]]
        return sorted(each[TYPE] for each in labels if each.get(label) == pool)

    def condition(kind: str, name: str, type_: str) -> dict[str, Any]:
        (found,) = [each for each in items(kind) if each["metadata"]["name"] == name]
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
        general = {"karpenter.sh/nodepool": "general"}
        web, batch = (
            deployment("web", 30, cpu="500m", selector={"growth.dev/pool": "default"}),
            deployment("batch", 20, cpu="900m", selector=general),
        )
        everything = [SECRET, CLASS, DEFAULT, GENERAL, web, batch]
        server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(everything))
        until(lambda: running() == 50, what="fifty running pods", of=growth)
        assert set(types("default")) <= {"cax11", "cax21", "cax31"}
        assert set(types("general")) == {"cx33"}
        orderable = condition("growthpools", "default", "ServerTypesOrderable")
        assert "use CX33" in orderable["message"]
        assert condition("hetznernodeclasses", "default", "Ready")["status"] == "True"
        machines = {f"hcloud://{each.id}": each for each in fake.machines()}
        assert {each["spec"]["providerID"] for each in items("nodes")} <= machines.keys()
        assert all("kubeadm join" in each.user_data for each in machines.values())

        fake.market.stock("cx33", "*", 0)
        server.kubectl("scale", "deployment", "batch", "--replicas=24")
        until(lambda: running() == 54, what="pods on the fallback", of=growth)
        assert "cpx32" in types("general")

        fake.market.stock("cx33", "*", None)
        until(lambda: set(types("general")) == {"cx33"} and running() == 54, what="the return to cx33", of=growth)

        (learned,) = [
            each for each in items("hetznernodeclasses")[0]["status"]["learnedTypes"] if each["name"] == "cx33"
        ]
        assert learned["capacity"]["memory"] != "8Gi"

        server.kubectl("delete", "deployment", "web", "batch")
        until(lambda: types("general") == [] and types("default") == ["cax21"], what="one warm machine", of=growth)
        server.kubectl("delete", "growthpool", "default", "--wait=false")
        server.kubectl("delete", "nodepool", "general", "--wait=false")
        until(lambda: not fake.machines() and not items("nodeclaims"), what="an empty account", of=growth)
        until(lambda: not items("nodes"), what="no Node", of=growth)
        assert growth.stop() == 0
        text = growth.text()
    assert "orbidden" not in text
    assert not any(part in text for part in (TOKEN, TOKEN[:16], TOKEN[16:]))
    told = server.kubectl("get", "events,nodeclaims,nodepools,growthpools,hetznernodeclasses", "-A", "-o", "yaml")
    assert not any(part in told for part in (TOKEN, TOKEN[:16], TOKEN[16:]))
