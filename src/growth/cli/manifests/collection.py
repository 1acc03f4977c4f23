"""Everything that was read, brought together: checked, priorities resolved, workloads expanded."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar, cast

import msgspec

from growth.api import names
from growth.api.buffers import CAPACITY_BUFFER, CapacityBuffer
from growth.api.core import NAMESPACE, Namespace
from growth.api.growthpools import GROWTH_POOL, NODE_REQUEST, GrowthPool, NodeRequest
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodeClassReference, NodePool
from growth.api.kinds import Kind
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.api.meta import ObjectMeta, Struct
from growth.api.nodeclasses import HETZNER_NODE_CLASS, KWOK_NODE_CLASS
from growth.api.nodes import NODE, Node
from growth.api.overlays import NODE_OVERLAY, NodeOverlay
from growth.api.pods import POD, POD_TEMPLATE, Pod, PodSpec
from growth.api.policy import POD_DISRUPTION_BUDGET, PRIORITY_CLASS, PodDisruptionBudget, PriorityClass
from growth.api.volumes import (
    CSI_DRIVER,
    CSI_NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from growth.api.workloads import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    STATEFUL_SET,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    StatefulSet,
)
from growth.cli.errors import UsageError
from growth.cli.manifests.checks import (
    SHOWN,
    budget_faults,
    faults_of,
    number_faults,
    quantity_faults,
    spec_faults,
    unknown_fields,
)
from growth.cli.manifests.documents import Document
from growth.cli.manifests.marks import completed
from growth.cli.manifests.spelling import SPELLINGS, respelled
from growth.cli.manifests.workloads import Present, Workloads, missing_claims, missing_pods
from growth.cluster.assemble import Objects
from growth.cluster.pools import NodeClassView
from growth.cluster.shapes import CachedPod, PodShape, Shapes
from growth.cluster.snapshot import Demand
from growth.controllers import headroom
from growth.planning.reckoning import reckoned
from growth.providers.sizes import learned_sizes

NODE_CLASSES: Final = (KWOK_NODE_CLASS, HETZNER_NODE_CLASS, LINODE_NODE_CLASS)
OURS: Final = (NODE_POOL, NODE_CLAIM, NODE_OVERLAY, GROWTH_POOL, NODE_REQUEST, CAPACITY_BUFFER, *NODE_CLASSES)
TEMPLATED: Final = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, JOB)
PLAIN: Final = (
    NODE,
    NAMESPACE,
    PERSISTENT_VOLUME_CLAIM,
    PERSISTENT_VOLUME,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    VOLUME_ATTACHMENT,
    POD_DISRUPTION_BUDGET,
    PRIORITY_CLASS,
    CRON_JOB,
    POD_TEMPLATE,
)
_BY_NAME: Final = {(kind.api_version, kind.kind): kind for kind in (POD, *OURS, *TEMPLATED, *PLAIN)}

_NAMESPACE: Final = "default"
# Those that every cluster has.
_SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

T = TypeVar("T")
Refuse = Callable[[str, str], UsageError]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Collected:
    """What planning is made from. `notes` say what was skipped or guessed, `buffered` are pods that CapacityBuffers keep
    room for.
    """

    objects: Objects
    overlays: tuple[NodeOverlay, ...]
    notes: tuple[str, ...]
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    buffered: tuple[Demand, ...] = ()


class Collection:
    """Takes objects in any order; `finished` is called once, when all are in."""

    def __init__(self) -> None:
        self._shapes = Shapes()
        self._pods: dict[tuple[str, str], CachedPod] = {}
        self._first: dict[PodShape, tuple[Refuse, str]] = {}  # who to blame for a shape, and where its spec stands
        self._found: dict[Kind[Any], dict[tuple[str, str], Struct]] = {}
        self._refusals: dict[tuple[Kind[Any], str, str], Refuse] = {}
        self._skipped: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._again = 0
        self._generated = 0
        self._notes: list[str] = []

    def __len__(self) -> int:
        return len(self._pods) + sum(len(each) for each in self._found.values())

    # -- taking in ------------------------------------------------------------------------------------------------

    def add(self, document: Document) -> None:
        """One object of a file, checked; `UsageError` names the place, the field and the reason."""
        version = SPELLINGS.get(document.api_version, document.api_version)
        kind = _BY_NAME.get((version, document.kind))
        if kind is None:
            told = f"{document.api_version} {document.kind}"
            self._skipped[told] = self._skipped.get(told, 0) + 1
            return
        if version != document.api_version:
            self._old[document.api_version] = self._old.get(document.api_version, 0) + 1
            body = respelled(document.as_json(), document.api_version)
            document = dataclasses.replace(document, api_version=version, body=body)
        if kind in OURS:
            document = self._checked(document, kind)
        self.take(kind, document.read(kind.type), document.refusal)

    def _checked(self, document: Document, kind: Kind[Any]) -> Document:
        body = document.as_json()
        dropped = unknown_fields(kind, body)
        if dropped:
            self._notes.append(f"{document.place} ({document.title}): unknown fields are ignored: {', '.join(dropped)}")
        found = [f"{field}: {reason}" for _, (field, reason) in zip(range(SHOWN), faults_of(kind, body), strict=False)]
        if found:
            raise document.refusal("", "; ".join(found))
        return dataclasses.replace(document, body=body)

    def take(self, kind: Kind[Any], item: Any, refuse: Refuse) -> None:
        """One object of a known kind. `refuse` makes the error for a field and a reason."""
        meta: ObjectMeta = item.metadata
        if not meta.name and not meta.generate_name:
            raise refuse("metadata.name", "is missing")
        if kind.namespaced and not meta.namespace:
            meta = msgspec.structs.replace(meta, namespace=_NAMESPACE)
        if not meta.name:
            self._generated += 1
            meta = msgspec.structs.replace(meta, name=f"{meta.generate_name}{self._generated}")
        if meta is not item.metadata:
            item = msgspec.structs.replace(item, metadata=meta)
        if kind is POD:
            self._take_pod(item, "spec", refuse)
            return
        for field, reason in _item_faults(kind, item):
            raise refuse(field, reason)
        known = self._found.setdefault(kind, {})
        key = (meta.namespace, meta.name)
        self._again += key in known
        known[key] = item
        if kind in TEMPLATED:
            self._refusals[kind, *key] = refuse

    def _take_pod(self, pod: Pod, path: str, refuse: Refuse) -> None:
        try:
            kept = self._shapes.keep(pod)
        except OverflowError as error:
            for field, reason in number_faults(pod.spec, path):
                raise refuse(field, reason) from error
            raise
        if kept.shape not in self._first:
            for field, reason in (*number_faults(pod.spec, path), *spec_faults(pod.spec, path)):
                raise refuse(field, reason)
            self._first[kept.shape] = (refuse, path)
        key = (kept.namespace, kept.name)
        self._again += key in self._pods
        self._pods[key] = kept

    # -- giving out -----------------------------------------------------------------------------------------------

    @property
    def pools(self) -> tuple[NodePool, ...]:
        return cast("tuple[NodePool, ...]", tuple(self._all(NODE_POOL)))

    @property
    def growth_pools(self) -> tuple[GrowthPool, ...]:
        return cast("tuple[GrowthPool, ...]", tuple(self._all(GROWTH_POOL)))

    @property
    def types_seen(self) -> tuple[str, ...]:
        """The types of machines that Nodes have and growth pools name."""
        labelled = [node.metadata.labels.get(names.INSTANCE_TYPE_LABEL, "") for node in self._all(NODE)]
        return (*labelled, *(each.name for pool in self.growth_pools for each in pool.spec.server_types))

    @property
    def priority_classes(self) -> tuple[PriorityClass, ...]:
        return cast("tuple[PriorityClass, ...]", tuple(self._all(PRIORITY_CLASS)))

    def get(self, kind: Kind[T], namespace: str, name: str) -> T | None:
        """One object; None where it was not read."""
        return cast("T | None", self._found.get(kind, {}).get((namespace, name)))

    def borrow(self, other: "Collection") -> None:
        """What pods refer to by name, of a collection that stays apart: PriorityClasses."""
        for each in other.priority_classes:
            self._found.setdefault(PRIORITY_CLASS, {})["", each.metadata.name] = each

    def _all(self, kind: Kind[Any]) -> Iterable[Any]:
        return self._found.get(kind, {}).values()

    def finished(self, *, provisioner: str = "", expand: bool = True) -> Collected:
        """What there is; of files (`expand`) with the pods that workloads would make, and what written objects leave out.

        `provisioner` is the CSI driver that binds the claims of StatefulSets where no StorageClass was given at all.
        """
        claims = cast(
            "dict[tuple[str, str], PersistentVolumeClaim]", dict(self._found.get(PERSISTENT_VOLUME_CLAIM, {}))
        )
        classes = cast("tuple[StorageClass, ...]", tuple(self._all(STORAGE_CLASS)))
        if expand:
            workloads = self._workloads()
            made = list(missing_claims(workloads, claims))
            claims |= {(each.metadata.namespace, each.metadata.name): each for each in made}
            if made and not classes:
                classes = tuple(_stand_ins(made, provisioner))
                self._notes.append(
                    "no StorageClass is given: the claims of StatefulSets are taken to bind where their pods run"
                )
            self._expand(workloads)
        nodes = cast("tuple[Node, ...]", tuple(self._all(NODE)))
        machines = cast("tuple[NodeClaim, ...]", tuple(self._all(NODE_CLAIM)))
        if expand:
            nodes, machines = completed(nodes, machines)
        objects = Objects(
            pods=tuple(self._prioritised()),
            nodes=nodes,
            claims=machines,
            pools=self.pools,
            growth_pools=self.growth_pools,
            node_requests=cast("tuple[NodeRequest, ...]", tuple(self._all(NODE_REQUEST))),
            node_classes=dict(self._node_classes()),
            daemon_sets=cast("tuple[DaemonSet, ...]", tuple(self._all(DAEMON_SET))),
            namespaces=cast("tuple[Namespace, ...]", tuple(self._all(NAMESPACE))),
            volume_claims=tuple(claims.values()),
            volumes=cast("tuple[PersistentVolume, ...]", tuple(self._all(PERSISTENT_VOLUME))),
            storage_classes=classes,
            csi_nodes=cast("tuple[CSINode, ...]", tuple(self._all(CSI_NODE))),
            attachments=cast("tuple[VolumeAttachment, ...]", tuple(self._all(VOLUME_ATTACHMENT))),
        )
        buffered = tuple(self._buffered())
        overlays = cast("tuple[NodeOverlay, ...]", tuple(self._all(NODE_OVERLAY)))
        budgets = cast("tuple[PodDisruptionBudget, ...]", tuple(self._all(POD_DISRUPTION_BUDGET)))
        return Collected(
            objects=objects,
            overlays=overlays,
            notes=tuple(self._all_notes()),
            disruption_budgets=tuple(reckoned(budget, objects.pods) for budget in budgets),
            buffered=buffered,
        )

    @property
    def _buffers(self) -> list[CapacityBuffer]:
        found = cast("Iterable[CapacityBuffer]", self._all(CAPACITY_BUFFER))
        return [each for each in found if headroom.strategy_is_ours(each.spec)]

    def asked_for_by_buffers(self) -> list[tuple[Kind[Any], str, str]]:
        """The templates and workloads that CapacityBuffers stand for: kind, namespace and name."""
        asked = [(each.metadata.namespace, headroom.reference(each.spec)) for each in self._buffers]
        return list(dict.fromkeys((at[0], namespace, at[1]) for namespace, at in asked if isinstance(at, tuple)))

    def _buffered(self) -> Iterator[Demand]:
        for buffer in self._buffers:
            meta, asked = buffer.metadata, headroom.reference(buffer.spec)
            if not isinstance(asked, headroom.Resolved):
                kind, name = asked
                asked = headroom.resolved(buffer, kind, name, self._found.get(kind, {}).get((meta.namespace, name)))
            if asked.template is None:
                self._notes.append(f"CapacityBuffer {meta.namespace}/{meta.name} keeps no room: {asked.message}")
            else:
                yield from headroom.demands(buffer, asked.template, asked.number, self._shapes)

    def _all_notes(self) -> Iterator[str]:
        yield from self._notes
        for spelling, number in sorted(self._old.items()):
            yield f"apiVersion {spelling} ({_objects(number)}) is read as {SPELLINGS[spelling]}: write that instead"
        for told, number in sorted(self._skipped.items()):
            yield f"{told} ({_objects(number)}) is skipped: it decides nothing about where pods fit"
        jobs = len(self._found.get(CRON_JOB, {}))
        if jobs:
            yield f"batch/v1 CronJob ({_objects(jobs)}) is ignored: plan with the Jobs that it makes"
        if self._again:
            yield f"{_objects(self._again)} came again under the same name: the last one counts"

    def _workloads(self) -> Workloads:
        return Workloads(
            deployments=cast("tuple[Deployment, ...]", tuple(self._all(DEPLOYMENT))),
            replica_sets=cast("tuple[ReplicaSet, ...]", tuple(self._all(REPLICA_SET))),
            stateful_sets=cast("tuple[StatefulSet, ...]", tuple(self._all(STATEFUL_SET))),
            jobs=cast("tuple[Job, ...]", tuple(self._all(JOB))),
        )

    def _expand(self, workloads: Workloads) -> None:
        kinds: dict[str, Kind[Any]] = {kind.kind: kind for kind in TEMPLATED}
        for pod in missing_pods(workloads, Present(tuple(self._pods.values()))):
            owner = pod.metadata.owner_references[0]
            refuse = self._refusals[kinds[owner.kind], pod.metadata.namespace, owner.name]
            self._take_pod(pod, "spec.template.spec", refuse)

    def _node_classes(self) -> Iterator[tuple[NodeClassReference, NodeClassView]]:
        for kind in NODE_CLASSES:
            for item in self._all(kind):
                reference = NodeClassReference(group=kind.group, kind=kind.kind, name=item.metadata.name)
                zones = item.spec.locations if kind is HETZNER_NODE_CLASS else ()
                yield (
                    reference,
                    NodeClassView(item.status.conditions, zones, learned_sizes(kind, item), item.metadata.generation),
                )

    def _prioritised(self) -> Iterator[CachedPod]:
        """The pods with their priority as admission would fill it in."""
        values = dict(_SYSTEM_PRIORITIES)
        default: int | None = None
        for each in self.priority_classes:
            values[each.metadata.name] = each.value
            if each.global_default:
                default = each.value if default is None else max(default, each.value)
        changed: dict[PodShape, PodShape] = {}
        for shape, (refuse, path) in self._first.items():
            if shape.spec.priority is not None:
                continue
            name = shape.spec.priority_class_name
            if name and name not in values:
                listed = ", ".join(sorted(values))
                raise refuse(f"{path}.priorityClassName", f"PriorityClass {name} does not exist; there are {listed}")
            priority = values[name] if name else default
            if priority is not None:
                changed[shape] = self._with_priority(shape, priority)
        for pod in self._pods.values():
            shape = changed.get(pod.shape, pod.shape)
            yield pod if shape is pod.shape else msgspec.structs.replace(pod, shape=shape)

    def _with_priority(self, shape: PodShape, priority: int) -> PodShape:
        spec: PodSpec = msgspec.structs.replace(shape.spec, priority=priority)
        meta = ObjectMeta(namespace=shape.namespace, labels=shape.labels)
        return self._shapes.shape(Pod(metadata=meta, spec=spec))


def _objects(number: int) -> str:
    return "1 object" if number == 1 else f"{number:,} objects"


def _item_faults(kind: Kind[Any], item: Any) -> Iterator[tuple[str, str]]:
    if kind in TEMPLATED:
        yield from number_faults(item.spec, "spec")
        yield from spec_faults(item.spec.template.spec, "spec.template.spec")
        replicas = getattr(item.spec, "replicas", 0)
        if replicas < 0:
            yield "spec.replicas", f"{replicas} is less than nothing"
    elif kind is PRIORITY_CLASS:
        yield from number_faults(item.value, "value")
    elif kind is POD_DISRUPTION_BUDGET:
        yield from budget_faults(item.spec, "spec")
    elif kind is NODE:
        yield from quantity_faults(
            {"status.allocatable": item.status.allocatable, "status.capacity": item.status.capacity}
        )


def _stand_ins(claims: Iterable[PersistentVolumeClaim], provisioner: str) -> Iterator[StorageClass]:
    """A class for every name that the claims use, as clouds have them: bound once the pod's node is known."""
    for name in sorted({each.spec.storage_class_name or "" for each in claims}):
        default = {names.DEFAULT_STORAGE_CLASS_ANNOTATION: "true"} if not name else {}
        yield StorageClass(
            metadata=ObjectMeta(name=name or "default", annotations=default),
            provisioner=provisioner,
            volume_binding_mode="WaitForFirstConsumer",
        )
