"""Karpenter's gauges of Nodes: what they have, what pods and DaemonSets ask of it, and how old they are.

One table serves all gauges of a scrape; it is made in steps before, and stays as long as nothing in the cluster changes. A
quantity that nobody can read is left out.
"""

import collections
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from growth.api import names
from growth.api.nodes import Node
from growth.api.pods import PodSpec
from growth.api.requests import requests_of
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.wanting import is_done, of_daemon_set
from growth.controllers.environment import Environment
from growth.controllers.ownership import serves
from growth.telemetry.metrics import Declaration, Gauge
from growth.units import QuantityError
from growth.units.resources import CPU, Amounts, add, amounts, largest, subtract

# The well-known labels, as label names of metrics.
_LABELS: Final = {key: key.partition("/")[2].lower().replace("-", "_") for key in sorted(names.WELL_KNOWN_LABELS)}
_ABOUT: Final = (*_LABELS.values(), "node_name", "phase", "managed")


def _gauge(name: str, help_: str) -> Gauge:
    return Gauge(f"karpenter_nodes_{name}", help_, labels=(*_ABOUT, "resource_type"))


ALLOCATABLE: Final = _gauge("allocatable", "What of the node pods may take.")
POD_REQUESTS: Final = _gauge("total_pod_requests", "What the pods bound to the node request, DaemonSets' included.")
POD_LIMITS: Final = _gauge("total_pod_limits", "The limits of the pods bound to the node, DaemonSets' included.")
DAEMON_REQUESTS: Final = _gauge("total_daemon_requests", "What pods of DaemonSets on the node request.")
DAEMON_LIMITS: Final = _gauge("total_daemon_limits", "The limits of pods of DaemonSets on the node.")
OVERHEAD: Final = _gauge("system_overhead", "What the node keeps for itself: its capacity less what is allocatable.")
LIFETIME: Final = Gauge("karpenter_nodes_current_lifetime_seconds", "The node's age.", labels=_ABOUT)
UTILIZATION: Final = Gauge(
    "karpenter_cluster_utilization_percent",
    "What pods request of what is allocatable, over all nodes.",
    labels=("resource_type",),
)
METRICS: Final[tuple[Declaration, ...]] = (
    *(ALLOCATABLE, POD_REQUESTS, POD_LIMITS, DAEMON_REQUESTS, DAEMON_LIMITS, OVERHEAD),
    *(LIFETIME, UTILIZATION),
)

_OF_UTILIZATION: Final = (ALLOCATABLE, POD_REQUESTS)
# So many nodes are looked at in one step.
NODES_A_STEP: Final = 100

Series = Iterator[tuple[Mapping[str, str], float]]


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    """One node: its labels, and by gauge what is to be told of it."""

    labels: Mapping[str, str]
    node: Node
    amounts: Mapping[Gauge, Amounts]
    _of_resources: dict[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)

    def labels_with(self, resource: str) -> Mapping[str, str]:
        """The labels of a series of one resource; made once, for six gauges and every scrape."""
        known = self._of_resources.get(resource)
        if known is None:
            known = self._of_resources[resource] = {**self.labels, "resource_type": word(resource)}
        return known


def declare(env: Environment) -> None:
    table = _Table(env)
    env.metrics.prepare(table.renew)
    for gauge in METRICS[:6]:
        assert isinstance(gauge, Gauge)
        env.metrics.read(gauge, _resources(table, gauge))
    env.metrics.read(LIFETIME, table.lifetimes)
    env.metrics.read(UTILIZATION, table.utilization)


def limits_of(spec: PodSpec) -> dict[str, int]:
    """The limits of a pod in sum, counted as its requests are, one of `pods` included."""
    running = add(*(amounts(container.resources.limits) for container in spec.containers))
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.init_containers:
        own = amounts(container.resources.limits)
        if container.restart_policy == "Always":
            sidecars = add(sidecars, own)
            starting = largest(starting, sidecars)
        else:
            starting = largest(starting, add(sidecars, own))
    return {**largest(add(running, sidecars), starting), "pods": 1}


