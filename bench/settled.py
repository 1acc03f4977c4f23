"""A cluster that has run for a while: full of Deployments, with a few pods waiting. For `bench steady` and its like."""

import dataclasses
import random
import uuid
from collections.abc import Sequence
from typing import Any, Final

from bench.catalogues import CAPACITY_TYPE, KWOK_ZONES, ZONE
from bench.mixes import HOSTNAME, SEED, WEB_SIZES, anti_affinity, node_pool, raw_pod, spread
from growth.api.kinds import Json

POOL: Final = "default"
ZONES: Final = KWOK_ZONES[:3]
# One type of the KWOK catalogue; 15 pods of the web mix's sizes fill about two thirds of it.
INSTANCE_TYPE: Final = "s-8x-amd64-linux"
CAPACITY: Final = {"cpu": "8", "memory": "32Gi", "pods": "128", "ephemeral-storage": "20Gi"}
ALLOCATABLE: Final = {"cpu": "7900m", "memory": "32758Mi", "pods": "128", "ephemeral-storage": "20Gi"}
CPU_MILLI: Final = 7900
MEMORY_MIB: Final = 32758

NAMESPACES: Final = 20
CREATED: Final = "2026-01-01T00:00:00Z"
# Fits an empty machine of the type above and none that holds pods: it needs a new one.
LARGE_CPU_MILLI: Final = 7800
LARGE_MEMORY_MIB: Final = 8192
LARGE_EVERY: Final = 10


@dataclasses.dataclass(slots=True)
class _Node:
    name: str
    zone: str
    cpu: int = CPU_MILLI
    memory: int = MEMORY_MIB
    apps: set[str] = dataclasses.field(default_factory=set)

    def takes(self, app: "_App") -> bool:
        return app.name not in self.apps and self.cpu >= app.cpu and self.memory >= app.memory

    def add(self, app: "_App") -> None:
        self.apps.add(app.name)
        self.cpu -= app.cpu
        self.memory -= app.memory


@dataclasses.dataclass(frozen=True, slots=True)
class _App:
    """One shape: a Deployment's pods are equal but for their names."""

    name: str
    namespace: str
    cpu: int
    memory: int
    spec: dict[str, Any]


def steady(nodes: int = 5000, *, pods_per_node: int = 15, shapes: int = 300, pending: int = 100) -> list[Json]:
    """A pool, its nodes with their claims, their pods, and pods that wait.

    Each shape has equally many replicas, one a node at most, spread evenly over three zones. Of the constrained third,
    one in three shapes has a zonal spread, one a hostname spread, one anti-affinity to itself; every rule holds. Of the
    pending pods nine in ten are further replicas, one in ten fits no machine that holds pods.
    """
    drawn = random.Random(SEED)
    apps = [_app(i, drawn) for i in range(shapes)]
    machines = [_Node(name=f"node-{i:05}", zone=ZONES[i % len(ZONES)]) for i in range(nodes)]
    bound = _place(apps, machines, nodes * pods_per_node, drawn)
    waiting = [_waiting(i, drawn.choice(apps), drawn) for i in range(pending)]
    pairs = [raw for machine in machines for raw in _machine(machine)]
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _namespace(i)}} for i in range(NAMESPACES)
    ]
    return [node_pool(POOL), *namespaces, *pairs, *bound, *waiting]


def _app(index: int, drawn: random.Random) -> _App:
    cpu, memory = drawn.choice(WEB_SIZES)
    name = f"app-{index:03}"
    labels = {"app": name}
    rules: Sequence[dict[str, Any]] = (
        {"topologySpreadConstraints": [spread(ZONE, labels)]},
        {"topologySpreadConstraints": [spread(HOSTNAME, labels)]},
        {"affinity": anti_affinity(HOSTNAME, labels)},
    )
    spec = rules[index // 3 % 3] if index % 3 == 0 else {}
    return _App(name=name, namespace=_namespace(index % NAMESPACES), cpu=cpu, memory=memory, spec=spec)


def _place(apps: Sequence[_App], machines: Sequence[_Node], total: int, drawn: random.Random) -> list[Json]:
    by_zone = [[machine for machine in machines if machine.zone == zone] for zone in ZONES]
    next_in_zone = [0] * len(ZONES)
    pods = []
    for i, app in enumerate(apps):
        replicas = total // len(apps) + (i < total % len(apps))
        for j in range(replicas):
            zone = (i + j) % len(ZONES)
            at = _next(by_zone[zone], app, next_in_zone[zone])
            next_in_zone[zone] = at + 1
            machine = by_zone[zone][at % len(by_zone[zone])]
            machine.add(app)
            pods.append(_pod(f"{app.name}-{j}", app, drawn, nodeName=machine.name))
    return pods


def _next(machines: Sequence[_Node], app: _App, start: int) -> int:
    """The next place at or after `start`, round and round, that takes the app's pod."""
    for at in range(start, start + len(machines)):
        if machines[at % len(machines)].takes(app):
            return at
    raise ValueError(f"no node takes another pod of {app.name}; ask for fewer pods a node or more nodes")


def _waiting(index: int, app: _App, drawn: random.Random) -> Json:
    if index % LARGE_EVERY == 0:
        large = _App(f"large-{index}", app.namespace, LARGE_CPU_MILLI, LARGE_MEMORY_MIB, {})
        return _pod(large.name, large, drawn)
    return _pod(f"{app.name}-pending-{index}", app, drawn)


def _pod(name: str, app: _App, drawn: random.Random, **spec: Any) -> Json:
    return raw_pod(
        name,
        uid=str(uuid.UUID(int=drawn.getrandbits(128), version=4)),
        cpu_milli=app.cpu,
        memory_mib=app.memory,
        labels={"app": app.name},
        namespace=app.namespace,
        **app.spec,
        **spec,
    )


def _machine(machine: _Node) -> tuple[Json, Json]:
    provider_id = f"kwok://{machine.name}"
    labels = {
        "karpenter.sh/nodepool": POOL,
        CAPACITY_TYPE: "on-demand",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": INSTANCE_TYPE,
        ZONE: machine.zone,
    }
    on_node = {HOSTNAME: machine.name, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.name, "labels": {**labels, **on_node}},
        "spec": {"providerID": provider_id},
        "status": {
            "capacity": CAPACITY,
            "allocatable": ALLOCATABLE,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": f"{POOL}-{machine.name}", "labels": labels},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [INSTANCE_TYPE]},
            ],
        },
        "status": {
            "nodeName": machine.name,
            "providerID": provider_id,
            "capacity": CAPACITY,
            "allocatable": ALLOCATABLE,
            "conditions": [
                {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": CREATED}
                for kind in ("Launched", "Registered", "Initialized", "Ready")
            ],
        },
    }
    return node, claim


def _namespace(index: int) -> str:
    return f"team-{index:02}"
