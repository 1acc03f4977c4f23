"""Labels of a machine that may not turn out otherwise than planned, because somebody counts pods by them."""

from collections.abc import Iterator, Sequence

from growth.api import names
from growth.api.meta import LabelSelector
from growth.api.placement import PodAffinityTerm
from growth.api.pods import Pod
from growth.sim.judge.stage import Stage, pod_of
from growth.sim.predicates.among_pods import about, selects
from growth.sim.predicates.hosts import Scene


def pinned_keys(stage: Stage, pods: Sequence[Pod], *, everybody: bool = False) -> set[str]:
    """The keys, other than the host name, of firm rules that these pods state or that speak of them.

    Rules of pods that find no place bind nobody, unless `everybody` is asked.
    """
    scene = stage.scene([])
    found = {key for pod in pods for key, _, _ in _rules(pod)}
    others = [
        *(pod for key, pod in stage.pods.items() if everybody or key in stage.placed),
        *(pod_of(f"{shape.namespace}/there", shape) for node in stage.snapshot.nodes for shape, _ in node.pods),
    ]
    for other in others:
        for key, term, selector in _rules(other):
            if key not in found and any(_speaks(other, term, selector, pod, scene) for pod in pods):
                found.add(key)
    return found - {names.HOSTNAME_LABEL}


def _rules(pod: Pod) -> Iterator[tuple[str, PodAffinityTerm | None, LabelSelector | None]]:
    for rule in pod.spec.topology_spread_constraints:
        if rule.when_unsatisfiable == "DoNotSchedule":
            yield rule.topology_key, None, rule.label_selector
    affinity = pod.spec.affinity
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        for term in side.required_during_scheduling_ignored_during_execution if side else ():
            yield term.topology_key, term, None


def _speaks(owner: Pod, term: PodAffinityTerm | None, selector: LabelSelector | None, pod: Pod, scene: Scene) -> bool:
    if term is not None:
        return about(term, owner, pod, scene)
    return owner.metadata.namespace == pod.metadata.namespace and selects(selector, pod.metadata.labels)
