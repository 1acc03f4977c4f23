"""One exchange between a simulated process and something outside it: a server, a cloud.

What is on the way belongs to neither: a request that was sent arrives even if its sender has crashed since, and an
answer to a dead sender is dropped.
"""

import asyncio
import contextvars
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from growth.sim.kernel import Kernel

R = TypeVar("R")


class Lost(Exception):
    """No whole answer came within the timeout; whether the request took effect is unknown."""


async def exchange(
    kernel: Kernel,
    act: Callable[[], Awaitable[R]],
    *,
    there: float,
    back: float,
    timeout_seconds: float,
    name: str = "wire",
) -> R:
    """What `act`, run outside the caller's process after `there` seconds, returned or raised, `back` seconds later.

    `there` or `back` may be infinite: the request, or the answer, is lost. Raises `Lost` at the timeout.
    """
    answer: asyncio.Future[R] = kernel.create_future()

    async def carry() -> None:
        error: Exception | None = None
        await asyncio.sleep(there)
        try:
            value = await act()
        except Exception as raised:  # noqa: BLE001 - carried to the caller, whatever it is
            error = raised
        if back == math.inf:
            return
        await asyncio.sleep(back)
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
            answer.exception()  # a sender that has died meanwhile will not look at it, and that is no failure
        else:
            answer.set_result(value)

    if there != math.inf:
        outside(kernel, carry, name=name)
    try:
        async with asyncio.timeout(timeout_seconds):
            return await answer
    except TimeoutError as error:
        if answer.done() and not answer.cancelled() and answer.exception() is error:
            raise
        raise Lost(f"no answer within {timeout_seconds} s") from error


def outside(kernel: Kernel, main: Callable[[], Awaitable[None]], *, name: str) -> "asyncio.Task[None]":
    """A task that belongs to no process and outlives the one that started it."""

    async def body() -> None:
        await main()

    return kernel.create_task(body(), name=name, context=contextvars.Context())
