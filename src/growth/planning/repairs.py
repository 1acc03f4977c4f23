"""Which Nodes are broken by the rules of their cloud, since when, and whether so many are that it is no machine's fault."""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final

from growth.api.clouds import RepairPolicy
from growth.api.nodes import Node

# Where more than this share of a pool's nodes is broken, the cause lies elsewhere: nothing is repaired.
SHARE_PERCENT: Final = 20


@dataclasses.dataclass(frozen=True, slots=True)
class Broken:
    """A Node's condition that means a broken machine, `since` when; from `due` on nobody waits for it to recover."""

    condition: str
    status: str
    since: dt.datetime
    due: dt.datetime


def broken(node: Node, policies: Iterable[RepairPolicy]) -> Broken | None:
    """The condition that is due first; None for a sound node, and where nobody can say since when it is broken."""
    found = [
        Broken(told.type, told.status, told.last_transition_time, told.last_transition_time + policy.toleration)
        for policy in policies
        for told in node.status.conditions
        if (told.type, told.status) == (policy.condition, policy.status) and told.last_transition_time is not None
    ]
    return min(found, key=lambda each: (each.due, each.condition, each.status), default=None)


def too_many(nodes: Sequence[Node], policies: Sequence[RepairPolicy]) -> str:
    """Why none of these nodes is to be repaired: too many are broken, whether or not they are due. Empty when not."""
    number = sum(broken(node, policies) is not None for node in nodes)
    most = -(-len(nodes) * SHARE_PERCENT // 100)
    return f"{number} of {len(nodes)} nodes are unhealthy, and repair stops above {most}" if number > most else ""
