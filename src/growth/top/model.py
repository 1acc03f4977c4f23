"""What is on the screen, as values: sums, a row a node, a row a waiting pod, the latest decisions. Knows no widget.

A row is made once and kept until its machine changes, so that a look at a large cluster costs what has changed in it.
"""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.decisions import Decision
from growth.api.pods import PodSpec
from growth.api.requests import requests_of
from growth.cluster.counting import Counted
from growth.cluster.machines import Machine
from growth.cluster.pricing import PriceList
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.wanting import is_done, key_of
from growth.providers.catalogues import hours_of_month
from growth.top import sentences
from growth.top.following import Sight
from growth.units.errors import QuantityError
from growth.units.money import Hours

CPU: Final = "cpu"
MEMORY: Final = "memory"
# So many decisions are shown at most; the cluster keeps more.
DECISIONS: Final = 50

# How far a machine is.
LEAVING: Final = "Leaving"
BOUGHT: Final = "Bought"  # a machine is asked for, and no Node is there
STARTING: Final = "Starting"  # its Node is there and takes no pods yet
NOT_READY: Final = "NotReady"
CORDONED: Final = "Cordoned"
READY: Final = "Ready"
COMING: Final = frozenset({BOUGHT, STARTING})


@dataclasses.dataclass(frozen=True, slots=True)
class Use:
    """How much of something is asked for, of how much: thousandths of cores, or bytes."""

    used: int = 0
    total: int = 0

    @property
    def share(self) -> float:
        return self.used / self.total if self.total else 0.0

    def __add__(self, other: "Use") -> "Use":
        return Use(self.used + other.used, self.total + other.total)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A machine. `state` is one word; `price` None is not known. `pool` empty: nobody's."""

    name: str
    state: str
    pool: str = ""
    type: str = ""
    zone: str = ""
    capacity_type: str = ""
    price: int | None = None
    created: dt.datetime | None = None
    cpu: Use = Use()
    memory: Use = Use()
    pods: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodRow:
    """A pod without a node; `key` is namespace/name."""

    key: str
    created: dt.datetime | None
    cpu: int
    memory: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    name: str
    at: dt.datetime
    outcome: str
    text: str
    sum: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """`hourly` is what machines with a known price cost; `unpriced` are the others of ours."""

    nodes: int = 0
    coming: int = 0
    leaving: int = 0
    running: int = 0
    waiting: int = 0
    hourly: int = 0
    unpriced: int = 0
    cpu: Use = Use()
    memory: Use = Use()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Screen:
    """Everything at one moment. Rows are in no order that matters: the person chooses one."""

    now: dt.datetime
    currency: str
    hours_of_month: Hours
    sums: Sums
    nodes: Sequence[NodeRow]
    waiting: Sequence[PodRow]
    decisions: Sequence[DecisionRow]
    problems: tuple[str, ...] = ()


