"""Which pods choose among places that would all do."""

from growth.api import names
from growth.api.pods import Pod
from growth.sim.judge.stage import Stage
from growth.sim.predicates.on_one_node import tolerated


def preferring(stage: Stage, pod: Pod) -> bool:
    """Whether the pod has preferences or alternatives, so that it may pass over places that would do."""
    spec = pod.spec
    affinity = spec.affinity
    if affinity is not None:
        on, near, far = affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity
        if any(each and each.preferred_during_scheduling_ignored_during_execution for each in (on, near, far)):
            return True
        required = on.required_during_scheduling_ignored_during_execution if on else None
        if required is not None and len(required.node_selector_terms) > 1:
            return True
    if any(each.when_unsatisfiable != "DoNotSchedule" for each in spec.topology_spread_constraints):
        return True
    taints = [*(t for pool in stage.snapshot.pools for t in pool.taints)]
    taints += [taint for node in stage.snapshot.nodes for taint in node.taints]
    # Nobody passes a node over because it is the next to go.
    soft = [each for each in taints if each.effect == "PreferNoSchedule" and each.key != names.LEAVING_SOON_TAINT]
    return any(not tolerated(taint, spec.tolerations) for taint in soft)


def steered(stage: Stage) -> bool:
    """Whether any pod prefers places by the pods there: machines are then narrowed for its sake, and may cost more."""
    for pod in stage.pods.values():
        affinity = pod.spec.affinity
        sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
        if any(side and side.preferred_during_scheduling_ignored_during_execution for side in sides):
            return True
        if any(each.when_unsatisfiable != "DoNotSchedule" for each in pod.spec.topology_spread_constraints):
            return True
    return False
