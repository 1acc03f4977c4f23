"""A pod is bound to a node while it is being scaled down, at every moment at which that can happen."""

import asyncio
import contextlib
import dataclasses
from typing import Any, TypeVar

import pytest

from growth.api import names
from growth.api.clouds import CloudMachine, MachineNotFound
from growth.api.growthpools import GROWTH_POOL, NODE_REMOVAL_REQUEST
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json, Kind
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.controllers.growth import marking
from growth.controllers.growth.removals import Removals
from growth.controllers.growth.scaling import ScaleDown
from growth.controllers.settings import ControllerSettings
from growth.controllers.termination import Termination
from growth.kube.api import Api, Page
from growth.kube.errors import ApiError
from growth.kube.memory import MemoryApi
from growth.units import print_time
from tests.manifests import growth_pool, pod
from tests.simulation.clouds import TYPE, ScriptedCloud
from tests.simulation.owning import Stage, on_stage

T = TypeVar("T")

NAME = "default-pool-1"
SETTINGS = ControllerSettings(disruption_poll=2.0, nomination=0.0, delete_poll=1.0, removal_retry_after=20.0)
GONE_SECONDS = 30.0


class SlowCloud(ScriptedCloud):
    """Takes a machine down some time after it was asked; remembers whether the pod was bound when the last call began."""

    def __init__(self, watcher: "Watcher") -> None:
        super().__init__()
        self.watcher = watcher
        self.deleting_since: float | None = None
        self.sent: list[bool] = []

    @property
    def gone(self) -> bool:
        since, now = self.deleting_since, asyncio.get_running_loop().time()
        return since is not None and now - since > GONE_SECONDS

    async def get(self, provider_id: str) -> CloudMachine:
        if self.gone:
            raise MachineNotFound(provider_id)
        return CloudMachine(provider_id=provider_id, claim=NAME, deleting=self.deleting_since is not None)

    async def delete(self, claim: NodeClaim) -> None:
        bound_before = self.watcher.bound_before
        await self.watcher.tick()
        if self.gone:
            raise MachineNotFound(claim.metadata.name)
        self.sent.append(bound_before)
        if self.deleting_since is None:
            self.deleting_since = asyncio.get_running_loop().time()


class Watcher(MemoryApi):
    """The controllers' way to the server: binds the pod just before their n-th call, counted from when they begin.

    `bound_before` says whether it was bound when their latest call began, so that this call could have shown it.
    """

    def __init__(self, api: MemoryApi, moment: int) -> None:
        super().__init__(api._server, user="growth")
        self.moment = moment
        self.calls: int | None = None
        self.bound = False
        self.bound_at = 0.0
        self.shown = False
        self.bound_before = False
        self.admin: Api = MemoryApi(api._server, user="admin")

    async def tick(self) -> None:
        self.bound_before = self.bound
        if self.calls is None:
            return
        self.calls += 1
        if self.calls == self.moment:
            await self._bind()

    async def _bind(self) -> None:
        with contextlib.suppress(ApiError):
            await self.admin.bind("late", namespace="default", node=NAME)
            running = {"status": {"phase": "Running"}}
            await self.admin.patch(POD, "late", running, namespace="default", subresource="status")
            self.bound, self.bound_at = True, asyncio.get_running_loop().time()

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        await self.tick()
        return await super().get(kind, name, namespace=namespace)

    async def list(self, kind: Kind[T], **how: Any) -> Page[T]:
        await self.tick()
        if kind == POD and how.get("fields") == f"spec.nodeName={NAME}":
            self.shown = self.bound
        return await super().list(kind, **how)

    async def patch(self, kind: Kind[T], name: str, *args: Any, **how: Any) -> T:
        await self.tick()
        return await super().patch(kind, name, *args, **how)

    async def create(self, kind: Kind[T], *args: Any, **how: Any) -> T:
        await self.tick()
        return await super().create(kind, *args, **how)


@dataclasses.dataclass(frozen=True)
class Seen:
    """What came of a scale-down. `shown`: the last look at the Node's pods could have shown the pod; `lost`: and it was
    bound after the machine was gone.
    """

    calls: int
    sent: int
    kept: bool
    drained: bool
    shown: bool
    lost: bool
    reported: bool


async def prepare(stage: Stage) -> None:
    body = growth_pool("default", {"name": TYPE, "max": 10}, scaleDownAfter="5s")
    await stage.admin.create(GROWTH_POOL, body)
    await stage.add_claim(NAME, labels={names.POOL_LABEL: "default", names.INSTANCE_TYPE_LABEL: TYPE})
    then = print_time(stage.env.clock.now())
    told = [
        {"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": then}
        for type_ in (names.LAUNCHED, names.REGISTERED, names.INITIALIZED)
    ]
    status: Json = {"providerID": f"scripted://{NAME}", "nodeName": NAME, "conditions": told}
    await stage.admin.patch(NODE_CLAIM, NAME, {"status": status}, subresource="status")
    node = {
        "metadata": {"name": NAME, "finalizers": [names.TERMINATION_FINALIZER]},
        "spec": {"providerID": f"scripted://{NAME}"},
    }
    await stage.admin.create(NODE, node)
    await stage.set_ready(NAME)
    await stage.admin.create(POD, pod("late"), namespace="default")


