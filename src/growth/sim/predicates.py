"""Whether a pod may run on a node, by kube-scheduler's rules, written to be obvious and not to be quick.

May import `growth.api` and `growth.units` only: it is a second opinion on planning, and shares nothing with it. It
serves the simulated scheduler and the checker of plans. Rules: unschedulable nodes, taints, node selector and affinity,
resources, host ports, topology spread, inter-pod affinity. Not here: volumes, resource claims, preferences.
"""

import dataclasses
import enum
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from growth.api.meta import LabelSelector, LabelSelectorRequirement, ResourceList
from growth.api.nodes import Node
from growth.api.placement import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinityTerm,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from growth.api.pods import Container, ContainerStatus, Pod
from growth.units.resources import add, amount_of, lacking, largest, subtract

UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


class Filter(enum.StrEnum):
    """The scheduler's plugins, by the name of what they look at."""

    UNSCHEDULABLE = "unschedulable"
    TAINTS = "taints"
    AFFINITY = "affinity"
    PORTS = "ports"
    RESOURCES = "resources"
    SPREAD = "spread"
    POD_AFFINITY = "pod affinity"


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Why not, in kube-scheduler's words as people see them in events."""

    filter: Filter
    detail: str


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Everything that a rule may look at. `pods` are those bound to one of `nodes` and not finished."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    namespaces: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    """Labels by namespace, for rules that select namespaces."""

    @functools.cached_property
    def _by_node(self) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in self.pods:
            found.setdefault(pod.spec.node_name, []).append(pod)
        return found

    def on(self, node: Node) -> Sequence[Pod]:
        return self._by_node.get(node.metadata.name, ())


def refusals(pod: Pod, node: Node, cluster: Cluster) -> tuple[Refusal, ...]:
    """Every rule that forbids the pod this node, in kube-scheduler's order; none when it fits."""
    found: list[Refusal] = []
    if node.spec.unschedulable and not any(tolerates(one, UNSCHEDULABLE_TAINT) for one in pod.spec.tolerations):
        found.append(Refusal(Filter.UNSCHEDULABLE, "node(s) were unschedulable"))
    if untolerated(pod, node) is not None:
        found.append(Refusal(Filter.TAINTS, "node(s) had untolerated taint(s)"))
    if not matches_node(pod, node):
        found.append(Refusal(Filter.AFFINITY, "node(s) didn't match Pod's node affinity/selector"))
    here = cluster.on(node)
    if ports_clash(pod, here):
        found.append(Refusal(Filter.PORTS, "node(s) didn't have free ports for the requested pod ports"))
    found += [Refusal(Filter.RESOURCES, detail) for detail in insufficient(pod, node, here)]
    spread = spread_refusal(pod, node, cluster)
    if spread:
        found.append(Refusal(Filter.SPREAD, spread))
    affinity = affinity_refusal(pod, node, cluster)
    if affinity:
        found.append(Refusal(Filter.POD_AFFINITY, affinity))
    return tuple(found)


# Taints and node affinity.


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """An empty effect tolerates every effect; an empty key, which needs Exists, every key."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


def untolerated(pod: Pod, node: Node) -> Taint | None:
    """The first taint that keeps the pod away."""
    for taint in node.spec.taints:
        if taint.effect in {NO_SCHEDULE, NO_EXECUTE} and not any(tolerates(one, taint) for one in pod.spec.tolerations):
            return taint
    return None


def matches_node(pod: Pod, node: Node) -> bool:
    """Node selector and required node affinity."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or any(_term_matches(term, node) for term in required.node_selector_terms)


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name}
    return all(_requirement_holds(one, node.metadata.labels) for one in term.match_expressions) and all(
        _requirement_holds(one, fields) for one in term.match_fields
    )


