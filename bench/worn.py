"""A cluster that was bought for more than it runs now, and what becomes of it when moves are made.

Machines are of several families and sizes, as years of buying leave them; the pods are what is left of the load, dealt out
by lot. `World` is that cluster as values: it says what planning would see, and makes moves the way a cluster does: pods of
nodes that go are bound anew by the model of kube-scheduler, and what that leaves over gets machines from first fit.
"""

import dataclasses
import datetime as dt
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from bench import catalogues, mixes
from bench.catalogues import CAPACITY_TYPE, KWOK_ZONES, ZONE
from bench.mixes import HOSTNAME, node_pool
from bench.scheduling import NOW, catalogue_of
from growth.api import names
from growth.api.instance_types import Catalogue, InstanceType
from growth.api.karpenter import NodePool
from growth.api.kinds import Json
from growth.api.pods import Pod
from growth.api.requests import requests_of
from growth.cluster.assemble import Objects, assemble
from growth.cluster.shapes import CachedPod, PodShape, Shapes
from growth.cluster.snapshot import Demand, NodeView, Snapshot
from growth.cluster.wanting import key_of
from growth.planning.disruption.model import Move, OwnedNode, Room, Situation
from growth.planning.plan import PlannedClaim
from growth.planning.rehearsal import Arrival, Stage
from growth.planning.solve import Options, solve
from growth.units.resources import Amounts, add, amounts, quantities

