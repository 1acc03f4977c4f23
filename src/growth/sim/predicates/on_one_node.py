"""Rules that need one node alone: name, taints, labels, room, ports."""

from collections.abc import Iterable, Iterator, Mapping

from growth.api.placement import NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration
from growth.api.pods import Pod, PodSpec
from growth.sim.predicates.hosts import Host, requests
from growth.units.resources import add

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
EVERYWHERE = frozenset({"", "0.0.0.0"})  # noqa: S104 - compared, not bound


def on_one_node(pod: Pod, host: Host) -> Iterator[str]:
    """Every one of these rules that the pod breaks on the host."""
    if pod.spec.node_name and pod.spec.node_name != host.name:
        yield f"name: the pod asks for node {pod.spec.node_name}"
    if host.unschedulable and not tolerated(UNSCHEDULABLE, pod.spec.tolerations):
        yield "taints: the node is cordoned"
    yield from (f"taints: {taint.key}={taint.value}:{taint.effect}" for taint in kept_out_by(pod.spec, host.taints))
    if not selected(pod.spec, host):
        yield "labels: node selector or required node affinity does not match"
    yield from room(pod, host)
    yield from ports(pod, host)


# -- taints -------------------------------------------------------------------------------------------------------------


def kept_out_by(spec: PodSpec, taints: Iterable[Taint]) -> list[Taint]:
    """The taints that forbid binding; PreferNoSchedule only discourages."""
    hard = (taint for taint in taints if taint.effect in {"NoSchedule", "NoExecute"})
    return [taint for taint in hard if not tolerated(taint, spec.tolerations)]


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(_tolerates(each, taint) for each in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in {"", taint.effect}:
        return False
    if toleration.key not in {"", taint.key}:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and toleration.value == taint.value


# -- labels -------------------------------------------------------------------------------------------------------------


def selected(spec: PodSpec, host: Host) -> bool:
    """Whether the pod's selector and required node affinity let it run on the node."""
    if any(host.labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or any(term_matches(term, host) for term in required.node_selector_terms)


def term_matches(term: NodeSelectorTerm, host: Host) -> bool:
    """All that the term says; a term that says nothing matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(holds(each, host.labels) for each in term.match_expressions) and all(
        holds(each, {"metadata.name": host.name}) for each in term.match_fields
    )


def holds(expression: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """One expression of a node selector on a node's labels."""
    value = labels.get(expression.key)
    match expression.operator:
        case "In":
            return value is not None and value in expression.values
        case "NotIn":
            return value is None or value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            if value is None or len(expression.values) != 1:
                return False
            own, other = whole_number(value), whole_number(expression.values[0])
            if own is None or other is None:
                return False
            return own > other if expression.operator == "Gt" else own < other
        case _:
            return False


def whole_number(text: str) -> int | None:
    """As Go reads decimal integers of 64 bits: a sign and digits, nothing else."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not digits.isascii() or not digits.isdigit():
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


# -- room ---------------------------------------------------------------------------------------------------------------


def room(pod: Pod, host: Host) -> Iterator[str]:
    wanted = requests(pod.spec)
    taken = add(*(requests(each.spec) for each in (*host.pods, *host.uncounted)))
    for name, amount in wanted.items():
        free = host.allocatable.get(name, 0) - taken.get(name, 0)
        if amount > free:
            yield f"room: {name} needs {amount}, free {free}"


# -- ports --------------------------------------------------------------------------------------------------------------


def ports(pod: Pod, host: Host) -> Iterator[str]:
    held = {port for each in (*host.pods, *host.uncounted) for port in bound_ports(each.spec)}
    for address, number, protocol in sorted(bound_ports(pod.spec)):
        for other, other_number, other_protocol in sorted(held):
            if (number, protocol) != (other_number, other_protocol):
                continue
            if address == other or address in EVERYWHERE or other in EVERYWHERE:
                yield f"ports: {protocol} {number} is taken"


def bound_ports(spec: PodSpec) -> set[tuple[str, int, str]]:
    """The ports that the pod binds on its node: those of containers that run for the pod's whole life."""
    containers = [*spec.containers, *(each for each in spec.init_containers if each.restart_policy == "Always")]
    return {
        (port.host_ip, number, port.protocol or "TCP")
        for container in containers
        for port in container.ports
        for number in (port.host_port or (port.container_port if spec.host_network else 0),)
        if number
    }
