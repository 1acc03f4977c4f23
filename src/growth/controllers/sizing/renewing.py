"""Replaces drifted machines of static pools, within the budget for drift; `static` says which, and which way round.

The replacement names what it replaces, so that any process can finish what another began: once it is initialised its
predecessor is tainted, looked at again, and deleted. What protects the predecessor is asked first: a node that must stay is
not tainted, and it goes when nothing holds it any more. A replacement that never came up makes the pool's next one later.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from growth.api import names
from growth.api.conditions import find, is_true
from growth.api.events import NORMAL, regarding
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodePool
from growth.api.nodes import Node
from growth.api.policy import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from growth.cluster.replacing import replaces
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import Snapshot
from growth.controllers import ending, fresh, tainting
from growth.controllers.disruption import marking
from growth.controllers.environment import Environment
from growth.controllers.ownership import marked_paused
from growth.controllers.sizing import decide, story
from growth.controllers.sizing.filling import Filling
from growth.controllers.sizing.rests import Rests
from growth.controllers.sizing.story import Tell
from growth.kube.backoff import BackoffSettings
from growth.kube.errors import NotFound
from growth.kube.whole import every
from growth.planning.budgets import allowance
from growth.planning.disruption import room
from growth.planning.disruption.candidates import why_kept
from growth.planning.disruption.model import OwnedNode, Situation
from growth.planning.disruption.static import followed, rank, renewal
from growth.planning.disruption.surplus import Standing, most, standing
from growth.telemetry.logs import logger

_log = logger("nodepool.sizing")

# After the taint a scheduler that has not seen it yet may still bind a pod; then the fresh list must show it.
SETTLE_SECONDS: Final = 1.0
# What protects a node may go without a change that is told.
AGAIN_SECONDS: Final = 30.0
FAILED: Final = BackoffSettings(base_seconds=30.0, cap_seconds=3600.0, jitter=0.2)
# A mark that had to come off again may itself be what protects the node: some people and programs answer to it.
TAKEN_BACK: Final = BackoffSettings(base_seconds=30.0, cap_seconds=600.0, jitter=0.2)


class Renewing:
    """For one process; what it remembers is only how often replacements failed and marks were taken back."""

    def __init__(self, env: Environment, filling: Filling, *, tell: Tell) -> None:
        self._env = env
        self._tell = tell
        self._filling = filling
        self._failing = Rests(env, FAILED)  # by pool
        self._taken_back = Rests(env, TAKEN_BACK)  # by the claim's UID

    def forget(self, pool: str) -> None:
        self._failing.forget(pool)

    def ended(self, claim: NodeClaim) -> None:
        """A claim is gone; it may have been a replacement that never came up."""
        self._taken_back.forget(claim.metadata.uid)
        if replaces(claim) and not is_true(claim.status.conditions, names.INITIALIZED):
            self._failing.begin(claim.metadata.labels.get(names.NODE_POOL_LABEL, ""))

    async def clean(self, found: Standing) -> None:
        """Takes off the marks that a dead process left on machines that stay."""
        for claim in found.staying:
            await self._clean(claim, why="nobody is disrupting it")

    async def _clean(self, claim: NodeClaim, *, why: str) -> None:
        for node in ending.nodes_of(self._env, claim):
            if (tainting.tainted(node) or marking.marked(claim)) and node.metadata.deletion_timestamp is None:
                await marking.unmark(self._env, node, claim, why=why)

    async def finish(self, pool: NodePool, found: Standing) -> float | None:
        """Ends what is being replaced by a machine that can take pods, and that nothing protects; the rest is not touched."""
        by = followed(found)
        ready = [claim for claim in found.replaced if claim.metadata.name in by]
        if not ready:
            return None  # their change will tell
        free: list[NodeClaim] = []
        for claim in sorted(ready, key=self._rank):
            why = self._why_not_now(pool, claim) or self._why_over_budget(pool, found, free, claim)
            if why:
                await self._clean(claim, why=why)
            else:
                free.append(claim)
        again = await self._end(pool, free, by={each.metadata.name: by[each.metadata.name] for each in free})
        return again if len(free) == len(ready) else AGAIN_SECONDS

    async def renew(self, pool: NodePool, found: Standing) -> float | None:
        """Begins to replace what has drifted; in how many seconds to look again, None where a change will tell."""
        name = pool.metadata.name
        drifted = [claim for claim in found.staying if is_true(claim.status.conditions, names.DRIFTED)]
        if not drifted:
            return None
        left = self._failing.left(name)
        if left > 0:
            return left
        going = (*self._going(pool, found), *found.leaving)
        budget = self._budget(pool, found, going=going)
        if budget == 0:
            self._tell_blocked(pool, room.budget_message(names.DRIFTED_REASON))
            return AGAIN_SECONDS
        free = [claim for claim in drifted if not self._why_not_now(pool, claim)]
        chosen = renewal(pool, found, sorted(free, key=self._rank), budget=budget)
        if not chosen.first and chosen.gone is None:
            # What stays beside its replacement may have all the room that there is.
            if free and found.replaced and not going and len(found.staying) == most(pool):
                self._tell_blocked(pool, room.limit_message(names.DRIFTED_REASON))
            return AGAIN_SECONDS
        offer = await self._filling.offer(pool)
        if offer is None:
            return AGAIN_SECONDS  # what cannot be bought anew is not given away
        if chosen.gone is not None:
            return await self._end(pool, (chosen.gone,), by={})
        ends = self._filling.ends(name)
        orders = [
            offer.order(decide.replacement_name(pool, claim, ends=ends), replaces=decide.predecessors(claim, found))
            for claim in chosen.first
        ]
        return await self._filling.buy(offer, orders, reason=names.DRIFTED_REASON.lower())

    # Who may go.

    def _why_over_budget(self, pool: NodePool, found: Standing, chosen: Sequence[NodeClaim], claim: NodeClaim) -> str:
        """Why the claim may not end beside those that are chosen; empty when it may. Budgets may have closed while its
        replacement came up.
        """
        left = self._budget(pool, found, going=(*found.leaving, *chosen), besides=claim)
        if left is None or left > 0:
            return ""
        message = room.budget_message(names.DRIFTED_REASON)
        self._tell_blocked(pool, message)
        return message

    def _going(self, pool: NodePool, found: Standing) -> list[NodeClaim]:
        """Of those that are replaced the ones that take their part of the budget. One that is kept though its replacement is up
        does not, or no other would ever be replaced; it goes within the budget of then.
        """
        up = followed(found)
        return [
            claim for claim in found.replaced if claim.metadata.name not in up or not self._why_not_now(pool, claim)
        ]

    def _tell_blocked(self, pool: NodePool, message: str) -> None:
        about = regarding(NODE_POOL, pool.metadata)
        self._env.events.event(about, names.DISRUPTION_BLOCKED, message, type=NORMAL)

    def _budget(
        self, pool: NodePool, found: Standing, *, going: Sequence[NodeClaim], besides: NodeClaim | None = None
    ) -> int | None:
        """What the pool's budgets leave for drift: what is `going` or not ready takes its part, but who is asked about does not."""
        claims = [
            claim
            for claim in (*found.staying, *found.replaced, *found.leaving)
            if is_true(claim.status.conditions, names.INITIALIZED)
            and not is_true(claim.status.conditions, names.INSTANCE_TERMINATING)
        ]
        leaves = {claim.metadata.name for claim in going}
        disrupting = sum(
            claim is not besides and (claim.metadata.name in leaves or not self._is_ready(claim)) for claim in claims
        )
        allowed = allowance(
            pool.spec.disruption.budgets,
            nodes=len(claims),
            reason=names.DRIFTED_REASON,
            now=self._env.clock.now(),
        )
        return allowed.less(disrupting)

    def _is_ready(self, claim: NodeClaim) -> bool:
        return any(node.is_ready for node in ending.nodes_of(self._env, claim))

    def _pods(self, claim: NodeClaim) -> Sequence[CachedPod]:
        env = self._env
        return [
            pod for node in ending.nodes_of(env, claim) for pod in env.state.pods.store.find("node", node.metadata.name)
        ]

    def _rank(self, claim: NodeClaim) -> tuple[bool, str, str]:
        return rank(claim.metadata.name, self._pods(claim), claim.metadata.creation_timestamp)

    def _why_not_now(self, pool: NodePool, claim: NodeClaim) -> str:
        """Why its end is not begun, as far as the cache knows; empty when it may be."""
        if self._taken_back.left(claim.metadata.uid) > 0:
            return "its end was taken back a moment ago"
        rules = tuple(self._env.state.disruption_budgets.store)
        return self._why_kept(pool, claim, ending.nodes_of(self._env, claim), self._pods(claim), rules=rules)

    def _why_kept(
        self,
        pool: NodePool,
        claim: NodeClaim,
        nodes: Sequence[Node],
        pods: Sequence[CachedPod],
        *,
        rules: tuple[PodDisruptionBudget, ...],
    ) -> str:
        """Why the node stays; empty when it may go. As drift everywhere: a termination grace ends what protects pods."""
        env = self._env
        if len(nodes) != 1:
            return "it has no Node, or several"
        items = (nodes[0], claim)
        owned = OwnedNode(
            name=nodes[0].metadata.name,
            pool=pool.metadata.name,
            claim=claim.metadata.name,
            pods=pods,
            drifted=names.DRIFTED,
            ready=nodes[0].is_ready,
            nominated=env.state.nominated(*(each.metadata.name for each in items)),
            protected=any(each.metadata.annotations.get(names.DO_NOT_DISRUPT_ANNOTATION) == "true" for each in items),
            paused=any(marked_paused(each.metadata) for each in items),
            ends=claim.spec.termination_grace_period is not None,
        )
        situation = Situation(
            snapshot=Snapshot(currency=""),
            nodes=(owned,),
            pools={pool.metadata.name: pool},
            now=env.clock.now(),
            disruption_budgets=rules,
            paused=env.settings.paused,
        )
        kept = why_kept(owned, situation, reason=names.DRIFTED_REASON, graceful=False)
        return "" if kept is None else kept.message

    # The end.

    async def _end(self, pool: NodePool, claims: Sequence[NodeClaim], *, by: dict[str, NodeClaim]) -> float | None:
        """Marks all, looks again, deletes; `by` are those that came for them. What must stay, or what somebody's policy does not
        let go, loses its mark again, and holds up no other.
        """
        if not claims:
            return None
        env = self._env
        hosts = {claim.metadata.name: ending.nodes_of(env, claim) for claim in claims}
        marked: list[tuple[NodeClaim, Node]] = []
        again: float | None = None
        for claim in claims:
            for node in hosts[claim.metadata.name]:
                try:
                    await marking.mark(env, node, claim, reason=names.DRIFTED_REASON)
                except (NotFound, tainting.NodeReplaced):
                    continue  # it goes already
                except ending.REFUSED as error:
                    _log.warning("a drifted machine is left alone", NodeClaim=claim.metadata.name, error=str(error))
                    self._taken_back.begin(claim.metadata.uid)
                    await marking.withdraw(env, claim)
                    again = AGAIN_SECONDS
                    continue
                marked.append((claim, node))
        await asyncio.sleep(SETTLE_SECONDS)
        for claim, node in marked:
            why = await self._why_stays(pool, claim, node, newer=by.get(claim.metadata.name))
            if not why:
                try:
                    ended = await ending.end(env, claim, reason=names.DRIFTED_REASON, stays=_unmarked)
                except ending.REFUSED as error:
                    why = f"the server does not let it go: {error}"
                else:
                    if ended:
                        what = "its replacement is up" if claim.metadata.name in by else decide.why_in_place(pool)
                        self._tell(story.ended(env, pool, (claim,), why=f"it has drifted, and {what}"))
                    self._failing.forget(pool.metadata.name)
                    continue
            self._taken_back.begin(claim.metadata.uid)
            await marking.unmark(env, node, claim, why=why)
            again = AGAIN_SECONDS
        return again

    async def _why_stays(self, pool: NodePool, claim: NodeClaim, node: Node, *, newer: NodeClaim | None) -> str:
        """Why it must stay after all, by what the server says now; empty when it may go. Where many go each has its turn late."""
        env = self._env
        try:
            now = await env.api.get(NODE_POOL, pool.metadata.name)
        except NotFound:
            return "its pool is gone"
        if now.metadata.uid != pool.metadata.uid or now.spec.disruption != pool.spec.disruption:
            return "its pool has changed"
        try:
            told = await env.api.get(NODE_CLAIM, claim.metadata.name)
        except NotFound:
            return "it is gone"
        nodes = await fresh.nodes_of(env, told)
        pods = await fresh.pods_on(env, node.metadata.name)
        rules = tuple(await every(env.api, POD_DISRUPTION_BUDGET))
        return self._why_kept(now, told, nodes, pods, rules=rules) or await self._why_not(now, pool, claim, newer)

    async def _why_not(self, now: NodePool, pool: NodePool, claim: NodeClaim, newer: NodeClaim | None) -> str:
        """Why it is too early after all; empty when it is not. `now` is the pool as the server has it."""
        env = self._env
        if newer is not None:
            try:
                found = await env.api.get(NODE_CLAIM, newer.metadata.name)
            except NotFound:
                return "its replacement is gone"
            sound = found.metadata.deletion_timestamp is None and is_true(found.status.conditions, names.INITIALIZED)
            return "" if sound and claim.metadata.name in replaces(found) else "its replacement is not there"
        if now.metadata.generation != pool.metadata.generation:
            return "its pool has changed"
        claims = await every(env.api, NODE_CLAIM, labels=f"{names.NODE_POOL_LABEL}={pool.metadata.name}")
        told = next((each for each in claims if each.metadata.name == claim.metadata.name), None)
        if told is None or find(told.status.conditions, names.DRIFTED) is None:
            return "it has not drifted any more"
        chosen = renewal(now, standing(now, claims, frozenset()), (told,), budget=1)
        return "" if chosen.gone is not None else "another machine of the pool goes or comes"


def _unmarked(claim: NodeClaim) -> str:
    """Whoever else believes to lead may have taken the mark off: then pods may be on their way."""
    return "" if marking.marked(claim) else "its mark was taken off"
