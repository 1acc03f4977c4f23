"""Every name by which Growth, Karpenter and Kubernetes recognise each other's work, in one place.

Karpenter's names are those of its 1.14 and 1.15: dashboards, alerts and other controllers match on them, so they are
spelled exactly as there. Ours stand below `growth.dev/`.
"""

from typing import Final

# API groups.
KARPENTER: Final = "karpenter.sh"
GROWTH: Final = "growth.dev"
AUTOSCALING: Final = "autoscaling.x-k8s.io"
KWOK_CLASS_GROUP: Final = "karpenter.kwok.sh"
LINODE_CLASS_GROUP: Final = "karpenter.k8s.linode"

# --- Labels of Kubernetes

HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
ARCH_LABEL: Final = "kubernetes.io/arch"
OS_LABEL: Final = "kubernetes.io/os"
WINDOWS_BUILD_LABEL: Final = "node.kubernetes.io/windows-build"
INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
REGION_LABEL: Final = "topology.kubernetes.io/region"
EXCLUDE_FROM_LOAD_BALANCERS_LABEL: Final = "node.kubernetes.io/exclude-from-external-load-balancers"
NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"
APP_NAME_LABEL: Final = "app.kubernetes.io/name"

# What pods, volumes and nodes may still say, and what it means.
NORMALISED_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": ZONE_LABEL,
    "failure-domain.beta.kubernetes.io/region": REGION_LABEL,
    "beta.kubernetes.io/arch": ARCH_LABEL,
    "beta.kubernetes.io/os": OS_LABEL,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE_LABEL,
}

# --- Labels of Karpenter

NODE_POOL_LABEL: Final = "karpenter.sh/nodepool"
CAPACITY_TYPE_LABEL: Final = "karpenter.sh/capacity-type"
REGISTERED_LABEL: Final = "karpenter.sh/registered"
INITIALIZED_LABEL: Final = "karpenter.sh/initialized"
DO_NOT_SYNC_TAINTS_LABEL: Final = "karpenter.sh/do-not-sync-taints"

SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"
RESERVED: Final = "reserved"

# Labels that a planned node can have although no NodePool names them.
WELL_KNOWN_LABELS: Final = frozenset(
    {
        NODE_POOL_LABEL,
        ZONE_LABEL,
        REGION_LABEL,
        INSTANCE_TYPE_LABEL,
        ARCH_LABEL,
        OS_LABEL,
        CAPACITY_TYPE_LABEL,
        WINDOWS_BUILD_LABEL,
    }
)

# --- Labels of KWOK's instance types

KWOK_INSTANCE_SIZE_LABEL: Final = "karpenter.kwok.sh/instance-size"
KWOK_INSTANCE_FAMILY_LABEL: Final = "karpenter.kwok.sh/instance-family"
KWOK_INSTANCE_CPU_LABEL: Final = "karpenter.kwok.sh/instance-cpu"
KWOK_INSTANCE_MEMORY_LABEL: Final = "karpenter.kwok.sh/instance-memory"
# The kwok controller plays the kubelet of Nodes with this mark, as label or annotation.
KWOK_NODE: Final = "kwok.x-k8s.io/node"
KWOK_NODE_VALUE: Final = "fake"

# --- Labels of ours

POOL_LABEL: Final = "growth.dev/pool"
DEFAULT_POOL: Final = "default"  # the growth pool that takes pods which ask for none
KWOK_MACHINE_LABEL: Final = "growth.dev/kwok-machine"

# --- Annotations of Kubernetes

MIRROR_POD_ANNOTATION: Final = "kubernetes.io/config.mirror"
POD_DELETION_COST_ANNOTATION: Final = "controller.kubernetes.io/pod-deletion-cost"
DEFAULT_STORAGE_CLASS_ANNOTATION: Final = "storageclass.kubernetes.io/is-default-class"
BIND_COMPLETED_ANNOTATION: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE_ANNOTATION: Final = "volume.kubernetes.io/selected-node"

# --- Annotations of Karpenter

