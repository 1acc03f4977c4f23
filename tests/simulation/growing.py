"""The whole autoscaler with pools of growth.dev: Hetzner's catalogue, simulated machines, a scheduler, virtual time."""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from growth.api import names
from growth.api.core import CONFIG_MAP
from growth.api.events import EVENT
from growth.api.growthpools import (
    GROWTH_POOL,
    NODE_REMOVAL_REQUEST,
    NODE_REQUEST,
    GrowthPool,
    NodeRemovalRequest,
    NodeRequest,
)
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.pods import POD, Pod
from growth.controllers.settings import ControllerSettings
from growth.kube.lease import LeaseLost
from growth.providers.catalogues import builtin
from growth.providers.kwok.faults import FAULTS_CONFIG_MAP
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel, Run
from growth.sim.trials.owning.life import SETTINGS, Life
from growth.sim.trials.owning.stage import GROWTH_NAMESPACE, Replica, Stage
from tests.manifests import growth_pool

R = TypeVar("R")

HETZNER = builtin("hetzner", dedicated=True)
# The two pools that the README of this API begins with.
DEFAULT: Json = growth_pool(
    "default",
    {"name": "CAX11", "max": 10},
    {"name": "CAX21", "min": 1, "max": 5},
    {"name": "CAX31", "max": 1},
)
GPU: Json = growth_pool("gpu", {"name": "GEX44", "max": 5})


@dataclasses.dataclass
class Growing:
    """A simulated cluster with the autoscaler in it."""

    stage: Stage
    replica: Replica

    @property
    def admin(self) -> Any:
        return self.stage.admin

    async def pool(self, body: Json = DEFAULT) -> GrowthPool:
        made: GrowthPool = await self.admin.create(GROWTH_POOL, body)
        return made

    async def deploy(self, name: str, replicas: int, *, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> None:
        await self.stage.deploy(name, replicas, cpu=cpu, memory=memory, **spec)

    async def faults(self, **data: str) -> None:
        body = {"metadata": {"name": FAULTS_CONFIG_MAP}, "data": data}
        await self.admin.create(CONFIG_MAP, body, namespace=GROWTH_NAMESPACE)

    async def no_faults(self) -> None:
        await self.admin.delete(CONFIG_MAP, FAULTS_CONFIG_MAP, namespace=GROWTH_NAMESPACE)

    async def requests(self) -> list[NodeRequest]:
        return list((await self.admin.list(NODE_REQUEST)).items)

    async def removals(self) -> list[NodeRemovalRequest]:
        return list((await self.admin.list(NODE_REMOVAL_REQUEST)).items)

    async def claims(self) -> list[NodeClaim]:
        return list((await self.admin.list(NODE_CLAIM)).items)

    async def nodes(self) -> list[Node]:
        return list((await self.admin.list(NODE)).items)

    async def pods(self) -> list[Pod]:
        return list((await self.admin.list(POD)).items)

    async def types(self) -> list[str]:
        return sorted(each.metadata.labels.get(names.INSTANCE_TYPE_LABEL, "?") for each in await self.claims())

    async def told(self, reason: str) -> list[str]:
        return [each.message for each in (await self.admin.list(EVENT)).items if each.reason == reason]

    async def running(self, number: int, *, seconds: float = 300.0) -> None:
        """Waits until so many pods run, and no other is there."""
        for _ in range(int(seconds)):
            pods = await self.pods()
            if len(pods) == number and all(each.status.phase == "Running" for each in pods):
                return
            self.stage.check()
            await asyncio.sleep(1)
        raise AssertionError([(each.metadata.name, each.status.phase, each.spec.node_name) for each in pods])

    async def until(self, said: Callable[[], Coroutine[Any, Any, bool]], *, seconds: float = 300.0) -> None:
        """Waits until it is so."""
        for _ in range(int(seconds)):
            if await said():
                return
            self.stage.check()
            await asyncio.sleep(1)
        raise AssertionError(f"not so after {seconds} s")


def growing(
    body: Callable[[Growing], Coroutine[Any, Any, R]],
    *,
    seed: int = 1,
    settings: ControllerSettings | None = None,
    **more: Any,
) -> Run[R]:
    """Runs the body beside the autoscaler, in virtual time; `more` are settings."""

    async def main(kernel: Kernel) -> R:
        stage = Stage(kernel, forgiven=(LeaseLost,))
        await stage.prepare()
        life = Life(settings=dataclasses.replace(settings or SETTINGS, **more), catalogue=HETZNER)
        replica = stage.start("growth", life)
        return await body(Growing(stage, replica))

    return sim.run(main, seed=seed, limit_seconds=1_000_000)
