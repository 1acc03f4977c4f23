"""Owners and namespaces: what goes with what."""

from typing import Any

import pytest

from growth.api.kinds import Json
from growth.kube.errors import BadRequest, Forbidden, NotFound
from growth.kube.memory.deletion import DeleteOptions
from growth.kube.memory.server import MemoryServer
from tests.unit.memory.builders import new_server, pod


def make(
    server: MemoryServer, name: str, *owners: Json, plural: str = "configmaps", namespace: str = "default", **extra: Any
) -> Json:
    references = [
        {"apiVersion": "v1", "kind": one["kind"], "name": one["metadata"]["name"], "uid": one["metadata"]["uid"]}
        for one in owners
    ]
    body: Json = {"metadata": {"name": name, "ownerReferences": references, **extra}}
    resource = server.resource("", "v1", plural)
    if plural == "pods":
        body["spec"] = pod(name, nodeName="n")["spec"]
    return server.create(resource, body, namespace=namespace if resource.namespaced else "").object


def names(server: MemoryServer, plural: str = "configmaps", namespace: str = "default") -> list[str]:
    listing = server.list(server.resource("", "v1", plural), namespace=namespace)
    return [one.object["metadata"]["name"] for one in listing.items]


def delete(server: MemoryServer, name: str, *, plural: str = "configmaps", **options: Any) -> None:
    server.delete(server.resource("", "v1", plural), name, namespace="default", options=DeleteOptions(**options))


def test_a_chain_of_any_length_goes_with_its_first() -> None:
    """Dependents of dependents go too, however deep they hang."""
    server = new_server()
    last = make(server, "c0")
    for number in range(1, 2000):
        last = make(server, f"c{number}", last)
    delete(server, "c0")
    assert names(server) == []


def test_one_owner_left_keeps_its_dependent() -> None:
    """A dependent with two owners outlives the first and loses the reference to it."""
    server = new_server()
    first, second = make(server, "first"), make(server, "second")
    make(server, "child", first, second)
    delete(server, "first")
    child = server.get(server.resource("", "v1", "configmaps"), "child", namespace="default").object
    assert [owner["name"] for owner in child["metadata"]["ownerReferences"]] == ["second"]
    delete(server, "second")
    assert names(server) == []