DO_NOT_DISRUPT_ANNOTATION: Final = "karpenter.sh/do-not-disrupt"
DO_NOT_REPAIR_ANNOTATION: Final = "karpenter.sh/do-not-repair"
DISRUPTION_COST_ANNOTATION: Final = "karpenter.sh/disruption-cost"
NODE_POOL_HASH_ANNOTATION: Final = "karpenter.sh/nodepool-hash"
NODE_POOL_HASH_VERSION_ANNOTATION: Final = "karpenter.sh/nodepool-hash-version"
TERMINATION_TIMESTAMP_ANNOTATION: Final = "karpenter.sh/nodeclaim-termination-timestamp"
MIN_VALUES_RELAXED_ANNOTATION: Final = "karpenter.sh/nodeclaim-min-values-relaxed"
REQUESTED_DRA_DRIVERS_ANNOTATION: Final = "karpenter.sh/requested-dra-drivers"
PRICE_OVERLAY_APPLIED_ANNOTATION: Final = "karpenter.sh/price-overlay-applied"
CAPACITY_OVERLAY_APPLIED_ANNOTATION: Final = "karpenter.sh/capacity-overlay-applied"
REBOOT_PRE_BOOT_ID_ANNOTATION: Final = "karpenter.sh/reboot-pre-boot-id"
REBOOT_GRACE_PERIOD_ANNOTATION: Final = "karpenter.sh/reboot-termination-grace-period"
BUFFER_FAKE_POD_ANNOTATION: Final = "karpenter.sh/capacity-buffer-fake-pod"
BUFFER_NAME_ANNOTATION: Final = "karpenter.sh/capacity-buffer-name"
BUFFER_NAMESPACE_ANNOTATION: Final = "karpenter.sh/capacity-buffer-namespace"

# --- Annotations of ours

RESERVED_ANNOTATION: Final = "growth.dev/reserved"
CONFIRM_COLLECTION_ANNOTATION: Final = "growth.dev/confirm-collection"
MAX_PRICE_ANNOTATION: Final = "growth.dev/max-price"
BACK_OFF_ANNOTATION: Final = "growth.dev/backoff"
SCALE_DOWN_AT_ANNOTATION: Final = "growth.dev/scale-down-at"
PAUSED_ANNOTATION: Final = "growth.dev/paused"
NODE_LIMIT_MODE_ANNOTATION: Final = "growth.dev/node-limit-mode"
NODE_REQUEST_ANNOTATION: Final = "growth.dev/node-request"  # on a claim: the uid of the NodeRequest that it fulfils
RELEASING_ANNOTATION: Final = "growth.dev/releasing"  # on a growth pool: claims whose removal is about to be asked for
REPLACES_ANNOTATION: Final = "growth.dev/replaces"  # on a claim: the claims that go once it is initialised
# On a claim that replaced others: what kinds of machines they and those before them were.
GIVEN_UP_ANNOTATION: Final = "growth.dev/given-up"
MOVE_ANNOTATION: Final = "growth.dev/move"  # on such a claim: the move that it was bought for
BOUGHT_FOR_ANNOTATION: Final = "growth.dev/bought-for"  # on a claim: the kinds of pods that it was bought for
IN_VAIN_ANNOTATION: Final = "growth.dev/in-vain"  # on a pool: the kinds of pods for which machines were bought in vain
QUIET_SINCE_ANNOTATION: Final = "growth.dev/quiet-since"  # on a claim: since when no pod came or left, and who is there

# --- Taints, by key

DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
UNREGISTERED_TAINT: Final = "karpenter.sh/unregistered"
REBOOTING_TAINT: Final = "karpenter.sh/rebooting"
SCALE_DOWN_TAINT: Final = "growth.dev/scale-down"
LEAVING_SOON_TAINT: Final = "growth.dev/leaving-soon"
NOT_READY_TAINT: Final = "node.kubernetes.io/not-ready"
UNREACHABLE_TAINT: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
CLOUD_UNINITIALIZED_TAINT: Final = "node.cloudprovider.kubernetes.io/uninitialized"
# Taints below this prefix go away by themselves while a node comes up.
READINESS_TAINT_PREFIX: Final = "readiness.k8s.io/"
EPHEMERAL_TAINTS: Final = frozenset({NOT_READY_TAINT, UNREACHABLE_TAINT, CLOUD_UNINITIALIZED_TAINT, UNREGISTERED_TAINT})

# --- Finalizers

TERMINATION_FINALIZER: Final = "karpenter.sh/termination"

# --- Leases and ConfigMaps

