"""Looks that do not trust the cache: what the server itself says now, whole."""

from typing import Final, TypeVar

from growth.api.kinds import Kind
from growth.api.pods import POD
from growth.cluster.shapes import CachedPod
from growth.controllers.environment import Environment
from growth.kube.api import Api
from growth.kube.errors import Gone
from growth.ports import Clock

T = TypeVar("T")

PAGE: Final = 500
# A look is good for so long, or twice as long as it took: who acts by it later than that looks again first.
GOOD_SECONDS: Final = 2.0


def good_until(clock: Clock, began: float) -> float:
    """How long one may act by a look that began then and is over now, by the monotonic clock."""
    return began + max(GOOD_SECONDS, 2 * (clock.monotonic() - began))


async def every(api: Api, kind: Kind[T], *, namespace: str = "", fields: str = "", labels: str = "") -> list[T]:
    """All objects of the kind that fields and labels select, of one revision; an error rather than a part of them.

    Of all namespaces where none is named.
    """
    found: list[T] = []
    limit, page = PAGE, ""
    while True:
        try:
            answer = await api.list(kind, namespace=namespace, fields=fields, labels=labels, limit=limit, page=page)
        except Gone:
            if not page:
                raise
            # The pages' revision was compacted away while we read: ask for all in one answer.
            found, limit, page = [], 0, ""
            continue
        found += answer.items
        page = answer.next
        if not page:
            return found


async def pods_on(env: Environment, node: str) -> list[CachedPod]:
    """The pods that are bound to the node."""
    pods = await every(env.api, POD, fields=f"spec.nodeName={node}")
    return [env.state.shapes.keep(pod) for pod in pods]
