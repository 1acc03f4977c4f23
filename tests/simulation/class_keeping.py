"""Builders for tests of those who keep the status of node classes, whoever sells the machines."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from growth.api import names
from growth.api.conditions import find
from tests.conformance.providers.stages import HetznerStage, LkeStage, Wire

KEPT = ("hetzner", "lke", "lke-enterprise", "linode-instances")
# Until a keeper that was just started has looked at everything.
START_SECONDS = 20.0

KeptStage = HetznerStage | LkeStage


@contextlib.asynccontextmanager
async def kept(stage: KeptStage, *, through: Wire | None = None) -> AsyncIterator[Any]:
    """With a new process that keeps the classes; gives its provider. `through` is its way to Linode's fake."""
    provider = stage.provider(through=through) if isinstance(stage, LkeStage) else stage.provider()
    keeper = stage.keeper(provider)  # type: ignore[arg-type] # the stage's own
    running = stage.kernel.create_task(keeper.run(), name="keeper")
    try:
        await asyncio.sleep(START_SECONDS)
        yield provider
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def read(stage: KeptStage, name: str = "default") -> Any:
    return await stage.admin.get(stage.node_class, name)


async def told(stage: KeptStage, name: str = "default") -> tuple[str, str, str]:
    """What the class' condition Ready says."""
    ready = find((await read(stage, name)).status.conditions, names.READY)
    assert ready is not None
    return ready.status, ready.reason, ready.message
