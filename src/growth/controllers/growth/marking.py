"""The mark of a node that is to be scaled down: the taint that keeps new pods away, and when its time is over."""

import datetime as dt

from growth.api import names
from growth.api.edits import add_taint, remove_taint, set_annotations
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.placement import NO_SCHEDULE
from growth.controllers.tainting import NodeReplaced
from growth.kube.api import Api
from growth.kube.changes import change
from growth.units import TimestampError, parse_time, print_time


def scale_down_at(node: Node) -> dt.datetime | None:
    """When the node's time is over; None where it does not say, or not readably."""
    try:
        return parse_time(node.metadata.annotations.get(names.SCALE_DOWN_AT_ANNOTATION, ""))
    except TimestampError:
        return None


async def mark(api: Api, node: Node, *, at: dt.datetime) -> None:
    """Taints the Node until `at`. `NodeReplaced` when another Node has its name by now."""

    def edit(draft: Json) -> None:
        _check(draft, node)
        add_taint(draft, key=names.SCALE_DOWN_TAINT, effect=NO_SCHEDULE)
        set_annotations(draft, {names.SCALE_DOWN_AT_ANNOTATION: print_time(at)})

    await change(api, NODE, node.metadata.name, edit)


async def unmark(api: Api, node: Node) -> None:
    """Takes the mark off; on a Node that is being deleted it stays. `NodeReplaced` as in `mark`."""

    def edit(draft: Json) -> None:
        _check(draft, node)
        if not draft["metadata"].get("deletionTimestamp"):
            remove_taint(draft, key=names.SCALE_DOWN_TAINT)
            set_annotations(draft, {names.SCALE_DOWN_AT_ANNOTATION: None})

    await change(api, NODE, node.metadata.name, edit)


def _check(draft: Json, node: Node) -> None:
    if draft["metadata"]["uid"] != node.metadata.uid:
        raise NodeReplaced(f"Node {node.metadata.name} is another one than was looked at")
