"""Machines that are up, with pods on them, in one line each; and who ends pods in a simulated cluster."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NodeClaim, NodePool
from growth.api.kinds import Json, Kind
from growth.api.nodes import NODE
from growth.api.pods import POD, Pod
from growth.api.policy import POD_DISRUPTION_BUDGET
from growth.api.workloads import DAEMON_SET, STATEFUL_SET
from growth.cluster.state import State
from growth.controllers.environment import Environment
from growth.controllers.launches import Launches
from growth.kube.api import Api
from growth.kube.errors import Conflict, OutcomeUnknown
from growth.kube.events import Recorder
from growth.kube.memory import MemoryApi
from growth.kube.passing import PassingApi, Write
from growth.providers.kwok.kubelets import Kubelets, KubeletSettings
from growth.sim.network import GOOD, Faults, NetworkApi
from growth.sim.ports import SimRandom
from growth.sim.process import Process, start
from growth.sim.world.budgets import Budgets
from growth.sim.world.view import View
from growth.telemetry.metrics import Metrics
from tests.simulation.clouds import TYPE
from tests.simulation.owning import Stage

R = TypeVar("R")
CLASS_LABEL = names.node_class_label("karpenter.kwok.sh", "KWOKNodeClass")


def start_kubelets(stage: Stage) -> Kubelets:
    """Ends pods that are deleted, and keeps disruption budgets."""
    api, clock, random = MemoryApi(stage.server, user="kubelets"), stage.env.clock, SimRandom(1, "kubelets")
    kubelets = Kubelets(api, clock=clock, random=random, settings=KubeletSettings(heartbeat=0))
    stage.kernel.create_task(kubelets.run(), name="kubelets")
    view = View(api, clock=clock, random=random)
    stage.kernel.create_task(view.run(), name="view")
    budgets = Budgets(api, view, clock=clock, random=random)
    stage.kernel.create_task(budgets.run(), name="budgets")
    return kubelets


async def add_owned(
    stage: Stage,
    name: str = "web-1",
    *,
    pool: NodePool | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Sequence[str] = (names.TERMINATION_FINALIZER,),
    ready: bool = True,
    **spec: Any,
) -> NodeClaim:
    """A claim whose machine is up: the Node `node-of-NAME` is registered, initialised and ready."""
    claim = await stage.add_claim(name, pool=pool, **spec)
    machine = await stage.cloud.create(claim)
    labels = {
        CLASS_LABEL: "default",
        names.REGISTERED_LABEL: "true",
        names.INITIALIZED_LABEL: "true",
        names.INSTANCE_TYPE_LABEL: TYPE,
        names.ZONE_LABEL: "test-zone-a",
        names.CAPACITY_TYPE_LABEL: "on-demand",
    }
    if pool is not None:
        labels[names.NODE_POOL_LABEL] = pool.metadata.name
    node = await stage.join(f"node-of-{name}", provider_id=machine.provider_id, labels=labels, taints=(), ready=ready)
    owner = {"apiVersion": NODE_CLAIM.api_version, "kind": "NodeClaim", "name": name, "uid": claim.metadata.uid}
    metadata: Json = {"finalizers": [*finalizers], "ownerReferences": [{**owner, "blockOwnerDeletion": True}]}
    if annotations:
        metadata["annotations"] = dict(annotations)
    await stage.admin.patch(NODE, node.metadata.name, {"metadata": metadata})
    when = f"{stage.env.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    conditions = [
        {"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": when}
        for type_ in (names.LAUNCHED, names.REGISTERED, names.INITIALIZED, names.READY)
    ]
    status = {
        "providerID": machine.provider_id,
        "nodeName": node.metadata.name,
        "conditions": conditions,
        "capacity": {"cpu": "4"},
        "allocatable": {"cpu": "3900m"},
    }
    await stage.admin.patch(NODE_CLAIM, name, {"metadata": {"labels": labels}})
    return await stage.admin.patch(NODE_CLAIM, name, {"status": status}, subresource="status")


async def add_pod(
    stage: Stage,
    name: str,
    *,
    node: str = "node-of-web-1",
    annotations: Mapping[str, str] | None = None,
    owner: str = "",
    labels: Mapping[str, str] | None = None,
    finalizers: Sequence[str] = (),
    **spec: Any,
) -> Pod:
    """A pod that runs on the node."""
    metadata: Json = {
        "name": name,
        "labels": dict(labels or {"app": name}),
        "annotations": dict(annotations or {}),
        "finalizers": list(finalizers),
    }
    if owner == "Node":
        holder = await stage.admin.get(NODE, node)
        metadata["ownerReferences"] = [_controller("v1", "Node", node, holder.metadata.uid)]
    elif owner:
        made = await _workload(stage, owner, f"of-{name}")
        metadata["ownerReferences"] = [_controller("apps/v1", owner, f"of-{name}", made)]
    container = {"name": "main", "image": "example"}
    body: Json = {"metadata": metadata, "spec": {"nodeName": node, "containers": [container], **spec}}
    await stage.admin.create(POD, body, namespace="default")
    now = f"{stage.env.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
    status = {"phase": "Running", "startTime": now, "conditions": [ready, scheduled]}
    return await stage.admin.patch(POD, name, {"status": status}, namespace="default", subresource="status")


def _controller(version: str, kind: str, name: str, uid: str) -> Json:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}


async def _workload(stage: Stage, kind: str, name: str) -> str:
    """A workload that owns a pod; without one the server would collect the pod. Its uid."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "example"}]},
    }
    spec: Json = {"selector": {"matchLabels": {"app": name}}, "template": template}
    if kind == "StatefulSet":
        spec["serviceName"] = "none"
    of_kind: Kind[Any] = {"DaemonSet": DAEMON_SET, "StatefulSet": STATEFUL_SET}[kind]
    made = await stage.admin.create(of_kind, {"metadata": {"name": name}, "spec": spec}, namespace="default")
    uid: str = made.metadata.uid
    return uid


