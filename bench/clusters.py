"""Small random clusters for judging plans: every rule of placement turns up, often together with others.

`cluster(seed)` gives the same snapshot and demands for the same seed on any machine. Clusters are small (5 to 40 pending
pods) and their values few, so that rules meet.
"""

import dataclasses
import random
from typing import Final

import msgspec

from growth.api import names
from growth.api.instance_types import InstanceType, Offering
from growth.api.karpenter import Requirement
from growth.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
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
    EphemeralVolumeSource,
    PersistentVolumeClaimTemplate,
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
from growth.cluster.snapshot import NODES, Demand, NodeView, PoolView, Snapshot, VolumesView
from growth.sim.predicates import Host, Scene, refusals, requests
from growth.sim.predicates.of_volumes import attachments
from growth.units.resources import add

GIB: Final = 1 << 30
MIB: Final = 1 << 20
ZONES: Final = ("zone-a", "zone-b", "zone-c")
APPS: Final = ("web", "db", "cache")
SPACES: Final = ("default", "shop", "jobs")
TEAMS: Final = ("red", "blue")
RACK: Final = "example.com/rack"
TEAM: Final = "example.com/team"
SIZE: Final = "example.com/size"
DISK: Final = "example.com/disk"
GPU: Final = "example.com/gpu"
DRIVER: Final = "csi.example.com"
TAINTS: Final = (
    Taint(key="dedicated", effect="NoSchedule", value="batch"),
    Taint(key="gpu", effect="NoExecute"),
    Taint(key="spot", effect="PreferNoSchedule", value="yes"),
)
KEYS: Final = (names.ZONE_LABEL, names.HOSTNAME_LABEL, RACK, names.CAPACITY_TYPE_LABEL, names.ARCH_LABEL)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """What one seed gives."""

    seed: int
    snapshot: Snapshot
    demands: tuple[Demand, ...]


def cluster(seed: int, *, overhead: bool = True) -> Cluster:
    """The cluster of the seed; without `overhead` no pod has a runtime that takes room of its own."""
    return _Maker(seed, overhead=overhead).make()


