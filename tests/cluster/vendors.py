"""A real control plane whose machines a vendor's fake sells: the rights, the pools and the pods of the whole story."""

import subprocess

import yaml

from growth.api.crds import all_crds
from growth.api.kinds import Json
from tests.cluster.servers import Server
from tests.running import GROWTH
from tools.controlplane.plane import Plane

ACCOUNT = "system:serviceaccount:growth:growth"
TYPE = "node.kubernetes.io/instance-type"


def prepared(plane: Plane, provider: str) -> Server:
    """With Growth's own account, and the rights that `growth rbac` prints for the provider."""
    server = Server(plane)
    server.install(all_crds())
    server.kubectl("create", "namespace", "growth")
    for each in (provider, "kwok"):
        printed = subprocess.run(
            [str(GROWTH), "rbac", "--provider", each], capture_output=True, text=True, check=True
        ).stdout
        server.kubectl("apply", "-f", "-", stdin=printed)
    bindings = [each for each in yaml.safe_load_all(printed) if each["kind"].endswith("Binding")]
    kwok = [_bound_to_growth(each) for each in bindings if each["metadata"]["name"] == "growth-kwok"]
    server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(kwok))
    server.until_allowed(ACCOUNT, "create", "nodes")
    return server


def running(server: Server) -> int:
    """How many pods run."""
    return sum(pod["status"]["phase"] == "Running" for pod in server.items("pods", "-A"))


def _bound_to_growth(role: Json) -> Json:
    """The binding of a role, for Growth's own account: it plays the kubelets of the fake's machines."""
    subject = {"kind": "ServiceAccount", "name": "growth", "namespace": "growth"}
    name = f"{role['metadata']['name']}-of-growth"
    return {**role, "metadata": {**role["metadata"], "name": name}, "subjects": [subject]}


def growth_pool(*server_types: Json, **spec: Json) -> Json:
    return {
        "apiVersion": "growth.dev/v1alpha1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"scaleDownAfter": "2s", **spec, "serverTypes": list(server_types)},
    }


def karpenter_pool(node_class: Json, *types: str) -> Json:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "general"},
        "spec": {
            "disruption": {"consolidateAfter": "1s", "budgets": [{"nodes": "100%"}]},
            "template": {
                "spec": {
                    "nodeClassRef": node_class,
                    "requirements": [{"key": TYPE, "operator": "In", "values": list(types)}],
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


# Fifty pods, of a pool of either API.
WEB = deployment("web", 30, cpu="500m", selector={"growth.dev/pool": "default"})
BATCH = deployment("batch", 20, cpu="900m", selector={"karpenter.sh/nodepool": "general"})
