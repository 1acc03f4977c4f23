"""Rules about pods elsewhere: topology spread, affinity and anti-affinity, the anti-affinity of those already there."""

from collections.abc import Iterable, Iterator, Mapping

from growth.api.meta import LabelSelector, LabelSelectorRequirement
from growth.api.placement import PodAffinityTerm, TopologySpreadConstraint
from growth.api.pods import Pod
from growth.sim.predicates.hosts import Host, Scene
from growth.sim.predicates.on_one_node import kept_out_by, selected


def among_pods(pod: Pod, host: Host, scene: Scene) -> Iterator[str]:
    """Every one of these rules that the pod breaks on the host."""
    yield from spread(pod, host, scene)
    yield from affinity(pod, host, scene)
    yield from anti_affinity(pod, host, scene)
    yield from barred(pod, host, scene)


# -- selectors ------------------------------------------------------------------------------------------------------------


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """None selects nothing, an empty selector everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(_holds(each, labels) for each in selector.match_expressions)


def _holds(expression: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
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
        case _:
            return False


def narrowed(
    selector: LabelSelector | None, labels: Mapping[str, str], keys: Iterable[str], operator: str
) -> LabelSelector | None:
    """With matchLabelKeys or mismatchLabelKeys written out, as API servers do when a pod is created."""
    if selector is None:
        return None
    more = tuple(
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],)) for key in keys if key in labels
    )
    return LabelSelector(match_labels=selector.match_labels, match_expressions=selector.match_expressions + more)


# -- spread ---------------------------------------------------------------------------------------------------------------


def spread(pod: Pod, host: Host, scene: Scene) -> Iterator[str]:
    """Only constraints that forbid (DoNotSchedule). A node counts if it has the labels of all of them at once."""
    rules = [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]
    keys = [rule.topology_key for rule in rules]
    for rule in rules:
        if rule.topology_key not in host.labels:
            yield f"spread: the node has no label {rule.topology_key}"
            continue
        selector = narrowed(rule.label_selector, pod.metadata.labels, rule.match_label_keys, "In")
        counts: dict[str, int] = {}
        for each in scene.hosts:
            if all(key in each.labels for key in keys) and _counts(rule, pod, each):
                domain = each.labels[rule.topology_key]
                counts[domain] = counts.get(domain, 0) + _matching(each, selector, pod.metadata.namespace)
        least = min(counts.values(), default=None)
        if least is None:
            continue
        if rule.min_domains is not None and len(counts) < rule.min_domains:
            least = 0
        here = counts.get(host.labels[rule.topology_key], 0) + selects(selector, pod.metadata.labels)
        if here - least > rule.max_skew:
            yield f"spread: {rule.topology_key} would hold {here}, the emptiest holds {least}, skew {rule.max_skew}"


def _counts(rule: TopologySpreadConstraint, pod: Pod, host: Host) -> bool:
    if rule.node_affinity_policy != "Ignore" and not selected(pod.spec, host):
        return False
    return rule.node_taints_policy != "Honor" or not kept_out_by(pod.spec, host.taints)


def _matching(host: Host, selector: LabelSelector | None, namespace: str) -> int:
    """Pods on the node that the constraint counts. An empty selector counts none, as in kube-scheduler."""
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return 0
    return sum(
        each.metadata.namespace == namespace
        and each.metadata.deletion_timestamp is None
        and selects(selector, each.metadata.labels)
        for each in host.pods
    )


# -- affinity -------------------------------------------------------------------------------------------------------------


def affinity(pod: Pod, host: Host, scene: Scene) -> Iterator[str]:
    """Each term's domain must hold a pod that matches all terms; the first pod of a group that selects itself is free."""
    own = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    terms = own.required_during_scheduling_ignored_during_execution if own else ()
    if not terms:
        return
    lacking = [term.topology_key for term in terms if term.topology_key not in host.labels]
    if lacking:
        yield f"affinity: the node has no label {lacking[0]}"
        return
    friends = [
        each.labels
        for each in scene.hosts
        for other in each.pods
        if all(about(term, pod, other, scene) for term in terms)
    ]
    somewhere = any(term.topology_key in labels for labels in friends for term in terms)
    if not somewhere and all(about(term, pod, pod, scene) for term in terms):
        return
    for term in terms:
        key = term.topology_key
        if not any(labels.get(key) == host.labels[key] for labels in friends):
            yield f"affinity: no pod of the kind in this {key}"


def anti_affinity(pod: Pod, host: Host, scene: Scene) -> Iterator[str]:
    for term in required_anti_affinity(pod):
        if any(about(term, pod, other, scene) for other in _sharing(term.topology_key, host, scene)):
            yield f"anti-affinity: a pod of the kind is in this {term.topology_key}"


def barred(pod: Pod, host: Host, scene: Scene) -> Iterator[str]:
    """The anti-affinity of pods that are there already works in both directions."""
    for each in scene.hosts:
        for other in each.pods:
            for term in required_anti_affinity(other):
                key = term.topology_key
                together = key in host.labels and each.labels.get(key) == host.labels[key]
                if together and about(term, other, pod, scene):
                    yield f"anti-affinity of {other.metadata.name}: keeps the pod out of this {key}"


def required_anti_affinity(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    own = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    return own.required_during_scheduling_ignored_during_execution if own else ()


def _sharing(key: str, host: Host, scene: Scene) -> Iterator[Pod]:
    """The pods in the same domain of the label."""
    if key in host.labels:
        for each in scene.hosts:
            if each.labels.get(key) == host.labels[key]:
                yield from each.pods


def about(term: PodAffinityTerm, owner: Pod, other: Pod, scene: Scene) -> bool:
    """Whether the owner's term speaks of the other pod: its namespace and its labels."""
    namespace = other.metadata.namespace
    if term.namespace_selector is not None:
        known = selects(term.namespace_selector, scene.namespaces.get(namespace, {}))
    else:
        known = not term.namespaces and namespace == owner.metadata.namespace
    if not known and namespace not in term.namespaces:
        return False
    selector = narrowed(term.label_selector, owner.metadata.labels, term.match_label_keys, "In")
    selector = narrowed(selector, owner.metadata.labels, term.mismatch_label_keys, "NotIn")
    return selects(selector, other.metadata.labels)
