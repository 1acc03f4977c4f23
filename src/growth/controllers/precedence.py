"""Provisioning goes first: pods wait for its plans, while a search for cheaper machines can be made again.

The provisioner plans inside `first`. Whoever else computes waits until nobody does (`free`), and hands its function
`preempted`, which is asked on another thread now and then and says that the result is wanted no more.
"""

import asyncio
import contextlib
from collections.abc import Iterator


class Precedence:
    """One per process."""

    def __init__(self) -> None:
        self._plans = 0
        self._entered = 0
        self._free = asyncio.Event()
        self._free.set()

    @contextlib.contextmanager
    def first(self) -> Iterator[None]:
        """A plan is being made that nothing may hold up."""
        self._plans += 1
        self._entered += 1
        self._free.clear()
        try:
            yield
        finally:
            self._plans -= 1
            if not self._plans:
                self._free.set()

    async def free(self) -> "Turn":
        """Waits until no such plan is being made."""
        await self._free.wait()
        return Turn(self)

    @property
    def entered(self) -> int:
        """How many such plans have been begun."""
        return self._entered


class Turn:
    """The time until the next plan that goes first."""

    def __init__(self, precedence: Precedence) -> None:
        self._precedence = precedence
        self._entered = precedence.entered

    def preempted(self) -> bool:
        """Whether such a plan has begun since. May be asked on any thread."""
        return self._precedence.entered != self._entered
