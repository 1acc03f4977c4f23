"""The last look at a move before its claims are deleted: whether it may be made now, by what the server says and not the cache.

Its nodes are asked for one by one, their pools, the places that are to take their pods and whoever waits for those (`targets`,
`surroundings`), and what counts for them elsewhere (`peers`). What comes of it is judged as the decision was (`question`).
"""

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

from growth.api import names
from growth.api.conditions import is_true
from growth.api.growthpools import GROWTH_POOL, GrowthPool
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodePool
from growth.api.pools import PoolRef
from growth.controllers.disruption.looking import Fresh, Looking
from growth.controllers.disruption.moving import GaveUp, Moves, Running, Stage
from growth.controllers.disruption.peers import agreed
from growth.controllers.disruption.question import Question, Verdict, confirmed, validated
from growth.controllers.disruption.requesting import GrowthMoves
from growth.controllers.disruption.surroundings import Surroundings, look
from growth.controllers.disruption.targets import Seen, seen
from growth.controllers.disruption.weighing import search_options
from growth.controllers.environment import Environment
from growth.kube.errors import ConfigError, GateClosed, KubeError, NotFound
from growth.planning.disruption.model import Move
from growth.telemetry.logs import logger

_log = logger("disruption")

# Others have taken the room that was bought for a move, and after so long of it they are not about to give it back.
HOMELESS_SECONDS: Final = 120.0
# So often the nodes that are to take the pods are looked at before the move is given up, or waits.
ROUNDS: Final = 8


class Judged(Protocol):
    """What becomes of a move with what was seen around it; only nodes that are `known` take its pods, None: any."""

    async def __call__(self, around: Surroundings | None, *, known: Collection[str] | None = None) -> Verdict: ...


