"""Which of the nodes that fit is best, as kube-scheduler 1.36 weighs it, in its integers; written down for one node at a time.

The least allocated node whose balance a pod helps most, moved by what is preferred: node affinity, taints that only
discourage, spread that may be broken, pods that it likes to be near or far from, and pods that like that of it. Ties go to the
first name. Not here: images, the default spread of pods that state none, and what is assumed of containers that ask for nothing.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from growth.api.placement import PREFER_NO_SCHEDULE, PodAffinityTerm, TopologySpreadConstraint
from growth.api.pods import Pod
from growth.sim.predicates import Scene
from growth.sim.predicates.among_pods import about, counted
from growth.sim.predicates.on_one_node import term_matches, tolerated
from growth.sim.world.board import Place

MOST: Final = 100
RESOURCES: Final = ("cpu", "memory")
# The weights of the default profile.
TAINTS, NODE_AFFINITY, SPREAD, POD_AFFINITY = 3, 2, 2, 2
# A pod that must be near others draws them to it: the default of `hardPodAffinityWeight`.
HARD_AFFINITY_WEIGHT: Final = 1
HOST: Final = "kubernetes.io/hostname"


def best(pod: Pod, wanted: dict[str, int], fitting: Sequence[Place], scene: Scene) -> Place:
    """The node that the pod is bound to."""
    if len(fitting) == 1:
        return fitting[0]
    totals = [_room(place, wanted) for place in fitting]
    if any(taint.effect == PREFER_NO_SCHEDULE for place in fitting for taint in place.taints):
        _add(totals, _fewest([_discouraging(pod, place) for place in fitting]), TAINTS)
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity and affinity.preferred_during_scheduling_ignored_during_execution:
        _add(totals, _most([_node_affinity(pod, place) for place in fitting]), NODE_AFFINITY)
    _add(totals, _near(pod, fitting, scene), POD_AFFINITY)
    rules = [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable != "DoNotSchedule"]
    if rules:
        _add(totals, _spread(pod, rules, fitting, scene), SPREAD)
    return min(zip(totals, fitting, strict=True), key=lambda each: (-each[0], each[1].name))[1]


def _add(totals: list[int], scores: list[int], weight: int) -> None:
    for at, score in enumerate(scores):
        totals[at] += weight * score


# -- room -----------------------------------------------------------------------------------------------------------------


def _room(place: Place, wanted: dict[str, int]) -> int:
    """LeastAllocated, and what the pod does to the balance of the node: 75 is nothing, 100 the best, 50 the worst."""
    there = [name for name in RESOURCES if place.allocatable.get(name)]
    if not there:
        return 0
    least = sum(
        max(0, place.allocatable[name] - place.taken.get(name, 0) - wanted.get(name, 0))
        * MOST
        // place.allocatable[name]
        for name in there
    ) // len(there)
    if not any(wanted.get(name) for name in RESOURCES):
        return least
    change = _balance(place, wanted) - _balance(place, {})
    return least + MOST // 2 + (MOST // 2 + change) // 2


def _balance(place: Place, more: dict[str, int]) -> int:
    shares = [
        min((place.taken.get(name, 0) + more.get(name, 0)) / place.allocatable[name], 1.0)
        for name in RESOURCES
        if place.allocatable.get(name)
    ]
    deviation = abs((shares[0] - shares[1]) / 2) if len(shares) == len(RESOURCES) else 0.0
    return int((1 - deviation) * MOST)


# -- nodes that are liked -------------------------------------------------------------------------------------------------


def _most(raw: list[int]) -> list[int]:
    """Scaled so that the largest is 100."""
    largest = max(raw)
    return [MOST * each // largest if largest else 0 for each in raw]


def _fewest(raw: list[int]) -> list[int]:
    """Scaled so that the largest is 0."""
    return [MOST - each for each in _most(raw)]


def _discouraging(pod: Pod, place: Place) -> int:
    soft = (taint for taint in place.taints if taint.effect == PREFER_NO_SCHEDULE)
    return sum(not tolerated(taint, pod.spec.tolerations) for taint in soft)


def _node_affinity(pod: Pod, place: Place) -> int:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
    return sum(each.weight for each in terms if term_matches(each.preference, place))


# -- pods that are liked --------------------------------------------------------------------------------------------------


def _near(pod: Pod, fitting: Sequence[Place], scene: Scene) -> list[int]:
    """What the pod prefers of others, and what those prefer of it, such as end too: from the least (0) to the largest (100)."""
    worth: dict[tuple[str, str], int] = {}
    own = list(_preferred(pod))
    for host in scene.hosts:
        for other in host.pods:
            liked = [(term, weight) for term, weight in own if about(term, pod, other, scene)]
            if other.spec.affinity is not None:
                theirs = (*_preferred(other), *((term, HARD_AFFINITY_WEIGHT) for term in _required(other)))
                liked += [(term, weight) for term, weight in theirs if about(term, other, pod, scene)]
            for term, weight in liked:
                if (domain := host.labels.get(term.topology_key)) is not None:
                    where = (term.topology_key, domain)
                    worth[where] = worth.get(where, 0) + weight
    raw = [sum(many for (key, domain), many in worth.items() if place.labels.get(key) == domain) for place in fitting]
    low, high = min(raw), max(raw)
    return [int(MOST * ((each - low) / (high - low))) if high > low else 0 for each in raw]


def _preferred(pod: Pod) -> Iterator[tuple[PodAffinityTerm, int]]:
    """Terms with their weight: below zero for those that the pod wants to be away from."""
    affinity = pod.spec.affinity
    for part, sign in ((affinity and affinity.pod_affinity, 1), (affinity and affinity.pod_anti_affinity, -1)):
        for each in part.preferred_during_scheduling_ignored_during_execution if part else ():
            yield each.pod_affinity_term, sign * each.weight


def _required(pod: Pod) -> Sequence[PodAffinityTerm]:
    affinity = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity else ()


# -- spread that may be broken --------------------------------------------------------------------------------------------


def _spread(pod: Pod, rules: Sequence[TopologySpreadConstraint], fitting: Sequence[Place], scene: Scene) -> list[int]:
    """Fewer neighbours are better, the more so the fewer domains there are. Nodes that lack a label of the rules get nothing."""
    asked = [place for place in fitting if all(rule.topology_key in place.labels for rule in rules)]
    if not asked:
        return [0] * len(fitting)
    raw = dict.fromkeys((place.name for place in asked), 0.0)
    for rule in rules:
        counts = counted(rule, pod, scene, keys=[each.topology_key for each in rules])
        domains = len(asked) if rule.topology_key == HOST else len({place.labels[rule.topology_key] for place in asked})
        for place in asked:
            there = counts.get(place.labels[rule.topology_key], 0)
            raw[place.name] += there * math.log(domains + 2) + (rule.max_skew - 1)
    found = {name: math.floor(each + 0.5) for name, each in raw.items()}
    low, high = min(found.values()), max(found.values())
    return [
        0 if place.name not in found else MOST * (high + low - found[place.name]) // high if high else MOST
        for place in fitting
    ]
