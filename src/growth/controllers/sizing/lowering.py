"""Takes down what a pool has too many of, at once and past budgets; the drain keeps PodDisruptionBudgets and grace.

Somebody lowered a limit or the replicas, or passed them by hand. Everything is read afresh first, so that no move that
has just begun is counted twice, and every claim once more before it goes.
"""

import functools
from collections.abc import Sequence
from typing import Final

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodePool
from growth.api.nodes import NODE, Node
from growth.controllers import ending, tainting
from growth.controllers.environment import Environment
from growth.controllers.ownership import marked_paused
from growth.controllers.sizing import story
from growth.controllers.sizing.rests import Rests
from growth.controllers.sizing.story import Tell
from growth.kube.backoff import BackoffSettings
from growth.kube.errors import NotFound
from growth.kube.whole import every
from growth.planning.disruption.surplus import Held, Standing, most, order, standing, too_many
from growth.telemetry.logs import logger

_log = logger("nodepool.sizing")

# The cache and the server disagreed, or somebody changed their mind: look again.
AGAIN_SECONDS: Final = 2.0
# Some of what is too many stayed, by a pause mostly: that may end without a change that is told.
HELD_SECONDS: Final = 60.0
# The server did not let a machine go: it may be asked again in a moment, and by and by somebody's policy may have changed.
REFUSED: Final = BackoffSettings(base_seconds=5.0, cap_seconds=300.0, jitter=0.2)


async def bring_down(env: Environment, name: str, *, refused: Rests, tell: Tell) -> float | None:
    """In how many seconds to look again; None when everything that was too many has been asked to go. `refused` are those that
    the server did not let go lately, by the claim's UID.
    """
    try:
        pool = await env.api.get(NODE_POOL, name)
    except NotFound:
        return None
    claims = await every(env.api, NODE_CLAIM, labels=f"{names.NODE_POOL_LABEL}={name}")
    nodes: dict[str, list[Node]] = {}
    for node in await every(env.api, NODE):
        nodes.setdefault(node.spec.provider_id, []).append(node)
    hosts = {
        each.metadata.name: nodes.get(each.status.provider_id, []) if each.status.provider_id else [] for each in claims
    }
    marked = frozenset(each for each, own in hosts.items() if any(map(tainting.tainted, own)))
    found, bound = standing(pool, claims, marked), most(pool)
    if bound is None or marked_paused(pool.metadata) or not too_many(pool, found):
        return AGAIN_SECONDS
    staying = {claim.metadata.name: claim for claim in found.staying}
    # What a person has paused is counted, and not taken.
    free = [held for each, claim in staying.items() if (held := _held(env, claim, hosts[each])) is not None]
    chosen = _turn([staying[each] for each in order(free, now=env.clock.now())], too_many(pool, found), refused)
    rests = [refused.left(claim.metadata.uid) for claim in chosen]
    if chosen and all(rests):
        return max(AGAIN_SECONDS, min(rests))
    if chosen:
        _log.info("deprovisioning nodeclaims", NodePool=name, current=len(staying), desired=bound, count=len(chosen))
    gone: list[NodeClaim] = []
    try:
        again = await _end(env, pool, chosen, gone, refused=refused, bound=bound)
        return HELD_SECONDS if again is None and len(gone) < too_many(pool, found) else again
    finally:
        if gone:
            tell(story.ended(env, pool, gone, why=f"it has {len(staying)} machines, of {bound} that it may keep"))


def _turn(claims: Sequence[NodeClaim], number: int, refused: Rests) -> list[NodeClaim]:
    """Those of the claims, which are in order, that are to go; in the place of each that the server has not let go for long, one
    more. It is asked before that goes: there is no other way to hear that it may go by now.
    """
    turn: list[NodeClaim] = []
    for claim in claims:
        if number > 0:
            turn.append(claim)
            number -= not refused.for_long(claim.metadata.uid)
    return turn


async def _end(
    env: Environment,
    pool: NodePool,
    claims: Sequence[NodeClaim],
    gone: list[NodeClaim],
    *,
    refused: Rests,
    bound: int,
) -> float | None:
    """One after the other, as long as the pool is as it was read and still has too many: others may take some away for a
    reason of their own meanwhile. One that the server has refused only just keeps its turn, so that no busy machine goes for
    a server that says no for a moment. Those that went are in `gone`, whatever happens.
    """
    again: float | None = None
    waiting = 0
    for claim in claims:
        if await _changed(env, pool):
            return AGAIN_SECONDS
        staying = _staying(env, pool, gone)
        if len(staying) - waiting <= bound:
            return AGAIN_SECONDS
        uid = claim.metadata.uid
        if uid not in staying:
            continue
        if refused.left(uid) and not refused.for_long(uid):
            waiting += 1
            again = AGAIN_SECONDS
            continue
        try:
            ended = await ending.end(env, claim, reason=names.OVERPROVISIONED, stays=functools.partial(_why_held, env))
        except ending.REFUSED as error:  # it holds up no other
            _log.warning("a nodeclaim too many stays", NodeClaim=claim.metadata.name, error=str(error))
            refused.begin(uid)
            waiting += not refused.for_long(uid)
            again = AGAIN_SECONDS
            continue
        if ended:
            gone.append(claim)
    return again


def _why_held(env: Environment, claim: NodeClaim) -> str:
    """Somebody may have paused it while others went before it: the claim as it is given, its Node as the cache has it."""
    nodes = ending.nodes_of(env, claim)
    paused = marked_paused(claim.metadata) or any(marked_paused(node.metadata) for node in nodes)
    return "it is paused" if paused else ""


def cached(env: Environment, pool: NodePool) -> Standing:
    """The pool's claims as the cache has them."""
    claims = env.state.claims.store.find("pool", pool.metadata.name)
    marked = frozenset(
        claim.metadata.name for claim in claims if any(map(tainting.tainted, ending.nodes_of(env, claim)))
    )
    return standing(pool, claims, marked)


def _staying(env: Environment, pool: NodePool, gone: Sequence[NodeClaim]) -> set[str]:
    """UIDs of those that nobody takes away, as far as the cache knows; of what we have just ended it may not have heard."""
    return {each.metadata.uid for each in cached(env, pool).staying} - {each.metadata.uid for each in gone}


async def _changed(env: Environment, pool: NodePool) -> bool:
    """Whether somebody has changed the pool since it was read. The server is asked: its machines go with their pods, and a
    cache may not have heard for half a minute that the limit was lifted.
    """
    try:
        now = await env.api.get(NODE_POOL, pool.metadata.name)
    except NotFound:
        return True
    same = now.metadata.uid == pool.metadata.uid and now.metadata.generation == pool.metadata.generation
    return not same or marked_paused(now.metadata)


def _held(env: Environment, claim: NodeClaim, nodes: Sequence[Node]) -> Held | None:
    """The claim as it is put in order, with all Nodes of its machine; None where it, or one of them, is paused."""
    items: tuple[Node | NodeClaim, ...] = (*nodes, claim)
    if any(marked_paused(each.metadata) for each in items):
        return None
    return Held(
        name=claim.metadata.name,
        launched=bool(claim.status.provider_id),
        pods=[pod for node in nodes for pod in env.state.pods.store.find("node", node.metadata.name)],
        protected=any(each.metadata.annotations.get(names.DO_NOT_DISRUPT_ANNOTATION) == "true" for each in items),
        created=claim.metadata.creation_timestamp,
    )
