"""Keeps the status and the hash of every NodePool that our provider serves."""

import asyncio
from typing import Any, Final

from growth.api import names
from growth.api.conditions import TRUE, UNKNOWN, find
from growth.api.events import WARNING, regarding
from growth.api.karpenter import NODE_POOL, NodeClaim, NodeClassReference, NodePool
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pools import PoolRef
from growth.controllers.environment import Environment
from growth.controllers.health import RegistrationHealth, Verdict
from growth.controllers.ownership import serves, why_paused
from growth.controllers.pools import status
from growth.controllers.pools.metrics import METRICS, read_gauges
from growth.controllers.pools.selling import ended, named, sold
from growth.controllers.pools.status import Facts, NodeClass
from growth.controllers.pools.validation import problems
from growth.controllers.reconciler import Reconciler
from growth.controllers.sizing import decide as sizing
from growth.controllers.slicing import slices
from growth.controllers.stamping import stamp
from growth.kube.changes import change, difference
from growth.kube.errors import Conflict
from growth.kube.informer import Informer
from growth.kube.store import Change, Changed, Deleted
from growth.telemetry.logs import about, logger
from growth.units.resources import add

__all__ = ["METRICS", "Pools"]

_log = logger("nodepool")

# While a pool changes, its status follows at most this often: a burst of machines is two writes, not one a machine.
QUIET_SECONDS: Final = 5.0
# Another autoscaler may serve the pool's kind of class; one that does has told of itself by then.
UNSERVED_SECONDS: Final = 60.0
# A type that a pool names may end while nothing else happens to the pool.
ENDED_SECONDS: Final = 300.0
NODE_CLASS_UNKNOWN: Final = "NodeClassUnknown"


