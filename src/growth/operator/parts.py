"""Which controllers run: those that act, and those that only look on. And every metric that they count."""

from collections.abc import Sequence
from typing import Final, Protocol

from growth.controllers import catalogue, collection, disrupted, disruption, gauges, lifecycle, pools, repair, vain
from growth.controllers.buffers import Buffers
from growth.controllers.catalogue import CatalogueReader
from growth.controllers.collection import Collection
from growth.controllers.decisions import Decisions
from growth.controllers.disruption import Disruption
from growth.controllers.drifting import Drifting
from growth.controllers.environment import Environment
from growth.controllers.expiration import Expiration
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
from growth.controllers.repair import Repair
from growth.controllers.retracting import Retracting
from growth.controllers.sizing import Sizing
from growth.controllers.termination import Termination
from growth.controllers.termination import metrics as termination
from growth.providers import measured
from growth.providers.hetzner import gauges as flags
from growth.providers.http import gauges as cloud_calls
from growth.providers.linode import gauges as lke
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
            *disruption.METRICS,
            *collection.METRICS,
            *disrupted.METRICS,
            *backing.METRICS,
            *repair.METRICS,
            *vain.METRICS,
            *gauges.METRICS,
            *measured.METRICS,
            *cloud_calls.METRICS,
            *flags.METRICS,
            *lke.METRICS,
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
        Disruption(environment, decisions=decisions, requesting=requesting),
        Collection(environment),
        Drifting(environment),
        Expiration(environment),
        Sizing(environment, tell=decisions.record),
        *((Repair(environment),) if environment.settings.node_repair else ()),
        *((Retracting(environment),) if environment.settings.nominate_pods else ()),
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
        Disruption(environment, decisions=decisions),
    )
