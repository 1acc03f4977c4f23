"""What a scrape is told of the cluster beyond what controllers count: Nodes and what is on them, conditions, terminations.

Gauges are read from the shared state at the scrape, so that series of what is gone vanish by themselves. Nothing here
acts on anything.
"""

from typing import Final

from growth.controllers.environment import Environment
from growth.controllers.gauges import conditions, nodes
from growth.telemetry.metrics import Declaration

METRICS: Final[tuple[Declaration, ...]] = (*nodes.METRICS, *conditions.METRICS)


def declare(env: Environment) -> None:
    """Lets all of them follow the state. Once in a process."""
    nodes.declare(env)
    conditions.declare(env)
