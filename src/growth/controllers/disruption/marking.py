"""The mark of a move on its nodes: the taint on the Node, and why on the claim; both come off again together."""

from growth.api import names
from growth.api.conditions import is_true
from growth.api.edits import remove_condition, set_condition
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.controllers import tainting
from growth.controllers.environment import Environment
from growth.kube.changes import change
from growth.kube.errors import NotFound
from growth.telemetry.logs import logger

_log = logger("disruption")


async def mark(env: Environment, node: Node, claim: NodeClaim, *, reason: str) -> None:
    """`NotFound` or `NodeReplaced` where they are not what they were."""
    await tainting.mark(env.api, node)
    _log.info("tainted node", Node=node.metadata.name, **{"taint.Key": names.DISRUPTED_TAINT})

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


async def unmark(env: Environment, node: Node | None, claim: NodeClaim, *, why: str) -> None:
    """Takes the mark off, unless they are being deleted. What is gone needs none."""
    if node is not None:
        try:
            await tainting.unmark(env.api, node)
            _log.info("untainted node", Node=node.metadata.name, why=why)
        except (NotFound, tainting.NodeReplaced):
            pass

    def edit(draft: Json) -> None:
        metadata = draft["metadata"]
        if metadata["uid"] == claim.metadata.uid and not metadata.get("deletionTimestamp"):
            remove_condition(draft, names.DISRUPTION_REASON)

    try:
        await change(env.api, NODE_CLAIM, claim.metadata.name, edit, subresource="status")
    except NotFound:
        return


def marked(claim: NodeClaim) -> bool:
    """Whether the claim says that it is being disrupted."""
    return is_true(claim.status.conditions, names.DISRUPTION_REASON)