class Rows:
    """Makes screens, and remembers what need not be made again."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[Counted, int, NodeRow]] = {}
        self._decisions: dict[str, DecisionRow] = {}
        self._requests: dict[PodShape, tuple[int, int]] = {}
        self._prices = PriceList(None)
        self._catalogue: object = None
        self._epoch = 0

    def screen(self, sight: Sight) -> Screen:
        picture = sight.picture
        if picture.catalogue is not self._catalogue:
            self._catalogue = picture.catalogue
            self._epoch += 1
            self._prices = PriceList(picture.catalogue)
        nodes = self._node_rows(picture.counted)
        waiting = [self._pod_row(pod) for pod in picture.pending if not is_done(pod) and pod.deleting is None]
        hours = hours_of_month(picture.catalogue.cloud)
        return Screen(
            now=picture.now,
            currency=picture.catalogue.currency,
            hours_of_month=hours,
            sums=sums(nodes, waiting=len(waiting)),
            nodes=nodes,
            waiting=waiting,
            decisions=self._decision_rows(sight.decisions, hours),
            problems=sight.problems,
        )

    def _node_rows(self, counted: Mapping[str, Counted]) -> list[NodeRow]:
        known, fresh = self._nodes, {}
        for name, each in counted.items():
            kept = known.get(name)
            if kept is None or kept[0] is not each or kept[1] != self._epoch:
                kept = (each, self._epoch, self._node_row(name, each))
            fresh[name] = kept
        self._nodes = fresh
        return [row for _, _, row in fresh.values()]

    def _node_row(self, name: str, counted: Counted) -> NodeRow:
        machine, view = counted.machine, counted.view
        labels, claim = machine.labels, machine.claim
        allocatable = view.allocatable if view is not None else _promised(machine)
        requested = view.requested if view is not None else {}
        source = machine.node or machine.claim
        return NodeRow(
            name=name,
            state=state_of(machine),
            pool=str(machine.pool or ""),
            type=labels.get(names.INSTANCE_TYPE_LABEL, ""),
            zone=labels.get(names.ZONE_LABEL, ""),
            capacity_type=labels.get(names.CAPACITY_TYPE_LABEL, ""),
            price=self._prices.of_class(labels, claim.spec.node_class_ref.name if claim is not None else ""),
            created=source.metadata.creation_timestamp if source is not None else None,
            cpu=Use(requested.get(CPU, 0), allocatable.get(CPU, 0)),
            memory=Use(requested.get(MEMORY, 0), allocatable.get(MEMORY, 0)),
            pods=sum(number for _, number in view.pods) if view is not None else len(counted.moving),
        )

    def _pod_row(self, pod: CachedPod) -> PodRow:
        asked = self._requests.get(pod.shape)
        if asked is None:
            asked = self._requests[pod.shape] = _requests(pod.shape.spec)
        return PodRow(key=key_of(pod), created=pod.created, cpu=asked[0], memory=asked[1])

    def _decision_rows(self, decisions: Iterable[Decision], hours: Hours) -> list[DecisionRow]:
        newest = sorted(decisions, key=lambda each: (each.spec.at, each.metadata.name), reverse=True)[:DECISIONS]
        known = self._decisions
        self._decisions = {
            each.metadata.name: known.get(each.metadata.name) or _decision_row(each, hours) for each in newest
        }
        return list(self._decisions.values())


def sums(nodes: Iterable[NodeRow], *, waiting: int) -> Sums:
    """The header's figures. Machines that are still to come are paid for already; their room is not there yet."""
    count = coming = leaving = running = hourly = unpriced = 0
    cpu_used = cpu_total = memory_used = memory_total = 0
    for row in nodes:
        count += 1
        coming += row.state in COMING
        leaving += row.state == LEAVING
        running += row.pods
        if row.price is not None:
            hourly += row.price
        elif row.pool:
            unpriced += 1
        cpu_used += row.cpu.used
        cpu_total += row.cpu.total
        memory_used += row.memory.used
        memory_total += row.memory.total
    return Sums(
        nodes=count,
        coming=coming,
        leaving=leaving,
        running=running,
        waiting=waiting,
        hourly=hourly,
        unpriced=unpriced,
        cpu=Use(cpu_used, cpu_total),
        memory=Use(memory_used, memory_total),
    )


def state_of(machine: Machine) -> str:
    """How far a machine is, in one word."""
    node = machine.node
    if machine.leaving:
        return LEAVING
    if node is None:
        return BOUGHT
    if not machine.initialized:
        return STARTING
    if not any(each.type == names.READY and each.status == "True" for each in node.status.conditions):
        return NOT_READY
    return CORDONED if node.spec.unschedulable else READY


def _promised(machine: Machine) -> Mapping[str, int]:
    try:
        return machine.allocatable
    except QuantityError:
        return {}


def _requests(spec: PodSpec) -> tuple[int, int]:
    try:
        asked = requests_of(spec)
    except QuantityError:
        return 0, 0
    return asked.get(CPU, 0), asked.get(MEMORY, 0)


def _decision_row(decision: Decision, hours: Hours) -> DecisionRow:
    spec = decision.spec
    return DecisionRow(
        name=decision.metadata.name,
        at=spec.at,
        outcome=spec.outcome,
        text=sentences.headline(spec),
        sum=sentences.arithmetic(spec, hours=hours),
    )