class _Maker:
    def __init__(self, seed: int, *, overhead: bool) -> None:
        self.overhead = overhead
        self.random = random.Random(seed)
        self.seed = seed
        self.shapes = Shapes()
        self.claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def some(self, values: tuple[str, ...], *, least: int = 1) -> tuple[str, ...]:
        return tuple(sorted(self.random.sample(values, self.random.randint(least, len(values)))))

    def make(self) -> Cluster:
        types = self.types()
        pools = self.pools(types)
        classes = self.classes()
        namespaces = {"default": {}, "shop": {"tier": "front"}, "jobs": {"tier": "back"}}
        daemons = tuple(self.daemon(number) for number in range(self.random.choice((0, 0, 1, 1, 2))))
        # Few kinds of pods, several of each: rules are about one's own kind more often than not.
        kinds = [self.pod(number) for number in range(self.random.randint(2, 10))]
        bare = [self.node(number, pools) for number in range(self.random.choice((0, 0, 1, 2, 4, 6)))]
        csi = {
            node.name: CSINode(
                metadata=ObjectMeta(name=node.name),
                spec=CSINodeSpec(
                    drivers=(
                        CSINodeDriver(name=DRIVER, allocatable=VolumeNodeResources(count=self.random.randint(1, 4))),
                    )
                ),
            )
            for node in bare
            if self.chance(0.6)
        }
        view = VolumesView(claims=self.claims, volumes=self.volumes, classes=classes, csi_nodes=csi)
        nodes = self.settled(bare, kinds, view, namespaces)
        demands = []
        for number in range(self.random.randint(5, 40)):
            kind = self.random.choice(kinds)
            space = kind.metadata.namespace
            demands.append(Demand(f"{space}/pod-{number:02}", self.shapes.shape(kind)))
        snapshot = Snapshot(
            currency="EUR",
            pools=pools,
            nodes=nodes,
            daemons=daemons,
            volumes=view,
            namespaces=namespaces,
            revision=self.seed,
        )
        return Cluster(self.seed, snapshot, tuple(demands))

    # -- what clouds sell -----------------------------------------------------------------------------------------------

    def types(self) -> list[InstanceType]:
        found = []
        for number in range(self.random.randint(3, 9)):
            cpu = self.random.choice((1, 2, 4, 8, 16))
            memory = cpu * self.random.choice((2, 4, 8))
            gpu = self.random.choice((0, 0, 0, 1, 4))
            arch = self.random.choice((("amd64",), ("amd64",), ("arm64",)))
            labels: dict[str, tuple[str, ...]] = {
                names.ARCH_LABEL: arch,
                names.OS_LABEL: ("linux",),
                names.KWOK_INSTANCE_FAMILY_LABEL: (self.random.choice(("c", "m", "r")),),
                names.KWOK_INSTANCE_CPU_LABEL: (str(cpu),),
            }
            if self.chance(0.2):
                labels[DISK] = ("hdd", "ssd")  # the buyer may choose
            if self.chance(0.2):
                labels[SIZE] = (str(self.random.randint(1, 9)),)
            base = round((0.02 * cpu + 0.003 * memory + 0.5 * gpu) * 1e9)
            offerings = [
                Offering(
                    zone=zone,
                    capacity_type=terms,
                    price=round(base * share) + self.random.choice((0, 0, 1_000_000)) if self.chance(0.97) else None,
                    available=self.chance(0.9),
                    labels={RACK: (f"{zone}-r{self.random.randint(1, 2)}",)} if self.chance(0.5) else {},
                )
                for zone in self.some(ZONES)
                for terms, share in ((names.ON_DEMAND, 1.0), (names.SPOT, 0.4))
                if terms == names.ON_DEMAND or self.chance(0.6)
            ]
            if self.chance(0.1):
                offerings.append(
                    Offering(
                        zone=self.random.choice(ZONES),
                        capacity_type=names.RESERVED,
                        price=0,
                        reservation=f"r-{number}",
                        reservation_capacity=self.random.randint(0, 2),
                    )
                )
            found.append(
                InstanceType(
                    name=f"t{number}-{cpu}x{memory}",
                    labels=labels,
                    capacity={
                        "cpu": cpu * 1000,
                        "memory": memory * GIB,
                        "ephemeral-storage": 20 * GIB,
                        "pods": self.random.choice((4, 8, 110)),
                        **({GPU: gpu} if gpu else {}),
                    },
                    overhead={"cpu": 100, "memory": 10 * MIB},
                    offerings=tuple(offerings),
                    volume_limits={DRIVER: self.random.randint(1, 3)} if self.chance(0.4) else {},
                )
            )
        return found

    def pools(self, types: list[InstanceType]) -> tuple[PoolView, ...]:
        found = [self.pool(number, types) for number in range(self.random.randint(1, 3))]
        if self.chance(0.35):
            found.append(self.growth_pool("default", types))
        if self.chance(0.2):
            found.append(self.growth_pool("special", types))
        return tuple(found)

    def pool(self, number: int, types: list[InstanceType]) -> PoolView:
        limits: dict[str, int] = {}
        if self.chance(0.2):
            limits["cpu"] = self.random.choice((4, 10, 24)) * 1000
        if self.chance(0.15):
            limits["memory"] = self.random.choice((8, 40, 100)) * GIB
        if self.chance(0.15):
            limits[NODES] = self.random.randint(0, 4)
        return PoolView(
            ref=PoolRef.karpenter(f"pool-{number}"),
            instance_types=tuple(types),
            weight=self.random.choice((0, 0, 10, 50)),
            requirements=self.requirements(types),
            labels={TEAM: self.random.choice(TEAMS)} if self.chance(0.3) else {},
            taints=tuple(taint for taint in TAINTS if self.chance(0.1)),
            startup_taints=(Taint(key="starting", effect="NoSchedule"),) if self.chance(0.2) else (),
            limits=limits,
            used={name: self.random.choice((0, limit // 2)) for name, limit in limits.items()},
            problem="it is not ready: its node class is missing" if self.chance(0.03) else "",
        )

    def requirements(self, types: list[InstanceType]) -> tuple[Requirement, ...]:
        found = []
        if self.chance(0.5):
            operator = self.random.choice(("In", "In", "NotIn", "Exists"))
            values = (
                () if operator == "Exists" else self.some(ZONES) if operator == "In" else (self.random.choice(ZONES),)
            )
            least = 2 if operator != "NotIn" and len(values) != 1 and self.chance(0.2) else None
            found.append(Requirement(key=names.ZONE_LABEL, operator=operator, values=values, min_values=least))
        if self.chance(0.5):
            terms = self.random.choice(((names.ON_DEMAND,), (names.SPOT,), (names.ON_DEMAND, names.SPOT)))
            found.append(Requirement(key=names.CAPACITY_TYPE_LABEL, operator="In", values=terms))
        if self.chance(0.3):
            found.append(
                Requirement(key=names.ARCH_LABEL, operator="In", values=(self.random.choice(("amd64", "arm64")),))
            )
        if self.chance(0.3):
            operator = self.random.choice(("Gt", "Lt", "Gte", "Lte"))
            bound = self.random.choice(("1", "2") if operator[0] == "G" else ("8", "16"))
            found.append(Requirement(key=names.KWOK_INSTANCE_CPU_LABEL, operator=operator, values=(bound,)))
        if self.chance(0.3):
            found.append(
                Requirement(
                    key=names.KWOK_INSTANCE_FAMILY_LABEL,
                    operator=self.random.choice(("Exists", "NotIn")),
                    values=(),
                    min_values=self.random.choice((None, 2)),
                )
            )
        if self.chance(0.2):
            found.append(
                Requirement(
                    key=names.INSTANCE_TYPE_LABEL,
                    operator="Exists",
                    min_values=self.random.randint(1, min(4, len(types))),
                )
            )
        if self.chance(0.2):
            operator = self.random.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gte", "Lt"))
            values = {"In": ("1", "2"), "NotIn": ("1",), "Gte": ("2",), "Lt": ("5",)}.get(operator, ())
            found.append(Requirement(key=SIZE, operator=operator, values=values))
        if self.chance(0.15):
            found.append(Requirement(key=RACK, operator=self.random.choice(("Exists", "DoesNotExist"))))
        return tuple(found)

    def growth_pool(self, name: str, types: list[InstanceType]) -> PoolView:
        chosen = self.random.sample(types, self.random.randint(1, min(3, len(types))))
        return PoolView(
            ref=PoolRef.growth(name),
            instance_types=tuple(chosen),
            type_max={kind.name: self.random.randint(0, 4) for kind in chosen},
            type_used={kind.name: self.random.randint(0, 1) for kind in chosen},
            priorities={kind.name: self.random.choice((0, 0, 10)) for kind in chosen},
            limits={NODES: self.random.randint(1, 5)} if self.chance(0.4) else {},
        )

    # -- what is there ----------------------------------------------------------------------------------------------------

    def node(self, number: int, pools: tuple[PoolView, ...]) -> NodeView:
        zone = self.random.choice(ZONES)
        name = f"node-{number}"
        labels = {
            names.HOSTNAME_LABEL: name,
            names.ZONE_LABEL: zone,
            names.ARCH_LABEL: self.random.choice(("amd64", "amd64", "arm64")),
            names.OS_LABEL: "linux",
            names.REGION_LABEL: "here",
            names.CAPACITY_TYPE_LABEL: self.random.choice((names.ON_DEMAND, names.SPOT)),
            names.KWOK_INSTANCE_CPU_LABEL: "4",
        }
        if self.chance(0.6):
            labels[RACK] = f"{zone}-r{self.random.randint(1, 2)}"
        if self.chance(0.4):
            labels[TEAM] = self.random.choice(TEAMS)
        if self.chance(0.1):
            del labels[names.ZONE_LABEL]
        if self.chance(0.5):
            pool = self.random.choice(pools)
            own = names.NODE_POOL_LABEL if pool.ref.group == names.KARPENTER else names.POOL_LABEL
            labels[own] = pool.ref.name
        return NodeView(
            name=name,
            labels=labels,
            taints=tuple(taint for taint in TAINTS if self.chance(0.12)),
            allocatable={
                "cpu": 3900,
                "memory": self.random.choice((7, 15)) * GIB,
                "ephemeral-storage": 20 * GIB,
                "pods": self.random.choice((3, 10, 110)),
                **({GPU: 2} if self.chance(0.2) else {}),
            },
            initialized=self.chance(0.8),
        )

    def settled(
        self,
        nodes: list[NodeView],
        kinds: list[Pod],
        view: VolumesView,
        namespaces: dict[str, dict[str, str]],
    ) -> tuple[NodeView, ...]:
        """Nodes with pods that could have been bound there, and now and then one that could not: rules change."""
        hosts = [
            Host(name=node.name, labels=node.labels, taints=node.taints, allocatable=node.allocatable) for node in nodes
        ]
        scene = Scene(
            hosts=hosts, namespaces=namespaces, claims=view.claims, volumes=view.volumes, classes=view.classes
        )
        if nodes:
            for number in range(self.random.randint(0, 4 * len(nodes))):
                kind = self.random.choice(kinds)
                kind = msgspec.structs.replace(
                    kind, metadata=msgspec.structs.replace(kind.metadata, name=f"bound-{number}")
                )
                host = self.random.choice(hosts)
                wrong = [each for each in refusals(kind, host, scene) if not each.startswith(("labels", "spread"))]
                fresh = any(each.ephemeral is not None for each in kind.spec.volumes)
                if not wrong and not fresh:
                    host.pods.append(kind)
        found = []
        for node, host in zip(nodes, hosts, strict=True):
            counts: dict[int, int] = {}
            shapes = {}
            for pod in host.pods:
                shape = self.shapes.shape(pod)
                shapes[id(shape)] = shape
                counts[id(shape)] = counts.get(id(shape), 0) + 1
            found.append(
                dataclasses.replace(
                    node,
                    pods=tuple((shapes[which], number) for which, number in counts.items()),
                    requested=add(*(requests(pod.spec) for pod in host.pods)),
                    volumes={
                        DRIVER: frozenset(
                            handle
                            for pod in host.pods
                            for driver, handle in attachments(pod, scene)
                            if driver == DRIVER
                        )
                    },
                )
            )
        return tuple(found)

    def daemon(self, number: int) -> Pod:
        spec = PodSpec(
            containers=(
                Container(
                    name="agent",
                    resources=ResourceRequirements(requests={"cpu": "100m", "memory": "64Mi"}),
                    ports=(ContainerPort(container_port=9100, host_port=9100),) if self.chance(0.3) else (),
                ),
            ),
            tolerations=(Toleration(operator="Exists"),) if self.chance(0.5) else (),
            node_selector={names.ARCH_LABEL: "amd64"} if self.chance(0.3) else {},
        )
        return Pod(
            metadata=ObjectMeta(name=f"agent-{number}", namespace="kube-system", labels={"agent": str(number)}),
            spec=spec,
        )

    # -- pods -----------------------------------------------------------------------------------------------------------

    def pod(self, number: int) -> Pod:
        labels = {"app": self.random.choice(APPS)}
        if self.chance(0.3):
            labels["version"] = self.random.choice(("1", "2"))
        space = self.random.choice(SPACES)
        spec = PodSpec(
            containers=self.containers(),
            init_containers=self.init_containers(),
            resources=ResourceRequirements(requests={"cpu": "7"}) if self.chance(0.03) else None,
            overhead={"cpu": "50m", "memory": "20Mi"} if self.chance(0.1) and self.overhead else {},
            node_selector=self.selector(),
            affinity=self.affinity(labels),
            tolerations=self.tolerations(),
            topology_spread_constraints=self.spreads(labels),
            priority=self.random.choice((None, None, 0, 100, -5)),
            volumes=self.claimed(space, number),
        )
        return Pod(metadata=ObjectMeta(name=f"kind-{number}", namespace=space, labels=labels), spec=spec)

    def containers(self) -> tuple[Container, ...]:
        wanted: dict[str, str | int | float] = {
            "cpu": self.random.choice(("50m", "250m", "500m", "1", "1900m", "3")),
            "memory": self.random.choice(("64Mi", "256Mi", "1Gi", "3Gi")),
        }
        if self.chance(0.5):
            wanted = {"cpu": "250m", "memory": "256Mi"}
        if self.chance(0.1):
            wanted = {}
        if self.chance(0.07):
            wanted[GPU] = 1
        ports: tuple[ContainerPort, ...] = ()
        if self.chance(0.12):
            ports = (
                ContainerPort(
                    container_port=80,
                    host_port=self.random.choice((8080, 9100)),
                    host_ip=self.random.choice(("", "", "127.0.0.1", "10.0.0.1")),
                ),
            )
        limits = {name: amount for name, amount in wanted.items() if name == GPU}  # devices are not overcommitted
        first = Container(name="main", resources=ResourceRequirements(requests=wanted, limits=limits), ports=ports)
        if self.chance(0.2):
            return (first, Container(name="side", resources=ResourceRequirements(limits={"cpu": "100m"})))
        return (first,)

    def init_containers(self) -> tuple[Container, ...]:
        if not self.chance(0.2):
            return ()
        return tuple(
            Container(
                name=f"init-{at}",
                resources=ResourceRequirements(requests={"cpu": self.random.choice(("100m", "1", "2"))}),
                restart_policy=self.random.choice(("", "Always")),
            )
            for at in range(self.random.randint(1, 3))
        )

    def selector(self) -> dict[str, str]:
        found = {}
        if self.chance(0.08):
            found[names.ZONE_LABEL] = self.random.choice(ZONES)
        if self.chance(0.03):
            found["failure-domain.beta.kubernetes.io/zone"] = self.random.choice(ZONES)
        if self.chance(0.1):
            found[names.ARCH_LABEL] = self.random.choice(("amd64", "arm64"))
        if self.chance(0.04):
            found[DISK] = "ssd"
        if self.chance(0.05):
            found[TEAM] = self.random.choice(TEAMS)
        if self.chance(0.04):
            found[names.POOL_LABEL] = self.random.choice(("default", "special"))
        elif self.chance(0.03):
            found[names.NODE_POOL_LABEL] = "pool-0"
        return found

    def expression(self) -> NodeSelectorRequirement:
        key = self.random.choice(
            (names.ZONE_LABEL, names.CAPACITY_TYPE_LABEL, names.KWOK_INSTANCE_CPU_LABEL, TEAM, SIZE, RACK, "absent")
        )
        values = {
            names.ZONE_LABEL: ZONES,
            names.CAPACITY_TYPE_LABEL: (names.SPOT, names.ON_DEMAND),
            names.KWOK_INSTANCE_CPU_LABEL: ("2", "4", "8"),
            TEAM: TEAMS,
            SIZE: ("1", "3", "x"),
            RACK: ("zone-a-r1", "zone-b-r1"),
            "absent": ("x",),
        }[key]
        operators: tuple[str, ...] = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
        if key == names.ZONE_LABEL:
            operators = ("In", "NotIn", "Exists")
        elif key not in {names.KWOK_INSTANCE_CPU_LABEL, SIZE}:
            operators = operators[:4]
        operator = self.random.choice(operators)
        if operator in {"Exists", "DoesNotExist"}:
            chosen: tuple[str, ...] = ()
        elif operator in {"Gt", "Lt"}:
            chosen = (self.random.choice(("1", "3", "6")),)
        else:
            chosen = self.some(values)
        return NodeSelectorRequirement(key=key, operator=operator, values=chosen)

    def term(self) -> NodeSelectorTerm:
        return NodeSelectorTerm(
            match_expressions=tuple(self.expression() for _ in range(self.random.choice((1, 1, 2))))
        )

    def affinity(self, labels: dict[str, str]) -> Affinity | None:
        if self.chance(0.55):
            return None
        on = near = far = None
        if self.chance(0.4):
            required = None
            if self.chance(0.6):
                required = NodeSelector(
                    node_selector_terms=tuple(self.term() for _ in range(self.random.choice((1, 1, 2, 3))))
                )
            on = NodeAffinity(
                required_during_scheduling_ignored_during_execution=required,
                preferred_during_scheduling_ignored_during_execution=tuple(
                    PreferredSchedulingTerm(weight=self.random.randint(1, 100), preference=self.term())
                    for _ in range(self.random.choice((0, 0, 1, 2)))
                ),
            )
        if self.chance(0.3):
            near = self.pod_affinity(labels)
        if self.chance(0.3):
            far = self.pod_affinity(labels)
        return Affinity(node_affinity=on, pod_affinity=near, pod_anti_affinity=far)

    def pod_affinity(self, labels: dict[str, str]) -> PodAffinity:
        return PodAffinity(
            required_during_scheduling_ignored_during_execution=tuple(
                self.pod_term(labels) for _ in range(self.random.choice((0, 1, 1, 2)))
            ),
            preferred_during_scheduling_ignored_during_execution=tuple(
                WeightedPodAffinityTerm(weight=self.random.randint(1, 100), pod_affinity_term=self.pod_term(labels))
                for _ in range(self.random.choice((0, 0, 1, 2)))
            ),
        )

    def pod_term(self, labels: dict[str, str]) -> PodAffinityTerm:
        selector = self.about(labels)
        narrows = self.random.random() if selector is not None else 1.0
        return PodAffinityTerm(
            topology_key=self.random.choice(KEYS),
            label_selector=selector,
            namespaces=self.some(SPACES) if self.chance(0.2) else (),
            namespace_selector=self.random.choice((LabelSelector(), LabelSelector(match_labels={"tier": "front"})))
            if self.chance(0.15)
            else None,
            match_label_keys=("version",) if narrows < 0.1 else (),
            mismatch_label_keys=("version",) if 0.1 <= narrows < 0.15 else (),
        )

    def about(self, labels: dict[str, str]) -> LabelSelector | None:
        draw = self.random.random()
        if draw < 0.5:
            return LabelSelector(match_labels={"app": labels["app"]})
        if draw < 0.75:
            return LabelSelector(match_labels={"app": self.random.choice(APPS)})
        if draw < 0.95:
            operator = self.random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
            values = self.some(APPS) if operator in {"In", "NotIn"} else ()
            key = "app" if values else "version"
            return LabelSelector(
                match_expressions=(LabelSelectorRequirement(key=key, operator=operator, values=values),)
            )
        return self.random.choice((None, LabelSelector()))

    def spreads(self, labels: dict[str, str]) -> tuple[TopologySpreadConstraint, ...]:
        """None, one or two; servers refuse two of one key and kind."""
        found = [self.spread(labels) for _ in range(self.random.choice((0, 0, 0, 1, 1, 2)))]
        return tuple({(each.topology_key, each.when_unsatisfiable): each for each in found}.values())

    def spread(self, labels: dict[str, str]) -> TopologySpreadConstraint:
        forbids = self.chance(0.75)
        selector = self.about(labels)
        return TopologySpreadConstraint(
            max_skew=self.random.choice((1, 1, 2, 3)),
            topology_key=self.random.choice(KEYS),
            when_unsatisfiable="DoNotSchedule" if forbids else "ScheduleAnyway",
            label_selector=selector,
            min_domains=self.random.choice((2, 3, 5)) if forbids and self.chance(0.2) else None,
            match_label_keys=("version",) if selector is not None and self.chance(0.1) else (),
            node_affinity_policy=self.random.choice((None, None, "Honor", "Ignore")),
            node_taints_policy=self.random.choice((None, None, "Honor", "Ignore")),
        )

    def tolerations(self) -> tuple[Toleration, ...]:
        found = []
        if self.chance(0.25):
            found.append(Toleration(key="dedicated", operator="Equal", value=self.random.choice(("batch", "web"))))
        if self.chance(0.15):
            found.append(Toleration(key="gpu", operator="Exists", effect=self.random.choice(("", "NoExecute"))))
        if self.chance(0.1):
            found.append(Toleration(key="spot", operator="Exists"))
        if self.chance(0.05):
            found.append(Toleration(operator="Exists"))
        return tuple(found)

    # -- volumes ----------------------------------------------------------------------------------------------------------

    def classes(self) -> dict[str, StorageClass]:
        zone = TopologySelectorLabelRequirement(key=names.ZONE_LABEL, values=("zone-a", "zone-b"))
        return {
            "fast": StorageClass(
                metadata=ObjectMeta(name="fast"), provisioner=DRIVER, volume_binding_mode="WaitForFirstConsumer"
            ),
            "zonal": StorageClass(
                metadata=ObjectMeta(name="zonal"),
                provisioner=DRIVER,
                volume_binding_mode="WaitForFirstConsumer",
                allowed_topologies=(TopologySelectorTerm(match_label_expressions=(zone,)),),
            ),
            "eager": StorageClass(metadata=ObjectMeta(name="eager"), provisioner=DRIVER),
            "by-hand": StorageClass(
                metadata=ObjectMeta(name="by-hand"),
                provisioner="kubernetes.io/no-provisioner",
                volume_binding_mode="WaitForFirstConsumer",
            ),
        }

    def claimed(self, space: str, number: int) -> tuple[Volume, ...]:
        if not self.chance(0.25):
            return ()
        found = []
        for at in range(self.random.choice((1, 1, 2))):
            name = f"data-{number}-{at}"
            draw = self.random.random()
            if draw < 0.15:
                template = PersistentVolumeClaimTemplate(
                    spec=PersistentVolumeClaimSpec(storage_class_name=self.random.choice(("fast", "zonal")))
                )
                found.append(Volume(name=f"own-{at}", ephemeral=EphemeralVolumeSource(volume_claim_template=template)))
                continue
            if draw > 0.97:
                found.append(
                    Volume(name="gone", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="gone"))
                )
                continue
            bound = draw < 0.6
            self.claims[space, name] = PersistentVolumeClaim(
                metadata=ObjectMeta(name=name, namespace=space),
                spec=PersistentVolumeClaimSpec(
                    storage_class_name="fast"
                    if bound
                    else self.random.choice(("fast", "zonal", "zonal", "eager", "by-hand")),
                    volume_name=f"pv-{name}" if bound else "",
                    access_modes=("ReadWriteOncePod",) if self.chance(0.15) else ("ReadWriteOnce",),
                ),
                status=PersistentVolumeClaimStatus(phase="Bound" if bound else "Pending"),
            )
            if bound:
                self.volumes[f"pv-{name}"] = self.volume(f"pv-{name}")
            found.append(Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name)))
        return tuple(found)

    def volume(self, name: str) -> PersistentVolume:
        terms: tuple[NodeSelectorTerm, ...] = ()
        labels: dict[str, str] = {}
        draw = self.random.random()
        if draw < 0.6:
            terms = tuple(
                NodeSelectorTerm(
                    match_expressions=(NodeSelectorRequirement(key=names.ZONE_LABEL, operator="In", values=(zone,)),)
                )
                for zone in self.random.sample(ZONES, self.random.choice((1, 1, 2)))
            )
        elif draw < 0.75:
            labels = {names.ZONE_LABEL: "__".join(self.some(ZONES))}
        return PersistentVolume(
            metadata=ObjectMeta(name=name, labels=labels),
            spec=PersistentVolumeSpec(
                csi=CSIPersistentVolumeSource(driver=DRIVER, volume_handle=f"h-{name}") if self.chance(0.8) else None,
                node_affinity=VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms)) if terms else None,
            ),
        )
