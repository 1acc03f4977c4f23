"""Machines go on the whole real plane: by kubectl and by themselves, past budgets and annotations only where told to."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from bench.owning.autoscaler import QUICK
from growth.api.crds import all_crds
from growth.api.kinds import Json
from tests.cluster.servers import Server
from tests.good_objects import KWOK_CLASS, need, node_pool
from tests.running import Running, growth_run, until
from tools.controlplane.plane import Plane

NODE_CLASS = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}
CONTAINER = {"name": "main", "image": "example", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}


PROTECTED = {"karpenter.sh/do-not-disrupt": "true"}
# How many pods each test's pool has, and what is special about pool and pods. Four fit on a machine, less its overhead.
POOLS: dict[str, tuple[int, Json, Json]] = {
    "by-node": (4, {}, {}),
    "by-claim": (4, {}, {}),
    "by-pool": (7, {}, {}),
    "emptied": (7, {}, {}),
    "budgeted": (3, {}, {}),
    "forced": (2, {"terminationGracePeriod": "15s"}, PROTECTED),
    "protected": (2, {}, PROTECTED),
}


class Cluster:
    """A plane with Growth on it. Every test has a pool of its own, whose pods run nowhere else."""

    def __init__(self, plane: Plane, growth: Running) -> None:
        self._server = Server(plane)
        self._growth = growth
        self.kubectl = self._server.kubectl
        self.items = self._server.items

    def apply(self, *objects: Json) -> None:
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def until(self, look: Any, what: str) -> Any:
        return until(look, what=what, of=self._growth, seconds=300.0)

    def running(self, pool: str) -> int:
        pods = self.items("pods", "-l", f"app={pool}")
        return sum(
            each["status"].get("phase") == "Running" and "deletionTimestamp" not in each["metadata"] for each in pods
        )

    def scale(self, pool: str, replicas: int) -> None:
        self.kubectl("scale", "deployment", pool, f"--replicas={replicas}")

    def claims(self, pool: str) -> list[str]:
        return [each["metadata"]["name"] for each in self.items("nodeclaims", "-l", f"karpenter.sh/nodepool={pool}")]

    def used_claim(self, pool: str) -> str:
        """A claim on whose machine a pod runs; simulated machines, and their Nodes, are named as their claims."""
        pods = self.items("pods", "-l", f"app={pool}", "--field-selector", "status.phase=Running")
        return str(pods[0]["spec"]["nodeName"])

    def only_claim(self, pool: str) -> str:
        """The pool's one claim. While pods come one by one there may be another, which is given back when it stays empty."""
        (found,) = self.until(lambda: found if len(found := self.claims(pool)) == 1 else None, f"one claim of {pool}")
        return str(found)

    def left(self, pool: str) -> list[str]:
        """Everything there is of a pool's machines: claims, Nodes, and the cloud's own records."""
        claims = [f"claim {name}" for name in self.claims(pool)]
        nodes = self.items("nodes", "-l", f"karpenter.sh/nodepool={pool}")
        machines = [each["metadata"]["name"] for each in self.items("configmaps", "-n", "growth")]
        return [
            *claims,
            *(f"node {each['metadata']['name']}" for each in nodes),
            *(f"machine {name}" for name in machines if name.startswith(f"kwok-{pool}-")),
        ]

    def until_gone(self, name: str) -> None:
        """Claim, Node and machine of that name; simulated machines are named as their claims."""

        def gone() -> bool:
            there = self.kubectl("get", "nodeclaims,nodes", "-o", "name")
            records = self.kubectl("get", "configmaps", "-n", "growth", "-o", "name")
            return f"/{name}\n" not in there and f"/kwok-{name}\n" not in records

        self.until(gone, f"the end of {name}")

    def messages(self, reason: str) -> list[str]:
        return [each["message"] for each in self.items("events", "--field-selector", f"reason={reason}")]

    def until_told(self, reason: str, words: str) -> None:
        """An Event is written a moment after what it tells of."""
        self.until(lambda: any(words in each for each in self.messages(reason)), f"an event {reason} with «{words}»")


def _pool(name: str, template: Json) -> Json:
    made = node_pool(
        need("karpenter.kwok.sh/instance-cpu", "In", "4"),
        need("kubernetes.io/os", "In", "linux"),
        node_class=KWOK_CLASS,
        disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
    )
    made["metadata"]["name"] = name
    made["spec"]["template"]["spec"].update(template)
    return made


def _deployment(name: str, replicas: int, annotations: Json) -> Json:
    spec = {
        "containers": [CONTAINER],
        "nodeSelector": {"karpenter.sh/nodepool": name},
        "terminationGracePeriodSeconds": 5,
    }
    template = {"metadata": {"labels": {"app": name}, "annotations": annotations}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def _forbidding(pool: str) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": pool, "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": pool}}},
    }


