"""Growth pools: their status, and their machines that are kept warm."""

import asyncio
import dataclasses
from typing import Any, Final

from growth.api import names
from growth.api.conditions import TRUE
from growth.api.growthpools import GROWTH_POOL, GrowthPool, NodeRequest
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.api.pools import PoolRef
from growth.cluster.pricing import by_name
from growth.controllers.environment import Environment
from growth.controllers.growth import status
from growth.controllers.growth.booking import Count
from growth.controllers.growth.claims import node_class_of, request_name
from growth.controllers.growth.purchases import Asking, Requesting
from growth.controllers.ownership import serves, why_paused
from growth.controllers.reconciler import Reconciler
from growth.controllers.stamping import stamp
from growth.controllers.vain import Vain
from growth.kube.changes import change, difference
from growth.kube.errors import Conflict
from growth.kube.informer import Informer
from growth.kube.store import Change, Deleted
from growth.telemetry.logs import about, logger

_log = logger("growthpool")

# While machines of a pool come and go, its status follows at most this often.
QUIET_SECONDS: Final = 5.0
# What the cloud sells is not known yet: that is a matter of seconds.
UNKNOWN_SECONDS: Final = 1.0
# A machine that is kept warm could not be asked for.
AGAIN_SECONDS: Final = 10.0
# Prices, stock and types change without an event of the cluster.
LOOK_SECONDS: Final = 60.0


