"""`growth run` in a simulated process: the very code of the real one, on a network and a clock that are not.

The KWOK cloud's own half (`KwokCloud`) is no part of the process: machines survive a crash of Growth, and so does what
brings them up.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Final

from prometheus_client import CollectorRegistry

from growth.api.instance_types import Catalogue
from growth.kube.api import Api, Gate
from growth.kube.memory import MemoryApi, MemoryServer
from growth.operator.settings import Settings, read
from growth.operator.wiring import Autoscaler, Cloud, MakeCloud, Openings, Role
from growth.ports import Compute
from growth.providers.catalogues import builtin
from growth.providers.hetzner.client import DIALECT, HetznerApi
from growth.providers.hetzner.keeper import Keeper
from growth.providers.hetzner.provider import HetznerProvider
from growth.providers.http import Client, Secret
from growth.providers.kwok.faults import FaultBook
from growth.providers.kwok.provider import KwokProvider
from growth.providers.kwok.registrar import DEFAULT_REGISTRAR, Registrar, RegistrarSettings
from growth.providers.linode import keeper as linode_keeper
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.provider import LinodeProvider
from growth.sim import process
from growth.sim.kernel import Kernel
from growth.sim.network import Faults, NetworkApi
from growth.sim.ports import SimClock, SimCompute, SimRandom
from growth.sim.process import Exit, Process
from growth.sim.seams import PLAIN, Actor, Seams, Witness
from growth.sim.world import linode
from growth.sim.world.half import Half
from growth.sim.world.hetzner import ENDPOINT, TOKEN, HetznerHalf
from growth.sim.world.linode import LinodeHalf
from growth.telemetry.metrics import Metrics

USERS: Final = {Role.ELECTOR: "growth", Role.GROWTH: "growth", Role.CLOUD: "growth-kwok"}


def settings_of(**given: str) -> Settings:
    """Settings as flags would give them, by their names: `settings_of(maxNodes="10")`. The provider is kwok."""
    return read({"provider": "kwok", **given}, {})


class Replica:
    """One replica of the Deployment. `start` begins a process; each later one is another, with nothing remembered."""

    def __init__(
        self,
        kernel: Kernel,
        server: MemoryServer,
        *,
        name: str = "growth",
        settings: Settings | None = None,
        catalogue: Catalogue | None = None,
        faults: Faults | None = None,
        clock: SimClock | None = None,
        compute: Compute | None = None,
        cloud: MakeCloud | None = None,
        vendor: Callable[[], Half] | None = None,
        seams: Seams = PLAIN,
        witness: Witness | None = None,
    ) -> None:
        """`cloud` replaces the KWOK one, for tests that script their cloud; `vendor` does with that vendor's.

        `faults` are the network's, else the seams'.
        """
        self.name = name
        self.clock = clock or SimClock(kernel)
        self.networks: dict[Role, NetworkApi] = {}
        """The connections of the current process, to be broken by tests."""
        self.autoscaler: Autoscaler | None = None
        self.metrics: Metrics | None = None
        self.provider: KwokProvider | None = None
        self.process: Process | None = None
        self._kernel = kernel
        self._server = server
        self._settings = settings or settings_of()
        self._catalogue = catalogue or builtin("kwok")
        self._faults = faults
        self._compute = compute or SimCompute()
        self._cloud = cloud
        self._vendor = vendor
        self._seams = seams
        self._witness = witness
        self._starts = 0
        self.exits: list[Exit] = []
        """How its lives ended so far, where somebody keeps it."""

    def start(self) -> Process:
        self._starts += 1
        self.process = process.start(self._kernel, f"{self.name}-{self._starts}", self._main)
        return self.process

    def sleep(self, seconds: float) -> None:
        """Its machine is suspended: process, timers and monotonic clock stand still; boot time and everybody else go on."""
        if self.process is not None and not self.process.dead and not self.process.frozen:
            self.clock.sleep(seconds)
            self.process.sleep(seconds)

    async def keep(self, *, restart_seconds: float = 5.0) -> None:
        """Starts it, and again whenever it has ended, as a Deployment does; until cancelled."""
        while True:
            self.exits.append(await self.start().wait())
            await asyncio.sleep(restart_seconds)

    async def _main(self, own: Process) -> None:
        random = SimRandom(self._kernel.seed, own.name)
        self.metrics = metrics = Metrics(CollectorRegistry(auto_describe=False))
        self.autoscaler = Autoscaler(
            Openings(
                connect=lambda role, gate: self._connected(own, random, role, gate),
                cloud=self._cloud or (lambda api, *, cluster, gate: self._made(own, api, random, cluster, gate)),
                clock=self.clock,
                random=random.stream("growth"),
                compute=self._compute,
                metrics=metrics,
                identity=own.name,
            ),
            self._settings,
        )
        await self.autoscaler.run()

    @contextlib.asynccontextmanager
    async def _connected(self, own: Process, random: SimRandom, role: Role, gate: Gate) -> AsyncIterator[Api]:
        actor = Actor(self.name, own.name, role)
        user = USERS[role]
        api = MemoryApi(self._server, user=user) if self._witness is None else self._witness.api(actor, user=user)
        network = self.networks[role] = NetworkApi(
            self._seams.server_side(api, actor),
            kernel=self._kernel,
            random=random.stream(f"network {role}"),
            process=own,
            gate=gate,
            faults=self._seams.network(actor) if self._faults is None else self._faults,
            name=f"{own.name} {role}",
        )
        yield self._seams.connection(network, actor)

    def _made(self, own: Process, api: Api, random: SimRandom, cluster: str, gate: Gate) -> Cloud:
        half = self._vendor() if self._vendor is not None else None
        if isinstance(half, LinodeHalf):
            return self._of_linode(half, own, api, random=random, cluster=cluster, gate=gate)
        if isinstance(half, HetznerHalf):
            return self._of_hetzner(half, own, api, random=random, cluster=cluster, gate=gate)
        return self._kwok(own, api, random, cluster)  # it writes through `api` alone

    def _of_hetzner(
        self, half: HetznerHalf, own: Process, api: Api, *, random: SimRandom, cluster: str, gate: Gate
    ) -> Cloud:
        actor, stream = Actor(self.name, own.name, Role.CLOUD), random.stream("hetzner")
        client = Client(
            DIALECT,
            endpoint=ENDPOINT,
            token=Secret(TOKEN),
            transport=half.transport(actor, own, lambda: self.networks.get(Role.CLOUD)),
            clock=self.clock,
            random=stream,
            gate=gate,
        )
        provider = HetznerProvider(
            api,
            HetznerApi(client),
            cluster=cluster,
            namespace=self._settings.controllers.namespace,
            clock=self.clock,
            random=stream.stream("provider"),
            refused_seconds=self._settings.controllers.refused_ttl,
        )
        keeper = Keeper(api, provider, clock=self.clock, random=stream.stream("keeper"))
        return Cloud(self._seams.provider(provider, actor), (keeper,))

    def _of_linode(
        self, half: LinodeHalf, own: Process, api: Api, *, random: SimRandom, cluster: str, gate: Gate
    ) -> Cloud:
        actor, stream = Actor(self.name, own.name, Role.CLOUD), random.stream("linode")
        cloud = LinodeApi(
            endpoint=linode.ENDPOINT,
            token=Secret(linode.TOKEN),
            transport=half.transport(actor, own, lambda: self.networks.get(Role.CLOUD)),
            clock=self.clock,
            random=stream,
            gate=gate,
        )
        provider = LinodeProvider(
            api,
            cloud,
            cluster=cluster,
            lke_cluster=self._settings.process.linode_cluster,
            region=self._settings.process.linode_region,
            namespace=self._settings.controllers.namespace,
            clock=self.clock,
            random=stream.stream("provider"),
            refused_seconds=self._settings.controllers.refused_ttl,
        )
        keeper = linode_keeper.Keeper(api, cloud, provider, clock=self.clock, random=stream.stream("keeper"))
        return Cloud(self._seams.provider(provider, actor), (keeper,))

    def _kwok(self, own: Process, api: Api, random: SimRandom, cluster: str) -> Cloud:
        self.provider = KwokProvider(
            api,
            catalogue=self._catalogue,
            cluster=cluster,
            namespace=self._settings.controllers.namespace,
            clock=self.clock,
            random=random.stream("kwok"),
            refused_seconds=self._settings.controllers.refused_ttl,
        )
        return Cloud(self._seams.provider(self.provider, Actor(self.name, own.name, Role.CLOUD)))


@dataclasses.dataclass
class KwokCloud:
    """The cloud's own half, outside of every process. `faults.fixed` makes things go wrong without a ConfigMap."""

    registrar: Registrar
    faults: FaultBook

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        server: MemoryServer,
        *,
        cluster: str,
        namespace: str = "growth",
        settings: RegistrarSettings = DEFAULT_REGISTRAR,
        api: Api | None = None,
    ) -> "KwokCloud":
        """`cluster` is the cluster's identity, by `growth.operator.checks.identity_of`."""
        clock = SimClock(kernel)
        api = api or MemoryApi(server, user="growth-kwok")
        faults = FaultBook(api, namespace=namespace, clock=clock)
        random = SimRandom(kernel.seed, "kwok cloud")
        registrar = Registrar(
            api, cluster=cluster, namespace=namespace, clock=clock, random=random, faults=faults, settings=settings
        )
        return cls(registrar, faults)

    def start(self, kernel: Kernel) -> asyncio.Task[None]:
        return kernel.create_task(self.registrar.run(), name="kwok cloud")
