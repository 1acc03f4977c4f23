"""Strategic merge: what lists do, by the keys of their kinds. The expectations were read off kube-apiserver 1.36.3."""

from typing import Any

import pytest

from growth.api.kinds import Json
from growth.kube.errors import BadRequest, ServerError
from growth.kube.memory.strategic import merge

POD: Json = {
    "metadata": {"finalizers": ["a.b/c"], "labels": {"l": "1"}},
    "spec": {
        "containers": [
            {"name": "a", "image": "i:1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]},
            {"name": "b", "image": "i:2"},
        ],
        "tolerations": [{"key": "k"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "nodeSelector": {"a": "b"},
    },
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "X", "status": "False"}]},
}


def names(items: list[Json], key: str = "name") -> list[Any]:
    return [item[key] for item in items]


def spec(patch: Json) -> Json:
    found: Json = merge("Pod", POD, {"spec": patch})["spec"]
    return found


def test_a_known_item_is_merged_in_its_place() -> None:
    """The other fields and the order stay."""
    merged = spec({"containers": [{"name": "b", "image": "new"}]})["containers"]
    assert merged == [POD["spec"]["containers"][0], {"name": "b", "image": "new"}]


def test_a_new_item_comes_before_those_of_the_server() -> None:
    """An item that the server did not know stands first, unless a known one of the patch stands before it."""
    assert names(spec({"containers": [{"name": "c"}]})["containers"]) == ["c", "a", "b"]
    assert names(spec({"containers": [{"name": "a"}, {"name": "c"}]})["containers"]) == ["a", "c", "b"]


def test_conditions_merge_by_type() -> None:
    """Known conditions change, the others stay where they were."""
    patch = {"status": {"conditions": [{"type": "X", "status": "True"}, {"type": "Z", "status": "True"}]}}
    merged = merge("Pod", POD, patch)["status"]["conditions"]
    assert [(one["type"], one["status"]) for one in merged] == [("Ready", "True"), ("X", "True"), ("Z", "True")]


def test_an_order_that_is_set_is_kept() -> None:
    """kubectl says in which order its items shall stand; the server's own keep their places among them."""
    patch = {
        "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
        "containers": [{"name": "a", "image": "new"}],
    }
    assert names(spec(patch)["containers"]) == ["b", "a"]
    assert names(spec({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]})["containers"]) == ["b", "a"]


def test_items_are_deleted_and_lists_replaced_by_directive() -> None:
    """`$patch: delete` removes one item, `$patch: replace` all others; nested lists know it too."""
    assert names(spec({"containers": [{"name": "a", "$patch": "delete"}]})["containers"]) == ["b"]
    assert names(spec({"containers": [{"name": "z"}, {"$patch": "replace"}]})["containers"]) == ["z"]
    env = [{"name": "Z", "value": "3"}, {"name": "X", "$patch": "delete"}]
    assert names(spec({"containers": [{"name": "a", "env": env}]})["containers"][0]["env"]) == ["Z", "Y"]


def test_a_list_without_a_key_is_replaced() -> None:
    """Tolerations of a pod and taints of a node are one value."""
    assert spec({"tolerations": [{"key": "z"}]})["tolerations"] == [{"key": "z"}]
    node = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    patch = {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}
    assert names(merge("Node", node, patch)["spec"]["taints"], "key") == ["b"]


def test_lists_of_plain_values_grow_and_shrink() -> None:
    """Finalizers are joined; leaving takes a directive."""
    assert merge("Pod", POD, {"metadata": {"finalizers": ["d.e/f"]}})["metadata"]["finalizers"] == ["d.e/f", "a.b/c"]
    left = merge("Pod", POD, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}})
    assert left["metadata"]["finalizers"] == []


def test_maps_are_replaced_cleared_and_cut_down() -> None:
    """`$patch: replace` on a map, null, and `$retainKeys`."""
    assert spec({"nodeSelector": {"$patch": "replace", "c": "d"}})["nodeSelector"] == {"c": "d"}
    assert "nodeSelector" not in spec({"nodeSelector": None})
    assert "nodeSelector" not in spec({"nodeSelector": {"$patch": "delete"}})
    volume = {"name": "v", "emptyDir": None, "hostPath": {"path": "/x"}, "$retainKeys": ["name", "hostPath"]}
    assert spec({"volumes": [volume]})["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_templates_of_workloads_merge_like_pods() -> None:
    """The keys of a pod spec hold inside templates too."""
    deployment = {"spec": {"template": {"spec": POD["spec"]}}}
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "new"}]}}}}
    for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"):
        inner = merge(kind, deployment, patch)["spec"]["template"]["spec"]
        assert names(inner["containers"], "image") == ["i:1", "new"]


def test_the_old_object_is_left_as_it_was() -> None:
    """Merging makes a new object."""
    before = repr(POD)
    spec({"containers": [{"name": "a", "env": [{"name": "X", "$patch": "delete"}]}], "nodeSelector": {"c": "d"}})
    assert repr(POD) == before


def test_what_cannot_be_merged_is_refused() -> None:
    """An item without its key, and a directive that nobody knows."""
    with pytest.raises(ServerError, match="does not contain declared merge key: name"):
        spec({"containers": [{"image": "i"}]})
    with pytest.raises(BadRequest, match="directive"):
        spec({"nodeSelector": {"$patch": "explode"}})