def test_an_object_whose_owner_never_was_is_collected() -> None:
    """Created with an owner that does not exist, an object is answered and then gone."""
    server = new_server()
    ghost = {"kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "no-such"}}
    made = make(server, "child", ghost)
    assert made["metadata"]["name"] == "child"
    assert names(server) == []


def test_the_uid_counts_and_not_the_name() -> None:
    """An owner that was made anew under the old name owns nothing of its namesake's."""
    server = new_server()
    first = make(server, "owner")
    make(server, "child", first)
    delete(server, "owner", propagation="Orphan")
    make(server, "owner")
    assert names(server) == ["child", "owner"]
    make(server, "other", first)
    assert names(server) == ["child", "owner"]


def test_an_owner_of_an_unknown_kind_is_not_missed() -> None:
    """Whether it exists cannot be told, so nothing is collected."""
    server = new_server()
    make(server, "child", {"kind": "Gizmo", "metadata": {"name": "g", "uid": "u"}})
    assert names(server) == ["child"]


def test_an_owner_in_another_namespace_counts_as_missing() -> None:
    """Owners are looked for in the dependent's own namespace."""
    server = new_server()
    server.create(server.resource("", "v1", "namespaces"), {"metadata": {"name": "shop"}})
    owner = make(server, "owner", namespace="shop")
    make(server, "child", owner)
    assert names(server) == []


def test_orphans_stay_and_forget_their_owner() -> None:
    """Deleted with orphaning, an owner leaves its dependents behind without a reference."""
    server = new_server()
    make(server, "child", make(server, "owner"))
    delete(server, "owner", propagation="Orphan")
    child = server.get(server.resource("", "v1", "configmaps"), "child", namespace="default").object
    assert "ownerReferences" not in child["metadata"]


def test_an_owner_kept_by_a_finalizer_keeps_its_dependents() -> None:
    """Background deletion begins when the owner is gone, not when it is marked."""
    server = new_server()
    owner = make(server, "owner", finalizers=["growth.dev/hold"])
    make(server, "child", owner)
    delete(server, "owner")
    assert names(server) == ["child", "owner"]
    change = {"metadata": {"finalizers": None}}
    server.patch(server.resource("", "v1", "configmaps"), "owner", change, namespace="default")
    assert names(server) == []


def test_collected_pods_end_with_grace() -> None:
    """A bound pod whose owner went is being deleted, and goes when its kubelet says so."""
    server = new_server()
    make(server, "p", make(server, "owner"), plural="pods")
    delete(server, "owner")
    stored = server.get(server.resource("", "v1", "pods"), "p", namespace="default").object
    assert stored["metadata"]["deletionGracePeriodSeconds"] == 30
    delete(server, "p", plural="pods", grace_seconds=0)
    assert names(server, "pods") == []


def test_a_namespace_waits_for_what_is_kept_in_it() -> None:
    """A terminating namespace refuses newcomers and goes with the last thing in it."""
    server = new_server()
    namespaces = server.resource("", "v1", "namespaces")
    server.create(namespaces, {"metadata": {"name": "shop"}})
    make(server, "free", namespace="shop")
    make(server, "kept", namespace="shop", finalizers=["growth.dev/hold"])
    stored, gone = server.delete(namespaces, "shop")
    assert (stored.object["status"]["phase"], gone) == ("Terminating", False)
    assert names(server, namespace="shop") == ["kept"]
    with pytest.raises(Forbidden, match="because it is being terminated"):
        make(server, "late", namespace="shop")
    resource = server.resource("", "v1", "configmaps")
    server.patch(resource, "kept", {"metadata": {"finalizers": None}}, namespace="shop")
    with pytest.raises(NotFound):
        server.get(namespaces, "shop")


def test_foreground_deletion_is_refused_before_anything_happens() -> None:
    """What the server cannot do it says, and does nothing."""
    server = new_server()
    make(server, "child", make(server, "owner"))
    with pytest.raises(BadRequest, match="use Background or Orphan"):
        delete(server, "owner", propagation="Foreground")
    assert names(server) == ["child", "owner"]


def claim(name: str) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": spec}


def test_a_claim_outlives_its_deletion_while_a_pod_uses_it() -> None:
    """Nobody uses it: it goes at once. A pod uses it: it goes with that pod, or when the pod is finished."""
    server = new_server()
    claims, pods = server.resource("", "v1", "persistentvolumeclaims"), server.resource("", "v1", "pods")
    for name in ("free", "used", "done"):
        server.create(claims, claim(name), namespace="default")
    for name in ("used", "done"):
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": name}}
        server.create(pods, pod(name, nodeName="n", volumes=[volume]), namespace="default")
    for name in ("free", "used", "done"):
        delete(server, name, plural="persistentvolumeclaims")
    assert names(server, "persistentvolumeclaims") == ["done", "used"]
    server.patch(pods, "done", {"status": {"phase": "Succeeded"}}, namespace="default", subresource="status")
    assert names(server, "persistentvolumeclaims") == ["used"]
    delete(server, "used", plural="pods", grace_seconds=0)
    assert names(server, "persistentvolumeclaims") == []


def test_a_volume_outlives_its_deletion_while_it_is_bound() -> None:
    """A bound volume stays until it is released."""
    server = new_server()
    volumes = server.resource("", "v1", "persistentvolumes")
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
    server.create(volumes, {"metadata": {"name": "v"}, "spec": spec})
    server.patch(volumes, "v", {"status": {"phase": "Bound"}}, subresource="status")
    delete(server, "v", plural="persistentvolumes")
    assert names(server, "persistentvolumes", namespace="") == ["v"]
    server.patch(volumes, "v", {"status": {"phase": "Released"}}, subresource="status")
    assert names(server, "persistentvolumes", namespace="") == []


def test_a_namespace_with_claims_in_use_empties_itself() -> None:
    """Pods first, then the claims that they used, then the namespace."""
    server = new_server()
    namespaces = server.resource("", "v1", "namespaces")
    server.create(namespaces, {"metadata": {"name": "shop"}})
    server.create(server.resource("", "v1", "persistentvolumeclaims"), claim("c"), namespace="shop")
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    server.create(server.resource("", "v1", "pods"), pod("p", volumes=[volume]), namespace="shop")
    server.delete(namespaces, "shop")
    with pytest.raises(NotFound):
        server.get(namespaces, "shop")
