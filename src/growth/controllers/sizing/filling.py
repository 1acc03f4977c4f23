"""Buys what a static pool lacks, and what replaces its drifted machines: planned once, reserved, then created."""

from collections.abc import Sequence
from typing import Final

from growth.api import names
from growth.api.conditions import find
from growth.api.events import WARNING, regarding
from growth.api.karpenter import NODE_POOL, NodePool
from growth.api.pools import PoolRef
from growth.controllers.environment import Environment
from growth.controllers.provisioning.claims import Order
from growth.controllers.provisioning.purchases import Purchases
from growth.controllers.sizing import decide, story
from growth.controllers.sizing.offer import Offer, offered
from growth.controllers.sizing.story import Tell
from growth.controllers.vain import Vain
from growth.planning.disruption.surplus import Standing, missing
from growth.planning.solve import Options
from growth.telemetry.logs import logger

_log = logger("nodepool.sizing")

# Claims that the cloud refuses at once are not made anew as fast as it can say no.
BETWEEN_SECONDS: Final = 5.0
# Nothing can be bought: the pool, its class or the catalogue must change, which is mostly told.
NOTHING_SECONDS: Final = 60.0
# What is counted as the reason of a claim.
STATIC: Final = "static"


class Filling:
    """Buys for one process; another one that does the same finds the same names and reservations."""

    def __init__(self, env: Environment, *, tell: Tell) -> None:
        self._env = env
        self._tell = tell
        self._purchases = Purchases(env)
        self._vain = Vain(env)
        settings = env.settings
        self._options = Options(
            strict_min_values=settings.min_values_policy != "BestEffort", flexibility=settings.max_price_percent
        )
        self._bought: dict[str, tuple[int, float]] = {}  # by pool: its generation then, and when (monotonic)
        self._ends: dict[str, int] = {}  # by pool: how many of its claims went

    def forget(self, pool: str) -> None:
        self._bought.pop(pool, None)
        self._ends.pop(pool, None)

    def ended(self, pool: str) -> None:
        """A claim of the pool is gone."""
        self._ends[pool] = self._ends.get(pool, 0) + 1

    def ends(self, pool: str) -> int:
        return self._ends.get(pool, 0)

    async def refill(self, pool: NodePool, found: Standing) -> float | None:
        """Buys what the pool lacks; in how many seconds to look again, None where a change will tell."""
        env, name = self._env, pool.metadata.name
        generation, at = self._bought.get(name, (-1, 0.0))
        left = at + BETWEEN_SECONDS - env.clock.monotonic()
        if generation == pool.metadata.generation and left > 0:
            return left
        await self._purchases.look_for_overdue()
        claims = env.state.claims.store.find("pool", name)
        taken = {claim.metadata.name for claim in env.state.claims.store}
        lacking = missing(pool, found)
        number, annotations = await self._vain.standing(PoolRef.karpenter(name), claims, lacking)
        if lacking and not number:
            return NOTHING_SECONDS
        wanted = decide.refill_names(pool, claims, number, taken=taken, ends=self.ends(name))
        offer = await self.offer(pool)
        if offer is None:
            return NOTHING_SECONDS
        return await self.buy(offer, [offer.order(each, annotations=annotations) for each in wanted], reason=STATIC)

    async def offer(self, pool: NodePool) -> Offer | None:
        """The machine that can be bought for the pool now; None where none can, which the pool's event says."""
        env = self._env
        ready = find(pool.status.conditions, names.READY)
        if env.state.catalogue is None or ready is None or ready.status != "True":
            return None
        found = await env.compute.run(offered, env.state.picture(env.clock.now()), pool, self._options)
        if isinstance(found, Offer):
            return found
        message = f"nothing can be bought for the {pool.spec.replicas} replicas: {found}"
        env.events.event(regarding(NODE_POOL, pool.metadata), names.NO_COMPATIBLE_INSTANCE_TYPES, message, type=WARNING)
        return None

    async def buy(self, offer: Offer, orders: Sequence[Order], *, reason: str) -> float | None:
        """As `refill`. What limits, caps or another process do not leave is not bought."""
        name = offer.pool.metadata.name
        done = await self._purchases.buy(
            orders, views={offer.view.ref: offer.view}, currency=offer.currency, reason=reason
        )
        self._bought[name] = (offer.pool.metadata.generation, self._env.clock.monotonic())
        if done.created:
            self._tell(story.bought(self._env, offer.pool, done.created))
        for order, why in done.refused[:1]:
            _log.info("not all nodeclaims are created", NodePool=name, NodeClaim=order.name, why=why)
        return BETWEEN_SECONDS if done.refused or done.again else None
