"""Which PodDisruptionBudgets are about which pods, found without asking every budget about every pod."""

from collections.abc import Iterable

from growth.api.policy import PodDisruptionBudget
from growth.cluster.shapes import CachedPod, PodShape
from growth.planning.selectors import SelectorError, Test, compiled

_Entry = tuple[PodDisruptionBudget, Test]


class PodBudgets:
    """Budgets by namespace and by one of the labels that they ask for. A selector that no server accepts selects nothing.

    Pods of one shape have the same budgets: each shape is asked about once.
    """

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._by_label: dict[tuple[str, str, str], list[_Entry]] = {}
        self._others: dict[str, list[_Entry]] = {}
        self._known: dict[PodShape, tuple[PodDisruptionBudget, ...]] = {}
        for budget in budgets:
            selector, namespace = budget.spec.selector, budget.metadata.namespace
            try:
                entry = (budget, compiled(selector))
            except SelectorError:
                continue
            asked = sorted(selector.match_labels.items()) if selector is not None else []
            if asked:
                self._by_label.setdefault((namespace, *asked[0]), []).append(entry)
            elif selector is not None:
                self._others.setdefault(namespace, []).append(entry)

    def of(self, pod: CachedPod) -> tuple[PodDisruptionBudget, ...]:
        """Those that select the pod, by name."""
        shape = pod.shape
        known = self._known.get(shape)
        if known is None:
            entries = list(self._others.get(shape.namespace, ()))
            for key, value in shape.labels.items():
                entries += self._by_label.get((shape.namespace, key, value), ())
            found = [budget for budget, selects in entries if selects(shape.labels)]
            known = self._known[shape] = tuple(sorted(found, key=lambda budget: budget.metadata.name))
        return known
