"""kube-scheduler's scores on arrays of nodes, in its own integers: 0 to 100, divisions cut off."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from growth.planning.existing import Bools, Ints

Floats = np.ndarray[Any, np.dtype[np.float64]]

MOST: Final = 100

# Weights of the default profile; NodeResourcesFit and NodeResourcesBalancedAllocation have 1.
TAINTS: Final = 3
NODE_AFFINITY: Final = 2
POD_AFFINITY: Final = 2
SPREAD: Final = 2


@dataclasses.dataclass(frozen=True, slots=True)
class _Constant:
    """What a node has of cpu and memory: whether any, how much, the same as floats, and of how many it has any."""

    has: tuple[bool, ...]
    allocatable: tuple[int, ...]
    shares: tuple[float, ...]
    parts: int


@dataclasses.dataclass(slots=True)
class _Lists:
    """What is asked for and left of cpu and memory, and the balance, node by node."""

    asked: list[list[int]]
    left: list[list[int]]
    balance: list[int]

    @classmethod
    def of(cls, asked: Ints, left: Ints, balance: Ints) -> "_Lists":
        return cls(asked.tolist(), left.tolist(), balance.tolist())

    def copy(self) -> "_Lists":
        return _Lists([[*each] for each in self.asked], [[*each] for each in self.left], [*self.balance])


class Room:
    """cpu and memory of all nodes: what there is, what is asked for, and what scores take for asked for.

    A resource that a node has none of takes no part in its scores. `by_change`: since 1.36 kube-scheduler scores what a pod
    does to the balance of a node, before that the balance that the node would have.
    """

    def __init__(self, allocatable: Ints, asked: Ints, scored: Ints, *, by_change: bool) -> None:
        """All of shape (2, nodes): cpu, then memory."""
        self._by_change = by_change
        self._has = allocatable > 0
        self._parts = np.maximum(self._has.sum(axis=0), 1)
        self._both: Bools = np.asarray(self._has.all(axis=0))
        self._plain = bool(self._both.all())
        self._allocatable = np.where(self._has, allocatable, 1)
        self._shares = self._allocatable.astype(np.float64)
        self._asked = asked.copy()
        self._left = self._allocatable - scored
        self._balance = self._balanced((0, 0))
        # The same for one node at a time: reading single numbers of an array takes longer than the sums.
        self._of: list[_Constant] = [
            _Constant(tuple(has), tuple(amounts), tuple(shares), parts)
            for has, amounts, shares, parts in zip(
                self._has.T.tolist(),
                self._allocatable.T.tolist(),
                self._shares.T.tolist(),
                self._parts.tolist(),
                strict=True,
            )
        ]
        self._lists = _Lists.of(self._asked, self._left, self._balance)

    def save(self) -> Callable[[], None]:
        """Remembers what is asked for; the result makes it so again."""
        asked, left, balance = self._asked.copy(), self._left.copy(), self._balance.copy()
        lists = self._lists.copy()

        def restore() -> None:
            self._asked, self._left, self._balance = asked.copy(), left.copy(), balance.copy()
            self._lists = lists.copy()

        return restore

    def take(self, node: int, asked: tuple[int, int], scored: tuple[int, int]) -> None:
        """Puts a pod on the node."""
        lists = self._lists
        for resource in (0, 1):
            lists.asked[resource][node] += asked[resource]
            lists.left[resource][node] -= scored[resource]
            self._asked[resource, node] += asked[resource]
            self._left[resource, node] -= scored[resource]
        self._balance[node] = lists.balance[node] = self._balanced_at(node, (0, 0))

    def score_at(self, node: int, asked: tuple[int, int], scored: tuple[int, int]) -> int:
        """What `score` says of one node."""
        total = 0
        constant, lists = self._of[node], self._lists
        for resource in (0, 1):
            if constant.has[resource]:
                free = lists.left[resource][node] - scored[resource]
                total += max(free, 0) * MOST // constant.allocatable[resource]
        total //= constant.parts
        if asked != (0, 0):
            balanced = self._balanced_at(node, asked)
            change = MOST // 2 + (MOST // 2 + balanced - lists.balance[node]) // 2
            total += change if self._by_change else balanced
        return total

    def _balanced_at(self, node: int, asked: tuple[int, int]) -> int:
        constant, before = self._of[node], self._lists.asked
        if not all(constant.has):
            return MOST
        first = min((before[0][node] + asked[0]) / constant.shares[0], 1.0)
        second = min((before[1][node] + asked[1]) / constant.shares[1], 1.0)
        return int((1 - abs((first - second) / 2)) * MOST)

    def score(self, asked: tuple[int, int], scored: tuple[int, int]) -> Ints:
        """LeastAllocated + BalancedAllocation of each node for such a pod."""
        total = self._least(scored)
        if asked != (0, 0):
            balanced = self._balanced(asked)
            if self._by_change:
                # What the pod does to the balance: 75 is nothing, 100 the best, 50 the worst.
                balanced -= self._balance
                balanced += MOST // 2
                balanced //= 2
                balanced += MOST // 2
            total += balanced
        return total

    def _least(self, scored: tuple[int, int]) -> Ints:
        shares = self._left - _column(scored)
        np.maximum(shares, 0, out=shares)
        shares *= MOST
        shares //= self._allocatable
        if not self._plain:
            shares *= self._has
        total: Ints = shares[0] + shares[1]
        total //= self._parts
        return total

    def _balanced(self, asked: tuple[int, int]) -> Ints:
        shares = (self._asked + _column(asked)) / self._shares
        np.minimum(shares, 1.0, out=shares)
        spread = shares[0] - shares[1]
        np.abs(spread, out=spread)
        spread /= 2
        if not self._plain:
            spread *= self._both
        np.subtract(1, spread, out=spread)
        spread *= MOST
        found: Ints = spread.astype(np.int64)
        return found


@functools.lru_cache(maxsize=4096)
def _column(pair: tuple[int, int]) -> Ints:
    return np.array(pair, dtype=np.int64).reshape(2, 1)


def normalised(raw: Ints, fine: Bools, *, reverse: bool) -> Ints:
    """Counts scaled so that the largest among the nodes in question is 100; reversed, the largest is 0."""
    largest = int(raw[fine].max())
    if largest == 0:
        return np.full(len(raw), MOST if reverse else 0, dtype=np.int64)
    scaled = MOST * raw // largest
    return MOST - scaled if reverse else scaled


def between(raw: Ints, fine: Bools) -> Ints:
    """Sums scaled from the least (0) to the largest (100) among the nodes in question."""
    here = raw[fine]
    low, high = int(here.min()), int(here.max())
    if high == low:
        return np.zeros(len(raw), dtype=np.int64)
    return (MOST * ((raw - low) / float(high - low))).astype(np.int64)


def evened(raw: Floats, fine: Bools, ignored: Bools | None) -> Ints:
    """Spread: fewer neighbours are better. Nodes that lack a label of the rules get nothing."""
    counts = np.floor(raw + 0.5).astype(np.int64)
    asked = fine if ignored is None else fine & ~ignored
    here = counts[asked]
    if not len(here):
        return np.zeros(len(counts), dtype=np.int64)
    low, high = int(np.minimum.reduce(here)), int(np.maximum.reduce(here))
    found: Ints = MOST * (high + low - counts) // high if high else np.full(len(counts), MOST, dtype=np.int64)
    return found if ignored is None else np.where(ignored, 0, found)
