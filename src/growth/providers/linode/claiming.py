"""How a claim gets its machine: find it, or claim one that is there, or have its pool grow by one and claim that.

    find by tag ──► claim-or-scale ──► confirm      15 s for all of it, whatever types are tried
                        under the key's lock:  pool → members → find again, as tags can come late → surplus
                                               open machine and ours to take  → write its tags
                                               surplus or reservation         → wait a second, outside the lock
                                               neither                        → reserve, then count + 1

Surplus is the pool's count less claimed machines, less reservations of others. A purchase that holds a reservation never
scales again. Two processes at once can claim two machines for one claim, or one machine for two: whoever finds that out
when it confirms gives its own back. Where both crash before that, `settling` does.
"""

import asyncio
import datetime as dt
import math
from collections.abc import Sequence
from typing import Final

from growth.api.clouds import CreateError, InvariantViolation
from growth.api.karpenter import NodeClaim
from growth.ports import Clock
from growth.providers.answering import Hold
from growth.providers.http import CallError
from growth.providers.linode import making, tags, wire
from growth.providers.linode.booking import Bound, Late, Overdue
from growth.providers.linode.classes import hash_of
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.finding import PROVISIONING, Finding, Order, Undelivered
from growth.providers.linode.holdings import (
    DOUBT_SECONDS,
    REMEMBERED_SECONDS,
    Doubled,
    Home,
    check_single,
    doubled,
    is_unsure,
)
from growth.providers.linode.inheriting import Inheriting
from growth.providers.linode.leaving import Leaving
from growth.providers.linode.listing import PACE_SECONDS
from growth.providers.linode.naming import Naming
from growth.providers.linode.pools import MEMBERS_SECONDS, Members, Pools
from growth.providers.linode.tags import Key
from growth.telemetry.logs import logger

_log = logger("linode")

AUTOSCALED: Final = "LKEAutoscalerEnabled"
# So long a purchase takes where answers are prompt; then it gives up and is tried again.
CREATE_SECONDS: Final = 15.0
# A claim with two machines is no news to a purchase that comes again so soon: what contradicts itself is tried every five minutes.
DOUBLED_SECONDS: Final = 900.0
# Between two looks at a pool whose node is on its way.
WAIT_SECONDS: Final = 1.0
# Less than what was claimed here is remembered for: the vendor's clock says how old a machine is.
JUST_MADE: Final = dt.timedelta(seconds=REMEMBERED_SECONDS / 2)
# How long another process' write can be on its way: only then a claim is sure.
CONFIRM_SECONDS: Final = 1.5
# What a pass takes where answers are prompt: it waits for one list.
PASS_SECONDS: Final = PACE_SECONDS


