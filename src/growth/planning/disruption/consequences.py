"""The situation as it will be once moves are under way: what is decided next must not touch what they touch."""

import collections
import dataclasses
from collections.abc import Collection, Sequence

from growth.api import names
from growth.cluster.pricing import by_name
from growth.cluster.snapshot import NODES, NodeView, PoolView
from growth.planning import occupants
from growth.planning.disruption.model import Move, OwnedNode, Replacement, Situation
from growth.units.resources import add, largest


def after(situation: Situation, moves: Sequence[Move]) -> Situation:
    """The nodes of the moves leave; where nothing needs another place they are gone. The others' pods stay where they
    are until they move, and nobody else comes to the nodes that will take them. Replacements count against the limits.
    """
    leaving = {name for move in moves for name in move.nodes}
    empty = {
        node.name
        for node in situation.nodes
        if node.name in leaving and not any(occupants.reschedulable(pod) for pod in node.pods)
    }
    full = (leaving - empty) | {name for move in moves for name in move.destinations}
    bought = [replacement for move in moves for replacement in move.replacements]
    snapshot = situation.snapshot
    return dataclasses.replace(
        situation,
        snapshot=dataclasses.replace(
            snapshot,
            nodes=tuple(_filled(view, full) for view in snapshot.nodes if view.name not in empty),
            pools=tuple(_charged(pool, bought, _excused(pool, situation, moves)) for pool in snapshot.pools),
        ),
        nodes=tuple(_left(node, leaving) for node in situation.nodes),
    )


def absent(situation: Situation, nodes: Collection[str]) -> Situation:
    """The situation where these nodes are no place for anybody; in budgets they still count as nodes that stay."""
    views = tuple(view for view in situation.snapshot.nodes if view.name not in nodes)
    return dataclasses.replace(situation, snapshot=dataclasses.replace(situation.snapshot, nodes=views))


def closed(situation: Situation, nodes: Collection[str]) -> Situation:
    """The situation where nobody else comes to these nodes; who is there stays."""
    views = tuple(_filled(view, nodes) for view in situation.snapshot.nodes)
    return dataclasses.replace(situation, snapshot=dataclasses.replace(situation.snapshot, nodes=views))


def without_node_limits(situation: Situation, pools: Collection[str]) -> Situation:
    """The situation where these pools may have any number of nodes."""
    snapshot = situation.snapshot
    views = tuple(_unlimited(view) if str(view.ref) in pools else view for view in snapshot.pools)
    return dataclasses.replace(situation, snapshot=dataclasses.replace(snapshot, pools=views))


def _unlimited(view: PoolView) -> PoolView:
    return dataclasses.replace(view, limits={name: most for name, most in view.limits.items() if name != NODES})


def _filled(view: NodeView, full: Collection[str]) -> NodeView:
    """Without any room no pod fits, whatever it asks for."""
    return dataclasses.replace(view, allocatable={}) if view.name in full else view


def _left(node: OwnedNode, leaving: set[str]) -> OwnedNode:
    return dataclasses.replace(node, leaving=True, view=None) if node.name in leaving else node


def _excused(pool: PoolView, situation: Situation, moves: Sequence[Move]) -> int:
    """How many nodes of a pool with a Soft limit others of it replace: those do not count."""
    if pool.ref.group != names.KARPENTER or pool.ref.name not in situation.soft:
        return 0
    own = {node.name for node in situation.nodes if node.pool == pool.ref.name}
    there = [move for move in moves if any(each.planned.pool == pool.ref for each in move.replacements)]
    return len({name for move in there for name in move.nodes if name in own})


def _charged(pool: PoolView, bought: Sequence[Replacement], excused: int) -> PoolView:
    """Each at the largest of the types that it may become, as claims on their way count."""
    own = [each for each in bought if each.planned.pool == pool.ref]
    if not own:
        return pool
    types = by_name(pool.instance_types)
    used = add(pool.used, {NODES: len(own) - excused})
    for each in own:
        known = [types[name.lower()].capacity for name in each.types if name.lower() in types]
        used = add(used, largest(*known))
    kinds = collections.Counter(each.planned.instance_type for each in own)
    counted = {name: pool.type_used.get(name, 0) + kinds[name] for name in sorted({*pool.type_used, *kinds})}
    return dataclasses.replace(pool, used=used, type_used=counted)
