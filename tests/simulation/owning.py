"""A stage for controllers: a server with our kinds and a cloud that does what a test says; mostly in virtual time."""

import asyncio
import collections
import dataclasses
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from growth.api import names
from growth.api.clouds import CloudError, CloudMachine, MachineNotFound, RepairPolicy
from growth.api.crds import all_crds
from growth.api.events import EVENT, Event
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodePool
from growth.api.kinds import Json, Kind
from growth.api.meta import Condition
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.api.nodes import NODE, Node
from growth.cluster.state import State
from growth.controllers.environment import Environment
from growth.controllers.settings import ControllerSettings
from growth.kube.api import Api, PatchType
from growth.kube.events import Recorder
from growth.kube.memory import MemoryApi, MemoryServer
from growth.ports import Clock, Random
from growth.providers.catalogues import kwok
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel, Run
from growth.sim.ports import SimClock, SimCompute, SimRandom
from growth.telemetry.metrics import Metrics

R = TypeVar("R")

CRD: Kind[Json] = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False, type=dict
)
TYPE = "c-4x-amd64-linux"
NOT_READY = {"key": names.NOT_READY_TAINT, "effect": "NoSchedule"}
UNREGISTERED = {"key": names.UNREGISTERED_TAINT, "effect": "NoExecute"}


class ScriptedCloud:
    """Machines by the uid of their claim, as the contract asks. `failures` are raised by the next creations, in turn."""

    name = "scripted"
    node_classes: Sequence[Kind[Any]] = (KWOK_NODE_CLASS,)

    def __init__(self) -> None:
        self.machines: dict[str, CloudMachine] = {}
        self.failures: list[Exception] = []
        self.always: Exception | None = None
        self.calls: collections.Counter[str] = collections.Counter()
        self.delays: dict[str, float] = {}
        self.sold: Catalogue = kwok.catalogue()

    async def create(self, claim: NodeClaim) -> CloudMachine:
        self.calls["create"] += 1
        await asyncio.sleep(self.delays.get(claim.metadata.name, 0.01))
        if self.always is not None:
            raise self.always
        if self.failures:
            raise self.failures.pop(0)
        return self.machines.setdefault(claim.metadata.uid, self._machine(claim))

    def _machine(self, claim: NodeClaim) -> CloudMachine:
        (kind,) = (each for each in self.sold.types if each.name == TYPE)
        return CloudMachine(
            provider_id=f"scripted://{claim.metadata.name}",
            claim=claim.metadata.name,
            claim_uid=claim.metadata.uid,
            instance_type=TYPE,
            zone="test-zone-a",
            capacity_type="on-demand",
            image_id="image-1",
            labels={"kubernetes.io/arch": "amd64", "team": "the-provider"},
            capacity=kind.capacity,
            allocatable=kind.allocatable,
        )

    async def delete(self, claim: NodeClaim) -> None:
        if self.machines.pop(claim.metadata.uid, None) is None:
            raise MachineNotFound(f"no machine of {claim.metadata.name}")

    async def get(self, provider_id: str) -> CloudMachine:
        for machine in self.machines.values():
            if machine.provider_id == provider_id:
                return machine
        raise MachineNotFound(provider_id)

    async def list(self) -> Sequence[CloudMachine]:
        return tuple(self.machines.values())

    async def catalogue(self) -> Catalogue:
        self.calls["catalogue"] += 1
        if self.failures and isinstance(self.failures[0], CloudError):
            raise self.failures.pop(0)
        return self.sold

    async def is_drifted(self, claim: NodeClaim) -> str:
        return ""

    def repair_policies(self) -> Sequence[RepairPolicy]:
        return ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnyStage:
    """What a test holds: an administrator's access to the server, the cloud, and what the controllers are given."""

    admin: Api
    cloud: ScriptedCloud
    env: Environment
    tasks: list[asyncio.Task[None]] = dataclasses.field(default_factory=list)

    async def start(self, *controllers: Any) -> None:
        """Runs controllers beside the state and the recorder, until the test ends."""
        self._run(self.env.state, "state")
        self._run(self.env.events, "events")
        await self.env.state.wait_synced()
        for controller in controllers:
            self._run(controller, type(controller).__name__)

    def _run(self, part: Any, name: str) -> None:
        self.tasks.append(asyncio.create_task(part.run(), name=name))

    async def add_pool(
        self, name: str = "default", *, annotations: Mapping[str, str] | None = None, **spec: Any
    ) -> NodePool:
        template = {
            "metadata": spec.pop("metadata", {}),
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [],
                **spec.pop("template", {}),
            },
        }
        body: Json = {
            "apiVersion": NODE_POOL.api_version,
            "kind": NODE_POOL.kind,
            "metadata": {"name": name, "annotations": dict(annotations or {})},
            "spec": {"template": template, **spec},
        }
        return await self.admin.create(NODE_POOL, body)

    async def add_class(self, name: str = "default") -> None:
        body = {"apiVersion": KWOK_NODE_CLASS.api_version, "kind": "KWOKNodeClass", "metadata": {"name": name}}
        await self.admin.create(KWOK_NODE_CLASS, body)

    async def add_claim(
        self,
        name: str = "web-1",
        *,
        pool: NodePool | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        finalizers: Sequence[str] = (names.TERMINATION_FINALIZER,),
        **spec: Any,
    ) -> NodeClaim:
        metadata: Json = {
            "name": name,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
            "finalizers": list(finalizers),
        }
        if pool is not None:
            metadata["labels"][names.NODE_POOL_LABEL] = pool.metadata.name
            metadata["ownerReferences"] = [
                {
                    "apiVersion": NODE_POOL.api_version,
                    "kind": NODE_POOL.kind,
                    "name": pool.metadata.name,
                    "uid": pool.metadata.uid,
                    "blockOwnerDeletion": True,
                }
            ]
        body: Json = {
            "apiVersion": NODE_CLAIM.api_version,
            "kind": NODE_CLAIM.kind,
            "metadata": metadata,
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [{"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [TYPE]}],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                **spec,
            },
        }
        return await self.admin.create(NODE_CLAIM, body)

    async def join(
        self,
        name: str = "node-1",
        *,
        provider_id: str = "scripted://web-1",
        ready: bool = True,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Json] = (UNREGISTERED,),
        allocatable: Mapping[str, str] | None = None,
    ) -> Node:
        """A kubelet registers its Node."""
        spec: Json = {"taints": [*taints]}
        if provider_id:
            spec["providerID"] = provider_id
        body: Json = {"metadata": {"name": name, "labels": {"kubelet": "own", **(labels or {})}}, "spec": spec}
        await self.admin.create(NODE, body)
        has = allocatable if allocatable is not None else {"cpu": "3900m", "memory": "8Gi", "pods": "64"}
        status: Json = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "64"}, "allocatable": dict(has)}
        await self.admin.patch(NODE, name, {"status": status}, subresource="status")
        return await self.set_ready(name) if ready else await self.node(name)

    async def set_ready(self, name: str = "node-1", status: str = "True") -> Node:
        condition = {"type": "Ready", "status": status, "reason": "Kubelet", "message": ""}
        patch = {"status": {"conditions": [condition]}}
        await self.admin.patch(NODE, name, patch, subresource="status", patch_type=PatchType.STRATEGIC)
        # The server taints new Nodes; the node controller takes the taint away once they are ready.
        raw = await self.admin.get(NODE.raw, name)
        taints = [each for each in raw["spec"].get("taints", ()) if each["key"] != names.NOT_READY_TAINT]
        return await self.admin.patch(NODE, name, {"spec": {"taints": taints or None}})

    async def set_taints(self, name: str, taints: Sequence[Json]) -> None:
        await self.admin.patch(NODE, name, {"spec": {"taints": [*taints] or None}})

    async def claim(self, name: str = "web-1") -> NodeClaim:
        return await self.admin.get(NODE_CLAIM, name)

    async def node(self, name: str = "node-1") -> Node:
        return await self.admin.get(NODE, name)

    async def pool(self, name: str = "default") -> NodePool:
        return await self.admin.get(NODE_POOL, name)

    async def has_claim(self, name: str = "web-1") -> bool:
        """Whether the claim is there and not on its way out."""
        claims = (await self.admin.list(NODE_CLAIM)).items
        return any(each.metadata.name == name and each.metadata.deletion_timestamp is None for each in claims)

    async def events(self, reason: str = "") -> list[Event]:
        return [each for each in (await self.admin.list(EVENT)).items if not reason or each.reason == reason]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage(AnyStage):
    """The stage in virtual time, on the server in process."""

    server: MemoryServer
    kernel: Kernel

    def writes(self) -> int:
        """By Growth, events left out."""
        told = self.env.events.statistics()
        return self.server.statistics().writes.get("growth", 0) - told.created - told.counted


