"""Marks the claims whose machines are no longer what their pool or their node class asks for: the condition `Drifted`.

Nothing else is done here; who replaces such machines, and when, is decided by disruption. A claim is looked at when it or
its pool changes, and every few minutes: types leave the catalogue, and a cloud notices by itself that a machine is
outdated. What has not changed is not written.
"""

import dataclasses
from typing import Any

from growth.api import names
from growth.api.conditions import TRUE, find, is_true
from growth.api.edits import remove_condition, set_condition
from growth.api.growthpools import GROWTH_POOL, GrowthPool
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodePool
from growth.api.kinds import Json
from growth.cluster.pricing import by_name
from growth.controllers.environment import Environment
from growth.controllers.growth.claims import node_class_of
from growth.controllers.ownership import pool_of, serves
from growth.controllers.reconciler import Reconciler
from growth.kube.changes import change
from growth.kube.errors import Conflict, NotFound
from growth.kube.informer import Informer
from growth.kube.store import Change, Changed, Deleted
from growth.planning.disruption.drift import drifted, drifted_in_growth
from growth.telemetry.logs import logger

_log = logger("nodeclaim.disruption")


@dataclasses.dataclass(frozen=True, slots=True)
class _Answer:
    """What the cloud said of a machine, and when (monotonic seconds)."""

    reason: str
    at: float


class Drifting:
    """Works claim by claim until cancelled. Claims without a NodePool have nothing to drift from."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._answers: dict[str, _Answer] = {}  # by the claim's UID: clouds count calls
        self._reconciler: Reconciler[str] = Reconciler("nodeclaim.disruption", self._act, random=env.random)
        state = env.state
        state.claims.subscribe(self._on_claim)
        state.pools.subscribe(self._on_pool)
        state.growth_pools.subscribe(self._on_growth_pool)
        for informer in state.node_classes.values():
            informer.subscribe(self._on_class)

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed."""
        state = self._env.state
        informers: tuple[Informer[Any, Any], ...] = (state.claims, state.pools, state.growth_pools)
        for informer in informers:
            await informer.wait_synced()
        await self._reconciler.run()

    # What makes us look.

    def _on_claim(self, news: Change[NodeClaim]) -> None:
        if isinstance(news, Deleted):
            self._answers.pop(news.old.metadata.uid, None)
        elif not isinstance(news, Changed) or _matters(news.old, news.new):
            self._reconciler.add(news.key[1])

    def _on_pool(self, news: Change[NodePool]) -> None:
        if isinstance(news, Changed) and news.old.spec == news.new.spec:
            return  # its status, or who has reserved what
        for claim in self._env.state.claims.store.find("pool", news.key[1]):
            self._reconciler.add(claim.metadata.name)

    def _on_growth_pool(self, news: Change[GrowthPool]) -> None:
        if isinstance(news, Changed) and news.old.spec == news.new.spec:
            return
        for claim in self._env.state.claims.store.find("growth pool", news.key[1]):
            self._reconciler.add(claim.metadata.name)

    def _on_class(self, news: Change[Any]) -> None:
        """The cloud compares machines with their class: what it said before counts no longer."""
        if isinstance(news, Changed) and news.old.metadata.generation == news.new.metadata.generation:
            return
        for claim in self._env.state.claims.store:
            if claim.spec.node_class_ref.name == news.key[1]:
                self._answers.pop(claim.metadata.uid, None)
                self._reconciler.add(claim.metadata.name)

    # What is done.

    async def _act(self, name: str) -> float | None:
        env = self._env
        claim = env.state.claims.store.get(name)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return None
        pool = self._pool_of(claim)
        if pool is None or not serves(env.provider, claim.spec.node_class_ref):
            return None
        reason = await self._reason(claim, pool)
        if reason != _told(claim):
            await self._tell(claim, pool, reason)
        return env.settings.drift_period if is_true(claim.status.conditions, names.LAUNCHED) else None

    def _pool_of(self, claim: NodeClaim) -> NodePool | GrowthPool | None:
        ref, state = pool_of(claim), self._env.state
        if ref is None:
            return None
        return (state.growth_pools if ref.group == names.GROWTH else state.pools).store.get(ref.name)

    async def _reason(self, claim: NodeClaim, pool: NodePool | GrowthPool) -> str:
        """How the machine differs; what can be told without the cloud is not asked there."""
        env, catalogue = self._env, self._env.state.catalogue
        if not is_true(claim.status.conditions, names.LAUNCHED):
            return ""
        types = by_name(catalogue.types) if catalogue is not None else {}
        now = env.clock.now()
        if isinstance(pool, GrowthPool):
            told = drifted_in_growth(claim, pool, types, now, uses=node_class_of(pool, env.provider))
        else:
            told = drifted(claim, pool, types, now)
        return told or await self._ask(claim)

    async def _ask(self, claim: NodeClaim) -> str:
        """What the cloud says, asked once in a period."""
        env, uid = self._env, claim.metadata.uid
        now = env.clock.monotonic()
        known = self._answers.get(uid)
        if known is None or now - known.at >= env.settings.drift_period:
            known = self._answers[uid] = _Answer(await env.provider.is_drifted(claim), now)
        return known.reason

    async def _tell(self, claim: NodeClaim, pool: NodePool | GrowthPool, reason: str) -> None:
        env = self._env
        if reason in {names.NODE_POOL_DRIFTED, names.REQUIREMENTS_DRIFTED}:
            # A claim may have been made from a pool that is newer than the one in the cache.
            try:
                fresh = await self._fresh(pool)
            except NotFound:
                return
            if fresh.spec != pool.spec:
                raise Conflict(f"NodePool {pool.metadata.name} has changed")
        now = env.clock.now()

        def edit(draft: Json) -> None:
            if draft["metadata"]["uid"] != claim.metadata.uid:
                raise Conflict(f"another NodeClaim is called {claim.metadata.name} by now")
            if reason:
                set_condition(draft, names.DRIFTED, status=TRUE, reason=reason, message=reason, now=now)
            else:
                remove_condition(draft, names.DRIFTED)

        try:
            await change(env.api, NODE_CLAIM, claim.metadata.name, edit, subresource="status")
        except NotFound:
            return
        _log.info(
            "told whether a machine has drifted", NodeClaim=claim.metadata.name, drifted=bool(reason), reason=reason
        )

    async def _fresh(self, pool: NodePool | GrowthPool) -> NodePool | GrowthPool:
        name = pool.metadata.name
        if isinstance(pool, GrowthPool):
            return await self._env.api.get(GROWTH_POOL, name)
        return await self._env.api.get(NODE_POOL, name)


def _told(claim: NodeClaim) -> str:
    """What the condition says; one that says nothing, or is not True, is to be written anew."""
    found = find(claim.status.conditions, names.DRIFTED)
    if found is None:
        return ""
    return found.reason if found.status == TRUE else "?"


def _matters(old: NodeClaim, new: NodeClaim) -> bool:
    """Whether the change could make another verdict: most changes of a claim are its own progress."""
    stamps = (names.NODE_POOL_HASH_ANNOTATION, names.NODE_POOL_HASH_VERSION_ANNOTATION)
    return (
        old.metadata.labels != new.metadata.labels
        or any(old.metadata.annotations.get(key) != new.metadata.annotations.get(key) for key in stamps)
        or any(
            find(old.status.conditions, type_) != find(new.status.conditions, type_)
            for type_ in (names.LAUNCHED, names.DRIFTED)
        )
    )
