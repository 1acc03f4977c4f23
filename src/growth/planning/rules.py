"""The rules of topology that pods state, each registered once: two pods with the same rule share one group and its counts."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from growth.api import names
from growth.api.meta import LabelSelector, LabelSelectorRequirement
from growth.api.placement import PodAffinityTerm, TopologySpreadConstraint
from growth.cluster.shapes import PodShape
from growth.planning.offerings import Constraint, Constraints
from growth.planning.requirements import ANY, gather
from growth.planning.selectors import Test, compiled
from growth.planning.topology import Group, Rule

HONOR = "Honor"


class Groups:
    """The rules of one pass, each once."""

    def __init__(self, namespaces: Mapping[str, Mapping[str, str]], constraints: Constraints) -> None:
        self.all: list[Group] = []
        self._known: dict[tuple[object, ...], Group] = {}
        self._namespaces = namespaces
        self._constraints = constraints
        self._encode = msgspec.msgpack.Encoder().encode

    def save(self) -> Callable[[], None]:
        """Remembers the counts of all rules; the result brings them back."""
        counts = [(group, dict(group.counts), group.total) for group in self.all]

        def restore() -> None:
            for group, by_domain, total in counts:
                group.counts, group.total = dict(by_domain), total

        return restore

    def spread(
        self,
        shape: PodShape,
        rule: TopologySpreadConstraint,
        filters: tuple[Constraint, ...],
        *,
        keys: Sequence[str] = (),
    ) -> Group:
        """The rule of a spread. `keys` are those of all firm spreads of the pod: a node counts if it has every label."""
        selector = with_label_keys(rule.label_selector, shape.labels, match=rule.match_label_keys, mismatch=())
        if selector == LabelSelector():
            selector = None  # to kube-scheduler a spread over every pod counts none
        honours = rule.node_taints_policy == HONOR
        kept = filters if rule.node_affinity_policy in {None, "", HONOR} else ()
        kept = self._having([key for key in keys if key not in {rule.topology_key, names.HOSTNAME_LABEL}], kept)
        tolerations = shape.spec.tolerations if honours else ()
        key = (
            Rule.SPREAD,
            rule.topology_key,
            self._encode(selector),
            shape.namespace,
            rule.max_skew,
            rule.min_domains or 0,
            kept,
            tolerations,
        )
        return self._group(
            key,
            lambda: Group(
                Rule.SPREAD,
                rule.topology_key,
                compiled(selector),
                namespaces=frozenset({shape.namespace}),
                text=f"topology spread over {rule.topology_key} (max skew {rule.max_skew})",
                max_skew=rule.max_skew,
                min_domains=rule.min_domains or 0,
                filters=kept,
                honours_taints=honours,
                tolerations=tolerations,
            ),
        )

    def _having(self, keys: Sequence[str], filters: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
        """The filters narrowed to nodes that have the labels."""
        if not keys:
            return filters
        labels = [(key, ANY) for key in keys]
        return tuple(
            self._constraints.of(gather([*each.requirements.items(), *labels]))
            for each in filters or (self._constraints.none,)
        )

    def affinity(
        self, shape: PodShape, term: PodAffinityTerm, rule: Rule, *, also: Sequence[PodAffinityTerm] = ()
    ) -> Group:
        """The rule of a term; `also` are terms that the same pods must match too."""
        parts = [self._part(shape, each) for each in (term, *also)]
        key = (rule, term.topology_key, *sorted(part[0] for part in parts), *sorted(each.topology_key for each in also))
        spaces = _common([part[2] for part in parts])
        tests = [part[1] for part in parts]

        def test(labels: Mapping[str, str]) -> bool:
            return all(each(labels) for each in tests)

        words = {Rule.AFFINITY: "affinity to pods", Rule.ANTI_AFFINITY: "anti-affinity to pods"}
        text = f"{words.get(rule, 'anti-affinity of pods already there')} by {term.topology_key}"
        return self._group(key, lambda: Group(rule, term.topology_key, test, namespaces=spaces, text=text))

    def _part(self, shape: PodShape, term: PodAffinityTerm) -> tuple[bytes, Test, frozenset[str] | None]:
        selector = with_label_keys(
            term.label_selector, shape.labels, match=term.match_label_keys, mismatch=term.mismatch_label_keys
        )
        spaces = self._spaces(shape.namespace, term)
        return self._encode((selector, None if spaces is None else sorted(spaces))), compiled(selector), spaces

    def _spaces(self, own: str, term: PodAffinityTerm) -> frozenset[str] | None:
        if term.namespace_selector is None:
            return frozenset(term.namespaces or (own,))
        if term.namespace_selector == LabelSelector():
            return None
        test = compiled(term.namespace_selector)
        return frozenset(term.namespaces) | {name for name, labels in self._namespaces.items() if test(labels)}

    def _group(self, key: tuple[object, ...], make: Callable[[], Group]) -> Group:
        group = self._known.get(key)
        if group is None:
            group = self._known[key] = make()
            self.all.append(group)
        return group


def _common(many: list[frozenset[str] | None]) -> frozenset[str] | None:
    """Namespaces in all of them; None stands for every namespace."""
    found: frozenset[str] | None = None
    for each in many:
        if each is not None:
            found = each if found is None else found & each
    return found


def with_label_keys(
    selector: LabelSelector | None, labels: Mapping[str, str], *, match: Iterable[str], mismatch: Iterable[str]
) -> LabelSelector | None:
    """The selector narrowed by the pod's own values of the named labels; labels that it lacks are ignored."""
    if selector is None:
        return None
    extra = [
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for operator, keys in (("In", match), ("NotIn", mismatch))
        for key in keys
        if key in labels
    ]
    if not extra:
        return selector
    return LabelSelector(match_labels=selector.match_labels, match_expressions=(*selector.match_expressions, *extra))


def keeps_away_of(shape: PodShape, groups: Groups) -> tuple[Group, ...]:
    """The bars that a pod of the shape puts up once it is placed: its required anti-affinity."""
    anti = shape.spec.affinity.pod_anti_affinity if shape.spec.affinity else None
    terms = anti.required_during_scheduling_ignored_during_execution if anti else ()
    found = tuple(groups.affinity(shape, term, Rule.KEEPS_AWAY) for term in terms)
    for group in found:
        group.firm = True
    return found