def environment(
    api: Api,
    cloud: ScriptedCloud,
    *,
    clock: Clock,
    random: Random,
    settings: ControllerSettings | None = None,
) -> Environment:
    """What one process of controllers is given."""
    state = State(api, clock=clock, random=random, node_classes=cloud.node_classes)
    state.catalogue = cloud.sold
    return Environment(
        api=api,
        state=state,
        provider=cloud,
        clock=clock,
        random=random,
        compute=SimCompute(),
        events=Recorder(api, clock=clock, random=random),
        metrics=Metrics(CollectorRegistry()),
        settings=settings or ControllerSettings(),
        cluster="c1",
    )


def condition(item: NodeClaim | NodePool, type_: str) -> Condition:
    (found,) = [each for each in item.status.conditions if each.type == type_]
    return found


def told(item: NodeClaim | NodePool) -> dict[str, str]:
    """Every condition as «status reason», or the status alone where the reason says nothing more."""
    return {
        each.type: each.status if each.reason == each.type else f"{each.status} {each.reason}"
        for each in item.status.conditions
    }


def on_stage(
    body: Callable[[Stage], Coroutine[Any, Any, R]],
    *,
    seed: int = 1,
    settings: ControllerSettings | None = None,
    api: Callable[[MemoryApi], Api] | None = None,
) -> Run[R]:
    """Runs a test in virtual time. `api` may stand between the controllers and the server."""

    async def main(kernel: Kernel) -> R:
        random = SimRandom(kernel.seed, "stage")
        clock = SimClock(kernel)
        server = MemoryServer(clock, random.stream("server"))
        admin = MemoryApi(server, user="admin")
        for definition in all_crds():
            await admin.create(CRD, definition)
        own: Api = MemoryApi(server, user="growth")
        if api is not None:
            own = api(MemoryApi(server, user="growth"))
        cloud = ScriptedCloud()
        env = environment(own, cloud, clock=clock, random=random, settings=settings)
        return await body(Stage(server=server, admin=admin, cloud=cloud, env=env, kernel=kernel))

    return sim.run(main, seed=seed, limit_seconds=1_000_000)
