"""Worlds with a name: each shows one corner of the autoscaler that random worlds come to seldom or never.

They are scenarios like any other and are judged like any other; `python -m bench branches` runs them, and a test does. At
most 17 minutes are busy in half an hour (`growth.sim.scenario.model.busy_seconds`): what is done must be done by then.
"""

from collections.abc import Mapping
from typing import Final

from growth.sim.scenario.model import Scenario
from growth.sim.scenario.named.cluster import CLUSTER
from growth.sim.scenario.named.renewal import RENEWAL
from growth.sim.scenario.named.servers import OF_SERVERS
from growth.sim.scenario.named.strange import STRANGE

NAMED: Final[Mapping[str, Scenario]] = {**CLUSTER, **RENEWAL, **OF_SERVERS, **STRANGE}
