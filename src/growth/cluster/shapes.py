"""Pods as the cache keeps them: what is one pod's own, and a shape that equal pods share.

A cluster of 20,000 pods has a few hundred shapes. Sharing them saves memory, and lets planning work on classes of pods
instead of pods. Two pods share a shape object exactly when nothing that decides where they fit differs: namespace,
labels, and the spec as Growth reads it without the node, without volumes that bind the pod nowhere (every pod has one
with a random name), and without what only names something.
"""

import datetime as dt
import sys
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from growth.api.meta import OwnerReference, Quantity, Struct
from growth.api.pods import Container, ContainerStatus, Pod, PodSpec, Volume

# Of annotations only these families are kept: others are large, change often, and mean nothing to Growth.
ANNOTATIONS: Final = (
    "karpenter.sh/",
    "growth.dev/",
    "cluster-autoscaler.kubernetes.io/",
    "controller.kubernetes.io/",
    "kubernetes.io/config.mirror",
)


class PodShape(Struct, frozen=True, eq=False):
    """What decides where a pod fits. Compared by identity: one table never holds two equal ones."""

    namespace: str
    labels: dict[str, str]
    spec: PodSpec


class CachedPod(Struct, frozen=True, kw_only=False):  # by position it is made six times quicker than by keyword
    """One pod. `resized` are the containers whose running or granted resources differ from the spec's."""

    name: str
    uid: str
    revision: str
    shape: PodShape
    node_name: str = ""
    phase: str = ""
    nominated_node_name: str = ""
    created: dt.datetime | None = None
    deleting: dt.datetime | None = None
    deletion_grace_seconds: int | None = None
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner: OwnerReference | None = None
    ready: bool = False
    ready_since: dt.datetime | None = None
    scheduled_since: dt.datetime | None = None
    unschedulable_since: dt.datetime | None = None
    resized: tuple[ContainerStatus, ...] = ()
    started: dt.datetime | None = None

    @property
    def namespace(self) -> str:
        return self.shape.namespace


# Owners whose pods belong to a node, or to a name that comes again.
BINDING_KINDS: Final = frozenset({"DaemonSet", "Node", "StatefulSet"})


class Shapes:
    """The table of shapes; `keep` is an informer's transform for pods.

    Shapes that no pod has any more stay until `forget_unused`.
    """

    def __init__(self) -> None:
        self._shapes: dict[bytes, PodShape] = {}
        self._last: PodShape | None = None
        self._owners: dict[OwnerReference, OwnerReference] = {}
        # Maps are written in key order: pods whose labels come in another order are equal all the same.
        self._encode = msgspec.msgpack.Encoder(order="deterministic").encode

    def __len__(self) -> int:
        return len(self._shapes)

    def keep(self, pod: Pod) -> CachedPod:
        """What the cache keeps of the pod."""
        meta, spec, status = pod.metadata, pod.spec, pod.status
        ready = scheduled = unschedulable = None
        is_ready = False
        for condition in status.conditions:
            if condition.type == "Ready":
                is_ready, ready = condition.status == "True", condition.last_transition_time
            elif condition.type == "PodScheduled":
                if condition.status == "True":
                    scheduled = condition.last_transition_time
                elif condition.reason == "Unschedulable":
                    # A mark without a time is a mark all the same.
                    unschedulable = condition.last_transition_time or meta.creation_timestamp or _LONG_AGO
        annotations, owners, node_name = meta.annotations, meta.owner_references, spec.node_name
        told = status.container_statuses or status.init_container_statuses
        return CachedPod(  # in the order of its fields
            meta.name,
            meta.uid,
            meta.resource_version,
            self._interned(meta.namespace, meta.labels, _placing(spec) if node_name or spec.volumes else spec),
            sys.intern(node_name) if node_name else "",
            sys.intern(status.phase),
            status.nominated_node_name,
            meta.creation_timestamp,
            meta.deletion_timestamp,
            meta.deletion_grace_period_seconds,
            _known_annotations(annotations) if annotations else _NONE,
            self._owner(owners) if owners else None,
            is_ready,
            ready,
            scheduled,
            unschedulable,
            _resized(pod) if told else (),
            status.start_time,
        )

    def shape(self, pod: Pod) -> PodShape:
        """The one shape object of all pods that are equal in everything that decides where they fit."""
        return self._interned(pod.metadata.namespace, pod.metadata.labels, _placing(pod.spec))

    def _interned(self, namespace: str, labels: dict[str, str], spec: PodSpec) -> PodShape:
        last = self._last  # lists come by name, and so the pods of one owner one after the other
        if last is not None and labels == last.labels and namespace == last.namespace and spec == last.spec:
            return last
        key = self._encode((namespace, labels, spec))
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = PodShape(namespace=namespace, labels=labels, spec=spec)
        self._last = shape
        return shape

    def forget_unused(self, pods: Iterable[CachedPod]) -> int:
        """Drops every shape and owner that none of these pods, the whole cache, has; how many shapes."""
        shapes: set[int] = set()
        owners: set[OwnerReference] = set()
        for pod in pods:
            shapes.add(id(pod.shape))
            if pod.owner is not None:
                owners.add(pod.owner)
        before = len(self._shapes)
        self._last = None
        self._shapes = {key: shape for key, shape in self._shapes.items() if id(shape) in shapes}
        self._owners = {owner: owner for owner in self._owners if owner in owners}
        return before - len(self._shapes)

    def _owner(self, owners: Sequence[OwnerReference]) -> OwnerReference | None:
        """Who controls the pod; else, as Karpenter reads it, who is of a kind that says where the pod belongs."""
        found = next((owner for owner in owners if owner.controller), None)
        found = found or next((owner for owner in owners if owner.kind in BINDING_KINDS), None)
        return None if found is None else self._owners.setdefault(found, found)


def _placing(spec: PodSpec) -> PodSpec:
    """The spec without what places no pod."""
    if not spec.node_name and not spec.volumes:
        return spec
    volumes = tuple(volume for volume in spec.volumes if _binds(volume))
    if not spec.node_name and len(volumes) == len(spec.volumes):
        return spec
    return msgspec.structs.replace(spec, node_name="", volumes=volumes)


def _binds(volume: Volume) -> bool:
    return not (volume.persistent_volume_claim is None and volume.ephemeral is None and volume.csi is None)


def _known_annotations(annotations: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if key.startswith(ANNOTATIONS)} or _NONE


_NONE: Final[dict[str, str]] = {}
_LONG_AGO: Final = dt.datetime.min.replace(tzinfo=dt.UTC)


def _resized(pod: Pod) -> tuple[ContainerStatus, ...]:
    status = pod.status
    by_name = {container.name: container for container in pod.spec.containers + pod.spec.init_containers}
    return tuple(
        told
        for told in status.container_statuses + status.init_container_statuses
        if _differs(told, by_name.get(told.name))
    )


def _differs(told: ContainerStatus, container: Container | None) -> bool:
    if container is None:
        return False
    asked = container.resources.requests
    running = told.resources.requests if told.resources is not None else asked
    granted: dict[str, Quantity] = told.allocated_resources or asked
    return running != asked or granted != asked
