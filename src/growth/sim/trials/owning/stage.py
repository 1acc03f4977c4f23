"""A simulated cluster with an autoscaler in it, and the ledger that counts beside them.

The machines' side (the KWOK cloud's registrar, kubelets, scheduler, workloads) belongs to no process: it lives on when
the autoscaler dies, as machines do.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ClassVar, Final, TypeVar

import msgspec

from growth.api.coordination import LEASE
from growth.api.core import NAMESPACE
from growth.api.crds import all_crds
from growth.api.growthpools import GROWTH_POOL
from growth.api.karpenter import NODE_POOL
from growth.api.kinds import Json, Kind
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.api.pods import Pod
from growth.api.workloads import DEPLOYMENT
from growth.kube.api import ALWAYS_OPEN, Api, Gate
from growth.kube.memory import MemoryApi, MemoryServer
from growth.operator.checks import identity_of
from growth.providers.kwok.kubelets import KubeletSettings
from growth.providers.kwok.registrar import Registrar, RegistrarSettings
from growth.sim import process
from growth.sim.kernel import Kernel
from growth.sim.ledger import NO_CAPS, Caps, Ledger
from growth.sim.network import GOOD, Faults, NetworkApi
from growth.sim.ports import SimClock, SimRandom
from growth.sim.process import Exit, Fate, Process
from growth.sim.world.cluster import SimCluster, workload

T = TypeVar("T")

GROWTH_NAMESPACE: Final = "growth"
RESTART_SECONDS: Final = (0.5, 2.0)
LOOK_SECONDS: Final = 1.0
# Machines come up within seconds and nobody asks for heartbeats: what takes time here is the autoscaler.
QUICK_KUBELETS: Final = KubeletSettings(node_ready=(0.2, 2.0), pod_start=(0.1, 1.0), pod_stop=(0.1, 0.5), heartbeat=0.0)


class Seat:
    """What one life of a replica is given: its openings to the outside, all of which die with its process."""

    def __init__(self, replica: "Replica", own: Process, identity: str) -> None:
        self.process = own
        self.identity = identity
        self.clock = replica.clock
        self.random = replica.random.stream(identity)
        self.lease = replica.lease
        self._replica = replica

    def connect(self, user: str, gate: Gate = ALWAYS_OPEN) -> NetworkApi:
        """The API as this user sees it, over this replica's network."""
        return self._network(MemoryApi(self._replica.stage.cluster.server, user=user), self.process, gate)

    def elect(self) -> NetworkApi:
        """The way to the Lease: its renewals are no writes to crash after, and its network is good.

        Those who lose their Lease all the time would never get to buy anything.
        """
        replica = self._replica
        api = self._network(_NamedLease(replica.stage.cluster.server, replica.lease), None, ALWAYS_OPEN)
        api.faults = GOOD
        return api

    def _network(self, server: Api, own: Process | None, gate: Gate) -> NetworkApi:
        replica = self._replica
        api = NetworkApi(
            server,
            kernel=replica.stage.kernel,
            random=self.random.stream(f"network {len(replica.networks)}"),
            process=own,
            gate=gate,
            faults=replica.faults,
            name=f"{self.identity} {len(replica.networks)}",
        )
        replica.networks.append(api)
        return api


class _NamedLease(MemoryApi):
    """Keeps the Lease under a name of its own: two replicas with two Leases both believe that they lead."""

    def __init__(self, server: MemoryServer, lease: str) -> None:
        super().__init__(server, user="growth-elector")
        self._lease = lease

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        return await super().get(kind, self._lease if kind.plural == LEASE.plural else name, namespace=namespace)

    async def create(self, kind: Kind[T], body: msgspec.Struct | Mapping[str, Any], *, namespace: str = "") -> T:
        assert isinstance(body, Mapping)
        assert kind.plural == LEASE.plural, "an elector creates its Lease and nothing else"
        named = {**body, "metadata": {**body["metadata"], "name": self._lease}}
        return await super().create(kind, named, namespace=namespace)

    async def patch(self, kind: Kind[T], name: str, *args: Any, **kwargs: Any) -> T:
        assert name
        return await super().patch(kind, self._lease, *args, **kwargs)


Body = Callable[["Stage", Seat], Coroutine[Any, Any, None]]


