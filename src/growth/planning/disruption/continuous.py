"""Growth pools with `optimise: Continuous`, in the words of disruption.

Such a pool says nothing of disruption, so that Karpenter's defaults hold: a node may be moved when no pod has come or gone
there for `scaleDownAfter`, and a tenth of the pool's nodes at a time. Its `max` and `limits.nodes` bound what is bought, and
of no type so many go that fewer than its `min` stay. Empty nodes are not disruption's business: scale-down removes them.
"""

import collections
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.growthpools import CONTINUOUS, GrowthPool
from growth.api.karpenter import (
    Disruption,
    NodeClaimTemplate,
    NodeClaimTemplateSpec,
    NodeClassReference,
    NodePool,
    NodePoolSpec,
)
from growth.api.meta import ObjectMeta
from growth.api.pools import PoolRef
from growth.planning.disruption import words
from growth.planning.disruption.model import Kept, OwnedNode, Situation

# A pool that names no node class has the cloud's own.
_ANY_CLASS: Final = NodeClassReference(group="", kind="", name="")


def of_growth(pool: str) -> bool:
    """Whether a pool, as decisions name it, is one of `growth.dev`."""
    return PoolRef.parse(pool).group == names.GROWTH


def optimised(pools: Iterable[GrowthPool]) -> dict[str, NodePool]:
    """Those of the pools whose nodes may be moved, each with the rules that hold for it, by the name in decisions."""
    return {
        name: NodePool(
            metadata=ObjectMeta(name=name, annotations=pool.metadata.annotations),
            spec=NodePoolSpec(
                template=NodeClaimTemplate(
                    spec=NodeClaimTemplateSpec(node_class_ref=pool.spec.node_class_ref or _ANY_CLASS, requirements=())
                ),
                disruption=Disruption(consolidate_after=pool.spec.scale_down_after),
            ),
        )
        for pool in pools
        if pool.spec.optimise == CONTINUOUS and pool.metadata.deletion_timestamp is None
        for name in (str(PoolRef.growth(pool.metadata.name)),)
    }


def minima(pools: Iterable[GrowthPool]) -> dict[tuple[str, str], int]:
    """By pool, as decisions name it, and server type in lower case: how many must stay."""
    return {
        (str(PoolRef.growth(pool.metadata.name)), each.name.lower()): each.min
        for pool in pools
        for each in pool.spec.server_types
        if each.min
    }


def spare(nodes: Sequence[OwnedNode], situation: Situation) -> tuple[list[OwnedNode], list[Kept]]:
    """Of the nodes, in their order, those that may go such that every minimum stays; and why the others do not."""
    left = _beyond(situation)
    going: list[OwnedNode] = []
    kept: list[Kept] = []
    for node in nodes:
        key = _key(node)
        if left.get(key, 1) > 0:
            going.append(node)
            if key in left:
                left[key] -= 1
        else:
            kept.append(Kept(node.name, node.pool, words.MINIMUM, _told(key, situation.minima), disabled=True))
    return going, kept


def too_few(nodes: Collection[str], situation: Situation) -> str:
    """Why not all of these may go: what would stay of a type is less than its minimum. Empty where they may."""
    going = collections.Counter(_key(node) for node in situation.nodes if node.name in nodes)
    beyond = _beyond(situation)
    return next((_told(key, situation.minima) for key in sorted(going) if going[key] > beyond.get(key, going[key])), "")


def _key(node: OwnedNode) -> tuple[str, str]:
    return node.pool, node.instance_type.lower()


def _beyond(situation: Situation) -> dict[tuple[str, str], int]:
    """Of each type with a minimum, how many of the nodes that stay are beyond it."""
    staying = collections.Counter(_key(node) for node in situation.nodes if not node.leaving)
    return {key: staying[key] - least for key, least in situation.minima.items()}


def _told(key: tuple[str, str], least: Mapping[tuple[str, str], int]) -> str:
    pool, type_ = key
    return f"NodePool {pool} keeps {least[key]} machines of type {type_} (min)"
