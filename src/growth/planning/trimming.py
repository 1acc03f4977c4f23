"""Which machines a growth pool gives up when it has more than its `limits.nodes`. Pure.

Empty ones first, then those that nobody protects, then those with the fewest pods. Claims without a machine count and are not
chosen: their requests see to them.
"""

import datetime as dt
from collections.abc import Sequence

from growth.api import names
from growth.api.growthpools import GrowthPool
from growth.api.karpenter import NodeClaim
from growth.api.nodes import Node
from growth.cluster.shapes import CachedPod
from growth.planning import occupants
from growth.planning.disruption.surplus import Held
from growth.planning.emptying import running


def member(claim: NodeClaim, node: Node | None, pods: Sequence[CachedPod]) -> Held:
    """A claim of the pool that nobody is ending, with the pods on its node."""
    annotations = node.metadata.annotations if node is not None else {}
    return Held(
        name=claim.metadata.name,
        launched=bool(claim.status.provider_id),
        pods=pods,
        protected=annotations.get(names.DO_NOT_DISRUPT_ANNOTATION) == "true",
    )


def beyond(pool: GrowthPool, number: int) -> int:
    """How many of so many machines are beyond the limit."""
    limit = pool.spec.limits.nodes
    return 0 if limit is None else max(0, number - limit)


def in_order(pool: GrowthPool, members: Sequence[Held], *, now: dt.datetime) -> tuple[str, ...]:
    """The claims that have a machine, those first that go first; none where the pool has no more than it may have.

    How many of them go is not said here: `beyond` tells it, of what is known when they go.
    """
    if not beyond(pool, len(members)):
        return ()

    def key(each: Held) -> tuple[bool, bool, int, str]:
        busy = len(running(each.pods))
        held = each.protected or any(occupants.protection(pod, now).holds for pod in each.pods)
        return bool(busy), held, busy, each.name

    return tuple(each.name for each in sorted(members, key=key) if each.launched)
