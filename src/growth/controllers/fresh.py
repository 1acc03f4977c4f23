"""Looks that do not trust the cache: Nodes and their pods as the server itself has them now, and how long one may act by it."""

import dataclasses
from typing import Final

from growth.api.karpenter import NodeClaim
from growth.api.nodes import NODE, Node
from growth.api.pods import POD
from growth.cluster.shapes import CachedPod
from growth.controllers.environment import Environment
from growth.controllers.ownership import marked_paused
from growth.kube.errors import NotFound
from growth.kube.whole import every
from growth.ports import Clock

# A look is good for so long, or twice as long as it took: who acts by it later than that looks again first.
GOOD_SECONDS: Final = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """When a look began, by both clocks: the machine may be suspended while it lasts."""

    boot_time: float
    monotonic: float

    @classmethod
    def begin(cls, clock: Clock) -> "Look":
        return cls(clock.boot_time(), clock.monotonic())

    def good_until(self, clock: Clock) -> float:
        """How long one may act by the look, which is over now, by the boot clock: a suspension makes it no longer."""
        return self.boot_time + max(GOOD_SECONDS, 2 * (clock.monotonic() - self.monotonic))


async def pods_on(env: Environment, node: str) -> list[CachedPod]:
    """The pods that are bound to the node."""
    pods = await every(env.api, POD, fields=f"spec.nodeName={node}")
    return [env.state.shapes.keep(pod) for pod in pods]


async def nodes_of(env: Environment, claim: NodeClaim) -> list[Node]:
    """The Nodes of the claim's machine, asked for by every name that one is known under."""
    provider_id = claim.status.provider_id
    cached = env.state.nodes.store.find("provider", provider_id) if provider_id else ()
    found = []
    for name in dict.fromkeys((*(node.metadata.name for node in cached), claim.status.node_name)):
        try:
            node = await env.api.get(NODE, name) if name else None
        except NotFound:
            continue
        if node is not None and node.spec.provider_id in {"", provider_id}:
            found.append(node)
    return found


async def is_paused(env: Environment, claim: NodeClaim) -> bool:
    """Whether people have paused the claim as it is given, or a Node of its machine as the server has it."""
    return marked_paused(claim.metadata) or any(marked_paused(each.metadata) for each in await nodes_of(env, claim))
