"""Who is with the autoscaler in its world: those who make things go wrong, and those who watch that nothing breaks."""

import asyncio
import collections
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from growth.api import names
from growth.api.core import CONFIG_MAP
from growth.kube.errors import KubeError
from growth.operator.settings import read
from growth.providers.catalogues import builtin
from growth.sim.chaos import rates, sabotage
from growth.sim.chaos.injector import Injector
from growth.sim.invariants.auditor import Auditor
from growth.sim.ledger import NO_CAPS, Caps
from growth.sim.scenario.model import Order, Violation
from growth.sim.seams import Seams
from growth.sim.story import Story
from growth.sim.world.tally import prices_of
from growth.sim.world.world import NAMESPACE_OF_GROWTH, World

# So long after a list of leaks was held back the simulated people have looked at it and confirm it.
CONFIRM_SECONDS: Final = 600.0
LOOK_SECONDS: Final = 15.0
SCRAPE_SECONDS: Final = 60.0


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

    @property
    def rest_at(self) -> float:
        """When the cluster will have been idle for long enough to be judged, if nothing more is written."""

    async def finish(self, world: World) -> None:
        """Judges the end."""


class Everybody:
    """The faults of an order, the auditor with a person who confirms, and the story of what happened."""

    def __init__(self, order: Order) -> None:
        """ValueError for a fault or sabotage that there is not."""
        self._order = order = sabotage.prepared(order)
        caps = _caps(order)
        self._auditor = Auditor(caps=caps)
        given = {**rates.checked(order.scenario.faults), **rates.parse(order.faults)}
        if caps.max_hourly is not None:
            given.pop("price-change", None)  # what was bought within the cap may cost more than it tomorrow
        self._injector = Injector(given, seed=order.seed, books=lambda: self._auditor.case.books)
        self._story = Story()

    @property
    def seams(self) -> Seams:
        return self._injector

    @property
    def counts(self) -> Mapping[str, int]:
        return dict(self._injector.counts)

    @property
    def violations(self) -> Sequence[Violation]:
        return [
            Violation(
                seed=self._order.seed,
                invariant=each.invariant,
                at=each.at,
                story=self._story.told(each, faults=self._injector.log),
            )
            for each in self._auditor.violations
        ]

    def attach(self, world: World) -> None:
        self._story.attach(world)
        self._injector.attach(world)
        self._auditor.attach(world)
        self._auditor.case.by_hand = self._injector.by_hand
        self._auditor.case.denied = self._injector.denied

    async def disturb(self, world: World) -> None:
        confirming = world.kernel.create_task(_confirm(world), name="a person who confirms")
        world.run(_scrape(world))
        await self._injector.disturb(world)
        self._auditor.calm()
        await confirming

    @property
    def rest_at(self) -> float:
        return self._auditor.rest_at

    async def finish(self, world: World) -> None:
        await self._auditor.end(world)


def _caps(order: Order) -> Caps:
    """What the autoscaler is started with."""
    settings = read(order.scenario.flags(), {})
    if settings.controllers.max_nodes is None and settings.controllers.max_hourly is None:
        return NO_CAPS
    return Caps(
        max_nodes=settings.controllers.max_nodes,
        max_hourly=settings.controllers.max_hourly,
        prices=prices_of(builtin(settings.process.kwok_catalogue)),
    )


async def _confirm(world: World) -> None:
    """Lists of leaks that are held back are confirmed by somebody who takes their time."""
    since: dict[str, tuple[str, float]] = {}
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for name in (names.COLLECTION_CONFIG_MAP, names.LKE_COLLECTION_CONFIG_MAP):
            try:
                held = await world.admin.get(CONFIG_MAP, name, namespace=NAMESPACE_OF_GROWTH)
                found, (known, began) = held.data.get("hash", ""), since.get(name, ("", 0.0))
                if found != known:
                    since[name] = (found, world.kernel.time())
                elif found and world.kernel.time() - began >= CONFIRM_SECONDS:
                    confirmed = {"metadata": {"annotations": {names.CONFIRM_COLLECTION_ANNOTATION: found}}}
                    await world.admin.patch(CONFIG_MAP, name, confirmed, namespace=NAMESPACE_OF_GROWTH)
                    since[name] = ("", 0.0)
            except KubeError:
                continue


async def _scrape(world: World) -> None:
    """Somebody reads the metrics of the replicas, as Prometheus does."""
    while True:
        await asyncio.sleep(SCRAPE_SECONDS)
        for replica in world.replicas:
            if replica.metrics is not None and replica.process is not None and not replica.process.dead:
                collections.deque(replica.metrics.collect(), maxlen=0)


def company(order: Order) -> Company:
    """Those whom the order asks for."""
    return Everybody(order)