POOL: Final = "default"
FAMILIES: Final = ("c", "s", "m")
ZONES: Final = KWOK_ZONES[:3]
# Sizes of machines for which 15 pods of the mix use about 40 % of the scarcer resource.
SIZES: Final[Mapping[str, tuple[int, ...]]] = {"web": (4, 8), "generic": (8, 16, 32, 48)}
MIXES: Final[Mapping[str, Callable[[int], list[Json]]]] = {"web": mixes.web, "generic": mixes.generic}
# No machine was filled further than this.
FULLEST: Final = 0.9
# So much time passes between one decision and the next.
PAUSE: Final = dt.timedelta(hours=1)
# An eviction counts half as much less or more at most.
MOST_COSTLY: Final = 1 << 26
CREATED: Final = "2025-01-01T00:00:00Z"
LONG_AGO: Final = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """A node: what it is, where it is and what an hour of it costs, in billionths."""

    name: str
    kind: InstanceType
    zone: str
    capacity_type: str
    price: int
    created: dt.datetime

    @property
    def labels(self) -> dict[str, str]:
        return {
            **{key: values[0] for key, values in self.kind.labels_of_today.items() if len(values) == 1},
            names.NODE_POOL_LABEL: POOL,
            names.ZONE_LABEL: self.zone,
            names.CAPACITY_TYPE_LABEL: self.capacity_type,
            names.HOSTNAME_LABEL: self.name,
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Made:
    """What came of some moves: pods that were bound anew, and pods for which machines had to be bought afterwards."""

    evictions: int
    late: int


class World:
    """The cluster. Equal arguments and moves, equal worlds."""

    def __init__(
        self,
        machines: Sequence[Machine],
        pods: Mapping[str, Sequence[Json]],
        catalogue: Catalogue,
        *,
        terms: Sequence[str] = (names.ON_DEMAND,),
    ) -> None:
        shapes = Shapes()
        self.machines = {machine.name: machine for machine in machines}
        self.pods: dict[str, list[CachedPod]] = {
            name: [shapes.keep(msgspec.convert(each, Pod)) for each in of_node] for name, of_node in pods.items()
        }
        self.now = NOW
        self._requests = _Requests()
        self._bought = 0
        pool = msgspec.convert(node_pool(POOL, capacity_types=terms), NodePool)
        self._pools = {POOL: pool}
        self._view = assemble(Objects(pools=[pool]), catalogue, now=NOW).snapshot.pools
        self._kinds = {kind.name: kind for kind in catalogue.types}

    @property
    def cost(self) -> int:
        """What all machines cost an hour, in billionths."""
        return sum(machine.price for machine in self.machines.values())

    @property
    def use(self) -> tuple[float, float]:
        """The shares of cpu and memory that pods ask for."""
        asked = add(*(self._requests.of(pod.shape) for pods in self.pods.values() for pod in pods))
        there = add(*(machine.kind.allocatable for machine in self.machines.values()))
        return asked["cpu"] / there["cpu"], asked["memory"] / there["memory"]

    def situation(self) -> Situation:
        """The cluster as planning sees it."""
        views = {name: self._seen(machine) for name, machine in self.machines.items()}
        snapshot = Snapshot(currency="USD", pools=self._view, nodes=tuple(views.values()), namespaces={"default": {}})
        nodes = tuple(
            OwnedNode(
                name=name,
                pool=POOL,
                claim=name,
                view=views[name],
                pods=tuple(self.pods[name]),
                quiet_seconds=PAUSE.total_seconds(),
                price=machine.price,
                created=machine.created,
            )
            for name, machine in self.machines.items()
        )
        return Situation(snapshot=snapshot, nodes=nodes, pools=self._pools, now=self.now)

    def make(self, moves: Sequence[Move]) -> Made:
        """Buys, removes when what replaces is up, and lets kube-scheduler bind; then time passes."""
        gone = {name for move in moves for name in move.nodes}
        evicted = [pod for name in self.machines if name in gone for pod in self.pods[name]]
        claims = [each.planned for move in moves for each in move.replacements]
        for name in gone:
            del self.machines[name], self.pods[name]
        self.now += PAUSE
        left = self._bind(evicted, claims, Arrival.BEFOREHAND)
        late = len(left)
        while left:
            demands = [Demand(key_of(pod), pod.shape) for pod in left]
            plan = solve(self.situation().snapshot, demands, Options())
            if plan.unplaced:
                raise ValueError(f"{len(plan.unplaced)} pods fit nowhere; the generated cluster is wrong")
            left = self._bind(left, plan.claims, Arrival.AT_ONCE)
        return Made(len(evicted), late)

    def _bind(self, pods: Sequence[CachedPod], claims: Sequence[PlannedClaim], arrival: Arrival) -> list[CachedPod]:
        """Buys the machines and binds the pods; those that found no place."""
        demands = [Demand(key_of(pod), pod.shape) for pod in pods]
        found = Stage(self.situation().snapshot, demands).rehearse(claims, arrival)
        bought = []
        for claim in claims:
            self._bought += 1
            machine = Machine(
                name=f"bought-{self._bought:05}",
                kind=self._kinds[claim.instance_type],
                zone=claim.zone,
                capacity_type=claim.capacity_type,
                price=claim.price,
                created=self.now,
            )
            self.machines[machine.name] = machine
            self.pods[machine.name] = []
            bought.append(machine.name)
        by_key = {key_of(pod): pod for pod in pods}
        for key, place in found.order:
            name = place if isinstance(place, str) else bought[place]
            self.pods[name].append(msgspec.structs.replace(by_key[key], node_name=name, created=self.now))
        return [by_key[key] for key in found.left]

    def _seen(self, machine: Machine) -> NodeView:
        counts: dict[PodShape, int] = {}
        for pod in self.pods[machine.name]:
            counts[pod.shape] = counts.get(pod.shape, 0) + 1
        return NodeView(
            name=machine.name,
            labels=machine.labels,
            allocatable=machine.kind.allocatable,
            requested=self._requests.together(counts),
            pods=tuple(counts.items()),
            pool=self._view[0].ref,
            price=machine.price,
        )


def unlimited() -> dict[str, Room]:
    """No budget and no limit."""
    return {POOL: Room(None, None)}


def worn(nodes: int, *, mix: str = "web", pods_per_node: int = 15, seed: int = mixes.SEED) -> World:
    """A world of so many machines."""
    machines, pods = drawn(nodes, mix=mix, pods_per_node=pods_per_node, seed=seed)
    return World(machines, pods, kwok())


def kwok() -> Catalogue:
    """Karpenter's KWOK types."""
    return catalogue_of(catalogues.kwok_types())


def drawn(
    nodes: int,
    *,
    mix: str,
    pods_per_node: int = 15,
    seed: int = mixes.SEED,
    terms: Sequence[str] = (names.ON_DEMAND,),
    costly: bool = False,
) -> tuple[list[Machine], dict[str, list[Json]]]:
    """Machines, and the raw pods of each: dealt out by lot, in proportion to size times luck, as far as they fit.

    `costly` pods have deletion costs, so that no two nodes are equally good candidates.
    """
    lots = random.Random(seed)
    kinds = {kind.name: kind for kind in kwok().types}
    machines, room, weights = [], [], []
    for at in range(nodes):
        kind = kinds[f"{lots.choice(FAMILIES)}-{lots.choice(SIZES[mix])}x-amd64-linux"]
        zone, chosen = ZONES[at % len(ZONES)], lots.choice(terms)
        price = next(
            each.price
            for each in kind.offerings
            if each.zone == zone and each.capacity_type == chosen and each.price is not None
        )
        machines.append(Machine(f"node-{at:05}", kind, zone, chosen, price, LONG_AGO))
        room.append({name: int(kind.allocatable[name] * FULLEST) for name in ("cpu", "memory", "pods")})
        weights.append(kind.allocatable["cpu"] * lots.uniform(0.25, 1.75))
    raw = MIXES[mix](nodes * pods_per_node)
    lots.shuffle(raw)
    held: dict[str, list[Json]] = {machine.name: [] for machine in machines}
    for turn, at in enumerate(lots.choices(range(nodes), weights, k=len(raw))):
        asked = {**amounts(raw[turn]["spec"]["containers"][0]["resources"]["requests"]), "pods": 1}
        place = next(
            index
            for index in ((at + more) % nodes for more in range(nodes))
            if all(room[index][name] >= amount for name, amount in asked.items())
        )
        for name, amount in asked.items():
            room[place][name] -= amount
        held[machines[place].name].append(_bound(raw[turn], machines[place].name, lots, costly=costly))
    return machines, held


def raw_objects(
    machines: Sequence[Machine], pods: Mapping[str, Sequence[Json]], *, terms: Sequence[str] = (names.ON_DEMAND,)
) -> list[Json]:
    """The same cluster as objects of the API, for a peer: the pool, nodes with their claims, and pods."""
    pairs = [raw for machine in machines for raw in _objects(machine)]
    pool = node_pool(POOL, capacity_types=terms)
    # What an API server would fill in.
    pool["spec"]["disruption"] = {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized"}
    return [pool, *pairs, *(pod for machine in machines for pod in pods[machine.name])]


def _bound(pod: Json, node: str, lots: random.Random, *, costly: bool) -> Json:
    cost = {names.POD_DELETION_COST_ANNOTATION: str(lots.randint(-MOST_COSTLY, MOST_COSTLY))} if costly else {}
    meta = {
        **pod["metadata"],
        "uid": str(uuid.UUID(int=lots.getrandbits(128), version=4)),
        "creationTimestamp": CREATED,
        "annotations": cost,
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner", "uid": "owner", "controller": True}
        ],
    }
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": node}, "status": {"phase": "Running"}}


def _objects(machine: Machine) -> tuple[Json, Json]:
    provider_id = f"kwok://{machine.name}"
    labels = {key: value for key, value in machine.labels.items() if key != HOSTNAME}
    status = {
        "capacity": dict(quantities(machine.kind.capacity)),
        "allocatable": dict(quantities(machine.kind.allocatable)),
    }
    on_node = {HOSTNAME: machine.name, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.name, "labels": {**labels, **on_node}, "creationTimestamp": CREATED},
        "spec": {"providerID": provider_id},
        "status": {**status, "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]},
    }
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": f"{POOL}-{machine.name}", "labels": labels, "creationTimestamp": CREATED},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [machine.kind.name]},
                {"key": CAPACITY_TYPE, "operator": "In", "values": [machine.capacity_type]},
                {"key": ZONE, "operator": "In", "values": [machine.zone]},
            ],
        },
        "status": {
            "nodeName": machine.name,
            "providerID": provider_id,
            **status,
            "conditions": [
                {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": CREATED}
                for kind in ("Launched", "Registered", "Initialized", "Ready", "Consolidatable")
            ],
        },
    }
    return node, claim


class _Requests:
    """What pods of a shape ask for, worked out once."""

    def __init__(self) -> None:
        self._known: dict[PodShape, Amounts] = {}

    def of(self, shape: PodShape) -> Amounts:
        known = self._known.get(shape)
        if known is None:
            known = self._known[shape] = requests_of(shape.spec)
        return known

    def together(self, counts: Mapping[PodShape, int]) -> Amounts:
        return add(
            *({name: amount * number for name, amount in self.of(shape).items()} for shape, number in counts.items())
        )
