"""A small cluster in one object: the server in process, its scheduler, controllers and kubelets, and an administrator."""

import asyncio
from typing import Any

from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.pods import POD, Pod
from growth.api.workloads import DEPLOYMENT, REPLICA_SET
from growth.kube.api import Api
from growth.kube.memory import MemoryServer
from growth.operator.parts import Part
from growth.providers.kwok.kubelets import DEFAULT_KUBELETS, Kubelets, KubeletSettings
from growth.sim.kernel import Kernel
from growth.sim.ports import SimClock, SimRandom
from growth.sim.seams import PLAIN, Actor, Seams, Witness
from growth.sim.world.budgets import Budgets
from growth.sim.world.daemons import Daemons
from growth.sim.world.jobs import Jobs
from growth.sim.world.nodes import Nodes
from growth.sim.world.scheduler import Scheduler
from growth.sim.world.view import View
from growth.sim.world.volumes import Volumes
from growth.sim.world.workloads import Workloads


class SimCluster:
    """Start it inside a run of the kernel; it belongs to no process and lives until the run's end."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        kubelets: KubeletSettings = DEFAULT_KUBELETS,
        seams: Seams = PLAIN,
    ) -> None:
        random = SimRandom(kernel.seed, "cluster")
        self.clock = SimClock(kernel)
        self.server = MemoryServer(self.clock, random.stream("server"))
        self.witness = Witness(kernel, self.server)
        self._seams = seams
        self.admin = self.api("admin")
        self.view = view = View(self.api("view"), clock=self.clock, random=random.stream("view"))
        self.scheduler = Scheduler(self.api("scheduler"), view, clock=self.clock)
        self.workloads = Workloads(self.api("workloads"), view, clock=self.clock, random=random.stream("controllers"))
        self.jobs = Jobs(self.api("workloads"), view, clock=self.clock, random=random.stream("jobs"))
        self.daemons = Daemons(self.api("workloads"), view, clock=self.clock, random=random.stream("daemons"))
        self.budgets = Budgets(self.api("budgets"), view, clock=self.clock, random=random.stream("budgets"))
        self.volumes = Volumes(self.api("volumes"), view, random=random.stream("volumes"))
        self.kubelets = Kubelets(
            self.api("kubelets"), clock=self.clock, random=random.stream("kubelets"), settings=kubelets
        )
        # Without heartbeats in the store the kubelets are asked themselves.
        asked = None if kubelets.heartbeat else self.kubelets
        self.nodes = Nodes(self.api("nodes"), view, clock=self.clock, kubelets=asked)
        self._kernel = kernel
        self.tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        parts: dict[str, Part] = {
            "view": self.view,
            "scheduler": self.scheduler,
            "workloads": self.workloads,
            "jobs": self.jobs,
            "daemons": self.daemons,
            "budgets": self.budgets,
            "volumes": self.volumes,
            "nodes": self.nodes,
            "kubelets": self.kubelets,
        }
        for name, part in parts.items():
            self.tasks.append(self._kernel.create_task(part.run(), name=name))

    def api(self, name: str, *, user: str = "") -> Api:
        """The server as a part of this name uses it, through the seams and before the witness."""
        actor = Actor(name)
        return self._seams.part(self.witness.api(actor, user=user or name), actor)

    async def add_node(
        self,
        name: str,
        *,
        cpu: str = "4",
        memory: str = "8Gi",
        pods: int = 110,
        zone: str = "a",
        labels: dict[str, str] | None = None,
        taints: tuple[Json, ...] = (),
    ) -> Node:
        """A machine joins, not ready yet."""
        allocatable = {"cpu": cpu, "memory": memory, "pods": str(pods)}
        not_ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        own = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, **(labels or {})}
        body: Json = {"metadata": {"name": name, "labels": own}, "spec": {"taints": [not_ready, *taints]}}
        await self.admin.create(NODE, body)
        status = {"status": {"capacity": allocatable, "allocatable": allocatable}}
        return await self.admin.patch(NODE, name, status, subresource="status")

    async def add_replica_set(self, name: str, replicas: int, **spec: Any) -> None:
        """`spec` is of the pod, over one container that asks for one cpu and 1Gi."""
        await self.admin.create(REPLICA_SET, workload(name, replicas, **spec), namespace="default")

    async def add_deployment(self, name: str, replicas: int, **spec: Any) -> None:
        await self.admin.create(DEPLOYMENT, workload(name, replicas, **spec), namespace="default")

    async def pods(self) -> list[Pod]:
        return list((await self.admin.list(POD, namespace="default")).items)


def workload(name: str, replicas: int, **spec: Any) -> Json:
    """The body of a ReplicaSet or Deployment whose pods are labelled `app: NAME`."""
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    selector = {"matchLabels": {"app": name}}
    return {"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": selector, "template": template}}
