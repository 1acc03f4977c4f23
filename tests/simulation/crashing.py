"""A vendor's API that a process dies at, after any of its requests."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from growth.ports import Response, TransportError
from growth.sim.ports import Request


class Crashing:
    """The fake, until so many requests have been performed; whoever sent the last of them is gone before its answer."""

    def __init__(self, fake: Callable[[Request], Awaitable[Response]], after: int) -> None:
        self._fake = fake
        self._left = after
        self.crashed = asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        answer = await self._fake(request)
        self._left -= 1
        if self._left <= 0:
            self.crashed.set()
            raise TransportError("the connection broke")
        return answer


async def crashed(work: Coroutine[Any, Any, object], cloud: Crashing) -> bool:
    """Runs the work until it ends or its process crashes; whether it did."""
    working, crashing = asyncio.ensure_future(work), asyncio.ensure_future(cloud.crashed.wait())
    await asyncio.wait({working, crashing}, return_when=asyncio.FIRST_COMPLETED)
    crashing.cancel()
    working.cancel()
    await asyncio.gather(working, crashing, return_exceptions=True)
    return cloud.crashed.is_set()
