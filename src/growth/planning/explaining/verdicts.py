"""What each node has against a pod: the first rule that keeps it out, as kube-scheduler would find it, and what is lacking.

For people: rules among pods (spread, affinity, ports, volumes) are named together, since it is the plan that judges them.
"""

import dataclasses
from collections.abc import Mapping

from growth.api.requests import host_ports_of, ports_conflict, requests_of
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import NodeView, Snapshot
from growth.planning.classes import required_terms
from growth.planning.plan import Filter
from growth.planning.requirements import RequirementError, from_expressions, from_labels
from growth.planning.taints import untolerated
from growth.units.errors import QuantityError
from growth.units.resources import lacking, print_amount, subtract


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why a node does not take a pod; `lacking` where it only has too little room. `share` is how much of what the pod asks
    for is lacking at worst: the nearest miss has the least.
    """

    node: str
    filter: Filter
    message: str
    lacking: Mapping[str, int] = dataclasses.field(default_factory=dict)
    share: float = 1.0


def verdicts(snapshot: Snapshot, shape: PodShape) -> tuple[Verdict, ...]:
    """One a node, near-misses first."""
    try:
        found = [_verdict(node, shape) for node in snapshot.nodes]
    except (RequirementError, QuantityError):
        return ()
    return tuple(sorted(found, key=lambda each: (-_FAR[each.filter], each.share, each.node)))


def _verdict(node: NodeView, shape: PodShape) -> Verdict:
    spec = shape.spec
    taint = untolerated(spec.tolerations, node.taints, soft=False)
    if taint is not None:
        shown = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
        return Verdict(node=node.name, filter=Filter.TAINTS, message=f"taint {shown} is not tolerated")
    unmet = _unmet_label(node, shape)
    if unmet:
        return Verdict(node=node.name, filter=Filter.REQUIREMENTS, message=unmet)
    needed = requests_of(spec)
    missing = lacking(needed, subtract(node.allocatable, node.requested))
    if missing:
        share = max(amount / needed[name] for name, amount in missing.items())
        told = ", ".join(f"{print_amount(name, amount)} {name}" for name, amount in missing.items())
        return Verdict(
            node=node.name, filter=Filter.RESOURCES, message=f"{told} too little", lacking=missing, share=share
        )
    ports = host_ports_of(spec)
    for other, _ in node.pods if ports else ():
        if ports_conflict(host_ports_of(other.spec), ports):
            return Verdict(node=node.name, filter=Filter.PORTS, message="one of its host ports is taken")
    return Verdict(node=node.name, filter=Filter.TOPOLOGY, message="a rule among pods or a volume keeps it out")


def _unmet_label(node: NodeView, shape: PodShape) -> str:
    for key, asked in from_labels(shape.spec.node_selector).items():
        if not asked.meets(node.labels.get(key)):
            return f"label {key}: the pod asks for {asked}, and the node has {node.labels.get(key, 'none')}"
    terms = [term for term in required_terms(shape.spec) if term.match_expressions]
    told = ""
    for term in terms:
        told = next(
            (
                f"label {key}: the pod asks for {asked}, and the node has {node.labels.get(key, 'none')}"
                for key, asked in from_expressions(term.match_expressions).items()
                if not asked.meets(node.labels.get(key))
            ),
            "",
        )
        if not told:
            return ""
    return told


_FAR: Mapping[Filter, int] = {
    Filter.TAINTS: 0,
    Filter.REQUIREMENTS: 1,
    Filter.RESOURCES: 2,
    Filter.PORTS: 3,
    Filter.TOPOLOGY: 3,
}
