"""Rules about pods elsewhere: topology spread, affinity and anti-affinity, the anti-affinity of those already there."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from growth.api.meta import LabelSelector, LabelSelectorRequirement
from growth.api.placement import PodAffinityTerm, TopologySpreadConstraint
from growth.api.pods import Pod
from growth.sim.predicates.hosts import Host, Scene
from growth.sim.predicates.on_one_node import kept_out_by, selected


def among_pods(pod: Pod, host: Host, scene: Scene) -> Iterator[str]:
    """Every one of these rules that the pod breaks on the host."""
    return Among(pod, scene).refusals(host)


class Among:
    """These rules for one pod in one scene: what must be counted over all nodes is counted once."""

    def __init__(self, pod: Pod, scene: Scene) -> None:
        self._spreads = list(_spreads(pod, scene))
        self._affinity = _Affinity.of(pod, scene)
        self._anti = [(term.topology_key, _domains(term, pod, scene)) for term in required_anti_affinity(pod)]
        self._barred = _barred(pod, scene)

    def refusals(self, host: Host) -> Iterator[str]:
        for spread in self._spreads:
            yield from spread.refusals(host)
        yield from self._affinity.refusals(host)
        for key, domains in self._anti:
            if host.labels.get(key) in domains:
                yield f"anti-affinity: a pod of the kind is in this {key}"
        for (key, domain), names in self._barred.items():
            if host.labels.get(key) == domain:
                yield from (f"anti-affinity of {name}: keeps the pod out of this {key}" for name in names)


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


@dataclasses.dataclass(frozen=True, slots=True)
class _Spread:
    """One constraint that forbids (DoNotSchedule): how many pods it counts in each domain."""

    rule: TopologySpreadConstraint
    counts: Mapping[str, int]
    itself: bool

    def refusals(self, host: Host) -> Iterator[str]:
        rule, counts = self.rule, self.counts
        if rule.topology_key not in host.labels:
            yield f"spread: the node has no label {rule.topology_key}"
            return
        least = min(counts.values(), default=None)
        if least is None:
            return
        if rule.min_domains is not None and len(counts) < rule.min_domains:
            least = 0
        here = counts.get(host.labels[rule.topology_key], 0) + self.itself
        if here - least > rule.max_skew:
            yield f"spread: {rule.topology_key} would hold {here}, the emptiest holds {least}, skew {rule.max_skew}"


def _spreads(pod: Pod, scene: Scene) -> Iterator[_Spread]:
    """A node counts if it has the labels of all constraints at once."""
    rules = [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]
    keys = [rule.topology_key for rule in rules]
    for rule in rules:
        yield _Spread(rule, counted(rule, pod, scene, keys=keys), selects(_selector(rule, pod), pod.metadata.labels))


def counted(rule: TopologySpreadConstraint, pod: Pod, scene: Scene, *, keys: Iterable[str]) -> dict[str, int]:
    """How many pods the constraint counts in each domain; only nodes with the labels `keys` are any."""
    selector = _selector(rule, pod)
    counts: dict[str, int] = {}
    for each in scene.hosts:
        if all(key in each.labels for key in keys) and _counts(rule, pod, each):
            domain = each.labels[rule.topology_key]
            counts[domain] = counts.get(domain, 0) + _matching(each, selector, pod.metadata.namespace)
    return counts


def _selector(rule: TopologySpreadConstraint, pod: Pod) -> LabelSelector | None:
    return narrowed(rule.label_selector, pod.metadata.labels, rule.match_label_keys, "In")


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


@dataclasses.dataclass(frozen=True, slots=True)
class _Affinity:
    """Each term's domain must hold a pod that matches all terms; the first pod of a group that selects itself is free."""

    keys: tuple[str, ...]
    domains: Mapping[str, frozenset[str]]
    """By key: where a pod that matches all terms is."""
    first: bool

    @classmethod
    def of(cls, pod: Pod, scene: Scene) -> "_Affinity":
        own = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
        terms = own.required_during_scheduling_ignored_during_execution if own else ()
        if not terms:
            return cls((), {}, first=True)
        friends = [
            each.labels
            for each in scene.hosts
            for other in each.pods
            if all(about(term, pod, other, scene) for term in terms)
        ]
        keys = tuple(term.topology_key for term in terms)
        domains = {key: frozenset(labels[key] for labels in friends if key in labels) for key in keys}
        first = not any(domains.values()) and all(about(term, pod, pod, scene) for term in terms)
        return cls(keys, domains, first=first)

    def refusals(self, host: Host) -> Iterator[str]:
        lacking = [key for key in self.keys if key not in host.labels]
        if lacking:
            yield f"affinity: the node has no label {lacking[0]}"
        elif not self.first:
            for key in self.keys:
                if host.labels[key] not in self.domains[key]:
                    yield f"affinity: no pod of the kind in this {key}"


def _domains(term: PodAffinityTerm, pod: Pod, scene: Scene) -> frozenset[str]:
    """The values of the term's label on nodes that have a pod of which the term speaks."""
    key = term.topology_key
    return frozenset(
        each.labels[key]
        for each in scene.hosts
        if key in each.labels and any(about(term, pod, other, scene) for other in each.pods)
    )


def _barred(pod: Pod, scene: Scene) -> dict[tuple[str, str], list[str]]:
    """The anti-affinity of pods that are there already works in both directions: by label and value, whose it is."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in scene.hosts:
        for other in each.pods:
            if other.spec.affinity is None:  # most of them
                continue
            for term in required_anti_affinity(other):
                key = term.topology_key
                if key in each.labels and about(term, other, pod, scene):
                    found.setdefault((key, each.labels[key]), []).append(other.metadata.name)
    return found


def required_anti_affinity(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    own = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    return own.required_during_scheduling_ignored_during_execution if own else ()


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
