"""What Nodes of a type turned out to hold. Pure.

What is advertised is a few percent more than what a kubelet reports. A pod that fits only the advertised size would have
a machine bought for it, find no room, and have the next one bought. So the first Node of a type is believed, and of several
the least; it is written into the status of the class, where a restart finds it.
"""

import contextlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from growth.api import names
from growth.api.conditions import TRUE
from growth.api.instance_types import InstanceType
from growth.api.kinds import Json, Kind
from growth.api.nodeclasses import LearnedType
from growth.api.nodes import Node
from growth.units.errors import QuantityError
from growth.units.resources import Amounts, amounts, quantities

# Capacity and allocatable by type.
Sizes = Mapping[str, tuple[Amounts, Amounts]]

# Devices come and go with their plugins; these a Node has from the start.
LEARNED: Final = ("cpu", "memory", "ephemeral-storage", "pods")


def sizes(learned: Iterable[LearnedType], *, made: Collection[str]) -> Sizes:
    """Of machines that a class with one of these hashes made; those of another are forgotten."""
    found: dict[str, tuple[Amounts, Amounts]] = {}
    for each in learned:
        if each.hash in made:
            with contextlib.suppress(QuantityError):
                found[each.name] = (amounts(each.capacity), amounts(each.allocatable))
    return found


def sized(types: Iterable[InstanceType], known: Sizes) -> tuple[InstanceType, ...]:
    """The types, each as large as its machines turned out to be."""
    return tuple(kind.sized(*known[kind.name]) if kind.name in known else kind for kind in types)


def class_of(node: Node, kind: Kind[Any]) -> str:
    """The name of the class of that kind by which the Node's machine was made; empty where it was none."""
    return node.metadata.labels.get(names.node_class_label(kind.group, kind.kind), "")


def teaches(node: Node) -> bool:
    """Whether the Node says something of its type."""
    ready = any(each.type == names.READY and each.status == TRUE for each in node.status.conditions)
    return (
        ready and node.metadata.deletion_timestamp is None and bool(node.metadata.labels.get(names.INSTANCE_TYPE_LABEL))
    )


def said(node: Node, kind: Kind[Any]) -> tuple[object, ...]:
    """What of a Node can teach something: where it changes, the Node is asked again."""
    return (
        teaches(node),
        node.spec.provider_id,
        dict(node.status.capacity),
        dict(node.status.allocatable),
        node.metadata.labels.get(names.INSTANCE_TYPE_LABEL),
        class_of(node, kind),
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
