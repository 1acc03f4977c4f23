"""The numbers by which controllers act. Where they come from (flags, variables) is `growth.operator.settings`' business.

Times are seconds. Defaults are Karpenter's where it has the setting.
"""

import dataclasses
from typing import Final

from growth.providers.shortages import UNAVAILABLE_SECONDS


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    namespace: str = "growth"  # where our Lease, ConfigMaps and the KWOK machines live
    paused: bool = False  # nothing is bought or disrupted anywhere; deletions that have begun still complete
    observe: bool = False  # plan and write Decisions, and nothing else

    # Provisioning.
    batch_idle: float = 1.0
    batch_max: float = 10.0
    pod_age: float = 1.0  # a pod this old counts as demand when its shape was marked Unschedulable before
    nomination: float = 20.0
    packer: str = "cost"
    nominate_pods: bool = True  # pods are told their machines where kube-scheduler would not fill them so by itself
    preference_policy: str = "Respect"
    min_values_policy: str = "Strict"
    max_price_percent: int = 125  # of the planned price; dearer offerings are not bought for a claim
    max_nodes: int | None = None  # caps of the whole cluster
    max_hourly: int | None = None  # billionths of the catalogue's currency
    vain_back_off: float = 3600.0  # after two rounds of machines in vain for a sort of pods; doubled from there
    reservation_use: float = 30.0  # a name reserved longer ago is not created any more: it may be released soon

    # Lifecycle.
    launch_ttl: float = 300.0
    registration_ttl: float = 900.0
    initialization_ttl: float = 900.0
    catalogue_period: float = 60.0  # how often prices and stock are read anew
    refused_ttl: float = UNAVAILABLE_SECONDS  # how long no plan asks for an offering that the cloud refused

    # Termination and scale-down.
    drain_retry: float = 1.0
    delete_poll: float = 4.0
    disruption_poll: float = 10.0
    disruption_steps: int = 1_000_000  # of one search for cheaper machines
    spot_to_spot_consolidation: bool = False
    eviction_cost: int = 1_000_000  # billionths of the catalogue's currency, for each pod that a move evicts
    eviction_horizon: float = 86_400.0  # within which a move must save that
    use_paid_time: bool = False  # empty machines stay until shortly before the time ends that is paid for
    drift_period: float = 300.0  # how often a machine is compared with what its pool asks for, changes aside
    node_repair: bool = False
    validation: float = 15.0  # a move that may be given up again waits so long, and is then decided afresh

    # Collection.
    collection_period: float = 120.0
    collection_grace: float = 30.0  # machines younger than this are not looked at
    collection_confirm: float = 60.0  # between the two answers «not found» that a claim is collected on
    collection_share: float = 0.2
    collection_few: int = 3

    # Pools of growth.dev.
    unplaceable_passes: int = 3  # a pod without a place so often in a row backs off
    back_off: float = 10.0  # at first; doubled until the ceiling
    back_off_ceiling: float = 300.0  # at which a pod is marked and left out
    back_off_recheck: float = 3600.0  # after which a marked pod is looked at again whatever happened
    unmet_ttl: float = 600.0  # how long nobody asks for a type that the cloud had none of
    ready_ttl: float = 3600.0  # how long a NodeRequest that was fulfilled is kept
    readiness_wait: float = 600.0  # a machine that is not ready after so long goes
    removal_retry_after: float = 120.0
    max_removal_attempts: int = 5

    decisions_kept: int = 200


DEFAULT_SETTINGS: Final = ControllerSettings()