class Replica:
    """One replica: a process that is started again whenever it ends."""

    def __init__(self, stage: "Stage", name: str, body: Body, *, faults: Faults, lease: str) -> None:
        self.stage = stage
        self.name = name
        self.faults = faults
        self.lease = lease
        self.random = SimRandom(stage.kernel.seed, f"replica {name}")
        self.clock = SimClock(stage.kernel, skew_seconds=self.random.uniform(-2.0, 2.0))
        self.process: Process | None = None
        self.networks: list[NetworkApi] = []
        self.exits: list[Exit] = []
        self.writes = 0
        self._body = body
        self._crash_after: int | None = None
        self._lives = 0

    async def keep(self) -> None:
        """Runs it until the simulation ends."""
        while True:
            self._start()
            assert self.process is not None
            ended = await self.process.wait()
            self.writes += self.process.writes
            self.exits.append(ended)
            if ended.fate is Fate.FAILED and ended.error is not None and not self.stage.forgives(ended.error):
                raise AssertionError(f"{self.name} ended by itself: {ended.error!r}") from ended.error
            await asyncio.sleep(self.random.uniform(*RESTART_SECONDS))

    def _start(self) -> None:
        self._lives += 1
        identity = f"{self.name}-{self._lives}"
        self.networks = []
        self.process = process.start(
            self.stage.kernel, identity, lambda own: self._body(self.stage, Seat(self, own, identity))
        )
        if self._crash_after is not None:
            self.process.crash_after_write(self._crash_after)
            self._crash_after = None

    def crash_after_write(self, n: int) -> None:
        """The n-th write from now on is its last."""
        if self.process is None or self.process.dead:
            self._crash_after = n
        else:
            self.process.crash_after_write(n)

    def mend(self) -> None:
        """From now on its network is good."""
        self.faults = GOOD
        for network in self.networks:
            network.faults = GOOD

    @property
    def written(self) -> int:
        """Writes of all its lives that a server applied."""
        alive = self.process is not None and not self.process.dead
        return self.writes + (self.process.writes if alive and self.process is not None else 0)

    @property
    def crashed(self) -> int:
        return sum(each.fate is Fate.CRASHED for each in self.exits)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A NodePool of small machines, scaled down soon after they are empty."""

    name: str = "default"
    nodes: int | None = None
    cpu: str = ""
    sizes: tuple[str, ...] = ("4", "8")
    consolidate_after: str = "5s"
    policy: str = "WhenEmpty"
    limit_mode: str = "Hard"
    kind: ClassVar[Kind[Any]] = NODE_POOL

    def body(self) -> Json:
        wanted = [
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": list(self.sizes)},
        ]
        uses = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
        limits: Json = {} if self.nodes is None else {"nodes": str(self.nodes)}
        if self.cpu:
            limits["cpu"] = self.cpu
        spec: Json = {
            "template": {"spec": {"nodeClassRef": uses, "requirements": wanted, "expireAfter": "Never"}},
            "disruption": {
                "consolidationPolicy": self.policy,
                "consolidateAfter": self.consolidate_after,
                "budgets": [{"nodes": "100%"}],
                "nodeLimitMode": self.limit_mode,
            },
        }
        if limits:
            spec["limits"] = limits
        return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": self.name}, "spec": spec}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerPool:
    """A pool of growth.dev; `types` are (server type, min, max)."""

    name: str = "default"
    nodes: int | None = None
    types: tuple[tuple[str, int, int], ...] = (("c-4x-amd64-linux", 0, 10), ("c-8x-amd64-linux", 0, 10))
    scale_down_after: str = "5s"
    optimise: str = "WhenEmpty"
    kind: ClassVar[Kind[Any]] = GROWTH_POOL

    def body(self) -> Json:
        spec: Json = {
            "serverTypes": [{"name": name, "min": least, "max": most} for name, least, most in self.types],
            "scaleDownAfter": self.scale_down_after,
            "optimise": self.optimise,
        }
        if self.nodes is not None:
            spec["limits"] = {"nodes": self.nodes}
        return {"apiVersion": "growth.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": self.name}, "spec": spec}


class Stage:
    """Make it inside a run of the kernel, `await prepare()`, then `start` replicas and `settle`."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        caps: Caps = NO_CAPS,
        late_writes: bool = False,
        forgiven: tuple[type[Exception], ...] = (),
        kubelets: KubeletSettings = QUICK_KUBELETS,
    ) -> None:
        self.kernel = kernel
        self.random = SimRandom(kernel.seed, "stage")
        self.caps = caps
        self.cluster = SimCluster(kernel, kubelets=kubelets)
        self.admin = self.cluster.admin
        self.ledger = Ledger(caps=caps, late_writes=late_writes)
        self.replicas: list[Replica] = []
        self._keeping: list[asyncio.Task[None]] = []
        self._forgiven = forgiven

    def forgives(self, error: Exception) -> bool:
        """Ends that are part of a process's contract: a lease that was lost."""
        return isinstance(error, self._forgiven)

    async def prepare(self, *pools: Pool | ServerPool) -> None:
        """Our kinds, our namespace, the pools and their node class; the world begins to move."""
        server = self.cluster.server
        definitions = server.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        for body in all_crds():
            server.create(definitions, body, user="admin")
        await self.admin.create(NAMESPACE, {"metadata": {"name": GROWTH_NAMESPACE}})
        self.ledger.attach(self.cluster.server)
        await self.admin.create(KWOK_NODE_CLASS, {"metadata": {"name": "default"}})
        for pool in pools:
            await self.admin.create(pool.kind, pool.body())
        self.cluster.start()
        cloud = MemoryApi(server, user="growth-kwok")
        registrar = Registrar(
            cloud,
            cluster=await identity_of(self.admin),
            namespace=GROWTH_NAMESPACE,
            clock=self.cluster.clock,
            random=self.random.stream("registrar"),
            settings=RegistrarSettings(deletion=1.0, node_removal=0.5),
        )
        self._keeping.append(self.kernel.create_task(registrar.run(), name="registrar"))

    def start(self, name: str, body: Body, *, faults: Faults = GOOD, lease: str = "growth") -> Replica:
        replica = Replica(self, name, body, faults=faults, lease=lease)
        self.replicas.append(replica)
        self._keeping.append(self.kernel.create_task(replica.keep(), name=f"keep {name}"))
        return replica

    async def deploy(self, name: str, replicas: int, *, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> None:
        """`spec` is what else the pods say."""
        container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
        body = workload(name, replicas, containers=[container], **spec)
        await self.admin.create(DEPLOYMENT, body, namespace="default")

    async def scale(self, name: str, replicas: int) -> None:
        await self.admin.patch(DEPLOYMENT, name, {"spec": {"replicas": replicas}}, namespace="default")

    async def pods(self) -> list[Pod]:
        return await self.cluster.pods()

    async def settle(self, *, pods: int | None, seconds: float, machines: int | None = None, hold: float = 5.0) -> None:
        """Returns when `pods` pods exist and all run (None: whatever runs), and machines = claims = Nodes, for a while.

        A broken rule of the ledger, or a mismatch that lasts longer than `seconds`, is an AssertionError.
        """
        deadline = self.kernel.time() + seconds
        since: float | None = None
        while True:
            self.check()
            wrong = self.ledger.settled() or await self._pods_wrong(pods) or self._machines_wrong(machines)
            now = self.kernel.time()
            if wrong:
                since = None
            elif since is None:
                since = now
            elif now - since >= hold:
                return
            assert now < deadline, f"not settled after {seconds} s: {'; '.join(wrong[:5])}"
            await asyncio.sleep(LOOK_SECONDS)

    def check(self) -> None:
        """Raises on a broken rule, and when a replica ended in a way that it must not."""
        for task in self._keeping:
            if task.done():
                task.result()
        assert not self.ledger.complaints, "; ".join(str(each) for each in self.ledger.complaints[:3])

    async def _pods_wrong(self, wanted: int | None) -> tuple[str, ...]:
        if wanted is None:
            return ()
        pods = await self.pods()
        running = sum(
            pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None and bool(pod.spec.node_name)
            for pod in pods
        )
        return () if running == len(pods) == wanted else (f"{running} of {len(pods)} pods run, of {wanted} wanted",)

    def _machines_wrong(self, wanted: int | None) -> tuple[str, ...]:
        there, _, _ = self.ledger.count()
        return () if wanted is None or there == wanted else (f"{there} machines, of {wanted} wanted",)
