"""The loop of every controller that works object by object: take a key, look, act once, come back when asked to.

A failure harms its own key only: it is logged, and the key comes back later and later. A closed gate ends the loop: this
process may no longer act.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from growth.api.clouds import CloudError
from growth.kube.backoff import BackoffSettings
from growth.kube.errors import ConfigError, Conflict, GateClosed, KubeError
from growth.kube.queue import QueueStatistics, WorkQueue
from growth.ports import Random
from growth.telemetry.logs import about, logger

K = TypeVar("K", bound=Hashable)

_log = logger("reconciler")

# Failures come back soon at first; a key that keeps failing is tried every few minutes.
RETRY: Final = BackoffSettings(base_seconds=0.1, cap_seconds=300.0, jitter=0.2)


class Reconciler(Generic[K]):
    """`act` is given a key and returns in how many seconds it wants to see it again, or None for not by itself."""

    def __init__(
        self, name: str, act: Callable[[K], Awaitable[float | None]], *, random: Random, workers: int = 10
    ) -> None:
        self.name = name
        self._act = act
        self._workers = workers
        self._queue: WorkQueue[K] = WorkQueue(random, retry=RETRY)

    def add(self, key: K) -> None:
        """Something about this key changed."""
        self._queue.add(key)

    def add_after(self, key: K, seconds: float) -> None:
        self._queue.add_after(key, seconds)

    def statistics(self) -> QueueStatistics:
        return self._queue.statistics()

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed (`GateClosed`)."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work(), name=self.name)

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                with about(reconciler=self.name, key=str(key)):
                    again = await self._act(key)
                self._queue.forget(key)
                if again is not None:
                    self._queue.add_after(key, again)
            except (GateClosed, ConfigError):
                raise
            except Conflict as error:
                # Somebody else wrote first: what they wrote is on its way to us.
                seconds = self._queue.retry(key)
                _log.debug(
                    "object changed meanwhile", reconciler=self.name, key=str(key), error=str(error), again=seconds
                )
            except (KubeError, CloudError) as error:
                seconds = self._queue.retry(key)
                _log.warning("will try again", reconciler=self.name, key=str(key), error=str(error), again=seconds)
            except Exception:  # noqa: BLE001 - whatever it is, the other objects must go on
                seconds = self._queue.retry(key)
                _log.exception("a bug in us; this object waits", reconciler=self.name, key=str(key), again=seconds)
            finally:
                self._queue.done(key)
