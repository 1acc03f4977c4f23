"""What was bought for a move that is not made: it goes again while it is empty, or is a machine like any other."""

import asyncio
from typing import Final

from growth.api import moves as intents
from growth.api import names
from growth.api.edits import set_annotations
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.cluster.shapes import CachedPod
from growth.controllers import tainting
from growth.controllers.environment import Environment
from growth.controllers.fresh import pods_on
from growth.kube.changes import change
from growth.kube.errors import NotFound
from growth.planning.disruption.candidates import empty
from growth.telemetry.logs import logger

_log = logger("disruption")

# After the taint a scheduler that has not seen it yet may still bind a pod; then the fresh list must show it.
SETTLE_SECONDS: Final = 1.0


async def returned(env: Environment, name: str) -> None:
    """A claim that was bought for a move which is not made goes again if it is ours and empty; else it just stays."""
    try:
        claim = await env.api.get(NODE_CLAIM, name)
    except NotFound:
        return
    if claim.metadata.deletion_timestamp is not None or intents.intent_of(claim.metadata) is None:
        return
    nodes = env.state.nodes.store.find("provider", claim.status.provider_id) if claim.status.provider_id else ()
    for node in nodes:  # no pod may come between the look and the end
        await tainting.mark(env.api, node)
    if nodes:
        await asyncio.sleep(SETTLE_SECONDS)
    if await _in_use(env, claim):
        await settled(env, name)
        for node in nodes:
            await tainting.unmark(env.api, node)
        return
    try:
        await env.api.delete(NODE_CLAIM, name, uid=claim.metadata.uid, revision=claim.metadata.resource_version)
        _log.info("a replacement is not needed", NodeClaim=name)
    except NotFound:
        return


async def settled(env: Environment, name: str) -> None:
    """From now on the claim replaces nobody: it is a machine like any other."""

    def edit(draft: Json) -> None:
        set_annotations(draft, {names.REPLACES_ANNOTATION: None, names.MOVE_ANNOTATION: None})

    try:
        await change(env.api, NODE_CLAIM, name, edit)
    except NotFound:
        return


async def _in_use(env: Environment, claim: NodeClaim) -> bool:
    """Whether pods are on the claim's machine. A machine whose Node we cannot tell is in use."""
    provider_id = claim.status.provider_id
    if not provider_id:
        return False
    pods: list[CachedPod] = []
    nodes = env.state.nodes.store.find("provider", provider_id)
    for name in {claim.status.node_name or claim.metadata.name, *(node.metadata.name for node in nodes)}:
        pods += await pods_on(env, name)
    return not empty(pods)
