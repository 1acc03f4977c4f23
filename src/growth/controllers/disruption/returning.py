"""What was bought for a move that is not made: it goes again while it is empty, or is a machine like any other."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from growth.api import moves as intents
from growth.api import names
from growth.api.conditions import is_true
from growth.api.edits import set_annotations
from growth.api.growthpools import GROWTH_POOL
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.cluster.shapes import CachedPod
from growth.controllers import tainting
from growth.controllers.disruption.attempts import each
from growth.controllers.disruption.looking import Looking
from growth.controllers.disruption.moving import Moves, Running
from growth.controllers.disruption.question import Question, situation_of
from growth.controllers.environment import Environment
from growth.controllers.fresh import nodes_of, pods_on
from growth.controllers.ownership import marked_paused, pool_of
from growth.kube.changes import change
from growth.kube.errors import NotFound
from growth.planning.disruption.candidates import empty
from growth.planning.disruption.room import rooms
from growth.telemetry.logs import logger

_log = logger("disruption")

# After the taint a scheduler that has not seen it yet may still bind a pod; then the fresh list must show it.
SETTLE_SECONDS: Final = 1.0


class Returning:
    """Gives back what was bought for moves that are not made, as far as the budgets of its pool allow: an initialised machine
    is a node of its pool as any other, and those are counted when they leave, used or not. What may not go now stays as a
    machine like any other, and is removed as empty nodes are.
    """

    def __init__(self, env: Environment, moves: Moves, looking: Looking) -> None:
        self._env = env
        self._moves = moves
        self._looking = looking
        self._counting = asyncio.Lock()

    async def give_back(self, claims: Sequence[str], *, running: Running | None = None) -> None:
        """Claims by name. `running` is the move that they were bought for, where somebody stands for it: its own nodes stay."""
        async with self._counting:
            going = await self._within_budgets(claims, running)
            self._moves.returning.update(going.values())

        async def one(name: str) -> None:
            await returned(self._env, name, budgeted=name in going)

        try:
            await each(claims, one)
        finally:
            self._moves.returning.difference_update(going.values())

    async def _within_budgets(self, claims: Sequence[str], running: Running | None) -> dict[str, str]:
        """Which of the claims are of nodes that may go now, with the names of those."""
        state = self._env.state
        found = [claim for name in claims if (claim := state.claims.store.get(name)) is not None]
        nodes = {claim.metadata.name: claim.status.node_name for claim in found if _is_initialized(claim)}
        if not nodes or state.unsynced() or state.catalogue is None:
            return {}
        question = self._looking.question(self._moves.nodes(but=running))
        own = () if running is None else running.move.nodes
        left = dict(await self._env.compute.run(_may_go, question, own))
        going: dict[str, str] = {}
        for claim in found:
            name, pool = claim.metadata.name, claim.metadata.labels.get(names.NODE_POOL_LABEL, "")
            room = left.get(pool, 0)
            if name in nodes and room != 0:
                left[pool] = None if room is None else room - 1
                going[name] = nodes[name]
        return going


def _may_go(question: Question, own: Collection[str]) -> Mapping[str, int | None]:
    """How many empty nodes of each pool may go now, None for any number."""
    return {pool: room.delete for pool, room in rooms(situation_of(question, own), reason=names.EMPTY).items()}


def _is_initialized(claim: NodeClaim) -> bool:
    return is_true(claim.status.conditions, names.INITIALIZED)


async def returned(env: Environment, name: str, *, budgeted: bool) -> None:
    """A claim that was bought for a move which is not made goes again if it is ours and empty and nobody keeps it, and is not
    initialised yet or `budgeted`; else it just stays.
    """
    try:
        claim = await env.api.get(NODE_CLAIM, name)
    except NotFound:
        return
    if claim.metadata.deletion_timestamp is not None or intents.intent_of(claim.metadata) is None:
        return
    if (_is_initialized(claim) and not budgeted) or await _is_kept(env, claim):
        await settled(env, name)
        return
    nodes = await _nodes_of(env, claim)
    for node in nodes:  # no pod may come between the look and the end
        await tainting.mark(env.api, node)
    if nodes:
        await asyncio.sleep(SETTLE_SECONDS)
    # What people say of the claim itself after the look at it refuses its deletion.
    if await _in_use(env, claim, nodes) or await _is_kept(env, claim):
        await settled(env, name)
        for node in nodes:
            await tainting.unmark(env.api, node)
        return
    try:
        await env.api.delete(NODE_CLAIM, name, uid=claim.metadata.uid, revision=claim.metadata.resource_version)
        _log.info("a replacement is not needed", NodeClaim=name)
    except NotFound:
        return


async def _is_kept(env: Environment, claim: NodeClaim) -> bool:
    """Whether people keep the machine as it is: by a pause of everything, its pool, its Node or its claim, or by do-not-disrupt,
    which protects nodes, and so none that is not initialised. Pool and Nodes are read afresh.
    """
    items: tuple[Node | NodeClaim, ...] = (*await nodes_of(env, claim), claim)
    if env.settings.paused or await _is_pool_paused(env, claim) or any(marked_paused(each.metadata) for each in items):
        return True
    return _is_initialized(claim) and any(
        each.metadata.annotations.get(names.DO_NOT_DISRUPT_ANNOTATION) == "true" for each in items
    )


async def _is_pool_paused(env: Environment, claim: NodeClaim) -> bool:
    pool = pool_of(claim)
    if pool is None:
        return False
    try:
        if pool.group == names.KARPENTER:
            return marked_paused((await env.api.get(NODE_POOL, pool.name)).metadata)
        return marked_paused((await env.api.get(GROWTH_POOL, pool.name)).metadata)
    except NotFound:
        return False


async def settled(env: Environment, name: str) -> None:
    """From now on the claim replaces nobody: it is a machine like any other."""

    def edit(draft: Json) -> None:
        set_annotations(draft, {names.REPLACES_ANNOTATION: None, names.MOVE_ANNOTATION: None})

    try:
        await change(env.api, NODE_CLAIM, name, edit)
    except NotFound:
        return


async def _nodes_of(env: Environment, claim: NodeClaim) -> list[Node]:
    """The Nodes of the claim's machine; the one that it names is asked for, since the cache may not know it yet."""
    provider_id, named = claim.status.provider_id, claim.status.node_name
    if not provider_id:
        return []
    nodes = list(env.state.nodes.store.find("provider", provider_id))
    if named and all(node.metadata.name != named for node in nodes):
        with contextlib.suppress(NotFound):
            found = await env.api.get(NODE, named)
            nodes += [found] if found.spec.provider_id == provider_id else []
    return nodes


async def _in_use(env: Environment, claim: NodeClaim, nodes: Sequence[Node]) -> bool:
    """Whether pods are on the claim's machine. A machine whose Node we cannot tell is in use."""
    if not claim.status.provider_id:
        return False
    pods: list[CachedPod] = []
    for name in {claim.status.node_name or claim.metadata.name, *(node.metadata.name for node in nodes)}:
        pods += await pods_on(env, name)
    return not empty(pods)
