"""The whole simulated world in one object: a cluster, its cloud, and replicas of the real autoscaler in processes.

    kernel (virtual time) ─► MemoryServer ◄─ scheduler, workloads, budgets, nodes, kubelets   (`cluster`)
                                 ▲  ▲ ◄───── the KWOK cloud's own half                        (`cloud`)
                                 │  │        and, where Hetzner sells the machines, its API   (`hetzner`)
                                 │  └─────── replicas: `growth run`, unchanged, each a process (`replicas`)
                                 └── witness: every change, with who made it, to listeners

Those who disturb put themselves at `seams` (given at the start), or act on `replicas` (crash, freeze, network rates,
clock), `cloud.faults`, `cluster.kubelets` and `admin` while it runs. Those who watch append to `witness.listeners`.
`over` is set when the load and the disturbances are to end; what follows is calm.
"""

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import Any, Final

from growth.api.core import NAMESPACE
from growth.api.crds import all_crds
from growth.api.instance_types import Catalogue
from growth.api.kinds import Json, Kind
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.api.nodeclasses import HETZNER_NODE_CLASS, KWOK_NODE_CLASS
from growth.kube.api import Api
from growth.kube.errors import KubeError, NotFound
from growth.kube.lease import LeaseLost
from growth.kube.memory import MemoryServer
from growth.operator.checks import identity_of
from growth.operator.settings import Settings
from growth.providers.catalogues import builtin
from growth.providers.kwok.kubelets import KubeletSettings
from growth.providers.kwok.registrar import RegistrarSettings
from growth.sim.clouds.linode import STANDARD
from growth.sim.kernel import Kernel
from growth.sim.ports import SimClock, SimRandom
from growth.sim.process import Exit, Fate
from growth.sim.replica import KwokCloud, Replica, settings_of
from growth.sim.seams import PLAIN, Seams
from growth.sim.world.cloud_controller import CloudController, CloudControllerSettings
from growth.sim.world.cluster import SimCluster
from growth.sim.world.half import Half
from growth.sim.world.hetzner import HetznerHalf
from growth.sim.world.linode import LinodeHalf
from growth.sim.world.linode_instances import LinodeInstancesHalf
from growth.sim.world.recording import Ground
from growth.units import Duration

NAMESPACE_OF_GROWTH: Final = "growth"
HETZNER: Final = "hetzner"
LINODE: Final = "linode"
DEFINITION: Kind[Json] = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False, type=dict
)
# Machines as a cloud brings them up: half a minute to a minute and a half. Leases of Nodes bypass the store.
# One worker each: calls of the server in process wait for nothing.
KUBELETS: Final = KubeletSettings(
    node_ready=(2.0, 20.0), pod_start=(0.5, 5.0), pod_stop=(0.5, 10.0), heartbeat=0.0, workers=1
)
CLOUD: Final = RegistrarSettings(deletion=5.0, node_removal=2.0, workers=1)
REGISTRATION_DELAY: Final = "30s"
RESTART_SECONDS: Final = 5.0
# A replica's clock is this wrong at most.
SKEW_SECONDS: Final = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorldSettings:
    """How the world is set up. `replicas` are the names of the autoscaler's replicas; one of them leads."""

    growth: Settings = dataclasses.field(default_factory=settings_of)
    catalogue: Catalogue = dataclasses.field(default_factory=lambda: builtin("kwok"))
    replicas: tuple[str, ...] = ("growth-a", "growth-b")
    kubelets: KubeletSettings = KUBELETS
    cloud: RegistrarSettings = CLOUD
    registration_delay: str = REGISTRATION_DELAY
    node_class: Json = dataclasses.field(default_factory=dict)
    """What the class `default` of a vendor says."""
    cloud_controller: CloudControllerSettings | None = None
    """Of Hetzner's cloud controller manager; None where the cluster has none."""


