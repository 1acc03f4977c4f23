"""What the process before left, which a process that has just begun must know before it buys: whose machines are.

Its last writes may be on their way for a little while, and lists show tags later than the machines have them. So for a while
nothing is claimed or scaled in pools that were there before; then each of their machines that lists call nobody's is looked at
by itself, once. What this process writes later it remembers itself.
"""

import asyncio
from typing import Final

from growth.api.karpenter import NodeClaim
from growth.ports import Clock
from growth.providers.linode import tags, wire
from growth.providers.linode.holdings import REMEMBERED_SECONDS
from growth.providers.linode.pools import Pools
from growth.providers.linode.tags import Key

# This process leads since the one before could not renew its lease for 15 s; what that one wrote last may be on its way a
# little longer.
SETTLE_SECONDS: Final = 10.0


class Inheriting:
    """One per process. Raises `CallError`; what was looked at until then is not looked at again."""

    def __init__(self, pools: Pools, *, clock: Clock) -> None:
        self._pools = pools
        self._clock = clock
        self._began = clock.now()
        self._settled = clock.monotonic() + SETTLE_SECONDS
        # Then the lists know whatever the process before wrote.
        self._over = self._settled + REMEMBERED_SECONDS
        self._made: set[int] = set()
        self._seen: set[int] = set()
        self._known = False
        self._lock = asyncio.Lock()

    def made(self, pool: wire.Pool) -> None:
        """By this process: nobody before it has a machine there."""
        self._made.add(pool.id)

    def is_older(self, claim: NodeClaim) -> bool:
        """Whether the process before may have begun a purchase for the claim."""
        created = claim.metadata.creation_timestamp
        return created is not None and created <= self._began

    def is_left(self, pool: wire.Pool) -> bool:
        """Whether the process before made it."""
        return pool.id not in self._made

    def is_unsettled(self, pool: wire.Pool) -> bool:
        """Whether writes of the process before may still come to it."""
        return pool.id not in self._made and not self.is_settled

    @property
    def is_settled(self) -> bool:
        """Whether all that the process before wrote has arrived."""
        return self._clock.monotonic() >= self._settled

    async def is_open(self, key: Key, *, since: float) -> bool:
        """Whether a claim of the key's pool, whatever its type, may have a machine that nobody knows of yet."""
        return not self.is_settled and await self.has(key, since=since) and not self.is_settled

    async def has(self, key: Key, *, since: float) -> bool:
        """Whether the process before left something of the key's pool, whatever its type."""
        listed = [
            self._pools.key_of(each) for each in await self._pools.pools.since(since) if each.id not in self._made
        ]
        return any(each is not None and (each.group, each.pool) == (key.group, key.pool) for each in listed)

    async def know(self) -> None:
        """From when it is settled on: whose machines are, whatever lists say, is in `remembered`."""
        async with self._lock:
            if self._known or not self.is_settled:
                return
            if self._clock.monotonic() < self._over:
                await self._look()
            self._known = True

    async def _look(self) -> None:
        all_, listed = await asyncio.gather(
            self._pools.pools.since(self._settled), self._pools.machines.since(self._settled)
        )
        pools = [each for each in all_ if each.id not in self._made]
        claimed = {each.id for each in listed if tags.values(each.tags, tags.CLAIM)}
        inside = {
            node.instance_id: self._pools.key_of(pool) for pool in pools for node in pool.nodes if node.instance_id
        }
        # Of the enterprise tier: also those that their pool does not list yet, or that outlive it.
        inside |= {each.id: tags.key_of_tags(each.tags, each.type) for each in listed if not self._is_of_ours(each)}
        for number, key in sorted(inside.items()):
            if key is None or number in claimed or number in self._seen:
                continue
            instance = await self._pools.instance(number)
            if instance is not None and tags.values(instance.tags, tags.CLAIM):
                self._pools.remembered.claimed(number, tags.identity_of(instance.tags), key)
            self._seen.add(number)

    def _is_of_ours(self, instance: wire.Instance) -> bool:
        return tags.value(instance.tags, tags.LKE_POOL) in {str(number) for number in self._made}
