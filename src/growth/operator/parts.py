"""Which controllers run: those that act, and those that only look on. And every metric that they count."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from growth.controllers import catalogue, collection, disrupted, emptiness_report, gauges, lifecycle, pools
from growth.controllers.buffers import Buffers
from growth.controllers.catalogue import CatalogueReader
from growth.controllers.collection import Collection
from growth.controllers.decisions import Decisions
from growth.controllers.emptiness import Emptiness
from growth.controllers.emptiness_report import Seen
from growth.controllers.environment import Environment
from growth.controllers.growth import backing
from growth.controllers.growth.backing import BackOffs
from growth.controllers.growth.pools import GrowthPools
from growth.controllers.growth.purchases import Requesting
from growth.controllers.growth.removals import Removals
from growth.controllers.growth.requests import NodeRequests
from growth.controllers.growth.reserving import GrowthReserving
from growth.controllers.growth.scaling import ScaleDown
from growth.controllers.health import RegistrationHealth
from growth.controllers.lifecycle import Lifecycle
from growth.controllers.overlays import Overlays
from growth.controllers.pools import Pools
from growth.controllers.provisioning import metrics as provisioning
from growth.controllers.provisioning.provisioner import Provisioner
from growth.controllers.termination import Termination
from growth.controllers.termination import metrics as termination
from growth.providers import measured
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
            *disrupted.METRICS,
            *backing.METRICS,
            *gauges.METRICS,
            *measured.METRICS,
        )
    )
)


def acting(environment: Environment) -> Sequence[Part]:
    """Everything that runs while the Lease is held. Made before: they listen from the start on."""
    gauges.declare(environment)
    reader = CatalogueReader(environment)
    health = RegistrationHealth()
    decisions = Decisions(environment)
    buffers = Buffers(environment)
    reserving = GrowthReserving(environment)
    requesting = Requesting(environment, reserving)
    back_offs = BackOffs(environment)
    return (
        reader,
        decisions,
        buffers,
        Overlays(environment),
        Provisioner(environment, decisions=decisions, headroom=buffers, requesting=requesting, back_offs=back_offs),
        back_offs,
        NodeRequests(environment, reserving),
        GrowthPools(environment, requesting),
        ScaleDown(environment),
        Removals(environment),
        Lifecycle(environment, health=health, catalogue=reader),
        Pools(environment, health=health),
        Termination(environment),
        Emptiness(environment, tell=_into(decisions, environment)),
        Collection(environment),
    )


def observing(environment: Environment) -> Sequence[Part]:
    """What runs with `--observe`: it plans and writes Decisions."""
    gauges.declare(environment)
    decisions = Decisions(environment)
    buffers = Buffers(environment)
    return (
        CatalogueReader(environment),
        decisions,
        buffers,
        Provisioner(environment, decisions=decisions, headroom=buffers),
        Emptiness(environment, tell=_into(decisions, environment)),
    )


def _into(decisions: Decisions, environment: Environment) -> Callable[[Seen], Awaitable[None]]:
    async def tell(seen: Seen) -> None:
        decisions.record(emptiness_report.decision(seen, environment))

    return tell
