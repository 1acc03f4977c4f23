"""Keeps the status of a vendor's node classes: whether machines can be made of them, and what their machines hold.

A class is judged when it changes, when something was refused that no check foresaw, and every few minutes: people change
the account by hand. While the account cannot be asked, what was said before stands. A Node teaches what machines of its type
hold when it is ready, and again when it says something else. A vendor adds what else it keeps.
"""

import abc
import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final, Generic, TypeVar

from growth.api.clouds import CloudError
from growth.api.kinds import Kind
from growth.api.nodes import NODE, Node
from growth.kube.api import Api
from growth.kube.backoff import BackoffSettings
from growth.kube.changes import change
from growth.kube.errors import ConfigError, Conflict, GateClosed, KubeError, NotFound
from growth.kube.informer import Informers
from growth.kube.queue import WorkQueue
from growth.kube.store import Change, Changed, Deleted
from growth.ports import Clock, Random
from growth.providers import learning
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
# How old a list of machines may be that says by which class a Node's machine was made.
MACHINES_SECONDS: Final = 60.0
CLASS: Final = "class"
NODE_: Final = "node"


class ClassKeeper(abc.ABC, Generic[C]):
    """`run` works until cancelled. One at a time is meant to; two do no harm."""

    chore: str
    """What `_keep_on` does, in two words."""

    def __init__(self, api: Api, kind: Kind[C], readiness: Readiness[C], *, clock: Clock, random: Random) -> None:
        self._api = api
        self._kind = kind
        self._readiness = readiness
        self._informers = Informers(api, clock=clock, random=random)
        self._classes = self._informers.watch(kind, optional=True)
        self._nodes = self._informers.watch(NODE)
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(random, retry=RETRY)
        self._work_on: dict[str, Work] = {CLASS: self._judge, NODE_: self._learn}
        self._classes.subscribe(self._on_class)
        self._nodes.subscribe(self._on_node)
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

    @abc.abstractmethod
    def _is_ours(self, provider_id: str) -> bool:
        """Whether it is one that machines of this cloud have."""

    @abc.abstractmethod
    def _hashes_of(self, node_class: C) -> Collection[str]:
        """Of the class as it makes machines now; several where it has several sorts of them."""

    @abc.abstractmethod
    async def _made_by(self, provider_id: str, *, within: float) -> str:
        """The hash of the class by which the machine was made, by a list that is at most so many seconds old.

        Empty where the list has no such machine of ours.
        """

    # What makes us look.

    def _on_class(self, news: Change[C]) -> None:
        if isinstance(news, Deleted):
            return
        if isinstance(news, Changed) and news.old.metadata.generation == news.new.metadata.generation:
            return  # our own words
        self._queue.add((CLASS, news.key[1]))
        for node in self._nodes.store:
            self._queue.add((NODE_, node.metadata.name))

    def _on_node(self, news: Change[Node]) -> None:
        if isinstance(news, Deleted) or not self._is_ours(news.new.spec.provider_id):
            return
        if isinstance(news, Changed) and learning.said(news.old, self._kind) == learning.said(news.new, self._kind):
            return
        self._queue.add((NODE_, news.key[1]))

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

    # What machines hold.

    async def _learn(self, name: str) -> float | None:
        node = self._nodes.store.get(name)
        if node is None or not self._is_ours(node.spec.provider_id) or not learning.teaches(node):
            return None
        machine = node.spec.provider_id
        uses = learning.class_of(node, self._kind)
        node_class = self._classes.store.get(uses) if uses else None
        if node_class is None:
            return None
        # A machine may be younger than the list.
        made = await self._made_by(machine, within=MACHINES_SECONDS) or await self._made_by(machine, within=0.0)
        if not made or made not in self._hashes_of(node_class):
            return None
        await change(
            self._api,
            self._kind,
            uses,
            lambda draft: learning.learn(draft, node, class_hash=made),
            subresource="status",
        )
        return None
