"""From the cluster's objects to what planning reads: a snapshot, and the pods that want a place. Pure.

`growth plan` calls it on files and on a cluster that it read once; the state fed by watches hands it the same objects.
"""

import collections
import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from growth.api import names
from growth.api.core import Namespace
from growth.api.growthpools import GrowthPool, NodeRequest
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.nodes import Node
from growth.api.placement import NO_EXECUTE, NO_SCHEDULE, Toleration
from growth.api.pods import Pod, PodSpec, PodStatus
from growth.api.requests import requests_of
from growth.api.resizing import current_spec
from growth.api.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from growth.api.workloads import DaemonSet
from growth.cluster.attachments import Attachments
from growth.cluster.machines import Machine, machines
from growth.cluster.node_requests import claims_to_come, unmet_types
from growth.cluster.pools import Market, NodeClasses, Usage, growth_pool, karpenter_pool
from growth.cluster.pricing import by_name, price_of, type_of
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.snapshot import Demand, NodeView, PoolView, Snapshot, VolumesView
from growth.units.errors import QuantityError
from growth.units.resources import Amounts, add

_TERMINAL: Final = frozenset({"Succeeded", "Failed"})
_OF_NODES: Final = frozenset({"DaemonSet", "Node"})  # owners whose pods belong to their node: mirror pods too

