"""Expiration: a claim that has reached the age in its `expireAfter` goes, at that very moment.

It is forceful: neither budgets nor node limits hold it, nothing is bought first, and machines of one age go together. The
drain that follows is as every other, with PodDisruptionBudgets and grace. A pause of the cluster, the pool or the Node holds
it: then it happens when the pause ends.
"""

import datetime as dt
from typing import Final

from growth.api import names
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.nodes import Node
from growth.controllers import ending, fresh
from growth.controllers.environment import Environment
from growth.controllers.ownership import marked_paused, pool_of, serves, why_paused
from growth.controllers.reconciler import Reconciler
from growth.kube.store import Change, Changed, Deleted
from growth.units import DurationError, parse_or_never

# The pause of a pool or a Node ends with a change that we see; that of the cluster ends with the process.
PAUSED_SECONDS: Final = 300.0
# After a claim that was to go stays: our clock was set back between two looks.
AGAIN_SECONDS: Final = 60.0
# Clocks are set: a far-off end is reckoned anew now and then.
LONGEST_SECONDS: Final = 86400.0


def expires_at(claim: NodeClaim) -> dt.datetime | None:
    """When the claim has reached its age; None for one that never does. The claim's own word counts, not its pool's."""
    born = claim.metadata.creation_timestamp
    try:
        after = parse_or_never(claim.spec.expire_after)
        return None if after is None or born is None else born + after.timedelta
    except (DurationError, OverflowError):
        return None  # no server accepts such a word; an age beyond the calendar is never reached


class Expiration:
    """Works claim by claim until cancelled."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._reconciler: Reconciler[str] = Reconciler("nodeclaim.expiration", self._act, random=env.random)
        env.state.claims.subscribe(self._on_claim)
        env.state.pools.subscribe(self._on_pool)
        env.state.nodes.subscribe(self._on_node)

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed."""
        state = self._env.state
        for informer in (state.claims, state.pools, state.nodes):
            await informer.wait_synced()
        await self._reconciler.run()

    def _on_claim(self, news: Change[NodeClaim]) -> None:
        if not isinstance(news, Deleted):
            self._reconciler.add(news.key[1])

    def _on_pool(self, news: Change[NodePool]) -> None:
        if _released(news):
            for claim in self._env.state.claims.store.find("pool", news.key[1]):
                self._reconciler.add(claim.metadata.name)

    def _on_node(self, news: Change[Node]) -> None:
        if isinstance(news, Changed) and _released(news) and news.new.spec.provider_id:
            for claim in self._env.state.claims.store.find("provider", news.new.spec.provider_id):
                self._reconciler.add(claim.metadata.name)

    async def _act(self, name: str) -> float | None:
        env = self._env
        claim = env.state.claims.store.get(name)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return None
        at = expires_at(claim)
        if at is None or not serves(env.provider, claim.spec.node_class_ref):
            return None
        left = (at - env.clock.now()).total_seconds()
        if left > 0:
            return min(left, LONGEST_SECONDS)
        if why_paused(env, pool_of(claim)) or await fresh.is_paused(env, claim):
            return PAUSED_SECONDS
        ended = await ending.end(env, claim, reason=names.EXPIRED, stays=self._why_not)
        return None if ended else AGAIN_SECONDS

    def _why_not(self, claim: NodeClaim) -> str:
        at = expires_at(claim)
        return "" if at is not None and at <= self._env.clock.now() else "it has not reached its age"


def _released(news: Change[NodePool] | Change[Node]) -> bool:
    """Whether a pause has ended."""
    return isinstance(news, Changed) and marked_paused(news.old.metadata) and not marked_paused(news.new.metadata)