class Confirming:
    """For all moves of one process."""

    def __init__(self, env: Environment, moves: Moves, looking: Looking, growth: GrowthMoves) -> None:
        self._env = env
        self._moves = moves
        self._looking = looking
        self._growth = growth

    async def judgement(self, running: Running) -> tuple[Seen, Verdict] | None:
        """None where the server did not say enough, or where what was bought can be waited with."""
        try:
            looked = await self._looked(running)
            if looked is None:
                return None
            verdict = await self._confirmed(running, looked.fresh)
        except (GateClosed, ConfigError):
            raise
        except KubeError as error:
            _log.warning("the last look at a disruption is taken again", error=str(error))
            return None
        waits = verdict.again and running.coming and not verdict.nodes
        if waits and verdict.why != running.waits_for:
            running.waits_for = verdict.why
            _log.info("disruption waits", nodes=", ".join(running.targets), why=verdict.why)
        self._check_room(running, verdict)
        return None if waits else (looked, verdict)

    def _check_room(self, running: Running, verdict: Verdict) -> None:
        """`GaveUp` where its pods have had no place for too long."""
        now = self._env.clock.monotonic()
        if not verdict.homeless:
            running.homeless_since = None
        elif running.homeless_since is None:
            running.homeless_since = now
        elif now - running.homeless_since > HOMELESS_SECONDS:
            # What was bought was paid for nothing; decided anew at once it would be bought again, and again.
            raise GaveUp(verdict.why, failed=bool(running.coming) and running.move.reason == names.UNDERUTILIZED)

    async def _looked(self, running: Running) -> Seen | None:
        """The nodes as they are now; those that are leaving already are dropped from the move. None where it is not known of
        all of them, or of what replaces them, and the move is made as a whole.
        """
        for name in running.coming:
            new = await self.asked_for(running, name)
            if new is None:
                return None
            if new.metadata.deletion_timestamp is not None or not is_true(new.status.conditions, names.INITIALIZED):
                raise GaveUp(f"the replacement {name} is on its way out", failed=True)
        found = await seen(self._env, running.targets)
        if found.leaving:  # whoever let them go: their pods may be on their way to what was bought
            running.stage = Stage.LEAVING
        running.keep([name for name in running.targets if name not in found.leaving])
        if running.move.reason != names.EMPTY:
            for why in found.wrong.values():
                raise GaveUp(why)
            if found.unsure:
                return None
        return found

    async def _confirmed(self, running: Running, fresh: Mapping[str, Fresh]) -> Verdict:
        move = running.move
        pools: dict[str, NodePool] = {}
        growth_pools: dict[str, GrowthPool] = {}
        for ref in map(PoolRef.parse, move.pools):
            try:
                if ref.group == names.GROWTH:
                    growth_pools[ref.name] = await self._env.api.get(GROWTH_POOL, ref.name)
                else:
                    pools[ref.name] = await self._env.api.get(NODE_POOL, ref.name)
            except NotFound:
                if running.targets:
                    raise GaveUp(f"NodePool {ref} is gone") from None
        asked = dataclasses.replace(
            move,
            nodes=tuple(name for name in move.nodes if name in fresh),
            replacements=(),
        )
        weighed = functools.partial(validated, options=search_options(self._env.settings))
        judge: Callable[[Question, Move, Collection[str] | None], Verdict] = confirmed if running.coming else weighed
        acting, closed = self._moves.beside(running), self._moves.following(running)

        async def judged(around: Surroundings | None, *, known: Collection[str] | None = None) -> Verdict:
            question = self._looking.question(
                acting, closed=closed, fresh=fresh, pools=pools, growth_pools=growth_pools, around=around
            )
            return await self._env.compute.run(judge, question, asked, known)

        if move.reason == names.EMPTY:
            return await judged(None)
        moving = (pod for looked in fresh.values() for pod in looked.pods)
        going = {looked.claim.metadata.name for looked in fresh.values()}
        if not await agreed(self._env, moving, going=going, coming=running.coming):
            why = "which machines leave, what replaces them, or where pods are that theirs are counted with, is not known yet"
            return dataclasses.replace(await judged(None), nodes=(), why=why, again=True)
        return await self._with_room(running, judged)

    async def _with_room(self, running: Running, judged: "Judged") -> Verdict:
        """What is judged of the move when the nodes that take its pods are looked at afresh; nobody else takes any."""
        env = self._env
        places = {*running.move.destinations, *self._nodes_of(running.coming)}
        around: Surroundings | None = None
        for _ in range(ROUNDS):
            if around is None:
                around = await look(env, places)
                continue
            verdict = await judged(around, known=places)
            if verdict.homeless:  # there may be room elsewhere
                verdict = await judged(around)
            if verdict.nodes and (marked := around.marked(verdict.places)):  # by a scale-down that was begun meanwhile
                for name in marked:
                    env.state.nominate(name, seconds=env.settings.nomination)
                await self._growth.spare(marked)
                around = None
                continue
            beyond = verdict.places - places
            if verdict.nodes and (beyond or env.clock.boot_time() > around.until):
                places |= beyond
                before, around = around, await look(env, places)
                if beyond or around is None or not around.holds_after(before):
                    continue
            running.sure_until = around.until
            return verdict
        why = "what the nodes that are to take their pods hold changes all the time, or the API server does not tell"
        return dataclasses.replace(await judged(None), nodes=(), why=why, again=True)

    def _nodes_of(self, claims: Collection[str]) -> set[str]:
        found = (self._env.state.claims.store.get(name) for name in claims)
        return {claim.status.node_name for claim in found if claim is not None and claim.status.node_name}

    async def asked_for(self, running: Running, name: str) -> NodeClaim | None:
        """None where the server says that it is gone and the cache that it is not: one of the two is late. And while the
        claim may yet come of its request.
        """
        try:
            return await self._env.api.get(NODE_CLAIM, name)
        except NotFound:
            if self._env.state.claims.store.get(name) is not None or await self._growth.is_asked_for(running, name):
                return None
            raise GaveUp(f"the replacement {name} was deleted", failed=True) from None
