"""Reserve, then buy: writes the names of the claims to come where everybody who buys must look.

A pool's limits are reserved in its annotation, the caps of the whole cluster in a ConfigMap, both with the read
object's resourceVersion as precondition. The object is read before the claims are listed: a name that somebody else has
taken off the books meanwhile stands in the list as a claim, and any later change of the books refuses our write.
"""

import dataclasses
from collections.abc import Mapping, Sequence, Set
from typing import Final

from growth.api import names, reservations
from growth.api.core import CONFIG_MAP, ConfigMap
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodePool
from growth.api.pools import PoolRef
from growth.api.reservations import Reservation, ReservationError
from growth.cluster.snapshot import PoolView
from growth.controllers.environment import Environment
from growth.controllers.ownership import marked_paused
from growth.controllers.provisioning import books
from growth.controllers.provisioning.booking import (
    Booking,
    Caps,
    Spending,
    Spent,
    UnknownUsage,
    afforded,
    book_caps,
    book_pool,
    spending,
)
from growth.controllers.provisioning.books import Standing
from growth.controllers.provisioning.claims import Order
from growth.kube.errors import AlreadyExists, Conflict, Gone, NotFound, OutcomeUnknown

ATTEMPTS: Final = 5
_PAGE: Final = 500
_RESERVED_KEY: Final = "reserved"


