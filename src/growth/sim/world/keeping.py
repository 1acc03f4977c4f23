"""The loop of everything in the cluster that keeps objects as they should be: key by key, failures later."""

from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

from growth.kube.errors import KubeError
from growth.kube.queue import WorkQueue
from growth.sim.world.view import View

K = TypeVar("K", bound=Hashable)


async def keep_all(view: View, queue: WorkQueue[K], keep: Callable[[K], Awaitable[None]]) -> None:
    """Works until cancelled, from when the view is whole."""
    await view.synced()
    while True:
        key = await queue.get()
        try:
            await keep(key)
            queue.forget(key)
        except KubeError:
            queue.retry(key)
        finally:
            queue.done(key)
