"""Which controllers run: those that act, and those that only look on. And every metric that they count."""

from collections.abc import Sequence
from typing import Final, Protocol

from growth.controllers import catalogue, lifecycle
from growth.controllers.catalogue import CatalogueReader
from growth.controllers.environment import Environment
from growth.controllers.health import RegistrationHealth
from growth.controllers.lifecycle import Lifecycle
from growth.telemetry.metrics import Declaration


class Part(Protocol):
    """Something that runs until cancelled; when it returns by itself something is wrong."""

    async def run(self) -> None: ...


METRICS: Final[tuple[Declaration, ...]] = tuple(dict.fromkeys((*catalogue.METRICS, *lifecycle.METRICS)))


def acting(environment: Environment) -> Sequence[Part]:
    """Everything that runs while the Lease is held. Made before: they listen from the start on."""
    reader = CatalogueReader(environment)
    health = RegistrationHealth()
    return (reader, Lifecycle(environment, health=health, catalogue=reader))


def observing(environment: Environment) -> Sequence[Part]:
    """What runs with `--observe`: it plans and writes Decisions."""
    return (CatalogueReader(environment),)
