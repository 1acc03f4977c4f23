"""Nodes of machines that nobody claims. LKE lets a machine join by itself, so pods may run there: they leave in order first.

The Node is deleted with the finalizer of those that Growth drains, and the machine goes once its Node is gone.
"""

from collections.abc import Mapping

from growth.api import names
from growth.api.edits import add_finalizer, set_labels
from growth.api.kinds import Json
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.api.nodes import NODE, Node
from growth.kube.api import Api
from growth.kube.changes import change
from growth.kube.errors import Conflict, NotFound
from growth.kube.whole import every
from growth.providers.linode import tags
from growth.telemetry.logs import logger

_log = logger("linode")

# By this Growth knows a Node without a claim as its own.
CLASS_LABEL = names.node_class_label(LINODE_NODE_CLASS.group, LINODE_NODE_CLASS.kind)


class Leaving:
    """One per process. Raises `KubeError`."""

    def __init__(self, api: Api) -> None:
        self._api = api
        # By the machine's number: the Node that was let go. One that registers anew is not drained again.
        self._let_go: dict[int, str] = {}

    async def nodes(self) -> Mapping[int, Node]:
        """By the numbers of their machines, as the server says now."""
        return {number: node for node in await every(self._api, NODE) if (number := _number(node)) is not None}

    async def standing(self) -> Mapping[int, Node]:
        """As `nodes`; none that came after its machine's was let go."""
        return {
            number: node
            for number, node in (await self.nodes()).items()
            if self._let_go.get(number, node.metadata.uid) == node.metadata.uid
        }

    async def let_go(self, number: int, node: Node, *, node_class: str) -> None:
        """Its pods leave, and then it does. Nothing where it is on its way already."""
        self._let_go[number] = node.metadata.uid
        if node.metadata.deletion_timestamp is not None:
            return

        def marked(draft: Json) -> None:
            if draft["metadata"]["uid"] == node.metadata.uid and not draft["metadata"].get("deletionTimestamp"):
                add_finalizer(draft, names.TERMINATION_FINALIZER)
                set_labels(draft, {CLASS_LABEL: node_class})

        try:
            await change(self._api, NODE, node.metadata.name, marked)
            await self._api.delete(NODE, node.metadata.name, uid=node.metadata.uid)
        except (NotFound, Conflict):
            return
        _log.info("drains the node of a machine that nobody claims", Node=node.metadata.name, machine=number)

    def gone(self, number: int) -> None:
        self._let_go.pop(number, None)


def _number(node: Node) -> int | None:
    return tags.number_of(node.spec.provider_id) if node.spec.provider_id else None
