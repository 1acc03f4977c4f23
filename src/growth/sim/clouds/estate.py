"""What one customer of a vendor has, and what is under way: every change has its moment.

`advance` brings it up to a moment: all that is due until then happens in order, each at its own time.
"""

import abc
import datetime as dt
import heapq
import itertools
from collections.abc import Callable
from typing import Generic, TypeVar

from growth.sim.clouds.ledger import Ledger

M = TypeVar("M")

Due = Callable[[dt.datetime], None]


class Estate(abc.ABC, Generic[M]):
    """`now` is the moment that it was last brought up to; `told` hears what becomes of machines, at the moment when it does."""

    def __init__(self, *, now: dt.datetime) -> None:
        self.now = now
        self.ledger = Ledger()
        self.told: list[Callable[[str, M], None]] = []
        self._due: list[tuple[dt.datetime, int, Due]] = []
        self._order = itertools.count()

    def advance(self, now: dt.datetime) -> None:
        """Nothing happens where the clock went back."""
        while self._due and self._due[0][0] <= now:
            at, _, happens = heapq.heappop(self._due)
            self.now = max(at, self.now)
            happens(self.now)
        self.now = max(now, self.now)

    def later(self, at: dt.datetime, happens: Due) -> None:
        heapq.heappush(self._due, (at, next(self._order), happens))

    def tell(self, what: str, machine: M) -> None:
        for listener in self.told:
            listener(what, machine)

    @abc.abstractmethod
    def validate(self) -> None:
        """What holds after every write. `AssertionError` where it contradicts itself or its ledger."""
