"""`growth plan` on a real server."""

import json
import pathlib
import subprocess
import sys
from typing import Any

from growth.api.crds import all_crds
from growth.api.kinds import Json
from tests.cluster.servers import Server
from tests.manifests import KWOK_CLASS, growth_pool, node, node_pool, overlay, owned_by, pod, workload, written
from tests.unit.planning.clusters import machine
from tools.controlplane.plane import Plane

BIN = pathlib.Path(sys.prefix) / "bin"


def kubectl(plane: Plane, *arguments: str, given: Json | None = None) -> str:
    return Server(plane).kubectl(*arguments, stdin="" if given is None else json.dumps(given))


def growth_plan(*arguments: str) -> tuple[int, str, str]:
    command = [str(BIN / "growth"), "plan", "-o", "json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def plan_of(*arguments: str) -> Any:
    code, out, err = growth_plan(*arguments)
    assert code == 0, err
    found = json.loads(out)
    del found["summary"]["seconds"]
    return found


def listed(*items: Json) -> Json:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


READER = "nobody"
READ_ONLY: Json = listed(
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": READER}],
    },
)

# Initialised long ago by any clock.
LONG = 86_400.0 * 3650
OBJECTS = (
    node_pool(limits={"cpu": "128"}),
    {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": KWOK_CLASS["name"]}},
    growth_pool("special", {"name": "c-4x-amd64-linux", "max": 3}),
    overlay("cheap", capacity={"example.com/dongle": 2}),
    node("n", cpu="2", labels={"kubernetes.io/hostname": "n"}),
    workload("DaemonSet", "log"),
    pod("there", nodeName="n", cpu="1"),
    pod("log-n", nodeName="n", metadata=owned_by("DaemonSet", "log")),
    *(pod(f"waits-{number}", cpu="1500m") for number in range(5)),
    pod("dongle", requests={"example.com/dongle": 1}),
    pod("special", nodeSelector={"growth.dev/pool": "special"}),
    pod("giant", cpu="900"),
    pod("gated", schedulingGates=[{"name": "example.com/quota"}]),
    *machine("idle", age=LONG),
    *machine("bound", age=LONG),
    *(pod(f"bound-{number}", nodeName="bound", cpu="7", metadata={"labels": {"app": "bound"}}) for number in range(2)),
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "bound", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "bound"}}},
    },
    *machine("spare", age=LONG),
    {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "spare", "namespace": "default"},
        "template": {"spec": pod("spare", cpu="12")["spec"]},
    },
    {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "spare", "namespace": "default"},
        "spec": {"podTemplateRef": {"name": "spare"}, "replicas": 1},
    },
    *machine("surplus", age=LONG),
)


def test_a_cluster_is_planned_as_its_objects_in_a_file_are(apiserver: Plane, tmp_path: pathlib.Path) -> None:
    """With the right to list and no other, so that nothing can have been changed; and without our kinds, with a note."""
    reader = str(apiserver.kubeconfig_of(READER))
    code, _, err = growth_plan("--kubeconfig", reader)
    assert code == 1
    assert "cannot list resource" in err
    kubectl(apiserver, "apply", "-f", "-", given=READ_ONLY)
    Server(apiserver).until_allowed(READER, "list", "nodes")
    code, out, err = growth_plan("--kubeconfig", reader)
    assert (code, json.loads(out)["summary"]["pods"]) == (0, 0), err
    assert "does not serve nodepools.karpenter.sh" in err

    Server(apiserver).install(all_crds())
    kubectl(apiserver, "create", "-f", "-", given=listed(*OBJECTS))
    for each in OBJECTS:
        if each["kind"] in {"Node", "NodeClaim"}:
            body = json.dumps({"status": each["status"]})
            named = (each["kind"].lower(), each["metadata"]["name"])
            kubectl(apiserver, "patch", *named, "--subresource=status", "--type=merge", "-p", body)
    kubectl(apiserver, "taint", "nodes", "--all", "node.kubernetes.io/not-ready:NoSchedule-")  # the server's own
    live = plan_of("--kubeconfig", reader)
    assert live == plan_of("-f", written(tmp_path, *OBJECTS), "--consolidate")
    assert live["summary"]["pods"] == 9
    assert len(live["unschedulable"]) == 1
    assert {each["node"]: each["reason"] for each in live["kept"]} == {
        "n": "Unmanaged",
        "idle": "Nominated",
        "bound": "PodDisruptionBudget",
        "spare": "CapacityBuffer",
    }
    assert [(each["reason"], each["nodes"]) for each in live["disruptions"]] == [("Empty", ["surplus"])]
    alone = plan_of("--kubeconfig", reader, "--no-consolidate")
    assert alone == {
        key: value for key, value in live.items() if key not in {"disruptions", "kept", "complete", "reachable"}
    }

    dumped = tmp_path / "dump.json"
    dumped.write_text(
        kubectl(
            apiserver,
            "get",
            "nodepools.karpenter.sh,growthpools,nodeoverlays,kwoknodeclasses,nodes,nodeclaims,pods,daemonsets,pdb,"
            "podtemplates,capacitybuffers",
            "-A",
            "-o",
            "json",
        )
    )
    assert plan_of("-f", str(dumped), "--consolidate") == live


def test_a_server_that_is_away_is_a_failure_in_one_line(apiserver: Plane, tmp_path: pathlib.Path) -> None:
    """Exit code 1: the input was fine."""
    config = json.loads(kubectl(apiserver, "config", "view", "--raw", "-o", "json"))
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    code, out, err = growth_plan("--kubeconfig", str(path))
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1