LEADER_LEASE: Final = "growth-leader-election"
KARPENTER_LEADER_LEASE: Final = "karpenter-leader-election"
COLLECTION_CONFIG_MAP: Final = "growth-collection"
LKE_COLLECTION_CONFIG_MAP: Final = "growth-collection-lke"
CAPS_CONFIG_MAP: Final = "growth-caps"
KWOK_MACHINE_PREFIX: Final = "kwok-"

# --- Conditions: of everything

READY: Final = "Ready"
VALIDATION_SUCCEEDED: Final = "ValidationSucceeded"

# --- Conditions: NodePool

NODE_CLASS_READY: Final = "NodeClassReady"
NODE_REGISTRATION_HEALTHY: Final = "NodeRegistrationHealthy"
PAUSED: Final = "Paused"
MIN_VALUES_RELAXED: Final = "MinValuesRelaxed"  # ours: a claim has less to choose from than minValues ask for
MACHINE_OFF: Final = "MachineOff"
REPLACES_IN_PLACE: Final = "ReplacesInPlace"  # ours: drifted machines of a static pool go before others are bought

# --- Conditions: pools of both APIs

SERVER_TYPES_ORDERABLE: Final = "ServerTypesOrderable"  # of Karpenter's only where one of the types has ended
NO_LONGER_ORDERABLE: Final = "NoLongerOrderable"

# --- Conditions: pools of growth.dev

ONE_ARCHITECTURE: Final = "OneArchitecture"
DRIFT_BLOCKED: Final = "DriftBlocked"  # of growth pools: drifted machines stay, because their replacements have no room

# --- Conditions: NodeClaim

LAUNCHED: Final = "Launched"
REGISTERED: Final = "Registered"
INITIALIZED: Final = "Initialized"
CONSOLIDATABLE: Final = "Consolidatable"
DRIFTED: Final = "Drifted"
DRAINED: Final = "Drained"
VOLUMES_DETACHED: Final = "VolumesDetached"
INSTANCE_TERMINATING: Final = "InstanceTerminating"
CONSISTENT_STATE_FOUND: Final = "ConsistentStateFound"
DISRUPTION_REASON: Final = "DisruptionReason"
REBOOTING: Final = "Rebooting"

# --- Conditions: CapacityBuffer, and its one strategy that has a meaning

READY_FOR_PROVISIONING: Final = "ReadyForProvisioning"
PROVISIONING: Final = "Provisioning"
LIMITED_BY_QUOTAS: Final = "LimitedByQuotas"
ACTIVE_CAPACITY_STRATEGY: Final = "buffer.x-k8s.io/active-capacity"

# --- Conditions and reasons of Pods

POD_SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULING_GATED: Final = "SchedulingGated"

# --- Reasons in conditions: NodeClaim

LAUNCH_FAILED: Final = "LaunchFailed"
NODE_NOT_FOUND: Final = "NodeNotFound"
MULTIPLE_NODES_FOUND: Final = "MultipleNodesFound"
REGISTRATION_HOOK_PENDING: Final = "RegistrationHookPending"
NODE_NOT_READY: Final = "NodeNotReady"
STARTUP_TAINTS_EXIST: Final = "StartupTaintsExist"
KNOWN_EPHEMERAL_TAINTS_EXIST: Final = "KnownEphemeralTaintsExist"
RESOURCE_NOT_REGISTERED: Final = "ResourceNotRegistered"
DRA_DRIVER_POOLS_NOT_PUBLISHED: Final = "DRADriverPoolsNotPublished"
DRAINING: Final = "Draining"
AWAITING_VOLUME_DETACHMENT: Final = "AwaitingVolumeDetachment"
TERMINATION_GRACE_PERIOD_ELAPSED: Final = "TerminationGracePeriodElapsed"
CONSISTENCY_CHECK_FAILED: Final = "ConsistencyCheckFailed"
NODE_POOL_DRIFTED: Final = "NodePoolDrifted"
REQUIREMENTS_DRIFTED: Final = "RequirementsDrifted"
INSTANCE_TYPE_NOT_FOUND: Final = "InstanceTypeNotFound"
INVARIANT_VIOLATION: Final = "InvariantViolation"
QUOTA_EXCEEDED: Final = "QuotaExceeded"

# --- Reasons in conditions: NodeOverlay, node classes

