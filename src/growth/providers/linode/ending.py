"""The end of a claim's machine: one node of its pool, under the key's lock, after a fresh look."""

from growth.api.clouds import CloudUnavailable, InvariantViolation, MachineNotFound
from growth.api.karpenter import NodeClaim
from growth.ports import Clock
from growth.providers.linode import tags, wire
from growth.providers.linode.collecting import Collecting
from growth.providers.linode.finding import Anothers, Finding
from growth.providers.linode.holdings import Home
from growth.providers.linode.inheriting import Inheriting
from growth.providers.linode.naming import Naming
from growth.providers.linode.pools import Pools
from growth.providers.linode.tags import Key


class Ending(Finding):
    """One per process. Raises errors of `growth.api.clouds` and `CallError`."""

    def __init__(
        self,
        pools: Pools,
        naming: Naming,
        collecting: Collecting,
        *,
        inheriting: Inheriting,
        home: Home,
        clock: Clock,
    ) -> None:
        super().__init__(pools, clock=clock)
        self._pools = pools
        self._collecting = collecting
        self._inheriting = inheriting
        self._naming = naming
        self._home = home

    async def delete(self, claim: NodeClaim) -> None:
        """Accepted when it returns. `MachineNotFound` only when the vendor says so of the machine itself."""
        instance = await self.of_claim(claim)
        if instance.deleting or self._pools.remembered.is_ended(instance.id):
            return
        pool = await self._pool_of(instance)
        key = self._pools.key_of(pool)
        if key is None:
            raise InvariantViolation(
                f"machine {instance.id} of claim {claim.metadata.name} is in pool {pool.id}, which is not this cluster's:"
                " it is not touched"
            )
        async with self._pools.locks.held(key):
            await self._end(pool, key, instance, claim)

    async def of_claim(self, claim: NodeClaim) -> wire.Instance:
        """Of a claim that names no machine it is not said that it has none while one may come to light."""
        # Before the look: only then what the process before left was known to it.
        began, settled = self._clock.monotonic(), self._inheriting.is_settled
        await self._inheriting.know()
        try:
            return await super().of_claim(claim)
        except MachineNotFound:
            unknown = not claim.status.provider_id and not settled
            if unknown and await self._inheriting.has(tags.key_of(claim, ""), since=began):
                raise CloudUnavailable(
                    f"claim {claim.metadata.name} has no machine, unless tags that the process before wrote are on their way:"
                    " it is tried again"
                ) from None
            raise

    async def owned(self, instance: wire.Instance, claim: NodeClaim) -> wire.Instance:
        """Also a machine that the claim names and that has the tags of another which does not, and none that it knows by its
        tags alone and another names: its tags are put right first.
        """
        name = claim.metadata.name
        if not claim.status.provider_id:
            other = await self._naming.other(instance, claim)
            if other is None:
                return await super().owned(instance, claim)
            await self._naming.put_right(instance, other)
            raise CloudUnavailable(
                f"machine {instance.id} had the tags of claim {name}, but claim {other.metadata.name} names it, which has it"
                " again: it is looked again for others"
            )
        try:
            return await super().owned(instance, claim)
        except Anothers:
            if await self._naming.is_anothers(instance):
                raise
        owned = await self._naming.put_right(instance, claim)
        if owned is None:
            raise MachineNotFound(f"there is no machine {tags.provider_id(instance.id)}")
        return owned

    async def _end(self, listed: wire.Pool, key: Key, instance: wire.Instance, claim: NodeClaim) -> None:
        pool, fresh = await self._pools.fresh(listed.id), await self._pools.instance(instance.id)
        if fresh is None:
            raise MachineNotFound(f"there is no machine {tags.provider_id(instance.id)}")
        if self._pools.is_going(fresh):
            return  # also where another deletion was accepted meanwhile, and the machine does not say so yet
        self.check_owner(fresh, claim)
        # Where both are on their way out, nobody wants it.
        staying = [each for each in await self._naming.claims() if each.metadata.deletion_timestamp is None]
        other = self._naming.another(staying, fresh, claim)
        if other is not None:
            raise Anothers(
                f"claims {claim.metadata.name} and {other.metadata.name} both name machine {fresh.id}: it is deleted for"
                " neither; take it out of the status of the one that it is not"
            )
        if pool is None or not await self._pools.remove_machine(pool, fresh, key):
            raise CloudUnavailable(
                f"machine {instance.id} cannot be deleted now: LKE does not list its node yet, or a purchase counts on the last"
                " node of its pool; it is tried again"
            )

    async def _pool_of(self, instance: wire.Instance) -> wire.Pool:
        """A list that cannot be read says nothing of the machine: `CallError`."""
        pools = await self._pools.pools.since(self._clock.monotonic())
        for pool in pools:
            if any(node.instance_id == instance.id for node in pool.nodes):
                return pool
        number = tags.value(instance.tags, tags.LKE_POOL)
        for pool in pools:
            if str(pool.id) == number:
                return pool
        raise CloudUnavailable(f"no pool of LKE cluster {self._home.id} lists machine {instance.id} now")

    async def collect(self) -> int:
        """Capacity that nobody has claimed for too long goes; how much went."""
        return await self._collecting.collect()