class Claiming(Finding):
    """One per process. Raises errors of `growth.api.clouds` and `CallError`."""

    def __init__(
        self,
        cloud: LinodeApi,
        pools: Pools,
        naming: Naming,
        *,
        inheriting: Inheriting,
        leaving: Leaving,
        cluster: str,
        home: Home,
        clock: Clock,
        ttl_seconds: float,
        hold: Hold,
    ) -> None:
        super().__init__(pools, clock=clock)
        self._cloud = cloud
        self._pools = pools
        self._naming = naming
        self._cluster = cluster
        self._home = home
        self._hold = hold
        self._inheriting = inheriting
        self._leaving = leaving
        self._ttl = dt.timedelta(seconds=ttl_seconds)
        self._doubled: Overdue[Key] = Overdue(clock, forget_seconds=DOUBLED_SECONDS)

    async def find(self, claim: NodeClaim, *, bound: Bound) -> wire.Instance | None:
        """As it is the claim's and no other names it; the tags of one that another names are put right."""
        unsure = self._pools.remembered.answer_to(claim.metadata.uid) is None
        with bound.looking():
            own, other = await self._judged(claim)
        if own is None:
            return None
        if other is not None:
            await self._naming.put_right(own, other, within=bound.left())
            return None
        if not tags.holds(own.tags, claim):
            return await self._naming.put_right(own, claim, within=bound.left())
        if unsure and own.id in self._pools.remembered.of_claim(claim.metadata.uid):
            return await self._confirmed(claim, own, bound)  # claimed a moment ago, when there was no time for this
        return own

    async def check(self, claim: NodeClaim, key: Key) -> None:
        await super().check(claim, key)
        await self._pools.check(key)

    async def _judged(
        self, claim: NodeClaim, since: float | None = None
    ) -> tuple[wire.Instance | None, NodeClaim | None]:
        """The machine that has the claim's tags, and another claim that names it. Nobody is asked where this process saw it
        become the claim's.
        """
        known = self._pools.remembered.answer_to(claim.metadata.uid)
        own = await self._found(claim, since)
        if own is None or own.id == known:
            return own, None
        other = await self._naming.other(own, claim)
        if other is not None:
            self._pools.remembered.disowned(own.id, claim.metadata.uid)
        else:
            self._pools.remembered.answered(claim.metadata.uid, own.id)
        return own, other

    async def begun(self, claim: NodeClaim, types: Sequence[str]) -> str:
        """A type of which the process before left capacity in the claim's pool that nobody has: it may be on its way for it."""
        if not self._inheriting.is_older(claim):
            return ""
        now, uid = self._clock.monotonic(), claim.metadata.uid
        left = {self._pools.key_of(each): each for each in await self._pools.pools.since(now) if self._is_left(each)}
        for type_ in types:
            key = tags.key_of(claim, type_)
            pool = left.get(key)
            if pool is None:
                continue
            try:
                members = await self._pools.members(pool, key, claim=uid)
            except InvariantViolation:
                continue  # it is said when something is bought there
            if self._surplus(pool, members, key, but=uid) > 0:
                return type_
        return ""

    def _is_left(self, pool: wire.Pool) -> bool:
        return self._inheriting.is_left(pool) and not pool.autoscaler.enabled

    def _surplus(self, pool: wire.Pool, members: Members, key: Key, *, but: str) -> int:
        """What is left of the pool for who asks."""
        return pool.count - members.overdue - members.claimed - self._pools.reservations.count(key, but=but)

    def avoids(self, type_: str) -> bool:
        return self._pools.is_undelivered(type_)

    # -- claim or scale -------------------------------------------------------------------------------------------

    async def buy(self, order: Order) -> wire.Instance:
        """The claim's machine. Within the bound passes begin, the first in any case, and none is broken off.

        `CreateError` NodePoolProvisioning where it is not there yet.
        """
        began = order.bound.began
        try:
            while True:
                if not await self._inheriting.is_open(order.key, since=began):
                    await self._inheriting.know()
                    claimed = await self._in_turn(order, since=began)
                    if claimed is not None:
                        break
                if not order.bound.left(but=WAIT_SECONDS):
                    raise self._late(order)
                await asyncio.sleep(WAIT_SECONDS)
        finally:
            self._pools.reservations.release(order.key, order.uid)
        return await self._confirmed(order.claim, claimed, order.bound)

    async def _in_turn(self, order: Order, *, since: float) -> wire.Instance | None:
        """A pass that begins in time. Once begun it ends by itself: what it was about to write it writes, and hears of it.

        `CreateError` where no time is left to be sure of the machine, unless slow answers used it up: then each try must get further.
        """
        try:
            async with self._pools.locks.held(order.key, within=order.bound.left(but=PASS_SECONDS)):
                began = self._clock.monotonic()
                claimed = await self._pass(order, since=since)
                took = self._clock.monotonic() - began
        except Late:
            raise self._late(order) from None
        if claimed is not None and took <= PASS_SECONDS and not order.bound.left(but=CONFIRM_SECONDS):
            raise CreateError(
                f"machine {claimed.id} was claimed for {order.name} a moment ago: whether it stays is looked at by the next try",
                reason=PROVISIONING,
            )
        return claimed

    def _late(self, order: Order) -> CreateError:
        return CreateError(self._words(order), reason=PROVISIONING)

    def _words(self, order: Order) -> str:
        if self.avoids(order.key.type):
            return (
                f"no machine for claim {order.name}: LKE took a count for pool {order.key} and has not come up with the node;"
                " another type that the claim allows is tried first, and this one is asked for again where there is none"
            )
        return f"no machine for claim {order.name} after {order.bound.seconds:.0f} s: the node of pool {order.key} is on its way"

    async def _pass(self, order: Order, *, since: float) -> wire.Instance | None:
        """One look under the lock: the machine where one could be claimed, or is the claim's by now."""
        key, reservations = order.key, self._pools.reservations
        pool = await self._pools.found(key, since=since)
        if pool is None:
            # Nobody makes a second one for want of a fresh look.
            pool = await self._pools.found(key, since=self._clock.monotonic()) or await self._pools.unlisted(key)
        # Where no pool is, the list will do in which the claim was looked for before all: what came since is remembered.
        looked = -math.inf if pool is None else self._clock.monotonic() - MEMBERS_SECONDS
        members = await self._members(order, pool) if pool is not None else None
        if pool is not None and members is None:
            return None
        # After the members, in the list that they were found in: what counts there as claimed may be this claim's own, whose
        # tags came late.
        own, other = await self._judged(order.claim, looked)
        if other is not None:
            # Its tags are put right under the lock of its key, which may be this one.
            raise CreateError(
                f"a machine is tagged for claim {order.name}, but claim {other.metadata.name} names it",
                reason=PROVISIONING,
            )
        if own is not None:
            return own
        if pool is None or members is None:
            if not self._pools.doubts.holds(key, None):
                self._check_delivered(order)
                await self._make_pool(order)
            return None
        if reservations.holds(key, order.uid) or self._surplus(pool, members, key, but=order.uid) > 0:
            reservations.take(key, order.uid)
            told = self._home.enterprise and pool.id not in self._pools.unchanged
            return await self._first_open(making.as_made(order, pool, enterprise=told), pool, members.open)
        self._check_delivered(order)
        await self._scale(order, pool, since=looked)
        return None

    def _check_delivered(self, order: Order) -> None:
        """`Undelivered` where a node of another type is more likely to come."""
        if not order.last and self.avoids(order.key.type):
            raise Undelivered(self._words(order), reason=PROVISIONING)

    async def _members(self, order: Order, pool: wire.Pool) -> Members | None:
        """None where the pool must be left as it is for a while."""
        if pool.autoscaler.enabled:
            raise CreateError(
                f"LKE's own autoscaler is on for pool {pool.id} ({order.key}), and two cannot scale one pool: turn it off",
                reason=AUTOSCALED,
            )
        if self._inheriting.is_unsettled(pool) or self._pools.doubts.holds(order.key, pool):
            return None
        try:
            members = await self._pools.members(pool, order.key, claim=order.uid)
        except Doubled:
            # Whoever tagged the second gives it back at once, or collection does.
            if max(self._doubled.seen(order.key, 1)) >= DOUBT_SECONDS:
                raise
            return None
        self._doubled.seen(order.key, 0)
        return members

    async def _first_open(self, order: Order, pool: wire.Pool, numbers: Sequence[int]) -> wire.Instance | None:
        """The first that is really nobody's, looked at just now; or one that is the claim's already, which no list told."""
        begun = set(self._pools.remembered.doubted_for(order.uid))
        for number in sorted(numbers, key=lambda each: each not in begun):
            instance = await self._pools.instance(number)
            if instance is None or instance.deleting or not self._pools.is_at_home(instance):
                continue
            check_single(instance)
            if tags.holds(instance.tags, order.claim):
                self._pools.remembered.claimed(number, order.uid, order.key)
                return instance
            if tags.is_for(instance.tags, order.claim):
                await self._check_only(order, instance, numbers)
                return await self._tagged_for(order, pool, instance)
            if tags.values(instance.tags, tags.CLAIM):
                self._pools.remembered.claimed(number, tags.identity_of(instance.tags), order.key)
                continue
            if await self._is_named(instance, order.key) or await self._is_leaving(instance):
                continue
            return await self._tagged_for(order, pool, instance)
        return None

    async def _tagged_for(self, order: Order, pool: wire.Pool, instance: wire.Instance) -> wire.Instance:
        """The machine with all tags of the claim's, in one write with those that it has."""
        wanted = tags.of_machine(
            order.claim,
            order.key,
            cluster=self._cluster,
            class_hash=hash_of(order.node_class.spec),
            more=order.node_class.spec.tags,
            already=instance.tags,
        )
        self._pools.bought.settled(pool.id)
        try:
            claimed = await self._cloud.retag(instance.id, wanted)
        except (CallError, asyncio.CancelledError) as error:
            if is_unsure(error):
                self._pools.remembered.doubted(instance.id, order.uid)
            raise
        self._pools.remembered.claimed(instance.id, order.uid, order.key)
        return claimed

    async def _check_only(self, order: Order, one: wire.Instance, numbers: Sequence[int]) -> None:
        """That no other of these is the claim's too: lists tell of neither, as they lack the cluster's tag."""
        looks = [await self._pools.instance(number) for number in numbers if number != one.id]
        others = [each for each in looks if each is not None and not each.deleting]
        found = [each.id for each in others if tags.is_for(each.tags, order.claim)]
        if found:
            raise doubled(order.name, sorted((one.id, *found)))

    async def _is_named(self, machine: wire.Instance, key: Key) -> bool:
        """Whether a claim names it though it has no claim's tags: somebody took them off. One that is just made none can name
        without this process having tagged it, which it remembers.
        """
        if self._is_younger(machine, JUST_MADE):
            return False
        owner = (await self._naming.owners()).get(machine.id)
        if owner is None:
            return False
        self._pools.remembered.claimed(machine.id, owner, key)
        return True

    async def _is_leaving(self, machine: wire.Instance) -> bool:
        """Whether a process before began its end: its Node goes, or went though the machine runs and was up for collection."""
        if self._is_younger(machine, JUST_MADE):
            return False
        node = (await self._leaving.nodes()).get(machine.id)
        if node is None:
            leaves = machine.status == "running" and not self._is_younger(machine, self._ttl)
        else:
            leaves = node.metadata.deletion_timestamp is not None
        if leaves:
            self._pools.remembered.leaves(machine.id)
        return leaves

    def _is_younger(self, machine: wire.Instance, age: dt.timedelta) -> bool:
        """Of one whose age is not known it is not said."""
        return machine.made is not None and self._clock.now() - machine.made < age

    async def _scale(self, order: Order, pool: wire.Pool, *, since: float) -> None:
        self._hold.check()
        reservations = self._pools.reservations
        reservations.take(order.key, order.uid)
        try:
            more = making.changes(pool, order, enterprise=self._home.enterprise)
            count = await self._pools.floored(pool, order.key, pool.count, since=since)
            await self._pools.scale(pool, order.key, count + 1, more=more)
            self._pools.bought.asked(pool.id)
        except BaseException as error:
            reservations.release(order.key, order.uid)
            if isinstance(error, CallError | asyncio.CancelledError) and is_unsure(error):
                self._pools.bought.asked(pool.id)
            raise

    async def _make_pool(self, order: Order) -> None:
        self._hold.check()
        body = making.new_pool(order, cluster=self._cluster, enterprise=self._home.enterprise)
        self._pools.reservations.take(order.key, order.uid)
        try:
            made = await self._cloud.create_pool(self._home.id, body)
        except BaseException as error:
            self._pools.reservations.release(order.key, order.uid)
            if isinstance(error, CallError | asyncio.CancelledError) and is_unsure(error):
                self._pools.doubts.note(order.key, lambda look: look is not None)
            raise
        self._inheriting.made(made)
        self._pools.made(made, order.key)
        self._pools.bought.asked(made.id)
        _log.info("made a pool", pool=made.id, key=str(order.key))

    # -- being sure -----------------------------------------------------------------------------------------------

    async def _confirmed(self, claim: NodeClaim, claimed: wire.Instance, bound: Bound) -> wire.Instance:
        """After a moment the machine is still there, this claim's, and the only one."""
        name = claim.metadata.name
        await asyncio.sleep(CONFIRM_SECONDS)
        listed, shown = await asyncio.gather(
            self._pools.machines.since(self._clock.monotonic()), self._pools.instance(claimed.id)
        )
        others = [
            each
            for each in listed
            if each.id != claimed.id and tags.holds(each.tags, claim) and not self._pools.is_going(each)
        ]
        if shown is None or self._pools.is_going(shown):
            raise self._lost(name, claimed.id, "is being deleted")
        if not tags.holds(shown.tags, claim):
            raise self._lost(name, claimed.id, "went to another")
        if not others:
            self._pools.remembered.answered(claim.metadata.uid, shown.id)
            return shown
        async with self._pools.locks.held(tags.key_of(claim, shown.type), within=max(bound.left(), PASS_SECONDS)):
            await self._pools.give_back(claimed.id, claim)
        raise CreateError(
            f"claim {name} had two machines for a moment; {claimed.id} is given back", reason=PROVISIONING
        )

    def _lost(self, name: str, number: int, how: str) -> CreateError:
        self._pools.remembered.unclaimed(number)
        return CreateError(f"machine {number}, claimed for {name} a moment ago, {how}", reason=PROVISIONING)
