"""Ends one claim because somebody decided so: a look at what the server has now, the deletion, and the telling of it.

What follows (the taint, the drain with budgets and grace, the machine) is `termination`'s work.
"""

from collections.abc import Callable
from typing import Final

from growth.api import names
from growth.api.events import NORMAL, regarding
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.nodes import NODE, Node
from growth.controllers.disrupted import count_disrupted
from growth.controllers.environment import Environment
from growth.kube.errors import BadRequest, Forbidden, Invalid, NotFound
from growth.planning import occupants
from growth.telemetry.logs import logger

_log = logger("disruption")

# Answers that mostly stay the same for this one object, as somebody's policy gives them: no reason to keep the others waiting.
# A server that has just started may say no for a moment.
REFUSED: Final = (BadRequest, Forbidden, Invalid)


def _nothing(_claim: NodeClaim) -> str:
    return ""


async def end(env: Environment, claim: NodeClaim, *, reason: str, stays: Callable[[NodeClaim], str] = _nothing) -> bool:
    """Deletes the claim; False where it is gone, leaving or another one by now, or where `stays` says why it must stay.

    `stays` is asked with the claim as the server has it. Whoever changes the claim between that look and the deletion
    prevents it (`Conflict`). `reason` is one CamelCase word.
    """
    name = claim.metadata.name
    try:
        fresh = await env.api.get(NODE_CLAIM, name)
        if fresh.metadata.uid != claim.metadata.uid or fresh.metadata.deletion_timestamp is not None:
            return False
        why = stays(fresh)
        if why:
            _log.info("leaving a nodeclaim as it is", NodeClaim=name, reason=reason, why=why)
            return False
        await env.api.delete(NODE_CLAIM, name, uid=fresh.metadata.uid, revision=fresh.metadata.resource_version)
    except NotFound:
        return False
    _tell(env, fresh, reason=reason)
    return True


def nodes_of(env: Environment, claim: NodeClaim) -> tuple[Node, ...]:
    """The Nodes of the claim's machine, as far as the cache knows."""
    provider_id = claim.status.provider_id
    return tuple(env.state.nodes.store.find("provider", provider_id)) if provider_id else ()


def _tell(env: Environment, claim: NodeClaim, *, reason: str) -> None:
    name = claim.metadata.name
    _log.info("disrupting nodeclaim", NodeClaim=name, command="delete", reason=reason.lower())
    message = f"Disrupting {NODE_CLAIM.kind}: {reason}"
    env.events.event(regarding(NODE_CLAIM, claim.metadata), names.DISRUPTION_TERMINATING, message, type=NORMAL)
    pods = 0
    for node in nodes_of(env, claim):
        message = f"Disrupting {NODE.kind}: {reason}"
        env.events.event(regarding(NODE, node.metadata), names.DISRUPTION_TERMINATING, message, type=NORMAL)
        pods += sum(map(occupants.reschedulable, env.state.pods.store.find("node", node.metadata.name)))
    count_disrupted(env.metrics, claim, reason=reason.lower(), pods=pods)
