"""Scale-down of empty nodes of growth pools: mark, wait, look afresh, ask for the removal. Whatever comes in between ends it."""

import asyncio
import contextlib
import datetime as dt
import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

from growth.api import names
from growth.api.conditions import is_true, since
from growth.api.events import NORMAL, regarding
from growth.api.growthpools import EMPTY, OVER_LIMIT, GrowthPool
from growth.api.karpenter import NodeClaim
from growth.api.nodes import NODE, Node
from growth.cluster.machines import types_of
from growth.cluster.paying import paid_until
from growth.cluster.pricing import by_name
from growth.controllers.environment import Environment
from growth.controllers.fresh import Look, pods_on
from growth.controllers.growth import marking
from growth.controllers.growth.outgoing import outgoing
from growth.controllers.growth.releasing import Releasing
from growth.controllers.growth.removing import is_marked
from growth.controllers.growth.sparing import leaving
from growth.controllers.ownership import marked_paused, serves
from growth.controllers.tainting import NodeReplaced
from growth.kube.errors import ConfigError, GateClosed, KubeError, NotFound
from growth.kube.informer import Informer
from growth.planning import trimming
from growth.planning.disruption.surplus import Held
from growth.planning.emptying import PoolNode, plan_scale_down, running
from growth.telemetry.logs import logger
from growth.units import print_time

_log = logger("scaledown")

# While something we read is not synced, and after a failure.
SOON_SECONDS: Final = 1.0


