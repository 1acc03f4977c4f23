"""The snapshot set up for the judge: existing nodes, the machines that pools can sell, DaemonSets, what pods mention."""

import datetime as dt
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from growth.api import names
from growth.api.instance_types import InstanceType, Labels, Offering
from growth.api.karpenter import Requirement
from growth.api.meta import ObjectMeta
from growth.api.placement import NodeSelectorRequirement
from growth.api.pods import Pod, PodSpec
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import Demand, NodeView, PoolView, Snapshot
from growth.planning.plan import PlannedClaim
from growth.sim.predicates.hosts import Host, Scene, requests
from growth.sim.predicates.on_one_node import holds, kept_out_by, selected, whole_number
from growth.units.resources import add, subtract

# Combinations of label values that are tried for one offering; pools with more are not searched to the end.
MAX_COMBINATIONS = 64
NOTHING: Labels = {}
OLD_NAMES = {today: old for old, today in names.NORMALISED_LABELS.items()}


class Stage:
    """A snapshot and its demands, as the judge uses them."""

    def __init__(self, snapshot: Snapshot, demands: Sequence[Demand], placed: Iterable[str] = ()) -> None:
        self.snapshot = snapshot
        self.placed = frozenset(placed)
        self.demands = {demand.key: demand for demand in demands}
        self.pods = {demand.key: pod_of(demand.key, demand.shape) for demand in demands}
        self.pools = {pool.ref: pool for pool in snapshot.pools}
        self.mentioned = self._mentioned()

    def _mentioned(self) -> dict[str, set[str]]:
        """The values of node labels that anybody asks for."""
        found: dict[str, set[str]] = {}
        for pod in self.pods.values():
            for key, value in pod.spec.node_selector.items():
                found.setdefault(names.NORMALISED_LABELS.get(key, key), set()).add(value)
            for expression in expressions(pod.spec):
                key = names.NORMALISED_LABELS.get(expression.key, expression.key)
                found.setdefault(key, set()).update(expression.values)
                for value in expression.values:
                    number = whole_number(value)
                    if number is not None:
                        found[key].update((str(number + 1), str(number - 1)))
        return found

    def scene(self, hosts: list[Host]) -> Scene:
        view = self.snapshot.volumes
        return Scene(
            hosts=hosts,
            namespaces=self.snapshot.namespaces,
            claims=view.claims,
            volumes=view.volumes,
            classes=view.classes,
        )

    # -- nodes ------------------------------------------------------------------------------------------------------------

    def existing(self) -> list[Host]:
        """The nodes of the snapshot with their pods, less what DaemonSets have still to take of them."""
        return [self._host(node) for node in sorted(self.snapshot.nodes, key=lambda node: node.name)]

    def _host(self, node: NodeView) -> Host:
        pods = []
        departing = dict(node.uncounted)
        for which, (shape, number) in enumerate(node.pods):
            for copy in range(number):
                pod = pod_of(f"{shape.namespace}/{node.name}-{which}-{copy}", shape)
                if departing.get(shape, 0):
                    departing[shape] -= 1
                    pod = msgspec.structs.replace(pod, metadata=_going(pod.metadata))
                pods.append(pod)
        csi = self.snapshot.volumes.csi_nodes.get(node.name)
        limits = {
            driver.name: driver.allocatable.count
            for driver in (csi.spec.drivers if csi else ())
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        host = Host(
            name=node.name,
            labels=both_names(node.labels),
            taints=node.taints,
            volume_limits=limits,
            attached=node.volumes,
            pods=pods,
        )
        expected = add(*(requests(pod.spec) for pod in self.daemons(host)))
        owed = {name: amount for name, amount in subtract(expected, node.daemon_requested).items() if amount > 0}
        uncounted = subtract(node.requested, add(*(requests(pod.spec) for pod in pods)))
        host.allocatable = subtract(node.allocatable, add(owed, uncounted))
        return host

    def daemons(self, host: Host, *, open_labels: Labels = NOTHING) -> list[Pod]:
        """The DaemonSet pods that will run on the host: only their room and their ports are looked at.

        Startup taints are not on it any more when they come. Of labels that are still open it is enough that one value
        would bring the pod.
        """
        choices = [
            Host(name=host.name, labels={**host.labels, **dict(zip(open_labels, values, strict=True))})
            for values in itertools.product(*open_labels.values())
        ]
        return [
            Pod(
                metadata=ObjectMeta(namespace="daemons", name=f"{pod.metadata.name}-on-{host.name}"),
                spec=_room_only(pod.spec),
            )
            for pod in self.snapshot.daemons
            if not kept_out_by(pod.spec, host.taints) and any(selected(pod.spec, choice) for choice in choices)
        ]

    # -- machines that could be bought --------------------------------------------------------------------------------------

    def bought(
        self,
        name: str,
        pool: PoolView,
        kind: InstanceType,
        labels: Mapping[str, str],
        *,
        open_labels: Labels = NOTHING,
    ) -> Host:
        """A new machine with its DaemonSets on it."""
        host = Host(
            name=name,
            labels=both_names({**labels, names.HOSTNAME_LABEL: name}),
            taints=pool.taints,
            allocatable=kind.allocatable,
            volume_limits=kind.volume_limits,
        )
        host.uncounted.extend(self.daemons(host, open_labels=open_labels))
        return host

    def machines(self, pool: PoolView, kind: InstanceType, offering: Offering) -> Iterator[Mapping[str, str]]:
        """The labels of machines that the pool could make of an offering: one mapping for each choice of values."""
        keys: dict[str, list[str]] = {
            key: [value for value in values if self._allowed(pool, key, value)]
            for key, values in sold_labels(kind, offering).items()
        }
        clouds = {*names.WELL_KNOWN_LABELS, *(key for each in pool.instance_types for key in known_labels(each))}
        for key in {_today(each.key) for each in pool.requirements} - keys.keys() - pool.labels.keys():
            if key in clouds:  # the cloud says whether a machine has it
                if not all(holds_too(each, {}) for each in pool.requirements if _today(each.key) == key):
                    return
                continue
            about = [each for each in pool.requirements if _today(each.key) == key]
            if any(each.operator == "DoesNotExist" for each in about):
                continue
            listed = {value for each in about for value in each.values} | self.mentioned.get(key, set())
            numbers = {
                str(number + step) for v in listed if (number := whole_number(v)) is not None for step in (-1, 0, 1)
            }
            keys[key] = sorted(value for value in {*listed, *numbers, "0", "any"} if self._allowed(pool, key, value))
        for key, value in pool.labels.items():
            if value not in keys.get(key, [value]):
                return
            keys[key] = [value]
        keys[pool_label(pool)] = [pool.ref.name]
        if not all(keys.values()):
            return
        for values in itertools.islice(itertools.product(*keys.values()), MAX_COMBINATIONS):
            yield dict(zip(keys, values, strict=True))

    def _allowed(self, pool: PoolView, key: str, value: str) -> bool:
        return all(holds_too(each, {key: value}) for each in pool.requirements if _today(each.key) == key)

    def alternatives(self, claim: PlannedClaim, kind: InstanceType) -> Iterator[tuple[Offering, Host]]:
        """The machines that a claim could become as the type: its own labels, those of the offering in their place."""
        pool = self.pools[claim.pool]
        planned = next((each for each in pool.instance_types if each.name == claim.instance_type), kind)
        sold = {key for offering in planned.offerings for key in sold_labels(planned, offering)}
        for offering in kind.offerings:
            if offering.price is None or not offering.available:
                continue
            labels = {key: value for key, value in claim.labels.items() if key not in sold}
            for key, values in sold_labels(kind, offering).items():
                fine = [value for value in values if self._allowed(pool, key, value)]
                if not fine:
                    break
                wish = claim.labels.get(key)
                if wish in fine or len(fine) == 1:
                    labels[key] = wish if wish in fine else fine[0]
            else:
                left = unsettled(kind, offering, labels)
                if not all(holds_too(each, labels) for each in pool.requirements if _today(each.key) not in left):
                    continue
                yield offering, self.bought(f"{kind.name}-{offering.zone}", pool, kind, labels, open_labels=left)


def pod_of(key: str, shape: PodShape) -> Pod:
    name = key.partition("/")[2]
    return Pod(metadata=ObjectMeta(namespace=shape.namespace, name=name, labels=shape.labels), spec=shape.spec)


def _going(metadata: ObjectMeta) -> ObjectMeta:
    """As of a pod that is being deleted; since when does not matter here."""
    return msgspec.structs.replace(metadata, deletion_timestamp=dt.datetime(2000, 1, 1, tzinfo=dt.UTC))


def _room_only(spec: PodSpec) -> PodSpec:
    return PodSpec(
        containers=spec.containers,
        init_containers=spec.init_containers,
        resources=spec.resources,
        overhead=spec.overhead,
        host_network=spec.host_network,
    )


def pool_label(pool: PoolView) -> str:
    return names.NODE_POOL_LABEL if pool.ref.group == names.KARPENTER else names.POOL_LABEL


def sold_labels(kind: InstanceType, offering: Offering) -> dict[str, tuple[str, ...]]:
    """The labels that come with an offering, each with the values that the buyer may choose from."""
    return {
        **{_today(key): values for key, values in kind.labels.items()},
        names.INSTANCE_TYPE_LABEL: (kind.name,),
        names.ZONE_LABEL: (offering.zone,),
        names.CAPACITY_TYPE_LABEL: (offering.capacity_type,),
        **{_today(key): values for key, values in offering.labels.items()},
    }


def known_labels(kind: InstanceType) -> set[str]:
    """The labels that one or another offering of the type comes with."""
    return {key for offering in kind.offerings for key in sold_labels(kind, offering)}


def unsettled(kind: InstanceType, offering: Offering, labels: Mapping[str, str]) -> Labels:
    """The labels of an offering of which the buyer has chosen no value yet."""
    sold = sold_labels(kind, offering)
    return {key: values for key, values in sold.items() if len(values) > 1 and key not in labels}


def _today(key: str) -> str:
    return names.NORMALISED_LABELS.get(key, key)


def both_names(labels: Mapping[str, str]) -> dict[str, str]:
    """Kubelets and clouds write the old names of labels beside those of today."""
    today = {_today(key): value for key, value in labels.items()} | dict(labels)
    return {**{OLD_NAMES[key]: value for key, value in today.items() if key in OLD_NAMES}, **today}


def holds_too(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """A pool's requirement on a node's labels: the operators of node selectors, and Gte and Lte."""
    operator = {"Gte": "Gt", "Lte": "Lt"}.get(requirement.operator)
    key = _today(requirement.key)
    if operator is None:
        return holds(NodeSelectorRequirement(key=key, operator=requirement.operator, values=requirement.values), labels)
    number = whole_number(requirement.values[0])
    bound = str((number or 0) + (-1 if operator == "Gt" else 1))
    return holds(NodeSelectorRequirement(key=key, operator=operator, values=(bound,)), labels)


def expressions(spec: PodSpec) -> Iterator[NodeSelectorRequirement]:
    """Every expression on nodes' labels in the pod's required and preferred node affinity."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is None:
        return
    required = affinity.required_during_scheduling_ignored_during_execution
    for term in required.node_selector_terms if required else ():
        yield from term.match_expressions
    for preferred in affinity.preferred_during_scheduling_ignored_during_execution:
        yield from preferred.preference.match_expressions