class Pools:
    """Karpenter's NodePools; those whose kind of class another provider serves are left to it."""

    def __init__(self, env: Environment, *, health: RegistrationHealth | None = None) -> None:
        self._env = env
        self._health = health or RegistrationHealth()
        self._written: dict[str, float] = {}
        self._told_unserved: dict[str, None] = {}
        self._told_unsold: dict[str, int] = {}
        self._reconciler: Reconciler[str] = Reconciler("nodepool", self._act, random=env.random, workers=5)
        state = env.state
        state.pools.subscribe(self._on_pool)
        state.claims.subscribe(self._on_claim)
        state.nodes.subscribe(self._on_node)
        for informer in state.node_classes.values():
            informer.subscribe(self._on_class)
        self._health.subscribe(lambda pool: self._reconciler.add(pool.name))
        read_gauges(env)

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed."""
        state = self._env.state
        informers: tuple[Informer[Any, Any], ...] = (
            state.pools,
            state.claims,
            state.nodes,
            *state.node_classes.values(),
        )
        for informer in informers:
            await informer.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reconciler.run(), name="pools")

    # What makes us look at a pool.

    def _on_pool(self, news: Change[NodePool]) -> None:
        if isinstance(news, Deleted):
            self._health.forget(PoolRef.karpenter(news.key[1]))
            self._written.pop(news.key[1], None)
            self._told_unserved.pop(news.old.metadata.uid, None)
            self._told_unsold.pop(news.old.metadata.uid, None)
        else:
            self._reconciler.add(news.key[1])

    def _on_claim(self, news: Change[NodeClaim]) -> None:
        claim = news.old if isinstance(news, Deleted) else news.new
        pool = claim.metadata.labels.get(names.NODE_POOL_LABEL)
        if pool is not None:
            self._reconciler.add(pool)

    def _on_node(self, news: Change[Node]) -> None:
        if isinstance(news, Changed) and news.old.status.capacity == news.new.status.capacity:
            return
        node = news.old if isinstance(news, Deleted) else news.new
        pool = node.metadata.labels.get(names.NODE_POOL_LABEL)
        if pool is not None:
            self._reconciler.add(pool)

    def _on_class(self, news: Change[Any]) -> None:
        for pool in self._env.state.pools.store:
            if pool.spec.template.spec.node_class_ref.name == news.key[1]:
                self._reconciler.add(pool.metadata.name)

    # What is done with it.

    async def _act(self, name: str) -> float | None:
        pool = self._env.state.pools.store.get(name)
        if pool is None:
            return None
        with about(NodePool=name):
            if not serves(self._env.provider, pool.spec.template.spec.node_class_ref):
                return self._complain_of_class(pool)
            left = self._written.get(name, -QUIET_SECONDS) + QUIET_SECONDS - self._env.clock.monotonic()
            if left > 0:
                return left
            await stamp(self._env, pool, self._env.state.claims.store.find("pool", name))
            await self._tell(pool)
            return self._complain_of_choice(pool)

    async def _tell(self, pool: NodePool) -> None:
        facts = await self._facts(pool)
        now = self._env.clock.now()
        draft = status.raw(pool)
        status.tell(draft, facts, now=now)
        if not difference(status.raw(pool), draft):
            return

        def edit(draft: Json) -> None:
            _must_be(draft, pool)
            status.tell(draft, facts, now=now)

        self._written[pool.metadata.name] = self._env.clock.monotonic()
        await change(self._env.api, NODE_POOL, pool.metadata.name, edit, subresource="status")

    async def _facts(self, pool: NodePool) -> Facts:
        state = self._env.state
        ref = PoolRef.karpenter(pool.metadata.name)
        node_class, classes_known = self._class_of(pool.spec.template.spec.node_class_ref)
        resources, nodes = status.held(())
        async for some in slices(state.claims.store.find("pool", pool.metadata.name)):
            more, number = status.held([(claim, self._node_of(claim)) for claim in some])
            resources, nodes = add(resources, more), nodes + number
        wrong = problems(pool)
        over = None if state.catalogue is None else ended(pool, state.catalogue)
        return Facts(
            problems=wrong,
            node_class=node_class,
            classes_known=classes_known,
            paused=why_paused(self._env, ref),
            resources=resources,
            nodes=nodes,
            health=self._verdict(pool, node_class),
            in_place=sizing.why_in_place(pool),
            ended=over,
            # Asked only where it is told: requirements that are wrong may not be readable, and nothing is bought by them.
            buys=not over or (state.catalogue is not None and not wrong and sold(pool, state.catalogue.types)),
        )

    def _class_of(self, uses: NodeClassReference) -> tuple[NodeClass | None, bool]:
        for kind, informer in self._env.state.node_classes.items():
            if (kind.group, kind.kind) == (uses.group, uses.kind):
                found = informer.store.get(uses.name)
                made = None if found is None else NodeClass(found.metadata, found.status.conditions)
                return made, informer.synced
        return None, False

    def _node_of(self, claim: NodeClaim) -> Node | None:
        provider_id = claim.status.provider_id
        nodes = self._env.state.nodes.store.find("provider", provider_id) if provider_id else ()
        return nodes[0] if nodes else None

    def _verdict(self, pool: NodePool, node_class: NodeClass | None) -> Verdict | None:
        ref = PoolRef.karpenter(pool.metadata.name)
        if status.begins_anew(pool, node_class):
            if find(pool.status.conditions, names.NODE_REGISTRATION_HEALTHY) is not None:
                self._health.forget(ref)
            return self._health.verdict(ref)
        told = find(pool.status.conditions, names.NODE_REGISTRATION_HEALTHY)
        if told is not None and told.status != UNKNOWN:
            self._health.assume(ref, Verdict(told.status == TRUE, told.reason, told.message))
        return self._health.verdict(ref)

    # Pools that nobody serves, or for which nothing can be had.

    def _complain_of_choice(self, pool: NodePool) -> float | None:
        """One event for each generation of a pool whose requirements nothing meets; when to look again."""
        catalogue, meta = self._env.state.catalogue, pool.metadata
        if catalogue is None:
            return UNSERVED_SECONDS  # the cloud has not told yet
        again = ENDED_SECONDS if named(pool) else None
        if self._told_unsold.get(meta.uid) == meta.generation or problems(pool) or sold(pool, catalogue.types):
            return again
        self._told_unsold[meta.uid] = meta.generation
        over = ended(pool, catalogue)
        self._env.events.event(
            regarding(NODE_POOL, meta),
            names.NO_COMPATIBLE_INSTANCE_TYPES,
            f"none of the {len(catalogue.types)} types of {catalogue.cloud} has what spec.template.spec.requirements ask"
            f" for: nothing can be bought from this pool; change the requirements{f' ({over})' if over else ''}",
            type=WARNING,
        )
        return again

    def _complain_of_class(self, pool: NodePool) -> float | None:
        """One event, unless somebody else serves the pool; when to look again."""
        metadata = pool.metadata
        if find(pool.status.conditions, names.READY) is not None or metadata.uid in self._told_unserved:
            return None
        created = metadata.creation_timestamp
        age = UNSERVED_SECONDS if created is None else (self._env.clock.now() - created).total_seconds()
        if age < UNSERVED_SECONDS:
            return UNSERVED_SECONDS - age
        self._told_unserved[metadata.uid] = None
        uses = pool.spec.template.spec.node_class_ref
        served = ", ".join(f"{kind.kind} of {kind.group}" for kind in self._env.provider.node_classes)
        self._env.events.event(
            regarding(NODE_POOL, metadata),
            NODE_CLASS_UNKNOWN,
            f"node class {uses.kind} of {uses.group} is not served by provider {self._env.provider.name}, which serves"
            f" {served}: nothing is bought from this pool",
            type=WARNING,
        )
        return None


def _must_be(draft: Json, item: NodePool | NodeClaim) -> None:
    if draft["metadata"]["uid"] != item.metadata.uid:
        raise Conflict(f"another object is called {item.metadata.name} by now")
