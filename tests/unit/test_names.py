"""The names by which others recognise our work are spelled as they expect."""

import re

from growth.api import names
from growth.api.pools import PoolRef

# Karpenter's names, as facts.
FACTS = """
karpenter.sh/nodepool karpenter.sh/initialized karpenter.sh/registered karpenter.sh/capacity-type
karpenter.sh/do-not-sync-taints karpenter.sh/do-not-disrupt karpenter.sh/do-not-repair karpenter.sh/disruption-cost
karpenter.sh/nodepool-hash karpenter.sh/nodepool-hash-version karpenter.sh/nodeclaim-termination-timestamp
karpenter.sh/nodeclaim-min-values-relaxed karpenter.sh/requested-dra-drivers karpenter.sh/price-overlay-applied
karpenter.sh/capacity-overlay-applied karpenter.sh/capacity-buffer-fake-pod karpenter.sh/capacity-buffer-name
karpenter.sh/capacity-buffer-namespace karpenter.sh/reboot-pre-boot-id karpenter.sh/reboot-termination-grace-period
karpenter.sh/disrupted karpenter.sh/unregistered karpenter.sh/rebooting karpenter.sh/termination
Launched Registered Initialized Consolidatable Drifted Drained VolumesDetached InstanceTerminating ConsistentStateFound
DisruptionReason Rebooting ValidationSucceeded NodeClassReady NodeRegistrationHealthy Ready
LaunchFailed NodeNotFound MultipleNodesFound RegistrationHookPending NodeNotReady StartupTaintsExist
KnownEphemeralTaintsExist ResourceNotRegistered DRADriverPoolsNotPublished Draining AwaitingVolumeDetachment
TerminationGracePeriodElapsed ConsistencyCheckFailed NodePoolDrifted RequirementsDrifted InstanceTypeNotFound
DisruptionBlocked DisruptionLaunching DisruptionTerminating DisruptionWaitingReadiness Unconsolidatable
ConsolidationCandidate ConsolidationRejected ConsolidationApproved FailedScheduling NoCompatibleInstanceTypes Nominated
NodeRepairBlocked Disrupted Evicted FailedDraining TerminationGracePeriodExpiring FailedTermination
FailedConsistencyCheck InsufficientCapacityError UnregisteredTaintMissing DoNotDisruptUntil
DoNotDisruptGracePeriodElapsed InvalidDoNotDisruptAnnotation NodeClassNotReady
Underutilized Empty Unhealthy spot on-demand reserved
ReadyForProvisioning Provisioning LimitedByQuotas buffer.x-k8s.io/active-capacity
karpenter.kwok.sh/instance-size karpenter.kwok.sh/instance-family karpenter.kwok.sh/instance-cpu
karpenter.kwok.sh/instance-memory
"""
KARPENTERS = set(FACTS.split())

TEXTS = {name: value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)}


def test_karpenters_names_are_all_there() -> None:
    """Every name that Karpenter's users match on, to the letter."""
    assert KARPENTERS - set(TEXTS.values()) == set()


def test_nothing_else_stands_in_karpenters_domain() -> None:
    """What we invent has our own domain."""
    theirs = {value for value in TEXTS.values() if value.startswith("karpenter.sh/")}
    assert theirs - KARPENTERS == set()


def test_keys_are_such_as_kubernetes_accepts() -> None:
    """Labels, annotations, taints and finalizers: a DNS name, a slash, a name of at most 63 characters."""
    for value in TEXTS.values():
        if "/" in value and not value.endswith("/"):
            prefix, name = value.split("/")
            assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+", prefix), value
            assert re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", name), value


def test_a_node_class_is_named_by_its_group_and_kind() -> None:
    """The kind in lower case, below the class' own group."""
    assert names.node_class_label("karpenter.kwok.sh", "KWOKNodeClass") == "karpenter.kwok.sh/kwoknodeclass"


def test_pools_of_one_name_are_told_apart() -> None:
    """Karpenter's pool is its name, ours has the group before it; reading gives back what was written."""
    assert str(PoolRef.karpenter("default")) == "default"
    assert str(PoolRef.growth("default")) == "growth.dev/default"
    for ref in (PoolRef.karpenter("a.b"), PoolRef.growth("a.b")):
        assert PoolRef.parse(str(ref)) == ref
    assert PoolRef.karpenter("default") != PoolRef.growth("default")
