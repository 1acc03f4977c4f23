"""Scale-down of empty nodes: plan, taint, look afresh, delete the claim. Whatever comes in between takes the taint off.

A node is believed empty only when a fresh list after the taint says so. What was tainted and then forgotten (a crash, an
error) is found and untainted by the next pass.
"""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from growth.api import names
from growth.api.conditions import find, is_true
from growth.api.events import NORMAL, regarding
from growth.api.instance_types import InstanceType
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodePool
from growth.api.nodes import NODE, Node
from growth.cluster.pricing import by_name, price_of, type_of
from growth.cluster.shapes import CachedPod
from growth.controllers import disrupted, tainting
from growth.controllers.emptiness_report import METRICS, Report, Seen
from growth.controllers.environment import Environment
from growth.controllers.fresh import pods_on
from growth.controllers.ownership import marked_paused, serves
from growth.controllers.quiet import Quiet
from growth.kube.errors import ConfigError, Conflict, Forbidden, GateClosed, KubeError, NotFound
from growth.planning.budgets import allowance
from growth.planning.emptiness import OwnedNode, PoolBudget, empty, plan_emptiness, why_kept
from growth.telemetry.logs import logger

__all__ = ["METRICS", "Emptiness"]

T = TypeVar("T")
R = TypeVar("R")

_log = logger("disruption")

# After the taint a scheduler that has not seen it yet may still bind a pod; then the fresh list must show it.
SETTLE_SECONDS: Final = 1.0
# While something we read is not synced, and between two passes that both acted.
SOON_SECONDS: Final = 1.0
# A mark that is younger may be another process's that believes to lead: between mark and deletion lie a second or two.
STRAY_SECONDS: Final = 10.0
# Requests under way at a time; the API server has other clients.
AT_ONCE: Final = 20
ATTEMPTS: Final = 4
AGAIN_SECONDS: Final = 0.5
# So many nodes are looked at before others have their turn.
AT_A_STRETCH: Final = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """A node that may go, with the objects that it was judged by."""

    node: Node
    claim: NodeClaim
    view: OwnedNode


