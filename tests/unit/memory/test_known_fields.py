"""The table of built-in fields, against an independent witness, and what it does to objects."""

import ast
import functools
import importlib.util
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

from growth.api.kinds import Json
from growth.kube.errors import BadRequest
from growth.kube.memory import known
from tests.unit.memory.builders import new_server, pod

MODULES = {
    **dict.fromkeys(("Pod", "Node", "Namespace", "ConfigMap", "Secret", "Service", "ServiceAccount"), "core_v1"),
    **dict.fromkeys(("Event", "PersistentVolumeClaim", "PersistentVolume", "Binding"), "core_v1"),
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"), "apps_v1"),
    **dict.fromkeys(("Job", "CronJob"), "batch_v1"),
    **dict.fromkeys(("StorageClass", "CSINode", "VolumeAttachment"), "storage_v1"),
    **dict.fromkeys(("PodDisruptionBudget", "Eviction"), "policy_v1"),
    "Lease": "coordination_v1",
    "PriorityClass": "scheduling_v1",
}
# The witness is of release 1.37, the table of 1.36: what was dropped and what was added between them.
GONE_SINCE = {"Pod.status.nodeAllocatableResourceClaimStatuses.resources"}
ADDED_SINCE = {
    *("CSINode.status", "status.healthStatus", "status.volumeHealth", "nodeInfo.runningInUserNamespace"),
    *("clusterTrustBundle.user", "items.user", "podCertificate.user", "serviceAccountToken.user"),
    *("configMap.defaultUser", "downwardAPI.defaultUser", "projected.defaultUser", "secret.defaultUser"),
    *("emptyDir.mode", "grpc.mode", "httpGet.protocol", "volumeMounts.bindMountOptions"),
    *("nodeAllocatableResourceClaimStatuses.mapping", "nodeAllocatableResourceClaimStatuses.overhead"),
    *("spec.evictionResponders", "spec.podPreemptionPolicy", "spec.scheduling"),
}

Model = dict[str, str]


@functools.cache
def models(module: str) -> dict[str, Model]:
    """The classes of one upstream module: field name to annotation."""
    package = importlib.util.find_spec("lightkube.models")
    assert package is not None
    assert package.submodule_search_locations
    source = pathlib.Path(next(iter(package.submodule_search_locations)), f"{module}.py").read_text()
    return {
        node.name: {
            field.target.id.removesuffix("_"): ast.literal_eval(field.annotation)
            for field in node.body
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        }
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
    }


def differences(message: str, *, module: str, model: str, path: str, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Where table and witness differ, down through nested messages: `ours` or `theirs`, and the path."""
    if message in seen:
        return
    seen.add(message)
    theirs, ours = models(module)[model], known.types_of(message)
    yield from (("ours", f"{path}.{name}") for name in ours if name not in theirs)
    yield from (("theirs", f"{path}.{name}") for name in theirs if name not in {*ours, "apiVersion", "kind"})
    for name, kind in ours.items():
        inner = kind.lstrip("*%")
        if inner not in known.messages() or name not in theirs or name == "metadata":
            continue
        named = re.findall(r"(?:(\w+)\.)?(\w+)", re.sub(r"\b(Optional|List|Dict)\b", "", theirs[name]))
        found = [(m or module, c) for m, c in named if c in models(m or module)]
        if found:
            where, what = found[0]
            yield from differences(inner, module=where, model=what, path=f"{path}.{name}", seen=seen)


@pytest.mark.parametrize(("kind", "module"), MODULES.items())
def test_the_table_has_no_field_of_its_own_invention(kind: str, module: str) -> None:
    """Every field of the table is one that upstream's models have at the same place."""
    found = differences(kind, module=module, model=kind, path=kind, seen=set())
    assert {path for side, path in found if side == "ours"} <= GONE_SINCE


def test_the_table_lacks_only_what_came_later() -> None:
    """Fields that the witness has and the table lacks are those of its later release."""
    found = {
        ".".join(path.split(".")[-2:])
        for kind, module in MODULES.items()
        for side, path in differences(kind, module=module, model=kind, path=kind, seen=set())
        if side == "theirs"
    }
    assert found == ADDED_SINCE


def create(plural: str, body: Json, *, group: str = "", strict: bool = False) -> Json:
    server = new_server()
    return server.create(server.resource(group, "v1", plural), body, namespace="default", strict=strict).object


def test_fields_that_a_kind_does_not_have_are_dropped_at_any_depth() -> None:
    """In lists and members too; what stands in a map is anybody's."""
    body = pod(
        "p",
        nodeSelector={"anything": "goes"},
        nodeSelektor={},
        tolerations=[{"key": "a", "operator": "Exists", "until": 3}],
    )
    body["spec"]["containers"][0]["imagine"] = True
    made = create("pods", body)
    assert "nodeSelektor" not in made["spec"]
    assert "imagine" not in made["spec"]["containers"][0]
    assert made["spec"]["tolerations"][0] == {"key": "a", "operator": "Exists"}
    assert made["spec"]["nodeSelector"] == {"anything": "goes"}


def test_who_is_strict_hears_of_each_unknown_field() -> None:
    """Strict validation names all of them by their paths and stores nothing."""
    body = pod("p", nodeSelektor={})
    body["spec"]["containers"][0]["imagine"] = True
    with pytest.raises(BadRequest) as refused:
        create("pods", body, strict=True)
    assert 'unknown field "spec.containers[0].imagine"' in refused.value.message
    assert 'unknown field "spec.nodeSelektor"' in refused.value.message


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"containers": "none"}, "spec.containers"),
        ({"containers": [{"name": 1, "image": "i"}]}, "spec.containers[0].name"),
        ({"hostNetwork": "yes"}, "spec.hostNetwork"),
        ({"terminationGracePeriodSeconds": 1.5}, "spec.terminationGracePeriodSeconds"),
        ({"terminationGracePeriodSeconds": True}, "spec.terminationGracePeriodSeconds"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector.a"),
        ({"affinity": []}, "spec.affinity"),
    ],
)
def test_a_wrong_type_is_named_with_its_path(spec: dict[str, Any], path: str) -> None:
    """An object that the real server could not decode is a BadRequest that says where."""
    with pytest.raises(BadRequest, match=re.escape(f"into field {path} of type")):
        create("pods", pod("p", **spec))


def test_empty_and_false_fields_are_left_out() -> None:
    """Nulls, empty lists and maps, and false where it says nothing, are not kept."""
    made = create("pods", pod("p", nodeSelector={}, imagePullSecrets=[], hostNetwork=False, hostname=None))
    assert {"nodeSelector", "imagePullSecrets", "hostNetwork", "hostname"}.isdisjoint(made["spec"])
