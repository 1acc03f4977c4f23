"""What disruption counts, under Karpenter's names."""

from typing import Final

from growth.telemetry.metrics import Counter, Declaration, Gauge, Histogram

# What Karpenter shows where nothing bounds a pool.
UNBOUNDED: Final = 2**31 - 1

_METHOD: Final = ("reason", "consolidation_type")

EVALUATION_SECONDS: Final = Histogram(
    "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
    "How long deciding on disruptions took.",
    labels=_METHOD,
)
DECISIONS: Final = Counter(
    "karpenter_voluntary_disruption_decisions_total",
    "Disruptions that were decided on and begun.",
    labels=("decision", *_METHOD),
)
DECISIONS_BY_POOL: Final = Counter(
    "karpenter_voluntary_disruption_decisions_by_nodepool_total",
    "Disruptions that were decided on and begun, by pool.",
    labels=("nodepool", "decision", *_METHOD),
)
ELIGIBLE_NODES: Final = Gauge(
    "karpenter_voluntary_disruption_eligible_nodes", "Nodes that could be disrupted now.", labels=("reason",)
)
TIMEOUTS: Final = Counter(
    "karpenter_voluntary_disruption_consolidation_timeouts_total",
    "Searches for consolidation that ended with their budget of steps, and not with all that there is to find.",
    labels=("consolidation_type",),
)
FAILED_VALIDATIONS: Final = Counter(
    "karpenter_voluntary_disruption_failed_validations_total",
    "Nodes that were chosen and turned out to be needed after all.",
    labels=("consolidation_type",),
)
QUEUE_FAILURES: Final = Counter(
    "karpenter_voluntary_disruption_queue_failures_total",
    "Replacements that were bought for a disruption and did not come up.",
    labels=("decision", *_METHOD),
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
PREEMPTED: Final = Counter(
    "growth_disruption_preempted_total", "Searches that were dropped because pods waited for a plan."
)
METRICS: Final[tuple[Declaration, ...]] = (
    EVALUATION_SECONDS,
    DECISIONS,
    DECISIONS_BY_POOL,
    ELIGIBLE_NODES,
    TIMEOUTS,
    FAILED_VALIDATIONS,
    QUEUE_FAILURES,
    ALLOWED_DISRUPTIONS,
    CONSUMING_BUDGETS,
    PREEMPTED,
)
