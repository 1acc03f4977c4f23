"""The mark of a move on its nodes: why on the claim, and the taint on the Node; both come off again together.

The claim is written first, when the mark is made and when it is taken off. Whoever deletes a claim does so as it was seen
marked, with its version as precondition: nobody's taint is taken off under a deletion that was decided with it, and no
taint is taken off whose claim was deleted, whichever process does the one and the other.
"""

from typing import Final

from growth.api import names
from growth.api.conditions import is_true
from growth.api.edits import remove_condition, set_condition
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.controllers import tainting
from growth.controllers.environment import Environment
from growth.kube.changes import change
from growth.kube.errors import Conflict, NotFound
from growth.telemetry.logs import logger

_log = logger("disruption")

ATTEMPTS: Final = 5


async def mark(env: Environment, node: Node, claim: NodeClaim, *, reason: str) -> None:
    """`NotFound` or `NodeReplaced` where they are not what they were; then the claim is as before."""

    def edit(draft: Json) -> None:
        if draft["metadata"]["uid"] == claim.metadata.uid:
            set_condition(
                draft,
                names.DISRUPTION_REASON,
                status="True",
                reason=reason,
                message=reason,
                now=env.clock.now(),
            )

    await change(env.api, NODE_CLAIM, claim.metadata.name, edit, subresource="status")
    try:
        await tainting.mark(env.api, node)
    except (NotFound, tainting.NodeReplaced):
        await withdraw(env, claim)
        raise
    _log.info("tainted node", Node=node.metadata.name, **{"taint.Key": names.DISRUPTED_TAINT})


async def unmark(env: Environment, node: Node | None, claim: NodeClaim, *, why: str) -> None:
    """Takes the mark off, unless they are being deleted. What is gone needs none.

    `Conflict` where the Node changes all the time.
    """
    for attempt in range(1, ATTEMPTS + 1):
        # Read before the claim is written: a taint that comes after that is somebody's whose claim says so.
        before = None if node is None else await _found(env, node)
        if not await withdraw(env, claim) or node is None or before is None:
            return
        try:
            await tainting.unmark(env.api, node, known=before)
        except (NotFound, tainting.NodeReplaced):
            return
        except Conflict:
            if attempt == ATTEMPTS:
                raise
        else:
            _log.info("untainted node", Node=node.metadata.name, why=why)
            return


async def withdraw(env: Environment, claim: NodeClaim) -> bool:
    """The claim does not say any more that it is being disrupted. False where it is being deleted, gone or another."""

    def edit(draft: Json) -> None:
        if _stays(draft, claim):
            remove_condition(draft, names.DISRUPTION_REASON)

    try:
        return _stays(await change(env.api, NODE_CLAIM, claim.metadata.name, edit, subresource="status"), claim)
    except NotFound:
        return False


def _stays(found: Json, claim: NodeClaim) -> bool:
    metadata = found["metadata"]
    return metadata["uid"] == claim.metadata.uid and not metadata.get("deletionTimestamp")


async def _found(env: Environment, node: Node) -> Json | None:
    try:
        return await env.api.get(NODE.raw, node.metadata.name)
    except NotFound:
        return None


def marked(claim: NodeClaim) -> bool:
    """Whether the claim says that it is being disrupted."""
    return is_true(claim.status.conditions, names.DISRUPTION_REASON)
