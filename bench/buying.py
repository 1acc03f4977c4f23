"""What a purchase really costs: machines as planned, pods bound by the model of kube-scheduler, what is left bought for again.

A planner gets raw objects and says which machines to buy. `carried_out` rehearses them; pods that are left over are put
before the same planner again, with the machines and pods of before as they are now, until nobody is left. The model is
`growth.planning.rehearsal` for every planner.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from bench.catalogues import CAPACITY_TYPE, ZONE
from bench.mixes import HOSTNAME
from bench.peers import karpenter
from bench.scheduling import NANO, NOW
from growth.api import names
from growth.api.growthpools import GrowthPool
from growth.api.instance_types import Catalogue, InstanceType
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pods import Pod
from growth.api.workloads import DaemonSet
from growth.cluster.assemble import Assembled, Objects, assemble
from growth.cluster.shapes import Shapes
from growth.cluster.snapshot import NodeView
from growth.planning.rehearsal import Arrival, Stage
from growth.planning.solve import Options, solve
from growth.units.resources import quantities

ROUNDS: Final = 10
CREATED: Final = "2026-01-01T00:00:00Z"
STRUCTS: Final[Mapping[tuple[str, str], tuple[str, type[Any]]]] = {
    ("v1", "Node"): ("nodes", Node),
    ("karpenter.sh/v1", "NodePool"): ("pools", NodePool),
    ("karpenter.sh/v1", "NodeClaim"): ("claims", NodeClaim),
    ("growth.dev/v1alpha1", "NodePool"): ("growth_pools", GrowthPool),
    ("apps/v1", "DaemonSet"): ("daemon_sets", DaemonSet),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """One machine to buy; `price` is an hour's."""

    pool: str
    instance_type: str
    price: float
    labels: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Purchase:
    """What a planner wants. `planned` is the price before its own rehearsal, if it has one; `bound` its own lower bound.

    `nominated` are the pods, with the number of the machine, whom the planner's autoscaler nominates for it.
    """

    machines: tuple[Machine, ...]
    seconds: float
    unplaced: int
    planned: float
    bound: float | None = None
    nominated: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def hourly(self) -> float:
        return sum(machine.price for machine in self.machines)


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """`second` pods were left to a second purchase; `never` got no place at all."""

    hourly: float
    nodes: int
    second: int
    never: int


Planner = Callable[[Sequence[Json]], Purchase]


