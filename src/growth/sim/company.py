"""Who is with the autoscaler in its world: those who make things go wrong, and those who watch that nothing breaks."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from growth.sim.scenario.model import Order, Violation
from growth.sim.seams import PLAIN, Seams
from growth.sim.world.world import World


class Company(Protocol):
    """One run's disturbers and judges. `seams` are put in before the world is made."""

    @property
    def seams(self) -> Seams: ...

    @property
    def violations(self) -> Sequence[Violation]:
        """All that was found so far."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each kind of fault struck while it could matter."""

    def attach(self, world: World) -> None:
        """Begins to listen; called before anything happens in the world."""

    async def disturb(self, world: World) -> None:
        """Makes things go wrong until `world.over` is set, and mends then what would not mend by itself."""

    async def finish(self, world: World) -> None:
        """Judges the end."""


class Nobody:
    """Nothing goes wrong and nobody looks."""

    seams: Seams = PLAIN
    violations: Sequence[Violation] = ()
    counts: Mapping[str, int] = {}

    def attach(self, world: World) -> None:
        del world

    async def disturb(self, world: World) -> None:
        await world.over.wait()

    async def finish(self, world: World) -> None:
        del world


def company(order: Order) -> Company:
    """Those whom the order asks for."""
    del order
    return Nobody()
