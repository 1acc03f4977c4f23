"""Looks that do not trust the cache: the pods of a node as the server itself has them now."""

from growth.api.pods import POD
from growth.cluster.shapes import CachedPod
from growth.controllers.environment import Environment
from growth.kube.whole import every


async def pods_on(env: Environment, node: str) -> list[CachedPod]:
    """The pods that are bound to the node."""
    pods = await every(env.api, POD, fields=f"spec.nodeName={node}")
    return [env.state.shapes.keep(pod) for pod in pods]