class GrowthPools:
    """Every pool of `growth.dev`."""

    def __init__(self, env: Environment, requesting: Requesting) -> None:
        self._env = env
        self._vain = Vain(env)
        self._requesting = requesting
        self._written: dict[str, float] = {}
        self._reconciler: Reconciler[str] = Reconciler("growthpool", self._act, random=env.random, workers=2)
        state = env.state
        state.growth_pools.subscribe(self._on_pool)
        state.claims.subscribe(self._on_claim)
        state.node_requests.subscribe(self._on_request)
        for informer in state.node_classes.values():
            informer.subscribe(self._on_class)

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed."""
        state = self._env.state
        informers: tuple[Informer[Any, Any], ...] = (
            *(state.growth_pools, state.claims, state.node_requests),
            *state.node_classes.values(),
        )
        for informer in informers:
            await informer.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reconciler.run(), name="growth pools")

    # What makes us look at a pool.

    def _on_pool(self, news: Change[GrowthPool]) -> None:
        if isinstance(news, Deleted):
            self._written.pop(news.key[1], None)
        else:
            self._reconciler.add(news.key[1])

    def _on_claim(self, news: Change[NodeClaim]) -> None:
        claim = news.old if isinstance(news, Deleted) else news.new
        pool = claim.metadata.labels.get(names.POOL_LABEL)
        if pool is not None:
            self._reconciler.add(pool)

    def _on_request(self, news: Change[NodeRequest]) -> None:
        request = news.old if isinstance(news, Deleted) else news.new
        self._reconciler.add(request.spec.pool)

    def _on_class(self, _news: Change[Any]) -> None:
        for pool in self._env.state.growth_pools.store:
            self._reconciler.add(pool.metadata.name)

    # What is done with it.

    async def _act(self, name: str) -> float | None:
        env = self._env
        pool = env.state.growth_pools.store.get(name)
        if pool is None or pool.metadata.deletion_timestamp is not None:
            return None
        if env.state.catalogue is None:
            return UNKNOWN_SECONDS
        with about(NodePool=str(PoolRef.growth(name))):
            # Each machine that comes changes its claim and its request many times, and each time we are here: all of the
            # pool's machines are gone through only where something may come of it.
            short, quiet = self._is_short(pool), self._quiet(name)
            if quiet > 0 and not short:
                return min(LOOK_SECONDS, quiet)
            facts = self._facts(pool)
            await stamp(env, pool, facts.claims)
            again = await self._keep_warm(pool, facts) if short else LOOK_SECONDS
            left = await self._tell(pool, facts)
            return min(LOOK_SECONDS, again, left, self._lapse(pool))

    def _is_short(self, pool: GrowthPool) -> bool:
        """Whether there are fewer claims of a type than its `min`."""
        name, claims = pool.metadata.name, self._env.state.claims.store
        return any(
            each.min > claims.count("growth type", f"{name}/{each.name.lower()}") for each in pool.spec.server_types
        )

    def _lapse(self, pool: GrowthPool) -> float:
        """In how many seconds the first of the offerings that the cloud refused may be asked for again."""
        now = self._env.clock.now()
        coming = ((each.until - now).total_seconds() for each in pool.status.unmet_offerings if each.until > now)
        return min(coming, default=LOOK_SECONDS)

    def _quiet(self, name: str) -> float:
        """For how many seconds the pool's status is not written again."""
        return self._written.get(name, -QUIET_SECONDS) + QUIET_SECONDS - self._env.clock.monotonic()

    def _facts(self, pool: GrowthPool) -> status.Facts:
        env, name = self._env, pool.metadata.name
        assert env.state.catalogue is not None
        return status.Facts(
            catalogue=env.state.catalogue,
            types=by_name(env.state.types_for(pool.spec.node_class_ref, env.clock.now())),
            claims=env.state.claims.store.find("growth pool", name),
            requests=env.state.node_requests.store.find("pool", name),
            node_class=self._class_of(pool),
            paused=why_paused(env, PoolRef.growth(name)),
        )

    def _class_of(self, pool: GrowthPool) -> status.Class:
        env = self._env
        uses = node_class_of(pool, env.provider)
        for kind, informer in env.state.node_classes.items():
            if (kind.group, kind.kind) == (uses.group, uses.kind):
                found = informer.store.get(uses.name)
                conditions = None if found is None else found.status.conditions
                return status.Class(uses=uses, known=informer.synced, conditions=conditions)
        return status.Class(uses=uses, served=serves(env.provider, uses), known=False)

    async def _tell(self, pool: GrowthPool, facts: status.Facts) -> float:
        """Writes the status where it changed; in how many seconds it may be written again."""
        env, name = self._env, pool.metadata.name
        now = env.clock.now()
        known, draft = status.raw(pool), status.raw(pool)
        status.tell(draft, pool, facts, now=now)
        if not difference(known, draft):
            return LOOK_SECONDS
        left = self._quiet(name)
        if left > 0:
            return left

        def edit(draft: Json) -> None:
            if draft["metadata"]["uid"] != pool.metadata.uid:
                raise Conflict(f"another pool is called {name} by now")
            status.tell(draft, pool, facts, now=now)

        self._written[name] = env.clock.monotonic()
        await change(env.api, GROWTH_POOL, name, edit, subresource="status")
        return LOOK_SECONDS

    # Machines that are kept without load.

    async def _keep_warm(self, pool: GrowthPool, facts: status.Facts) -> float:
        """Asks for what is missing to `min`, once as far as the cache knows; the books say whether it is so."""
        env, name = self._env, pool.metadata.name
        if facts.paused or status.judged(facts.node_class)[0] != TRUE:
            return LOOK_SECONDS
        sold = by_name(facts.catalogue.types)
        count = Count(name, claims=facts.claims, requests=facts.requests)
        short = status.unmet(pool, facts, now=env.clock.now())
        wanted: list[Asking] = []
        for each in pool.spec.server_types:
            kind = sold.get(each.name.lower())
            if kind is None or kind.name.lower() in short:
                continue
            dearest = max((offering.price for offering in kind.offerings if offering.price is not None), default=0)
            wanted += [
                Asking(name=request_name(name, env.random), pool=pool, type=kind.name, price=dearest)
                for _ in range(each.min - count.of(kind.name.lower()))
            ]
        ref = PoolRef.growth(name)
        number, annotations = await self._vain.standing(ref, facts.claims, len(wanted)) if wanted else (0, {})
        wanted = [dataclasses.replace(each, annotations=annotations) for each in wanted[:number]]
        if not wanted:
            return LOOK_SECONDS
        _log.info("keeping machines warm", machines=len(wanted))
        asked = await self._requesting.ask(wanted)
        for refused, why in asked.refused:
            _log.info("a machine is not kept warm", type=refused.type, why=why)
        return AGAIN_SECONDS if asked.again else LOOK_SECONDS