def _requirement_holds(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            try:
                ours, theirs = int(value or ""), int(requirement.values[0])
            except (ValueError, IndexError):
                return False
            return ours > theirs if requirement.operator == "Gt" else ours < theirs
        case _:
            return False


# Resources and ports.

# A cluster writes few different quantities, each many times.
_amount = functools.lru_cache(maxsize=10_000)(amount_of)


def amounts(of: ResourceList) -> dict[str, int]:
    """What an object says of resources, as integers."""
    return {name: _amount(name, quantity) for name, quantity in of.items()}


def requests(pod: Pod) -> dict[str, int]:
    """What the pod takes of a node, one of `pods` included.

    Containers add up; sidecars run beside them and beside every later init container; other init containers run one by
    one, so that the largest counts. Requests of the whole pod take the place of that sum. Overhead comes on top. While
    a container is being resized it takes the larger of what is asked, granted and used.
    """
    told = {status.name: status for status in pod.status.container_statuses + pod.status.init_container_statuses}
    running = add(*(_of_container(container, told) for container in pod.spec.containers))
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in pod.spec.init_containers:
        own = _of_container(container, told)
        if container.restart_policy == "Always":
            sidecars = add(sidecars, own)
            starting = largest(starting, sidecars)
        else:
            starting = largest(starting, add(sidecars, own))
    total = largest(add(running, sidecars), starting)
    if pod.spec.resources is not None:
        total = {**total, **amounts(pod.spec.resources.requests)}
    return add(total, amounts(pod.spec.overhead), {"pods": 1})


def _of_container(container: Container, told: Mapping[str, ContainerStatus]) -> dict[str, int]:
    asked = amounts(container.resources.requests)
    status = told.get(container.name)
    if status is None:
        return asked
    used = amounts(status.resources.requests) if status.resources is not None else {}
    return largest(asked, amounts(status.allocated_resources), used)


def insufficient(pod: Pod, node: Node, here: Iterable[Pod]) -> list[str]:
    """The resources that the node lacks, as the scheduler names them."""
    free = subtract(amounts(node.status.allocatable), add(*(requests(other) for other in here)))
    names = lacking(requests(pod), free)
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in sorted(names)]


def ports_clash(pod: Pod, here: Iterable[Pod]) -> bool:
    """Whether a host port of the pod is taken; the address 0.0.0.0 takes it on all addresses."""
    wanted = _host_ports(pod)
    taken = [port for other in here for port in _host_ports(other)]
    return any(
        (protocol, number) == (other_protocol, other_number)
        and (address == other_address or "0.0.0.0" in {address, other_address})  # noqa: S104 - an address to compare
        for protocol, number, address in wanted
        for other_protocol, other_number, other_address in taken
    )


def _host_ports(pod: Pod) -> list[tuple[str, int, str]]:
    sidecars = tuple(one for one in pod.spec.init_containers if one.restart_policy == "Always")
    return [
        (port.protocol, port.host_port, port.host_ip or "0.0.0.0")  # noqa: S104
        for container in pod.spec.containers + sidecars
        for port in container.ports
        if port.host_port
    ]


# Label selectors.


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """No selector selects nothing; an empty one everything."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _expression_holds(one, labels) for one in selector.match_expressions
    )


def _expression_holds(expression: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.key)
    match expression.operator:
        case "In":
            return value in expression.values
        case "NotIn":
            return value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False


# Topology spread.


def spread_refusal(pod: Pod, node: Node, cluster: Cluster) -> str:
    """The first hard spread constraint that the pod on this node would break, in words; empty when it keeps them all."""
    hard = [one for one in pod.spec.topology_spread_constraints if one.when_unsatisfiable == "DoNotSchedule"]
    for constraint in hard:
        if constraint.topology_key not in node.metadata.labels:
            return "node(s) didn't match pod topology spread constraints (missing required label)"
        if not _keeps(constraint, hard, pod, node, cluster):
            return "node(s) didn't match pod topology spread constraints"
    return ""


def _keeps(
    constraint: TopologySpreadConstraint,
    hard: Sequence[TopologySpreadConstraint],
    pod: Pod,
    node: Node,
    cluster: Cluster,
) -> bool:
    domain = node.metadata.labels[constraint.topology_key]
    counted = [one for one in cluster.nodes if _counts(constraint, hard, pod, one)]
    per_domain = {one.metadata.labels[constraint.topology_key]: 0 for one in counted}
    names = {one.metadata.name: one.metadata.labels[constraint.topology_key] for one in counted}
    for other in cluster.pods:
        if other.spec.node_name in names and _selected(constraint, pod, other):
            per_domain[names[other.spec.node_name]] += 1
    fewest = min(per_domain.values(), default=0)
    if constraint.min_domains is not None and len(per_domain) < constraint.min_domains:
        fewest = 0
    itself = 1 if selects(constraint.label_selector, pod.metadata.labels) else 0
    return per_domain.get(domain, 0) + itself - fewest <= constraint.max_skew


def _counts(
    constraint: TopologySpreadConstraint, hard: Sequence[TopologySpreadConstraint], pod: Pod, node: Node
) -> bool:
    """Whether the node is a domain, or part of one, in the constraint's eyes."""
    if any(one.topology_key not in node.metadata.labels for one in hard):
        return False
    if constraint.node_affinity_policy != "Ignore" and not matches_node(pod, node):
        return False
    return constraint.node_taints_policy != "Honor" or untolerated(pod, node) is None


