"""Pods of one shape share it, and what is a pod's own is kept."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from growth.api.pods import Pod
from growth.cluster.shapes import Shapes


def pod(name: str = "web-1", **changes: Any) -> Pod:
    """A running pod of a Deployment; `changes` replace whole top-level parts."""
    body: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "resourceVersion": "5",
            "labels": {"app": "web", "tier": "front"},
            "annotations": {"karpenter.sh/do-not-disrupt": "true", "checksum/config": "abc"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
            ],
        },
        "spec": {
            "nodeName": f"node-{name}",
            "containers": [{"name": "web", "resources": {"requests": {"cpu": "100m"}}}],
            "volumes": [{"name": f"kube-api-access-{name}"}],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T00:00:05Z"},
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2030-01-01T00:00:01Z"},
            ],
        },
    }
    return msgspec.convert({**body, **changes}, Pod)


def test_equal_pods_share_one_shape() -> None:
    """Name, node and the volume with a random name do not matter; the order of labels neither."""
    shapes = Shapes()
    first, second = shapes.keep(pod("web-1")), shapes.keep(pod("web-2"))
    assert first.shape is second.shape
    assert (first.node_name, second.node_name) == ("node-web-1", "node-web-2")
    reordered = {"name": "web-3", "namespace": "shop", "labels": {"tier": "front", "app": "web"}}
    assert shapes.keep(pod("web-3", metadata=reordered)).shape is first.shape
    assert len(shapes) == 1


def test_whatever_decides_where_a_pod_fits_makes_another_shape() -> None:
    """Another namespace, label, request, toleration or claim is another shape."""
    shapes = Shapes()
    base = shapes.keep(pod()).shape
    containers = [{"name": "web", "resources": {"requests": {"cpu": "100m"}}}]
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}]
    others = [
        pod(metadata={"name": "x", "namespace": "other", "labels": {"app": "web", "tier": "front"}}),
        pod(metadata={"name": "x", "namespace": "shop", "labels": {"app": "web", "tier": "back"}}),
        pod(spec={"containers": [{"name": "web", "resources": {"requests": {"cpu": "200m"}}}]}),
        pod(spec={"containers": containers, "tolerations": [{"key": "a"}]}),
        pod(spec={"containers": containers, "volumes": claim}),
    ]
    found = [shapes.keep(other).shape for other in others]
    assert len({id(shape) for shape in (base, *found)}) == 6
    assert found[4].spec.volumes[0].persistent_volume_claim is not None


def test_what_is_the_pods_own_is_kept() -> None:
    """Owner, known annotations, readiness and times are kept; annotations that mean nothing to us are not."""
    kept = Shapes().keep(pod())
    assert kept.namespace == "shop"
    assert kept.owner is not None
    assert kept.owner.name == "web"
    assert kept.annotations == {"karpenter.sh/do-not-disrupt": "true"}
    assert kept.ready
    assert kept.scheduled_since == dt.datetime(2030, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    assert kept.unschedulable_since is None


def test_a_pod_that_no_node_can_hold_says_since_when() -> None:
    """`unschedulable_since` is set by the scheduler's refusal, and not by scheduling gates."""
    shapes = Shapes()
    since = "2030-01-01T00:00:09Z"
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": since}
    gated = {**refused, "reason": "SchedulingGated"}
    assert shapes.keep(pod(status={"conditions": [refused]})).unschedulable_since is not None
    assert shapes.keep(pod(status={"conditions": [gated]})).unschedulable_since is None


def test_a_resized_container_is_kept_as_it_runs() -> None:
    """Only containers that run with something else than the spec says are kept."""
    same = {"name": "web", "resources": {"requests": {"cpu": "100m"}}, "allocatedResources": {"cpu": "100m"}}
    grown = {**same, "allocatedResources": {"cpu": "300m"}}
    shapes = Shapes()
    assert shapes.keep(pod(status={"containerStatuses": [same]})).resized == ()
    assert shapes.keep(pod(status={"containerStatuses": [grown]})).resized[0].allocated_resources == {"cpu": "300m"}


def test_shapes_that_nobody_has_can_be_forgotten() -> None:
    """Forgetting keeps the shapes of living pods, as the same objects."""
    shapes = Shapes()
    kept = shapes.keep(pod())
    shapes.keep(pod(metadata={"name": "x", "namespace": "other"}))
    assert shapes.forget_unused([kept]) == 1
    assert shapes.keep(pod("again")).shape is kept.shape


def test_owners_that_share_a_uid_stay_apart() -> None:
    """Files are written by hand: a DaemonSet and a ReplicaSet with the same UID, or with none, are two all the same."""
    shapes = Shapes()
    meta = pod().metadata
    (owner,) = meta.owner_references
    others = [msgspec.structs.replace(owner, kind=kind, uid="") for kind in ("DaemonSet", "ReplicaSet")]
    metas = [msgspec.structs.replace(meta, owner_references=(other,)) for other in others]
    kept = [shapes.keep(msgspec.structs.replace(pod(), metadata=each)) for each in metas]
    assert [each.owner.kind for each in kept if each.owner is not None] == ["DaemonSet", "ReplicaSet"]
    assert shapes.keep(msgspec.structs.replace(pod(), metadata=metas[0])).owner is kept[0].owner
    shapes.forget_unused(kept[1:])
    assert shapes.keep(msgspec.structs.replace(pod(), metadata=metas[1])).owner is kept[1].owner


@pytest.mark.parametrize(("kind", "counts"), [("DaemonSet", True), ("ReplicaSet", False)])
def test_a_daemon_set_is_an_owner_though_nobody_says_that_it_controls(kind: str, *, counts: bool) -> None:
    """Its pods belong to their node all the same; of others only who controls a pod counts."""
    meta = pod().metadata
    (owner,) = meta.owner_references
    loose = msgspec.structs.replace(owner, kind=kind, controller=False)
    kept = Shapes().keep(
        msgspec.structs.replace(pod(), metadata=msgspec.structs.replace(meta, owner_references=(loose,)))
    )
    assert (kept.owner is not None) == counts
