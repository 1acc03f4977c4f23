"""The moves that wait or run: which nodes they have, how far they are."""

import dataclasses
import datetime as dt
import enum
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.karpenter import NodeClaim
from growth.api.nodes import Node
from growth.api.pools import PoolRef
from growth.cluster.snapshot import PoolView
from growth.planning.disruption.model import Move

# Karpenter's: a command may take so long for each node in the queue, but never less or more than this.
SECONDS_PER_NODE: Final = 0.08
LEAST_SECONDS: Final = 600.0
MOST_SECONDS: Final = 3600.0

# Drift is not looked at twice before it acts: it does not pass by itself.
VALIDATED: Final = frozenset({names.EMPTY, names.UNDERUTILIZED})


class Stage(enum.StrEnum):
    WAITING = "waiting"  # nothing is done yet; it is checked again before it acts
    STARTING = "starting"  # its nodes are tainted, and what it buys is on its way
    LEAVING = "leaving"  # its claims are being deleted


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """A node that is to go, as it was chosen."""

    node: Node
    claim: NodeClaim


@dataclasses.dataclass(frozen=True, slots=True)
class Market:
    """What a move buys on: the pools as it was planned with."""

    views: Mapping[PoolRef, PoolView]
    currency: str


@dataclasses.dataclass(slots=True, eq=False)
class Running:
    """One move. `since` is monotonic; `coming` are the names of the claims that are bought for it, and `requests` those of
    the NodeRequests that ask for them, where it is of growth pools.

    `sure_until`: so long, by the boot clock, the last look says that there is room for its pods. `homeless_since`: since
    when none is found for them. `waits_for`: what spoke against it at the last look that was told of.
    """

    move: Move
    targets: dict[str, Target]
    since: float
    at: dt.datetime
    market: Market | None = None
    stage: Stage = Stage.WAITING
    coming: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    number: int = 0
    resumed: bool = False
    sure_until: float = float("inf")
    homeless_since: float | None = None
    waits_for: str = ""

    @property
    def decision(self) -> str:
        return "replace" if self.coming or self.move.replacements else "delete"

    @property
    def consolidation_type(self) -> str:
        """As Karpenter's metrics call the method."""
        if self.move.reason == names.EMPTY:
            return "empty"
        if self.move.reason == names.UNDERUTILIZED:
            return "multi" if len(self.move.nodes) > 1 else "single"
        return ""

    def keep(self, nodes: Sequence[str]) -> None:
        """Only these of its nodes go."""
        kept = tuple(name for name in self.move.nodes if name in set(nodes))
        self.move = dataclasses.replace(self.move, nodes=kept)
        self.targets = {name: self.targets[name] for name in kept}


class GaveUp(Exception):
    """The move will not be made; the message says why. `failed`: what it was to buy is not to be had."""

    def __init__(self, why: str, *, failed: bool = False) -> None:
        super().__init__(why)
        self.failed = failed


class Moves:
    """All of them, in the order in which they came. `returning` are nodes that came for a move and are given back."""

    def __init__(self) -> None:
        self.returning: set[str] = set()
        self._running: dict[int, Running] = {}
        self._numbers = itertools.count(1)
        self.changes = 0  # grows with every move that comes or ends

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[Running]:
        return iter(tuple(self._running.values()))

    def add(self, running: Running) -> None:
        running.number = next(self._numbers)
        self._running[running.number] = running
        self.changes += 1

    def remove(self, running: Running) -> None:
        self._running.pop(running.number, None)
        self.changes += 1

    def nodes(self, *, but: Running | None = None) -> frozenset[str]:
        """The nodes of all moves, and those that are given back."""
        return frozenset(name for each in self if each is not but for name in each.targets) | self.returning

    def beside(self, running: Running) -> frozenset[str]:
        """The nodes of the others that count where it is looked at again, and those that are given back."""
        return self.nodes(but=running) - self.following(running)

    def following(self, running: Running) -> frozenset[str]:
        """The nodes of moves that were decided after it and wait, or are about to buy: nobody is asked to leave there yet, and they
        are looked at again when it is under way, or given up.
        """
        later = [each for each in self if each.number > running.number]
        waiting = [
            each for each in later if each.stage is Stage.WAITING or (each.move.replacements and not each.coming)
        ]
        return frozenset(name for each in waiting for name in each.targets)

    def destinations(self) -> frozenset[str]:
        """The nodes that are to take pods of moves."""
        return frozenset(name for each in self for name in each.move.destinations)

    def claims(self) -> frozenset[str]:
        """The claims that go, and those that come."""
        going = {target.claim.metadata.name for each in self for target in each.targets.values()}
        return frozenset(going | {name for each in self for name in each.coming})

    def patience(self) -> float:
        """How many seconds a move may take."""
        nodes = sum(len(each.targets) for each in self)
        return min(max(SECONDS_PER_NODE * nodes, LEAST_SECONDS), MOST_SECONDS)
