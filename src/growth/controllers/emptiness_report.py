"""What a pass of scale-down tells: metrics every time, events and Decisions when something changed.

A node that stays for the same reason as before is not told about again: an idle cluster is silent.
"""

import collections
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from growth.api import names
from growth.api.decisions import DecisionAction, DecisionCost, DecisionSpec, KeptNodes
from growth.api.events import NORMAL, regarding
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim
from growth.api.nodes import NODE, Node
from growth.cluster.pricing import by_name, price_of, type_of
from growth.controllers.environment import Environment
from growth.planning.emptiness import EmptinessPlan, Kept, OwnedNode
from growth.telemetry.logs import logger
from growth.telemetry.metrics import Counter, Declaration, Gauge, Histogram

_log = logger("disruption")

CONTROLLER: Final = "emptiness"
# What Karpenter shows where nothing bounds a pool.
UNBOUNDED: Final = 2**31 - 1
BILLION: Final = 1_000_000_000

_REASON: Final = names.EMPTY.lower()
_TYPE: Final = "empty"
_DELETE: Final = "delete"

EVALUATION_SECONDS: Final = Histogram(
    "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
    "How long deciding on a disruption took, by method.",
    labels=("reason", "consolidation_type"),
)
DECISIONS: Final = Counter(
    "karpenter_voluntary_disruption_decisions_total",
    "Disruptions that were decided on.",
    labels=("decision", "reason", "consolidation_type"),
)
DECISIONS_BY_POOL: Final = Counter(
    "karpenter_voluntary_disruption_decisions_by_nodepool_total",
    "Disruptions that were decided on, by pool.",
    labels=("nodepool", "decision", "reason", "consolidation_type"),
)
ELIGIBLE_NODES: Final = Gauge(
    "karpenter_voluntary_disruption_eligible_nodes", "Nodes that could be disrupted now.", labels=("reason",)
)
FAILED_VALIDATIONS: Final = Counter(
    "karpenter_voluntary_disruption_failed_validations_total",
    "Nodes that were chosen and turned out to be needed after all.",
    labels=("consolidation_type",),
)
ALLOWED_DISRUPTIONS: Final = Gauge(
    "karpenter_nodepools_allowed_disruptions",
    "How many nodes of a pool its budgets allow to be disrupted at a time.",
    labels=("nodepool", "reason"),
)
CONSUMING_BUDGETS: Final = Gauge(
    "karpenter_nodepools_nodes_consuming_budgets",
    "How many nodes of a pool are disrupted or not ready, and so use up its budgets.",
    labels=("nodepool", "reason"),
)
METRICS: Final[tuple[Declaration, ...]] = (
    EVALUATION_SECONDS,
    DECISIONS,
    DECISIONS_BY_POOL,
    ELIGIBLE_NODES,
    FAILED_VALIDATIONS,
    ALLOWED_DISRUPTIONS,
    CONSUMING_BUDGETS,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """One pass: its plan, what it looked at by the node's name, and which nodes' claims it deleted."""

    plan: EmptinessPlan
    nodes: Mapping[str, tuple[Node, NodeClaim, OwnedNode]]
    removed: tuple[str, ...] = ()


class Report:
    """Remembers what was told last, so that it need not be told again."""

    def __init__(self, env: Environment, tell: Callable[[Seen], Awaitable[None]] | None) -> None:
        self._env = env
        self._tell = tell
        self._kept: dict[str, str] = {}
        self._blocked: dict[str, str] = {}
        self._pools: set[str] = set()

    def failed(self) -> None:
        """A node was chosen, and the fresh look found it needed."""
        self._env.metrics.add(FAILED_VALIDATIONS, consolidation_type=_TYPE)

    async def told(self, seen: Seen, *, seconds: float) -> None:
        self._measure(seen, seconds)
        if not self._env.settings.observe:
            self._tell_pools(seen)
            self._tell_nodes(seen)
        if self._tell is not None:
            await self._tell(seen)

    def _measure(self, seen: Seen, seconds: float) -> None:
        metrics = self._env.metrics
        metrics.observe(EVALUATION_SECONDS, seconds, reason=_REASON, consolidation_type=_TYPE)
        metrics.set(ELIGIBLE_NODES, seen.plan.eligible, reason=_REASON)
        for pool in self._pools - set(seen.plan.budgets):
            metrics.forget(ALLOWED_DISRUPTIONS, nodepool=pool)
            metrics.forget(CONSUMING_BUDGETS, nodepool=pool)
        self._pools = set(seen.plan.budgets)
        for pool, budget in seen.plan.budgets.items():
            allowed = UNBOUNDED if budget.allowed.nodes is None else budget.allowed.nodes
            metrics.set(ALLOWED_DISRUPTIONS, allowed, nodepool=pool, reason=names.EMPTY)
            metrics.set(CONSUMING_BUDGETS, budget.disrupting, nodepool=pool, reason=names.EMPTY)
        if seen.removed:
            metrics.add(DECISIONS, decision=_DELETE, reason=_REASON, consolidation_type=_TYPE)
        for pool in sorted({seen.nodes[name][2].pool for name in seen.removed}):
            metrics.add(DECISIONS_BY_POOL, nodepool=pool, decision=_DELETE, reason=_REASON, consolidation_type=_TYPE)

    def _tell_pools(self, seen: Seen) -> None:
        """Pools whose budget allows nothing at all, and why where the budget is at fault."""
        blocked = {
            name: "; ".join(budget.allowed.faults)
            for name, budget in seen.plan.budgets.items()
            if budget.nodes and budget.allowed.nodes == 0
        }
        for name, faults in blocked.items():
            pool = self._env.state.pools.store.get(name)
            if pool is None or self._blocked.get(name) == faults:
                continue
            message = f"No allowed disruptions for disruption reason {names.EMPTY} due to blocking budget"
            if faults:
                message = f"{message} ({faults})"
                _log.error("detected disruption budget errors", NodePool=name, error=faults)
            self._env.events.event(regarding(NODE_POOL, pool.metadata), names.DISRUPTION_BLOCKED, message, type=NORMAL)
        self._blocked = blocked

    def _tell_nodes(self, seen: Seen) -> None:
        kept = {each.node: each for each in seen.plan.kept if not each.waits}
        for name, each in kept.items():
            if self._kept.get(name) == each.reason:
                continue
            node, claim, _ = seen.nodes[name]
            reason = names.UNCONSOLIDATABLE if each.disabled else names.DISRUPTION_BLOCKED
            message = each.reason[:1].upper() + each.reason[1:]
            self._env.events.event(regarding(NODE, node.metadata), reason, message, type=NORMAL)
            self._env.events.event(regarding(NODE_CLAIM, claim.metadata), reason, message, type=NORMAL)
        self._kept = {name: each.reason for name, each in kept.items()}


def decision(seen: Seen, env: Environment) -> DecisionSpec:
    """The pass as it goes into history. Nodes that only wait for their time are not mentioned."""
    plan, observing = seen.plan, env.settings.observe
    going = plan.remove if observing else seen.removed
    kept = [each for each in plan.kept if not each.waits]
    if going:
        outcome, summary = ("WouldAct", "would remove") if observing else ("Acted", "removes")
        summary = f"{summary} {_count(len(going), 'empty node')}"
    elif kept:
        outcome, summary = "Blocked", f"{_count(len(kept), 'empty node')} must stay"
    else:
        outcome, summary = "Nothing", "no empty node is to be removed"
    return DecisionSpec(
        at=env.clock.now(),
        controller=CONTROLLER,
        outcome=outcome,
        summary=summary,
        actions=tuple(_action(seen, name) for name in going),
        kept=_grouped(kept),
        cost=_cost(seen, going, env),
    )


def _action(seen: Seen, name: str) -> DecisionAction:
    node, claim, view = seen.nodes[name]
    return DecisionAction(
        verb=_DELETE,
        object=f"NodeClaim/{claim.metadata.name}",
        node_pool=view.pool,
        instance_type=node.metadata.labels.get(names.INSTANCE_TYPE_LABEL, ""),
        price=None if view.price is None else view.price / BILLION,
        why=f"node {name} is empty",
    )


def _grouped(kept: list[Kept]) -> tuple[KeptNodes, ...]:
    counts = collections.Counter(each.reason for each in kept)
    first: dict[str, str] = {}
    for each in kept:
        first.setdefault(each.reason, each.node)
    return tuple(KeptNodes(nodes=number, example=first[reason], reason=reason) for reason, number in counts.items())


def _cost(seen: Seen, going: tuple[str, ...], env: Environment) -> DecisionCost | None:
    """Of the nodes that are looked at, when some go; none where the price of one is not known."""
    catalogue = env.state.catalogue if going else None
    if catalogue is None:
        return None
    types = by_name(catalogue.types)
    before = after = 0
    for name, (node, _, view) in seen.nodes.items():
        labels = node.metadata.labels
        price = price_of(labels, type_of(labels, types))
        if view.leaving:
            continue
        if price is None:
            return None
        before += price
        after += 0 if name in going else price
    return DecisionCost(currency=catalogue.currency, before=before / BILLION, after=after / BILLION)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
