"""Pods, pools, types and nodes in one line each, and `plan`, which makes a plan of them and lets the judge look at it."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from growth.api import names
from growth.api.instance_types import InstanceType, Offering
from growth.api.karpenter import Requirement
from growth.api.meta import LabelSelector, ObjectMeta
from growth.api.placement import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from growth.api.pods import (
    Container,
    ContainerPort,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    ResourceRequirements,
    Volume,
)
from growth.api.pools import PoolRef
from growth.api.volumes import (
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeNodeAffinity,
    VolumeNodeResources,
)
from growth.cluster.shapes import Shapes
from growth.cluster.snapshot import BackedOff, Demand, NodeView, PoolView, Snapshot, VolumesView
from growth.planning.plan import Plan, PlannedClaim, Reason
from growth.planning.solve import Options, solve
from growth.sim.judge import judge
from growth.sim.predicates import requests
from growth.units.resources import add, amounts

ZONE = names.ZONE_LABEL
HOST = names.HOSTNAME_LABEL
ARCH = names.ARCH_LABEL
TYPE = names.INSTANCE_TYPE_LABEL
TERMS = names.CAPACITY_TYPE_LABEL
FAMILY = names.KWOK_INSTANCE_FAMILY_LABEL
CPU = names.KWOK_INSTANCE_CPU_LABEL
DRIVER = "csi.example.com"
EURO = 1_000_000_000
SHAPES = Shapes()
# A claim lists whatever would do, at any price.
AT_ANY_PRICE = Options(flexibility=1_000_000)


# -- pods ---------------------------------------------------------------------------------------------------------------


def container(
    cpu: str = "",
    memory: str = "",
    *,
    always: bool = False,
    ports: Sequence[int] = (),
    extended: Mapping[str, str] | None = None,
) -> Container:
    asked = {"cpu": cpu, "memory": memory, **(extended or {})}
    return Container(
        name="c",
        resources=ResourceRequirements(requests={name: amount for name, amount in asked.items() if amount}),
        restart_policy="Always" if always else "",
        ports=tuple(ContainerPort(container_port=80, host_port=port) for port in ports),
    )


def pod(
    name: str = "pod",
    *,
    cpu: str = "1",
    memory: str = "1Gi",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    containers: Sequence[Container] | None = None,
    init: Sequence[Container] = (),
    selector: Mapping[str, str] | None = None,
    affinity: Affinity | None = None,
    tolerations: Sequence[Toleration] = (),
    spread: Sequence[TopologySpreadConstraint] = (),
    ports: Sequence[int] = (),
    claims: Sequence[str] = (),
    volumes: Sequence[Volume] = (),
    extended: Mapping[str, str] | None = None,
    overhead: Mapping[str, str] | None = None,
    priority: int | None = None,
    spec: PodSpec | None = None,
) -> Pod:
    """A pod that asks for one core and 1Gi unless it is told otherwise."""
    own = (container(cpu, memory, ports=ports, extended=extended),)
    made = spec or PodSpec(
        containers=tuple(containers) if containers is not None else own,
        init_containers=tuple(init),
        node_selector=dict(selector or {}),
        affinity=affinity,
        tolerations=tuple(tolerations),
        topology_spread_constraints=tuple(spread),
        overhead=dict(overhead or {}),
        priority=priority,
        volumes=(*(claimed(claim) for claim in claims), *volumes),
    )
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace, labels=dict(labels or {})), spec=made)


def pods(number: int, name: str = "pod", **more: object) -> list[Pod]:
    """So many pods that are equal but for their names."""
    return [pod(f"{name}-{at:02}", **more) for at in range(number)]  # type: ignore[arg-type]


def claimed(name: str) -> Volume:
    return Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name))


def tolerate(key: str = "", value: str = "", *, operator: str = "", effect: str = "") -> Toleration:
    return Toleration(key=key, operator=operator or ("Equal" if value else "Exists"), value=value, effect=effect)


def expression(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def on_nodes(
    *terms: Sequence[NodeSelectorRequirement], prefer: Sequence[tuple[int, NodeSelectorRequirement]] = ()
) -> Affinity:
    """Node affinity: one of the terms must hold; preferences as (weight, expression)."""
    required = NodeSelector(
        node_selector_terms=tuple(NodeSelectorTerm(match_expressions=tuple(term)) for term in terms)
    )
    return Affinity(
        node_affinity=NodeAffinity(
            required_during_scheduling_ignored_during_execution=required if terms else None,
            preferred_during_scheduling_ignored_during_execution=tuple(
                PreferredSchedulingTerm(weight=weight, preference=NodeSelectorTerm(match_expressions=(each,)))
                for weight, each in prefer
            ),
        )
    )


def term(key: str = ZONE, selector: LabelSelector | None = None, **labels: str) -> PodAffinityTerm:
    return PodAffinityTerm(topology_key=key, label_selector=selector or LabelSelector(match_labels=labels))


def near(*terms: PodAffinityTerm, prefer: Sequence[tuple[int, PodAffinityTerm]] = ()) -> Affinity:
    return Affinity(pod_affinity=_sides(terms, prefer))


def far(*terms: PodAffinityTerm, prefer: Sequence[tuple[int, PodAffinityTerm]] = ()) -> Affinity:
    return Affinity(pod_anti_affinity=_sides(terms, prefer))


def _sides(terms: Sequence[PodAffinityTerm], prefer: Sequence[tuple[int, PodAffinityTerm]]) -> PodAffinity:
    return PodAffinity(
        required_during_scheduling_ignored_during_execution=tuple(terms),
        preferred_during_scheduling_ignored_during_execution=tuple(
            WeightedPodAffinityTerm(weight=weight, pod_affinity_term=each) for weight, each in prefer
        ),
    )


def spread(
    key: str = ZONE,
    *,
    skew: int = 1,
    anyway: bool = False,
    at_least: int | None = None,
    keys: Sequence[str] = (),
    affinity_policy: str | None = None,
    taints_policy: str | None = None,
    **labels: str,
) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        topology_key=key,
        max_skew=skew,
        when_unsatisfiable="ScheduleAnyway" if anyway else "DoNotSchedule",
        label_selector=LabelSelector(match_labels=labels),
        min_domains=at_least,
        match_label_keys=tuple(keys),
        node_affinity_policy=affinity_policy,
        node_taints_policy=taints_policy,
    )


# -- what clouds sell -------------------------------------------------------------------------------------------------------


def offering(
    zone: str = "a",
    price: float | None = 0.1,
    terms: str = names.ON_DEMAND,
    *,
    available: bool = True,
    reservation: str = "",
    places: int = 0,
    labels: Mapping[str, str] | None = None,
) -> Offering:
    return Offering(
        zone=zone,
        capacity_type=terms,
        price=None if price is None else round(price * EURO),
        available=available,
        reservation=reservation,
        reservation_capacity=places,
        labels={key: (value,) for key, value in (labels or {}).items()},
    )


def kind(
    name: str,
    cpu: int = 4,
    memory: str = "16Gi",
    *,
    price: float | None = None,
    zones: str = "abc",
    offerings: Sequence[Offering] | None = None,
    arch: str | Sequence[str] = "amd64",
    family: str = "m",
    labels: Mapping[str, str | Sequence[str]] | None = None,
    pods: int = 110,
    overhead: Mapping[str, str] | None = None,
    volume_limits: Mapping[str, int] | None = None,
    extended: Mapping[str, int] | None = None,
) -> InstanceType:
    """A type whose price, unless told, is a tenth of a euro a core, sold in zones a, b and c."""
    cost = price if price is not None else cpu / 10
    given = {ARCH: arch, names.OS_LABEL: "linux", FAMILY: family, CPU: str(cpu), **(labels or {})}
    return InstanceType(
        name=name,
        labels={key: (values,) if isinstance(values, str) else tuple(values) for key, values in given.items()},
        capacity={**amounts({"cpu": cpu, "memory": memory, "pods": pods}), **(extended or {})},
        overhead=amounts(dict(overhead or {})),
        offerings=tuple(offerings) if offerings is not None else tuple(offering(zone, cost) for zone in zones),
        volume_limits=dict(volume_limits or {}),
    )


SMALL = kind("small", 2, "8Gi")
MEDIUM = kind("medium", 4, "16Gi")
LARGE = kind("large", 16, "64Gi")
KINDS = (SMALL, MEDIUM, LARGE)


def need(key: str, operator: str, *values: str, least: int | None = None) -> Requirement:
    return Requirement(key=key, operator=operator, values=values, min_values=least)


def pool(
    name: str = "default",
    *kinds: InstanceType,
    weight: int = 0,
    needs: Sequence[Requirement] = (),
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    startup: Sequence[Taint] = (),
    limits: Mapping[str, str | float] | None = None,
    used: Mapping[str, str | float] | None = None,
    problem: str = "",
    in_vain: Mapping[str, BackedOff] | None = None,
) -> PoolView:
    """A Karpenter pool; with the three types of `KINDS` unless others are named."""
    return PoolView(
        ref=PoolRef.karpenter(name),
        instance_types=kinds or KINDS,
        weight=weight,
        requirements=tuple(needs),
        labels=dict(labels or {}),
        taints=tuple(taints),
        startup_taints=tuple(startup),
        limits=amounts(dict(limits or {})),
        used=amounts(dict(used or {})),
        problem=problem,
        in_vain=in_vain or {},
    )


def growth_pool(
    name: str = "default",
    *kinds: InstanceType,
    most: Mapping[str, int] | None = None,
    used: Mapping[str, int] | None = None,
    priorities: Mapping[str, int] | None = None,
    limits: Mapping[str, str | float] | None = None,
    nodes: int = 0,
    problem: str = "",
) -> PoolView:
    return PoolView(
        ref=PoolRef.growth(name),
        instance_types=kinds or KINDS,
        type_max=dict(most or {}),
        type_used=dict(used or {}),
        priorities=dict(priorities or {}),
        limits=amounts(dict(limits or {})),
        used={"nodes": nodes},
        problem=problem,
    )


def taint(key: str = "dedicated", value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


# -- what is there ----------------------------------------------------------------------------------------------------------


def node(
    name: str = "node",
    *bound: Pod,
    cpu: str = "4",
    memory: str = "16Gi",
    zone: str = "a",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    room: Mapping[str, str] | None = None,
    daemons: Mapping[str, str] | None = None,
    initialized: bool = True,
    attached: Iterable[str] = (),
    departing: Sequence[Pod] = (),
) -> NodeView:
    """A node with pods on it, in a zone (none: empty), with the labels that kubelets set; `departing` are being deleted."""
    bound = (*bound, *departing)
    own = {HOST: name, ARCH: "amd64", names.OS_LABEL: "linux", **({ZONE: zone} if zone else {}), **(labels or {})}
    held = add(*(requests(each.spec) for each in bound), amounts(dict(daemons or {})))
    return NodeView(
        name=name,
        labels=own,
        taints=tuple(taints),
        allocatable=amounts({"cpu": cpu, "memory": memory, "pods": 110, **(room or {})}),
        requested=held,
        daemon_requested=amounts(dict(daemons or {})),
        pods=tuple(collections.Counter(map(SHAPES.shape, bound)).items()),
        uncounted=tuple(collections.Counter(map(SHAPES.shape, departing)).items()),
        initialized=initialized,
        volumes={DRIVER: frozenset(attached)},
    )


def claim(
    name: str,
    *,
    volume: str = "",
    storage: str | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    phase: str = "",
    namespace: str = "default",
) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PersistentVolumeClaimSpec(storage_class_name=storage, volume_name=volume, access_modes=tuple(modes)),
        status=PersistentVolumeClaimStatus(phase=phase or ("Bound" if volume else "Pending")),
    )


def volume(name: str, *zones: str, handle: str = "", labels: Mapping[str, str] | None = None) -> PersistentVolume:
    """A CSI volume that can be reached from the zones, or from anywhere."""
    terms = tuple(NodeSelectorTerm(match_expressions=(expression(ZONE, "In", zone),)) for zone in zones)
    return PersistentVolume(
        metadata=ObjectMeta(name=name, labels=dict(labels or {})),
        spec=PersistentVolumeSpec(
            csi=CSIPersistentVolumeSource(driver=DRIVER, volume_handle=handle or name),
            node_affinity=VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms)) if terms else None,
        ),
    )


def storage_class(
    name: str, *zones: str, waits: bool = True, provisioner: str = DRIVER, default: bool = False
) -> StorageClass:
    allowed = TopologySelectorTerm(match_label_expressions=(TopologySelectorLabelRequirement(key=ZONE, values=zones),))
    return StorageClass(
        metadata=ObjectMeta(name=name, annotations={names.DEFAULT_STORAGE_CLASS_ANNOTATION: "true"} if default else {}),
        provisioner=provisioner,
        volume_binding_mode="WaitForFirstConsumer" if waits else "Immediate",
        allowed_topologies=(allowed,) if zones else (),
    )


def csi_node(name: str, most: int) -> CSINode:
    driver = CSINodeDriver(name=DRIVER, allocatable=VolumeNodeResources(count=most))
    return CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=(driver,)))


def storage(*objects: PersistentVolumeClaim | PersistentVolume | StorageClass | CSINode) -> VolumesView:
    return VolumesView(
        claims={(o.metadata.namespace, o.metadata.name): o for o in objects if isinstance(o, PersistentVolumeClaim)},
        volumes={o.metadata.name: o for o in objects if isinstance(o, PersistentVolume)},
        classes={o.metadata.name: o for o in objects if isinstance(o, StorageClass)},
        csi_nodes={o.metadata.name: o for o in objects if isinstance(o, CSINode)},
    )


# -- plans --------------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Planned:
    """A plan that the judge has passed, with short ways to ask about it."""

    plan: Plan

    @property
    def claims(self) -> tuple[PlannedClaim, ...]:
        return self.plan.claims

    @property
    def claim(self) -> PlannedClaim:
        """The only machine."""
        (only,) = self.plan.claims
        return only

    @property
    def unplaced(self) -> list[str]:
        return sorted(each.pod.partition("/")[2] for each in self.plan.unplaced)

    @property
    def zones(self) -> list[str]:
        return sorted(each.zone for each in self.claims)

    @property
    def sizes(self) -> list[int]:
        """How many pods each machine holds, most first."""
        return sorted((len(each.pods) for each in self.claims), reverse=True)

    def where(self, name: str = "pod") -> str:
        """The node that a pod goes to, `zone type` of its machine, or nothing."""
        for each in self.plan.filled:
            if f"default/{name}" in each.pods:
                return each.name
        for claim_ in self.claims:
            if f"default/{name}" in claim_.pods:
                return f"{claim_.pool} {claim_.instance_type} {claim_.zone}"
        return ""

    def on(self, node_name: str) -> list[str]:
        return sorted(key.partition("/")[2] for each in self.plan.filled if each.name == node_name for key in each.pods)

    def reason(self, name: str = "pod") -> Reason:
        """The nearest miss of an unplaced pod."""
        return self.reasons(name)[0]

    def reasons(self, name: str = "pod") -> tuple[Reason, ...]:
        (found,) = [each.reasons for each in self.plan.unplaced if each.pod.endswith(f"/{name}")]
        return found


def plan(
    *objects: Pod | PoolView | NodeView | Sequence[Pod] | VolumesView,
    daemons: Sequence[Pod] = (),
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    options: Options = Options(),  # noqa: B008 - frozen
    judged: bool = True,
) -> Planned:
    """The plan of these pods, pools, nodes and volumes; fails where the judge finds it wrong.

    `judged` False is for pods that no API server would accept, which the judge cannot read.
    """
    wanted: list[Pod] = []
    for each in objects:
        if isinstance(each, Pod):
            wanted.append(each)
        elif isinstance(each, Sequence):
            wanted.extend(each)
    snapshot = Snapshot(
        currency="EUR",
        pools=tuple(each for each in objects if isinstance(each, PoolView)),
        nodes=tuple(each for each in objects if isinstance(each, NodeView)),
        daemons=tuple(daemons),
        volumes=next((each for each in objects if isinstance(each, VolumesView)), VolumesView()),
        namespaces=namespaces or {"default": {}},
    )
    demands = [Demand(f"{each.metadata.namespace}/{each.metadata.name}", SHAPES.shape(each)) for each in wanted]
    made = solve(snapshot, demands, options)
    wrong = judge(snapshot, demands, made, strict_min_values=options.strict_min_values) if judged else []
    assert not wrong, "\n".join(map(str, wrong))
    return Planned(made)
