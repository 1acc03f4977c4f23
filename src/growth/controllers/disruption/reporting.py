"""What disruption tells: metrics every time, events and Decisions when something changed.

A node that stays for a reason that was told is not told about again for hours: an idle cluster is silent.
"""

from collections.abc import Sequence
from typing import Final

from growth.api import names
from growth.api.events import NORMAL, regarding
from growth.api.growthpools import GROWTH_POOL
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim
from growth.api.meta import ObjectReference
from growth.api.nodes import NODE
from growth.api.pools import PoolRef
from growth.controllers import disrupted
from growth.controllers.decisions import Decisions
from growth.controllers.disruption import metrics, story
from growth.controllers.disruption.looking import Fresh
from growth.controllers.disruption.moving import Running
from growth.controllers.disruption.question import REASONS, Answer
from growth.controllers.environment import Environment
from growth.controllers.unreadable import tell_unreadable
from growth.planning import occupants
from growth.planning.disruption import words
from growth.planning.disruption.model import Kept, Situation
from growth.planning.disruption.room import budget_message, counts, limit_message
from growth.telemetry.logs import logger

_log = logger("disruption")

# Such nodes are well where they are; of those that nothing can be gained from Karpenter tells once in a while.
_SILENT: Final = frozenset(
    {words.UNMANAGED, words.NOT_INITIALIZED, words.LEAVING, words.UP_TO_DATE, words.IN_USE, words.GROWTH_POOL}
)
_NO_GAIN: Final = frozenset({words.NO_PLACE, words.BALANCED, words.TOO_LITTLE, words.PRICE_UNKNOWN})
# What was told of a node is told again after this long, if it is still so and something else changed.
REPEAT_SECONDS: Final = 6 * 3600.0


