"""Pools of LKE by (pool, type): finding the one of a key, and who is in it, as each tier tells it.

Everything here is called under the key's lock. Standard tier: a pool's nodes are its members, those without an instance
are not there yet. Enterprise: a pool lists its nodes late, so its members are the instances with the key's tag, the type,
the pool's own tag and the cluster.
"""

import asyncio
import dataclasses
import datetime as dt
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from growth.api.clouds import CloudUnavailable, InvariantViolation
from growth.api.karpenter import NodeClaim
from growth.ports import Clock
from growth.providers.http import CallError, Refused
from growth.providers.linode import making, tags, wire
from growth.providers.linode.booking import Asked, Bought, Doubts, Overdue, Reservations
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.failures import Meaning, meaning
from growth.providers.linode.holdings import DOUBT_SECONDS, NOBODY, Holdings, Home, check_single, doubled, is_unsure
from growth.providers.linode.leaving import Leaving
from growth.providers.linode.listing import Listing
from growth.providers.linode.many import FEW
from growth.providers.linode.tags import Key
from growth.telemetry.logs import logger

_log = logger("linode")

# Unclaimed capacity is let stand for so long.
ORPHAN_SECONDS: Final = 300.0
# A type of which a node has been missing for too long comes after others for so long: each try costs a claim that time again.
UNDELIVERED_SECONDS: Final = 900.0
# How old a list of instances may be in which members are looked for: each is looked at again before it is claimed.
MEMBERS_SECONDS: Final = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """`claimed` is how many machines of the pool have a claim; `open` are instances that may have none, in the list's order.

    `odd` are instances of listed nodes that no list tells of: gone, or without their tags. `shown` is how much of the pool's
    count can be seen; `overdue` how much of it has shown no instance for too long: that no longer counts.
    """

    claimed: int
    open: tuple[int, ...]
    odd: tuple[int, ...] = ()
    shown: int
    overdue: int


class Draining(CloudUnavailable):
    """Nothing is done for a key until pods have left the machines of a pool that goes."""


