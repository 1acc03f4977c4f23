"""Performs what `decide` says a claim needs: asks the cloud, takes the Node, tells in the claim's conditions how far it is.

Writes on the way to a node that is initialised: on the claim its labels, then its status with the machine, registered and
initialised (one when they coincide, or nearly so); on the Node one for each of the two (or one). The labels go first: a
claim whose status names its machine has them.
"""

import asyncio
from typing import Any, Final

from growth.api import names
from growth.api.conditions import TRUE, find, is_true
from growth.api.edits import add_finalizer
from growth.api.events import WARNING, regarding
from growth.api.growthpools import GrowthPool
from growth.api.karpenter import NODE_CLAIM, NodeClaim, NodePool
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pools import PoolRef
from growth.controllers import disrupted
from growth.controllers.catalogue import CatalogueReader
from growth.controllers.disrupted import count_disrupted
from growth.controllers.environment import Environment
from growth.controllers.health import RegistrationHealth
from growth.controllers.lifecycle import decide, edits
from growth.controllers.lifecycle.claims import Claims, read
from growth.controllers.lifecycle.contradictions import Contradictions
from growth.controllers.lifecycle.labels import NodeLabels
from growth.controllers.lifecycle.launch import Launcher
from growth.controllers.lifecycle.memory import Memory
from growth.controllers.lifecycle.pauses import Pauses
from growth.controllers.lifecycle.registration import NODES_CREATED, Registration
from growth.controllers.lifecycle.stopped import Stopped
from growth.controllers.lifecycle.strangers import Strangers
from growth.controllers.ownership import marked_paused, pool_of, serves, why_paused
from growth.controllers.reconciler import Reconciler
from growth.controllers.vain import Vain
from growth.kube.informer import Informer
from growth.kube.store import Change, Changed, Deleted
from growth.planning.readiness import SEVERAL_NODES
from growth.telemetry.logs import about, logger
from growth.telemetry.metrics import Declaration

_log = logger("nodeclaim.lifecycle")

# A launch may take many seconds in which its worker only waits; one slow cloud call must hold up nobody else.
WORKERS: Final = 200
# While a watch is broken or late, nobody is given up: what we believe of the claim or its Node may be old.
UNSYNCED_SECONDS: Final = 5.0
# How often a claim that waits for its next launch is looked at: whether it is still wanted.
LOOK_SECONDS: Final = 30.0

METRICS: Final[tuple[Declaration, ...]] = (NODES_CREATED, *disrupted.METRICS)

_TIMEOUTS: Final = {
    decide.LAUNCH_TIMEOUT: (names.LAUNCH_TIMEOUT, "it was not launched"),
    decide.REGISTRATION_TIMEOUT: (names.REGISTRATION_TIMEOUT, "its machine did not register a Node"),
    decide.INITIALIZATION_TIMEOUT: (names.INITIALIZATION_TIMEOUT, "its node did not become usable"),
}


