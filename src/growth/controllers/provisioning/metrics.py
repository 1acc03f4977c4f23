"""What provisioning counts, under Karpenter's names."""

from typing import Final

from growth.controllers.provisioning import journeys
from growth.telemetry.metrics import Counter, Declaration, Gauge, Histogram

CREATED: Final = Counter(
    "karpenter_nodeclaims_created_total",
    "Number of NodeClaims created, by reason, NodePool and whether minValues were relaxed.",
    labels=("reason", "nodepool", "min_values_relaxed"),
)
SCHEDULING_DURATION: Final = Histogram(
    "karpenter_scheduler_scheduling_duration_seconds", "How long plans take to make.", labels=("controller",)
)
QUEUE_DEPTH: Final = Gauge(
    "karpenter_scheduler_queue_depth",
    "Number of pods in the plan that is being made.",
    labels=("controller", "scheduling_id"),
)
UNFINISHED_WORK: Final = Gauge(
    "karpenter_scheduler_unfinished_work_seconds",
    "How long the plan that is being made has taken so far.",
    labels=("controller", "scheduling_id"),
)
UNSCHEDULABLE_PODS: Final = Gauge(
    "karpenter_scheduler_unschedulable_pods_count",
    "Number of pods that the last plan found no place for.",
    labels=("controller",),
)
IGNORED_PODS: Final = Gauge(
    "karpenter_scheduler_ignored_pods_count",
    "Number of pods without a node that wait for something else than a machine.",
)
PENDING_BY_ZONE: Final = Gauge(
    "karpenter_scheduler_pending_pods_by_effective_zone_count",
    "Number of pods that the last plan placed on new machines, by the zone expected for them.",
    labels=("controller", "zone"),
)

METRICS: Final[tuple[Declaration, ...]] = (
    CREATED,
    SCHEDULING_DURATION,
    QUEUE_DEPTH,
    UNFINISHED_WORK,
    UNSCHEDULABLE_PODS,
    IGNORED_PODS,
    PENDING_BY_ZONE,
    *journeys.METRICS,
)