class Emptiness:
    """Removes empty nodes of Karpenter pools until cancelled. With the setting `observe` it only says what it would do."""

    def __init__(self, env: Environment, *, tell: Callable[[Seen], Awaitable[None]] | None = None) -> None:
        self._env = env
        self._quiet = Quiet(env)
        self._report = Report(env, tell)
        self._began = env.clock.monotonic()
        self._acting: dict[str, None] = {}
        self._marked: dict[str, float] = {}  # since when nodes are seen with a mark, by UID
        self._types: Mapping[str, InstanceType] = {}

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed."""
        self._began = self._env.clock.monotonic()
        while True:
            again = SOON_SECONDS
            try:
                again = await self._pass()
            except (GateClosed, ConfigError):
                raise
            except KubeError as error:
                _log.warning("will try again", error=str(error), again=again)
            except Exception:  # noqa: BLE001 - whatever it is, everything else must go on
                again = self._env.settings.disruption_poll
                _log.exception("a bug in us; scale-down waits", again=again)
            await asyncio.sleep(again)

    async def _pass(self) -> float:
        """One look at everything; in how many seconds the next one is due."""
        state, settings = self._env.state, self._env.settings
        read = (state.pods, state.nodes, state.claims, state.pools, state.disruption_budgets)
        if any(not informer.synced for informer in read):
            return SOON_SECONDS
        if not settings.observe:
            await self._clean()
        began = self._env.clock.monotonic()
        self._types = by_name(state.catalogue.types) if state.catalogue is not None else {}
        candidates = {each.node.metadata.name: each async for each in self._candidates()}
        plan = await self._env.compute.run(
            plan_emptiness,
            [each.view for each in candidates.values()],
            {pool.metadata.name: pool for pool in state.pools.store},
            disruption_budgets=tuple(state.disruption_budgets.store),
            paused=settings.paused,
            now=self._env.clock.now(),
        )
        removed: Sequence[Candidate] = ()
        if plan.remove and not settings.observe:
            removed = await self._remove([candidates[name] for name in plan.remove], plan.budgets)
        views = {name: (each.node, each.claim, each.view) for name, each in candidates.items()}
        gone = tuple(each.node.metadata.name for each in removed)
        await self._report.told(Seen(plan, views, gone), seconds=self._env.clock.monotonic() - began)
        return SOON_SECONDS if removed else settings.disruption_poll

    # What there is.

    async def _candidates(self) -> AsyncIterator[Candidate]:
        """Every initialised node of a Karpenter pool, whether or not it is empty: budgets count them all.

        Not of one moment: others have their turn in between. Whatever is to go is looked at afresh.
        """
        env = self._env
        for number, claim in enumerate(tuple(env.state.claims.store), start=1):
            if number % AT_A_STRETCH == 0:
                await asyncio.sleep(0)
            pool, provider_id = claim.metadata.labels.get(names.NODE_POOL_LABEL), claim.status.provider_id
            conditions = claim.status.conditions
            if not pool or not provider_id or not serves(env.provider, claim.spec.node_class_ref):
                continue
            if not is_true(conditions, names.INITIALIZED) or is_true(conditions, names.INSTANCE_TERMINATING):
                continue
            nodes = env.state.nodes.store.find("provider", provider_id)
            claims = env.state.claims.store.find("provider", provider_id)
            doubt = ""
            if not len(nodes) == len(claims) == 1:
                doubt = f"{len(nodes)} Nodes and {len(claims)} NodeClaims have the provider ID {provider_id}"
            for node in nodes:
                pods = env.state.pods.store.find("node", node.metadata.name)
                yield self._candidate(node, claim, pods, doubt=doubt)

    def _candidate(self, node: Node, claim: NodeClaim, pods: Sequence[CachedPod], *, doubt: str = "") -> Candidate:
        name, labels = node.metadata.name, node.metadata.labels
        view = OwnedNode(
            name=name,
            pool=claim.metadata.labels.get(names.NODE_POOL_LABEL, ""),
            pods=pods,
            ready=node.is_ready,
            leaving=name in self._acting or tainting.tainted(node) or _deleting(node) or _deleting(claim),
        )
        if empty(pods):  # of others nobody asks the rest
            view = dataclasses.replace(
                view,
                quiet_seconds=min(self._quiet.seconds(name), self._initialized_seconds(claim)),
                price=price_of(labels, type_of(labels, self._types)),
                nominated=self._nominated(node, claim),
                holds_buffer=any(map(self._env.state.kept_for_buffer, (name, claim.metadata.name))),
                protected=node.metadata.annotations.get(names.DO_NOT_DISRUPT_ANNOTATION) == "true",
                paused=marked_paused(node.metadata),
                doubt=doubt,
            )
        return Candidate(node, claim, view)

    def _initialized_seconds(self, claim: NodeClaim) -> float:
        told = find(claim.status.conditions, names.INITIALIZED)
        if told is None or told.last_transition_time is None:
            return 0.0
        return (self._env.clock.now() - told.last_transition_time).total_seconds()

    def _nominated(self, node: Node, claim: NodeClaim) -> bool:
        """Also while whoever nominates has had no chance yet: we have just begun, or the node has just come up."""
        env, window = self._env, self._env.settings.nomination
        if env.clock.monotonic() - self._began < window or self._initialized_seconds(claim) < window:
            return True
        return env.state.nominated(node.metadata.name) or env.state.nominated(claim.metadata.name)

    # What is done.

    async def _remove(self, candidates: Sequence[Candidate], budgets: Mapping[str, PoolBudget]) -> Sequence[Candidate]:
        """Those whose claims were deleted. `budgets` are those of the plan: a pool that allows less by now keeps more."""
        listed = ", ".join(each.node.metadata.name for each in candidates)
        _log.info(
            "disrupting node(s)", command="delete", reason=names.EMPTY.lower(), nodes=listed, count=len(candidates)
        )
        self._acting = dict.fromkeys(each.node.metadata.name for each in candidates)
        try:
            marked = [each for each in await self._each(candidates, self._mark) if each is not None]
            await asyncio.sleep(SETTLE_SECONDS)
            pools = await self._each(tuple(dict.fromkeys(each.view.pool for each in marked)), self._fresh_pool)
            fresh = {pool.metadata.name: pool for pool in pools if pool is not None}
            late = self._beyond_budget(marked, fresh, budgets)
            gone = await self._each(
                marked,
                lambda each: self._delete_if_empty(each, fresh.get(each.view.pool), why=late.get(each.view.name, "")),
            )
            return [each for each in gone if each is not None]
        finally:
            self._acting = {}

    async def _each(self, items: Sequence[T], act: Callable[[T], Awaitable[R | None]]) -> list[R | None]:
        """Does it to all, some at a time; what a server in trouble refused, again. One that fails harms only itself: None.

        A closed gate ends everything. Whatever is done may be done twice.
        """
        turn = asyncio.Semaphore(AT_ONCE)

        async def one(item: T) -> R | None:
            for attempt in range(1, ATTEMPTS + 1):
                async with turn:
                    try:
                        return await act(item)
                    except (GateClosed, ConfigError):
                        raise
                    except (KubeError, tainting.NodeReplaced) as error:
                        if attempt == ATTEMPTS or isinstance(error, NotFound | Forbidden | tainting.NodeReplaced):
                            _log.warning("a node is left as it is", error=str(error))
                            return None
                await asyncio.sleep(AGAIN_SECONDS * attempt)
            return None

        return list(await asyncio.gather(*(one(item) for item in items)))

    async def _mark(self, each: Candidate) -> Candidate | None:
        await tainting.mark(self._env.api, each.node)
        _log.info("tainted node", Node=each.node.metadata.name, **{"taint.Key": names.DISRUPTED_TAINT})
        return each

    async def _fresh_pool(self, name: str) -> NodePool | None:
        try:
            return await self._env.api.get(NODE_POOL, name)
        except NotFound:
            return None

    def _beyond_budget(
        self, marked: Sequence[Candidate], pools: Mapping[str, NodePool], planned: Mapping[str, PoolBudget]
    ) -> dict[str, str]:
        """Nodes that the pools' budgets allowed when they were planned and do not allow now, and why, by name."""
        now = self._env.clock.now()
        left: dict[str, int | None] = {}
        found: dict[str, str] = {}
        for each in marked:
            name = each.view.pool
            if name not in pools or name not in planned:
                continue  # without its pool no node goes
            if name not in left:
                before = planned[name]
                budgets = pools[name].spec.disruption.budgets
                allowed = allowance(budgets, nodes=before.nodes, reason=names.EMPTY, now=now)
                left[name] = allowed.less(before.disrupting)
            room = left[name]
            if room == 0:
                found[each.view.name] = f"the budgets of NodePool {name} allow less by now"
            left[name] = None if room is None else max(0, room - 1)
        return found

    async def _delete_if_empty(self, each: Candidate, pool: NodePool | None, *, why: str) -> Candidate | None:
        """`why` it must stay whatever a look says; empty where the look decides."""
        env = self._env
        try:
            why = why or await self._look_afresh(each, pool)
            if not why:
                await env.api.delete(NODE_CLAIM, each.claim.metadata.name, uid=each.claim.metadata.uid)
                self._tell_removed(each, pool)
                return each
        except _Leaving:
            return None  # by our own request, whose answer was lost, or by somebody else's: the mark belongs there
        except (NotFound, Conflict) as error:
            why = f"it changed meanwhile: {error}"
        self._report.failed()
        _log.info("abandoning empty node", Node=each.node.metadata.name, why=why)
        await tainting.unmark(env.api, each.node)
        return None

    async def _look_afresh(self, each: Candidate, pool: NodePool | None) -> str:
        """Why the node must stay after all, by what the server says now; empty when it may go."""
        env = self._env
        node = await env.api.get(NODE, each.node.metadata.name)
        claim = await env.api.get(NODE_CLAIM, each.claim.metadata.name)
        pods = await pods_on(env, node.metadata.name)
        if node.metadata.uid != each.node.metadata.uid or claim.metadata.uid != each.claim.metadata.uid:
            return "another has its name"
        if _deleting(node) or _deleting(claim):
            raise _Leaving
        if not tainting.tainted(node):
            return "its mark was taken off, so that pods may be on their way"
        if node.spec.provider_id != claim.status.provider_id:
            return "node and claim are no longer of one machine"
        view = self._candidate(node, claim, pods).view
        stays = why_kept(
            view,
            pool,
            disruption_budgets=tuple(env.state.disruption_budgets.store),
            paused=env.settings.paused,
            now=env.clock.now(),
        )
        return "" if stays is None else stays.reason

    def _tell_removed(self, each: Candidate, pool: NodePool | None) -> None:
        env = self._env
        for kind, meta in ((NODE, each.node.metadata), (NODE_CLAIM, each.claim.metadata)):
            message = f"Disrupting {kind.kind}: {names.EMPTY}"
            env.events.event(regarding(kind, meta), names.DISRUPTION_TERMINATING, message, type=NORMAL)
        policy = pool.spec.disruption.consolidation_policy if pool is not None else ""
        disrupted.count_disrupted(env.metrics, each.claim, reason=names.EMPTY.lower(), policy=policy)

    # What was left behind.

    async def _clean(self) -> None:
        """Takes the mark off nodes that nobody is disrupting: whoever put it there died or failed."""
        env, now = self._env, self._env.clock.monotonic()
        marked = [each for each in env.state.nodes.store if tainting.tainted(each) and not _deleting(each)]
        self._marked = {each.metadata.uid: self._marked.get(each.metadata.uid, now) for each in marked}
        left = []
        for node in marked:
            if not node.spec.provider_id or now - self._marked[node.metadata.uid] < STRAY_SECONDS:
                continue
            claims = env.state.claims.store.find("provider", node.spec.provider_id)
            if claims and all(serves(env.provider, each.spec.node_class_ref) for each in claims):
                left.append((node, claims[0]))
        await self._each(left, self._unmark_if_staying)

    async def _unmark_if_staying(self, left: tuple[Node, NodeClaim]) -> None:
        node, claim = left
        try:
            fresh = await self._env.api.get(NODE_CLAIM, claim.metadata.name)
            if not _deleting(fresh):
                await tainting.unmark(self._env.api, node)
                _log.info("untainted node", Node=node.metadata.name, why="nobody is disrupting it")
        except NotFound:
            return


class _Leaving(Exception):
    """Somebody has deleted the node or its claim already."""


def _deleting(item: Node | NodeClaim) -> bool:
    return item.metadata.deletion_timestamp is not None
