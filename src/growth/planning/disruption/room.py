"""How many more nodes of a pool may be disturbed for a reason now: budgets, and the limit on its number of nodes.

Budgets count every initialised node of the pool, those in doubt too, and take off what is not ready or on its way out. The
node limit counts everything from a reserved name to a machine that is gone. A move that replaces needs its new machines
before the old ones go: under a Hard limit neither its nodes nor its replacements may be more than what the limit leaves.
Budgets count what is disturbed, and no machine that comes. A move that only deletes needs the budget alone. A Soft limit may
be passed until the old nodes are gone, and must hold then.
"""

import collections
import dataclasses
from collections.abc import Iterable, Mapping

from growth.api.pools import HARD, node_limit_mode
from growth.cluster.snapshot import NODES
from growth.planning.budgets import Allowance, allowance
from growth.planning.disruption import words
from growth.planning.disruption.model import Move, Room, Situation


@dataclasses.dataclass(frozen=True, slots=True)
class Count:
    """What a pool's budgets allow for a reason, of how many nodes, and how many are disrupted or not ready already."""

    allowed: Allowance
    nodes: int
    disrupting: int


def counts(situation: Situation, *, reason: str) -> Mapping[str, Count]:
    """The budgets of every pool, for the metrics that show them."""
    by_pool: dict[str, list[bool]] = {name: [] for name in situation.pools}  # of each node: whether it is disrupted
    for node in situation.nodes:
        if node.pool in by_pool:
            by_pool[node.pool].append(node.leaving or not node.ready)
    for each in situation.aside:
        if each.pool in by_pool:
            by_pool[each.pool].append(each.disrupted)
    return {
        name: Count(
            allowance(pool.spec.disruption.budgets, nodes=len(by_pool[name]), reason=reason, now=situation.now),
            len(by_pool[name]),
            sum(by_pool[name]),
        )
        for name, pool in situation.pools.items()
    }


def rooms(situation: Situation, *, reason: str) -> Mapping[str, Room]:
    """The room of every pool."""
    remaining, growing = _remaining(situation), _growing(situation)
    found = {}
    for name, count in counts(situation, reason=reason).items():
        left = count.allowed.less(count.disrupting)
        limit = remaining.get(name)
        replace = left if limit is None else max(0, limit if left is None else min(left, limit))
        found[name] = Room(
            delete=left,
            replace=replace,
            limited=left != 0 and replace == 0,
            blocked=_blocked(name, count, reason) if left == 0 else "",
            buy=None if limit is None else max(0, limit),
            grow=growing.get(name),
        )
    return found


def overdrawn(moves: Iterable[Move], room: Mapping[str, Room], pool_of: Mapping[str, str]) -> tuple[str, str] | None:
    """The first pool that has no room for all of the moves, and whether its budget or its node limit is in the way, in the
    word for nodes that stay; None where all may be made. `pool_of` is by node.

    What is bought for a pool's own nodes counts there. What another pool buys for them is bounded by that pool's limit
    alone, which every plan keeps, and by none of its budgets: nothing of it is disturbed.
    """
    deleted: collections.Counter[str] = collections.Counter()
    replaced: collections.Counter[str] = collections.Counter()
    bought: collections.Counter[str] = collections.Counter()
    for move in moves:
        own = collections.Counter(pool_of[name] for name in move.nodes)
        deleted += own
        if move.replacements:
            replaced += own
            named = (each.planned.pool for each in move.replacements)
            bought += collections.Counter(str(ref) for ref in named if str(ref) in own)
    for pool in sorted(deleted):
        each = room[pool]
        if each.delete is not None and deleted[pool] > each.delete:
            return pool, words.BUDGET
        if each.replace is not None and replaced[pool] > each.replace:
            return pool, words.NODE_LIMIT
        if each.buy is not None and bought[pool] > each.buy:
            return pool, words.NODE_LIMIT
    return None


def outgrown(moves: Iterable[Move], room: Mapping[str, Room], pool_of: Mapping[str, str]) -> str:
    """The first pool whose Soft limit would not hold after all of the moves; empty where there is none."""
    more: collections.Counter[str] = collections.Counter()
    for move in moves:
        if move.replacements:
            more.update(str(each.planned.pool) for each in move.replacements)
            more.subtract(pool_of[name] for name in move.nodes)
    for pool in sorted(more):
        most = room[pool].grow if pool in room else None
        if most is not None and more[pool] > most:
            return pool
    return ""


def growth_message(pool: str) -> str:
    """Why a node stays whose replacements another limit than its budgets forbids."""
    return f"limits.nodes of NodePool {pool} would not hold with what would be bought there"


def limit_message(reason: str) -> str:
    """What the event on a pool says whose node limit, and no budget, forbids to replace anything."""
    return f"No allowed disruptions for disruption reason {reason} due to node hard limit"


def budget_message(reason: str) -> str:
    """What the event on a pool says whose budgets allow nothing."""
    return f"No allowed disruptions for disruption reason {reason} due to blocking budget"


def _remaining(situation: Situation) -> dict[str, int]:
    """How many more machines each pool with a Hard limit may have; negative where it has too many."""
    found = {}
    for view in situation.snapshot.pools:
        pool = situation.pools.get(str(view.ref))
        if pool is not None and NODES in view.limits and node_limit_mode(pool) == HARD:
            found[str(view.ref)] = view.limits[NODES] - view.used.get(NODES, 0)
    return found


def _growing(situation: Situation) -> dict[str, int]:
    """By how many machines each pool with a Soft limit may grow now, when all that is being replaced is gone."""
    return {
        str(view.ref): max(0, view.limits[NODES] - view.used.get(NODES, 0))
        for view in situation.snapshot.pools
        if str(view.ref) in situation.soft and NODES in view.limits
    }


def _blocked(pool: str, count: Count, reason: str) -> str:
    if count.allowed.faults:
        return f"NodePool {pool} has a budget that cannot be read: {count.allowed.faults[0]}"
    taken = f", {count.disrupting} of them disrupted or not ready already" if count.disrupting else ""
    return f"the budget of NodePool {pool} for reason {reason} allows {count.allowed.nodes} at a time{taken}"
