"""What of a plan still holds when it is acted upon: the world has moved on meanwhile. Pure, but for the cache it reads."""

from collections.abc import Set

from growth.api import names
from growth.api.growthpools import GrowthPool
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.nodes import Node
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import is_done
from growth.controllers.ownership import marked_paused
from growth.controllers.provisioning.passes import Answer
from growth.kube.store import Store


def vanished(key: str, answer: Answer, pods: Store[CachedPod]) -> bool:
    """Whether the pod was bound, moved, replaced or deleted since the plan was made."""
    pod = answer.pods.get(key)
    if pod is None:
        return False  # a buffer's
    now: CachedPod | None = pods.get(pod.name, pod.namespace)
    return (
        now is None or now.uid != pod.uid or now.node_name != pod.node_name or now.deleting is not None or is_done(now)
    )


def buys_the_same(old: NodePool | GrowthPool, new: NodePool | GrowthPool) -> bool:
    """Whether a plan with the one is a plan with the other."""
    return (
        old.metadata.uid == new.metadata.uid
        and old.metadata.generation == new.metadata.generation
        and (old.metadata.deletion_timestamp is None) == (new.metadata.deletion_timestamp is None)
        and marked_paused(old.metadata) == marked_paused(new.metadata)
        and _ready(old) == _ready(new)
        and unmet(old) == unmet(new)
    )


def unmet(pool: NodePool | GrowthPool) -> Set[tuple[str, str, str]]:
    """What the pool does not ask for now, because the cloud refused it: type, location and capacity type."""
    if isinstance(pool, NodePool):
        return frozenset()
    return {(each.type, each.location, each.capacity_type) for each in pool.status.unmet_offerings}


def _ready(pool: NodePool | GrowthPool) -> str:
    return next((each.status for each in pool.status.conditions if each.type == names.READY), "Unknown")


def begins_to_go(old: Node | NodeClaim, new: Node | NodeClaim) -> bool:
    return old.metadata.deletion_timestamp is None and new.metadata.deletion_timestamp is not None