class Lifecycle:
    """Every claim of our provider, from its creation until its node is initialised."""

    def __init__(
        self,
        env: Environment,
        *,
        health: RegistrationHealth | None = None,
        catalogue: CatalogueReader | None = None,
    ) -> None:
        self._env = env
        self._health = health or RegistrationHealth()
        self._memory = Memory(env.clock, env.random)
        self._claims = Claims(env.api)
        self._contradictions = Contradictions(self._try_again)
        self._launcher = Launcher(env, memory=self._memory, contradictions=self._contradictions, catalogue=catalogue)
        self._registration = Registration(env, memory=self._memory, health=self._health)
        self._patience = decide.Patience(
            launch=env.settings.launch_ttl,
            registration=env.settings.registration_ttl,
            initialization=env.settings.initialization_ttl,
        )
        self._reconciler: Reconciler[str] = Reconciler(
            "nodeclaim.lifecycle", self._act, random=env.random, workers=WORKERS
        )
        self._strangers = Strangers(env)
        self._pauses = Pauses(env)
        self._labels = NodeLabels(env)
        self._vain = Vain(env)
        self._stopped = Stopped(env, health=self._health)
        env.state.claims.subscribe(self._on_claim)
        env.state.nodes.subscribe(self._on_node)
        env.state.pools.subscribe(self._on_pool)
        env.state.growth_pools.subscribe(self._on_growth_pool)

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed."""
        state = self._env.state
        informers: tuple[Informer[Any, Any], ...] = (state.claims, state.nodes, state.pools, state.growth_pools)
        for informer in informers:
            await informer.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reconciler.run(), name="lifecycle")
            group.create_task(self._strangers.run(), name="strangers")
            group.create_task(self._pauses.run(), name="pauses")
            group.create_task(self._labels.run(), name="labels")
            group.create_task(self._contradictions.run(), name="contradictions")
            group.create_task(self._stopped.run(), name="stopped machines")

    # What makes us look at a claim.

    def _on_claim(self, news: Change[NodeClaim]) -> None:
        if isinstance(news, Deleted):
            self._memory.forget(news.old.metadata.uid)
            self._contradictions.forget(news.old.metadata.uid)
            self._env.planned.forget(news.key[1])
            return
        if _settled(news.new):
            self._memory.forget(news.new.metadata.uid)
        if not _settled(news.new) or not decide.held(news.new):
            self._reconciler.add(news.key[1])

    def _on_node(self, news: Change[Node]) -> None:
        node = news.old if isinstance(news, Deleted) else news.new
        if not node.spec.provider_id:
            return
        marked = {names.REGISTERED_LABEL, names.INITIALIZED_LABEL} <= node.metadata.labels.keys()
        for claim in self._env.state.claims.store.find("provider", node.spec.provider_id):
            if not _settled(claim) or not marked:
                self._reconciler.add(claim.metadata.name)

    def _on_pool(self, news: Change[NodePool]) -> None:
        """A pause may have ended, or what kept machines from being made."""
        if isinstance(news, Changed) and _same_wishes(news.old, news.new):
            return
        self._pool_changed(PoolRef.karpenter(news.key[1]))

    def _on_growth_pool(self, news: Change[GrowthPool]) -> None:
        if not (isinstance(news, Changed) and _same_wishes(news.old, news.new)):
            self._pool_changed(PoolRef.growth(news.key[1]))

    def _pool_changed(self, pool: PoolRef) -> None:
        self._memory.pool_changed(pool)
        for claim in self._env.state.claims.store:
            if not _settled(claim) and pool_of(claim) == pool:
                self._reconciler.add(claim.metadata.name)

    def _try_again(self, uid: str, name: str) -> None:
        self._memory.try_now(uid)
        self._reconciler.add(name)

    # What is done with it.

    async def _act(self, name: str) -> float | None:
        claim = self._env.state.claims.store.get(name)
        if claim is None or not serves(self._env.provider, claim.spec.node_class_ref):
            return None
        with about(NodeClaim=name):
            return await self._perform(claim, self._next(claim))

    def _next(self, claim: NodeClaim) -> decide.Step:
        provider_id = claim.status.provider_id
        nodes = self._env.state.nodes.store.find("provider", provider_id) if provider_id else ()
        paused = bool(why_paused(self._env, pool_of(claim))) or any(marked_paused(node.metadata) for node in nodes)
        stage, began = decide.stage(claim)
        now, tried = self._memory.now(claim, stage, began=began), self._memory.tried(claim)
        wanted = not decide.contradicted(claim) or self._is_wanted(claim)
        return decide.next_step(
            claim, nodes, now=now, patience=self._patience, paused=paused, tried=tried, wanted=wanted
        )

    def _is_wanted(self, claim: NodeClaim) -> bool:
        """Whether pods wait for it. Of what is bought for another reason, as a static pool's size, its owner decides."""
        pool = pool_of(claim)
        karpenters = pool is not None and pool.group == names.KARPENTER
        known = self._env.state.pools.store.get(pool.name) if pool is not None and karpenters else None
        if known is None or known.spec.replicas is not None or names.REPLACES_ANNOTATION in claim.metadata.annotations:
            return True
        return self._memory.is_wanted(claim, nominated=self._env.state.nominated(claim.metadata.name))

    async def _perform(self, claim: NodeClaim, step: decide.Step) -> float | None:
        if not isinstance(step, decide.Tell):
            self._memory.no_obstacle(claim)
        match step:
            case decide.Nothing():
                return None
            case decide.Wait(seconds):
                return seconds
            case decide.Tell(condition, obstacle, seconds):
                left = self._memory.seconds_until_standing(claim, obstacle.reason)
                if left is not None:
                    return min(left, seconds)
                if obstacle is SEVERAL_NODES:
                    self._complain_of_several(claim)
                now = self._env.clock.now()
                await self._claims.change_status(
                    claim, lambda draft: edits.tell_obstacle(draft, condition, obstacle, now=now)
                )
                return seconds
            case decide.Launch():
                left = self._memory.seconds_left(claim) or await self._launch(claim)
                return left if left is None else min(left, LOOK_SECONDS)
            case decide.Hold():
                await self._claims.change(claim, _hold)
                _log.info("put the finalizer back", NodeClaim=claim.metadata.name)
                return None
            case decide.Register(node):
                return await self._registration.register(claim, node)
            case decide.Initialize(node):
                await self._registration.initialize(claim, node)
                return None
            case decide.GiveUp(reason, seconds):
                return await self._give_up(claim, reason, seconds)

    def _complain_of_several(self, claim: NodeClaim) -> None:
        nodes = self._env.state.nodes.store.find("provider", claim.status.provider_id)
        self._env.events.event(
            regarding(NODE_CLAIM, claim.metadata),
            SEVERAL_NODES.reason,
            f"The Nodes {', '.join(sorted(node.metadata.name for node in nodes))} all have the provider ID"
            f" {claim.status.provider_id}, and none can be told to be the machine's own: delete all but the right one",
            type=WARNING,
        )

    async def _launch(self, cached: NodeClaim) -> float | None:
        uid = cached.metadata.uid
        self._env.launches.under_way.add(uid)  # before the look: from then on nobody concludes that there is no machine
        try:
            raw = await self._claims.fresh(cached)
            if raw is None or not isinstance(self._next(read(raw)), decide.Launch):
                return None  # what changed meanwhile is on its way to us
            return await self._launcher.launch(raw)
        finally:
            self._env.launches.under_way.discard(uid)

    # The end of claims that do not get there.

    async def _give_up(self, cached: NodeClaim, reason: str, seconds: float) -> float | None:
        state = self._env.state
        if not (state.nodes.synced and state.claims.synced):
            return UNSYNCED_SECONDS
        raw = await self._claims.fresh(cached)
        claim = cached if raw is None else read(raw)
        if raw is None or self._next(claim) != decide.GiveUp(reason, seconds):
            return UNSYNCED_SECONDS  # news are on their way to us, or our clock was set back: then nobody would tell
        event, what = _TIMEOUTS[reason]
        told = find(claim.status.conditions, names.LAUNCHED if reason == decide.LAUNCH_TIMEOUT else names.REGISTERED)
        because = f": {told.message}" if told is not None and told.status != TRUE and told.message else ""
        if reason != decide.LAUNCH_TIMEOUT:
            await self._vain.gave_up(claim, f"{what} within {seconds:.0f} s{because}")
        if not await self._claims.delete(claim):
            return None
        _log.warning("terminating due to timeout", timeout=seconds, reason=reason)
        self._env.events.event(
            regarding(NODE_CLAIM, claim.metadata),
            event,
            f"NodeClaim is given up: {what} within {seconds:.0f} s{because}",
            type=WARNING,
        )
        count_disrupted(self._env.metrics, claim, reason=reason, pods=self._pods_on(claim.status.node_name))
        pool = pool_of(claim)
        if pool is not None and reason != decide.INITIALIZATION_TIMEOUT:
            self._record_failure(pool, claim)
        return None

    def _record_failure(self, pool: PoolRef, claim: NodeClaim) -> None:
        told = find(claim.status.conditions, names.LAUNCHED)
        if told is None:
            self._health.record(pool, ok=False, reason=names.LAUNCH_FAILED, message="Failed to launch node")
        elif told.status == TRUE:
            self._health.record(pool, ok=False, reason="RegistrationFailed", message="Failed to register node")
        else:
            self._health.record(pool, ok=False, reason=told.reason, message=told.message)

    def _pods_on(self, node: str) -> int:
        """Pods that must move when the node goes."""
        pods = self._env.state.pods.store.find("node", node) if node else ()
        return sum(pod.owner is None or pod.owner.kind not in {"DaemonSet", "Node"} for pod in pods)


def _hold(draft: Json) -> None:
    """A claim that is on its way out by now takes no new finalizer: the server would refuse it."""
    if not draft["metadata"].get("deletionTimestamp"):
        add_finalizer(draft, names.TERMINATION_FINALIZER)


def _settled(claim: NodeClaim) -> bool:
    """Whether the claim's beginnings are over: then it is somebody else's business."""
    return claim.metadata.deletion_timestamp is not None or is_true(claim.status.conditions, names.INITIALIZED)


def _same_wishes(old: NodePool | GrowthPool, new: NodePool | GrowthPool) -> bool:
    """Whether nothing but the status changed."""
    before, after = old.metadata, new.metadata
    return before.generation == after.generation and marked_paused(before) == marked_paused(after)