def bound_at(moment: int) -> Seen:
    """One scale-down, with the pod bound just before the n-th call."""

    async def body(stage: Stage) -> Seen:
        api = stage.env.api
        assert isinstance(api, Watcher)
        cloud = SlowCloud(api)
        object.__setattr__(stage.env, "provider", cloud)
        await prepare(stage)
        await stage.start(ScaleDown(stage.env), Removals(stage.env), Termination(stage.env))
        api.calls = 0
        for _ in range(120):
            await asyncio.sleep(1)
            if cloud.gone and NAME in {each.metadata.name for each in (await stage.admin.list(NODE)).items}:
                await stage.set_ready(NAME, "Unknown")  # its kubelet is silent
            if cloud.deleting_since is not None and not (await stage.admin.list(NODE_REMOVAL_REQUEST)).items:
                break
        nodes = {each.metadata.name for each in (await stage.admin.list(NODE)).items}
        pods = {each.metadata.name: each for each in (await stage.admin.list(POD)).items}
        assert not any(cloud.sent), "the cloud was asked although a look would have shown the pod"
        late = pods.get("late")
        kept = NAME in nodes and late is not None and late.spec.node_name == NAME and not cloud.sent
        if kept:
            node = await stage.admin.get(NODE, NAME)
            assert not node.spec.taints, "a node that stays must be usable"
        drained = late is None or late.metadata.deletion_timestamp is not None
        lost = api.shown and cloud.deleting_since is not None and api.bound_at - cloud.deleting_since > GONE_SECONDS
        reported = bool(await stage.events(names.LOST_WITH_MACHINE))
        assert api.calls is not None
        return Seen(api.calls, len(cloud.sent), kept, drained, api.shown, lost, reported)

    return on_stage(body, settings=SETTINGS, api=lambda direct: Watcher(direct, moment)).value


class SlowBooks(MemoryApi):
    """The server takes its time for what is written into pools, and a pod is bound meanwhile."""

    def __init__(self, api: MemoryApi, *, seconds: float) -> None:
        super().__init__(api._server, user="growth")
        self._admin = MemoryApi(api._server, user="admin")
        self._seconds = seconds

    async def patch(self, kind: Kind[T], name: str, *args: Any, **how: Any) -> T:
        written = await super().patch(kind, name, *args, **how)
        if kind == GROWTH_POOL:
            await asyncio.sleep(self._seconds)
            with contextlib.suppress(ApiError):
                await self._admin.bind("late", namespace="default", node=NAME)
        return written


@pytest.mark.parametrize(("seconds", "asked"), [(0.5, 1), (10.0, 0)])
def test_a_look_that_is_long_ago_is_not_acted_upon(seconds: float, asked: int) -> None:
    """Between the look at the node and the request that it be removed are seconds at most."""

    async def body(stage: Stage) -> int:
        await prepare(stage)
        await stage.start(ScaleDown(stage.env))
        await asyncio.sleep(30)
        return len((await stage.admin.list(NODE_REMOVAL_REQUEST)).items)

    assert on_stage(body, settings=SETTINGS, api=lambda api: SlowBooks(api, seconds=seconds)).value == asked


class PromisedMeanwhile(MemoryApi):
    """A plan sends pods to the node while the pool's books are written: it is nominated, and loses its mark."""

    def __init__(self, api: MemoryApi) -> None:
        super().__init__(api._server, user="growth")
        self.stage: Stage | None = None

    async def patch(self, kind: Kind[T], name: str, *args: Any, **how: Any) -> T:
        written = await super().patch(kind, name, *args, **how)
        if kind == GROWTH_POOL and self.stage is not None:
            self.stage.env.state.nominate(NAME, seconds=120.0)
            await marking.unmark(self, await self.get(NODE, NAME))
        return written


def test_a_node_that_was_promised_to_pods_meanwhile_is_not_asked_to_go() -> None:
    """The removal would end by itself, but nobody should see it begin."""

    async def body(stage: Stage) -> int:
        assert isinstance(stage.env.api, PromisedMeanwhile)
        stage.env.api.stage = stage
        await prepare(stage)
        await stage.start(ScaleDown(stage.env))
        await asyncio.sleep(30)
        assert stage.env.state.nominated(NAME)
        return len((await stage.admin.list(NODE_REMOVAL_REQUEST)).items)

    assert on_stage(body, settings=SETTINGS, api=PromisedMeanwhile).value == 0


def test_without_a_pod_the_machine_goes() -> None:
    """An undisturbed scale-down ends in a request to the cloud; its calls are the moments that are tried below."""
    seen = bound_at(-1)
    assert seen.sent >= 1
    assert not seen.kept


def test_whenever_a_pod_is_bound_nothing_is_asked_over_its_head() -> None:
    """At every call: the node stays with its pod, or the pod is asked to leave, or an event says that it was lost.

    A pod that is bound after the last look, when the machine has long been gone, is for the pods' own garbage collector.
    """
    outcomes = {"kept": 0, "drained": 0, "lost": 0}
    for moment in range(1, bound_at(-1).calls + 1):
        seen = bound_at(moment)
        assert seen.kept or seen.drained or seen.lost or not seen.shown, f"bound at call {moment} and forgotten: {seen}"
        assert seen.reported or not seen.lost, f"bound at call {moment} and lost without an event: {seen}"
        outcomes["kept"] += seen.kept
        outcomes["drained"] += seen.drained
        outcomes["lost"] += seen.lost
    assert all(outcomes.values()), outcomes
