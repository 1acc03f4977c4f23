"""A scene after changes: patches are laid over the objects, created ones are added, deleted ones taken away.

What controllers would do about it at once is done too: a budget of pods is reckoned anew, a condition that speaks of what
was changed is dropped, and the pods of a node that is deleted want another place. Objects that do not stand in a scene
(workloads, PriorityClasses) cannot be changed here.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, TypeVar, cast

import msgspec

from growth.api import decoding, names
from growth.api.growthpools import GROWTH_POOL, NODE_REQUEST
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodeClaimSpec, NodeClaimStatus, NodeClassReference
from growth.api.kinds import Kind
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.api.meta import Condition, ObjectMeta, Struct
from growth.api.nodeclasses import HETZNER_NODE_CLASS, KWOK_NODE_CLASS
from growth.api.nodes import NODE, Node, NodeCondition, NodeSpec, NodeStatus
from growth.api.overlays import NODE_OVERLAY
from growth.api.pods import POD, Pod
from growth.api.policy import POD_DISRUPTION_BUDGET, PodDisruptionBudget, PodDisruptionBudgetStatus
from growth.api.volumes import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from growth.api.workloads import DAEMON_SET
from growth.cluster.pools import NodeClassView
from growth.cluster.shapes import CachedPod, Shapes
from growth.cluster.wanting import key_of
from growth.planning import occupants
from growth.planning.explaining.remedies import Change, merge, operated
from growth.planning.explaining.scene import Scene
from growth.planning.plan import PlannedClaim
from growth.planning.reckoning import reckoned
from growth.units.resources import quantities

_IN_OBJECTS: Final[dict[Kind[Any], str]] = {
    NODE: "nodes",
    NODE_CLAIM: "claims",
    NODE_POOL: "pools",
    GROWTH_POOL: "growth_pools",
    NODE_REQUEST: "node_requests",
    DAEMON_SET: "daemon_sets",
    PERSISTENT_VOLUME_CLAIM: "volume_claims",
    PERSISTENT_VOLUME: "volumes",
    STORAGE_CLASS: "storage_classes",
}
_CLASSES: Final = (KWOK_NODE_CLASS, HETZNER_NODE_CLASS, LINODE_NODE_CLASS)
_KINDS: Final = {
    (kind.api_version, kind.kind): kind for kind in (POD, POD_DISRUPTION_BUDGET, NODE_OVERLAY, *_IN_OBJECTS, *_CLASSES)
}
BUFFER: Final = "CapacityBuffer"
# How machines that a plan buys are called until they have names; no Node can be called so.
PLANNED: Final = "planned machine "

S = TypeVar("S", bound=Struct)


class CannotApply(ValueError):
    """A change of an object that is not there, or of a kind that does not stand in a scene."""


def applied(scene: Scene, changes: Iterable[Change]) -> Scene:
    """The scene after all of the changes, in their order."""
    for change in changes:
        scene = _one(scene, change)
    return scene


def _one(scene: Scene, change: Change) -> Scene:
    if change.verb == "wait":
        return scene if change.until is None else dataclasses.replace(scene, now=max(scene.now, change.until))
    if change.kind == BUFFER:
        return _without_buffer(scene, change)
    kind = _KINDS.get((change.api_version, change.kind))
    if kind is None:
        raise CannotApply(f"{change.api_version} {change.kind} {change.name}")
    if kind in _CLASSES:
        return _with_class(scene, kind, change)
    if kind is POD:
        return with_pods(scene, _changed_pods(scene.objects.pods, change))
    if kind is NODE and change.verb == "delete":
        return without_node(scene, change.name)
    if kind is POD_DISRUPTION_BUDGET:
        budgets = _changed(scene.disruption_budgets, kind, change, _unreckoned)
        return dataclasses.replace(
            scene, disruption_budgets=tuple(reckoned(each, scene.objects.pods) for each in budgets)
        )
    if kind is NODE_OVERLAY:
        return dataclasses.replace(scene, overlays=tuple(_changed(scene.overlays, kind, change)))
    field = _IN_OBJECTS[kind]
    items = _changed(getattr(scene.objects, field), kind, change, _believed)
    return dataclasses.replace(scene, objects=dataclasses.replace(scene.objects, **cast("Any", {field: tuple(items)})))


def _same(item: Any, change: Change) -> bool:
    meta: ObjectMeta = item.metadata
    return meta.name == change.name and meta.namespace == change.namespace


def _changed(items: Sequence[S], kind: Kind[S], change: Change, then: Callable[[S], S] = lambda item: item) -> list[S]:
    if change.verb == "create":
        made = decoding.convert(change.body, kind.type)
        return [*(each for each in items if not _same(each, change)), made]
    if not any(_same(each, change) for each in items):
        raise CannotApply(f"{change.kind} {change.name} is not there")
    if change.verb == "delete":
        return [each for each in items if not _same(each, change)]
    return [then(patched(each, change)) if _same(each, change) else each for each in items]


def patched(item: S, change: Change) -> S:
    """The struct with a patch laid over what it says in JSON."""
    before = msgspec.to_builtins(item)
    after = operated(before, change.operations) if change.operations else merge(before, change.body)
    return decoding.convert(after, type(item))


def _believed(item: S) -> S:
    """A changed object without the conditions that speak against it: whoever wrote them will look again."""
    status = getattr(item, "status", None)
    conditions: tuple[Condition, ...] = getattr(status, "conditions", ())
    stale = (names.READY, names.NODE_CLASS_READY, names.VALIDATION_SUCCEEDED)
    kept = tuple(each for each in conditions if each.type not in stale or each.status == "True")
    if not isinstance(status, Struct) or len(kept) == len(conditions):
        return item
    return msgspec.structs.replace(item, status=msgspec.structs.replace(status, conditions=kept))


def _unreckoned(budget: PodDisruptionBudget) -> PodDisruptionBudget:
    return msgspec.structs.replace(budget, status=PodDisruptionBudgetStatus())


def _with_class(scene: Scene, kind: Kind[Any], change: Change) -> Scene:
    reference = NodeClassReference(group=kind.group, kind=kind.kind, name=change.name)
    classes = dict(scene.objects.node_classes)
    if change.verb == "delete":
        classes.pop(reference, None)
    else:
        known = classes.get(reference, NodeClassView())
        locations = change.body.get("spec", {}).get("locations")
        zones = known.zones if locations is None else tuple(locations)
        ready = tuple(each for each in known.conditions if each.status == "True")
        classes[reference] = NodeClassView(ready, zones)
    pools = tuple(
        _believed(each) if each.spec.template.spec.node_class_ref == reference else each for each in scene.objects.pools
    )
    ours = tuple(
        _believed(each) if each.spec.node_class_ref == reference else each for each in scene.objects.growth_pools
    )
    return dataclasses.replace(
        scene, objects=dataclasses.replace(scene.objects, node_classes=classes, pools=pools, growth_pools=ours)
    )


# -- pods ---------------------------------------------------------------------------------------------------------


def with_pods(scene: Scene, pods: Sequence[CachedPod]) -> Scene:
    """With other pods; budgets of pods are reckoned anew."""
    budgets = tuple(reckoned(_unreckoned(each), pods) for each in scene.disruption_budgets)
    return dataclasses.replace(
        scene, objects=dataclasses.replace(scene.objects, pods=tuple(pods)), disruption_budgets=budgets
    )


def _changed_pods(pods: Sequence[CachedPod], change: Change) -> list[CachedPod]:
    def same(pod: CachedPod) -> bool:
        return pod.name == change.name and pod.namespace == change.namespace

    if change.verb == "create":
        return [*pods, Shapes().keep(decoding.convert(change.body, Pod))]
    if not any(same(each) for each in pods):
        raise CannotApply(f"Pod {change.namespace}/{change.name} is not there")
    if change.verb == "delete":
        return [each for each in pods if not same(each)]
    return [_patched_pod(each, change) if same(each) else each for each in pods]


def _patched_pod(pod: CachedPod, change: Change) -> CachedPod:
    shape = pod.shape
    whole = Pod(
        metadata=ObjectMeta(name=pod.name, namespace=shape.namespace, labels=shape.labels, annotations=pod.annotations),
        spec=shape.spec,
    )
    after = patched(whole, change)
    return msgspec.structs.replace(pod, shape=Shapes().shape(after), annotations=after.metadata.annotations)


def without_node(scene: Scene, name: str) -> Scene:
    """The node and its claim are gone; its pods that need another place wait for one, and the others are gone too."""
    node = scene.nodes.get(name)
    if node is None:
        raise CannotApply(f"Node {name} is not there")
    counted = scene.picture.counted.get(name)
    claim = counted.machine.claim if counted is not None else None
    objects = scene.objects
    after = dataclasses.replace(
        objects,
        nodes=tuple(each for each in objects.nodes if each.metadata.name != name),
        claims=tuple(each for each in objects.claims if claim is None or each.metadata.name != claim.metadata.name),
        csi_nodes=tuple(each for each in objects.csi_nodes if each.metadata.name != name),
        attachments=tuple(each for each in objects.attachments if each.spec.node_name != name),
    )
    return with_pods(dataclasses.replace(scene, objects=after), _sent_away(objects.pods, name, scene.now))


def leaving(scene: Scene, nodes: Collection[str]) -> Scene:
    """The nodes are being deleted and count still; their pods want another place, and no pod comes any more."""
    claims = {
        each.machine.claim.metadata.name
        for name, each in scene.picture.counted.items()
        if name in nodes and each.machine.claim is not None
    }

    def gone(item: S) -> S:
        meta: ObjectMeta = msgspec.structs.replace(getattr(item, "metadata"), deletion_timestamp=scene.now)  # noqa: B009 - every kind has it
        return msgspec.structs.replace(item, metadata=meta)

    objects = scene.objects
    after = dataclasses.replace(
        objects,
        nodes=tuple(gone(each) if each.metadata.name in nodes else each for each in objects.nodes),
        claims=tuple(gone(each) if each.metadata.name in claims else each for each in objects.claims),
    )
    return dataclasses.replace(scene, objects=after)


def with_machines(scene: Scene, bought: Sequence[PlannedClaim], *, since: int = 0) -> Scene:
    """Machines of a plan as they will be: Nodes that are up, with their claims. `since` is how many there are already."""
    nodes, claims = [], []
    for number, planned in enumerate(bought, start=since):
        view = scene.views[planned.pool]
        label = names.POOL_LABEL if planned.pool.group == names.GROWTH else names.NODE_POOL_LABEL
        kind = next(each for each in view.instance_types if each.name == planned.instance_type)
        labels = {
            **view.labels,
            **planned.labels,
            label: planned.pool.name,
            names.INSTANCE_TYPE_LABEL: planned.instance_type,
            names.ZONE_LABEL: planned.zone,
            names.CAPACITY_TYPE_LABEL: planned.capacity_type,
        }
        capacity, allocatable = dict(quantities(kind.capacity)), dict(quantities(kind.allocatable))
        name = f"{PLANNED}{number}"
        provider_id = f"planned://{number}"
        marks = {names.REGISTERED_LABEL: "true", names.INITIALIZED_LABEL: "true", names.HOSTNAME_LABEL: name}
        claims.append(
            NodeClaim(
                metadata=ObjectMeta(name=name, labels=labels, creation_timestamp=scene.now),
                spec=NodeClaimSpec(
                    node_class_ref=NodeClassReference(group="", kind="", name=""), requirements=(), taints=view.taints
                ),
                status=NodeClaimStatus(
                    provider_id=provider_id, node_name=name, capacity=dict(capacity), allocatable=dict(allocatable)
                ),
            )
        )
        nodes.append(
            Node(
                metadata=ObjectMeta(name=name, labels={**labels, **marks}, creation_timestamp=scene.now),
                spec=NodeSpec(provider_id=provider_id, taints=view.taints),
                status=NodeStatus(
                    capacity=dict(capacity),
                    allocatable=dict(allocatable),
                    conditions=(NodeCondition(type="Ready", status="True"),),
                ),
            )
        )
    objects = dataclasses.replace(
        scene.objects, claims=(*scene.objects.claims, *claims), nodes=(*scene.objects.nodes, *nodes)
    )
    return dataclasses.replace(scene, objects=objects)


def closed(scene: Scene, nodes: Collection[str]) -> Scene:
    """The nodes are cordoned: no pod comes any more."""
    after = tuple(
        msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, unschedulable=True))
        if each.metadata.name in nodes
        else each
        for each in scene.objects.nodes
    )
    return dataclasses.replace(scene, objects=dataclasses.replace(scene.objects, nodes=after))


def vacated(scene: Scene, name: str) -> Scene:
    """The node is there still and counts, but is closed, and its pods wait for another place: as while it is replaced."""
    return with_pods(closed(scene, [name]), _sent_away(scene.objects.pods, name, scene.now))


def _sent_away(pods: Sequence[CachedPod], name: str, now: dt.datetime) -> list[CachedPod]:
    """The pods after a drain of the node: those that need another place are pending, the others are gone with it.

    Whoever makes them again makes them now, in the order in which a drain asks them to leave: they stand behind those that
    wait already.
    """
    turns = {key_of(pod): at for at, pod in enumerate(sorted((p for p in pods if p.node_name == name), key=key_of))}
    found: list[CachedPod] = []
    for pod in pods:
        if pod.node_name != name:
            found.append(pod)
        elif occupants.reschedulable(pod):
            waits = msgspec.structs.replace(
                pod,
                node_name="",
                phase="Pending",
                nominated_node_name="",
                deleting=None,
                ready=False,
                scheduled_since=None,
                created=now + dt.timedelta(milliseconds=turns[key_of(pod)]),
            )
            found.append(waits)
    return found


def _without_buffer(scene: Scene, change: Change) -> Scene:
    """Fewer pods that a buffer stands for, or none."""
    most = 0 if change.verb == "delete" else int(change.body.get("spec", {}).get("replicas", 0))
    prefix = f"{change.namespace}/capacitybuffer:{change.name}#"
    kept = tuple(
        each for each in scene.buffered if not each.key.startswith(prefix) or int(each.key.removeprefix(prefix)) < most
    )
    return dataclasses.replace(scene, buffered=kept)
