"""What Nodes of a type turned out to hold. Pure.

What is advertised is a few percent more than what a kubelet reports. A pod that fits only the advertised size would have
a machine bought for it, find no room, and have the next one bought. So the first Node of a type is believed, and of several
the least; it is written into the status of the class, where a restart finds it.
"""

from collections.abc import Mapping
from typing import Final

from growth.api import names
from growth.api.conditions import TRUE
from growth.api.kinds import Json
from growth.api.nodeclasses import HETZNER_NODE_CLASS, HetznerNodeClass
from growth.api.nodes import Node
from growth.providers.hetzner.classes import hash_of
from growth.units.errors import QuantityError
from growth.units.resources import amounts, quantities

# Devices come and go with their plugins; these a Node has from the start.
LEARNED: Final = ("cpu", "memory", "ephemeral-storage", "pods")


def teaches(node: Node, node_class: HetznerNodeClass, *, class_hash: str) -> bool:
    """Whether the Node says something of machines that the class makes now. `class_hash` is its machine's."""
    label = names.node_class_label(HETZNER_NODE_CLASS.group, HETZNER_NODE_CLASS.kind)
    ready = any(each.type == names.READY and each.status == TRUE for each in node.status.conditions)
    return (
        ready
        and node.metadata.deletion_timestamp is None
        and node.metadata.labels.get(label) == node_class.metadata.name
        and bool(node.metadata.labels.get(names.INSTANCE_TYPE_LABEL))
        and class_hash == hash_of(node_class.spec)
    )


def learn(draft: Json, node: Node, *, class_hash: str) -> None:
    """Lays what the Node reports into the class' status; nothing changes where that is known already."""
    kind = node.metadata.labels[names.INSTANCE_TYPE_LABEL]
    try:
        has, leaves = amounts(_some(node.status.capacity)), amounts(_some(node.status.allocatable))
    except QuantityError:
        return
    if not has or not leaves:
        return
    status = draft.setdefault("status", {})
    listed: list[Json] = list(status.get("learnedTypes") or [])
    known = next((each for each in listed if each.get("name") == kind), None)
    if known is not None and known.get("hash") == class_hash:
        has, leaves = _least(has, known.get("capacity")), _least(leaves, known.get("allocatable"))
    learned: Json = {
        "name": kind,
        "hash": class_hash,
        "capacity": quantities(has),
        "allocatable": quantities(leaves),
    }
    if known == learned:
        return
    others = [each for each in listed if each.get("name") != kind]
    status["learnedTypes"] = sorted((*others, learned), key=lambda each: str(each.get("name")))


def _some(reported: Mapping[str, str | int | float]) -> dict[str, str | int | float]:
    return {name: reported[name] for name in LEARNED if name in reported}


def _least(found: Mapping[str, int], known: Mapping[str, str] | None) -> dict[str, int]:
    try:
        before = amounts(known or {})
    except QuantityError:
        before = {}
    return {name: min(amount, before.get(name, amount)) for name, amount in found.items()}
