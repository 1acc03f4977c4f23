"""Nodes that are the next to go, while others of their pool go: kube-scheduler avoids them if it can.

Whoever came there would have to move again. The mark is a taint that only discourages, so nobody waits or has a machine bought
for its sake. It is all that outlives a process: whoever leads next finds it, and takes it off where it has not been wanted for a
minute. On a node that goes it stays.
"""

from collections.abc import Collection
from typing import Final

from growth.api import names
from growth.api.edits import add_taint, remove_taint
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.placement import PREFER_NO_SCHEDULE
from growth.controllers import tainting
from growth.controllers.disruption.attempts import each
from growth.controllers.environment import Environment
from growth.controllers.ownership import serves
from growth.kube.changes import change
from growth.planning.taints import leaving_soon

# Targets of searches change with every pod: a mark outlasts the decisions that do without it.
LINGERS_SECONDS: Final = 60.0
# In one pass; the next one goes on. The API server has other clients, and large pools drift at once.
MOST_AT_A_TIME: Final = 100


def discouraged(node: Node) -> bool:
    return any(map(leaving_soon, node.spec.taints))


class Discouraging:
    """The marks of all Nodes that are ours."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._wanted: dict[str, float] = {}  # by a Node's UID, when its mark was wanted last, by the monotonic clock

    async def write(self, wanted: Collection[str], *, taking: Collection[str] = ()) -> None:
        """Marks the nodes of these names, and takes off what nobody has wanted for a while, and at once what is `taking` pods of
        a move: they are to come there, and the move is looked at as kube-scheduler would make it.
        """
        now, state = self._env.clock.monotonic(), self._env.state
        missing: list[Node] = []
        over: list[Node] = []
        for node in state.nodes.store:
            name, uid = node.metadata.name, node.metadata.uid
            if (name not in wanted or name in taking) and not discouraged(node):
                continue
            if node.metadata.deletion_timestamp is not None or tainting.tainted(node) or not self._is_ours(node):
                continue
            if name in wanted or uid not in self._wanted:
                self._wanted[uid] = now
            if not discouraged(node):
                missing.append(node)
            elif name in taking or now - self._wanted[uid] >= LINGERS_SECONDS:
                over.append(node)
        there = {node.metadata.uid for node in state.nodes.store}
        self._wanted = {uid: at for uid, at in self._wanted.items() if uid in there}
        await each((over + missing)[:MOST_AT_A_TIME], self._turn, attempts=1)

    def _is_ours(self, node: Node) -> bool:
        found = self._env.state.claims.store.find("provider", node.spec.provider_id) if node.spec.provider_id else ()
        return any(serves(self._env.provider, claim.spec.node_class_ref) for claim in found)

    async def _turn(self, node: Node) -> None:
        """Marks what is not marked, and the other way round."""
        before = discouraged(node)

        def edit(draft: Json) -> None:
            if draft["metadata"]["uid"] != node.metadata.uid or draft["metadata"].get("deletionTimestamp"):
                return
            if before:
                remove_taint(draft, key=names.LEAVING_SOON_TAINT, effect=PREFER_NO_SCHEDULE)
            else:
                add_taint(draft, key=names.LEAVING_SOON_TAINT, effect=PREFER_NO_SCHEDULE)

        await change(self._env.api, NODE, node.metadata.name, edit)
