"""Looks that do not trust the cache: the pods of a node as the server itself has them now, and how long one may act by it."""

from typing import Final

from growth.api.pods import POD
from growth.cluster.shapes import CachedPod
from growth.controllers.environment import Environment
from growth.kube.whole import every
from growth.ports import Clock

# A look is good for so long, or twice as long as it took: who acts by it later than that looks again first.
GOOD_SECONDS: Final = 2.0


def good_until(clock: Clock, began: float) -> float:
    """How long one may act by a look that began then and is over now, by the monotonic clock."""
    return began + max(GOOD_SECONDS, 2 * (clock.monotonic() - began))


async def pods_on(env: Environment, node: str) -> list[CachedPod]:
    """The pods that are bound to the node."""
    pods = await every(env.api, POD, fields=f"spec.nodeName={node}")
    return [env.state.shapes.keep(pod) for pod in pods]
