"""`growth run` with the rights that `growth rbac` prints, and no others."""

import json
import pathlib
import subprocess

import yaml

from bench.owning.autoscaler import QUICK
from growth.api.buffers import CAPACITY_BUFFER
from growth.api.crds import all_crds
from growth.api.growthpools import GROWTH_POOL
from growth.api.kinds import Json
from growth.api.overlays import NODE_OVERLAY
from tests.cluster.servers import Server
from tests.good_objects import KWOK_CLASS, need, node_pool, obj
from tests.running import GROWTH, growth_run, until
from tools.controlplane.plane import Plane

POOL = node_pool(
    need("kubernetes.io/arch", "In", "amd64"),
    need("kubernetes.io/os", "In", "linux"),
    node_class=KWOK_CLASS,
    limits={"cpu": 100, "nodes": 5},
    disruption={"consolidateAfter": "0s"},
)
NODE_CLASS = {
    "apiVersion": "karpenter.kwok.sh/v1alpha1",
    "kind": "KWOKNodeClass",
    "metadata": {"name": "default"},
    "spec": {},
}
CONTAINER = {"name": "main", "image": "example", "resources": {"requests": {"cpu": "3"}}}


def acting_as(plane: Plane, account: str) -> pathlib.Path:
    """A kubeconfig of the administrator who acts as a service account, with its rights alone."""
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"] |= {
        "as": f"system:serviceaccount:growth:{account}",
        "as-groups": ["system:serviceaccounts", "system:authenticated"],
    }
    path = plane.folder / f"kubeconfig-as-{account}"
    path.write_text(json.dumps(config))
    return path


def deployment(replicas: int) -> dict[str, object]:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [CONTAINER], "terminationGracePeriodSeconds": 1},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    }


def test_the_printed_rights_suffice_from_the_first_pod_to_the_last_machine(plane: Plane) -> None:
    """Machines are bought, drained and given back, and no call of either account is forbidden."""
    server = Server(plane)
    server.install(all_crds())
    server.kubectl("create", "namespace", "growth")
    printed = subprocess.run([str(GROWTH), "rbac"], capture_output=True, text=True, check=True).stdout
    server.kubectl("apply", "-f", "-", stdin=printed)
    for account in ("growth", "growth-kwok"):
        server.until_allowed(f"system:serviceaccount:growth:{account}", "list", "nodes")
    overlay = obj(  # something for every kind of status that is written
        NODE_OVERLAY,
        {"requirements": [need("kubernetes.io/arch", "In", "amd64")], "capacity": {"example.com/thing": "1"}},
    )
    template = {"metadata": {"labels": {"app": "spare"}}, "spec": {"containers": [CONTAINER]}}
    pod_template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "spare"}, "template": template}
    buffers = [
        obj(CAPACITY_BUFFER, {"podTemplateRef": {"name": "spare"}, "replicas": 1}, name="by-template"),
        obj(CAPACITY_BUFFER, {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}, "replicas": 1}),
    ]
    unserved = obj(GROWTH_POOL, {"serverTypes": [{"name": "c-4x-amd64-linux", "max": 1}]})
    everything = [POOL, NODE_CLASS, unserved, overlay, pod_template, *buffers, deployment(6)]
    server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(everything))
    # kwok plays the plane's marked nodes; ours are not marked, so that the stand-in's rights are tried too.
    with growth_run(
        plane,
        *QUICK,
        *("--kwok-kubeconfig", str(acting_as(plane, "growth-kwok"))),
        kubeconfig=acting_as(plane, "growth"),
    ) as growth:

        def phases() -> list[str]:
            return [pod["status"]["phase"] for pod in server.items("pods")]

        def left() -> str:
            return server.kubectl("get", "nodeclaims,nodes", "-o", "name") + server.kubectl(
                *("get", "configmaps", "-n", "growth", "-l", "growth.dev/kwok-machine", "-o", "name")
            )

        until(lambda: phases() == ["Running"] * 6, what="six running pods", of=growth)

        def told(kind: str) -> bool:
            return all(item.get("status", {}).get("conditions") for item in server.items(kind))

        kinds = ("capacitybuffers", "nodeoverlays", "nodepools", "growthpools")
        until(lambda: all(map(told, kinds)), what="every status", of=growth)
        server.kubectl("delete", "nodepool", "example", "--wait=false")
        until(lambda: not left(), what="the last machine gone", of=growth)
        assert growth.stop() == 0
        assert "orbidden" not in growth.text()

    def evictions() -> list[Json]:
        return [event for event in writes(plane) if event["objectRef"].get("subresource") == "eviction"]

    until(evictions, what="an eviction in the log")
    assert {event["responseStatus"]["code"] for event in writes(plane)} & {401, 403} == set()


def writes(plane: Plane) -> list[Json]:
    """What the server logged of our service accounts."""
    return [
        event
        for event in plane.audit_events()
        if "serviceaccount:growth" in json.dumps(event.get("impersonatedUser", {}))
    ]
