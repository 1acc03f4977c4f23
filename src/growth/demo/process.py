"""One run of the demo, from nothing to its end: the cluster, its waves, and who tells of them."""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Callable

from growth.demo import scene
from growth.demo.cluster import Embedded
from growth.demo.playing import Playing
from growth.demo.sellers import SELLERS, Provider
from growth.demo.telling import Telling
from growth.kube.memory.serve import serving, write_kubeconfig
from growth.ports import Clock, Compute, ThreadCompute
from growth.providers.catalogues import builtin
from growth.sim.ports import SimRandom


class Demo:
    """`await begin()`, then `run` until cancelled. `write` hears what happens, line by line."""

    def __init__(
        self,
        *,
        clock: Clock,
        compute: Compute,
        seed: int,
        write: Callable[[str], None],
        speed: float = 1.0,
        provider: Provider = "kwok",
    ) -> None:
        self._seller = SELLERS[provider]
        self.cluster = Embedded(clock=clock, compute=compute, seed=seed, seller=self._seller, speed=speed)
        self._telling = Telling(
            self.cluster.admin,
            catalogue=builtin(self._seller.cloud, dedicated=True),
            clock=clock,
            random=SimRandom(seed, "telling"),
            speed=speed,
            write=write,
        )
        self._playing = Playing(self.cluster.admin, seed=seed, tell=self._telling.say)

    async def begin(self) -> None:
        """The pools and the Deployments, without a pod yet."""
        await self.cluster.begin([*scene.pools(self._seller), *(app.manifest() for app in scene.APPS)])

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for each in (self.cluster, self._telling, self._playing):
                group.create_task(each.run(), name=type(each).__name__)


@contextlib.asynccontextmanager
async def running(
    *,
    clock: Clock,
    seed: int,
    speed: float,
    provider: Provider,
    kubeconfig: pathlib.Path,
    write: Callable[[str], None],
) -> AsyncIterator[str]:
    """The demo runs, and is served over HTTP, while the block does; gives its URL, to which the kubeconfig leads.

    What fails in it cancels the block and is raised.
    """
    compute = ThreadCompute()
    demo = Demo(clock=clock, compute=compute, seed=seed, speed=speed, provider=provider, write=write)
    await demo.begin()
    try:
        async with serving(demo.cluster.server) as url:
            write_kubeconfig(kubeconfig, url)
            async with asyncio.TaskGroup() as group:
                task = group.create_task(demo.run(), name="demo")
                try:
                    yield url
                finally:
                    task.cancel()
    finally:
        compute.close()
