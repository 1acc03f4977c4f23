"""Keeps the status of HetznerNodeClasses: whether machines can be made of them, and what their machines hold.

A class is judged when it changes and every few minutes: people change the account by hand. While the account cannot be
asked, what was said before stands.
"""

import asyncio
import contextlib
from typing import Final

from growth.api import names
from growth.api.conditions import TRUE
from growth.api.nodeclasses import HETZNER_NODE_CLASS, HetznerNodeClass
from growth.api.nodes import NODE, Node
from growth.kube.api import Api
from growth.kube.backoff import BackoffSettings
from growth.kube.changes import change
from growth.kube.errors import ConfigError, Conflict, GateClosed, KubeError, NotFound
from growth.kube.informer import Informers
from growth.kube.queue import WorkQueue
from growth.kube.store import Change, Changed, Deleted
from growth.ports import Clock, Random
from growth.providers.hetzner import labels, learning
from growth.providers.hetzner.provider import HetznerProvider
from growth.providers.http import CallError
from growth.providers.readiness import JUDGED_SECONDS, UNREADY_SECONDS
from growth.telemetry.logs import about, logger

_log = logger("nodeclass")

RETRY: Final = BackoffSettings(base_seconds=1.0, cap_seconds=300.0, jitter=0.2)
# How often empty placement groups are looked for.
TIDY_SECONDS: Final = 900.0
# How old a list of machines may be that says by which class a Node's machine was made.
MACHINES_SECONDS: Final = 60.0
WORKERS: Final = 4
CLASS: Final = "class"
NODE_: Final = "node"


class Keeper:
    """`run` works until cancelled. One at a time is meant to; two do no harm."""

    def __init__(self, api: Api, provider: HetznerProvider, *, clock: Clock, random: Random) -> None:
        self._api = api
        self._provider = provider
        self._informers = Informers(api, clock=clock, random=random)
        self._classes = self._informers.watch(HETZNER_NODE_CLASS, optional=True)
        self._nodes = self._informers.watch(NODE)
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(random, retry=RETRY)
        self._classes.subscribe(self._on_class)
        self._nodes.subscribe(self._on_node)
        provider.readiness.listen(self._on_complaint)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run(), name="node classes' informers")
            await self._informers.wait_synced()
            for _ in range(WORKERS):
                group.create_task(self._work(), name="node classes")
            group.create_task(self._tidy(), name="placement groups")

    # What makes us look.

    def _on_class(self, news: Change[HetznerNodeClass]) -> None:
        if isinstance(news, Deleted):
            return
        if isinstance(news, Changed) and news.old.metadata.generation == news.new.metadata.generation:
            return  # our own words
        self._queue.add((CLASS, news.key[1]))
        for node in self._nodes.store:
            self._queue.add((NODE_, node.metadata.name))

    def _on_complaint(self, name: str) -> None:
        """Something that no check foresaw: it is told at once."""
        for each in [name] if name else [known.metadata.name for known in self._classes.store]:
            self._queue.add((CLASS, each))

    def _on_node(self, news: Change[Node]) -> None:
        if isinstance(news, Deleted) or labels.number_of(news.new.spec.provider_id) is None:
            return
        if isinstance(news, Changed) and _says(news.old) == _says(news.new):
            return
        self._queue.add((NODE_, news.key[1]))

    async def _work(self) -> None:
        while True:
            item = await self._queue.get()
            what, name = item
            try:
                with about(reconciler="nodeclass", key=name):
                    again = await (self._judge(name) if what == CLASS else self._learn(name))
                self._queue.forget(item)
                if again is not None:
                    self._queue.add_after(item, again)
            except (GateClosed, ConfigError):
                raise
            except NotFound:
                self._queue.forget(item)
            except (KubeError, CallError) as error:
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
        ready = await self._provider.readiness.judge(known)
        return JUDGED_SECONDS if ready else UNREADY_SECONDS

    # What machines hold.

    async def _learn(self, name: str) -> float | None:
        node = self._nodes.store.get(name)
        number = labels.number_of(node.spec.provider_id) if node is not None else None
        if node is None or number is None:
            return None
        uses = node.metadata.labels.get(names.node_class_label(HETZNER_NODE_CLASS.group, HETZNER_NODE_CLASS.kind), "")
        node_class = self._classes.store.get(uses) if uses else None
        if node_class is None:
            return None
        server = (await self._provider.machines.all(within=MACHINES_SECONDS)).get(number)
        class_hash = server.labels.get(labels.CLASS_HASH, "") if server is not None else ""
        if not learning.teaches(node, node_class, class_hash=class_hash):
            return None
        await change(
            self._api,
            HETZNER_NODE_CLASS,
            uses,
            lambda draft: learning.learn(draft, node, class_hash=class_hash),
            subresource="status",
        )
        return None

    # Placement groups.

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(TIDY_SECONDS)
            if not any(each.spec.placement_group == "Spread" for each in self._classes.store):
                continue
            with contextlib.suppress(CallError):
                removed = await self._provider.groups.tidy()
                if removed:
                    _log.info("removed empty placement groups", groups=removed)


def _says(node: Node) -> tuple[object, ...]:
    """What of a Node can teach something."""
    ready = any(each.type == names.READY and each.status == TRUE for each in node.status.conditions)
    return (
        ready,
        node.spec.provider_id,
        dict(node.status.capacity),
        dict(node.status.allocatable),
        node.metadata.labels.get(names.INSTANCE_TYPE_LABEL),
        node.metadata.labels.get(names.node_class_label(HETZNER_NODE_CLASS.group, HETZNER_NODE_CLASS.kind)),
    )
