"""One life of Growth as a simulated process: the operator's own wiring on simulated openings.

The cloud's own half does not die with the process: the stage runs it. Everything else is what `growth run` runs.
"""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Final

from prometheus_client import CollectorRegistry

from growth.api.instance_types import Catalogue
from growth.controllers.settings import ControllerSettings
from growth.kube.api import Api, Gate
from growth.kube.lease import LeaseSettings
from growth.operator.settings import DEFAULT_PROCESS, Settings
from growth.operator.wiring import Autoscaler, Cloud, Openings, Role
from growth.ports import Compute
from growth.providers.catalogues import builtin
from growth.providers.kwok.provider import KwokProvider
from growth.sim.ports import SimCompute
from growth.sim.trials.owning.stage import GROWTH_NAMESPACE, Seat, Stage
from growth.telemetry.metrics import Metrics

USERS: Final = {Role.ELECTOR: "growth", Role.GROWTH: "growth", Role.CLOUD: "growth-kwok"}
CATALOGUE: Final[Catalogue] = builtin("kwok")
# Quicker than in production, so that a trial is minutes of virtual time and not hours.
SETTINGS: Final = ControllerSettings(
    namespace=GROWTH_NAMESPACE, disruption_poll=2.0, collection_period=30.0, collection_grace=10.0, delete_poll=1.0
)
LEASE: Final = LeaseSettings(lease_seconds=6, renew_deadline_seconds=4.0, retry_seconds=1.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Life:
    """The body of a replica's process."""

    settings: ControllerSettings = SETTINGS
    lease: LeaseSettings = LEASE
    catalogue: Catalogue = CATALOGUE
    compute: Callable[[], Compute] = SimCompute

    async def __call__(self, stage: Stage, seat: Seat) -> None:
        settings = dataclasses.replace(self.settings, max_nodes=stage.caps.max_nodes, max_hourly=stage.caps.max_hourly)

        @contextlib.asynccontextmanager
        async def connect(role: Role, gate: Gate) -> AsyncIterator[Api]:
            if role is Role.ELECTOR:
                yield seat.elect()
            else:
                yield seat.connect(USERS[role], gate)

        def cloud(api: Api, *, cluster: str, gate: Gate) -> Cloud:  # noqa: ARG001 - KWOK writes through `api` alone
            provider = KwokProvider(
                api,
                catalogue=self.catalogue,
                cluster=cluster,
                namespace=GROWTH_NAMESPACE,
                clock=seat.clock,
                random=seat.random.stream("cloud"),
            )
            return Cloud(provider)

        openings = Openings(
            connect=connect,
            cloud=cloud,
            clock=seat.clock,
            random=seat.random.stream("growth"),
            compute=self.compute(),
            metrics=Metrics(CollectorRegistry()),
            identity=seat.identity,
        )
        process = Settings(process=DEFAULT_PROCESS, controllers=settings, lease=self.lease)
        await Autoscaler(openings, process).run()
