"""Ways to pack that the `cost` packer tries, and what it finds out about each."""

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Protocol

from growth.api.pools import PoolRef
from growth.planning.classes import PodClass
from growth.planning.ledger import Ledger
from growth.planning.offerings import Shelf
from growth.planning.plan import Filled, PlannedClaim
from growth.planning.rehearsal import Arrival, Rehearsal


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

    @property
    def upheaval(self) -> Fraction:
        """The share of machines that a small change of demand would change: those unlike the others, and one more."""
        types = collections.Counter((claim.pool, claim.instance_type) for claim in self.claims)
        return Fraction(1 + sum(types.values()) - max(types.values(), default=0), max(1, len(self.claims)))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A trial with the machines that its rehearsal added; what it cost before; and what it would cost in the end.

    `settled`: nobody is left over, as far as was looked; `many`: more than a few were when it was last looked at.
    `searched`: something else than first fit was tried at all. `told`: its pods must be nominated for their machines. `worst` is
    what it costs if everybody who was left over is bought for later, a few on a bad day too.
    """

    trial: Trial
    planned: int
    machines: int
    cost: int
    settled: bool
    searched: bool = True
    many: bool = False
    told: bool = False
    worst: int = 0


class Rehearse(Protocol):
    """Who would be bound where, with these machines bought; `told` where their pods are nominated for them."""

    def __call__(self, claims: Sequence[PlannedClaim], arrival: Arrival, /, *, told: bool = ...) -> Rehearsal: ...
