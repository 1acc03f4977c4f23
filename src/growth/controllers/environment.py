"""What every controller is given: the openings to the outside, the shared view of the cluster, and the settings."""

import dataclasses

from growth.cluster.state import State
from growth.controllers.planned import Planned
from growth.controllers.precedence import Precedence
from growth.controllers.purchases import Purchases
from growth.controllers.settings import ControllerSettings
from growth.kube.api import Api
from growth.kube.events import Recorder
from growth.ports import Clock, Compute, Random
from growth.providers.contract import CloudProvider
from growth.telemetry.metrics import Metrics


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One per process. `api` writes as user `growth` and stands behind the lease's gate; so do the provider's calls.

    `cluster` is the cluster's identity in a cloud: a hash of the UID of the namespace kube-system. `launching` are the
    UIDs of claims for which a machine is being made right now: added before the last look at the claim, removed when the
    answer has been written. While a claim is among them «there is no machine» is no answer, and its end waits; nor is it
    while one of the `purchases` may yet arrive.
    """

    api: Api
    state: State
    provider: CloudProvider
    clock: Clock
    random: Random
    compute: Compute
    events: Recorder
    metrics: Metrics
    settings: ControllerSettings
    cluster: str
    launching: set[str] = dataclasses.field(default_factory=set)
    precedence: Precedence = dataclasses.field(default_factory=Precedence)
    planned: Planned = dataclasses.field(default_factory=Planned)
    purchases: Purchases = dataclasses.field(default_factory=Purchases)
