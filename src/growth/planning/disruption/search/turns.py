"""In which turns the pods of nodes that go leave them: until its turn comes each counts where it runs.

Evictions are asked for one after the other, and a PodDisruptionBudget lets some of its pods go and the next ones when those
are ready elsewhere. To pods that spread it matters who is still there: it decides where the first of them go, and what is
left for the last.
"""

import collections
import enum
from collections.abc import Collection, Iterable, Mapping, Sequence

from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.snapshot import Demand
from growth.cluster.wanting import key_of
from growth.planning.disruption.model import Situation

Turn = Mapping[str, str]
"""Pods that leave together, by key, and from which node."""


class Leaving(enum.IntEnum):
    """How pods leave: all are gone before the first looks for its place; each alone, which has found its place before the next
    one goes; or all together whom budgets let go at once, and then the others, each alone.
    """

    AT_ONCE = enum.auto()
    ALONE = enum.auto()
    AS_BUDGETS_ALLOW = enum.auto()


class Turns:
    """Of the evicted pods of the nodes that go, those that run there."""

    def __init__(self, situation: Situation, *, gone: Collection[str], evicted: Iterable[Demand]) -> None:
        own = {demand.key for demand in evicted}
        self._budgets = situation.pod_budgets
        self._pods: dict[str, CachedPod] = {}
        self.nodes: dict[str, str] = {}
        for node in situation.nodes:
            for pod in node.pods if node.name in gone and node.view is not None else ():
                if (key := key_of(pod)) in own:
                    self._pods[key] = pod
                    self.nodes[key] = node.name

    def there(self) -> Mapping[str, Mapping[PodShape, int]]:
        """How many of each shape are on each of the nodes before the first turn."""
        found: dict[str, collections.Counter[PodShape]] = {}
        for key, name in self.nodes.items():
            found.setdefault(name, collections.Counter())[self._pods[key].shape] += 1
        return found

    def of(self, queue: Sequence[Demand], leaving: Leaving) -> Sequence[Turn]:
        """The turns, for one order of the pods. None where all are gone before the first looks for its place."""
        if leaving is Leaving.AT_ONCE:
            return ()
        first: list[str] = []
        alone = [demand.key for demand in queue if demand.key in self.nodes]
        if leaving is Leaving.AS_BUDGETS_ALLOW:
            left: dict[tuple[str, str], int] = {}
            held = {key for key in alone if self._is_held_up(key, left)}
            first, alone = [key for key in alone if key not in held], [key for key in alone if key in held]
        return [self._turn(keys) for keys in (first, *([key] for key in alone)) if keys]

    def _is_held_up(self, key: str, left: dict[tuple[str, str], int]) -> bool:
        """`left` are the evictions that each budget still allows, and has one less where this pod takes it."""
        for budget in self._budgets.of(self._pods[key]):
            named = (budget.metadata.namespace, budget.metadata.name)
            left[named] = left.get(named, budget.status.disruptions_allowed) - 1
            if left[named] < 0:
                return True
        return False

    def _turn(self, keys: Iterable[str]) -> Turn:
        return {key: self.nodes[key] for key in keys}
