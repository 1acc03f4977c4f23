"""From the cluster's objects to what planning reads: a snapshot, and the pods that want a place. Pure.

`growth plan` calls `assemble` on files and on a cluster that it read once. The state fed by watches keeps a `Picture`
up to date instead and hands it to `composed`, away from the event loop: both ways lead through the same code.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import msgspec

from growth.api import names
from growth.api.core import Namespace
from growth.api.growthpools import GrowthPool, NodeRequest
from growth.api.instance_types import Catalogue, InstanceType
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.nodes import Node
from growth.api.overlays import NodeOverlay
from growth.api.pods import Pod
from growth.api.pools import PoolRef
from growth.api.reservations import ReservedName
from growth.api.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from growth.api.workloads import DaemonSet
from growth.api.zones import DATACENTERS, named_zones
from growth.cluster.attachments import Attachments
from growth.cluster.counting import Books, Counted
from growth.cluster.daemons import newest_pods, sample
from growth.cluster.machines import machines
from growth.cluster.node_requests import claims_to_come, unmet_types
from growth.cluster.pools import Market, NodeClasses, Usage, growth_pool, karpenter_pool
from growth.cluster.pricing import by_name, price_of, type_of
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.snapshot import Demand, NodeView, PoolView, Snapshot, VolumesView
from growth.cluster.wanting import is_done, key_of, movable, preempts, waits_for
from growth.cluster.zone_names import ZoneNames, of_volumes, selected_by, zone_names, zone_on


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Picture:
    """A cluster at one moment, its machines counted already: frozen values, safe to read on any thread.

    `counted` are the machines by name. `pending` are the pods without a node that are to be looked at. `lost` is how
    many pods are bound to nodes that are not known. `held` are shapes of pods that are on their way to a claim's machine
    and keep their room there, by the claim's name; `promised` those of pods that run elsewhere until their machine goes, and
    then want the room. `given_up` are reserved names that nobody will create any more; None: those
    that are old by the time that they carry.
    """

    catalogue: Catalogue
    now: dt.datetime
    revision: int = 0
    counted: Mapping[str, Counted] = dataclasses.field(default_factory=dict)
    pending: Sequence[CachedPod] = ()
    lost: int = 0
    held: Mapping[str, Sequence[PodShape]] = dataclasses.field(default_factory=dict)
    promised: Mapping[str, Sequence[PodShape]] = dataclasses.field(default_factory=dict)
    given_up: Set[ReservedName] | None = None
    pools: Sequence[NodePool] = ()
    growth_pools: Sequence[GrowthPool] = ()
    node_requests: Sequence[NodeRequest] = ()
    node_classes: NodeClasses = dataclasses.field(default_factory=dict)
    overlays: Sequence[NodeOverlay] = ()
    daemons: Sequence[Pod] = ()
    volumes: VolumesView = dataclasses.field(default_factory=VolumesView)
    namespaces: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Waiting:
    """A pod without a node that wants none yet, and what it waits for. `pod` is namespace/name."""

    pod: str
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Assembled:
    """`demands` are pods without a node, and those whose node is on its way out. `warnings` are for people.

    `preempting` are pods for which kube-scheduler has asked others to go: no machine is bought for them, but they are in line
    for the room that there is.
    """

    snapshot: Snapshot
    demands: tuple[Demand, ...]
    preempting: tuple[Demand, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    warnings: tuple[str, ...] = ()


def assemble(objects: Objects, catalogue: Catalogue, *, now: dt.datetime, revision: int = 0) -> Assembled:
    """The snapshot of the objects, as of `now`, with what the catalogue sells."""
    return composed(pictured(objects, catalogue, now=now, revision=revision))


def pictured(objects: Objects, catalogue: Catalogue, *, now: dt.datetime, revision: int = 0) -> Picture:
    """The objects with their machines matched and counted."""
    types = by_name(catalogue.types)
    by_pool = {pool.metadata.name: pool for pool in objects.growth_pools}
    coming = claims_to_come(objects.node_requests, objects.claims, by_pool)
    found = machines(objects.nodes, (*objects.claims, *coming), types)
    known = {machine.name for machine in found}
    pending: list[CachedPod] = []
    bound: dict[str, list[CachedPod]] = {}
    lost = 0
    for pod in objects.pods:
        if not pod.node_name:
            pending.append(pod)
        elif pod.node_name in known:
            bound.setdefault(pod.node_name, []).append(pod)
        elif not is_done(pod):
            lost += 1
    volumes = volumes_view(
        claims=objects.volume_claims,
        volumes=objects.volumes,
        classes=objects.storage_classes,
        csi_nodes=objects.csi_nodes,
    )
    attachments = Attachments(volumes, objects.attachments)
    books = Books()
    newest = newest_pods(objects.pods) if objects.daemon_sets else {}
    return Picture(
        catalogue=catalogue,
        now=now,
        revision=revision,
        counted={
            machine.name: books.count(machine, bound.get(machine.name, ()), attachments=attachments, types=types)
            for machine in found
        },
        pending=pending,
        lost=lost,
        pools=objects.pools,
        growth_pools=objects.growth_pools,
        node_requests=objects.node_requests,
        node_classes=objects.node_classes,
        daemons=tuple(
            sample(each, newest.get((each.metadata.namespace, each.metadata.name)))
            for each in objects.daemon_sets
            if each.metadata.deletion_timestamp is None
        ),
        volumes=volumes,
        namespaces=namespace_labels(objects.namespaces),
    )


def _queued(pod: CachedPod) -> tuple[float, int]:
    """Where a pending pod stands in kube-scheduler's queue, among those of its priority.

    Times of creation are whole seconds. Within one the revision tells who was tried first: the mark that no node takes
    a pod is the last thing that is written on it while it waits.
    """
    created = pod.created.timestamp() if pod.created is not None else 0.0
    return created, int(pod.revision) if pod.revision.isdigit() else 0


def composed(picture: Picture) -> Assembled:
    """What planning reads of the picture. The time that it takes grows with machines and pending pods, not with pods."""
    catalogue = picture.catalogue
    warnings: list[str] = []
    counted = [picture.counted[name] for name in sorted(picture.counted)]
    unmet = unmet_types(picture.node_requests, picture.now)
    zones = _zones(picture)
    market = Market(catalogue, picture.node_classes, picture.now, unmet, picture.given_up, zones)
    usage = Usage((each.machine for each in counted), by_name(catalogue.types))
    pools = _pools(picture, usage, market, warnings)
    shape_of = _shapes(zones)
    demands: list[Demand] = []
    preempting: list[Demand] = []
    waiting: list[Waiting] = []
    for pod in sorted(picture.pending, key=_queued):
        if is_done(pod):
            continue
        why = waits_for(pod)
        if why:
            waiting.append(Waiting(key_of(pod), why))
            if preempts(pod) and movable(pod):
                preempting.append(Demand(key_of(pod), shape_of(pod)))
        elif movable(pod):
            demands.append(Demand(key_of(pod), shape_of(pod)))
    demands += [Demand(key_of(pod), shape_of(pod)) for each in counted for pod in each.moving]
    if picture.lost:
        warnings.append(f"{picture.lost} pods are bound to nodes that are not known: they are left out")
    warnings += [each.warning for each in counted if each.warning]
    books = Books()
    sold = {pool.ref: by_name(pool.instance_types) for pool in pools} if catalogue.of_classes else {}
    nodes = []
    for each in counted:
        if each.view is None:
            continue
        view, claim = each.view, each.machine.claim
        if claim is not None and (picture.held or picture.promised):
            held, promised = (some.get(claim.metadata.name, ()) for some in (picture.held, picture.promised))
            view = books.holding(view, held, promised) if held or promised else view
        nodes.append(_priced(view, sold) if catalogue.of_classes else view)
    snapshot = Snapshot(
        currency=catalogue.currency,
        pools=tuple(pools),
        nodes=tuple(nodes),
        daemons=tuple(picture.daemons),
        volumes=picture.volumes,
        namespaces=picture.namespaces,
        revision=picture.revision,
    )
    return Assembled(
        snapshot=snapshot,
        demands=tuple(demands),
        preempting=tuple(preempting),
        waiting=tuple(waiting),
        warnings=tuple(warnings),
    )


def _zones(picture: Picture) -> ZoneNames:
    """The names by which zones are sold. Asked only of a catalogue with a zone that has several."""
    sold = {offering.zone for kind in picture.catalogue.types for offering in kind.offerings}
    if DATACENTERS.keys().isdisjoint(sold):
        return ZoneNames()
    found: tuple[set[str], set[str]] = (set(), set())
    for each in picture.counted.values():
        if each.machine.node is not None:
            found[each.machine.claim is not None].add(zone_on(each.machine.node.metadata.labels))
    others, ours = found
    shapes = {id(pod.shape): pod.shape for pod in picture.pending}
    shapes |= {id(pod.shape): pod.shape for each in picture.counted.values() for pod in each.moving}
    pools = {name for pool in picture.pools for name in named_zones(pool.spec.template.spec.requirements)}
    asked = ours | {name for shape in shapes.values() for name in selected_by(shape.spec)}
    asked.update(of_volumes(picture.volumes.volumes.values(), picture.volumes.classes.values()))
    return zone_names(sold=sold, others=others - {""}, pools=pools, asked=asked)


def _priced(node: NodeView, sold: Mapping[PoolRef, Mapping[str, InstanceType]]) -> NodeView:
    """The node at the price that machines of its pool's class have."""
    kind = type_of(node.labels, sold.get(node.pool, {})) if node.pool is not None else None
    price = price_of(node.labels, kind)
    return node if price is None else dataclasses.replace(node, price=price)


