"""Doing one thing to many objects: some at a time, again where the server was in trouble, each failure for itself."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from growth.controllers import tainting
from growth.kube.errors import ConfigError, Forbidden, GateClosed, KubeError, NotFound
from growth.telemetry.logs import logger

T = TypeVar("T")
R = TypeVar("R")

_log = logger("disruption")

# Requests under way at a time; the API server has other clients.
AT_ONCE: Final = 20
ATTEMPTS: Final = 4
AGAIN_SECONDS: Final = 0.5


async def each(
    items: Sequence[T], act: Callable[[T], Awaitable[R | None]], *, attempts: int = ATTEMPTS
) -> list[R | None]:
    """What came of each; None where it failed. A closed gate ends everything. Whatever is done may be done twice."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(item: T) -> R | None:
        for attempt in range(1, attempts + 1):
            async with turn:
                try:
                    return await act(item)
                except (GateClosed, ConfigError):
                    raise
                except (KubeError, tainting.NodeReplaced) as error:
                    if attempt == attempts or isinstance(error, NotFound | Forbidden | tainting.NodeReplaced):
                        _log.warning("an object is left as it is", error=str(error))
                        return None
            await asyncio.sleep(AGAIN_SECONDS * attempt)
        return None

    return list(await asyncio.gather(*(one(item) for item in items)))