async def add_budget(stage: Stage, name: str, *, app: str, **spec: Any) -> None:
    body: Json = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}
    await stage.admin.create(POD_DISRUPTION_BUDGET, body, namespace="default")
    await asyncio.sleep(1)


class Refusing(PassingApi):
    """Refuses one write, the `number`th of its process, though nobody else wrote: a conflict that leads nowhere.

    `lost` lets it be done instead, and loses the answer. `refused` is what was refused; `of` says which writes count.
    """

    def __init__(
        self, api: Api, number: int, *, lost: bool = False, of: Callable[[Write], bool] = lambda _: True
    ) -> None:
        super().__init__(api)
        self._number = number
        self._lost = lost
        self._of = of
        self.refused = ""

    async def _write(self, write: Write, send: Callable[[], Awaitable[R]]) -> R:
        if self._of(write):
            self._number -= 1
        if self._number or self.refused:
            return await send()
        self.refused = str(write)
        if not self._lost:
            raise Conflict("somebody else wrote first")
        await send()
        raise OutcomeUnknown("the connection broke before the answer was read")


def start_process(
    stage: Stage,
    *parts: Callable[[Environment], Any],
    crash_after: int = 0,
    faults: Faults = GOOD,
    name: str = "growth",
    through: Callable[[Api], Api] = lambda api: api,
) -> Process:
    """The controllers in a process of their own, behind a network; it dies after so many writes (0: not by itself)."""

    async def body(own: Process) -> None:
        random = SimRandom(stage.kernel.seed, f"{name}/{stage.kernel.time()}")
        server = MemoryApi(stage.server, user="growth")
        api = through(NetworkApi(server, kernel=stage.kernel, random=random, process=own, faults=faults))
        state = State(api, clock=stage.env.clock, random=random, node_classes=stage.cloud.node_classes)
        state.catalogue = stage.cloud.sold
        recorder = Recorder(MemoryApi(stage.server, user="events"), clock=stage.env.clock, random=random)
        env = dataclasses.replace(
            stage.env, api=api, state=state, random=random, events=recorder, launches=Launches(), metrics=new_metrics()
        )
        made = [part(env) for part in parts]
        async with asyncio.TaskGroup() as group:
            group.create_task(state.run())
            group.create_task(recorder.run())
            for one in made:
                group.create_task(one.run())

    process = start(stage.kernel, name, body)
    if crash_after:
        process.crash_after_write(crash_after)
    return process


def new_metrics() -> Metrics:
    return Metrics(CollectorRegistry())


async def pods(stage: Stage) -> list[str]:
    """Names of the pods that are there and not leaving."""
    return sorted(
        each.metadata.name for each in (await stage.admin.list(POD)).items if each.metadata.deletion_timestamp is None
    )


async def left(stage: Stage) -> tuple[int, int, int]:
    """How many claims, Nodes and machines there are."""
    counts = [len((await stage.admin.list(kind)).items) for kind in _COUNTED]
    return counts[0], counts[1], len(stage.cloud.machines)


_COUNTED: tuple[Kind[Any], ...] = (NODE_CLAIM, NODE)
