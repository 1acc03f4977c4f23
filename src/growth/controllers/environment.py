"""What every controller is given: the openings to the outside, the shared view of the cluster, and the settings."""

import dataclasses

from growth.cluster.state import State
from growth.controllers.launches import Launches
from growth.controllers.planned import Planned
from growth.controllers.precedence import Precedence
from growth.controllers.settings import ControllerSettings
from growth.controllers.vain_memory import VainMemory
from growth.kube.api import Api
from growth.kube.events import Recorder
from growth.ports import Clock, Compute, Random
from growth.providers.contract import CloudProvider
from growth.telemetry.metrics import Metrics


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One per process. `api` writes as user `growth` and stands behind the lease's gate; so do the provider's calls.

    `cluster` is the cluster's identity in a cloud: a hash of the UID of the namespace kube-system. `launches` knows
    which claims may have a machine that nobody has told of: their end waits.
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
    launches: Launches = dataclasses.field(default_factory=Launches)
    precedence: Precedence = dataclasses.field(default_factory=Precedence)
    planned: Planned = dataclasses.field(default_factory=Planned)
    vain: VainMemory = dataclasses.field(default_factory=VainMemory)
