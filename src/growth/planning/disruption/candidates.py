"""Who may be disturbed at all, for a reason, and what protects the others. Budgets and limits are `room`'s business.

Emptiness and consolidation are graceful: a pod that may not be asked to leave keeps its node. Drift is not: where the
claim has a termination grace period, whatever protects pods ends some time, and the node may go. The node's own
annotation, a nomination and a pause hold for every reason.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from growth.api import names
from growth.api.karpenter import NodePool
from growth.cluster.paying import too_early
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import key_of
from growth.planning import occupants
from growth.planning.disruption import words
from growth.planning.disruption.continuous import consolidates, of_growth
from growth.planning.disruption.model import Kept, OwnedNode, Situation
from growth.units import DurationError, parse_or_never

WHEN_EMPTY: Final = "WhenEmpty"
CONSOLIDATION: Final = frozenset({names.EMPTY, names.UNDERUTILIZED})
# A move may take about so long: nobody keeps a machine for it that waits for what ends later.
SOON: Final = dt.timedelta(minutes=10)


def empty(pods: Sequence[CachedPod]) -> bool:
    """No pod needs another place, or only such as cost nothing to lose."""
    return all(not occupants.reschedulable(pod) or occupants.free_to_lose(pod) for pod in pods)


def disruption_cost(node: OwnedNode) -> int:
    """What disturbing the node costs, in parts of `occupants.ONE`: one for itself, and its pods as far as they cost."""
    costs = (occupants.eviction_cost(pod) for pod in node.pods if occupants.reschedulable(pod))
    return occupants.ONE + sum(cost for cost in costs if cost > 0)


def in_order(nodes: Iterable[OwnedNode]) -> tuple[OwnedNode, ...]:
    """Candidates for consolidation, those first that cost much and disturb little: by price ÷ disruption cost.

    Those whose price is not known come last; ties go by name.
    """
    return tuple(sorted(nodes, key=_worth))


def _worth(node: OwnedNode) -> tuple[bool, int, str]:
    return (node.price is None, -((node.price or 0) * occupants.ONE // disruption_cost(node)), node.name)


def why_kept(node: OwnedNode, situation: Situation, *, reason: str, graceful: bool = True) -> Kept | None:
    """Why the node stays whatever budgets and limits say; None when it may go. For the reason `Empty` it must be empty."""
    return next(_reasons(node, situation, reason=reason, graceful=graceful), None)


def protection_passes(node: OwnedNode, situation: Situation) -> bool:
    """Whether all that protects the node by now ends by itself before long: a budget that is used up by others, and an
    annotation for a time that is nearly over.
    """
    return not node.protected and all(_passes(pod, situation) for pod in node.pods if occupants.active(pod))


def _passes(pod: CachedPod, situation: Situation) -> bool:
    held = occupants.protection(pod, situation.now)
    if held.holds:
        return held.until is not None and held.until - situation.now <= SOON
    return not occupants.evictable(pod, situation.now) or not occupants.cannot_leave(
        pod, situation.pod_budgets, situation.now
    )


def may_receive(node: OwnedNode, situation: Situation) -> bool:
    """Whether pods that we move may go there: not where pods came or went a moment ago, and nowhere on its way out.

    Pods without a place, and those of nodes that go anyway, are free to go anywhere.
    """
    if node.leaving or node.view is None:
        return False
    if of_growth(node.pool) and empty(node.pods):
        return True  # it would be scaled down, and another bought
    pool = situation.pools.get(node.pool)
    if pool is None:
        return True
    try:
        after = parse_or_never(pool.spec.disruption.consolidate_after)
    except DurationError:
        return False
    return after is None or node.quiet_seconds >= after.seconds


def _reasons(node: OwnedNode, situation: Situation, *, reason: str, graceful: bool) -> Iterator[Kept]:
    """Every rule that keeps the node, the first of which is told."""

    def kept(word: str, message: str, *, waits: bool = False, disabled: bool = False) -> Kept:
        return Kept(node.name, node.pool, word, message, waits, disabled)

    pool = situation.pools.get(node.pool)
    if node.leaving:
        yield kept(words.LEAVING, "it is being removed already", waits=True)
    if reason == names.EMPTY and not empty(node.pods):
        yield kept(words.IN_USE, "pods run there that would need another place")
    if reason == names.EMPTY and of_growth(node.pool):
        yield kept(words.GROWTH_POOL, f"NodePool {node.pool} removes its nodes by rules of its own", disabled=True)
    if reason == names.DRIFTED_REASON and not node.drifted:
        yield kept(words.UP_TO_DATE, f"it is what NodePool {node.pool} asks for")
    if pool is None:
        yield kept(words.POOL_NOT_FOUND, f"NodePool {node.pool} does not exist")
        return
    if reason == names.UNDERUTILIZED and not consolidates(node.pool, situation):
        yield kept(
            words.GROWTH_POOL, f"NodePool {node.pool} moves no pods to save (optimise: WhenEmpty)", disabled=True
        )
    whose = _paused(node, situation, pool)
    if whose:
        yield kept(words.PAUSED, f"{whose} is paused")
    if reason in CONSOLIDATION:
        yield from _of_consolidation(node, pool, reason)
    if node.protected:
        yield kept(words.DO_NOT_DISRUPT, f"the node has the annotation {names.DO_NOT_DISRUPT_ANNOTATION}")
    if reason in CONSOLIDATION and node.holds_buffer:
        yield kept(words.BUFFER, "the node holds capacity of a CapacityBuffer", disabled=True)
    if graceful or not node.ends:
        yield from _of_pods(node, situation)
    if node.nominated:
        yield kept(words.NOMINATED, "the node is nominated for a pending pod", waits=True)
    if reason in CONSOLIDATION:
        after = parse_or_never(pool.spec.disruption.consolidate_after)
        if after is not None and node.quiet_seconds < after.seconds:
            yield kept(words.CONSOLIDATE_AFTER, f"a pod came or went less than {after} ago", waits=True)
    if reason in CONSOLIDATION and empty(node.pods) and too_early(node.paid_until, situation.now):
        yield kept(words.PAID, f"it is empty and paid for until {node.paid_until:%Y-%m-%dT%H:%M:%SZ}", waits=True)
    if reason == names.UNDERUTILIZED and node.price is None:
        yield kept(words.PRICE_UNKNOWN, "its price is not known, so that nobody can say what a move would save")


def _of_consolidation(node: OwnedNode, pool: NodePool, reason: str) -> Iterator[Kept]:
    """What the pool says of emptiness and consolidation."""

    def kept(word: str, message: str, *, disabled: bool = False) -> Kept:
        return Kept(node.name, node.pool, word, message, disabled=disabled)

    disruption = pool.spec.disruption
    if pool.spec.replicas is not None:
        yield kept(words.STATIC, f"NodePool {node.pool} is static: it keeps its number of nodes", disabled=True)
    try:
        after = parse_or_never(disruption.consolidate_after)
    except DurationError as error:
        yield kept(words.MALFORMED, f"NodePool {node.pool}: consolidateAfter {error}")
    else:
        if after is None:
            yield kept(words.DISABLED, f"NodePool {node.pool} has consolidation disabled", disabled=True)
    if reason == names.UNDERUTILIZED and disruption.consolidation_policy == WHEN_EMPTY:
        told = f"NodePool {node.pool} has non-empty consolidation disabled (consolidationPolicy {WHEN_EMPTY})"
        yield kept(words.DISABLED, told, disabled=True)


def _paused(node: OwnedNode, situation: Situation, pool: NodePool) -> str:
    if situation.paused:
        return "the cluster"
    if node.paused:
        return "the node"
    if pool.metadata.annotations.get(names.PAUSED_ANNOTATION, "false") != "false":
        return f"NodePool {node.pool}"
    return ""


def _of_pods(node: OwnedNode, situation: Situation) -> Iterator[Kept]:
    """A DaemonSet's pod and a mirror pod can protect their node too."""
    for pod in node.pods:
        if occupants.active(pod):
            held = occupants.protection(pod, situation.now)
            if held.holds:
                until = "" if held.until is None else f" until {held.until:%Y-%m-%dT%H:%M:%SZ}"
                told = f"pod {key_of(pod)} has the annotation {names.DO_NOT_DISRUPT_ANNOTATION}{until}"
                yield Kept(node.name, node.pool, words.DO_NOT_DISRUPT, told, waits=held.until is not None)
        if occupants.evictable(pod, situation.now):
            told = occupants.refusal(pod, situation.pod_budgets)
            if told:
                yield Kept(node.name, node.pool, words.POD_BUDGET, told)
