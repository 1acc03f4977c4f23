"""A stage for controllers: a server with our kinds and a cloud that does what a test says; mostly in virtual time."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from growth.api import names
from growth.api.crds import all_crds
from growth.api.events import EVENT, Event
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodePool
from growth.api.kinds import Json, Kind
from growth.api.meta import Condition
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.api.nodes import NODE, Node
from growth.cluster.state import State
from growth.controllers.environment import Environment
from growth.controllers.settings import ControllerSettings
from growth.kube.api import Api, Page, PatchType, WatchEvent
from growth.kube.errors import Unreachable
from growth.kube.events import Recorder
from growth.kube.memory import MemoryApi, MemoryServer
from growth.ports import Clock, Random
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel, Run
from growth.sim.ports import SimClock, SimCompute, SimRandom
from growth.telemetry.metrics import Metrics
from tests.simulation.clouds import TYPE, ScriptedCloud

R = TypeVar("R")
T = TypeVar("T")

CRD: Kind[Json] = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False, type=dict
)
NOT_READY = {"key": names.NOT_READY_TAINT, "effect": "NoSchedule"}
UNREGISTERED = {"key": names.UNREGISTERED_TAINT, "effect": "NoExecute"}


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


class LateApi(MemoryApi):
    """Watches tell of changes only after ten seconds: of these kinds, or of all where none is named."""

    def __init__(self, api: MemoryApi, *kinds: Kind[Any]) -> None:
        super().__init__(api._server)
        self._kinds = kinds

    @contextlib.asynccontextmanager
    async def watch(self, kind: Kind[T], **how: Any) -> AsyncIterator[AsyncIterator[WatchEvent[T]]]:
        async with super().watch(kind, **how) as events:
            yield self._late(events) if kind in self._kinds or not self._kinds else events

    async def _late(self, events: AsyncIterator[WatchEvent[T]]) -> AsyncIterator[WatchEvent[T]]:
        async for event in events:
            await asyncio.sleep(10)
            yield event


class BlindApi(MemoryApi):
    """What kinds it is told to be blind to can be neither listed nor watched; reads of one object are counted."""

    def __init__(self, api: MemoryApi) -> None:
        super().__init__(api._server)
        self.blind: list[Kind[Any]] = []
        self.gets = 0

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        self.gets += 1
        return await super().get(kind, name, namespace=namespace)

    async def list(self, kind: Kind[T], **how: Any) -> Page[T]:
        self._look(kind)
        return await super().list(kind, **how)

    @contextlib.asynccontextmanager
    async def watch(self, kind: Kind[T], **how: Any) -> AsyncIterator[AsyncIterator[WatchEvent[T]]]:
        self._look(kind)
        async with super().watch(kind, **how) as events:
            yield events

    def _look(self, kind: Kind[Any]) -> None:
        if kind in self.blind:
            raise Unreachable(f"{kind} cannot be reached")


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
        direct = MemoryApi(server, user="growth")
        own = direct if api is None else api(direct)
        cloud = ScriptedCloud()
        env = environment(own, cloud, clock=clock, random=random, settings=settings)
        return await body(Stage(server=server, admin=admin, cloud=cloud, env=env, kernel=kernel))

    return sim.run(main, seed=seed, limit_seconds=1_000_000)