class World:
    """Make it inside a run of the kernel, `await begin()`, add objects through `admin`, then `start()` the replicas."""

    def __init__(self, kernel: Kernel, settings: WorldSettings | None = None, *, seams: Seams = PLAIN) -> None:
        self.settings = settings or WorldSettings()
        self.kernel = kernel
        self.seams = seams
        self.random = SimRandom(kernel.seed, "world")
        self.cluster = SimCluster(kernel, kubelets=self.settings.kubelets, seams=seams)
        self.server = self.cluster.server
        self.witness = self.cluster.witness
        self.admin = self.cluster.admin
        self.over = asyncio.Event()
        self.quiet_from = 0.0
        """From when on (virtual seconds) the load and the disturbances rest."""
        self.changed_at = 0.0
        """When the load last changed something."""
        self.identity = ""
        """The cluster's identity in the cloud; known after `begin`."""
        self.replicas = [self._replica(name) for name in self.settings.replicas]
        self._cloud: KwokCloud | None = None
        self._vendor: Half | None = None
        self._tasks: list[asyncio.Task[Any]] = []

    @property
    def cloud(self) -> KwokCloud:
        assert self._cloud is not None, "the cloud is there after begin()"
        return self._cloud

    @property
    def vendor(self) -> Half | None:
        """The vendor's half, where machines are sold by an API; there after begin()."""
        return self._vendor

    @property
    def hetzner(self) -> HetznerHalf | None:
        return self._vendor if isinstance(self._vendor, HetznerHalf) else None

    @property
    def linode(self) -> LinodeHalf | None:
        return self._vendor if isinstance(self._vendor, LinodeHalf) else None

    async def begin(self) -> None:
        """Our kinds, our namespace and the node class `default`; scheduler, controllers, kubelets and cloud run."""
        for body in all_crds():
            await self.admin.create(DEFINITION, body)
        await self.admin.create(NAMESPACE, {"metadata": {"name": NAMESPACE_OF_GROWTH}})
        node_class: Json = {
            "metadata": {"name": "default"},
            "spec": {"nodeRegistrationDelay": self.settings.registration_delay},
        }
        await self.admin.create(KWOK_NODE_CLASS, node_class)
        self.identity = await identity_of(self.admin)
        self.cluster.start()
        self._cloud = KwokCloud.of(
            self.kernel,
            self.server,
            cluster=self.identity,
            namespace=NAMESPACE_OF_GROWTH,
            settings=self.settings.cloud,
            api=self.cluster.api("cloud", user="growth-kwok"),
        )
        self._tasks.append(self._cloud.start(self.kernel))
        await self._open_vendor()

    async def _open_vendor(self) -> None:
        """Where an API sells the machines: its half, and the node class `default` of its kind."""
        process = self.settings.growth.process
        ground = Ground(
            kernel=self.kernel,
            witness=self.witness,
            admin=self.admin,
            cluster=self.identity,
            namespace=NAMESPACE_OF_GROWTH,
            boot=Duration.parse(self.settings.registration_delay).timedelta,
        )
        node_class: Json = {"metadata": {"name": "default"}, "spec": self.settings.node_class}
        if process.provider == HETZNER:
            await self.admin.create(HETZNER_NODE_CLASS, node_class)
            controller = self.settings.cloud_controller
            self._vendor = half = HetznerHalf(ground, controller=controller)
            if controller is not None:
                api = self.cluster.api("cloud-controller")
                self.run(CloudController(api, self.cluster.view, controller, half.fake.machines).run())
        elif process.provider == LINODE:
            await self.admin.create(LINODE_NODE_CLASS, node_class)
            its_half = LinodeInstancesHalf if process.linode_region else LinodeHalf
            self._vendor = its_half(ground, tier=process.linode_cluster or STANDARD)
        if self._vendor is not None:
            self.seams.cloud(self._vendor)
            self._tasks.append(self._vendor.start())

    def start(self) -> None:
        """The replicas of the autoscaler begin, and begin again whenever they end."""
        for replica in self.replicas:
            keeping = replica.keep(restart_seconds=RESTART_SECONDS)
            self._tasks.append(self.kernel.create_task(keeping, name=f"keep {replica.name}"))

    def check(self) -> None:
        """Raises when a part of the world has ended, or the autoscaler in a way that its contract does not know."""
        for task in (*self._tasks, *self.cluster.tasks):
            if task.done():
                task.result()
        for replica in self.replicas:
            for end in replica.exits:
                if end.fate is Fate.RETURNED or not _is_contracted(end):
                    raise AssertionError(f"{replica.name} ended by itself: {end.error!r}") from end.error

    def run(self, *coroutines: Any) -> None:
        """Something else that goes on in the world, outside of every process."""
        for coroutine in coroutines:
            self._tasks.append(self.kernel.create_task(coroutine))

    def _replica(self, name: str) -> Replica:
        skew = self.random.stream(f"clock {name}").uniform(-SKEW_SECONDS, SKEW_SECONDS)
        return Replica(
            self.kernel,
            self.server,
            name=name,
            settings=self.settings.growth,
            catalogue=self.settings.catalogue,
            clock=SimClock(self.kernel, skew_seconds=skew),
            vendor=self._the_vendor if self.settings.growth.process.provider in {HETZNER, LINODE} else None,
            seams=self.seams,
            witness=self.witness,
        )

    def _the_vendor(self) -> Half:
        assert self._vendor is not None, "the cloud is there after begin()"
        return self._vendor

    async def create(self, bodies: Sequence[Json], *, api: Api | None = None) -> None:
        """Objects of any kind that the server serves, as `kubectl create` would; in the namespace `default` by default."""
        for body in bodies:
            kind, _, namespace = self.named(body)
            await (api or self.admin).create(kind, body, namespace=namespace)

    def named(self, body: Json) -> tuple[Kind[Json], str, str]:
        """The kind, name and namespace of a manifest; `NotFound` for a kind that is not served."""
        return named(self.server, body)


def named(server: MemoryServer, body: Json) -> tuple[Kind[Json], str, str]:
    """The kind, name and namespace of a manifest; `NotFound` for a kind that the server does not serve."""
    group, _, version = str(body.get("apiVersion", "")).rpartition("/")
    wanted = (group, version, body.get("kind", ""))
    found = next((each for each in server.catalogue if (each.group, each.version, each.kind) == wanted), None)
    if found is None:
        raise NotFound(f"the cluster serves no {wanted[2] or 'kind'} of {body.get('apiVersion') or 'no apiVersion'}")
    kind: Kind[Json] = Kind(group, version, found.kind, found.plural, namespaced=found.namespaced, type=dict)
    metadata = body.get("metadata") or {}
    return kind, metadata.get("name", ""), metadata.get("namespace", "default") if found.namespaced else ""


def _is_contracted(end: Exit) -> bool:
    """A crash is somebody's doing; a lost Lease, and a server that does not answer at the start, end it by design."""
    return end.fate is Fate.CRASHED or isinstance(end.error, LeaseLost | KubeError)
