"""What is counted about ends, with Karpenter's names and labels."""

from typing import Final

from growth.telemetry.metrics import Counter, Declaration, Histogram, Summary

_HOUR: Final = 3600.0
_DAY: Final = 24 * _HOUR

NODECLAIMS_TERMINATED: Final = Counter(
    "karpenter_nodeclaims_terminated_total",
    "NodeClaims that are gone, with their machines.",
    labels=("nodepool", "capacity_type", "zone"),
)
NODECLAIM_TERMINATION_SECONDS: Final = Histogram(
    "karpenter_nodeclaims_termination_duration_seconds",
    "From the deletion of a NodeClaim until it is gone.",
    labels=("nodepool",),
    buckets=tuple(float(1 << power) for power in range(12)),
)
INSTANCE_TERMINATION_SECONDS: Final = Histogram(
    "karpenter_nodeclaims_instance_termination_duration_seconds",
    "From the deletion of a machine until the cloud says that it is gone.",
    labels=("nodepool",),
    buckets=tuple(float(1 << power) for power in range(11)),
)
NODES_TERMINATED: Final = Counter(
    "karpenter_nodes_terminated_total", "Nodes that are gone.", labels=("nodepool", "zone")
)
NODES_DRAINED: Final = Counter("karpenter_nodes_drained_total", "Nodes whose pods have left.", labels=("nodepool",))
NODE_TERMINATION_SECONDS: Final = Summary(
    "karpenter_nodes_termination_duration_seconds",
    "From the deletion of a Node until its finalizer is removed.",
    labels=("nodepool",),
)
NODE_LIFETIME_SECONDS: Final = Histogram(
    "karpenter_nodes_lifetime_duration_seconds",
    "From the creation of a Node to its end.",
    labels=("nodepool",),
    buckets=(
        *(900.0, 1800.0, 2700.0),
        *(hours * _HOUR for hours in (1, 2, 4, 6, 8, 10, 12, 16, 20)),
        *(days * _DAY for days in (1, 2, 3, 5, 10, 15, 20, 25, 30)),
    ),
)
EVICTION_REQUESTS: Final = Counter(
    "karpenter_pods_eviction_requests_total", "Evictions that were asked for, by the server's answer.", labels=("code",)
)
PODS_DRAINED: Final = Counter(
    "karpenter_pods_drained_total", "Pods that were evicted because their node goes, and why.", labels=("reason",)
)
METRICS: Final[tuple[Declaration, ...]] = (
    NODECLAIMS_TERMINATED,
    NODECLAIM_TERMINATION_SECONDS,
    INSTANCE_TERMINATION_SECONDS,
    NODES_TERMINATED,
    NODES_DRAINED,
    NODE_TERMINATION_SECONDS,
    NODE_LIFETIME_SECONDS,
    EVICTION_REQUESTS,
    PODS_DRAINED,
)
