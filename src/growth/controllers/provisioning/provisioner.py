"""The provisioner: waits for demand, has it planned, reserves, creates the claims, and tells the pods.

One pass at a time. What comes while a pass runs is the next batch. Between plan and act the world has moved on: pods that
were bound or deleted are dropped from the plan, and a pool that is another one now is planned with again.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final, Protocol

from growth.api import names
from growth.api.growthpools import UNMET, GrowthPool, NodeRequest
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.nodes import Node
from growth.cluster.snapshot import Demand
from growth.controllers.decisions import Decisions
from growth.controllers.environment import Environment
from growth.controllers.growth.backing import BackOffs
from growth.controllers.growth.matching import missing_pool
from growth.controllers.growth.purchases import Asked, Asking, Requesting
from growth.controllers.growth.reserving import GrowthReserving
from growth.controllers.growth.solutions import solution_of
from growth.controllers.growth.sparing import Sparing
from growth.controllers.headroom import Outcome
from growth.controllers.provisioning import metrics, story
from growth.controllers.provisioning.batching import Batch
from growth.controllers.provisioning.claims import Order
from growth.controllers.provisioning.demand import Pending
from growth.controllers.provisioning.freshness import begins_to_go, buys_the_same, vanished
from growth.controllers.provisioning.holds import Holds, Sifted
from growth.controllers.provisioning.journeys import Journeys
from growth.controllers.provisioning.passes import Answer, Question, answered
from growth.controllers.provisioning.purchases import Done, Purchases
from growth.controllers.provisioning.telling import Teller
from growth.controllers.slicing import slices
from growth.controllers.vain import Vain
from growth.kube.backoff import Backoff, BackoffSettings
from growth.kube.errors import ConfigError, Conflict, GateClosed, KubeError
from growth.kube.store import Change, Changed, Deleted
from growth.planning.plan import Filter, Plan, PlannedClaim, Reason, Unplaced
from growth.planning.solve import Options
from growth.telemetry.logs import logger
from growth.telemetry.metrics import Reading

_log = logger("provisioner")

CONTROLLER: Final = "provisioner"
# Pods that have no place, or whose machine is not there yet, are looked at again this often.
RECHECK_SECONDS: Final = 10.0
# While kube-scheduler is about to bind pods to machines that are ready.
SETTLING_SECONDS: Final = 1.0
# Pods for which there is room on nodes that exist: kube-scheduler may see it otherwise, and then they wait for us.
FILLED_SECONDS: Final = 2.0
# Without any change of the cluster: what depends on time alone (reservations, stock) is looked at again.
REPLAN_SECONDS: Final = 60.0
# Within this time another plan is made, if the last one left anything to look at again.
NEXT_PLAN_SECONDS: Final = REPLAN_SECONDS + 2 * RECHECK_SECONDS
# The same for pods whose claims the server refuses: each look costs it a reservation and as many refusals.
REFUSED: Final = BackoffSettings(base_seconds=RECHECK_SECONDS, cap_seconds=300.0, jitter=0.2)
# How long the search for the cheapest plan should take on one core: this much, and this much for each pod.
PLAN_SECONDS: Final = 1.0
PLAN_SECONDS_PER_POD: Final = 0.002
# While the cluster or the cloud is not known, that is logged again after so long.
WAITING_SECONDS: Final = 60.0
# So often at most a pass is planned anew because of what came of machines bought before.
LOOKS: Final = 8
# After a failure of the server the next pass waits so long.
FAILED_SECONDS: Final = 5.0
# After one of our own: nobody mends it meanwhile, but the cluster may change.
DEFECT: Final = BackoffSettings(base_seconds=FAILED_SECONDS, cap_seconds=60.0, jitter=0.2)


class Headroom(Protocol):
    """Pods that do not exist, for which room is kept."""

    def demands(self) -> Sequence[Demand]:
        """They are placed after all others."""

    def placed(self, outcome: Outcome) -> None:
        """What the last pass made of them."""

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """`changed` is called with a word when others are wanted than before."""


class NoHeadroom:
    def demands(self) -> Sequence[Demand]:
        return ()

    def subscribe(self, changed: Callable[[str], None]) -> None:
        pass

    def placed(self, outcome: Outcome) -> None:
        pass


class Provisioner:
    """`run` works until cancelled, or until the gate is closed."""

    def __init__(
        self,
        env: Environment,
        *,
        decisions: Decisions,
        headroom: Headroom | None = None,
        requesting: Requesting | None = None,
        back_offs: BackOffs | None = None,
    ) -> None:
        self._env = env
        self._requesting = requesting or Requesting(env, GrowthReserving(env))
        self._sparing = Sparing(env)
        self._vain = Vain(env)
        self._vain.follow()
        self._back_offs = BackOffs(env) if back_offs is None else back_offs
        self._rested: asyncio.TimerHandle | None = None
        self._decisions = decisions
        self._headroom = headroom or NoHeadroom()
        settings, state = env.settings, env.state
        self._pending = Pending(env.clock, age=settings.pod_age, news=self._on_demand)
        self._batch = Batch(
            env.clock, idle=settings.batch_idle, longest=settings.batch_max, size=self._pending.unplanned
        )
        self._holds = Holds(state.pods.store, env.clock, patience=settings.nomination)
        self._purchases = Purchases(env)
        self._teller = Teller(env.events, env.clock)
        self._journeys = Journeys(env)
        self._served = frozenset((kind.group, kind.kind) for kind in env.provider.node_classes)
        self._options = Options(
            respect_preferences=settings.preference_policy != "Ignore",
            strict_min_values=settings.min_values_policy != "BestEffort",
            packer="cost" if settings.packer == "cost" else "first-fit",
            flexibility=settings.max_price_percent,
            nominate=settings.nominate_pods,
        )
        self._backoff = Backoff(env.random, DEFECT)
        self._refused = Backoff(env.random, REFUSED)
        self._waited: tuple[list[str], float] = ([], 0.0)  # for what, and when it was last told
        self._seen = -1  # the state's changes that the last pass knew of
        self._planned_at = 0.0
        self._open = False  # whether the last pass left something to look at again
        self._settling = False
        self._recheck = RECHECK_SECONDS
        self._work: tuple[dict[str, str], float, int] | None = None  # the plan that is being made
        env.metrics.read(metrics.QUEUE_DEPTH, self._queue_depth)
        env.metrics.read(metrics.UNFINISHED_WORK, self._unfinished_work)
        self._headroom.subscribe(self.trigger)
        self._back_offs.subscribe(self.trigger)
        state.pods.subscribe(self._pending.hear)
        state.pools.subscribe(self._on_pool)
        state.claims.subscribe(self._on_claim)
        state.nodes.subscribe(self._on_node)
        state.growth_pools.subscribe(self._on_growth_pool)
        state.node_requests.subscribe(self._on_request)

    def trigger(self, why: str) -> None:
        """Something else than a pod calls for a pass."""
        self._batch.add(why)

    # News.

    def _on_demand(self, sort: bytes) -> None:
        self._batch.add(sort)

    def _on_pool(self, change: Change[NodePool]) -> None:
        if isinstance(change, Changed) and buys_the_same(change.old, change.new):
            return
        if not isinstance(change, Deleted) and len(self._pending):
            self.trigger("pool")

    def _on_growth_pool(self, change: Change[GrowthPool]) -> None:
        if isinstance(change, Changed) and buys_the_same(change.old, change.new):
            return
        if not isinstance(change, Deleted) and len(self._pending):
            self.trigger("growth pool")

    def _on_request(self, change: Change[NodeRequest]) -> None:
        """A machine that does not come is planned again at once, and a type that nobody asked for may be had again."""
        ended = isinstance(change, Changed) and change.old.status.phase != change.new.status.phase == UNMET
        if (ended or isinstance(change, Deleted)) and len(self._pending):
            self.trigger("request")

    def _on_claim(self, change: Change[NodeClaim]) -> None:
        going = isinstance(change, Changed) and begins_to_go(change.old, change.new)
        if going or (isinstance(change, Deleted) and len(self._pending)):
            self.trigger("claim")

    def _on_node(self, change: Change[Node]) -> None:
        going = isinstance(change, Changed) and begins_to_go(change.old, change.new)
        if going or (isinstance(change, Deleted) and len(self._pending)):
            self.trigger("node")

    # The loop.

    async def run(self) -> None:
        await self._env.state.wait_synced()
        self.trigger("start")
        while True:
            collected = await self._batch.closed(self._again_in())
            try:
                await self._pass(collected=collected)
                self._backoff.reset()
            except (GateClosed, ConfigError):
                raise
            except KubeError as error:
                _log.warning("provisioning failed, will try again", error=str(error))
                await self._later(FAILED_SECONDS)
            except Exception:  # noqa: BLE001 - a pass that fails must not be the last
                pause = self._backoff.next()
                _log.exception("a bug in us: provisioning failed, will try again", again=pause)
                await self._later(pause)

    def _again_in(self) -> float | None:
        if self._settling:
            return SETTLING_SECONDS
        return min(self._recheck, RECHECK_SECONDS) if self._open else None  # held pods may be released at any time

    async def _later(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.trigger("failure")

    async def _pass(self, *, collected: bool) -> None:
        env = self._env
        unsynced = env.state.unsynced()
        if unsynced or env.state.catalogue is None:
            self._tell_waiting([str(each.kind) for each in unsynced] or ["what the cloud sells"])
            await asyncio.sleep(SETTLING_SECONDS)
            self.trigger("sync")
            return
        self._waited = ([], 0.0)
        await self._purchases.look_for_overdue()
        virtual = tuple(self._headroom.demands())
        changes = env.state.changes
        now = env.clock.monotonic()
        picture = env.state.picture(env.clock.now())
        sifted = self._holds.sift(picture, {each.key for each in virtual})
        self._settling = sifted.settling
        promised = env.state.promises.held(picture.counted)
        # As long as a machine is to take a pod, nobody may find that it is empty.
        for name in (*sifted.shapes, *self._holds.expecting()):
            env.state.nominate(name, seconds=env.settings.nomination)
        unchanged = changes == self._seen
        due = now - self._planned_at >= (max(REPLAN_SECONDS, self._recheck) if unchanged else self._recheck)
        if not (collected or sifted.released or due):
            return
        self._seen, self._planned_at = changes, now
        marked = self._pending.marked()
        question = Question(
            picture=self._vain.laid(dataclasses.replace(picture, held=sifted.shapes, promised=promised)),
            marked=marked,
            sort=self._pending.sorts.of,
            held=sifted.keys,
            virtual=tuple(each for each in virtual if each.key not in sifted.keys),
            served=self._served,
            paused="everything is paused by the setting `paused`" if env.settings.paused else "",
            resting=self._back_offs.left_out(),
            spared=self._sparing.nodes(),
            disruption_budgets=tuple(env.state.disruption_budgets.store),
            options=dataclasses.replace(self._options, nominate=self._options.nominate and not env.planned.refused),
        )
        answer, held = await self._sound(question, waiting=len(marked.since))
        sifted = dataclasses.replace(sifted, keys=sifted.keys | held)
        if answer.soonest is not None:
            asyncio.get_running_loop().call_later(answer.soonest, self.trigger, "ripe")
        await self._perform(answer, sifted, virtual, spared=question.spared, resting=question.resting)
        self._come_back()

    def _come_back(self) -> None:
        """A pass is due when the next pod that rests may be looked at again."""
        if self._rested is not None:
            self._rested.cancel()
        due = self._back_offs.next_due()
        loop = asyncio.get_running_loop()
        self._rested = None if due is None else loop.call_later(due, self.trigger, "back-off")

    def _tell_waiting(self, what: list[str]) -> None:
        """When it begins or changes, and then now and then: the watchdog tells the rest."""
        told, at = self._waited
        now = self._env.clock.monotonic()
        if what != told or now - at >= WAITING_SECONDS:
            self._waited = (what, now)
            _log.info("waiting on cluster sync", unsynced=what)

    async def _sound(self, question: Question, *, waiting: int) -> tuple[Answer, Set[str]]:
        """The answer, and pods left out because their machine may yet take them. It buys nothing again that came in vain."""
        held: Set[str] = frozenset()
        for _ in range(LOOKS):
            answer = await self._planned(question, waiting=waiting)
            plan = answer.plan
            if plan is None or self._env.settings.observe:
                return answer, held
            wanted = [(each.pool, each.pods) for each in plan.claims]
            ruling = self._vain.looked(question.picture, answer.snapshot, wanted, answer.shapes)
            if not ruling:
                return answer, held
            await self._vain.settle(ruling)
            held |= ruling.held
            question = dataclasses.replace(
                question, picture=self._vain.laid(question.picture), held=question.held | ruling.held
            )
        raise Conflict("machines that were bought come otherwise than planned as fast as plans are made")

    async def _planned(self, question: Question, *, waiting: int) -> Answer:
        env = self._env
        began = env.clock.monotonic()
        self._work = {"controller": CONTROLLER, "scheduling_id": env.random.uuid()}, began, waiting
        try:
            with env.precedence.first():
                answer = await self._guarded(question, waiting=waiting)
        finally:
            self._work = None
        seconds = env.clock.monotonic() - began
        env.metrics.observe(metrics.SCHEDULING_DURATION, seconds, controller=CONTROLLER)
        env.metrics.set(metrics.IGNORED_PODS, answer.ignored)
        unplaced = len(answer.plan.unplaced) if answer.plan is not None else 0
        env.metrics.set(metrics.UNSCHEDULABLE_PODS, unplaced, controller=CONTROLLER)
        if answer.pods and answer.plan is not None:
            found = sorted(answer.pods)
            _log.info(
                "found provisionable pod(s)",
                Pods=story.listed(found),
                pods=len(found),
                duration=f"{seconds:.3f}s",
                solution=str(solution_of(answer.plan)),
            )
        self._count_zones(answer.plan)
        return answer

    async def _guarded(self, question: Question, *, waiting: int) -> Answer:
        """The answer. A search for the cheapest that takes three times as long as it should is given up for first-fit.

        Its budget in steps ends it anyway, sooner or later; the guard is for machines that are slow or busy.
        """
        compute = self._env.compute
        if question.options.packer == "first-fit":
            return await compute.run(answered, question)
        patience = 3 * (PLAN_SECONDS + PLAN_SECONDS_PER_POD * waiting)
        try:
            async with asyncio.timeout(patience):
                return await compute.run(answered, question)
        except TimeoutError:
            note = f"planned by first-fit, because the packer {question.options.packer} had not ended after {patience:.0f} s"
            _log.warning("a plan took too long", pods=waiting, seconds=patience)
        simple = dataclasses.replace(question.options, packer="first-fit")
        answer = await compute.run(answered, dataclasses.replace(question, options=simple))
        return dataclasses.replace(answer, note=note)

    def _queue_depth(self) -> Reading:
        return [(self._work[0], float(self._work[2]))] if self._work is not None else []

    def _unfinished_work(self) -> Reading:
        return [(self._work[0], self._env.clock.monotonic() - self._work[1])] if self._work is not None else []

    def _count_zones(self, plan: Plan | None) -> None:
        self._env.metrics.forget(metrics.PENDING_BY_ZONE, controller=CONTROLLER)
        zones: dict[str, int] = {}
        for planned in plan.claims if plan is not None else ():
            zones[planned.zone] = zones.get(planned.zone, 0) + len(planned.pods)
        for zone, number in zones.items():
            self._env.metrics.set(metrics.PENDING_BY_ZONE, number, controller=CONTROLLER, zone=zone)

    # Acting.

    async def _perform(
        self,
        answer: Answer,
        sifted: Sifted,
        virtual: Sequence[Demand],
        *,
        spared: Set[str] = frozenset(),
        resting: Set[str] = frozenset(),
    ) -> None:
        env, plan = self._env, answer.plan
        pods = list(answer.pods.values())
        async for slice_ in slices(pods):
            self._pending.planned(slice_)
        if plan is None:
            self._open, self._recheck = bool(sifted.keys or virtual), RECHECK_SECONDS
            self._headroom.placed(_for_headroom(virtual, sifted))
            if answer.growth_pools and not (sifted.keys or virtual or resting):
                self._tell_no_demands(answer)
            return
        orders, wanted = await self._wanted(plan, answer)
        if env.settings.observe:
            done, asked = Done(created=tuple(orders)), Asked(created=tuple(wanted))
        else:
            done = await self._purchases.buy(orders, views=answer.views, currency=answer.snapshot.currency)
            asked = await self._requesting.ask(wanted)
        unplaced = [each for each in plan.unplaced if not vanished(each.pod, answer, env.state.pods.store)]
        for order, why in done.refused:
            unplaced += [Unplaced(pod, (Reason(None, Filter.CAPS, why),)) for pod in order.pods]
        for refused, why in asked.refused:
            unplaced += [Unplaced(pod, (Reason(None, Filter.CAPS, why),)) for pod in refused.pods]
        coming = {each.name: each.pods for each in done.created} | {each.claim: each.pods for each in asked.created}
        left = frozenset(each.pod for each in unplaced)
        async for slice_ in slices(pods):
            self._journeys.planned(slice_, unplaced=left)
        if not env.settings.observe:
            await self._nominate(plan, coming, answer, virtual)
            await self._sparing.keep(each.name for each in plan.filled if each.name in spared)
            served = {pod for each in asked.created for pod in each.pods}
            self._back_offs.looked(answer.pods, [each for each in unplaced if not _in_vain(each)], bought=served)
            for each in unplaced:
                pod = answer.pods.get(each.pod)
                if pod is not None:
                    missing = missing_pool(pod.shape.spec, answer.growth_pools.keys(), karpenter=bool(answer.pools))
                    self._teller.failed(pod, each.reasons, instead=missing)
        self._headroom.placed(_for_headroom(virtual, sifted, plan, coming, unplaced))
        self._open = bool(sifted.keys or unplaced or coming or plan.filled or virtual)
        real = any(key in answer.pods for each in plan.filled for key in each.pods)
        self._recheck = FILLED_SECONDS if real else RECHECK_SECONDS
        if done.futile:
            self._recheck = self._refused.next()
        elif done.created:
            self._refused.reset()
        bought = [(order.name, order.planned, len(order.pods)) for order in done.created]
        bought += [(each.name, each.planned, len(each.pods)) for each in asked.created if each.planned is not None]
        self._decide(answer, plan, bought, unplaced)
        if done.again or asked.again:
            _log.info("the plan is made again", reason=done.again or asked.again)
            self.trigger("again")

    async def _wanted(self, plan: Plan, answer: Answer) -> tuple[list[Order], list[Asking]]:
        """What of the plan is still wanted: claims of Karpenter's pools, and requests of ours."""
        pairs = list(zip(plan.claims, answer.types, strict=True))
        ours = [claim for claim, _ in pairs if claim.pool.group == names.GROWTH]
        theirs = [(claim, types) for claim, types in pairs if claim.pool.group != names.GROWTH]
        orders = await self._purchases.orders(
            dataclasses.replace(plan, claims=tuple(claim for claim, _ in theirs)),
            dataclasses.replace(answer, types=tuple(types for _, types in theirs)),
        )
        return orders, self._requesting.wanted(ours, answer)

    # Telling.

    async def _nominate(
        self, plan: Plan, coming: Mapping[str, Sequence[str]], answer: Answer, virtual: Sequence[Demand]
    ) -> None:
        """`coming` are pods by the name of the claim that is made for them."""
        env = self._env
        if plan.told:
            for name, keys in coming.items():
                env.planned.keep(name, (answer.pods[key] for key in keys if key in answer.pods))
        shapes = {each.key: each for each in virtual}
        async for slice_ in slices([(key, name) for name, pods in coming.items() for key in pods]):
            for key, name in slice_:
                pod = answer.pods.get(key)
                if pod is not None:
                    self._holds.hold(pod, name)
                    self._teller.nominated(pod, claim=name)
                elif key in shapes:
                    self._holds.hold_virtual(shapes[key], name)
        self._holds.expect(
            {
                filled.name: tuple(answer.pods[key] for key in filled.pods if key in answer.pods)
                for filled in plan.filled
            }
        )
        for filled in plan.filled:
            # A drain may take long: what waits for its pods is nominated until the next plan.
            moving = any(key in answer.pods and answer.pods[key].node_name for key in filled.pods)
            seconds = max(env.settings.nomination, NEXT_PLAN_SECONDS) if moving else env.settings.nomination
            env.state.nominate(filled.name, seconds=seconds)
            for key in filled.pods:
                pod = answer.pods.get(key)
                if pod is not None and not vanished(key, answer, env.state.pods.store):
                    node = env.state.nodes.store.get(filled.name)
                    self._teller.nominated(
                        pod, claim="" if node is not None else filled.name, node=filled.name if node is not None else ""
                    )

    def _tell_no_demands(self, answer: Answer) -> None:
        """Once, when it begins: pods that have a machine on its way, or are left out for now, would still want one."""
        solution = str(solution_of(answer.plan))
        at = self._env.clock.now()
        if self._decisions.record(story.nothing(at=at, revision=answer.snapshot.revision, note=solution)):
            _log.info("found no provisionable pods", solution=solution)

    def _decide(
        self,
        answer: Answer,
        plan: Plan,
        bought: Sequence[tuple[str, PlannedClaim, int]],
        unplaced: Sequence[Unplaced],
    ) -> None:
        if not bought and not unplaced:
            return
        self._decisions.record(
            story.decision(
                at=self._env.clock.now(),
                revision=plan.revision,
                snapshot=answer.snapshot,
                bought=bought,
                placed=sum(len(each.pods) for each in plan.filled) if bought else 0,
                unplaced=unplaced,
                observing=self._env.settings.observe,
                note="; ".join(filter(None, (str(solution_of(plan)) if answer.growth_pools else "", answer.note))),
                lower_bound=plan.lower_bound if bought else None,
            )
        )


def _in_vain(unplaced: Unplaced) -> bool:
    """Whether the pod rests because of machines that came: its pool says until when."""
    return any(reason.filter is Filter.IN_VAIN for reason in unplaced.reasons)


def _for_headroom(
    virtual: Sequence[Demand],
    sifted: Sifted,
    plan: Plan | None = None,
    created: Mapping[str, Sequence[str]] | None = None,
    unplaced: Sequence[Unplaced] = (),
) -> Outcome:
    """What became of the pods of buffers."""
    wanted = {each.key for each in virtual}
    held = wanted & sifted.keys
    filled = plan.filled if plan is not None else ()
    machines = {each.name for each in filled if wanted & set(each.pods)}
    made = created or {}
    machines |= {name for name, pods in made.items() if wanted & set(pods)}
    machines |= set(sifted.shapes) if held else set()
    return Outcome(
        there=frozenset(wanted & {key for each in filled for key in each.pods}),
        coming=frozenset(held | (wanted & {key for pods in made.values() for key in pods})),
        unplaced={each.pod: each.reasons for each in unplaced if each.pod in wanted},
        machines=frozenset(machines),
    )
