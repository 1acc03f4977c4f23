"""Which of the nodes that fit is best, as the default profile of kube-scheduler weighs it, in simple numbers.

The least allocated and most balanced node, moved by what the pod prefers: node affinity, taints that only discourage,
spread that may be broken, pods that it likes to be near or far from. Ties go to the first name. Not here: images.
"""

from collections.abc import Sequence
from typing import Final

from growth.api.placement import PREFER_NO_SCHEDULE
from growth.api.pods import Pod
from growth.sim.predicates import Scene
from growth.sim.predicates.among_pods import about, narrowed, selects
from growth.sim.predicates.on_one_node import term_matches, tolerated
from growth.sim.world.board import Place

MOST: Final = 100.0
RESOURCES: Final = ("cpu", "memory")
# The weights of the default profile.
TAINTS, NODE_AFFINITY, SPREAD, POD_AFFINITY = 3.0, 2.0, 2.0, 2.0


def best(pod: Pod, wanted: dict[str, int], fitting: Sequence[Place], scene: Scene) -> Place:
    """The node that the pod is bound to."""
    if len(fitting) == 1:
        return fitting[0]
    totals = [_room(place, wanted) for place in fitting]
    if any(taint.effect == PREFER_NO_SCHEDULE for place in fitting for taint in place.taints):
        _add(totals, [-float(_discouraging(pod, place)) for place in fitting], TAINTS)
    if (affinity := pod.spec.affinity) is not None:
        if affinity.node_affinity and affinity.node_affinity.preferred_during_scheduling_ignored_during_execution:
            _add(totals, [_node_affinity(pod, place) for place in fitting], NODE_AFFINITY)
        if affinity.pod_affinity or affinity.pod_anti_affinity:
            _add(totals, _near(pod, fitting, scene), POD_AFFINITY)
    if any(rule.when_unsatisfiable != "DoNotSchedule" for rule in pod.spec.topology_spread_constraints):
        _add(totals, _spread(pod, fitting, scene), SPREAD)
    return min(zip(totals, fitting, strict=True), key=lambda each: (-round(each[0], 6), each[1].name))[1]


def _room(place: Place, wanted: dict[str, int]) -> float:
    """What is left over, and how evenly: each 0 to 100."""
    shares = [
        min(1.0, (place.taken.get(name, 0) + wanted.get(name, 0)) / place.allocatable[name])
        for name in RESOURCES
        if place.allocatable.get(name)
    ]
    if not shares:
        return 0.0
    mean = sum(shares) / len(shares)
    deviation = sum(abs(share - mean) for share in shares) / len(shares)
    return MOST * (1.0 - mean) + MOST * (1.0 - deviation)


def _add(totals: list[float], raw: list[float], weight: float) -> None:
    """Adds what was found, stretched to 0 … 100; where all are equal nothing is said."""
    low, high = min(raw), max(raw)
    if high > low:
        for at, value in enumerate(raw):
            totals[at] += weight * MOST * (value - low) / (high - low)


def _discouraging(pod: Pod, place: Place) -> int:
    soft = (taint for taint in place.taints if taint.effect == PREFER_NO_SCHEDULE)
    return sum(not tolerated(taint, pod.spec.tolerations) for taint in soft)


def _node_affinity(pod: Pod, place: Place) -> float:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
    return float(sum(each.weight for each in terms if term_matches(each.preference, place)))


def _near(pod: Pod, fitting: Sequence[Place], scene: Scene) -> list[float]:
    totals = [0.0] * len(fitting)
    affinity = pod.spec.affinity
    for own, sign in ((affinity and affinity.pod_affinity, 1), (affinity and affinity.pod_anti_affinity, -1)):
        for each in own.preferred_during_scheduling_ignored_during_execution if own else ():
            term = each.pod_affinity_term
            counts: dict[str, int] = {}
            for host in scene.hosts:
                domain = host.labels.get(term.topology_key)
                if domain is not None:
                    found = sum(about(term, pod, other, scene) for other in host.pods)
                    counts[domain] = counts.get(domain, 0) + found
            for at, place in enumerate(fitting):
                totals[at] += sign * each.weight * counts.get(place.labels.get(term.topology_key, ""), 0)
    return totals


def _spread(pod: Pod, fitting: Sequence[Place], scene: Scene) -> list[float]:
    totals = [0.0] * len(fitting)
    for rule in pod.spec.topology_spread_constraints:
        if rule.when_unsatisfiable == "DoNotSchedule":
            continue
        selector = narrowed(rule.label_selector, pod.metadata.labels, rule.match_label_keys, "In")
        counts: dict[str, int] = {}
        for host in scene.hosts:
            domain = host.labels.get(rule.topology_key)
            if domain is not None:
                found = sum(
                    other.metadata.namespace == pod.metadata.namespace and selects(selector, other.metadata.labels)
                    for other in host.pods
                )
                counts[domain] = counts.get(domain, 0) + found
        for at, place in enumerate(fitting):
            totals[at] -= counts.get(place.labels.get(rule.topology_key, ""), 0)
    return totals
