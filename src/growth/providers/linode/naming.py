"""Which claim names a machine, where its tags say another: the claim is the record of who owns it, tags are how it is found.

Tags are written whole, and the vendor takes no condition with them: what a leader that is gone wrote for another claim can
arrive after the machine was bought, and after that was confirmed. So whoever knows a machine by its tags alone asks the cluster
first whether another claim names it. Then the tags are put right.
"""

import asyncio
from collections.abc import Iterable

from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.kube.api import Api
from growth.kube.whole import every
from growth.providers.http import CallError
from growth.providers.linode import tags, wire
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.holdings import is_unsure
from growth.providers.linode.pools import Pools
from growth.telemetry.logs import logger

_log = logger("linode")


class Naming:
    """One per process. Raises `CallError` and `KubeError`."""

    def __init__(self, api: Api, cloud: LinodeApi, pools: Pools, *, cluster: str) -> None:
        self._api = api
        self._cluster = cluster
        self._cloud = cloud
        self._pools = pools

    async def claims(self) -> list[NodeClaim]:
        """All that the cluster has, as the server says now."""
        return await every(self._api, NODE_CLAIM)

    async def other(self, machine: wire.Instance, claim: NodeClaim) -> NodeClaim | None:
        """Another claim that names the machine, which has this one's tags, or is about to."""
        return self.another(await self.claims(), machine, claim)

    def another(self, claims: Iterable[NodeClaim], machine: wire.Instance, claim: NodeClaim) -> NodeClaim | None:
        """The first of the claims that names the machine, or will, and is not this one."""
        others = (each for each in claims if each.metadata.uid != claim.metadata.uid)
        return next((each for each in others if self._named_by(each) == machine.id), None)

    def _named_by(self, claim: NodeClaim) -> int | None:
        """The machine that the claim names, or will, as a purchase for it ended with it."""
        return tags.number_of(claim.status.provider_id) or self._pools.remembered.answer_to(claim.metadata.uid)

    async def owners(self, machines: Iterable[wire.Instance] = ()) -> dict[int, str]:
        """The claims' UIDs by the machines that they name, or will, as a purchase for them ended with it; and by those of
        these machines that have their tags.
        """
        claims = await self.claims()
        found = {each.id: claim.metadata.uid for each in machines for claim in claims if tags.is_for(each.tags, claim)}
        for claim in claims:
            number = self._named_by(claim)
            if number is not None:
                found[number] = claim.metadata.uid
        return found

    async def is_anothers(self, machine: wire.Instance) -> bool:
        """Whether the claim whose tags it has is there, and names it too, or is about to."""
        uid = tags.uid_of(machine.tags)
        if self._pools.remembered.answer_to(uid) == machine.id:
            return True
        return any(each.metadata.uid == uid and names(each, machine) for each in await self.claims())

    async def put_right(
        self, machine: wire.Instance, claim: NodeClaim, *, within: float | None = None
    ) -> wire.Instance | None:
        """The machine with the tags of the claim that names it, under the lock of its key; None where it is gone.

        `Late` where the lock is not free within so many seconds.
        """
        key, number = tags.key_of(claim, machine.type), machine.id
        async with self._pools.locks.held(key, within=within):
            fresh = await self._pools.instance(number)
            if fresh is None or self._pools.is_going(fresh) or tags.holds(fresh.tags, claim):
                return fresh
            try:
                owned = await self._cloud.retag(number, tags.handed(fresh.tags, claim, key=key, cluster=self._cluster))
            except (CallError, asyncio.CancelledError) as error:
                if is_unsure(error):
                    self._pools.remembered.doubted(number, claim.metadata.uid)
                raise
            self._pools.remembered.unclaimed(number)
            self._pools.remembered.claimed(number, claim.metadata.uid, key)
            self._pools.remembered.answered(claim.metadata.uid, number)
            _log.warning(
                "a machine had the tags of another claim than the one that names it",
                machine=number,
                NodeClaim=claim.metadata.name,
                tagged=tags.value(fresh.tags, tags.CLAIM),
            )
            return owned


def names(claim: NodeClaim, machine: wire.Instance) -> bool:
    return tags.number_of(claim.status.provider_id) == machine.id