class ScaleDown:
    """One look at all growth pools after the other, until cancelled."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._releasing = Releasing(env)
        self._began = env.clock.monotonic()
        self._told: dict[str, str] = {}  # why empty nodes stay, as it was last told

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed."""
        self._began = self._env.clock.monotonic()
        while True:
            again = self._env.settings.disruption_poll
            try:
                if not await self._pass():
                    again = SOON_SECONDS
            except (GateClosed, ConfigError):
                raise
            except KubeError as error:
                again = SOON_SECONDS
                _log.warning("will try again", error=str(error), again=again)
            except Exception:  # noqa: BLE001 - whatever it is, everything else must go on
                _log.exception("a bug in us; scale-down waits", again=again)
            await asyncio.sleep(again)

    async def _pass(self) -> bool:
        """Whether everything that it reads was there to be read."""
        state, settings = self._env.state, self._env.settings
        read: tuple[Informer[Any, Any], ...] = (
            *(state.pods, state.nodes, state.claims, state.growth_pools, state.node_requests, state.node_removals),
        )
        if any(not informer.synced for informer in read):
            return False
        if settings.paused or not len(state.growth_pools.store):
            return True
        pools = {pool.metadata.name: pool for pool in state.growth_pools.store}
        seen = {view.name: (view, node, claim) for view, node, claim in self._nodes()}
        plan = plan_scale_down((view for view, _, _ in seen.values()), pools, now=self._env.clock.now())
        for name, why in plan.cancel.items():
            await self._cancel(seen[name][1], why)
        self._tell_kept({name: (seen[name][1], why) for name, why in plan.kept.items()})
        for each in plan.mark:
            await self._mark(seen[each.node][1], each.at)
        due: dict[str, list[tuple[Node, NodeClaim]]] = {}
        for name in plan.remove:
            view, node, claim = seen[name]
            due.setdefault(view.pool, []).append((node, claim))
        for pool, empty in due.items():
            began = Look.begin(self._env.clock)
            claims = [claim.metadata.name for node, claim in empty if await self._still_empty(node, claim)]
            until = began.good_until(self._env.clock)
            await self._releasing.release(pool, claims, reason=EMPTY, until=until)
        for name, limited in pools.items():
            surplus = self._surplus(limited)
            if surplus:
                await self._releasing.release(name, surplus, reason=OVER_LIMIT)
        return True

    def _tell_kept(self, kept: Mapping[str, tuple[Node, str]]) -> None:
        """Once, and again when the reason is another."""
        for name, (node, why) in kept.items():
            if self._told.get(name) != why:
                message = f"The node is empty and stays: {why}"
                self._env.events.event(regarding(NODE, node.metadata), names.UNCONSOLIDATABLE, message, type=NORMAL)
        self._told = {name: why for name, (_, why) in kept.items()}

    def _surplus(self, pool: GrowthPool) -> tuple[str, ...]:
        """Claims of a pool whose limit was lowered, in the order in which they go; the books say how many do."""
        env, state = self._env, self._env.state
        if pool.metadata.deletion_timestamp is not None or marked_paused(pool.metadata):
            return ()
        going = outgoing(state.node_removals.store)
        found: list[Held] = []
        for claim in state.claims.store.find("growth pool", pool.metadata.name):
            if claim.metadata.deletion_timestamp is not None or going.has(claim):
                continue
            pods = state.pods.store.find("node", claim.status.node_name) if claim.status.node_name else ()
            node = state.nodes.store.get(claim.status.node_name) if claim.status.node_name else None
            found.append(trimming.member(claim, node, pods))
        return trimming.in_order(pool, found, now=env.clock.now())

    def _nodes(self) -> Iterator[tuple[PoolNode, Node, NodeClaim]]:
        """Every initialised node of a growth pool."""
        env, state = self._env, self._env.state
        going = outgoing(state.node_removals.store)
        types = by_name(state.catalogue.types) if state.catalogue is not None else {}
        for claim in state.claims.store:
            pool, provider_id = claim.metadata.labels.get(names.POOL_LABEL), claim.status.provider_id
            if not pool or not provider_id or not serves(env.provider, claim.spec.node_class_ref):
                continue
            nodes = state.nodes.store.find("provider", provider_id)
            if len(nodes) != 1 or not is_true(claim.status.conditions, names.INITIALIZED):
                continue
            node = nodes[0]
            view = PoolNode(
                name=node.metadata.name,
                pool=pool,
                type=next(iter(types_of(claim)), ""),
                pods=state.pods.store.find("node", node.metadata.name),
                marked=is_marked(node),
                due=marking.scale_down_at(node),
                removal=going.has(claim),
                leaving=leaving(node, claim),
                wanted=state.nominated(node.metadata.name, claim.metadata.name),
                settling=self._settling(claim),
                protected=node.metadata.annotations.get(names.DO_NOT_DISRUPT_ANNOTATION) == "true",
                paused=marked_paused(node.metadata),
                created=claim.metadata.creation_timestamp,
                paid_until=functools.partial(paid_until, claim, types)
                if env.settings.use_paid_time
                else _paid_as_it_passes,
            )
            yield view, node, claim

    def _settling(self, claim: NodeClaim) -> bool:
        """Whether whoever nominates has had no chance yet: we have just begun, or the node has just come up."""
        env, window = self._env, self._env.settings.nomination
        if env.clock.monotonic() - self._began < window:
            return True
        ready = since(claim.status.conditions, names.INITIALIZED)
        return ready is not None and (env.clock.now() - ready).total_seconds() < window

    async def _mark(self, node: Node, at: dt.datetime) -> None:
        with contextlib.suppress(NotFound, NodeReplaced):
            await marking.mark(self._env.api, node, at=at)
            _log.info("tainted node", Node=node.metadata.name, **{"taint.Key": names.SCALE_DOWN_TAINT}, until=str(at))
            message = f"The node is empty and goes at {print_time(at)}, unless a pod needs it"
            self._env.events.event(regarding(NODE, node.metadata), names.SCALE_DOWN_SCHEDULED, message, type=NORMAL)

    async def _cancel(self, node: Node, why: str) -> None:
        with contextlib.suppress(NotFound, NodeReplaced):
            await marking.unmark(self._env.api, node)
            _log.info("scale-down cancelled", Node=node.metadata.name, why=why)
            self._env.events.event(
                regarding(NODE, node.metadata), names.SCALE_DOWN_CANCELLED, f"The node stays: {why}", type=NORMAL
            )

    async def _still_empty(self, node: Node, claim: NodeClaim) -> bool:
        """By what the server says now; one that is not loses its mark with the next look."""
        env = self._env
        try:
            fresh = await env.api.get(NODE, node.metadata.name)
        except NotFound:
            return False
        if fresh.metadata.uid != node.metadata.uid or not is_marked(fresh) or leaving(fresh, claim):
            return False
        busy = running(await pods_on(env, fresh.metadata.name))
        if busy:
            await self._cancel(fresh, f"{len(busy)} pods run there")
        return not busy


def _paid_as_it_passes(_: dt.datetime) -> None:
    return None
