"""Whose business an object is: which claims and pools our provider serves, and where people have paused us."""

from growth.api import names
from growth.api.karpenter import NodeClaim, NodeClassReference
from growth.api.meta import ObjectMeta
from growth.api.pools import PoolRef
from growth.controllers.environment import Environment
from growth.providers.contract import CloudProvider


def serves(provider: CloudProvider, uses: NodeClassReference) -> bool:
    """Whether machines of that kind of class are ours to make; claims and pools of others are never touched."""
    return any((kind.group, kind.kind) == (uses.group, uses.kind) for kind in provider.node_classes)


def pool_of(claim: NodeClaim) -> PoolRef | None:
    """The pool that a claim belongs to; None for a claim that somebody made by hand."""
    labels = claim.metadata.labels
    if names.NODE_POOL_LABEL in labels:
        return PoolRef.karpenter(labels[names.NODE_POOL_LABEL])
    if names.POOL_LABEL in labels:
        return PoolRef.growth(labels[names.POOL_LABEL])
    return None


def marked_paused(metadata: ObjectMeta) -> bool:
    """Whether the object's annotation pauses it: any value but `false`."""
    return metadata.annotations.get(names.PAUSED_ANNOTATION, "false") != "false"


def why_paused(env: Environment, pool: PoolRef | None) -> str:
    """Why nothing may be bought or disrupted in the pool now, for people; empty when it may."""
    if env.settings.paused:
        return "the whole cluster is paused by the setting `paused`"
    if pool is None:
        return ""
    pools = env.state.pools if pool.group == names.KARPENTER else env.state.growth_pools
    found = pools.store.get(pool.name)
    if found is not None and marked_paused(found.metadata):
        return f"the pool is paused by its annotation {names.PAUSED_ANNOTATION}"
    return ""
