"""Two machines tagged for one claim: two leaders at once leave such where both crash between their tags and the second look.

The claim says which is its own: the one that it names; while it names none, the one that a purchase of this process answered
with, else the first by number. Every other is given back, under the lock of its key, and is then capacity that nobody claims.
Nothing is touched before the last write of a leader that is gone must have arrived, nor without a fresh look. A machine that
another claim names is that one's, and gets its tags.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from growth.api.karpenter import NodeClaim
from growth.kube.errors import ConfigError, GateClosed, KubeError
from growth.ports import Clock
from growth.providers.http import CallError
from growth.providers.linode import tags, wire
from growth.providers.linode.booking import Late
from growth.providers.linode.finding import Finding
from growth.providers.linode.holdings import DOUBT_SECONDS
from growth.providers.linode.naming import Naming
from growth.providers.linode.pools import Pools
from growth.telemetry.logs import logger

_log = logger("linode")

# A purchase that is at work on the claim comes first; then it is looked at again with the next collection.
LOCK_SECONDS: Final = 1.0


def doubles(machines: Iterable[wire.Instance]) -> Mapping[str, Sequence[wire.Instance]]:
    """By the claim's UID as tags hold it. One that is tagged for two claims is nobody's to judge."""
    found: dict[str, list[wire.Instance]] = collections.defaultdict(list)
    for each in machines:
        uid = tags.value(each.tags, tags.UID)
        if uid and len(tags.values(each.tags, tags.CLAIM)) == 1:
            found[uid].append(each)
    return {uid: each for uid, each in found.items() if len(each) > 1}


def kept(numbers: Iterable[int], *, named: int | None, answered: int | None) -> int:
    """Which of the machines is the claim's; perhaps one that is not among them, where it names such."""
    if named is not None:
        return named
    held = sorted(numbers)
    return answered if answered in held else held[0]


class Settling:
    """One per process. `buying` is who else is at work on claims."""

    def __init__(self, pools: Pools, buying: Finding, naming: Naming, *, clock: Clock) -> None:
        self._pools = pools
        self._buying = buying
        self._naming = naming
        self._clock = clock
        # By the claim's UID: since when (monotonic) it has been seen with two.
        self._since: dict[str, float] = {}

    async def settle(self) -> None:
        """Once. What fails waits for the next time."""
        now = self._clock.monotonic()
        listed = await self._pools.machines.since(now)
        found = doubles(each for each in listed if not self._pools.is_going(each))
        self._since = {uid: self._since.get(uid, now) for uid in found}
        due = [uid for uid, since in self._since.items() if now - since >= DOUBT_SECONDS]
        for uid in due:
            try:
                await self._settle(uid, found[uid])
            except (GateClosed, ConfigError):
                raise
            except (CallError, KubeError, Late) as error:
                _log.warning("two machines of one claim are looked at again", claim=uid, error=str(error))

    async def _settle(self, uid: str, machines: Sequence[wire.Instance]) -> None:
        claim = next((each for each in await self._naming.claims() if tags.uid_value(each.metadata.uid) == uid), None)
        if claim is None:
            return  # machines without a claim go with the sweep that looks for such
        async with self._buying.claims.held(claim.metadata.uid, within=LOCK_SECONDS):
            claims = await self._naming.claims()
            fresh = next((each for each in claims if each.metadata.uid == claim.metadata.uid), None)
            if fresh is None:
                return
            own = await self._own(machines, fresh, claims)
            if not own:
                return
            one = kept(
                (each.id for each in own),
                named=tags.number_of(fresh.status.provider_id),
                answered=self._pools.remembered.answer_to(fresh.metadata.uid),
            )
            if not fresh.status.provider_id and not await self._is_held(one, fresh):
                return
            for each in own:
                if each.id != one:
                    await self._give_back(each, fresh)

    async def _own(
        self, machines: Sequence[wire.Instance], claim: NodeClaim, claims: Sequence[NodeClaim]
    ) -> list[wire.Instance]:
        """Those that no other claim names; what another names gets its tags."""
        own = []
        for machine in machines:
            other = self._naming.another(claims, machine, claim)
            if other is None:
                own.append(machine)
            else:
                await self._naming.put_right(machine, other)
        return own

    async def _is_held(self, number: int, claim: NodeClaim) -> bool:
        instance = await self._pools.instance(number)
        return instance is not None and not self._pools.is_going(instance) and tags.holds(instance.tags, claim)

    async def _give_back(self, machine: wire.Instance, claim: NodeClaim) -> None:
        key = tags.key_of_tags(machine.tags, machine.type)
        if key is None:
            _log.warning("a machine of a claim that has two does not say its pool", machine=machine.id)
            return
        async with self._pools.locks.held(key):
            if await self._pools.give_back(machine.id, claim):
                _log.warning(
                    "gave back a machine of a claim that had two", NodeClaim=claim.metadata.name, machine=machine.id
                )
