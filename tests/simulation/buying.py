"""A stage for the provisioner: a simulated cluster with our kinds, a cloud that does what a test says, and machines that join on call."""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from growth.api import names
from growth.api.crds import all_crds
from growth.api.decisions import DECISION, DecisionSpec
from growth.api.events import EVENT
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim
from growth.api.kinds import Json, Kind
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.api.nodes import NODE
from growth.cluster.state import State
from growth.controllers.buffers import Buffers
from growth.controllers.decisions import Decisions
from growth.controllers.environment import Environment
from growth.controllers.provisioning.provisioner import Provisioner
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
from growth.units import print_time
from growth.units.resources import quantities
from tests.manifests import node_pool
from tests.simulation.clouds import ScriptedCloud

R = TypeVar("R")

DEFINITION: Kind[Json] = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False, type=dict
)


READY_SECONDS = 10.0  # a kubelet needs some


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
        state.catalogue = cloud.sold
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


class Buyer:
    """A provisioner with everything that it needs, running."""

    def __init__(self, stage: Stage, env: Environment) -> None:
        self.env = env
        self.decisions = Decisions(env)
        self.buffers = Buffers(env)
        self.provisioner = Provisioner(env, decisions=self.decisions, headroom=self.buffers)
        self.tasks = stage.start(
            env.state.run(), env.events.run(), self.decisions.run(), self.buffers.run(), self.provisioner.run()
        )


async def claims(stage: Stage) -> list[NodeClaim]:
    return list((await stage.admin.list(NODE_CLAIM)).items)


async def told(stage: Stage, reason: str) -> list[str]:
    """The messages of events, by reason."""
    return [each.message for each in (await stage.admin.list(EVENT)).items if each.reason == reason]


async def decided(stage: Stage) -> list[DecisionSpec]:
    return sorted((each.spec for each in (await stage.admin.list(DECISION)).items), key=lambda spec: spec.at)


async def join(stage: Stage, made: NodeClaim, *, kind: str = "") -> str:
    """The claim's machine comes up as the cheapest of its types, is registered and initialised; its node's name."""
    listed = next(each.values for each in made.spec.requirements if each.key == names.INSTANCE_TYPE_LABEL)
    bought = next(each for each in builtin("kwok").types if each.name == (kind or listed[0]))
    labels = {
        **made.metadata.labels,
        names.INSTANCE_TYPE_LABEL: bought.name,
        names.ZONE_LABEL: "test-zone-a",
        names.CAPACITY_TYPE_LABEL: "on-demand",
        names.ARCH_LABEL: "amd64",
        names.OS_LABEL: "linux",
    }
    name = made.metadata.name
    room = {"capacity": {**quantities(bought.capacity)}, "allocatable": {**quantities(bought.allocatable)}}
    await stage.admin.patch(NODE_CLAIM, name, {"metadata": {"labels": labels}})
    status = {"providerID": f"kwok://{name}", "nodeName": name, **room}
    await stage.admin.patch(NODE_CLAIM, name, {"status": status}, subresource="status")
    own = {**labels, names.HOSTNAME_LABEL: name, names.REGISTERED_LABEL: "true"}
    body = {"metadata": {"name": name, "labels": own}, "spec": {"providerID": f"kwok://{name}"}}
    await stage.admin.create(NODE, body)
    await stage.admin.patch(NODE, name, {"status": room}, subresource="status")
    await asyncio.sleep(READY_SECONDS)
    now = print_time(stage.clock.now())
    done = [
        {"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": now}
        for type_ in (names.LAUNCHED, names.REGISTERED, names.INITIALIZED)
    ]
    await stage.admin.patch(NODE_CLAIM, name, {"status": {"conditions": done}}, subresource="status")
    await stage.admin.patch(NODE, name, {"metadata": {"labels": {names.INITIALIZED_LABEL: "true"}}})
    return name