class Pools(Holdings):
    """One per process. Raises `CallError`, `KubeError`, `InvariantViolation` and `Draining`."""

    def __init__(
        self, cloud: LinodeApi, leaving: Leaving, *, cluster: str, home: Home, clock: Clock, ttl_seconds: float
    ) -> None:
        super().__init__(cloud, cluster=cluster, home=home, clock=clock)
        self._leaving = leaving
        self._ttl = ttl_seconds
        self.reservations: Reservations[Key] = Reservations()
        self.pools: Listing[Sequence[wire.Pool]] = Listing(lambda: cloud.pools(home.id), clock=clock)
        self.doubts: Doubts[Key, wire.Pool | None] = Doubts(clock, seconds=DOUBT_SECONDS)
        self._overdue: Overdue[tuple[int, str]] = Overdue(clock, forget_seconds=ttl_seconds)
        self.bought: Bought[int] = Bought()
        self._asked: Asked[int] = Asked(clock, seconds=ttl_seconds)
        # The pool of each key as it was made or seen last: a list may be behind.
        self._known: dict[Key, int] = {}
        # By pool: since when (monotonic) it has been seen.
        self._since: dict[int, float] = {}
        # By pool: instances of its nodes that nobody can claim, as they were looked at last.
        self._lost: dict[int, frozenset[int]] = {}
        # By type: until when (monotonic) others come before it.
        self._undelivered: dict[str, float] = {}
        # Pools that do not become what was asked for: their machines are as good as they get.
        self.unchanged: set[int] = set()

    def key_of(self, pool: wire.Pool) -> Key | None:
        """None: the pool is not ours."""
        if not tags.has(pool.tags, tags.CLUSTER, self._cluster):
            return None
        return tags.key_of_tags(pool.tags, pool.type)

    # -- the pool of a key ----------------------------------------------------------------------------------------

    async def found(self, key: Key, *, since: float) -> wire.Pool | None:
        """The key's pool as it is now. A list begun at `since` or later says which it is, or that there is none."""
        all_ = await self.pools.since(since)
        await self._check_others(key, [each for each in all_ if self._is_others(each, key)])
        listed = [each for each in all_ if self._fits(each, key)]
        pools = [pool for pool in [await self.fresh(each.id) for each in listed] if pool is not None]
        for each in pools:
            self._since.setdefault(each.id, self._clock.monotonic())
        if len(pools) > 1:
            pools = await self._without_lost_answers(key, pools)
        if len(pools) > 1:
            raise InvariantViolation(self._several(key, pools))
        if not pools:
            return None
        self._known[key] = pools[0].id
        return pools[0]

    async def disputed(self, machines: Sequence[wire.Instance]) -> Mapping[int, str]:
        """Machines of a key with two pools, or with somebody else's, by the machines' tags or as a node of one of the pools."""
        listed = await self.pools.since(self._clock.monotonic())
        keys = {each: self.key_of(pool) for pool in listed for each in (node.instance_id for node in pool.nodes)}
        found = {}
        for each in machines:
            for key in (tags.key_of_tags(each.tags, each.type), keys.get(each.id)):
                why = self._dispute(key, listed) if key is not None else ""
                if why:
                    found[each.id] = why
        return found

    async def check(self, key: Key) -> None:
        """`InvariantViolation` where pools of the key contradict each other, or machines in them. Lists that are read now tell."""
        now = self._clock.monotonic()
        pools, machines = await self.pools.since(now), await self.machines.since(now)
        why = self._dispute(key, pools)
        if why:
            raise InvariantViolation(why)
        for pool in pools:
            if self._fits(pool, key):
                self._check(pool, machines)

    def _dispute(self, key: Key, listed: Sequence[wire.Pool]) -> str:
        """What contradicts itself about the pools of a key; empty where nothing does."""
        others = [each for each in listed if self._is_others(each, key)]
        pools = [each for each in listed if self._fits(each, key)]
        return self._not_ours(key, others) if others else self._several(key, pools) if len(pools) > 1 else ""

    def _several(self, key: Key, pools: Sequence[wire.Pool]) -> str:
        return (
            f"{len(pools)} pools of LKE cluster {self._home.id} are for {key}"
            f" ({', '.join(str(each.id) for each in pools)}): remove all but one, nothing is bought for it meanwhile"
        )

    def _not_ours(self, key: Key, pools: Sequence[wire.Pool]) -> str:
        return (
            f"LKE pool {', '.join(str(each.id) for each in pools)} is tagged for {key} and is not Growth's: it lacks the tag"
            f" {tags.tag(tags.CLUSTER, self._cluster)}. Growth does not touch it and buys nothing beside it: drain and remove"
            f" it, or take its tag {key.group} off if it may stay beside Growth's own"
        )

    def _is_others(self, pool: wire.Pool, key: Key) -> bool:
        """Whether it says that it is for the key, and this Growth did not make it: Karpenter, or another Growth."""
        return key.fits(pool.tags, pool.type) and not tags.has(pool.tags, tags.CLUSTER, self._cluster)

    async def _check_others(self, key: Key, listed: Sequence[wire.Pool]) -> None:
        """That there is no such pool: nobody may take it over, and a second one beside it is a second bill."""
        looks = [await self.fresh(each.id) for each in listed]
        found = [each for each in looks if each is not None and self._is_others(each, key)]
        if found:
            raise InvariantViolation(self._not_ours(key, found))

    def made(self, pool: wire.Pool, key: Key) -> None:
        """Just now, by this process. Until a look shows it, or it should have, no second one is made."""
        self._known[key] = pool.id
        self.doubts.note(key, lambda look: look is not None)

    async def unlisted(self, key: Key) -> wire.Pool | None:
        """The key's pool as it was made or seen last, where a list that was read just now lacks it: lists may be behind."""
        number = self._known.get(key)
        pool = await self.fresh(number) if number is not None else None
        if pool is not None and self._fits(pool, key):
            return pool
        self._known.pop(key, None)
        return None

    def _fits(self, pool: wire.Pool, key: Key) -> bool:
        return self.key_of(pool) == key

    async def fresh(self, number: int) -> wire.Pool | None:
        """None where the vendor says that it is gone."""
        try:
            return await self._cloud.pool(self._home.id, number)
        except Refused as error:
            if meaning(error) is Meaning.GONE:
                return None
            raise

    async def _without_lost_answers(self, key: Key, pools: Sequence[wire.Pool]) -> list[wire.Pool]:
        """A second pool that is young and has no claim is ours, of an answer that never came: it is removed.

        `Draining` until its machines have no pods.
        """
        used = [pool for pool in pools if not await self._is_unused(pool, key)]
        unused = [pool for pool in pools if pool not in used]
        kept = used or [min(unused, key=lambda each: each.id)]
        if len(kept) > 1:
            return list(pools)
        for pool in unused:
            if pool not in kept:
                numbers = await self._drained(pool)
                _log.warning("removes a pool that was made twice", pool=pool.id, key=str(key))
                await self.remove_pool(pool)
                for number in numbers:
                    self.remembered.ended(number)
                    self._leaving.gone(number)
        return kept

    async def _is_unused(self, pool: wire.Pool, key: Key) -> bool:
        """Nobody has a machine of it, there are few, and neither one nor the pool itself is older than an answer can be late."""
        young = self._clock.now() - dt.timedelta(seconds=self._ttl)
        numbers = await self._machines_of(pool)
        if pool.autoscaler.enabled or max(pool.count, len(numbers)) > FEW:
            return False  # it is somebody's work
        looks = [await self.instance(number) for number in numbers if not self.remembered.is_leaving(number)]
        for each in looks:
            if each is not None and (tags.values(each.tags, tags.CLAIM) or each.made is None or each.made < young):
                return False
        if not numbers and self._clock.monotonic() - self._since[pool.id] > self._ttl:
            return False
        return not await self._has_others(pool, key, but=numbers)

    async def _machines_of(self, pool: wire.Pool) -> list[int]:
        numbers = {node.instance_id for node in pool.nodes if node.instance_id}
        if self._home.enterprise:
            numbers |= {each.id for each in await self.machines.since(self._clock.monotonic()) if is_in(each, pool)}
        return sorted(numbers)

    async def _drained(self, pool: wire.Pool) -> list[int]:
        """Its machines, once none of them has a Node: LKE lets them join by themselves, and pods may be there since."""
        numbers = await self._machines_of(pool)
        standing = await self._leaving.standing() if numbers else {}
        held = [number for number in numbers if number in standing]
        for number in held:
            self.remembered.leaves(number)
            await self._leaving.let_go(number, standing[number], node_class=tags.value(pool.tags, tags.NODE_CLASS))
        if held:
            raise Draining(
                f"pool {pool.id} of LKE cluster {self._home.id} was made twice; pods leave {len(held)} of its machines, and"
                " then it is removed"
            )
        return numbers

    # -- who is in it ---------------------------------------------------------------------------------------------

    async def members(self, pool: wire.Pool, key: Key, *, claim: str = "") -> Members:
        """`claim` is the UID of who looks: machines that another's unanswered write concerns count as that one's."""
        listed = await self.machines.since(self._clock.monotonic() - MEMBERS_SECONDS)
        self._check(pool, listed)
        if self._home.enterprise:
            return await self._of_enterprise(pool, key, listed, claim)
        claimed = {each.id for each in listed if tags.values(each.tags, tags.CLAIM)}
        numbers = [node.instance_id for node in pool.nodes if node.instance_id]
        taken = [
            each
            for each in numbers
            if each in claimed or self.remembered.is_claimed(each) or self._is_kept_from(each, claim)
        ]
        free = [each for each in numbers if each not in taken and not self.remembered.is_ended(each)]
        return self._members(pool, claimed=len(taken), free=free, shown=len(pool.nodes))

    def _is_kept_from(self, number: int, claim: str) -> bool:
        """Whether the claim cannot have the machine, whatever its tags say. `claim` empty: who looks wants none."""
        return self.remembered.is_anothers(number, claim) or (bool(claim) and self.remembered.is_leaving(number))

    def _check(self, pool: wire.Pool, listed: Sequence[wire.Instance]) -> None:
        """That none of its machines has two claims, and no claim two of them."""
        numbers = {node.instance_id for node in pool.nodes}
        inside = [each for each in listed if (each.id in numbers or is_in(each, pool)) and not self.is_going(each)]
        machines: dict[str, list[int]] = {}
        for each in inside:
            check_single(each)
            for name in tags.values(each.tags, tags.CLAIM):
                machines.setdefault(name, []).append(each.id)
        for name, found in machines.items():
            if len(found) > 1:
                raise doubled(name, found)

    async def _of_enterprise(self, pool: wire.Pool, key: Key, listed: Sequence[wire.Instance], claim: str) -> Members:
        numbers = {node.instance_id for node in pool.nodes}
        inside = [
            each
            for each in listed
            if key.fits(each.tags, each.type)
            and is_in(each, pool)
            and not each.deleting
            and not self.remembered.is_ended(each.id)
            and (each.id in numbers or not self.remembered.has_left(each.id))
        ]
        remembered = await self._remembered(key, shown={each.id for each in inside})
        doubted = {each.id for each in inside if self._is_kept_from(each.id, claim)}
        taken = {each.id for each in inside if tags.values(each.tags, tags.CLAIM)} | remembered | doubted
        free = [each.id for each in inside if each.id not in taken]
        odd = [
            node.instance_id
            for node in pool.nodes
            if node.instance_id
            and node.instance_id not in taken
            and node.instance_id not in free
            and not self.remembered.is_ended(node.instance_id)
            and not self._is_kept_from(node.instance_id, claim)
        ]
        shown = max(len(pool.nodes), len(taken) + len(free))
        return self._members(pool, claimed=len(taken), free=free, odd=odd, shown=shown)

    async def _remembered(self, key: Key, *, shown: Collection[int]) -> set[int]:
        """What was claimed here lately. Where no list shows it any more it is looked at: one that goes is no part of the count."""
        claimed = self.remembered.of_key(key)
        looks = [await self.instance(number) for number in sorted(claimed.difference(shown))]
        there = {each.id for each in looks if each is not None and not self.is_going(each)}
        return claimed.intersection(shown) | there

    def _members(
        self, pool: wire.Pool, *, claimed: int, free: Sequence[int], odd: Sequence[int] = (), shown: int
    ) -> Members:
        overdue = len(self.stuck_nodes(pool)) + self.excess(pool, shown=shown)
        if overdue:
            self._undelivered[pool.type] = self._clock.monotonic() + UNDELIVERED_SECONDS
        return Members(claimed=claimed, open=tuple(free), odd=tuple(odd), shown=shown, overdue=overdue)

    def lost(self, pool: wire.Pool, numbers: Collection[int]) -> None:
        """These instances of its nodes, and no others, nobody can claim: such a node is as good as one without an instance."""
        self._lost[pool.id] = frozenset(numbers)

    def stuck_nodes(self, pool: wire.Pool) -> list[wire.Node]:
        """Nodes without an instance, or with one that is lost, for longer than unclaimed capacity may stand."""
        lacking = {None, 0, *self._lost.get(pool.id, ())}
        waits = {
            node.id: self._overdue.seen((pool.id, node.id), int(node.instance_id in lacking)) for node in pool.nodes
        }
        return [node for node in pool.nodes if any(each >= self._ttl for each in waits[node.id])]

    def excess(self, pool: wire.Pool, *, shown: int) -> int:
        """Of the count: what no node stands for, and was asked for as long ago."""
        self._asked.seen(pool.id, pool.count)
        missing = pool.count - shown
        late = sum(each >= self._ttl for each in self._overdue.seen((pool.id, ""), missing))
        return self._asked.lost(pool.id, missing=missing, late=late)

    def is_undelivered(self, type_: str) -> bool:
        """Whether LKE took a count for that type lately and did not come up with the node."""
        return self._undelivered.get(type_, 0.0) > self._clock.monotonic()

    # -- changes --------------------------------------------------------------------------------------------------

    async def remove_machine(self, pool: wire.Pool, instance: wire.Instance, key: Key) -> bool:
        """The machine's node goes. False where LKE does not list it yet, or a purchase still counts on the pool."""
        node = next((each for each in pool.nodes if each.instance_id == instance.id), None)
        claim = tags.uid_of(instance.tags)
        if node is not None:
            return await self.remove_node(pool, node, key, claim=claim)
        # An enterprise pool of one whose node is not listed yet: all that it has is this machine.
        if pool.nodes or pool.count > 1 or not is_in(instance, pool) or self.reservations.count(key):
            return False
        if await self._has_others(pool, key, but=(instance.id,)):
            return False
        await self.remove_pool(pool)
        self.remembered.ended(instance.id, claim)
        return True

    async def remove_node(self, pool: wire.Pool, node: wire.Node, key: Key, *, claim: str = "") -> bool:
        """The node goes, with the pool where it was the last. False where a purchase still counts on the pool."""
        last = pool.count <= 1 and len(pool.nodes) <= 1
        if last and self.reservations.count(key):
            return False
        last = last and not await self._has_others(pool, key, but=(node.instance_id,))
        try:
            if last:
                await self.remove_pool(pool)
            else:
                self._asked.fell(pool.id)
                await self._removed(self._cloud.delete_node(self._home.id, node.id))
        except (CallError, asyncio.CancelledError) as error:
            # Its deletion may be on its way: what is nobody's, or will be there, must stay so until it can no longer come.
            if not claim and is_unsure(error):
                if node.instance_id:
                    self.remembered.doubted(node.instance_id, NOBODY)
                elif not last:
                    self.doubts.note(key, lambda look: look is None or all(each.id != node.id for each in look.nodes))
            raise
        if node.instance_id:
            self.remembered.ended(node.instance_id, claim)
        return True

    async def _has_others(self, pool: wire.Pool, key: Key, *, but: Iterable[int | None]) -> bool:
        """Whether a machine stays in the pool that its nodes do not tell of: a look at a pool may be behind."""
        found = await self._unlisted(pool, key, since=self._clock.monotonic())
        return bool(await self._staying(pool, found.difference(but)))

    async def floored(self, pool: wire.Pool, key: Key, count: int, *, since: float) -> int:
        """The count, or as many as are known to be in the pool where these are more: LKE would take what is beyond it.

        A list is enough that was begun at `since`; where it says more than the count, each is looked at now.
        """
        told = {node.instance_id for node in pool.nodes if node.instance_id}
        found = await self._unlisted(pool, key, since=since)
        if len(told) + len(found) > count:
            found = await self._staying(pool, found)
        return max(count, len(pool.nodes), len(told) + len(found))

    async def _unlisted(self, pool: wire.Pool, key: Key, *, since: float) -> set[int]:
        """Machines of the pool without a node there, by a list that was begun then and what was claimed here lately.

        Of the standard tier they do not say their pool: they are in the key's, unless another lists them.
        """
        listed = await self.machines.since(since)
        enterprise = self._home.enterprise
        inside = {
            each.id
            for each in listed
            if each.type == pool.type and (is_in(each, pool) if enterprise else key.fits(each.tags, each.type))
        }
        found = (inside | self.remembered.of_key(key)) - {node.instance_id for node in pool.nodes}
        found = {number for number in found if not self.remembered.has_left(number)}
        if found and not enterprise:
            others = [each for each in await self.pools.since(since) if each.id != pool.id]
            found -= {node.instance_id or 0 for each in others for node in each.nodes}
        return found

    async def _staying(self, pool: wire.Pool, numbers: Collection[int]) -> set[int]:
        """Those of them that are there now, and not on their way out."""
        looks = [await self.instance(number) for number in sorted(numbers)]
        return {
            each.id
            for each in looks
            if each is not None and not self.is_going(each) and (is_in(each, pool) or not self._home.enterprise)
        }

    async def remove_pool(self, pool: wire.Pool) -> None:
        key = self.key_of(pool)
        try:
            await self._removed(self._cloud.delete_pool(self._home.id, pool.id))
            self._asked.forget(pool.id)
            self.bought.forget(pool.id)
            self._lost.pop(pool.id, None)
            self._since.pop(pool.id, None)
            self._known = {each: number for each, number in self._known.items() if number != pool.id}
        except (CallError, asyncio.CancelledError) as error:
            if key is not None and is_unsure(error):
                self.doubts.note(key, lambda look: look is None or look.id != pool.id)
            raise

    async def give_back(self, number: int, claim: NodeClaim) -> bool:
        """The machine is nobody's again, where it still was the claim's. Without an answer it rests, as tags may come late.

        Not while a claim's tags may be on their way to it: they would be its again.
        """
        if self.remembered.is_anothers(number, NOBODY):
            return False
        fresh = await self.instance(number)
        held = fresh is not None and tags.holds(fresh.tags, claim)
        if fresh is not None and held:
            try:
                await self._cloud.retag(number, tags.without_claim(fresh.tags))
            except (CallError, asyncio.CancelledError) as error:
                if is_unsure(error):
                    self.remembered.doubted(number, NOBODY)
                raise
        self.remembered.unclaimed(number)
        return held

    async def scale(self, pool: wire.Pool, key: Key, count: int, *, more: Mapping[str, Any] | None = None) -> None:
        """Writes the count once, and `more` with it. Where no answer comes the key rests until it is seen, or can no longer
        arrive.
        """
        grows = count > pool.count
        try:
            answer = await self._cloud.scale_pool(self._home.id, pool.id, count, more=more or {})
        except (CallError, asyncio.CancelledError) as error:
            if is_unsure(error):
                self.doubts.note(
                    key,
                    lambda look: (
                        look is None or look.id != pool.id or (look.count >= count if grows else look.count <= count)
                    ),
                )
            raise
        self._asked.seen(pool.id, count)
        if more and making.is_taken(answer, more):
            self.unchanged.discard(pool.id)
        elif more:
            _log.warning("LKE did not take all of a change", pool=pool.id, key=str(key), asked=sorted(more))
            self.unchanged.add(pool.id)

    async def _removed(self, call: Awaitable[None]) -> None:
        try:
            await call
        except Refused as error:
            if meaning(error) is not Meaning.GONE:
                raise


def is_in(instance: wire.Instance, pool: wire.Pool) -> bool:
    """As LKE itself tags machines of the enterprise tier."""
    return tags.has(instance.tags, tags.LKE_POOL, str(pool.id))