# What the DaemonSet controller lets its pods tolerate besides what their template says.
_DAEMON_TOLERATIONS: Final = (
    Toleration(key=names.NOT_READY_TAINT, operator="Exists", effect=NO_EXECUTE),
    Toleration(key=names.UNREACHABLE_TAINT, operator="Exists", effect=NO_EXECUTE),
    Toleration(key="node.kubernetes.io/disk-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key="node.kubernetes.io/pid-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key=names.UNSCHEDULABLE_TAINT, operator="Exists", effect=NO_SCHEDULE),
)
_HOST_NETWORK_TOLERATION: Final = Toleration(
    key="node.kubernetes.io/network-unavailable", operator="Exists", effect=NO_SCHEDULE
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Objects:
    """What is known of a cluster. Of every kind each object once."""

    pods: Sequence[CachedPod] = ()
    nodes: Sequence[Node] = ()
    claims: Sequence[NodeClaim] = ()
    pools: Sequence[NodePool] = ()
    growth_pools: Sequence[GrowthPool] = ()
    node_requests: Sequence[NodeRequest] = ()
    node_classes: NodeClasses = dataclasses.field(default_factory=dict)
    daemon_sets: Sequence[DaemonSet] = ()
    namespaces: Sequence[Namespace] = ()
    volume_claims: Sequence[PersistentVolumeClaim] = ()
    volumes: Sequence[PersistentVolume] = ()
    storage_classes: Sequence[StorageClass] = ()
    csi_nodes: Sequence[CSINode] = ()
    attachments: Sequence[VolumeAttachment] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Waiting:
    """A pod without a node that wants none yet, and what it waits for. `pod` is namespace/name."""

    pod: str
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Assembled:
    """`demands` are pods without a node, and those whose node is on its way out. `warnings` are for people."""

    snapshot: Snapshot
    demands: tuple[Demand, ...]
    waiting: tuple[Waiting, ...] = ()
    warnings: tuple[str, ...] = ()


def assemble(objects: Objects, catalogue: Catalogue, *, now: dt.datetime, revision: int = 0) -> Assembled:
    """The snapshot of the objects, as of `now`, with what the catalogue sells."""
    types = by_name(catalogue.types)
    by_pool = {pool.metadata.name: pool for pool in objects.growth_pools}
    coming = claims_to_come(objects.node_requests, objects.claims, by_pool)
    found = machines(objects.nodes, (*objects.claims, *coming), types)
    warnings: list[str] = []
    market = Market(catalogue, objects.node_classes, now, unmet_types(objects.node_requests, now))
    pools = _pools(objects, Usage(found, types), market, warnings)
    staying = {machine.name: machine for machine in found if not machine.leaving}
    leaving = {machine.name for machine in found if machine.leaving}
    bound: dict[str, list[CachedPod]] = {}
    demands: list[Demand] = []
    waiting: list[Waiting] = []
    lost = 0
    for pod in objects.pods:
        if pod.phase in _TERMINAL:
            continue
        if not pod.node_name:
            why = _waits(pod)
            if why:
                waiting.append(Waiting(_key(pod), why))
            elif _movable(pod):
                demands.append(Demand(_key(pod), pod.shape))
        elif pod.node_name in staying:
            bound.setdefault(pod.node_name, []).append(pod)
        elif pod.node_name in leaving:
            if _movable(pod):
                demands.append(Demand(_key(pod), pod.shape))
        else:
            lost += 1
    if lost:
        warnings.append(f"{lost} pods are bound to nodes that are not known: they are left out")
    volumes = _volumes(objects)
    books = _Books(Attachments(volumes, objects.attachments))
    nodes = []
    for machine in staying.values():
        view = books.view(machine, bound.get(machine.name, []))
        nodes.append(dataclasses.replace(view, price=price_of(view.labels, type_of(view.labels, types))))
    snapshot = Snapshot(
        currency=catalogue.currency,
        pools=tuple(pools),
        nodes=tuple(nodes),
        daemons=tuple(_samples(objects.daemon_sets, objects.pods)),
        volumes=volumes,
        namespaces={
            each.metadata.name: {**each.metadata.labels, names.NAMESPACE_NAME_LABEL: each.metadata.name}
            for each in objects.namespaces
        },
        revision=revision,
    )
    return Assembled(
        snapshot=snapshot, demands=tuple(demands), waiting=tuple(waiting), warnings=(*warnings, *books.warnings)
    )


def _pools(objects: Objects, usage: Usage, market: Market, warnings: list[str]) -> Iterable[PoolView]:
    views = [karpenter_pool(pool, usage, market) for pool in objects.pools]
    for pool in objects.growth_pools:
        view, unknown = growth_pool(pool, usage, market)
        views.append(view)
        warnings += unknown
    return views


def _key(pod: CachedPod) -> str:
    return f"{pod.shape.namespace}/{pod.name}"


def _waits(pod: CachedPod) -> str:
    """What a pod without a node waits for before a machine would help it; empty for nothing."""
    if pod.deleting is not None:
        return ""
    gates = pod.shape.spec.scheduling_gates
    if gates:
        return f"scheduling gates: {', '.join(gate.name for gate in gates)}"
    if pod.nominated_node_name:
        return f"preemption on node {pod.nominated_node_name}"
    return ""


def _movable(pod: CachedPod) -> bool:
    """Whether the pod wants a place of its own: not one that goes, and none that belongs to its node."""
    if pod.deleting is not None or names.MIRROR_POD_ANNOTATION in pod.annotations:
        return False
    return pod.owner is None or pod.owner.kind not in _OF_NODES


def _of_daemon_set(pod: CachedPod) -> bool:
    return pod.owner is not None and pod.owner.kind == "DaemonSet"


class _Books:
    """Adds up what pods hold on nodes; each shape is counted once."""

    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments
        self._requests: dict[PodShape, Amounts] = {}
        self.warnings: list[str] = []

    def view(self, machine: Machine, pods: Sequence[CachedPod]) -> NodeView:
        try:
            allocatable = machine.allocatable
            requested = self._sum(pods)
            daemons = self._sum([pod for pod in pods if _of_daemon_set(pod)])
        except QuantityError as error:
            # How much is free there is not known, so nothing may be placed there.
            self.warnings.append(f"node {machine.name} is taken as full: {error}")
            allocatable, requested, daemons = {}, {}, {}
        return NodeView(
            name=machine.name,
            labels=machine.labels,
            taints=machine.taints,
            allocatable=allocatable,
            requested=requested,
            daemon_requested=daemons,
            pods=tuple(collections.Counter(pod.shape for pod in pods).items()),
            volumes=self._attachments.on(machine.name, pods),
            initialized=machine.initialized,
            pool=machine.pool,
        )

    def _sum(self, pods: Sequence[CachedPod]) -> Amounts:
        shapes = collections.Counter(pod.shape for pod in pods if not pod.resized)
        total: dict[str, int] = {}
        for shape, number in shapes.items():
            for name, amount in self._of(shape).items():
                total[name] = total.get(name, 0) + amount * number
        resized = [requests_of(_current(pod)) for pod in pods if pod.resized]
        return add(total, *resized) if resized else total

    def _of(self, shape: PodShape) -> Amounts:
        known = self._requests.get(shape)
        if known is None:
            try:
                known = self._requests[shape] = requests_of(shape.spec)
            except QuantityError as error:
                raise QuantityError(f"a pod of namespace {shape.namespace} there: {error}") from error
        return known


def _current(pod: CachedPod) -> PodSpec:
    return current_spec(Pod(spec=pod.shape.spec, status=PodStatus(container_statuses=pod.resized)))


def _volumes(objects: Objects) -> VolumesView:
    return VolumesView(
        claims={(each.metadata.namespace, each.metadata.name): each for each in objects.volume_claims},
        volumes={each.metadata.name: each for each in objects.volumes},
        classes={each.metadata.name: each for each in objects.storage_classes},
        csi_nodes={each.metadata.name: each for each in objects.csi_nodes},
    )


def _samples(daemon_sets: Sequence[DaemonSet], pods: Iterable[CachedPod]) -> Iterable[Pod]:
    """A pod of each DaemonSet as its controller would make it; what it requests is as in its newest pod, if it has one."""
    newest: dict[tuple[str, str], CachedPod] = {}
    for pod in pods if daemon_sets else ():
        if pod.owner is not None and pod.owner.kind == "DaemonSet":
            key = (pod.namespace, pod.owner.name)
            if key not in newest or _age(newest[key]) < _age(pod):
                newest[key] = pod
    for each in daemon_sets:
        if each.metadata.deletion_timestamp is not None:
            continue
        template = each.spec.template
        spec = template.spec
        live = newest.get((each.metadata.namespace, each.metadata.name))
        if live is not None:
            running = live.shape.spec
            spec = msgspec.structs.replace(
                spec,
                containers=running.containers,
                init_containers=running.init_containers,
                resources=running.resources,
                overhead=running.overhead,
            )
        added = (*_DAEMON_TOLERATIONS, _HOST_NETWORK_TOLERATION) if spec.host_network else _DAEMON_TOLERATIONS
        spec = msgspec.structs.replace(spec, tolerations=(*spec.tolerations, *added))
        meta = msgspec.structs.replace(template.metadata, name=each.metadata.name, namespace=each.metadata.namespace)
        yield Pod(metadata=meta, spec=spec)


def _age(pod: CachedPod) -> tuple[dt.datetime, str]:
    return (pod.created or dt.datetime.min.replace(tzinfo=dt.UTC), pod.name)
