"""Nodes that are marked for scale-down and stay as soon as pods are to come there: that costs less than to buy."""

import contextlib
from collections.abc import Iterable

from growth.api import names
from growth.api.conditions import is_true
from growth.api.events import NORMAL, regarding
from growth.api.growthpools import COULD_NOT_REMOVE, EMPTY, PENDING
from growth.api.karpenter import NodeClaim
from growth.api.nodes import NODE, Node
from growth.controllers.environment import Environment
from growth.controllers.growth import marking
from growth.controllers.growth.outgoing import outgoing
from growth.controllers.growth.removing import is_marked
from growth.controllers.tainting import NodeReplaced
from growth.kube.errors import NotFound
from growth.telemetry.logs import logger

_log = logger("scaledown")


class Sparing:
    """What a plan may use of them, and the end of their scale-down."""

    def __init__(self, env: Environment) -> None:
        self._env = env

    def nodes(self) -> frozenset[str]:
        """Marked nodes whose removal the cloud has not accepted, and that has not failed for good."""
        state = self._env.state
        beyond = outgoing(
            each
            for each in state.node_removals.store
            if each.status.phase not in {"", PENDING, COULD_NOT_REMOVE} or each.spec.reason != EMPTY
        )
        found = set()
        for node in state.nodes.store:
            if is_marked(node):
                claims = state.claims.store.find("provider", node.spec.provider_id) if node.spec.provider_id else ()
                if len(claims) == 1 and not beyond.has(claims[0]) and not leaving(node, claims[0]):
                    found.add(node.metadata.name)
        return frozenset(found)

    async def keep(self, nodes: Iterable[str]) -> None:
        """Takes the mark off: pods are about to come. A removal that is pending sees it and ends."""
        env = self._env
        for name in nodes:
            node = env.state.nodes.store.get(name)
            if node is None:
                continue
            with contextlib.suppress(NotFound, NodeReplaced):
                await marking.unmark(env.api, node)
                _log.info("scale-down cancelled", Node=name, why="pods are about to come")
                message = "The node stays: pods are about to come"
                env.events.event(regarding(NODE, node.metadata), names.SCALE_DOWN_CANCELLED, message, type=NORMAL)


def leaving(node: Node, claim: NodeClaim) -> bool:
    return (
        node.metadata.deletion_timestamp is not None
        or claim.metadata.deletion_timestamp is not None
        or is_true(claim.status.conditions, names.INSTANCE_TERMINATING)
    )
