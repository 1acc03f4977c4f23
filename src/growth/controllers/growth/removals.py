"""NodeRemovalRequests: asks the cloud to take a machine down, looks until it is gone, and tells where that does not work.

Every step is decided on what server and cloud say at that moment. An attempt is written down before the cloud is asked,
and the pods of the node are listed once more in between: nothing is asked while one of them runs.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Final

from growth.api import names
from growth.api.clouds import CloudError, CloudUnavailable, MachineNotFound
from growth.api.decoding import convert
from growth.api.edits import set_condition
from growth.api.events import NORMAL, WARNING, regarding
from growth.api.growthpools import (
    COULD_NOT_REMOVE,
    DEPROVISIONING,
    EMPTY,
    MOVED,
    NODE_REMOVAL_REQUEST,
    PENDING,
    REMOVAL_FAILED,
    NodeRemovalRequest,
    StoryEvent,
)
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.api.meta import ObjectReference
from growth.api.nodes import NODE, Node
from growth.api.pods import POD
from growth.api.pools import PoolRef
from growth.cluster.shapes import CachedPod
from growth.controllers.denials import Denials
from growth.controllers.disrupted import count_disrupted
from growth.controllers.environment import Environment
from growth.controllers.fresh import pods_on
from growth.controllers.growth import marking, removing, stories
from growth.controllers.growth.removing import Machine, Scene
from growth.controllers.ownership import marked_paused, serves, why_paused
from growth.controllers.reconciler import Reconciler
from growth.controllers.tainting import NodeReplaced
from growth.kube.backoff import Backoff, BackoffSettings
from growth.kube.changes import change
from growth.kube.errors import Conflict, NotFound, TooManyRequests
from growth.kube.informer import Informer
from growth.kube.store import Change, Changed, Deleted
from growth.planning import occupants
from growth.planning.emptying import running
from growth.telemetry.logs import about, logger
from growth.telemetry.redaction import redacted_text
from growth.units import print_time

_log = logger("noderemoval")

WORKERS: Final = 10
SOON_SECONDS: Final = 0.1
MESSAGE_CHARACTERS: Final = 300
# Between two requests of one attempt, while the cloud says that it cannot do it now.
POSTPONED: Final = BackoffSettings(base_seconds=removing.POLL_SECONDS, cap_seconds=30.0, factor=1.5, jitter=0.2)


class Removals:
    """Every NodeRemovalRequest of the cluster, until it is over."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        settings = env.settings
        self._patience = removing.Patience(retry_after=settings.removal_retry_after, most=settings.max_removal_attempts)
        self._denials = Denials(env.clock, confirm=settings.collection_confirm)  # by the request's UID
        # By the request's UID: how long the cloud is left alone that cannot do it now, and until when (monotonic).
        self._postponed: dict[str, tuple[Backoff, float]] = {}
        self._reconciler: Reconciler[str] = Reconciler("noderemoval", self._act, random=env.random, workers=WORKERS)
        state = env.state
        state.node_removals.subscribe(self._on_removal)
        state.claims.subscribe(self._on_claim)
        state.pods.subscribe(self._on_pod)
        state.nodes.subscribe(self._on_node)
        state.growth_pools.subscribe(self._on_pool)

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed."""
        state = self._env.state
        informers: tuple[Informer[Any, Any], ...] = (
            *(state.node_removals, state.claims, state.nodes, state.pods, state.growth_pools),
        )
        for informer in informers:
            await informer.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reconciler.run(), name="node removals")

    # What makes us look at a removal.

    def _on_removal(self, news: Change[NodeRemovalRequest]) -> None:
        if isinstance(news, Deleted):
            self._denials.forget(news.old.metadata.uid)
            self._postponed.pop(news.old.metadata.uid, None)
        else:
            self._reconciler.add(news.key[1])

    def _on_claim(self, news: Change[NodeClaim]) -> None:
        claim = news.old if isinstance(news, Deleted) else news.new
        if names.POOL_LABEL in claim.metadata.labels:
            self._wake(claim=claim.metadata.name)

    def _on_pod(self, news: Change[CachedPod]) -> None:
        pod = news.old if isinstance(news, Deleted) else news.new
        if pod.node_name and len(self._env.state.node_removals.store):
            self._wake(node=pod.node_name)

    def _on_node(self, news: Change[Node]) -> None:
        """A machine that is denied is gone when its Node falls silent."""
        silent = isinstance(news, Changed) and news.old.is_ready and not news.new.is_ready
        if silent and len(self._env.state.node_removals.store):
            self._wake(node=news.key[1])

    def _on_pool(self, _news: Change[Any]) -> None:
        self._wake()

    def _wake(self, *, claim: str = "", node: str = "") -> None:
        for each in self._env.state.node_removals.store:
            if (not claim or each.spec.node_claim_name in {None, claim}) and (not node or each.spec.node_name == node):
                self._reconciler.add(each.metadata.name)

    # What is done with it.

    async def _act(self, name: str) -> float | None:
        cached = self._env.state.node_removals.store.get(name)
        if cached is None:
            return None
        try:
            raw = await self._env.api.get(NODE_REMOVAL_REQUEST.raw, name)
        except NotFound:
            return None
        request = convert(raw, NodeRemovalRequest)
        with about(NodeRemovalRequest=name, Node=request.spec.node_name or ""):
            claim = await self._claim_of(request)
            if claim is not None and not self._ours(claim) and request.status.phase != REMOVAL_FAILED:
                await self._fail(
                    raw, request, None, f"NodeClaim {claim.metadata.name} is of no growth pool of this cloud"
                )
                return None
            if claim is None or request.status.phase == REMOVAL_FAILED:
                scene = Scene(claim=claim)  # of the rest nobody asks
            else:
                scene = await self._look(request, claim)
            step = removing.next_step(request, scene, now=self._env.clock.now(), patience=self._patience)
            return await self._perform(raw, request, scene, step)

    def _ours(self, claim: NodeClaim) -> bool:
        return names.POOL_LABEL in claim.metadata.labels and serves(self._env.provider, claim.spec.node_class_ref)

    async def _perform(self, raw: Json, request: NodeRemovalRequest, scene: Scene, step: removing.Step) -> float | None:
        match step:
            case removing.Nothing():
                return None
            case removing.Wait(seconds):
                return seconds
            case removing.Begin():
                await stories.write(self._env.api, NODE_REMOVAL_REQUEST, raw, phase=PENDING)
                return None
            case removing.Mark():
                assert scene.node is not None
                with contextlib.suppress(NotFound, NodeReplaced):
                    await marking.mark(self._env.api, scene.node, at=self._env.clock.now())
                return removing.SETTLE_SECONDS
            case removing.Drain(pods):
                await self._evict(pods, request)
                return removing.POLL_SECONDS
            case removing.Attempt():
                return await self._attempt(raw, request, scene)
            case removing.Fail(why):
                await self._fail(raw, request, scene.node, why)
                return None
            case removing.Cancel(why):
                await self._cancel(request, scene.node, why)
                return None
            case removing.Finish(lost):
                assert scene.claim is not None
                await self._finish(request, scene.claim, lost)
                return None
            case removing.Forget():
                await self._forget(request)
                return None

    # How things are.

    async def _claim_of(self, request: NodeRemovalRequest) -> NodeClaim | None:
        """The claim that is named, or that of the named Node."""
        env, name = self._env, request.spec.node_claim_name
        if name is None:
            node = env.state.nodes.store.get(request.spec.node_name or "")
            found = env.state.claims.store.find("provider", node.spec.provider_id) if node is not None else ()
            name = found[0].metadata.name if found else None
        if name is None:
            return None
        try:
            return await env.api.get(NODE_CLAIM, name)
        except NotFound:
            return None

    async def _look(self, request: NodeRemovalRequest, claim: NodeClaim) -> Scene:
        env = self._env
        nodes = await self._nodes_of(claim)
        node, pods = _to_mark(nodes), await self._pods_of(nodes)
        pool = PoolRef.growth(claim.metadata.labels[names.POOL_LABEL])
        return Scene(
            claim=claim,
            node=node,
            pods=tuple(pods),
            machine=await self._machine_of(request, claim),
            denied_seconds=self._denials.seconds(request.metadata.uid),
            wanted=env.state.nominated(claim.metadata.name, node.metadata.name if node is not None else ""),
            paused=bool(why_paused(env, pool)) or (node is not None and marked_paused(node.metadata)),
        )

    async def _nodes_of(self, claim: NodeClaim) -> list[Node]:
        """As the server has them now; one of another machine does not count. A machine may have registered twice."""
        provider_id = claim.status.provider_id
        found: list[Node] = []
        known = [node.metadata.name for node in self._env.state.nodes.store.find("provider", provider_id)]
        for name in dict.fromkeys((claim.status.node_name, *known)):
            if name:
                with contextlib.suppress(NotFound):
                    node = await self._env.api.get(NODE, name)
                    if node.spec.provider_id == provider_id:
                        found.append(node)
        return found

    async def _pods_of(self, nodes: Sequence[Node]) -> tuple[CachedPod, ...]:
        return tuple([pod for node in nodes for pod in await pods_on(self._env, node.metadata.name)])

    async def _machine_of(self, request: NodeRemovalRequest, claim: NodeClaim) -> Machine:
        if not claim.status.provider_id:
            return Machine.UNKNOWN
        try:
            machine = await self._env.provider.get(claim.status.provider_id)
        except MachineNotFound:
            return Machine.GONE if self._denials.deny(request.metadata.uid) else Machine.DENIED
        except CloudError as error:
            _log.warning("the cloud does not tell of a machine", error=_told(error))
            return Machine.UNKNOWN
        self._denials.forget(request.metadata.uid)
        return Machine.DELETING if machine.deleting else Machine.THERE

    # Asking the cloud.

    async def _attempt(self, raw: Json, request: NodeRemovalRequest, scene: Scene) -> float | None:
        env, claim = self._env, scene.claim
        assert claim is not None
        now, number, written = env.clock.now(), request.status.removal_attempt, raw
        if not removing.postponed(request):
            number += 1
            written = await stories.write(
                env.api,
                NODE_REMOVAL_REQUEST,
                raw,
                phase=DEPROVISIONING,
                events=(StoryEvent(at=now, name=removing.DELETION_REQUESTED),),
                fields={"removalAttempt": number, "removeAttemptedAt": print_time(now)},
            )
        elif (left := self._left_alone(request)) > 0:
            return left
        fresh = await env.api.get(NODE_CLAIM, claim.metadata.name)
        nodes = await self._nodes_of(fresh)
        node, pods = _to_mark(nodes), await self._pods_of(nodes)
        staying = [pod for pod in running(pods) if not self._is_lost(pod, request)]
        if staying or (node is not None and not removing.is_marked(node)) or fresh.metadata.uid != claim.metadata.uid:
            return SOON_SECONDS  # nothing was asked: what is done now is decided anew
        try:
            await env.provider.delete(fresh)
        except MachineNotFound:
            if any(each.is_ready for each in nodes):
                return SOON_SECONDS  # its kubelet speaks: not believed
            await self._finish(request, fresh, running(pods))
            return None
        except CloudUnavailable as error:
            return await self._postpone(written, request, node, _told(error))
        except CloudError as error:
            await self._refused(written, request, node, number, _told(error))
            return self._env.settings.removal_retry_after
        event = StoryEvent(at=env.clock.now(), name=removing.DELETION_ACCEPTED)
        fields = {"removeAttemptedAt": print_time(env.clock.now())}
        await stories.write(
            env.api, NODE_REMOVAL_REQUEST, written, phase=DEPROVISIONING, events=(event,), fields=fields
        )
        _log.info("the cloud takes a machine down", NodeClaim=claim.metadata.name, reason=request.spec.reason)
        if number == 1 and request.spec.reason not in MOVED:  # a move is counted when it is made
            count_disrupted(env.metrics, claim, reason=request.spec.reason.lower(), policy="WhenEmpty")
        await self._tell_terminating(fresh)
        return SOON_SECONDS

    def _is_lost(self, pod: CachedPod, request: NodeRemovalRequest) -> bool:
        """Pods that no kubelet ends hold up the removal of an empty node, and of no other."""
        return request.spec.reason != EMPTY and occupants.stuck(pod, self._env.clock.now())

    async def _tell_terminating(self, claim: NodeClaim) -> None:
        """From now on nobody plans with the machine."""
        now = self._env.clock.now()

        def edit(draft: Json) -> None:
            if draft["metadata"]["uid"] != claim.metadata.uid:
                raise Conflict(f"another NodeClaim is called {claim.metadata.name} by now")
            set_condition(draft, names.INSTANCE_TERMINATING, status="True", now=now)

        with contextlib.suppress(NotFound):
            await change(self._env.api, NODE_CLAIM, claim.metadata.name, edit, subresource="status")

    def _left_alone(self, request: NodeRemovalRequest) -> float:
        """For how many seconds more a cloud that cannot do it now is not asked."""
        held = self._postponed.get(request.metadata.uid)
        return 0.0 if held is None else held[1] - self._env.clock.monotonic()

    async def _postpone(self, raw: Json, request: NodeRemovalRequest, node: Node | None, why: str) -> float:
        """The attempt is neither refused nor accepted: it goes on. When to ask again; each reason is told once."""
        env, uid = self._env, request.metadata.uid
        backoff = self._postponed.get(uid, (Backoff(env.random, POSTPONED),))[0]
        seconds = min(backoff.next(), env.settings.removal_retry_after)
        self._postponed[uid] = (backoff, env.clock.monotonic() + seconds)
        if not removing.postponed(request) or request.status.events[-1].reason != why:
            event = StoryEvent(at=env.clock.now(), name=removing.DELETION_POSTPONED, reason=why)
            await stories.write(env.api, NODE_REMOVAL_REQUEST, raw, phase=COULD_NOT_REMOVE, events=(event,))
            self._tell(request, node, names.COULD_NOT_REMOVE, f"the cloud cannot take the machine down now: {why}")
        return seconds

    async def _refused(
        self, raw: Json, request: NodeRemovalRequest, node: Node | None, attempts: int, why: str
    ) -> None:
        phase, event = removing.refused(attempts, why, now=self._env.clock.now(), patience=self._patience)
        if phase == REMOVAL_FAILED:
            await self._fail(raw, request, node, f"asked {attempts} times, last answer: {why}", event)
            return
        await stories.write(self._env.api, NODE_REMOVAL_REQUEST, raw, phase=phase, events=(event,))
        self._tell(
            request, node, names.COULD_NOT_REMOVE, f"the cloud does not let the machine go (attempt {attempts}): {why}"
        )

    async def _fail(
        self, raw: Json, request: NodeRemovalRequest, node: Node | None, why: str, event: StoryEvent | None = None
    ) -> None:
        event = event or StoryEvent(at=self._env.clock.now(), name=removing.DELETION_FAILED, reason=why)
        await stories.write(self._env.api, NODE_REMOVAL_REQUEST, raw, phase=REMOVAL_FAILED, events=(event,))
        _log.error("a machine cannot be removed", why=why)
        self._tell(
            request,
            node,
            names.REMOVAL_FAILED,
            f"the machine cannot be removed and nobody asks again: {why}. Look at it, then delete this NodeRemovalRequest to"
            " have it tried anew, or the Node to end it",
        )

    def _tell(self, request: NodeRemovalRequest, node: Node | None, reason: str, message: str) -> None:
        """On the request and on the Node, where alerts look."""
        events = self._env.events
        events.event(regarding(NODE_REMOVAL_REQUEST, request.metadata), reason, message, type=WARNING)
        if node is not None:
            events.event(regarding(NODE, node.metadata), reason, message, type=WARNING)

    # Pods.

    async def _evict(self, pods: tuple[CachedPod, ...], request: NodeRemovalRequest) -> None:
        env = self._env
        for pod in pods:
            if not occupants.active(pod) or occupants.protection(pod, env.clock.now()).holds:
                continue
            with contextlib.suppress(NotFound, Conflict, TooManyRequests):
                await env.api.evict(pod.name, namespace=pod.namespace, uid=pod.uid)
                message = f"Evicted pod: {request.spec.reason}"
                env.events.event(_about(pod), names.EVICTED, message, type=NORMAL)

    # Ends.

    async def _cancel(self, request: NodeRemovalRequest, node: Node | None, why: str) -> None:
        """The mark first: a request without it is cancelled too."""
        if node is not None:
            with contextlib.suppress(NotFound, NodeReplaced):
                await marking.unmark(self._env.api, node)
        await self._forget(request)
        _log.info("removal cancelled", why=why)
        if node is not None:
            self._env.events.event(
                regarding(NODE, node.metadata), names.SCALE_DOWN_CANCELLED, f"The node stays: {why}", type=NORMAL
            )

    async def _finish(self, request: NodeRemovalRequest, claim: NodeClaim, lost: tuple[CachedPod, ...]) -> None:
        for pod in lost:
            message = f"The machine of its node was taken down just before it was bound there ({claim.metadata.name})"
            self._env.events.event(_about(pod), names.LOST_WITH_MACHINE, message, type=WARNING)
        with contextlib.suppress(NotFound):
            await self._env.api.delete(NODE_CLAIM, claim.metadata.name, uid=claim.metadata.uid)
        await self._forget(request)
        _log.info("removed a machine", NodeClaim=claim.metadata.name, reason=request.spec.reason)

    async def _forget(self, request: NodeRemovalRequest) -> None:
        with contextlib.suppress(NotFound):
            await self._env.api.delete(NODE_REMOVAL_REQUEST, request.metadata.name, uid=request.metadata.uid)


def _to_mark(nodes: Sequence[Node]) -> Node | None:
    """Of the machine's Nodes one that has no mark yet, so that each gets it."""
    return next((node for node in nodes if not removing.is_marked(node)), nodes[0] if nodes else None)


def _told(error: CloudError) -> str:
    text = redacted_text(str(error)) or type(error).__name__
    return text if len(text) <= MESSAGE_CHARACTERS else f"{text[: MESSAGE_CHARACTERS - 1]}…"


def _about(pod: CachedPod) -> ObjectReference:
    return ObjectReference(
        api_version=POD.api_version, kind=POD.kind, namespace=pod.namespace, name=pod.name, uid=pod.uid
    )
