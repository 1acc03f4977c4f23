"""The mark on a Node that is being disrupted: no new pods, and no traffic from load balancers. One write, and one back."""

from typing import Final

from growth.api import names
from growth.api.edits import add_taint, remove_taint, set_labels
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.placement import NO_SCHEDULE
from growth.kube.api import Api
from growth.kube.changes import change

# Who excluded the node from load balancers; another value is somebody else's and stays.
EXCLUDED_BY: Final = "karpenter"


def marked(node: Node) -> bool:
    """Whether the Node carries the whole mark."""
    return tainted(node) and names.EXCLUDE_FROM_LOAD_BALANCERS_LABEL in node.metadata.labels


def tainted(node: Node) -> bool:
    return any(taint.key == names.DISRUPTED_TAINT and taint.effect == NO_SCHEDULE for taint in node.spec.taints)


async def mark(api: Api, node: Node) -> Json:
    """The Node as the server has it with the mark. `NodeReplaced` when another Node has its name by now."""

    def edit(draft: Json) -> None:
        _check(draft, node)
        taints = (draft.get("spec") or {}).get("taints") or []
        if any(each.get("key") == names.DISRUPTED_TAINT and each.get("effect") != NO_SCHEDULE for each in taints):
            remove_taint(draft, key=names.DISRUPTED_TAINT)
        add_taint(draft, key=names.DISRUPTED_TAINT, effect=NO_SCHEDULE)
        if names.EXCLUDE_FROM_LOAD_BALANCERS_LABEL not in (draft["metadata"].get("labels") or {}):
            set_labels(draft, {names.EXCLUDE_FROM_LOAD_BALANCERS_LABEL: EXCLUDED_BY})

    return await change(api, NODE, node.metadata.name, edit)


async def unmark(api: Api, node: Node, *, known: Json | None = None) -> Json:
    """The Node without the mark; on one that is being deleted it stays. `NodeReplaced` as in `mark`.

    `known` is the Node as the server gave it: `Conflict` where it is another by now.
    """

    def edit(draft: Json) -> None:
        _check(draft, node)
        if draft["metadata"].get("deletionTimestamp"):
            return
        remove_taint(draft, key=names.DISRUPTED_TAINT)
        labels = draft["metadata"].get("labels") or {}
        if labels.get(names.EXCLUDE_FROM_LOAD_BALANCERS_LABEL) == EXCLUDED_BY:
            set_labels(draft, {names.EXCLUDE_FROM_LOAD_BALANCERS_LABEL: None})

    if known is None:
        return await change(api, NODE, node.metadata.name, edit)
    return await change(api, NODE, node.metadata.name, edit, known=known, attempts=1)


class NodeReplaced(Exception):
    """The Node that was meant is gone, and another has its name."""


def _check(draft: Json, node: Node) -> None:
    if draft["metadata"]["uid"] != node.metadata.uid:
        raise NodeReplaced(f"Node {node.metadata.name} is another one than was looked at")