class PlanAgain(Exception):
    """What was planned on has changed: a new plan, and nothing else, is right."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reserved:
    """`orders` may be created until `until` (boot time); `refused` may not, and why."""

    orders: tuple[Order, ...]
    refused: tuple[tuple[Order, str], ...]
    until: float


class Reserving:
    """Reserves for one process; another process that does the same at the same time is the normal case."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._standing = Standing(env)
        settings = env.settings
        self._caps = Caps(nodes=settings.max_nodes, hourly=settings.max_hourly)

    def give_up(self, wanted: Set[str]) -> None:
        """These names will not be created: whoever reserves next may use their room."""
        self._standing.give_up(wanted)

    def expected_refusals(self, orders: Sequence[Order], pools: Mapping[PoolRef, PoolView]) -> Booking:
        """What the caps will refuse as far as the cache knows. Nothing is written where nothing can be bought."""
        if not self._caps:
            return Booking(tuple(orders), (), {})
        wanted = [spending(order) for order in orders]
        return afforded(orders, self._spent(wanted, {}, list(self._env.state.claims.store), pools))

    async def reserve(self, orders: Sequence[Order], pools: Mapping[PoolRef, PoolView]) -> Reserved:
        """Books the orders with their pools and the cluster's caps. `PlanAgain`, `UnknownUsage`, `KubeError`."""
        until = self._env.clock.boot_time() + self._env.settings.reservation_use
        by_pool: dict[str, list[Order]] = {}
        for order in orders:
            by_pool.setdefault(order.pool.metadata.name, []).append(order)
        taken: list[Order] = []
        refused: list[tuple[Order, str]] = []
        try:
            for name, wanted in by_pool.items():
                if not wanted[0].pool.spec.limits and wanted[0].pool.spec.replicas is None:
                    await self._fresh_pool(wanted[0].pool)  # it may have got limits, a pause or its end meanwhile
                    taken += wanted
                    continue
                booking = await self._reserve_pool(name, wanted)
                taken += booking.orders
                refused += booking.refused
            if self._caps and taken:
                booking = await self._reserve_caps(taken, pools)
                self.give_up({order.name for order, _ in booking.refused})
                taken = list(booking.orders)
                refused += booking.refused
        except BaseException:
            self.give_up({order.name for order in orders})
            raise
        return Reserved(tuple(taken), tuple(refused), until)

    async def _reserve_pool(self, name: str, orders: Sequence[Order]) -> Booking:
        env = self._env
        planned = orders[0].pool
        own = {order.name for order in orders}
        for _ in range(ATTEMPTS):
            pool = await self._fresh_pool(planned)
            claims = await self._claims(f"{names.NODE_POOL_LABEL}={name}")
            reserved = books.read(PoolRef.karpenter(name), pool, names.RESERVED_ANNOTATION)
            catalogue = env.state.catalogue
            booking = book_pool(
                pool,
                orders,
                reserved=self._standing.others(reserved, own),
                claims=claims,
                nodes=[node for node in env.state.nodes.store if names.NODE_POOL_LABEL in node.metadata.labels],
                types=catalogue.types if catalogue is not None else (),
                now=env.clock.now(),
            )
            if not booking.orders:
                return booking
            if await books.write(env.api, NODE_POOL, pool, names.RESERVED_ANNOTATION, booking.reserved):
                return booking
        raise PlanAgain(f"NodePool {name} changed {ATTEMPTS} times while its limits were being reserved")

    async def _fresh_pool(self, planned: NodePool) -> NodePool:
        name = planned.metadata.name
        try:
            pool = await self._env.api.get(NODE_POOL, name)
        except NotFound:
            raise PlanAgain(f"NodePool {name} is gone") from None
        same = pool.metadata.uid == planned.metadata.uid and pool.metadata.generation == planned.metadata.generation
        if not same or pool.metadata.deletion_timestamp is not None or marked_paused(pool.metadata):
            raise PlanAgain(f"NodePool {name} is not the one that was planned with")
        return pool

    async def _reserve_caps(self, orders: Sequence[Order], pools: Mapping[PoolRef, PoolView]) -> Booking:
        """The orders that the caps allow."""
        wanted = [spending(order) for order in orders]
        return afforded(orders, await self._reserve_together(wanted, pools))

    async def over_caps(self, wanted: Sequence[Spending]) -> Mapping[str, str]:
        """Reserves machines that no order is for; which of them the caps do not allow, and why, by name."""
        if not self._caps or not wanted:
            return {}
        try:
            spent = await self._reserve_together(wanted, {})
        except BaseException:
            self.give_up({each.name for each in wanted})
            raise
        self.give_up(spent.refused.keys())
        return spent.refused

    async def _reserve_together(self, wanted: Sequence[Spending], pools: Mapping[PoolRef, PoolView]) -> Spent:
        """Books the machines with the caps, until nobody was first."""
        env = self._env
        own = {each.name for each in wanted}
        for _ in range(ATTEMPTS):
            caps = await self._books()
            claims = await self._claims("")
            try:
                reserved = reservations.parse(caps.data.get(_RESERVED_KEY, ""))
            except ReservationError as error:
                raise UnknownUsage(f"ConfigMap {names.CAPS_CONFIG_MAP}: {_RESERVED_KEY} {error}") from error
            spent = self._spent(wanted, self._standing.others(reserved, own), claims, pools)
            if not spent.prices:
                return spent
            try:
                await env.api.patch(
                    CONFIG_MAP,
                    names.CAPS_CONFIG_MAP,
                    {"data": {_RESERVED_KEY: reservations.printed(spent.reserved)}},
                    namespace=env.settings.namespace,
                    revision=caps.metadata.resource_version,
                    uid=caps.metadata.uid,
                )
            except (Conflict, OutcomeUnknown):
                continue
            return spent
        raise PlanAgain(f"ConfigMap {names.CAPS_CONFIG_MAP} changed {ATTEMPTS} times while caps were being reserved")

    async def _books(self) -> ConfigMap:
        """The ConfigMap of the caps, made where there is none."""
        api, namespace = self._env.api, self._env.settings.namespace
        try:
            return await api.get(CONFIG_MAP, names.CAPS_CONFIG_MAP, namespace=namespace)
        except NotFound:
            pass
        try:
            return await api.create(CONFIG_MAP, {"metadata": {"name": names.CAPS_CONFIG_MAP}}, namespace=namespace)
        except AlreadyExists:
            return await api.get(CONFIG_MAP, names.CAPS_CONFIG_MAP, namespace=namespace)

    def _spent(
        self,
        wanted: Sequence[Spending],
        reserved: Mapping[str, Reservation],
        claims: Sequence[NodeClaim],
        pools: Mapping[PoolRef, PoolView],
    ) -> Spent:
        catalogue = self._env.state.catalogue
        return book_caps(
            self._caps,
            wanted,
            reserved=reserved,
            claims=claims,
            pools=pools,
            types=catalogue.types if catalogue is not None else (),
            currency=catalogue.currency if catalogue is not None else "",
            now=self._env.clock.now(),
        )

    async def _claims(self, labels: str) -> list[NodeClaim]:
        """All of them, as the server has them now. A list that breaks off is begun again, and never taken for whole."""
        for _ in range(ATTEMPTS):
            found: list[NodeClaim] = []
            page = ""
            try:
                while True:
                    answer = await self._env.api.list(NODE_CLAIM, labels=labels, limit=_PAGE, page=page)
                    found += answer.items
                    page = answer.next
                    if not page:
                        return found
            except Gone:
                continue
        raise PlanAgain("the server forgets lists of NodeClaims faster than they can be read")
