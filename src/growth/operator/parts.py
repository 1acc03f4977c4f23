"""Which controllers run: those that act, and those that only look on. And every metric that they count."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from growth.controllers import catalogue, collection, emptiness_report, lifecycle, pools
from growth.controllers.catalogue import CatalogueReader
from growth.controllers.collection import Collection
from growth.controllers.decisions import Decisions
from growth.controllers.emptiness import Emptiness
from growth.controllers.emptiness_report import Seen
from growth.controllers.environment import Environment
from growth.controllers.health import RegistrationHealth
from growth.controllers.lifecycle import Lifecycle
from growth.controllers.pools import Pools
from growth.controllers.provisioning import metrics as provisioning
from growth.controllers.provisioning.provisioner import Provisioner
from growth.controllers.termination import Termination
from growth.controllers.termination import metrics as termination
from growth.telemetry.metrics import Declaration


class Part(Protocol):
    """Something that runs until cancelled; when it returns by itself something is wrong."""

    async def run(self) -> None: ...


METRICS: Final[tuple[Declaration, ...]] = tuple(
    dict.fromkeys(
        (
            *catalogue.METRICS,
            *provisioning.METRICS,
            *lifecycle.METRICS,
            *pools.METRICS,
            *termination.METRICS,
            *emptiness_report.METRICS,
            *collection.METRICS,
        )
    )
)


def acting(environment: Environment) -> Sequence[Part]:
    """Everything that runs while the Lease is held. Made before: they listen from the start on."""
    reader = CatalogueReader(environment)
    health = RegistrationHealth()
    decisions = Decisions(environment)
    return (
        reader,
        decisions,
        Provisioner(environment, decisions=decisions),
        Lifecycle(environment, health=health, catalogue=reader),
        Pools(environment, health=health),
        Termination(environment),
        Emptiness(environment, tell=_into(decisions, environment)),
        Collection(environment),
    )


def observing(environment: Environment) -> Sequence[Part]:
    """What runs with `--observe`: it plans and writes Decisions."""
    decisions = Decisions(environment)
    return (
        CatalogueReader(environment),
        decisions,
        Provisioner(environment, decisions=decisions),
        Emptiness(environment, tell=_into(decisions, environment)),
    )


def _into(decisions: Decisions, environment: Environment) -> Callable[[Seen], Awaitable[None]]:
    async def tell(seen: Seen) -> None:
        decisions.record(emptiness_report.decision(seen, environment))

    return tell