@pytest.fixture(scope="module")
def cluster(plane: Plane) -> Iterator[Cluster]:
    server = Server(plane)
    server.install(all_crds())
    server.kubectl("create", "namespace", "growth")
    server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(NODE_CLASS))
    with growth_run(plane, "--kwok-controller", *QUICK) as growth:
        found = Cluster(plane, growth)
        for name, (replicas, template, annotations) in POOLS.items():
            found.apply(_pool(name, template), _deployment(name, replicas, annotations))
        for name, (replicas, _, _) in POOLS.items():
            found.until(lambda name=name, replicas=replicas: found.running(name) == replicas, f"running pods of {name}")
        yield found


def test_kubectl_delete_node_takes_the_machine_and_spares_the_pods(cluster: Cluster) -> None:
    """Its pods come to run elsewhere; claim, Node and machine are gone."""
    name = cluster.used_claim("by-node")
    cluster.kubectl("delete", "node", name, "--wait=false")
    cluster.until_gone(name)
    cluster.until(lambda: cluster.running("by-node") == 4, "all pods elsewhere")


def test_kubectl_delete_nodeclaim_takes_the_node(cluster: Cluster) -> None:
    """kubectl waits for the claim's finalizer, and when it returns nothing is left."""
    name = cluster.used_claim("by-claim")
    cluster.kubectl("delete", "nodeclaim", name, "--timeout=300s")
    cluster.until_gone(name)
    cluster.until(lambda: cluster.running("by-claim") == 4, "all pods elsewhere")


def test_kubectl_delete_nodepool_takes_all_of_its_machines(cluster: Cluster) -> None:
    """The pool's claims go with it, by the real garbage collector."""
    assert len(cluster.claims("by-pool")) >= 2
    cluster.kubectl("delete", "nodepool", "by-pool", "--wait=false")
    cluster.until(lambda: not cluster.left("by-pool"), "an empty cloud")


def test_without_pods_every_machine_goes(cluster: Cluster) -> None:
    """Scaled to nothing, the pool has no machine soon, and the pool itself stays."""
    cluster.scale("emptied", 0)
    cluster.until(lambda: not cluster.left("emptied"), "an empty cloud")
    assert cluster.kubectl("get", "nodepool", "emptied", "-o", "name")
    cluster.until_told("DisruptionTerminating", "Disrupting Node: Empty")


def test_a_budget_of_nothing_is_kept_until_it_is_lifted(cluster: Cluster) -> None:
    """The node is marked, its pods run on, the event says why; without the budget the end goes on."""
    cluster.apply(_forbidding("budgeted"))
    cluster.until(
        lambda: cluster.items("pdb", "--field-selector", "metadata.name=budgeted")[0]["status"].get(
            "observedGeneration"
        ),
        "a budget that is watched over",
    )
    name = cluster.only_claim("budgeted")
    cluster.kubectl("delete", "nodeclaim", name, "--wait=false")
    cluster.until_told("FailedDraining", "violates a PDB, Pod=default/budgeted-")
    assert cluster.running("budgeted") == 3

    def deleted_node() -> Json | None:
        node: Json = json.loads(cluster.kubectl("get", "node", name, "-o", "json"))
        return node if "deletionTimestamp" in node["metadata"] else None

    node = cluster.until(deleted_node, "the deletion of the node")
    assert {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"} in node["spec"]["taints"]
    cluster.kubectl("delete", "pdb", "budgeted")
    cluster.until_gone(name)
    cluster.until(lambda: cluster.running("budgeted") == 3, "all pods elsewhere")


def test_the_termination_grace_period_passes_budget_and_annotation(cluster: Cluster) -> None:
    """Protected in both ways, the pods are deleted in time for the deadline that stands on the claim."""
    cluster.apply(_forbidding("forced"))
    name = cluster.only_claim("forced")
    cluster.kubectl("delete", "nodeclaim", name, "--wait=false")
    cluster.until_gone(name)
    cluster.until_told("Disrupted", "This bypasses the PDB of the pod")
    cluster.until_told("TerminationGracePeriodExpiring", "Pods that are still there at ")


def test_do_not_disrupt_keeps_the_machine_as_long_as_the_pod_runs(cluster: Cluster) -> None:
    """Nothing is evicted; when the annotated pods have gone by themselves, so does the machine."""
    name = cluster.only_claim("protected")
    cluster.kubectl("delete", "nodeclaim", name, "--wait=false")
    cluster.until_told("FailedDraining", "do-not-disrupt protects default/protected-")
    assert cluster.running("protected") == 2
    cluster.scale("protected", 0)
    cluster.until_gone(name)
