"""Reserve, then ask: names of claims to come are written into the growth pool's annotation before anybody asks for them.

The pool is read before claims and requests are listed, and written with its resourceVersion as precondition: a name that
somebody has taken off the books meanwhile stands in the lists, and any later change of the books refuses our write.
A claim is created only while its reservation stands, whoever made its request and whenever: a request that somebody
deletes in between gives its place to others, and then no claim may come of it.
"""

import asyncio
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final

from growth.api import names
from growth.api.growthpools import GROWTH_POOL, NODE_REQUEST, GrowthPool
from growth.api.karpenter import NODE_CLAIM
from growth.api.pools import PoolRef
from growth.controllers.environment import Environment
from growth.controllers.growth.booking import Booked, Wanted, book
from growth.controllers.ownership import marked_paused
from growth.controllers.provisioning import books
from growth.controllers.provisioning.booking import Spending
from growth.controllers.provisioning.books import Standing
from growth.controllers.provisioning.reserving import PlanAgain, Reserving
from growth.kube.errors import NotFound
from growth.kube.whole import every

ATTEMPTS: Final = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Granted:
    """`taken` may be created until `until` (boot time); `refused` may not, and why."""

    taken: tuple[Wanted, ...]
    refused: tuple[tuple[Wanted, str], ...]
    until: float


class GrowthReserving:
    """Reserves for one process; another that does the same at the same time is the normal case."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._caps = Reserving(env)
        self._granted: dict[str, float] = {}  # names of ours that may be created, until when
        self._standing = Standing(env)
        self._turns: dict[str, asyncio.Lock] = {}
        self._waiting: dict[str, dict[str, Wanted]] = {}
        self._refused: dict[str, str] = {}

    async def reserve(self, pool: GrowthPool, wanted: Sequence[Wanted]) -> Granted:
        """Books the machines with their pool and the cluster's caps. `PlanAgain`, `UnknownUsage`, `KubeError`."""
        until = self._env.clock.boot_time() + self._env.settings.reservation_use
        try:
            booked = await self._reserve(pool, wanted)
            taken, refused = booked.taken, booked.refused
            dear = await self._caps.over_caps(
                [Spending(name=each.name, instance_type=each.type, least=each.price, most=each.price) for each in taken]
            )
            refused += tuple((each, dear[each.name]) for each in taken if each.name in dear)
            taken = tuple(each for each in taken if each.name not in dear)
        except BaseException:
            self.give_up(each.name for each in wanted)
            raise
        self.give_up(each.name for each, _ in refused)
        now = self._env.clock.boot_time()
        self._granted = {name: at for name, at in self._granted.items() if at > now}
        self._granted |= {each.name: until for each in taken}
        return Granted(taken, refused, until)

    def give_up(self, wanted: Iterable[str]) -> None:
        """These names will not be created: whoever reserves next may use their room."""
        gone = set(wanted)
        self._standing.give_up(gone)
        self._granted = {name: until for name, until in self._granted.items() if name not in gone}

    async def place(self, pool: GrowthPool, wanted: Wanted) -> tuple[float, str]:
        """Until when (boot time) the claim of a request may be created; or why it may not.

        Those who come while a reservation is being written wait for the next one, which is for all of them.
        """
        name = pool.metadata.name
        waiting = self._waiting.setdefault(name, {})
        waiting[wanted.name] = wanted
        async with self._turns.setdefault(name, asyncio.Lock()):
            if wanted.name in waiting:
                together = [each for each in waiting.values() if not self._stands(each.name)]
                waiting.clear()
                if together:
                    granted = await self.reserve(pool, together)
                    self._refused |= {each.name: why for each, why in granted.refused}
        return self._granted.get(wanted.name, 0.0), self._refused.pop(wanted.name, "")

    def _stands(self, name: str) -> bool:
        return self._granted.get(name, 0.0) > self._env.clock.boot_time()

    async def _reserve(self, planned: GrowthPool, wanted: Sequence[Wanted]) -> Booked:
        env, name = self._env, planned.metadata.name
        own = {each.name for each in wanted}
        for _ in range(ATTEMPTS):
            pool = await self._fresh(planned)
            claims = await every(env.api, NODE_CLAIM)
            requests = await every(env.api, NODE_REQUEST)
            reserved = books.read(PoolRef.growth(name), pool, names.RESERVED_ANNOTATION)
            booked = book(
                pool,
                wanted,
                reserved=self._standing.others(reserved, own),
                claims=claims,
                requests=requests,
                now=env.clock.now(),
            )
            if not booked.taken:
                return booked
            if await books.write(env.api, GROWTH_POOL, pool, names.RESERVED_ANNOTATION, booked.reserved):
                return booked
        raise PlanAgain(f"growth NodePool {name} changed {ATTEMPTS} times while machines were being reserved")

    async def _fresh(self, planned: GrowthPool) -> GrowthPool:
        name = planned.metadata.name
        try:
            pool = await self._env.api.get(GROWTH_POOL, name)
        except NotFound:
            raise PlanAgain(f"growth NodePool {name} is gone") from None
        if pool.metadata.uid != planned.metadata.uid or pool.metadata.deletion_timestamp is not None:
            raise PlanAgain(f"growth NodePool {name} is not the one that was planned with")
        if marked_paused(pool.metadata):
            raise PlanAgain(f"growth NodePool {name} is paused")
        return pool
