"""Counts claims that Growth itself ends before their users do, with Karpenter's names, labels and words.

Every controller that deletes a claim counts it here: emptiness, collection, launch and liveness failures.
"""

from typing import Final

from growth.api import names
from growth.api.karpenter import NodeClaim
from growth.api.pools import PoolRef
from growth.telemetry.metrics import Counter, Metrics
from growth.units import Duration

_LABELS: Final = ("reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode")

NODECLAIMS_DISRUPTED: Final = Counter(
    "karpenter_nodeclaims_disrupted_total", "NodeClaims that were ended, and why.", labels=_LABELS
)
PODS_DISRUPTION_INITIATED: Final = Counter(
    "karpenter_pods_disruption_initiated_total", "Pods on nodes whose disruption began.", labels=_LABELS
)
METRICS: Final = (NODECLAIMS_DISRUPTED, PODS_DISRUPTION_INITIATED)

# What Karpenter calls the causes; those of budgets are written in lower case.
EMPTY: Final = "empty"
GARBAGE_COLLECTED: Final = "garbage_collected"
INSUFFICIENT_CAPACITY: Final = "insufficient_capacity"
NODE_CLASS_NOT_READY: Final = "nodeclass_not_ready"


def count_disrupted(metrics: Metrics, claim: NodeClaim, *, reason: str, policy: str = "", pods: int = 0) -> None:
    """One claim ended for `reason`; `policy` is its pool's for disruptions that a pool allows, `pods` had to move."""
    labels = {
        "reason": reason,
        "nodepool": pool_label(claim),
        "capacity_type": claim.metadata.labels.get(names.CAPACITY_TYPE_LABEL, ""),
        "consolidation_policy": policy,
        "termination_mode": termination_mode(claim),
    }
    metrics.add(NODECLAIMS_DISRUPTED, 1.0, **labels)
    metrics.add(PODS_DISRUPTION_INITIATED, float(pods), **labels)


def pool_label(claim: NodeClaim) -> str:
    """The pool as metrics name it; empty for a claim of no pool."""
    labels = claim.metadata.labels
    if names.NODE_POOL_LABEL in labels:
        return str(PoolRef.karpenter(labels[names.NODE_POOL_LABEL]))
    return str(PoolRef.growth(labels[names.POOL_LABEL])) if names.POOL_LABEL in labels else ""


def termination_mode(claim: NodeClaim) -> str:
    """How the end treats pods: graceful without a deadline, eventual with one, forceful with none left to wait."""
    period = claim.spec.termination_grace_period
    if period is None:
        return "graceful"
    return "eventual" if Duration.parse(period).nanoseconds > 0 else "forceful"