class _Table:
    def __init__(self, env: Environment) -> None:
        self._env = env
        self.rows: list[_Row] = []
        self._totals: Mapping[Gauge, collections.Counter[str]] = {}
        self._changes = -1
        # By shape: (requests, limits). Forgotten with the table's rows, so that shapes of old rollouts go.
        self._sums: dict[PodShape, tuple[Amounts, Amounts]] = {}

    def renew(self) -> Iterator[None]:
        """The table as of now. What changes between two steps is told by the next scrape, if not yet by this one."""
        if self._changes == self._env.state.changes:
            return
        changes, known, self._sums = self._env.state.changes, self._sums, {}
        rows: list[_Row] = []
        totals: dict[Gauge, collections.Counter[str]] = {gauge: collections.Counter() for gauge in _OF_UTILIZATION}
        for node in tuple(self._env.state.nodes.store):
            rows.append(self._row(node, known))
            for gauge, total in totals.items():
                for name, amount in rows[-1].amounts[gauge].items():
                    total[name] += amount
            if not len(rows) % NODES_A_STEP:
                yield
        self.rows, self._totals, self._changes = rows, totals, changes

    def lifetimes(self) -> Series:
        now = self._env.clock.now()
        for row in self.rows:
            created = row.node.metadata.creation_timestamp
            if created is not None:
                yield row.labels, (now - created).total_seconds()

    def utilization(self) -> Series:
        for name, amount in self._totals.get(ALLOCATABLE, {}).items():
            if amount > 0:
                yield {"resource_type": word(name)}, 100.0 * self._totals[POD_REQUESTS][name] / amount

    def _row(self, node: Node, known: Mapping[PodShape, tuple[Amounts, Amounts]]) -> _Row:
        pods = [pod for pod in self._env.state.pods.store.find("node", node.metadata.name) if not is_done(pod)]
        daemons = [pod for pod in pods if of_daemon_set(pod)]
        requests, limits = self._sum(pods, known)
        daemon_requests, daemon_limits = self._sum(daemons, known)
        allocatable = _readable(node.status.allocatable)
        told = {
            ALLOCATABLE: allocatable,
            POD_REQUESTS: requests,
            POD_LIMITS: limits,
            DAEMON_REQUESTS: daemon_requests,
            DAEMON_LIMITS: daemon_limits,
            OVERHEAD: subtract(_readable(node.status.capacity), allocatable),
        }
        return _Row(self._labels(node), node, told)

    def _labels(self, node: Node) -> dict[str, str]:
        provider_id = node.spec.provider_id
        claims = self._env.state.claims.store.find("provider", provider_id) if provider_id else ()
        managed = any(serves(self._env.provider, claim.spec.node_class_ref) for claim in claims)
        return {
            **{label: node.metadata.labels.get(key, "") for key, label in _LABELS.items()},
            "node_name": node.metadata.name,
            "phase": node.status.phase,
            "managed": "true" if managed else "false",
        }

    def _sum(
        self, pods: list[CachedPod], known: Mapping[PodShape, tuple[Amounts, Amounts]]
    ) -> tuple[dict[str, int], dict[str, int]]:
        requests: collections.Counter[str] = collections.Counter()
        limits: collections.Counter[str] = collections.Counter()
        for shape, number in collections.Counter(pod.shape for pod in pods).items():
            sums = self._sums.get(shape)
            if sums is None:
                sums = self._sums[shape] = known.get(shape) or _sums_of(shape)
            for total, of_one in ((requests, sums[0]), (limits, sums[1])):
                for name, amount in of_one.items():
                    total[name] += amount * number
        return dict(requests), dict(limits)


def _sums_of(shape: PodShape) -> tuple[Amounts, Amounts]:
    try:
        return requests_of(shape.spec), limits_of(shape.spec)
    except QuantityError:
        return {}, {}


def _resources(table: _Table, gauge: Gauge) -> Callable[[], Series]:
    def read() -> Series:
        for row in table.rows:
            for name, amount in row.amounts[gauge].items():
                yield row.labels_with(name), amount / 1000 if name == CPU else float(amount)

    return read


def _readable(quantities: Mapping[str, str | float]) -> dict[str, int]:
    read: dict[str, int] = {}
    for name, quantity in quantities.items():
        try:
            read |= amounts({name: quantity})
        except QuantityError:
            continue
    return read


def word(resource: str) -> str:
    """A resource as Karpenter spells it in metrics: `ephemeral_storage`, `nvidia.com/gpu`."""
    return resource.lower().replace("-", "_")
