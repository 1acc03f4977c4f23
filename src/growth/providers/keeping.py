"""Keeps the status of a vendor's node classes: whether machines can be made of them.

A class is judged when it changes, when something was refused that no check foresaw, and every few minutes: people change
the account by hand. While the account cannot be asked, what was said before stands. A vendor adds what else it keeps.
"""

import abc
import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from growth.api.clouds import CloudError
from growth.api.kinds import Kind
from growth.kube.api import Api
from growth.kube.backoff import BackoffSettings
from growth.kube.errors import ConfigError, Conflict, GateClosed, KubeError, NotFound
from growth.kube.informer import Informers
from growth.kube.queue import WorkQueue
from growth.kube.store import Change, Changed, Deleted
from growth.ports import Clock, Random
from growth.providers.http import CallError
from growth.providers.nodeclasses import NodeClass
from growth.providers.readiness import JUDGED_SECONDS, UNREADY_SECONDS, Readiness
from growth.telemetry.logs import about, logger

_log = logger("nodeclass")

C = TypeVar("C", bound=NodeClass)
# Does one thing again, and says after how many seconds once more; None: not before something changes.
Work = Callable[[str], Awaitable[float | None]]

RETRY: Final = BackoffSettings(base_seconds=1.0, cap_seconds=300.0, jitter=0.2)
WORKERS: Final = 4
CLASS: Final = "class"


class ClassKeeper(abc.ABC, Generic[C]):
    """`run` works until cancelled. One at a time is meant to; two do no harm."""

    chore: str
    """What `_keep_on` does, in two words."""

    def __init__(self, api: Api, kind: Kind[C], readiness: Readiness[C], *, clock: Clock, random: Random) -> None:
        self._api = api
        self._readiness = readiness
        self._informers = Informers(api, clock=clock, random=random)
        self._classes = self._informers.watch(kind, optional=True)
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(random, retry=RETRY)
        self._work_on: dict[str, Work] = {CLASS: self._judge}
        self._classes.subscribe(self._on_class)
        readiness.listen(self._on_complaint)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run(), name="node classes' informers")
            await self._informers.wait_synced()
            for _ in range(WORKERS):
                group.create_task(self._work(), name="node classes")
            group.create_task(self._keep_on(), name=self.chore)

    @abc.abstractmethod
    async def _keep_on(self) -> None:
        """What has to be done now and then, whatever happens; until cancelled."""

    # What makes us look.

    def _on_class(self, news: Change[C]) -> None:
        if isinstance(news, Deleted):
            return
        if isinstance(news, Changed) and news.old.metadata.generation == news.new.metadata.generation:
            return  # our own words
        self._queue.add((CLASS, news.key[1]))

    def _on_complaint(self, name: str) -> None:
        """Something that no check foresaw: it is told at once."""
        for each in [name] if name else [known.metadata.name for known in self._classes.store]:
            self._queue.add((CLASS, each))

    async def _work(self) -> None:
        while True:
            item = await self._queue.get()
            what, name = item
            try:
                with about(reconciler="nodeclass", key=name):
                    again = await self._work_on[what](name)
                self._queue.forget(item)
                if again is not None:
                    self._queue.add_after(item, again)
            except (GateClosed, ConfigError):
                raise
            except NotFound:
                self._queue.forget(item)
            except (KubeError, CallError, CloudError) as error:
                seconds = self._queue.retry(item)
                level = _log.debug if isinstance(error, Conflict) else _log.warning
                level("will try again", about=what, name=name, error=str(error), again=seconds)
            except Exception:  # noqa: BLE001 - whatever it is, the other classes must go on
                seconds = self._queue.retry(item)
                _log.exception("a bug in us; this one waits", about=what, name=name, again=seconds)
            finally:
                self._queue.done(item)

    # Whether machines can be made.

    async def _judge(self, name: str) -> float | None:
        known = self._classes.store.get(name)
        if known is None or known.metadata.deletion_timestamp is not None:
            return None
        ready = await self._readiness.judge(known)
        if ready:
            await self._is_ready(known)
        return JUDGED_SECONDS if ready else UNREADY_SECONDS

    async def _is_ready(self, node_class: C) -> None:
        """What is to be done for a class of which machines can be made."""
