"""The loop of disruption: mend what was left behind, look, have it decided away from the loop, hand the moves over, tell.

Nothing voluntary happens while any of what is read may be partial. The decision is memoised: while nothing has changed,
and nothing that it waits for is due, it is not made again for five minutes. Provisioning goes first: a search under way
is dropped when pods wait for a plan.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.reservations import RELEASE
from growth.controllers.decisions import Decisions
from growth.controllers.disruption import metrics
from growth.controllers.disruption.discouraging import Discouraging
from growth.controllers.disruption.drift_blocking import DriftBlocking, blocked
from growth.controllers.disruption.executing import Execution
from growth.controllers.disruption.looking import Looking
from growth.controllers.disruption.lulls import Lulls
from growth.controllers.disruption.memory import Memory
from growth.controllers.disruption.mending import Mending
from growth.controllers.disruption.moving import Market, Moves, Running, Target
from growth.controllers.disruption.question import Answer, answered
from growth.controllers.disruption.reporting import Report
from growth.controllers.disruption.returning import Returning
from growth.controllers.disruption.weighing import search_options
from growth.controllers.environment import Environment
from growth.controllers.growth.purchases import Requesting
from growth.controllers.growth.reserving import GrowthReserving
from growth.kube.errors import ConfigError, GateClosed, KubeError
from growth.planning.disruption import words
from growth.planning.disruption.decide import Options
from growth.planning.disruption.model import Move, Turn
from growth.telemetry.logs import logger
from growth.units import DurationError, parse_or_never

_log = logger("disruption")

# While something we read is not synced, and after something was done.
SOON_SECONDS: Final = 1.0
# Without any change the decision is made again all the same: budgets open with time, and so does much else.
FORCED_SECONDS: Final = 300.0
# A search that was dropped so often in a row is let run: provisioning has its own thread, and nothing else ever would.
MOST_DROPPED: Final = 3


class Disruption:
    """Runs until cancelled, or until the gate is closed. With the setting `observe` it only says what it would do."""

    def __init__(
        self, env: Environment, *, decisions: Decisions | None = None, requesting: Requesting | None = None
    ) -> None:
        """`requesting` is who asks for machines of growth pools, where the process has one already."""
        self._env = env
        self._moves = Moves()
        self._memory = Memory(env.clock)
        self._looking = Looking(env, self._memory)
        self._lulls = Lulls(env, self._looking.quiet)
        self._recalled = False
        self._report = Report(env, decisions)
        returning = Returning(env, self._moves, self._looking)
        self._execution = Execution(
            env,
            self._moves,
            self._looking,
            self._memory,
            self._report,
            returning=returning,
            requesting=requesting or Requesting(env, GrowthReserving(env)),
        )
        self._mending = Mending(env, self._moves, returning)
        self._discouraging = Discouraging(env)
        self._drift_blocking = DriftBlocking(env)
        self._drift_blocked: dict[str, str] | None = None  # by growth pool, as the last decision says
        self._next: frozenset[str] | None = None  # who is the next to go, by the last decision
        self._wake = asyncio.Event()
        self._seen: tuple[int, int] | None = (
            None  # changes of the state and of the moves that the last decision knew of
        )
        self._decided_at = 0.0
        self._due: float | None = None  # when (monotonic) something that the last decision waits for will be over
        self._dropped = 0
        self._turns: Mapping[str, Turn] = {}  # how far the drifted nodes of large pools were tried

    async def run(self) -> None:
        self._looking.begin()
        async with asyncio.TaskGroup() as group:
            while True:
                again = SOON_SECONDS
                self._wake.clear()
                try:
                    again = await self._pass(group)
                except (GateClosed, ConfigError):
                    raise
                except KubeError as error:
                    _log.warning("will try again", error=str(error), again=again)
                except Exception:  # noqa: BLE001 - whatever it is, everything else must go on
                    again = self._env.settings.disruption_poll
                    _log.exception("a bug in us; disruption waits", again=again)
                await self._rest(again)

    async def _rest(self, seconds: float) -> None:
        """Until it is time, or a move has ended."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _pass(self, group: asyncio.TaskGroup) -> float:
        """One look at everything; in how many seconds the next one is due."""
        env = self._env
        if env.state.unsynced() or env.state.catalogue is None:
            return SOON_SECONDS
        if not self._recalled:
            self._recalled = True
            self._lulls.recall()
        if not env.settings.observe:
            for running in await self._mending.mend():
                self._start(running, group)
            await self._lulls.write(self._moves.nodes())
            if self._next is not None:
                await self._discouraging.write(self._next, taking=self._moves.destinations())
            if self._drift_blocked is not None:
                await self._drift_blocking.write(self._drift_blocked)
        if not self._is_due():
            return env.settings.disruption_poll
        answer = await self._answer()
        if answer is None:
            return SOON_SECONDS
        moves = () if env.settings.observe else self._wanted(answer.decided.moves)
        for move in moves:
            begun = self._running(move, answer)
            if begun is not None:
                self._moves.add(begun)
                self._start(begun, group)
        return SOON_SECONDS if moves else env.settings.disruption_poll

    def _start(self, running: Running, group: asyncio.TaskGroup) -> None:
        async def work() -> None:
            await self._execution.carry_out(running)
            self._wake.set()

        group.create_task(work(), name=f"move {running.number}")

    # Deciding.

    def _is_due(self) -> bool:
        now = self._env.clock.monotonic()
        if self._seen != (self._env.state.changes, self._moves.changes) or now - self._decided_at >= FORCED_SECONDS:
            return True
        return self._due is not None and now >= self._due

    async def _answer(self) -> Answer | None:
        """None where provisioning came in between: then it is asked again soon."""
        env = self._env
        turn = await env.precedence.free()
        patient = self._dropped >= MOST_DROPPED
        began = env.clock.monotonic()
        seen = (env.state.changes, self._moves.changes)
        question = self._looking.question(self._moves.nodes())
        answer = await env.compute.run(answered, question, self._options(None if patient else turn.preempted))
        if turn.preempted() and not patient:
            self._dropped += 1
            env.metrics.add(metrics.PREEMPTED)
            return None
        self._dropped = 0
        self._seen, self._decided_at, self._turns = seen, began, answer.decided.turns
        self._due = self._waits_until(answer, began)
        self._next = answer.decided.next
        self._drift_blocked = blocked(answer)
        self._report.decided(answer, seconds=env.clock.monotonic() - began)
        return answer

    def _options(self, stop: Callable[[], bool] | None) -> Options:
        return Options(
            search=search_options(self._env.settings, stop),
            resting=dict.fromkeys(
                sorted(self._memory.held_back(names.DRIFTED_REASON)),
                "what was to replace a drifted node failed: the pool waits before it is tried again",
            ),
            resting_nodes=dict.fromkeys(
                sorted(self._memory.resting()),
                "its removal was taken back: the node waits before it is tried again",
            ),
            buying_rests=dict.fromkeys(
                sorted(self._memory.held_back(names.UNDERUTILIZED)),
                "what was to replace nodes of its pool failed: the pool waits before anything is bought for them again",
            ),
            buying_fails=self._memory.failing(names.UNDERUTILIZED),
            turns=self._turns,
            next=self._next or frozenset(),
        )

    def _waits_until(self, answer: Answer, now: float) -> float | None:
        """When the first of what the decision waits for is over; a poll later where that is not known."""
        poll, nodes = self._env.settings.disruption_poll, {node.name: node for node in answer.situation.nodes}
        left = [] if (release := self._memory.next_release()) is None else [release]
        if answer.decided.turns:  # not all were tried
            left.append(poll)
        for kept in answer.decided.kept:
            node = nodes.get(kept.node)
            if kept.reason == words.NODE_LIMIT:  # what is reserved and never bought counts until then
                left.append(RELEASE.total_seconds())
            if not kept.waits or node is None:
                continue
            pool = answer.situation.pools.get(node.pool)
            after = None if pool is None else _seconds(pool.spec.disruption.consolidate_after)
            wanted = None if after is None else after - node.quiet_seconds
            left.append(poll if wanted is None or wanted <= 0 else wanted)
        return now + min(left) if left else None

    # Handing over.

    def _wanted(self, moves: Sequence[Move]) -> list[Move]:
        """Without those that buy where buying failed while they were decided: they are decided anew."""
        return [
            move
            for move in moves
            if not move.replacements or self._memory.held_back(move.reason).isdisjoint(move.pools)
        ]

    def _running(self, move: Move, answer: Answer) -> Running | None:
        """The move with the objects that it was decided by; None where one of them is gone by now."""
        env, snapshot = self._env, answer.situation.snapshot
        claims = {node.name: node.claim for node in answer.situation.nodes}
        targets: dict[str, Target] = {}
        for name in move.nodes:
            node, claim = env.state.nodes.store.get(name), env.state.claims.store.get(claims[name])
            if node is None or claim is None:
                return None
            targets[name] = Target(node, claim)
        return Running(
            move=move,
            targets=targets,
            since=env.clock.monotonic(),
            at=env.clock.now(),
            market=Market({view.ref: view for view in snapshot.pools}, snapshot.currency),
        )


def _seconds(text: str) -> float | None:
    try:
        after = parse_or_never(text)
    except DurationError:
        return None
    return None if after is None else after.seconds
