"""Which empty nodes go now, and why the others stay.

A node is empty when no pod on it would need another place. It goes once it has been quiet for the pool's
`consolidateAfter`, nothing protects it and the pool's budget has room; the dearest first. Under every consolidation
policy.
"""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence

from growth.api import names
from growth.api.karpenter import NodePool
from growth.api.policy import PodDisruptionBudget
from growth.cluster.shapes import CachedPod
from growth.planning import occupants
from growth.planning.budgets import Allowance, allowance
from growth.units import DurationError, parse_or_never


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OwnedNode:
    """An initialised node of a Karpenter pool, with its claim.

    `quiet_seconds` is how long no pod has come or gone. `leaving`: it is being deleted, or somebody is disrupting it.
    `nominated`: pods are about to come. `price` None is not known. `doubt` is why nobody can tell whose machine it is.
    """

    name: str
    pool: str
    pods: Sequence[CachedPod] = ()
    quiet_seconds: float = 0.0
    price: int | None = None
    ready: bool = True
    leaving: bool = False
    nominated: bool = False
    protected: bool = False
    paused: bool = False
    holds_buffer: bool = False
    doubt: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """A node that stays, and why.

    `waits`: only until it has been quiet for long enough. `disabled`: its pool does not want empty nodes removed.
    """

    node: str
    pool: str
    reason: str
    waits: bool = False
    disabled: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class PoolBudget:
    """What a pool allows for this reason, of how many nodes, and how many are disrupted or not ready already."""

    allowed: Allowance
    nodes: int
    disrupting: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EmptinessPlan:
    """`remove` are names of nodes, in order; `kept` are the empty nodes that stay, by name.

    `eligible` counts the empty nodes that only a budget could keep.
    """

    remove: tuple[str, ...]
    kept: tuple[Kept, ...]
    budgets: Mapping[str, PoolBudget]
    eligible: int


def empty(pods: Sequence[CachedPod]) -> bool:
    """No pod needs another place, or only such as cost nothing to lose."""
    return all(not occupants.reschedulable(pod) or occupants.free_to_lose(pod) for pod in pods)


def plan_emptiness(
    nodes: Sequence[OwnedNode],
    pools: Mapping[str, NodePool],
    *,
    disruption_budgets: Sequence[PodDisruptionBudget] = (),
    paused: bool = False,
    now: dt.datetime,
) -> EmptinessPlan:
    """What goes and what stays. `nodes` are all initialised nodes of the pools, so that budgets can count them."""
    by_pool: dict[str, list[OwnedNode]] = {name: [] for name in pools}
    for node in nodes:
        by_pool.setdefault(node.pool, []).append(node)
    budgets = {name: _budget(pool, by_pool[name], now) for name, pool in pools.items()}
    left = {name: budget.allowed.less(budget.disrupting) for name, budget in budgets.items()}
    kept: list[Kept] = []
    eligible: list[OwnedNode] = []
    for node in nodes:
        if node.leaving or not empty(node.pods):
            continue
        stays = why_kept(node, pools.get(node.pool), disruption_budgets=disruption_budgets, paused=paused, now=now)
        if stays is None:
            eligible.append(node)
        else:
            kept.append(stays)
    remove: list[str] = []
    for node in sorted(eligible, key=_dearest_first):
        room = left[node.pool]
        if room == 0:
            kept.append(Kept(node.name, node.pool, _blocked(node.pool, budgets[node.pool])))
            continue
        left[node.pool] = None if room is None else room - 1
        remove.append(node.name)
    kept.sort(key=lambda each: each.node)
    return EmptinessPlan(remove=tuple(remove), kept=tuple(kept), budgets=budgets, eligible=len(eligible))


def _budget(pool: NodePool, nodes: Sequence[OwnedNode], now: dt.datetime) -> PoolBudget:
    allowed = allowance(pool.spec.disruption.budgets, nodes=len(nodes), reason=names.EMPTY, now=now)
    return PoolBudget(allowed, len(nodes), sum(node.leaving or not node.ready for node in nodes))


def why_kept(
    node: OwnedNode,
    pool: NodePool | None,
    *,
    disruption_budgets: Sequence[PodDisruptionBudget] = (),
    paused: bool = False,
    now: dt.datetime,
) -> Kept | None:
    """Why the node stays whatever its pool's budget says; None when it may go."""

    def kept(reason: str, *, waits: bool = False, disabled: bool = False) -> Kept:
        return Kept(node.name, node.pool, reason, waits, disabled)

    if not empty(node.pods):
        return kept("pods run there that would need another place")
    if pool is None:
        return kept(f"NodePool {node.pool} does not exist")
    if node.doubt:
        return kept(node.doubt)
    if paused or node.paused or pool.metadata.annotations.get(names.PAUSED_ANNOTATION, "false") != "false":
        whose = "the cluster" if paused else "the node" if node.paused else f"NodePool {node.pool}"
        return kept(f"{whose} is paused")
    if pool.spec.replicas is not None:
        return kept(f"NodePool {node.pool} is static: it keeps its number of nodes", disabled=True)
    try:
        after = parse_or_never(pool.spec.disruption.consolidate_after)
    except DurationError as error:
        return kept(f"NodePool {node.pool}: consolidateAfter {error}")
    if after is None:
        return kept(f"NodePool {node.pool} has consolidation disabled", disabled=True)
    if node.protected:
        return kept(f"the node has the annotation {names.DO_NOT_DISRUPT_ANNOTATION}")
    if node.holds_buffer:
        return kept("the node holds capacity of a CapacityBuffer", disabled=True)
    blocked = occupants.why_undisturbable(node.pods, disruption_budgets, now)
    if blocked:
        return kept(blocked)
    if node.nominated:
        return kept("the node is nominated for a pending pod", waits=True)
    if node.quiet_seconds < after.seconds:
        return kept(f"a pod came or went less than {after} ago", waits=True)
    return None


def _blocked(pool: str, budget: PoolBudget) -> str:
    if budget.allowed.faults:
        return f"NodePool {pool} has a budget that cannot be read: {budget.allowed.faults[0]}"
    taken = f", {budget.disrupting} of them disrupted or not ready already" if budget.disrupting else ""
    return f"the budget of NodePool {pool} for reason {names.EMPTY} allows {budget.allowed.nodes} at a time{taken}"


def _dearest_first(node: OwnedNode) -> tuple[bool, int, str]:
    return (node.price is None, -(node.price or 0), node.name)