def _selected(constraint: TopologySpreadConstraint, pod: Pod, other: Pod) -> bool:
    """Pods that are being deleted do not count."""
    return (
        other.metadata.namespace == pod.metadata.namespace
        and other.metadata.deletion_timestamp is None
        and selects(constraint.label_selector, other.metadata.labels)
        and all(
            other.metadata.labels.get(key) == pod.metadata.labels[key]
            for key in constraint.match_label_keys
            if key in pod.metadata.labels
        )
    )


# Affinity between pods.


def affinity_refusal(pod: Pod, node: Node, cluster: Cluster) -> str:
    """The first of three that fails, in words: required affinity, anti-affinity, anti-affinity of those that run."""
    if not _affinity_holds(pod, node, cluster):
        return "node(s) didn't match pod affinity rules"
    if any(_together(pod, term, other, node, cluster) for term in _required(pod, anti=True) for other in cluster.pods):
        return "node(s) didn't match pod anti-affinity rules"
    if any(
        _together(other, term, pod, node, cluster, at=other)
        for other in cluster.pods
        for term in _required(other, anti=True)
    ):
        return "node(s) didn't satisfy existing pods anti-affinity rules"
    return ""


def _affinity_holds(pod: Pod, node: Node, cluster: Cluster) -> bool:
    terms = _required(pod, anti=False)
    if not terms:
        return True
    if any(term.topology_key not in node.metadata.labels for term in terms):
        return False
    if all(any(_together(pod, term, other, node, cluster) for other in cluster.pods) for term in terms):
        return True
    # The first pod of a group that wants to be with itself may start anywhere.
    nobody = not any(_term_selects(pod, term, other, cluster) for term in terms for other in cluster.pods)
    return nobody and all(_term_selects(pod, term, pod, cluster) for term in terms)


def _required(pod: Pod, *, anti: bool) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None:
        return ()
    one = affinity.pod_anti_affinity if anti else affinity.pod_affinity
    return one.required_during_scheduling_ignored_during_execution if one is not None else ()


def _together(
    owner: Pod, term: PodAffinityTerm, other: Pod, node: Node, cluster: Cluster, *, at: Pod | None = None
) -> bool:
    """Whether the owner's term selects `other` and both would share a domain, the running one's being `at`'s or its own."""
    if not _term_selects(owner, term, other, cluster):
        return False
    standing = (at or other).spec.node_name
    domain = node.metadata.labels.get(term.topology_key)
    return domain is not None and any(
        one.metadata.name == standing and one.metadata.labels.get(term.topology_key) == domain for one in cluster.nodes
    )


def _term_selects(owner: Pod, term: PodAffinityTerm, other: Pod, cluster: Cluster) -> bool:
    namespace = other.metadata.namespace
    if not term.namespaces and term.namespace_selector is None:
        in_namespace = namespace == owner.metadata.namespace
    else:
        in_namespace = namespace in term.namespaces or selects(
            term.namespace_selector, cluster.namespaces.get(namespace, {})
        )
    labels, own = other.metadata.labels, owner.metadata.labels
    return (
        in_namespace
        and selects(term.label_selector, labels)
        and all(labels.get(key) == own[key] for key in term.match_label_keys if key in own)
        and all(labels.get(key) != own[key] for key in term.mismatch_label_keys if key in own)
    )
