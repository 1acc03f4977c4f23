"""Buying what a plan asks for: names, reservations, then the claims, several at a time."""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.pools import PoolRef
from growth.cluster.snapshot import PoolView
from growth.controllers.environment import Environment
from growth.controllers.provisioning import metrics, story
from growth.controllers.provisioning.booking import UnknownUsage
from growth.controllers.provisioning.claims import Order, body, claim, claim_name, is_relaxed
from growth.controllers.provisioning.freshness import buys_the_same, vanished
from growth.controllers.provisioning.passes import Answer
from growth.controllers.provisioning.reserving import PlanAgain, Reserved, Reserving
from growth.controllers.slicing import slices
from growth.controllers.vain import Vain
from growth.kube.errors import (
    AlreadyExists,
    ApiError,
    ConfigError,
    GateClosed,
    KubeError,
    NotFound,
    ServerError,
    Unreachable,
)
from growth.planning.plan import Plan
from growth.telemetry.logs import logger

_log = logger("provisioner")

# What is counted as the reason of claims that pending pods asked for.
PROVISIONED: Final = "provisioned"
# Claims that are created at the same time.
PARALLEL: Final = 32


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """What came of the orders: created claims, those that failed or were refused with the reason.

    `futile` when the server was asked for claims and gave none.
    """

    created: tuple[Order, ...] = ()
    refused: tuple[tuple[Order, str], ...] = ()
    again: str = ""
    futile: bool = False


class Purchases:
    """Buys for one process. What was asked for and not answered counts as bought until it is known."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._reserving = Reserving(env)
        self._vain = Vain(env)

    async def look_for_overdue(self) -> None:
        """Claims that we made and no watch has shown: a lagging watch is no reason to buy again."""
        state = self._env.state
        for name in state.overdue():
            try:
                state.expect(await self._env.api.get(NODE_CLAIM, name))
            except NotFound:
                _log.warning("a nodeclaim was not created after all", NodeClaim=name)
                state.unexpect(name)

    def new_name(self, pool: str, taken: set[str]) -> str:
        """A name that no claim has, and none of those that are taken; it is taken from now on."""
        env = self._env
        name = claim_name(pool, env.random)
        while name in taken or env.state.claims.store.get(name) is not None:
            name = claim_name(pool, env.random)
        taken.add(name)
        return name

    async def orders(self, plan: Plan, answer: Answer) -> list[Order]:
        """What of the plan is still wanted, with names."""
        env, views = self._env, answer.views
        orders: list[Order] = []
        taken: set[str] = set()
        async for slice_ in slices(list(zip(plan.claims, answer.types, strict=True))):
            for planned, types in slice_:
                pods = tuple(pod for pod in planned.pods if not vanished(pod, answer, env.state.pods.store))
                if not pods:
                    continue
                name = self.new_name(planned.pool.name, taken)
                order = Order(
                    name=name,
                    pool=answer.pools[planned.pool.name],
                    view=views[planned.pool],
                    planned=planned,
                    pods=pods,
                    types=types,
                    max_price=planned.max_price,
                    annotations=self._vain.annotation(
                        views[planned.pool], (answer.shapes[pod] for pod in pods if pod in answer.shapes)
                    ),
                )
                orders.append(order)
        return orders

    async def buy(
        self, orders: Sequence[Order], *, views: Mapping[PoolRef, PoolView], currency: str, reason: str = PROVISIONED
    ) -> Done:
        """Reserves, then creates. `views` are the pools as they were planned with; `reason` is what is counted."""
        env = self._env
        if not orders:
            return Done()
        nodes = len(orders)
        _log.info(
            "computed new nodeclaim(s) to fit pod(s)", nodeclaims=nodes, pods=sum(len(each.pods) for each in orders)
        )
        for order in orders:
            now = env.state.pools.store.get(order.pool.metadata.name)
            if now is None or not buys_the_same(order.pool, now):
                return Done(again=f"NodePool {order.pool.metadata.name} has changed")
        expected = self._reserving.expected_refusals(orders, views)
        try:
            reserved = await self._reserving.reserve(expected.orders, views)
        except PlanAgain as error:
            return Done(refused=expected.refused, again=str(error))
        except UnknownUsage as error:
            return Done(refused=(*expected.refused, *((order, str(error)) for order in expected.orders)))
        created, failed = await self._create_all(reserved, currency=currency, reason=reason)
        self._reserving.give_up({order.name for order, _ in failed})
        again = "some claims could not be created" if failed or reserved.refused else ""
        refused = (*expected.refused, *reserved.refused, *failed)
        return Done(created, refused, again if created else "", futile=bool(failed) and not created)

    async def _create_all(
        self, reserved: Reserved, *, currency: str, reason: str
    ) -> tuple[tuple[Order, ...], list[tuple[Order, str]]]:
        """Creates the claims, several at a time: those that are there, and those that are not with the reason."""
        left = iter(reserved.orders)
        created: list[Order] = []
        failed: list[tuple[Order, str]] = []

        async def work() -> None:
            for order in left:
                why = await self._create(order, until=reserved.until, currency=currency, reason=reason)
                if why:
                    failed.append((order, why))
                else:
                    created.append(order)

        workers = min(PARALLEL, len(reserved.orders))
        for result in await asyncio.gather(*(work() for _ in range(workers)), return_exceptions=True):
            if isinstance(result, BaseException):  # all of them have ended: nothing is created behind our back
                raise result
        return tuple(created), failed

    async def _create(self, order: Order, *, until: float, currency: str, reason: str) -> str:
        """Creates the claim; empty, or why not. A claim of which no answer came counts as created until it is known."""
        env = self._env
        made = claim(order, currency=currency)
        if env.clock.boot_time() > until:
            return "its reservation was about to be released"
        try:
            stored = await env.api.create(NODE_CLAIM, body(made))
        except (GateClosed, ConfigError):
            raise
        except AlreadyExists:
            return f"NodeClaim {order.name} exists already"
        except Unreachable as error:
            return f"NodeClaim {order.name} was not created: {error}"
        except ServerError as error:
            stored = await self._looked_up(order, made, error)
        except ApiError as error:
            _log.warning("the server refuses a nodeclaim", NodeClaim=order.name, error=error.message)
            return f"NodeClaim {order.name} was refused: {error.message}"
        except KubeError as error:
            stored = await self._looked_up(order, made, error)
        env.state.expect(stored)
        env.state.nominate(order.name, seconds=env.settings.nomination)
        relaxed = str(is_relaxed(made)).lower()
        pool = order.pool.metadata.name
        env.metrics.add(metrics.CREATED, reason=reason, nodepool=pool, min_values_relaxed=relaxed)
        _log.info(
            "created nodeclaim",
            NodePool=pool,
            NodeClaim=order.name,
            requests=made.spec.resources.requests,
            instance_types=story.listed(order.types),
        )
        return ""

    async def _looked_up(self, order: Order, made: NodeClaim, error: KubeError) -> NodeClaim:
        """The claim of which no usable answer came: as the server has it, or as it may yet come to be."""
        _log.warning("whether a nodeclaim was created is not known", NodeClaim=order.name, error=str(error))
        try:
            return await self._env.api.get(NODE_CLAIM, order.name)
        except (GateClosed, ConfigError):
            raise
        except NotFound:
            return made
        except KubeError:
            return made
