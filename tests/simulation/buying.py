"""What tests of controllers stand on: a simulated cluster with our kinds, a scripted cloud, and an environment for both."""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from growth.api.clouds import CloudMachine, RepairPolicy
from growth.api.crds import all_crds
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NODE_POOL, NodeClaim
from growth.api.kinds import Json, Kind
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.cluster.state import State
from growth.controllers.environment import Environment
from growth.controllers.settings import ControllerSettings
from growth.kube.api import Api
from growth.kube.events import Recorder
from growth.kube.memory import MemoryApi
from growth.providers.catalogues import builtin
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel, Run
from growth.sim.ports import SimCompute, SimRandom
from growth.sim.world.cluster import SimCluster
from growth.telemetry.metrics import Metrics
from tests.manifests import node_pool

R = TypeVar("R")

DEFINITION: Kind[Json] = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False, type=dict
)


class ScriptedCloud:
    """A cloud that only says what it sells."""

    name = "scripted"
    node_classes: Sequence[Kind[Any]] = (KWOK_NODE_CLASS,)

    def __init__(self, catalogue: Catalogue | None = None) -> None:
        self.sells = catalogue or builtin("kwok")

    async def create(self, claim: NodeClaim) -> CloudMachine:
        raise NotImplementedError

    async def delete(self, claim: NodeClaim) -> None:
        raise NotImplementedError

    async def get(self, provider_id: str) -> CloudMachine:
        raise NotImplementedError

    async def list(self) -> Sequence[CloudMachine]:
        return ()

    async def catalogue(self) -> Catalogue:
        return self.sells

    async def is_drifted(self, claim: NodeClaim) -> str:
        return ""

    def repair_policies(self) -> Sequence[RepairPolicy]:
        return ()


class Stage:
    """A simulated cluster with one NodePool's worth of definitions, and environments to run controllers in."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.cluster = SimCluster(kernel)
        self.admin = self.cluster.admin
        self.clock = self.cluster.clock
        self._tasks: list[asyncio.Task[Any]] = []

    async def begin(self, *objects: tuple[Kind[Any], Json]) -> None:
        for definition in all_crds():
            await self.admin.create(DEFINITION, definition)
        await self.admin.create(KWOK_NODE_CLASS, {"metadata": {"name": "default"}, "spec": {}})
        for kind, body in objects:
            await self.admin.create(kind, body, namespace="default" if kind.namespaced else "")
        self.cluster.start()

    async def add_pool(self, name: str = "default", *requirements: Json, **more: Any) -> None:
        await self.admin.create(NODE_POOL, node_pool(name, *requirements, **more))

    def environment(
        self,
        *,
        api: Api | None = None,
        cloud: ScriptedCloud | None = None,
        name: str = "growth",
        settings: ControllerSettings | None = None,
    ) -> Environment:
        random = SimRandom(self.kernel.seed, name)
        cloud = cloud or ScriptedCloud()
        api = api or MemoryApi(self.cluster.server, user="growth")
        state = State(api, clock=self.clock, random=random.stream("state"), node_classes=cloud.node_classes)
        state.catalogue = cloud.sells
        return Environment(
            api=api,
            state=state,
            provider=cloud,
            clock=self.clock,
            random=random.stream("names"),
            compute=SimCompute(),
            events=Recorder(api, clock=self.clock, random=random.stream("events")),
            metrics=Metrics(CollectorRegistry()),
            settings=settings or ControllerSettings(),
            cluster="test",
        )

    def start(self, *parts: Coroutine[Any, Any, Any]) -> list[asyncio.Task[Any]]:
        """Runs them until the end of the simulation, or until they are cancelled."""
        started = [self.kernel.create_task(part) for part in parts]
        self._tasks += started
        return started


def staged(body: Callable[[Stage], Coroutine[Any, Any, R]], *, seed: int = 1, shuffle: bool = False) -> Run[R]:
    """Runs the body on a stage, in virtual time."""

    async def main(kernel: Kernel) -> R:
        return await body(Stage(kernel))

    return sim.run(main, seed=seed, shuffle=shuffle, limit_seconds=100_000)


def with_settings(**more: Any) -> ControllerSettings:
    return dataclasses.replace(ControllerSettings(), **more)
