"""One run of the demo's cluster, from nothing to its end."""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from growth.demo import scene
from growth.demo.cluster import CLOUD, Embedded
from growth.demo.playing import Playing
from growth.demo.telling import Telling
from growth.kube.memory.serve import serving, write_kubeconfig
from growth.ports import Clock
from growth.providers.catalogues import builtin
from growth.sim.ports import SimRandom


@contextlib.asynccontextmanager
async def running(
    *,
    clock: Clock,
    seed: int,
    speed: float,
    kubeconfig: pathlib.Path,
    write: Callable[[str], None],
) -> AsyncIterator[str]:
    """The cluster lives while the block runs; gives its URL, which the kubeconfig leads to. `write` hears what happens.

    What fails in it cancels the block and is raised.
    """
    embedded = Embedded(clock=clock, seed=seed, speed=speed)
    objects = [scene.NODE_CLASS, *scene.POOLS, *(app.manifest() for app in scene.APPS)]
    await embedded.begin(objects)
    telling = Telling(
        embedded.admin,
        catalogue=builtin(CLOUD, dedicated=True),
        clock=clock,
        random=SimRandom(seed, "telling"),
        speed=speed,
        write=write,
    )
    playing = Playing(embedded.admin, seed=seed, tell=telling.say)
    async with serving(embedded.server) as url:
        write_kubeconfig(kubeconfig, url)
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[Any]] = [
                group.create_task(each.run(), name=type(each).__name__) for each in (embedded, telling, playing)
            ]
            try:
                yield url
            finally:
                for task in tasks:
                    task.cancel()
