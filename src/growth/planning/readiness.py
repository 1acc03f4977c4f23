"""What keeps a machine's Node from taking pods, in Karpenter's order and words."""

import dataclasses
from typing import Final

from growth.api import names
from growth.api.conditions import FALSE, TRUE, UNKNOWN
from growth.api.karpenter import NodeClaim
from growth.api.nodes import Node
from growth.api.placement import Taint
from growth.units import QuantityError
from growth.units.resources import amount_of


@dataclasses.dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a condition does not hold yet: `reason` for programs, `message` for people."""

    reason: str
    message: str
    status: str = UNKNOWN


NOT_REGISTERED: Final = Obstacle(names.NODE_NOT_FOUND, "no Node has the machine's provider ID yet")
CLOUD_INITIALIZES: Final = Obstacle(
    names.KNOWN_EPHEMERAL_TAINTS_EXIST,
    f"the Node has the taint {names.CLOUD_UNINITIALIZED_TAINT}, which the cloud controller manager takes off: see that it runs",
)
SEVERAL_NODES: Final = Obstacle(
    names.MULTIPLE_NODES_FOUND, "several Nodes have the machine's provider ID: delete all but the right one", FALSE
)


def obstacle_to_use(claim: NodeClaim, node: Node | None) -> Obstacle | None:
    """What keeps the node from being initialised, in Karpenter's order; None when nothing does."""
    if node is None:
        return NOT_REGISTERED
    if not any(each.type == "Ready" and each.status == TRUE for each in node.status.conditions):
        return Obstacle(names.NODE_NOT_READY, "the Node's condition Ready is not True")
    startup = {(taint.key, taint.effect) for taint in claim.spec.startup_taints}
    for taint in node.spec.taints:
        if (taint.key, taint.effect) in startup:
            return Obstacle(names.STARTUP_TAINTS_EXIST, f"waiting for startup taint {_shown(taint)} to be removed")
    for taint in node.spec.taints:
        if taint.key in names.EPHEMERAL_TAINTS or taint.key.startswith(names.READINESS_TAINT_PREFIX):
            return Obstacle(names.KNOWN_EPHEMERAL_TAINTS_EXIST, f"waiting for taint {_shown(taint)} to go")
    for name in sorted(claim.spec.resources.requests):
        if _some(name, claim.spec.resources.requests[name]) and not _some(name, node.status.allocatable.get(name, 0)):
            return Obstacle(names.RESOURCE_NOT_REGISTERED, f"the Node reports no {name}, which its pods ask for")
    return None


def _some(name: str, quantity: str | float) -> bool:
    """Whether there is any; a quantity that nobody can read is not."""
    try:
        return amount_of(name, quantity) > 0
    except QuantityError:
        return False


def _shown(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