class Report:
    """Remembers what was told last, so that it need not be told again."""

    def __init__(self, env: Environment, decisions: Decisions | None) -> None:
        self._env = env
        self._decisions = decisions
        self._told: dict[tuple[str, str], float] = {}  # by an object's UID and what was told, when
        self._blocked: dict[tuple[str, str], str] = {}
        self._pools: set[str] = set()
        self._unreadable: dict[str, str] = {}  # by the UID of a pod's owner, what is wrong with its annotation
        for kind in ("multi", "single"):
            env.metrics.add(metrics.TIMEOUTS, 0, consolidation_type=kind)
        env.metrics.add(metrics.PREEMPTED, 0)

    # A pass.

    def decided(self, answer: Answer, *, seconds: float) -> None:
        """What was decided, before any of it is done."""
        self._measure(answer, seconds)
        if self._env.settings.observe:
            self._record(story.would(answer, self._env.clock.now()))
            return
        self._tell_pools(answer)
        self._tell_nodes(answer)
        self._tell_pods(answer)
        if not answer.decided.moves:
            self._record(story.nothing(self._env.clock.now(), told=self.worth_telling(answer.decided.kept)))

    def _record(self, spec: story.DecisionSpec) -> None:
        if self._decisions is not None:
            self._decisions.record(spec)

    def _measure(self, answer: Answer, seconds: float) -> None:
        told, decided = self._env.metrics, answer.decided
        told.observe(metrics.EVALUATION_SECONDS, seconds, reason="", consolidation_type="")
        if not decided.complete:
            told.add(metrics.TIMEOUTS, consolidation_type="multi")
        for reason, pools in answer.eligible.items():
            told.set(metrics.ELIGIBLE_NODES, sum(pools.values()), reason=reason.lower())
        gone = self._pools - set(answer.situation.pools)
        for pool in sorted(gone):
            told.forget(metrics.ALLOWED_DISRUPTIONS, nodepool=pool)
            told.forget(metrics.CONSUMING_BUDGETS, nodepool=pool)
        self._pools = set(answer.situation.pools)
        for reason in REASONS:
            for pool, count in counts(answer.situation, reason=reason).items():
                allowed = metrics.UNBOUNDED if count.allowed.nodes is None else count.allowed.nodes
                told.set(metrics.ALLOWED_DISRUPTIONS, allowed, nodepool=pool, reason=reason)
                told.set(metrics.CONSUMING_BUDGETS, count.disrupting, nodepool=pool, reason=reason)

    def _tell_pools(self, answer: Answer) -> None:
        """A pool whose budgets allow nothing at all, with what is wrong where one is at fault; or its node limit does."""
        blocked = dict(_blocked_pools(answer))
        for (pool, reason), message in blocked.items():
            found = self._about(pool)
            if found is None or self._blocked.get((pool, reason)) == message:
                continue
            if "(" in message:
                _log.error("detected disruption budget errors", NodePool=pool, error=message)
            self._env.events.event(found, names.DISRUPTION_BLOCKED, message, type=NORMAL)
        self._blocked = blocked

    def _about(self, pool: str) -> ObjectReference | None:
        """The pool that decisions call so; None where it is gone."""
        ref = PoolRef.parse(pool)
        if ref.group == names.GROWTH:
            growth = self._env.state.growth_pools.store.get(ref.name)
            return None if growth is None else regarding(GROWTH_POOL, growth.metadata)
        found = self._env.state.pools.store.get(ref.name)
        return None if found is None else regarding(NODE_POOL, found.metadata)

    def worth_telling(self, kept: Sequence[Kept]) -> tuple[Kept, ...]:
        """Nodes that are kept and should perhaps not be: not those that only wait, that their pool wants to stay, or that are
        well where they are.
        """
        return tuple(
            each for each in kept if not each.waits and not each.disabled and each.reason not in _SILENT | _NO_GAIN
        )

    def _tell_nodes(self, answer: Answer) -> None:
        """Node and claim each once, for as long as they are there: by their UIDs, since names are used again."""
        now, state = self._env.clock.monotonic(), self._env.state
        there = {each.metadata.uid for store in (state.nodes.store, state.claims.store) for each in store}
        self._told = {key: at for key, at in self._told.items() if key[0] in there and now - at < REPEAT_SECONDS}
        for each in answer.decided.kept:
            if each.waits or each.reason in _SILENT:
                continue
            node = state.nodes.store.get(each.node)
            if node is None:
                continue
            reason = names.UNCONSOLIDATABLE if each.disabled or each.reason in _NO_GAIN else names.DISRUPTION_BLOCKED
            message = each.message[:1].upper() + each.message[1:]
            # Why nothing can be gained is worth one event, however the reasons change.
            what = names.UNCONSOLIDATABLE if each.reason in _NO_GAIN else message
            claims = state.claims.store.find("provider", node.spec.provider_id)
            for about in (regarding(NODE, node.metadata), *(regarding(NODE_CLAIM, each.metadata) for each in claims)):
                if (about.uid, what) not in self._told:
                    self._told[about.uid, what] = now
                    self._env.events.event(about, reason, message, type=NORMAL)

    def _tell_pods(self, answer: Answer) -> None:
        """Whoever believes to be protected and is not, before it is asked to leave; one pod of each owner."""
        for owner, (pod, fault) in answer.unreadable.items():
            if self._unreadable.get(owner) != fault:
                tell_unreadable(self._env, pod, fault)
        self._unreadable = {owner: fault for owner, (_, fault) in answer.unreadable.items()}

    # A move.

    def failed_validation(self, running: Running, nodes: int) -> None:
        self._env.metrics.add(metrics.FAILED_VALIDATIONS, nodes, consolidation_type=running.consolidation_type)

    def begins(self, running: Running) -> None:
        move = running.move
        told = {
            "decision": running.decision,
            "reason": move.reason.lower(),
            "consolidation_type": running.consolidation_type,
        }
        self._env.metrics.add(metrics.DECISIONS, 1, **told)
        for pool in move.pools:
            self._env.metrics.add(metrics.DECISIONS_BY_POOL, 1, nodepool=pool, **told)
        _log.info(
            "disrupting node(s)",
            command=running.decision,
            reason=move.reason.lower(),
            nodes=", ".join(move.nodes),
            count=len(move.nodes),
            replacements=[each.planned.instance_type for each in move.replacements],
        )

    def bought(self, running: Running) -> None:
        self._record(story.replaces(running, self._env))

    def launching(self, running: Running, claim: NodeClaim, *, up: bool) -> None:
        """A replacement is on its way."""
        about = regarding(NODE_CLAIM, claim.metadata)
        events = self._env.events
        events.event(about, names.DISRUPTION_LAUNCHING, f"Launching NodeClaim: {running.move.reason}", type=NORMAL)
        if not up:
            message = "Waiting on readiness to continue disruption"
            events.event(about, names.DISRUPTION_WAITING_READINESS, message, type=NORMAL)

    def removed(self, running: Running, fresh: Fresh) -> None:
        env, reason = self._env, running.move.reason
        for kind, meta in ((NODE, fresh.node.metadata), (NODE_CLAIM, fresh.claim.metadata)):
            message = f"Disrupting {kind.kind}: {reason}"
            env.events.event(regarding(kind, meta), names.DISRUPTION_TERMINATING, message, type=NORMAL)
        pool = env.state.pools.store.get(fresh.claim.metadata.labels.get(names.NODE_POOL_LABEL, ""))
        policy = pool.spec.disruption.consolidation_policy if pool is not None else ""
        growth_pool = env.state.growth_pools.store.get(fresh.claim.metadata.labels.get(names.POOL_LABEL, ""))
        if growth_pool is not None:
            policy = growth_pool.spec.optimise
        pods = sum(map(occupants.reschedulable, fresh.pods))
        disrupted.count_disrupted(env.metrics, fresh.claim, reason=reason.lower(), pods=pods, policy=policy)

    def made(self, running: Running) -> None:
        """The claims are deleted."""
        if not running.coming and running.targets:
            self._record(story.removes(running, self._env))

    def gave_up(self, running: Running, why: str, *, missing: int) -> None:
        labels = {"reason": running.move.reason.lower(), "consolidation_type": running.consolidation_type}
        self._env.metrics.add(metrics.QUEUE_FAILURES, missing, decision=running.decision, **labels)
        _log.warning("a disruption is taken back", nodes=", ".join(running.targets), why=why)
        if running.coming:
            self._record(story.gave_up(running, why, self._env.clock.now()))


def _blocked_pools(answer: Answer) -> list[tuple[tuple[str, str], str]]:
    found = []
    situation: Situation = answer.situation
    for reason in dict.fromkeys(reason for reason, _ in answer.decided.room):
        eligible = answer.eligible.get(reason, {})
        for pool, count in counts(situation, reason=reason).items():
            room = answer.decided.room.get((reason, pool))
            if room is None or not eligible.get(pool):  # nobody misses the room
                continue
            if count.allowed.nodes == 0:
                faults = "; ".join(count.allowed.faults)
                message = budget_message(reason)
                found.append(((pool, reason), f"{message} ({faults})" if faults else message))
            elif room.limited and reason != names.EMPTY:  # nothing comes in the place of an empty node
                found.append(((pool, reason), limit_message(reason)))
    return found
