"""Counts claims that we end, and the pods that this moves: Karpenter's two counters, for every controller that does it."""

from typing import Final

from growth.api import names
from growth.api.karpenter import NodeClaim
from growth.controllers.ownership import pool_of
from growth.telemetry.metrics import Counter, Declaration, Metrics

_LABELS: Final = ("reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode")

CLAIMS_DISRUPTED: Final = Counter(
    "karpenter_nodeclaims_disrupted_total", "NodeClaims that were deleted, by the reason for it.", labels=_LABELS
)
PODS_DISRUPTED: Final = Counter(
    "karpenter_pods_disruption_initiated_total",
    "Pods on machines whose NodeClaims were deleted, by the reason for it.",
    labels=_LABELS,
)
METRICS: Final[tuple[Declaration, ...]] = (CLAIMS_DISRUPTED, PODS_DISRUPTED)


def count_disrupted(
    metrics: Metrics, claim: NodeClaim, *, reason: str, pods: int = 0, policy: str = "", mode: str = ""
) -> None:
    """`reason` in snake_case: insufficient_capacity, launch_timeout, empty. `pods` are those that must move."""
    pool = pool_of(claim)
    labels = {
        "reason": reason,
        "nodepool": "" if pool is None else str(pool),
        "capacity_type": claim.metadata.labels.get(names.CAPACITY_TYPE_LABEL, ""),
        "consolidation_policy": policy,
        "termination_mode": mode or ("graceful" if claim.spec.termination_grace_period is None else "eventual"),
    }
    metrics.add(CLAIMS_DISRUPTED, 1, **labels)
    metrics.add(PODS_DISRUPTED, pods, **labels)
