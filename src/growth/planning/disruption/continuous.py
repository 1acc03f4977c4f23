"""Growth pools in the words of disruption.

A drifted node may be replaced at any time. With `optimise: Continuous` a node may also be moved to save, when no pod has come or
gone there for `scaleDownAfter`. `spec.disruption.budgets` bound both. `max` and `limits.nodes` bound what is bought, and of no
type so many go that fewer than its `min` stay. Empty nodes are not disruption's business: scale-down removes them.
"""

import collections
import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.growthpools import CONTINUOUS, WHEN_EMPTY, GrowthPool
from growth.api.instance_types import InstanceType
from growth.api.karpenter import (
    NEVER,
    Disruption,
    NodeClaimTemplate,
    NodeClaimTemplateSpec,
    NodeClassReference,
    NodePool,
    NodePoolSpec,
)
from growth.api.meta import ObjectMeta
from growth.api.placement import Toleration
from growth.api.pods import Pod, PodSpec
from growth.api.pools import PoolRef
from growth.cluster.shapes import Shapes
from growth.cluster.snapshot import Demand, PoolView
from growth.planning.disruption import words
from growth.planning.disruption.model import Kept, Move, OwnedNode, Replacement, Situation
from growth.planning.solve import Options, solve

# A pool that names no node class has the cloud's own.
_ANY_CLASS: Final = NodeClassReference(group="", kind="", name="")
# In no namespace, so that it is no pod of the cluster.
_NO_POD: Final = "/warm"


def of_growth(pool: str) -> bool:
    """Whether a pool, as decisions name it, is one of `growth.dev`."""
    return PoolRef.parse(pool).group == names.GROWTH


def moved(pools: Iterable[GrowthPool]) -> dict[str, NodePool]:
    """The pools with the rules that hold for moves of their nodes, by the name in decisions. Nodes of a pool without `Continuous`
    move for drift only.
    """
    return {
        name: NodePool(
            metadata=ObjectMeta(name=name, annotations=pool.metadata.annotations),
            spec=NodePoolSpec(
                template=NodeClaimTemplate(
                    spec=NodeClaimTemplateSpec(node_class_ref=pool.spec.node_class_ref or _ANY_CLASS, requirements=())
                ),
                disruption=_rules(pool),
            ),
        )
        for pool in pools
        if pool.metadata.deletion_timestamp is None
        for name in (str(PoolRef.growth(pool.metadata.name)),)
    }


def _rules(pool: GrowthPool) -> Disruption:
    budgets = pool.spec.disruption.budgets
    if pool.spec.optimise == CONTINUOUS:
        return Disruption(consolidate_after=pool.spec.scale_down_after, budgets=budgets)
    return Disruption(consolidate_after=NEVER, consolidation_policy=WHEN_EMPTY, budgets=budgets)


def consolidates(pool: str, situation: Situation) -> bool:
    """Whether pods are moved to and from machines of the pool to save; of a growth pool `Continuous` says so."""
    found = situation.pools.get(pool)
    return found is not None and (not of_growth(pool) or found.spec.disruption.consolidation_policy != WHEN_EMPTY)


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
        counts = _is_warm(node)
        if not counts or left.get(key, 1) > 0:
            going.append(node)
            if counts and key in left:
                left[key] -= 1
        else:
            kept.append(Kept(node.name, node.pool, words.MINIMUM, _told(key, situation.minima), disabled=True))
    return going, kept


def too_few(nodes: Collection[str], situation: Situation) -> str:
    """Why not all of these may go: what would stay of a type is less than its minimum. Empty where they may."""
    going = collections.Counter(_key(node) for node in situation.nodes if node.name in nodes and _is_warm(node))
    beyond = _beyond(situation)
    return next((_told(key, situation.minima) for key in sorted(going) if going[key] > beyond.get(key, going[key])), "")


def _key(node: OwnedNode) -> tuple[str, str]:
    return node.pool, node.instance_type.lower()


def _is_warm(node: OwnedNode) -> bool:
    """Whether it counts for a minimum: a node that is not ready holds nothing that pods could use."""
    return node.ready and not node.leaving


def _beyond(situation: Situation) -> dict[tuple[str, str], int]:
    """Of each type with a minimum, how many of the nodes that stay are beyond it."""
    staying = collections.Counter(_key(node) for node in situation.nodes if _is_warm(node))
    return {key: staying[key] - least for key, least in situation.minima.items()}


def _told(key: tuple[str, str], least: Mapping[tuple[str, str], int]) -> str:
    pool, type_ = key
    return f"NodePool {pool} keeps {least[key]} machines of type {type_} (min)"


def alone(node: OwnedNode, situation: Situation) -> Situation:
    """The situation where its pool buys machines of the node's type only, and no other growth pool buys anything."""
    views = tuple(
        dataclasses.replace(view, instance_types=_of_type(view, node.instance_type))
        if str(view.ref) == node.pool
        else view
        for view in situation.snapshot.pools
    )
    return dataclasses.replace(
        situation,
        snapshot=dataclasses.replace(situation.snapshot, pools=views),
        pools={name: pool for name, pool in situation.pools.items() if name == node.pool or not of_growth(name)},
    )


def without_maxima(situation: Situation, pool: str) -> Situation:
    """The situation where the pool may have any number of machines of each of its types."""
    views = tuple(
        dataclasses.replace(view, type_max={}) if str(view.ref) == pool else view for view in situation.snapshot.pools
    )
    return dataclasses.replace(situation, snapshot=dataclasses.replace(situation.snapshot, pools=views))


def keeps_warm(move: Move, node: OwnedNode) -> bool:
    """Whether the move buys a machine of the node's pool and type, so that the minimum is kept when the node goes."""
    key = (node.pool, node.instance_type.lower())
    return any((str(each.planned.pool), each.planned.instance_type.lower()) == key for each in move.replacements)


def warm(node: OwnedNode, situation: Situation, options: Options) -> Replacement | None:
    """A machine of the node's pool and type that is bought for no pod; None where there is no room for one, or no stock."""
    views = tuple(
        dataclasses.replace(view, instance_types=_of_type(view, node.instance_type))
        for view in situation.snapshot.pools
        if str(view.ref) == node.pool
    )
    shape = (
        Shapes()
        .keep(
            Pod(
                spec=PodSpec(
                    tolerations=(Toleration(operator="Exists"),),
                    node_selector={names.POOL_LABEL: PoolRef.parse(node.pool).name},
                )
            )
        )
        .shape
    )
    snapshot = dataclasses.replace(situation.snapshot, pools=views, nodes=())
    plan = solve(snapshot, (Demand(_NO_POD, shape),), options)
    if not plan.claims:
        return None
    planned = dataclasses.replace(plan.claims[0], pods=())
    return Replacement(planned=planned, types=planned.instance_types, max_price=planned.max_price)


def _of_type(view: PoolView, type_: str) -> tuple[InstanceType, ...]:
    return tuple(kind for kind in view.instance_types if kind.name.lower() == type_.lower())
