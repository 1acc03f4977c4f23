"""Keeps every pool at its number: what a static pool lacks is bought, what is too many goes, what drifted is replaced.

A pool is looked at when it or one of its machines changes; a static one every minute, too. What the cache suggests is
looked at afresh before anything is bought or deleted.
"""

from typing import Final

from growth.api import names
from growth.api.conditions import find
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.nodes import Node
from growth.api.pools import PoolRef
from growth.controllers import tainting
from growth.controllers.environment import Environment
from growth.controllers.ownership import marked_paused, serves, why_paused
from growth.controllers.reconciler import Reconciler
from growth.controllers.sizing import lowering
from growth.controllers.sizing.filling import Filling
from growth.controllers.sizing.renewing import Renewing
from growth.controllers.sizing.rests import Rests
from growth.controllers.sizing.story import Tell
from growth.kube.store import Change, Changed, Deleted
from growth.planning.disruption.surplus import missing, most, too_many

# How often a static pool is looked at without a change, and any pool while it is paused.
PERIOD_SECONDS: Final = 60.0
# While something that we read cannot be relied on.
UNSYNCED_SECONDS: Final = 1.0

# What of a claim concerns its pool's number.
_TOLD: Final = (names.INITIALIZED, names.DRIFTED, names.INSTANCE_TERMINATING)


class Sizing:
    """Works pool by pool until cancelled. `tell` is given the Decision of everything that is done."""

    def __init__(self, env: Environment, *, tell: Tell = lambda _decision: None) -> None:
        self._env = env
        self._tell = tell
        self._filling = Filling(env, tell=tell)
        self._renewing = Renewing(env, self._filling, tell=tell)
        self._refused = Rests(env, lowering.REFUSED)  # by the claim's UID
        self._reconciler: Reconciler[str] = Reconciler("nodepool.sizing", self._act, random=env.random, workers=5)
        env.state.pools.subscribe(self._on_pool)
        env.state.claims.subscribe(self._on_claim)
        env.state.nodes.subscribe(self._on_node)

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed."""
        await self._env.state.wait_synced()
        await self._reconciler.run()

    # What makes us look.

    def _on_pool(self, news: Change[NodePool]) -> None:
        name = news.key[1]
        if isinstance(news, Deleted):
            self._filling.forget(name)
            self._renewing.forget(name)
        else:
            self._reconciler.add(name)

    def _on_claim(self, news: Change[NodeClaim]) -> None:
        claim = news.old if isinstance(news, Deleted) else news.new
        pool = claim.metadata.labels.get(names.NODE_POOL_LABEL, "")
        if isinstance(news, Deleted):
            self._filling.ended(pool)
            self._renewing.ended(claim)
            self._refused.forget(claim.metadata.uid)
        if pool and not (isinstance(news, Changed) and _same(news.old, news.new)):
            self._reconciler.add(pool)

    def _on_node(self, news: Change[Node]) -> None:
        """A move that was taken back: what was bought for it may be too many. A pause that ended: it may have held some."""
        if not isinstance(news, Changed):
            return
        pool = news.old.metadata.labels.get(names.NODE_POOL_LABEL, "")
        taken_back = tainting.tainted(news.old) and not tainting.tainted(news.new)
        released = marked_paused(news.old.metadata) and not marked_paused(news.new.metadata)
        if pool and (taken_back or released):
            self._reconciler.add(pool)

    # What is done.

    async def _act(self, name: str) -> float | None:
        """In how many seconds to look again; None where a change will tell."""
        env = self._env
        pool = env.state.pools.store.get(name)
        if pool is None or pool.metadata.deletion_timestamp is not None or most(pool) is None:
            return None
        if not serves(env.provider, pool.spec.template.spec.node_class_ref):
            return None
        if env.state.unsynced():
            return UNSYNCED_SECONDS
        if why_paused(env, PoolRef.karpenter(name)):
            return PERIOD_SECONDS
        found = lowering.cached(env, pool)
        if too_many(pool, found):
            return await lowering.bring_down(env, name, refused=self._refused, tell=self._tell)
        for claim in found.staying:
            self._refused.forget(claim.metadata.uid)
        if pool.spec.replicas is None:
            return None
        await self._renewing.clean(found)
        waits = [
            await self._filling.refill(pool, found) if missing(pool, found) else None,
            await self._renewing.finish(pool, found),
            await self._renewing.renew(pool, found),
        ]
        return min((each for each in waits if each is not None), default=PERIOD_SECONDS)


def _same(old: NodeClaim, new: NodeClaim) -> bool:
    """Whether nothing changed that concerns the pool's number."""
    return (
        old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        and old.metadata.labels.get(names.NODE_POOL_LABEL) == new.metadata.labels.get(names.NODE_POOL_LABEL)
        and all(find(old.status.conditions, each) == find(new.status.conditions, each) for each in _TOLD)
    )
