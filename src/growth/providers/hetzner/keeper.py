"""Keeps the status of HetznerNodeClasses: whether machines can be made of them, and what their machines hold. And placement groups."""

import asyncio
import contextlib
from typing import Final

from growth.api import names
from growth.api.conditions import TRUE
from growth.api.nodeclasses import HETZNER_NODE_CLASS, HetznerNodeClass
from growth.api.nodes import NODE, Node
from growth.kube.api import Api
from growth.kube.changes import change
from growth.kube.store import Change, Changed, Deleted
from growth.ports import Clock, Random
from growth.providers.hetzner import labels, learning
from growth.providers.hetzner.provider import HetznerProvider
from growth.providers.http import CallError
from growth.providers.keeping import ClassKeeper
from growth.telemetry.logs import logger

_log = logger("nodeclass")

# How often empty placement groups are looked for.
TIDY_SECONDS: Final = 900.0
# How old a list of machines may be that says by which class a Node's machine was made.
MACHINES_SECONDS: Final = 60.0
NODE_: Final = "node"


class Keeper(ClassKeeper[HetznerNodeClass]):
    chore = "placement groups"

    def __init__(self, api: Api, provider: HetznerProvider, *, clock: Clock, random: Random) -> None:
        super().__init__(api, HETZNER_NODE_CLASS, provider.readiness, clock=clock, random=random)
        self._provider = provider
        self._nodes = self._informers.watch(NODE)
        self._work_on[NODE_] = self._learn
        self._nodes.subscribe(self._on_node)

    # What makes us look.

    def _on_class(self, news: Change[HetznerNodeClass]) -> None:
        super()._on_class(news)
        if isinstance(news, Deleted):
            return
        if isinstance(news, Changed) and news.old.metadata.generation == news.new.metadata.generation:
            return
        for node in self._nodes.store:
            self._queue.add((NODE_, node.metadata.name))

    def _on_node(self, news: Change[Node]) -> None:
        if isinstance(news, Deleted) or labels.number_of(news.new.spec.provider_id) is None:
            return
        if isinstance(news, Changed) and _says(news.old) == _says(news.new):
            return
        self._queue.add((NODE_, news.key[1]))

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

    async def _keep_on(self) -> None:
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