class Market:
    """One catalogue, for every planner the same."""

    def __init__(self, types: Sequence[Json], catalogue: Catalogue) -> None:
        self._raw = types
        self._catalogue = catalogue
        self._types = {kind.name: kind for kind in catalogue.types}

    def assembled(self, objects: Sequence[Json]) -> Assembled:
        return assemble(decoded(objects), self._catalogue, now=NOW)

    def growth(self, options: Options) -> Planner:
        """Ours, timed from decoded objects to the finished plan."""

        def planner(objects: Sequence[Json]) -> Purchase:
            known = decoded(objects)
            begun = time.perf_counter()
            assembled = assemble(known, self._catalogue, now=NOW)
            plan = solve(assembled.snapshot, assembled.demands, options)
            seconds = time.perf_counter() - begun
            return Purchase(
                machines=tuple(
                    Machine(claim.pool.name, claim.instance_type, claim.price / NANO, claim.labels)
                    for claim in plan.claims
                ),
                seconds=seconds,
                unplaced=len(plan.unplaced),
                planned=plan.planned / NANO,
                bound=None if plan.lower_bound is None else plan.lower_bound / NANO,
                nominated={key: at for at, claim in enumerate(plan.claims) for key in claim.pods} if plan.told else {},
            )

        return planner

    def peer(self, objects: Sequence[Json]) -> Purchase:
        """Karpenter's: of each of its claims the cheapest offering; timed over NewTopology, NewScheduler and Solve."""
        answer = karpenter.solve(objects, instance_types=self._raw)
        machines = tuple(
            Machine(claim.node_pool, claim.instance_types[0], claim.price, self._labels(claim))
            for claim in answer.claims
        )
        return Purchase(machines, answer.best.seconds, len(answer.errors), sum(each.price for each in machines))

    def _labels(self, claim: karpenter.Claim) -> dict[str, str]:
        kind = self._types[claim.instance_types[0]]
        return {
            **{key: values[0] for key, values in kind.labels.items() if len(values) == 1},
            names.INSTANCE_TYPE_LABEL: kind.name,
            names.NODE_POOL_LABEL: claim.node_pool,
            ZONE: claim.zone,
            CAPACITY_TYPE: claim.capacity_type,
        }

    def carried_out(self, objects: Sequence[Json], purchase: Purchase, planner: Planner, arrival: Arrival) -> Outcome:
        """The purchase and all that come after it."""
        state = list(objects)
        hourly, nodes, second, never = 0.0, 0, 0, 0
        for number in range(ROUNDS):
            hourly += purchase.hourly
            nodes += len(purchase.machines)
            assembled = self.assembled(state)
            views = [self._view(machine, f"bought-{number}-{at:05}") for at, machine in enumerate(purchase.machines)]
            stage = Stage(assembled.snapshot, assembled.demands)
            found = stage.rehearse_nodes(views, arrival, meant=purchase.nominated)
            never = len(found.left)
            if number == 0:
                second = max(0, len(found.left) - purchase.unplaced)
            if not found.left or not purchase.machines:
                break
            places = {at: view.name for at, view in enumerate(views)}
            bound = {key: place if isinstance(place, str) else places[place] for key, place in found.order}
            state = [_placed(each, bound) if each["kind"] == "Pod" else each for each in state]
            for machine, view in zip(purchase.machines, views, strict=True):
                state.extend(self._raw_machine(machine, view))
            purchase = planner(state)
        return Outcome(hourly=hourly, nodes=nodes, second=second, never=never)

    def _view(self, machine: Machine, name: str) -> NodeView:
        kind = self._types[machine.instance_type]
        return NodeView(
            name=name,
            labels={**machine.labels, names.HOSTNAME_LABEL: name},
            allocatable=kind.allocatable,
        )

    def _raw_machine(self, machine: Machine, view: NodeView) -> tuple[Json, Json]:
        """The machine as a running cluster knows it: a node and its claim."""
        kind: InstanceType = self._types[machine.instance_type]
        capacity, allocatable = quantities(kind.capacity), quantities(kind.allocatable)
        provider_id = f"kwok://{view.name}"
        marks = {names.REGISTERED_LABEL: "true", names.INITIALIZED_LABEL: "true", HOSTNAME: view.name}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": view.name, "labels": {**machine.labels, **marks}},
            "spec": {"providerID": provider_id},
            "status": {
                "capacity": capacity,
                "allocatable": allocatable,
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        }
        claim = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": f"claim-{view.name}", "labels": dict(machine.labels)},
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [
                    {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [machine.instance_type]}
                ],
            },
            "status": {
                "nodeName": view.name,
                "providerID": provider_id,
                "capacity": capacity,
                "allocatable": allocatable,
                "conditions": [
                    {"type": each, "status": "True", "reason": each, "message": "", "lastTransitionTime": CREATED}
                    for each in ("Launched", "Registered", "Initialized", "Ready")
                ],
            },
        }
        return node, claim


def decoded(objects: Sequence[Json]) -> Objects:
    """Raw objects as structs."""
    found: dict[str, Any] = {}
    shapes = Shapes()
    for each in objects:
        if each["kind"] == "Pod":
            found.setdefault("pods", []).append(shapes.keep(msgspec.convert(each, Pod)))
        else:
            field, struct = STRUCTS[each["apiVersion"], each["kind"]]
            found.setdefault(field, []).append(msgspec.convert(each, struct))
    return Objects(**found)


def _placed(pod: Json, bound: Mapping[str, str]) -> Json:
    key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    if key not in bound:
        return pod
    return {**pod, "spec": {**pod["spec"], "nodeName": bound[key]}, "status": {"phase": "Running"}}
