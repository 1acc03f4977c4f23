"""Asking for the removal of machines of a pool such that its minima hold, however many processes do so at once.

The claims whose removal is about to be asked for are written into the pool's annotation first, with its resourceVersion
as precondition, as reservations are: two processes that both believe to lead cannot both give up the last spare machine.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from growth.api import names, reservations
from growth.api.conditions import is_true
from growth.api.growthpools import EMPTY, GROWTH_POOL, NODE_REMOVAL_REQUEST, OVER_LIMIT, GrowthPool, NodeRemovalRequest
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.reservations import Reservation, ReservationError
from growth.cluster.machines import types_of
from growth.cluster.reserved_names import ReservedNames
from growth.controllers.environment import Environment
from growth.controllers.growth.claims import removal_body
from growth.controllers.growth.outgoing import outgoing
from growth.controllers.provisioning import books
from growth.kube.errors import AlreadyExists, NotFound
from growth.kube.whole import every
from growth.telemetry.logs import logger

_log = logger("scaledown")

ATTEMPTS: Final = 5


class Releasing:
    """Asks for one process."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._names = ReservedNames(env.clock)

    async def release(
        self, name: str, claims: Sequence[str], *, reason: str, until: float = math.inf
    ) -> tuple[str, ...]:
        """Creates the removals of these claims of the pool, as far as minima allow; the claims that they are of.

        None is created later than `until` (boot time): what was seen of the machines is too old then.
        """
        for _ in range(ATTEMPTS):
            try:
                pool = await self._env.api.get(GROWTH_POOL, name)
            except NotFound:
                return ()
            there = {each.metadata.name: each for each in await every(self._env.api, NODE_CLAIM)}
            removals = await every(self._env.api, NODE_REMOVAL_REQUEST)
            standing = self._standing(pool)
            choose = surplus_of if reason == OVER_LIMIT else released_of
            released = choose(pool, claims, staying_of(pool, there, removals, standing))
            if not released:
                return ()
            now = self._env.clock.now()
            writing = standing | {each: Reservation(at=now) for each in released}
            if not await books.write(self._env.api, GROWTH_POOL, pool, names.RELEASING_ANNOTATION, writing):
                continue
            return tuple([each for each in released if await self._create(there[each], pool, reason, until=until)])
        _log.info("a pool changes too often for machines to be released", pool=name)
        return ()

    def _standing(self, pool: GrowthPool) -> dict[str, Reservation]:
        """What somebody is about to release. An annotation that nobody can read says nothing: it holds no machine back."""
        try:
            found = reservations.parse(pool.metadata.annotations.get(names.RELEASING_ANNOTATION, ""))
        except ReservationError:
            return {}
        self._names.see(found)
        given_up = self._names.given_up()
        return {name: each for name, each in found.items() if (name, each.at) not in given_up}

    async def _create(self, claim: NodeClaim, pool: GrowthPool, reason: str, *, until: float) -> bool:
        if self._env.clock.boot_time() > until:
            return False
        if reason == EMPTY and self._env.state.nominated(claim.metadata.name, claim.status.node_name):
            return False  # pods were promised a place there while the books were written
        try:
            await self._env.api.create(NODE_REMOVAL_REQUEST, removal_body(claim, pool, reason=reason))
        except AlreadyExists:
            return True
        _log.info("created noderemovalrequest", NodeClaim=claim.metadata.name, reason=reason)
        return True


def staying_of(
    pool: GrowthPool,
    claims: Mapping[str, NodeClaim],
    removals: Sequence[NodeRemovalRequest],
    releasing: Mapping[str, Reservation],
) -> dict[str, NodeClaim]:
    """The pool's claims that nobody is about to end."""
    going = outgoing(removals)
    return {
        name: claim
        for name, claim in claims.items()
        if claim.metadata.labels.get(names.POOL_LABEL) == pool.metadata.name
        and claim.metadata.deletion_timestamp is None
        and name not in releasing
        and not going.has(claim)
    }


def surplus_of(pool: GrowthPool, wanted: Sequence[str], staying: Mapping[str, NodeClaim]) -> tuple[str, ...]:
    """Of the wanted claims as many as the pool has beyond its limit, whatever its minima. Everything must be fresh."""
    limit = pool.spec.limits.nodes
    over = 0 if limit is None else len(staying) - limit
    return tuple(name for name in wanted if name in staying)[: max(0, over)]


def released_of(pool: GrowthPool, wanted: Sequence[str], staying: Mapping[str, NodeClaim]) -> tuple[str, ...]:
    """Of the wanted claims those that may go such that as many as `min` of each type stay. Everything must be fresh."""
    up = {
        name: types_of(claim)[:1]
        for name, claim in staying.items()
        if is_true(claim.status.conditions, names.INITIALIZED)
    }
    least = {each.name.lower(): each.min for each in pool.spec.server_types}
    found: list[str] = []
    for name in wanted:
        if name not in up:
            continue
        types = up[name]
        rest = sum(types == other for other in up.values()) - 1
        if not types or rest >= least.get(types[0], 0):
            del up[name]
            found.append(name)
    return tuple(found)
