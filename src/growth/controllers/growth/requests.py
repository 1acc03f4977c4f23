"""NodeRequests: each is fulfilled by one claim of exactly its type, and tells how far that is.

Whatever is written was decided on what the server says now, and with its revision as precondition. The claim's name is
derived from the request's, so that nothing is asked for twice, whenever the process dies.
"""

import asyncio
import contextlib
import dataclasses
import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

from growth.api import names
from growth.api.conditions import find
from growth.api.decoding import convert
from growth.api.edits import add_owner
from growth.api.events import WARNING, regarding
from growth.api.growthpools import (
    GROWTH_POOL,
    NODE_REMOVAL_REQUEST,
    NODE_REQUEST,
    NOT_READY,
    PENDING,
    UNDERUTILIZED,
    UNMET,
    GrowthPool,
    NodeRequest,
    StoryEvent,
    UnmetOffering,
)
from growth.api.instance_types import InstanceType, Offering
from growth.api.karpenter import NODE_CLAIM, NodeClaim, NodeClaimSpec
from growth.api.kinds import Json
from growth.api.pools import PoolRef
from growth.cluster.node_requests import (
    claim_name,
    cloud_of,
    for_sale,
    refused_offerings,
    server_type,
    unmet_everywhere_until,
    unmet_until,
)
from growth.cluster.pricing import by_name
from growth.cluster.replacing import replaces
from growth.controllers.environment import Environment
from growth.controllers.growth import progress, status, stories
from growth.controllers.growth.booking import Wanted
from growth.controllers.growth.claims import claim_body, fulfils, node_class_of, owned_by, removal_body
from growth.controllers.growth.reserving import GrowthReserving
from growth.controllers.ownership import marked_paused, why_paused
from growth.controllers.provisioning import metrics
from growth.controllers.provisioning.booking import UnknownUsage
from growth.controllers.provisioning.purchases import PROVISIONED
from growth.controllers.provisioning.reserving import PlanAgain
from growth.controllers.reconciler import Reconciler
from growth.controllers.vain import Vain
from growth.kube.changes import change
from growth.kube.errors import AlreadyExists, Conflict, NotFound, OutcomeUnknown, ServerError
from growth.kube.informer import Informer
from growth.kube.store import Change, Changed, Deleted
from growth.providers.choice import choices
from growth.telemetry.logs import about, logger
from growth.units import UnitError, print_time

_log = logger("noderequest")

WORKERS: Final = 50
# What keeps a claim from being made is looked at again after so long, if nothing tells of a change before.
OBSTACLE_SECONDS: Final = 30.0
SOON_SECONDS: Final = 1.0
# So long a request waits for its pool: who makes both may make them in any order.
POOL_SECONDS: Final = 60.0


