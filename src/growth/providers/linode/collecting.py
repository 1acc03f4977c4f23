"""The end of what nobody claims: machines, nodes that never got one, and counts that no node stands for."""

import dataclasses
import datetime as dt
from collections.abc import Collection, Mapping, Sequence

from growth.api.clouds import CloudUnavailable, InvariantViolation
from growth.api.nodes import Node
from growth.kube.errors import ConfigError, GateClosed, KubeError
from growth.ports import Clock
from growth.providers.http import CallError
from growth.providers.linode import tags, wire
from growth.providers.linode.holdings import check_single
from growth.providers.linode.leaving import Leaving
from growth.providers.linode.many import Many
from growth.providers.linode.naming import Naming
from growth.providers.linode.pools import Members, Pools
from growth.providers.linode.settling import Settling
from growth.providers.linode.tags import Key
from growth.telemetry.logs import logger

_log = logger("linode")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How much of a pool went, and machines that would go with others."""

    removed: int = 0
    due: tuple[int, ...] = ()


class Collecting:
    """One per process. Raises `CallError` and `KubeError`."""

    def __init__(
        self,
        pools: Pools,
        naming: Naming,
        settling: Settling,
        *,
        leaving: Leaving,
        many: Many,
        clock: Clock,
        ttl_seconds: float,
    ) -> None:
        self._pools = pools
        self._naming = naming
        self._settling = settling
        self._leaving = leaving
        self._many = many
        self._clock = clock
        self._ttl = ttl_seconds
        # Machines whose end was decided here and that are not gone yet.
        self._decided: set[int] = set()

    async def collect(self) -> int:
        """Capacity of our pools that nobody has claimed for too long goes; how much went. A pool that fails waits.

        Of machines that this process did not ask for itself many go together or not at all.
        """
        await self._settling.settle()
        removed, began, due = 0, self._clock.monotonic(), {}
        ours = [each for each in await self._pools.pools.since(began) if self._pools.key_of(each) is not None]
        for pool in ours:
            found = await self._alone(pool, since=began)
            removed += found.removed
            due[pool.id] = found.due
        machines = {number for each in due.values() for number in each}
        known = await self._known(ours, since=began) if machines else 0
        if await self._many.may_go(machines, known=known):
            for pool in ours:
                if due[pool.id]:
                    found = await self._alone(pool, since=self._clock.monotonic(), confirmed=due[pool.id])
                    removed += found.removed
        return removed

    async def _known(self, pools: Sequence[wire.Pool], *, since: float) -> int:
        """How many machines the cluster has."""
        listed = {each.id for each in await self._pools.machines.since(since) if not self._pools.is_going(each)}
        return len(listed | {node.instance_id for pool in pools for node in pool.nodes if node.instance_id})

    async def _alone(self, pool: wire.Pool, *, since: float, confirmed: Collection[int] = ()) -> Found:
        """What fails harms that pool alone."""
        key = self._pools.key_of(pool)
        if key is None or pool.autoscaler.enabled:
            return Found()
        try:
            async with self._pools.locks.held(key):
                return await self._collect(pool.id, key, since=since, confirmed=confirmed)
        except (GateClosed, ConfigError):
            raise
        except (CallError, KubeError, CloudUnavailable) as error:
            _log.warning("capacity that nobody claims is looked at again", pool=pool.id, error=str(error))
        except InvariantViolation as error:
            _log.warning("nothing is removed for this pool", pool=pool.id, error=str(error))
        return Found()

    async def _collect(self, number: int, key: Key, *, since: float, confirmed: Collection[int]) -> Found:
        """`InvariantViolation` where something about the key contradicts itself: then nothing goes."""
        pool = await self._pools.found(key, since=since)
        if pool is None or pool.id != number or pool.autoscaler.enabled or self._pools.doubts.holds(key, pool):
            return Found()
        members = await self._pools.members(pool, key)
        stuck, unclaimed = await self._unclaimed(pool, key, members)
        found = sum(self._pools.remembered.is_claimed(each) for each in (*members.open, *members.odd))
        spare = pool.count - members.claimed - found - self._pools.reservations.count(key)
        standing = await self._leaving.standing() if unclaimed else {}
        removed = waiting = 0
        due: list[int] = []
        for node in (*stuck, *unclaimed):
            if removed + waiting + len(due) >= spare or pool is None:
                break
            machine = node.instance_id or 0
            if (
                node in unclaimed
                and machine not in confirmed
                and not self._may_go(number, standing.get(machine), machine)
            ):
                due.append(machine)
            elif node in unclaimed and machine in standing:
                waiting += 1
                self._decided.add(machine)
                self._pools.remembered.leaves(machine)
                await self._leaving.let_go(
                    machine, standing[machine], node_class=tags.value(pool.tags, tags.NODE_CLASS)
                )
            elif await self._pools.remove_node(pool, node, key):
                removed += 1
                self._leaving.gone(machine)
                self._decided.discard(machine)
                if node in stuck:
                    self._pools.bought.settled(number)
                _log.info("removed capacity that nobody claimed", pool=number, node=node.id, key=str(key))
                pool = await self._pools.fresh(number)
        if pool is not None:
            removed += await self._lower(pool, key, spare - removed - waiting - len(due))
        return Found(removed=removed, due=tuple(due))

    def _may_go(self, pool: int, node: Node | None, machine: int) -> bool:
        """Whether its end was decided before, or it is surplus of this process' own; of that it is one less then."""
        if machine in self._decided or (node is not None and node.metadata.deletion_timestamp is not None):
            return True
        if not self._pools.bought.left(pool):
            return False
        self._pools.bought.settled(pool)
        self._decided.add(machine)
        return True

    async def _unclaimed(
        self, pool: wire.Pool, key: Key, members: Members
    ) -> tuple[Sequence[wire.Node], Sequence[wire.Node]]:
        """Nodes without a machine for too long, and those whose machines are old enough. Each is looked at just now."""
        numbers = {*members.open, *members.odd}
        looks = {each: await self._pools.instance(each) for node in pool.nodes if (each := node.instance_id) in numbers}
        gone = {number for number, instance in looks.items() if instance is None}
        oldest = self._clock.now() - dt.timedelta(seconds=self._ttl)
        old = {number for number, each in looks.items() if each and each.made is not None and each.made <= oldest}
        nobodys = await self._nobodys(
            {number: each for number, each in looks.items() if each and number in old.union(members.odd)}, key
        )
        # What goes for ever, or is not in this cluster, nobody can claim.
        stranded = {number: each for number, each in looks.items() if each and self._is_stranded(each)}
        self._pools.lost(pool, gone | stranded.keys() | nobodys.intersection(members.odd))
        gone |= await self._going(stranded)
        stuck = [node for node in self._pools.stuck_nodes(pool) if not node.instance_id or node.instance_id in gone]
        return stuck, [node for node in pool.nodes if node.instance_id in nobodys & old]

    def _is_stranded(self, machine: wire.Instance) -> bool:
        return machine.deleting or not self._pools.is_at_home(machine)

    async def _going(self, machines: Mapping[int, wire.Instance]) -> set[int]:
        """Those whose end somebody asked for and that no claim has: their nodes may go too."""
        going = [each for each in machines.values() if each.deleting and not tags.values(each.tags, tags.CLAIM)]
        owned = await self._naming.owners() if going else {}
        return {each.id for each in going} - owned.keys()

    async def _nobodys(self, machines: Mapping[int, wire.Instance], key: Key) -> set[int]:
        """Those that no claim has. What one has by its tags or names counts as its own, whatever lists say.

        Tags of a claim that is gone say nothing, unless the sweep that looks for such can see the machine.
        """
        staying = {number: each for number, each in machines.items() if not self._is_stranded(each)}
        for each in staying.values():
            check_single(each)
        swept = {
            number: tags.identity_of(each.tags)
            for number, each in staying.items()
            if tags.values(each.tags, tags.CLAIM) and self._pools.is_ours(each)
        }
        others = [each for number, each in staying.items() if number not in swept]
        owned = await self._naming.owners(others) if others else {}
        held = {number: uid for number, uid in {**owned, **swept}.items() if number in staying}
        for number, uid in held.items():
            self._pools.remembered.claimed(number, uid, key)
        return staying.keys() - held.keys()

    async def _lower(self, pool: wire.Pool, key: Key, spare: int) -> int:
        """A count that no node stands for: it is brought down to what is there, never below.

        Not while others are on their way: LKE takes the youngest, and nobody can tell those from what never comes.
        """
        began, members = self._clock.monotonic(), await self._pools.members(pool, key)
        excess = self._pools.excess(pool, shown=members.shown)
        missing = min(excess, spare)
        if missing <= 0 or excess < pool.count - members.shown:
            return 0
        count = await self._pools.floored(pool, key, pool.count - missing, since=began)
        if count >= pool.count:
            return 0
        if count < 1:
            await self._pools.remove_pool(pool)
        else:
            await self._pools.scale(pool, key, count)
        self._pools.bought.settled(pool.id, missing)
        _log.info("lowered a count that no node stood for", pool=pool.id, key=str(key))
        return missing
