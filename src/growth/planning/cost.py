"""The `cost` packer: a search among plans for the cheapest that kube-scheduler would really fill.

First fit is tried first, so the result is never worse. Then machines are drawn (`drawing`) by what pods are worth
(`bound`), several times over with machines of different sizes, and each drawing is packed by the feasibility code. The
best plans are rehearsed; for pods that kube-scheduler would leave over machines are added, and the cheapest plan after
that wins. Plans within one part in a hundred are equal: then the one wins whose largest machine holds the fewest pods.

The search is a fixed list of attempts, so equal input gives an equal plan.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from growth.api.pools import PoolRef
from growth.planning.bound import bound, ignored
from growth.planning.classes import PodClass
from growth.planning.drawing import draw, rooms_within
from growth.planning.drawn import Drawn
from growth.planning.existing import Existing
from growth.planning.ledger import Ledger
from growth.planning.market import Bools, Floats, Ints, grouped, market
from growth.planning.offerings import Shelf
from growth.planning.placing import Placing
from growth.planning.plan import Filled, PlannedClaim

# The largest machine of an attempt, as a share of everything that is asked for.
SHARES = (1.0, 1 / 4, 1 / 10, 1 / 25)
# How many of the cheapest plans are rehearsed.
REHEARSED = 3
# How often machines are added for pods that are left over.
ROUNDS = 6
# Plans whose prices differ by less than one part in so many are equal.
EQUAL = 100


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One way to pack. `bought` is the option that each claim is expected as; `left` the pods without a place."""

    claims: tuple[PlannedClaim, ...]
    bought: tuple[tuple[Shelf, int], ...]
    left: Sequence[tuple[PodClass, Sequence[str]]]
    filled: tuple[Filled, ...]
    order: tuple[tuple[str, str | int], ...]
    steps: int
    exhausted: bool
    ledgers: Mapping[PoolRef, Ledger]
    in_use: set[tuple[str, str]]

    @property
    def hourly(self) -> int:
        return sum(claim.price for claim in self.claims)

    @property
    def unplaced(self) -> int:
        return sum(len(keys) for _, keys in self.left)

    def placed(self, classes: Sequence[PodClass]) -> dict[PodClass, int]:
        """How many pods of each class have a place."""
        left = {pods: len(keys) for pods, keys in self.left}
        return {pods: len(pods.pods) - left.get(pods, 0) for pods in classes}

    @property
    def largest(self) -> int:
        return max((len(claim.pods) for claim in self.claims), default=0)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The chosen trial, and what it cost before its rehearsal."""

    trial: Trial
    planned: int
    machines: int


class Search:
    """One pass. `pack` tries drawings (None: first fit); `rehearse` says which pods of a plan would be left over."""

    def __init__(
        self,
        classes: Sequence[PodClass],
        masks: Mapping[PodClass, Mapping[Shelf, int]],
        *,
        pack: Callable[[Sequence[Drawn] | None, Mapping[PodClass, int]], Trial],
        rehearse: Callable[[Sequence[PlannedClaim]], Sequence[str]] | None,
        resources: int,
        node_cost: int,
    ) -> None:
        self._pack = pack
        self._rehearse = rehearse
        self._node_cost = node_cost
        self._classes = [each for each in classes if masks.get(each)]
        goods = market(self._classes, [masks[each] for each in self._classes], resources=resources, node_cost=node_cost)
        self._goods, members = grouped(goods, least=False)
        self._rows = {self._classes[at]: row for row, each in enumerate(members) for at in each}
        self._row_of = {key: row for pods, row in self._rows.items() for key in pods.pods}

    def best(self) -> Found:
        """The cheapest plan that was found."""
        first = self._pack(None, {})
        if not self._goods.columns or not first.claims:
            return Found(first, first.hourly, len(first.claims))
        counts = self._counts(key for claim in first.claims for key in claim.pods)
        worth = self._worth(counts)
        trials = [first]
        seen: set[bytes] = set()
        for share in SHARES:
            columns = rooms_within(self._goods, counts, share=share)
            if columns.tobytes() in seen:
                continue
            seen.add(columns.tobytes())
            trials.append(self._pack(self._draw(counts, worth, columns), self._rows))
        trials.sort(key=self._cost)
        if self._rehearse is None:
            return self._chosen([Found(trial, trial.hourly, len(trial.claims)) for trial in trials])
        return self._chosen([self._repaired(trial, worth) for trial in trials[:REHEARSED]])

    def _cost(self, trial: Trial) -> tuple[int, int]:
        return trial.unplaced, trial.hourly + self._node_cost * len(trial.claims)

    def _chosen(self, found: Sequence[Found]) -> Found:
        fewest, least = min(self._cost(each.trial) for each in found)
        equal = [
            each
            for each in found
            if each.trial.unplaced == fewest and self._cost(each.trial)[1] <= least + least // EQUAL
        ]
        return min(equal, key=lambda each: (each.trial.largest, *self._cost(each.trial)))

    def _counts(self, keys: Iterable[str]) -> Ints:
        counts = np.zeros(len(self._goods.classes), dtype=np.int64)
        for key in keys:
            row = self._row_of.get(key)
            if row is not None:
                counts[row] += 1
        return counts

    def _worth(self, counts: Ints) -> Floats:
        none = np.zeros(self._goods.needs.shape[1], dtype=np.int64)
        return bound(self._goods, counts, heap=none, on_heap=[False] * len(counts)).worth

    def _draw(self, counts: Ints, worth: Floats, columns: Bools) -> list[Drawn]:
        return [
            Drawn(
                *self._goods.columns[each.column],
                pods={row: int(each.pods[row]) for row in np.flatnonzero(each.pods).tolist()},
            )
            for each in draw(self._goods, counts, worth, columns=columns)
        ]

    def _repaired(self, trial: Trial, worth: Floats) -> Found:
        """The plan with machines added until kube-scheduler would leave no pod over, or as far as rounds go."""
        assert self._rehearse is not None
        planned, machines = trial.hourly, len(trial.claims)
        for _ in range(ROUNDS):
            nowhere = {key for _, keys in trial.left for key in keys}
            over = [key for key in self._rehearse(trial.claims) if key not in nowhere]
            if not over:
                break
            every = np.ones(len(self._goods.columns), dtype=np.bool_)
            trial = self._pack(
                [*self._kept(trial, set(over)), *self._draw(self._counts(over), worth, every)], self._rows
            )
        return Found(trial, planned, machines)

    def _kept(self, trial: Trial, over: set[str]) -> list[Drawn]:
        """The machines of a plan as drawings, without the pods that would be left over."""
        kept = []
        for claim, (shelf, option) in zip(trial.claims, trial.bought, strict=True):
            pods: dict[int, int] = {}
            for key in claim.pods:
                row = self._row_of.get(key)
                if row is not None and key not in over:
                    pods[row] = pods.get(row, 0) + 1
            kept.append(Drawn(shelf, option, pods, firm=True))
        return kept


def certificate(
    existing: Existing, asking: Placing, placed: Mapping[PodClass, int], *, node_cost: int
) -> tuple[int | None, tuple[str, ...]]:
    """The bound for these pods on nodes that nobody has filled yet, and the rules that it leaves out."""
    classes = [pods for pods, number in placed.items() if number]
    counts = np.array([placed[pods] for pods in classes], dtype=np.int64)
    far = {pods: asking.farthest(pods) for pods in classes}
    begun = dict.fromkeys(shelf for _, shelves in far.values() for shelf in shelves)
    masks = [{shelf: mask for shelf, mask in far[pods][0].items() if shelf in begun} for pods in classes]
    goods = market(classes, masks, resources=existing.free.shape[1], node_cost=node_cost)
    here = [existing.holding(pods) for pods in classes]
    anybody = np.logical_or.reduce(here) if here else np.zeros(len(existing.nodes), dtype=np.bool_)
    heap = np.maximum(existing.free[anybody], 0).sum(axis=0)
    found = bound(goods, counts, heap=heap, on_heap=[bool(each.any()) for each in here])
    pools = list({shelf.pool.ref: shelf.pool for shelf in begun}.values())
    rules = [f"limits of NodePool {pool.ref}" for pool in pools if asking.bounded(pool.ref)]
    rules += [
        f"minValues of NodePool {pool.ref}" for pool in pools if any(each.min_values for each in pool.requirements)
    ]
    if len({shelf.pool.weight for shelf in begun}) > 1 or len(begun) > len(pools):
        rules.append("the order of pools")
    return found.least, (*ignored([(pods, placed[pods]) for pods in classes]), *sorted(rules))