class NodeRequests:
    """Every NodeRequest of the cluster, until it is over."""

    def __init__(self, env: Environment, reserving: GrowthReserving) -> None:
        self._env = env
        self._reserving = reserving
        self._vain = Vain(env)
        settings = env.settings
        self._patience = progress.Patience(
            readiness=settings.readiness_wait, ready_ttl=settings.ready_ttl, unmet_ttl=settings.unmet_ttl
        )
        self._made: set[str] = set()  # UIDs of requests that had a claim
        self._reconciler: Reconciler[str] = Reconciler("noderequest", self._act, random=env.random, workers=WORKERS)
        state = env.state
        state.node_requests.subscribe(self._on_request)
        state.claims.subscribe(self._on_claim)
        state.growth_pools.subscribe(self._on_pool)

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed."""
        state = self._env.state
        informers: tuple[Informer[Any, Any], ...] = (state.node_requests, state.claims, state.growth_pools)
        for informer in informers:
            await informer.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reconciler.run(), name="node requests")

    # What makes us look at a request.

    def _on_request(self, news: Change[NodeRequest]) -> None:
        if isinstance(news, Deleted):
            self._made.discard(news.old.metadata.uid)
        else:
            self._reconciler.add(news.key[1])

    def _on_claim(self, news: Change[NodeClaim]) -> None:
        for request in self._env.state.node_requests.store.find("claim", news.key[1]):
            self._reconciler.add(request.metadata.name)

    def _on_pool(self, news: Change[GrowthPool]) -> None:
        if isinstance(news, Changed) and _same_wishes(news.old, news.new):
            return
        for request in self._env.state.node_requests.store.find("pool", news.key[1]):
            self._reconciler.add(request.metadata.name)

    # What is done with it.

    async def _act(self, name: str) -> float | None:
        state = self._env.state
        request = state.node_requests.store.get(name)
        if request is None:
            return None
        claim = state.claims.store.get(claim_name(name))
        step = self._next(request, claim)
        if isinstance(step, progress.Nothing | progress.Wait):
            return step.seconds if isinstance(step, progress.Wait) else None
        with about(NodeRequest=name, NodePool=str(PoolRef.growth(request.spec.pool))):
            return await self._afresh(request)

    def _next(self, request: NodeRequest, claim: NodeClaim | None) -> progress.Step:
        own = claim if claim is not None and fulfils(claim, request) else None
        if own is not None:
            self._made.add(request.metadata.uid)
        made = request.metadata.uid in self._made
        return progress.next_step(request, own, now=self._env.clock.now(), patience=self._patience, made=made)

    async def _afresh(self, cached: NodeRequest) -> float | None:
        """The cache may be late: what is done is decided on what the server says."""
        api, name = self._env.api, cached.metadata.name
        try:
            raw = await api.get(NODE_REQUEST.raw, name)
        except NotFound:
            return None
        try:
            claim: NodeClaim | None = await api.get(NODE_CLAIM, claim_name(name))
        except NotFound:
            claim = None
        request = convert(raw, NodeRequest)
        step = self._next(request, claim)
        match step:
            case progress.Nothing():
                return None
            case progress.Wait(seconds):
                return seconds
            case progress.Tell():
                await self._tell(raw, request, step)
                return None
            case progress.Ask() if claim is not None:
                return await self._failed(
                    raw, request, f"NodeClaim {claim.metadata.name} is there and not of this request"
                )
            case progress.Ask():
                return await self._ask(raw, request)
            case progress.Refused(failed):
                assert claim is not None
                return await self._refused(raw, request, claim, failed)
            case progress.EndClaim():
                assert claim is not None
                await self._delete_claim(claim)
                return None
            case progress.AskForRemoval():
                assert claim is not None
                await self._ask_for_removal(claim)
                await self._forget(request, "")
                return None
            case progress.Forget(why):
                await self._forget(request, why)
                return None

    async def _tell(self, raw: Json, request: NodeRequest, step: progress.Tell) -> None:
        fields: Json = {
            "nodeClaimName": claim_name(request.metadata.name),
            "unmetUntil": None if step.unmet_until is None else print_time(step.unmet_until),
        }
        if step.node_id:
            fields["nodeID"] = step.node_id
        await stories.write(self._env.api, NODE_REQUEST, raw, phase=step.phase, events=step.events, fields=fields)
        _log.info("noderequest moved on", phase=step.phase, events=[each.name for each in step.events])
        if step.phase == UNMET:
            self._complain(
                request,
                names.UNMET,
                f"{request.spec.target_offering} cannot be had now ({step.events[-1].reason}): nobody asks for it before"
                f" {print_time(step.unmet_until) if step.unmet_until else 'later'}",
            )

    async def _refused(self, raw: Json, request: NodeRequest, claim: NodeClaim, failed: StoryEvent) -> float | None:
        """The cloud has none of what the claim allows. That is written into the pool before anything else: whichever process
        plans next leaves out what was refused, and nothing else of the type.
        """
        env, now = self._env, self._env.clock.now()
        if env.state.catalogue is None:
            return SOON_SECONDS
        until = now + dt.timedelta(seconds=env.settings.unmet_ttl)
        pool = env.state.growth_pools.store.get(request.spec.pool)
        kind = by_name(env.state.types_for(claim.spec.node_class_ref, now)).get(server_type(request).lower())
        if pool is None or kind is None or not for_sale(kind):
            await self._unmet(raw, request, failed, until)
            return None
        refused = self._allowed(claim, kind)
        if not refused:  # the pool would not learn what to leave out
            return await self._failed(raw, request, failed.reason)
        known = await self._remember(pool, tuple(refused_offerings(kind, refused, until)), now=now)
        everywhere = unmet_everywhere_until(kind, known)
        if everywhere is not None:
            await self._unmet(raw, request, failed, everywhere)
        else:
            await self._delete_claim(claim)
            await self._end_refused(request, refused, failed.reason)
        return None

    async def _unmet(self, raw: Json, request: NodeRequest, failed: StoryEvent, until: dt.datetime) -> None:
        await self._tell(raw, request, progress.Tell(phase=UNMET, events=(failed,), unmet_until=until))

    async def _end_refused(self, request: NodeRequest, refused: Sequence[Offering], why: str) -> None:
        """The pool knows what was refused; the type may be had elsewhere, so that the request is not `Unmet`."""
        await self._forget(request, "")
        where = ", ".join(sorted({each.zone for each in refused}))
        self._complain(request, names.UNMET, f"{request.spec.target_offering} cannot be had in {where} now: {why}")

    def _allowed(self, claim: NodeClaim, kind: InstanceType) -> tuple[Offering, ...]:
        """The offerings of the type that the claim allows."""
        assert self._env.state.catalogue is not None
        with contextlib.suppress(UnitError):
            found = choices(claim, dataclasses.replace(self._env.state.catalogue, types=(kind,)))
            return tuple(each.offering for each in found)
        return ()

    async def _is_refused(self, request: NodeRequest, pool: GrowthPool) -> bool:
        """Ends a request that allows some locations only, of which the pool knows that the cloud refused them: the process that
        ended its claim died then, or it was asked for beside others.
        """
        env, now = self._env, self._env.clock.now()
        known = [each for each in pool.status.unmet_offerings if each.until > now]
        uses = node_class_of(pool, env.provider)
        kind = by_name(env.state.types_for(uses, now)).get(server_type(request).lower()) if known else None
        if kind is None or unmet_everywhere_until(kind, known) is not None:
            return False
        asked = NodeClaim(spec=NodeClaimSpec(node_class_ref=uses, requirements=request.spec.requirements))
        allowed = self._allowed(asked, kind)
        if not allowed or any(unmet_until(kind, each, known) is None for each in allowed):
            return False
        await self._end_refused(request, allowed, "the cloud refused it a moment ago")
        return True

    async def _remember(
        self, pool: GrowthPool, refused: tuple[UnmetOffering, ...], *, now: dt.datetime
    ) -> tuple[UnmetOffering, ...]:
        """What the pool's status says from now on of offerings that cannot be had."""

        def edit(draft: Json) -> None:
            if draft["metadata"]["uid"] != pool.metadata.uid:
                raise Conflict(f"another pool is called {pool.metadata.name} by now")
            status.remember(draft, refused, now=now)

        try:
            told = await change(self._env.api, GROWTH_POOL, pool.metadata.name, edit, subresource="status")
        except NotFound:
            return refused
        return convert(told, GrowthPool).status.unmet_offerings or refused

    # The claim.

    async def _ask(self, raw: Json, request: NodeRequest) -> float | None:
        env = self._env
        pool = env.state.growth_pools.store.get(request.spec.pool)
        if pool is None or pool.metadata.deletion_timestamp is not None:
            return await self._without_pool(raw, request)
        kind, why = self._sold(request)
        if kind is None:
            return await self._failed(raw, request, why) if why else SOON_SECONDS
        if why_paused(env, PoolRef.growth(pool.metadata.name)) or env.settings.observe:
            return OBSTACLE_SECONDS
        if await self._is_refused(request, pool):
            return None
        if all(owner.uid != pool.metadata.uid for owner in request.metadata.owner_references):
            await self._adopt(request, pool)
            return None
        wanted = Wanted(name=claim_name(request.metadata.name), type=kind.name.lower(), price=_dearest(kind))
        try:
            until, why = await self._reserving.place(pool, wanted)
        except PlanAgain as error:
            _log.info("the reservation is tried again", reason=str(error))
            return SOON_SECONDS
        except UnknownUsage as error:
            return await self._failed(raw, request, str(error))
        if why:
            await self._forget(request, why)
            return None
        if env.clock.boot_time() > until:
            return SOON_SECONDS
        return await self._create(request, pool, kind)

    async def _without_pool(self, raw: Json, request: NodeRequest) -> float | None:
        """A request cannot exist without its pool. For a moment that is waited for: both may come from one file."""
        name, born, now = request.spec.pool, request.metadata.creation_timestamp, self._env.clock.now()
        why = f"growth NodePool {name} does not exist"
        left = 0.0 if born is None else POOL_SECONDS - (now - born).total_seconds()
        if left > 0:
            await self._failed(raw, request, why)
            return min(left, OBSTACLE_SECONDS)
        try:
            pool = await self._env.api.get(GROWTH_POOL, name)
        except NotFound:
            pool = None
        if pool is not None and pool.metadata.deletion_timestamp is None:
            return SOON_SECONDS  # the cache is late
        await self._forget(request, f"{why}: create the pool first, then ask again")
        return None

    async def _create(self, request: NodeRequest, pool: GrowthPool, kind: InstanceType) -> float | None:
        env = self._env
        body = claim_body(request, pool, node_class_of(pool, env.provider), type_name=kind.name)
        try:
            stored = await env.api.create(NODE_CLAIM, body)
        except AlreadyExists:
            return SOON_SECONDS  # our own, of before, or another's: the next look tells
        except (OutcomeUnknown, ServerError) as error:
            _log.warning("whether a nodeclaim was created is not known", error=str(error))
            return SOON_SECONDS
        self._made.add(request.metadata.uid)
        env.state.expect(stored)
        env.state.nominate(stored.metadata.name, seconds=env.settings.nomination)
        ref = str(PoolRef.growth(pool.metadata.name))
        reason = self._moved_for(stored) or PROVISIONED
        env.metrics.add(metrics.CREATED, reason=reason, nodepool=ref, min_values_relaxed="false")
        _log.info("created nodeclaim", NodeClaim=stored.metadata.name, instance_types=kind.name)
        return None

    def _moved_for(self, claim: NodeClaim) -> str:
        """Why those go in whose place it comes, as the metric names it; empty where it comes for no move."""
        store = self._env.state.claims.store
        going = (found for name in replaces(claim) if (found := store.get(name)) is not None)
        told = (find(each.status.conditions, names.DISRUPTION_REASON) for each in going)
        reasons = [each.reason.lower() for each in told if each is not None and each.reason]
        return reasons[0] if reasons else UNDERUTILIZED.lower() if replaces(claim) else ""

    def _sold(self, request: NodeRequest) -> tuple[InstanceType | None, str]:
        """The type that is asked for, or why there is none; neither while nobody knows what is sold."""
        catalogue = self._env.state.catalogue
        if catalogue is None:
            return None, ""
        kind = by_name(catalogue.types).get(server_type(request).lower())
        if kind is None or cloud_of(request) != catalogue.cloud:
            return None, f"{request.spec.target_offering} is no offering of {catalogue.cloud}"
        return kind, ""

    async def _failed(self, raw: Json, request: NodeRequest, why: str) -> float:
        """Told once; looked at again later."""
        last = request.status.events[-1] if request.status.events else None
        if last is None or (last.name, last.reason) != (progress.NODE_REQUEST_FAILED, why):
            event = StoryEvent(at=self._env.clock.now(), name=progress.NODE_REQUEST_FAILED, reason=why)
            await stories.write(self._env.api, NODE_REQUEST, raw, phase=PENDING, events=(event,))
        return OBSTACLE_SECONDS

    async def _adopt(self, request: NodeRequest, pool: GrowthPool) -> None:
        """A request that people made by hand goes with its pool too."""
        owner = owned_by(pool)

        def edit(draft: Json) -> None:
            if draft["metadata"]["uid"] != request.metadata.uid:
                raise Conflict(f"another NodeRequest is called {request.metadata.name} by now")
            add_owner(
                draft,
                {
                    "apiVersion": owner.api_version,
                    "kind": owner.kind,
                    "name": owner.name,
                    "uid": owner.uid,
                    "blockOwnerDeletion": True,
                },
            )

        await change(self._env.api, NODE_REQUEST, request.metadata.name, edit)

    # Ends.

    async def _delete_claim(self, claim: NodeClaim) -> None:
        """Only as it was seen: `Conflict` where it was written since, for that may have been its machine."""
        meta = claim.metadata
        try:
            await self._env.api.delete(NODE_CLAIM, meta.name, uid=meta.uid, revision=meta.resource_version)
        except NotFound:
            return
        _log.info("deleted the nodeclaim of an unmet request", NodeClaim=claim.metadata.name)

    async def _ask_for_removal(self, claim: NodeClaim) -> None:
        await self._vain.gave_up(claim, f"its node was not ready within {self._patience.readiness:.0f} s")
        pool = self._env.state.growth_pools.store.get(claim.metadata.labels.get(names.POOL_LABEL, ""))
        try:
            await self._env.api.create(NODE_REMOVAL_REQUEST, removal_body(claim, pool, reason=NOT_READY))
        except AlreadyExists:
            return

    async def _forget(self, request: NodeRequest, why: str) -> None:
        meta = request.metadata
        try:
            await self._env.api.delete(NODE_REQUEST, meta.name, uid=meta.uid, revision=meta.resource_version)
        except NotFound:
            return
        _log.info("deleted noderequest", phase=request.status.phase, why=why)
        if why:
            self._complain(request, names.NODE_NOT_COMING, f"{request.spec.target_offering} is not coming: {why}")

    def _complain(self, request: NodeRequest, reason: str, message: str) -> None:
        events = self._env.events
        events.event(regarding(NODE_REQUEST, request.metadata), reason, message, type=WARNING)
        pool = self._env.state.growth_pools.store.get(request.spec.pool)
        if pool is not None:
            events.event(regarding(GROWTH_POOL, pool.metadata), reason, message, type=WARNING)


def _dearest(kind: InstanceType) -> int:
    return max((offering.price for offering in kind.offerings if offering.price is not None), default=0)


def _same_wishes(old: GrowthPool, new: GrowthPool) -> bool:
    """Whether nothing but status and books changed."""
    before, after = old.metadata, new.metadata
    return before.generation == after.generation and marked_paused(before) == marked_paused(after)