def _shapes(zones: ZoneNames) -> Callable[[CachedPod], PodShape]:
    """The shape of a pod as it is planned: equal shapes stay one."""
    known: dict[int, PodShape] = {}

    def shape_of(pod: CachedPod) -> PodShape:
        shape = known.get(id(pod.shape))
        if shape is None:
            spec = zones.without_zones(pod.shape.spec)
            same = spec is pod.shape.spec
            shape = known[id(pod.shape)] = pod.shape if same else msgspec.structs.replace(pod.shape, spec=spec)
        return shape

    return shape_of


def volumes_view(
    *,
    claims: Iterable[PersistentVolumeClaim],
    volumes: Iterable[PersistentVolume],
    classes: Iterable[StorageClass],
    csi_nodes: Iterable[CSINode],
) -> VolumesView:
    """What is known of volumes, by their names."""
    return VolumesView(
        claims={(each.metadata.namespace, each.metadata.name): each for each in claims},
        volumes={each.metadata.name: each for each in volumes},
        classes={each.metadata.name: each for each in classes},
        csi_nodes={each.metadata.name: each for each in csi_nodes},
    )


def namespace_labels(namespaces: Iterable[Namespace]) -> dict[str, dict[str, str]]:
    """The labels of each namespace, its name among them whether or not the server has filled it in."""
    return {
        each.metadata.name: {**each.metadata.labels, names.NAMESPACE_NAME_LABEL: each.metadata.name}
        for each in namespaces
    }


def _pools(picture: Picture, usage: Usage, market: Market, warnings: list[str]) -> Sequence[PoolView]:
    views = [karpenter_pool(pool, usage, market) for pool in picture.pools]
    for pool in picture.growth_pools:
        view, unknown = growth_pool(pool, usage, market)
        views.append(view)
        warnings += unknown
    return views
