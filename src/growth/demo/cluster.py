"""The embedded cluster: an API server in process, everything around it that plays a cluster, and Growth itself.

The parts are those of the simulated world, on a clock and a loop that really pass. Growth runs as `growth run` does: the
same wiring, checks, Lease, controllers, provider and stand-in kubelets. Only its connections lead straight into the server
and the fake of a cloud, and a few times are shorter so that somebody who watches need not wait.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Final

from growth.api.core import NAMESPACE
from growth.api.crds import all_crds
from growth.api.kinds import Json
from growth.demo.sellers import Line, Seller
from growth.kube.api import Api, Gate
from growth.kube.memory import MemoryApi, MemoryServer
from growth.operator.clouds import chosen
from growth.operator.metrics import new_metrics
from growth.operator.parts import Part
from growth.operator.settings import Settings, read
from growth.operator.wiring import Autoscaler, Openings, Role
from growth.ports import Clock, Compute
from growth.sim.ports import SimRandom
from growth.sim.replica import USERS
from growth.sim.world.budgets import Budgets
from growth.sim.world.daemons import Daemons
from growth.sim.world.jobs import Jobs
from growth.sim.world.nodes import Nodes
from growth.sim.world.scheduler import Scheduler
from growth.sim.world.view import View
from growth.sim.world.volumes import Volumes
from growth.sim.world.workloads import Workloads
from growth.sim.world.world import named

# Shorter than `growth run`'s own: a person watches. Everything else is as there.
HASTE: Final = {
    "batchIdle": "500ms",
    "deletePoll": "1s",
    "disruptionPoll": "2s",
    "validation": "3s",
    "nomination": "5s",
}


def settings(seller: Seller, *, speed: float) -> Settings:
    """The settings of the demo's autoscaler. The Lease is on the wall's time: a pause of the machine must not end it."""
    lease = max(1.0, speed)
    times = {"leaseDuration": 15 * lease, "renewDeadline": 10 * lease, "retryPeriod": 2 * lease}
    given = {name: f"{round(seconds)}s" for name, seconds in times.items()}
    return read({**seller.settings, **HASTE, **given}, {})


class Embedded:
    """`await begin()`, then `run` until cancelled. Make it on the loop that it runs on."""

    def __init__(self, *, clock: Clock, compute: Compute, seed: int, seller: Seller, speed: float = 1.0) -> None:
        self._clock = clock
        self._compute = compute
        self._random = random = SimRandom(seed, "demo")
        self.settings = settings(seller, speed=speed)
        self.fake = seller.fake(clock=clock, random=random.stream("fake"))
        """The vendor's side of the demo; None with KWOK."""
        self.server = server = MemoryServer(clock, random.stream("server"))
        self.admin: Api = MemoryApi(server, user="admin")
        view = View(MemoryApi(server, user="view"), clock=clock, random=random.stream("view"))
        manager = MemoryApi(server, user="controller-manager")
        self._parts: tuple[Part, ...] = (
            view,
            Scheduler(MemoryApi(server, user="scheduler"), view, clock=clock),
            Workloads(manager, view, clock=clock, random=random.stream("workloads")),
            Jobs(manager, view, clock=clock, random=random.stream("jobs")),
            Daemons(manager, view, clock=clock, random=random.stream("daemons")),
            Budgets(manager, view, clock=clock, random=random.stream("budgets")),
            Volumes(manager, view, random=random.stream("volumes")),
            Nodes(manager, view, clock=clock),
        )

    async def begin(self, objects: Sequence[Json]) -> None:
        """Our kinds and our namespace, then the objects."""
        for body in all_crds():
            kind, _, _ = named(self.server, body)
            await self.admin.create(kind, body)
        await self.admin.create(NAMESPACE, {"metadata": {"name": self.settings.controllers.namespace}})
        for body in objects:
            kind, _, namespace = named(self.server, body)
            await self.admin.create(kind, body, namespace=namespace)

    async def run(self) -> None:
        """Plays the cluster and runs the autoscaler until cancelled, or until one of them fails."""
        openings = Openings(
            connect=self._connected,
            cloud=chosen(
                self.settings,
                clock=self._clock,
                random=self._random.stream("cloud"),
                transport=None if self.fake is None else Line(self.fake, self._random.stream("line")),
            ),
            clock=self._clock,
            random=self._random.stream("growth"),
            compute=self._compute,
            metrics=new_metrics(),
            identity="growth-demo",
        )
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                group.create_task(part.run(), name=type(part).__name__)
            group.create_task(Autoscaler(openings, self.settings).run(), name="growth")

    @contextlib.asynccontextmanager
    async def _connected(self, role: Role, gate: Gate) -> AsyncIterator[Api]:
        yield MemoryApi(self.server, user=USERS[role], gate=gate)