OVERLAY_CONFLICT: Final = "Conflict"
NODE_CLASS_NOT_READY: Final = "NodeClassNotReady"
NODE_CLASS_NOT_FOUND: Final = "NodeClassNotFound"
TAG_VALIDATION_FAILED: Final = "TagValidationFailed"
LKE_VERSION_UNSUPPORTED: Final = "LKEK8sVersionUnsupported"
LKE_VERSION_MISMATCH: Final = "LKEK8sVersionControlPlaneMismatch"

# --- Why nodes are disrupted: in budgets, metrics, conditions and events

UNDERUTILIZED: Final = "Underutilized"
EMPTY: Final = "Empty"
DRIFTED_REASON: Final = "Drifted"
UNHEALTHY: Final = "Unhealthy"
# Forceful: no budget counts them.
EXPIRED: Final = "Expired"
OVERPROVISIONED: Final = "Overprovisioned"

# --- Reasons of events: Karpenter's

DISRUPTION_BLOCKED: Final = "DisruptionBlocked"
DISRUPTION_LAUNCHING: Final = "DisruptionLaunching"
DISRUPTION_TERMINATING: Final = "DisruptionTerminating"
DISRUPTION_WAITING_READINESS: Final = "DisruptionWaitingReadiness"
UNCONSOLIDATABLE: Final = "Unconsolidatable"
CONSOLIDATION_CANDIDATE: Final = "ConsolidationCandidate"
CONSOLIDATION_REJECTED: Final = "ConsolidationRejected"
CONSOLIDATION_APPROVED: Final = "ConsolidationApproved"
FAILED_SCHEDULING: Final = "FailedScheduling"
NO_COMPATIBLE_INSTANCE_TYPES: Final = "NoCompatibleInstanceTypes"
NOMINATED: Final = "Nominated"
NODE_REPAIR_BLOCKED: Final = "NodeRepairBlocked"
DISRUPTED: Final = "Disrupted"
EVICTED: Final = "Evicted"
FAILED_DRAINING: Final = "FailedDraining"
TERMINATION_GRACE_PERIOD_EXPIRING: Final = "TerminationGracePeriodExpiring"
FAILED_TERMINATION: Final = "FailedTermination"
FAILED_CONSISTENCY_CHECK: Final = "FailedConsistencyCheck"
INSUFFICIENT_CAPACITY_ERROR: Final = "InsufficientCapacityError"
UNREGISTERED_TAINT_MISSING: Final = "UnregisteredTaintMissing"
JOINING_FAILED: Final = "JoiningFailed"
LABELS_CONTESTED: Final = "LabelsContested"
DO_NOT_DISRUPT_UNTIL: Final = "DoNotDisruptUntil"
DO_NOT_DISRUPT_GRACE_PERIOD_ELAPSED: Final = "DoNotDisruptGracePeriodElapsed"
INVALID_DO_NOT_DISRUPT_ANNOTATION: Final = "InvalidDoNotDisruptAnnotation"

# --- Reasons of events: ours

NO_NODE_POOL: Final = "NoNodePool"
NODE_POOL_NOT_FOUND: Final = "NodePoolNotFound"
BACK_OFF: Final = "BackOff"
BOUGHT_IN_VAIN: Final = "BoughtInVain"
UNMET: Final = "Unmet"
NODE_NOT_COMING: Final = "NodeNotComing"
SCALE_DOWN_SCHEDULED: Final = "ScaleDownScheduled"
SCALE_DOWN_CANCELLED: Final = "ScaleDownCancelled"
COULD_NOT_REMOVE: Final = "CouldNotRemove"
REMOVAL_FAILED: Final = "RemovalFailed"
LOST_WITH_MACHINE: Final = "LostWithMachine"
DELETION_REQUESTED: Final = "Deletion requested"
DELETION_FAILED: Final = "Deletion failed"
LAUNCH_TIMEOUT: Final = "LaunchTimeout"
REGISTRATION_TIMEOUT: Final = "RegistrationTimeout"
INITIALIZATION_TIMEOUT: Final = "InitializationTimeout"
COLLECTION_HELD: Final = "CollectionHeld"


def node_class_label(group: str, kind: str) -> str:
    """The label by which claims and nodes name their node class: `karpenter.kwok.sh/kwoknodeclass`."""
    return f"{group}/{kind.lower()}"
