"""Labels of a machine that may not turn out otherwise than planned, because somebody counts pods by them."""

import dataclasses
from collections.abc import Iterator, Sequence

from growth.api import names
from growth.api.meta import LabelSelector
from growth.api.placement import PodAffinityTerm
from growth.api.pods import Pod
from growth.sim.judge.stage import Stage, expressions, pod_of
from growth.sim.predicates.among_pods import about, narrowed, required_anti_affinity, selects
from growth.sim.predicates.hosts import Scene


def pinned_keys(stage: Stage, pods: Sequence[Pod], *, everybody: bool = False) -> set[str]:
    """The keys, other than the host name, of firm rules that these pods state or that speak of them.

    Of pods that are there already only anti-affinity goes on to bind others; rules of pods that find no place bind
    nobody, unless `everybody` is asked; then labels by which spreads choose the nodes that they count are told, too.
    """
    scene = stage.scene([])
    found = {rule.key for pod in pods for rule in _rules(pod)}
    there = [pod_of(f"{shape.namespace}/there", shape) for node in stage.snapshot.nodes for shape, _ in node.pods]
    coming = [pod for key, pod in stage.pods.items() if everybody or key in stage.placed]
    rules = [(owner, rule) for owner in coming for rule in _rules(owner)]
    rules += [(owner, rule) for owner in there for rule in _rules(owner) if rule.lasts]
    for owner, rule in rules:
        if any(_speaks(owner, rule, pod, scene) for pod in pods):
            found.add(rule.key)
            if everybody and rule.selector is not None:  # a spread may count only nodes on which its owner could run
                found |= owner.spec.node_selector.keys() | {each.key for each in expressions(owner.spec)}
    return found - {names.HOSTNAME_LABEL}


@dataclasses.dataclass(frozen=True, slots=True)
class _Rule:
    """A firm rule: by which label, about whom. `lasts`: it still binds others once its pod is placed."""

    key: str
    terms: tuple[PodAffinityTerm, ...]
    selector: LabelSelector | None
    lasts: bool


def _rules(pod: Pod) -> Iterator[_Rule]:
    for rule in pod.spec.topology_spread_constraints:
        if rule.when_unsatisfiable == "DoNotSchedule":
            selector = narrowed(rule.label_selector, pod.metadata.labels, rule.match_label_keys, "In")
            yield _Rule(rule.topology_key, (), selector, lasts=False)
    affinity = pod.spec.affinity
    near = affinity.pod_affinity if affinity else None
    terms = near.required_during_scheduling_ignored_during_execution if near else ()
    for term in terms:  # only pods that all terms speak of count for any of them
        yield _Rule(term.topology_key, terms, None, lasts=False)
    for term in required_anti_affinity(pod):
        yield _Rule(term.topology_key, (term,), None, lasts=True)


def _speaks(owner: Pod, rule: _Rule, pod: Pod, scene: Scene) -> bool:
    if rule.terms:
        return all(about(term, owner, pod, scene) for term in rule.terms)
    if rule.selector is None or rule.selector == LabelSelector():
        return False  # a spread over everybody counts nobody
    return owner.metadata.namespace == pod.metadata.namespace and selects(rule.selector, pod.metadata.labels)
