"""The provisioner: waits for demand, has it planned, reserves, creates the claims, and tells the pods.

One pass at a time. What comes while a pass runs is the next batch. Between plan and act the world has moved on: pods that
were bound or deleted are dropped from the plan, and a pool that is another one now is planned with again.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NodeClaim, NodePool
from growth.api.nodes import Node
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import Demand
from growth.cluster.wanting import is_done
from growth.controllers.decisions import Decisions
from growth.controllers.environment import Environment
from growth.controllers.headroom import Outcome
from growth.controllers.ownership import marked_paused
from growth.controllers.provisioning import metrics, story
from growth.controllers.provisioning.batching import Batch
from growth.controllers.provisioning.booking import UnknownUsage
from growth.controllers.provisioning.claims import Order, body, claim, claim_name, fitted
from growth.controllers.provisioning.demand import Pending
from growth.controllers.provisioning.holds import Holds, Sifted
from growth.controllers.provisioning.journeys import Journeys
from growth.controllers.provisioning.passes import Answer, Question, answered
from growth.controllers.provisioning.reserving import PlanAgain, Reserving
from growth.controllers.provisioning.telling import Teller
from growth.kube.errors import (
    AlreadyExists,
    ApiError,
    ConfigError,
    GateClosed,
    KubeError,
    NotFound,
    ServerError,
    Unreachable,
)
from growth.kube.store import Change, Changed, Deleted
from growth.planning.plan import Filter, Plan, Reason, Unplaced
from growth.planning.solve import Options
from growth.telemetry.logs import logger
from growth.telemetry.metrics import Reading

_log = logger("provisioner")

CONTROLLER: Final = "provisioner"
# Pods that have no place, or whose machine is not there yet, are looked at again this often.
RECHECK_SECONDS: Final = 10.0
# While kube-scheduler is about to bind pods to machines that are ready.
SETTLING_SECONDS: Final = 1.0
# Without any change of the cluster: what depends on time alone (reservations, stock) is looked at again.
REPLAN_SECONDS: Final = 60.0
# Within this time another plan is made, if the last one left anything to look at again.
NEXT_PLAN_SECONDS: Final = REPLAN_SECONDS + 2 * RECHECK_SECONDS
# Claims that are created at the same time.
PARALLEL: Final = 32
# After a failure of the server the next pass waits so long.
FAILED_SECONDS: Final = 5.0


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


@dataclasses.dataclass(frozen=True, slots=True)
class _Done:
    """What came of the orders: created claims, those that failed or were refused with the reason."""

    created: tuple[Order, ...] = ()
    refused: tuple[tuple[Order, str], ...] = ()
    again: str = ""


class Provisioner:
    """`run` works until cancelled, or until the gate is closed."""

    def __init__(self, env: Environment, *, decisions: Decisions, headroom: Headroom | None = None) -> None:
        self._env = env
        self._decisions = decisions
        self._headroom = headroom or NoHeadroom()
        settings, state = env.settings, env.state
        self._pending = Pending(env.clock, age=settings.pod_age, news=self._on_demand)
        self._batch = Batch(
            env.clock, idle=settings.batch_idle, longest=settings.batch_max, size=self._pending.unplanned
        )
        self._holds = Holds(state.pods.store, env.clock, patience=settings.nomination)
        self._reserving = Reserving(env)
        self._teller = Teller(env.events, env.clock)
        self._journeys = Journeys(env)
        self._served = frozenset((kind.group, kind.kind) for kind in env.provider.node_classes)
        self._options = Options(
            respect_preferences=settings.preference_policy != "Ignore",
            strict_min_values=settings.min_values_policy != "BestEffort",
        )
        self._seen = -1  # the state's changes that the last pass knew of
        self._planned_at = 0.0
        self._open = False  # whether the last pass left something to look at again
        self._settling = False
        self._work: tuple[dict[str, str], float, int] | None = None  # the plan that is being made
        env.metrics.read(metrics.QUEUE_DEPTH, self._queue_depth)
        env.metrics.read(metrics.UNFINISHED_WORK, self._unfinished_work)
        self._headroom.subscribe(self.trigger)
        state.pods.subscribe(self._pending.hear)
        state.pools.subscribe(self._on_pool)
        state.claims.subscribe(self._on_claim)
        state.nodes.subscribe(self._on_node)

    def trigger(self, why: str) -> None:
        """Something else than a pod calls for a pass."""
        self._batch.add(why)

    # News.

    def _on_demand(self, sort: bytes) -> None:
        self._batch.add(sort)

    def _on_pool(self, change: Change[NodePool]) -> None:
        if isinstance(change, Changed) and _buys_the_same(change.old, change.new):
            return
        if not isinstance(change, Deleted) and len(self._pending):
            self.trigger("pool")

    def _on_claim(self, change: Change[NodeClaim]) -> None:
        going = isinstance(change, Changed) and _begins_to_go(change.old, change.new)
        if going or (isinstance(change, Deleted) and len(self._pending)):
            self.trigger("claim")

    def _on_node(self, change: Change[Node]) -> None:
        going = isinstance(change, Changed) and _begins_to_go(change.old, change.new)
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
            except (GateClosed, ConfigError):
                raise
            except KubeError as error:
                _log.warning("provisioning failed, will try again", error=str(error))
                await self._later()
            except Exception:  # noqa: BLE001 - a pass that fails must not be the last
                _log.exception("a bug in us: provisioning failed, will try again")
                await self._later()

    def _again_in(self) -> float | None:
        if self._settling:
            return SETTLING_SECONDS
        return RECHECK_SECONDS if self._open else None

    async def _later(self) -> None:
        await asyncio.sleep(FAILED_SECONDS)
        self.trigger("failure")

    async def _pass(self, *, collected: bool) -> None:
        env = self._env
        unsynced = env.state.unsynced()
        if unsynced or env.state.catalogue is None:
            what = [str(each) for each in unsynced] or ["what the cloud sells"]
            _log.info("waiting on cluster sync", unsynced=what)
            await asyncio.sleep(SETTLING_SECONDS)
            self.trigger("sync")
            return
        await self._look_for_overdue()
        virtual = tuple(self._headroom.demands())
        changes = env.state.changes
        now = env.clock.monotonic()
        picture = env.state.picture(env.clock.now())
        sifted = self._holds.sift(picture, {each.key for each in virtual})
        self._settling = sifted.settling
        for name in sifted.shapes:  # as long as a pod is held for a machine, nobody may find that it is empty
            env.state.nominate(name, seconds=env.settings.nomination)
        due = now - self._planned_at >= (RECHECK_SECONDS if changes != self._seen else REPLAN_SECONDS)
        if not (collected or sifted.released or due):
            return
        self._seen, self._planned_at = changes, now
        marked = self._pending.marked()
        question = Question(
            picture=dataclasses.replace(picture, held=sifted.shapes),
            marked=marked,
            sort=self._pending.sorts.of,
            held=sifted.keys,
            virtual=tuple(each for each in virtual if each.key not in sifted.keys),
            served=self._served,
            paused="everything is paused by the setting `paused`" if env.settings.paused else "",
            disruption_budgets=tuple(env.state.disruption_budgets.store),
            options=self._options,
        )
        answer = await self._planned(question, waiting=len(marked.since))
        if answer.soonest is not None:
            asyncio.get_running_loop().call_later(answer.soonest, self.trigger, "ripe")
        await self._perform(answer, sifted, virtual)

    async def _look_for_overdue(self) -> None:
        """Claims that we made and no watch has shown: a lagging watch is no reason to buy again."""
        state = self._env.state
        for name in state.overdue():
            try:
                state.expect(await self._env.api.get(NODE_CLAIM, name))
            except NotFound:
                _log.warning("a nodeclaim was not created after all", NodeClaim=name)
                state.unexpect(name)

    async def _planned(self, question: Question, *, waiting: int) -> Answer:
        env = self._env
        began = env.clock.monotonic()
        self._work = {"controller": CONTROLLER, "scheduling_id": env.random.uuid()}, began, waiting
        try:
            answer = await env.compute.run(answered, question)
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
                "found provisionable pod(s)", Pods=story.listed(found), pods=len(found), duration=f"{seconds:.3f}s"
            )
        self._count_zones(answer.plan)
        return answer

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

    async def _perform(self, answer: Answer, sifted: Sifted, virtual: Sequence[Demand]) -> None:
        env, plan = self._env, answer.plan
        pods = list(answer.pods.values())
        self._pending.planned(pods)
        if plan is None:
            self._open = bool(sifted.keys or virtual)
            self._headroom.placed(_for_headroom(virtual, sifted))
            return
        orders = self._orders(plan, answer)
        if env.settings.observe:
            done = _Done(created=tuple(orders))
        else:
            done = await self._buy(orders, answer)
        unplaced = [each for each in plan.unplaced if not _vanished(each.pod, answer, env)]
        for order, why in done.refused:
            unplaced += [Unplaced(pod, (Reason(None, Filter.CAPS, why),)) for pod in order.pods]
        self._journeys.planned(pods, unplaced=frozenset(each.pod for each in unplaced))
        if not env.settings.observe:
            self._nominate(plan, done.created, answer, virtual)
            for each in unplaced:
                pod = answer.pods.get(each.pod)
                if pod is not None:
                    self._teller.failed(pod, each.reasons)
        self._headroom.placed(_for_headroom(virtual, sifted, plan, done.created, unplaced))
        self._open = bool(sifted.keys or unplaced or done.created or plan.filled or virtual)
        self._decide(answer, plan, done, unplaced)
        if done.again:
            _log.info("the plan is made again", reason=done.again)
            self.trigger("again")

    def _orders(self, plan: Plan, answer: Answer) -> list[Order]:
        """What of the plan is still wanted, with names."""
        env, views = self._env, answer.views
        orders: list[Order] = []
        for planned, most in zip(plan.claims, answer.dearest, strict=True):
            pods = tuple(pod for pod in planned.pods if not _vanished(pod, answer, env))
            if not pods:
                continue
            order = Order(
                name=self._new_name(planned.pool.name, [each.name for each in orders]),
                pool=answer.pools[planned.pool.name],
                view=views[planned.pool],
                planned=planned,
                pods=pods,
                types=planned.instance_types,
                max_price=min(planned.price * env.settings.max_price_percent // 100, most),
            )
            orders.append(fitted(order, currency=plan.currency))
        return orders

    def _new_name(self, pool: str, taken: Collection[str]) -> str:
        while True:
            name = claim_name(pool, self._env.random)
            if name not in taken and self._env.state.claims.store.get(name) is None:
                return name

    async def _buy(self, orders: Sequence[Order], answer: Answer) -> _Done:
        env = self._env
        if not orders:
            return _Done()
        pods = sum(len(each.pods) for each in orders)
        _log.info("computed new nodeclaim(s) to fit pod(s)", nodeclaims=len(orders), pods=pods)
        for order in orders:
            now = env.state.pools.store.get(order.pool.metadata.name)
            if now is None or not _buys_the_same(order.pool, now):
                return _Done(again=f"NodePool {order.pool.metadata.name} has changed")
        expected = self._reserving.expected_refusals(orders, answer.views)
        try:
            reserved = await self._reserving.reserve(expected.orders, answer.views)
        except PlanAgain as error:
            return _Done(refused=expected.refused, again=str(error))
        except UnknownUsage as error:
            return _Done(refused=(*expected.refused, *((order, str(error)) for order in expected.orders)))
        gate = asyncio.Semaphore(PARALLEL)

        async def create(order: Order) -> str:
            async with gate:
                return await self._create(order, until=reserved.until, currency=answer.snapshot.currency)

        results = await asyncio.gather(*(create(order) for order in reserved.orders), return_exceptions=True)
        answers: list[str] = []
        for result in results:  # all of them have ended: nothing is created behind our back
            if isinstance(result, BaseException):
                raise result
            answers.append(result)
        failed = [(order, why) for order, why in zip(reserved.orders, answers, strict=True) if why]
        created = tuple(order for order, why in zip(reserved.orders, answers, strict=True) if not why)
        self._reserving.give_up({order.name for order, _ in failed})
        again = "some claims could not be created" if failed or reserved.refused else ""
        return _Done(created, (*expected.refused, *reserved.refused, *failed), again if created else "")

    async def _create(self, order: Order, *, until: float, currency: str) -> str:
        """Creates the claim; empty, or why not. A claim of which no answer came counts as created until it is known."""
        env = self._env
        made = claim(order, currency=currency)
        if env.clock.monotonic() > until:
            return "its reservation was about to be released"
        try:
            stored = await env.api.create(NODE_CLAIM, body(made))
        except (GateClosed, ConfigError):
            raise
        except AlreadyExists:
            return f"NodeClaim {order.name} exists already"
        except Unreachable as error:
            return f"NodeClaim {order.name} was not created: {error}"
        except ServerError as error:
            stored = await self._looked_up(order, made, error)
        except ApiError as error:
            _log.warning("the server refuses a nodeclaim", NodeClaim=order.name, error=error.message)
            return f"NodeClaim {order.name} was refused: {error.message}"
        except KubeError as error:
            stored = await self._looked_up(order, made, error)
        env.state.expect(stored)
        env.state.nominate(order.name, seconds=env.settings.nomination)
        relaxed = str(order.planned.min_values_relaxed).lower()
        pool = order.pool.metadata.name
        env.metrics.add(metrics.CREATED, reason="provisioned", nodepool=pool, min_values_relaxed=relaxed)
        _log.info(
            "created nodeclaim",
            NodePool=pool,
            NodeClaim=order.name,
            requests=made.spec.resources.requests,
            instance_types=story.listed(order.types),
        )
        return ""

    async def _looked_up(self, order: Order, made: NodeClaim, error: KubeError) -> NodeClaim:
        """The claim of which no usable answer came: as the server has it, or as it may yet come to be."""
        _log.warning("whether a nodeclaim was created is not known", NodeClaim=order.name, error=str(error))
        try:
            return await self._env.api.get(NODE_CLAIM, order.name)
        except (GateClosed, ConfigError):
            raise
        except NotFound:
            return made
        except KubeError:
            return made

    # Telling.

    def _nominate(self, plan: Plan, created: Sequence[Order], answer: Answer, virtual: Sequence[Demand]) -> None:
        env = self._env
        shapes = {each.key: each for each in virtual}
        for order in created:
            for key in order.pods:
                pod = answer.pods.get(key)
                if pod is not None:
                    self._holds.hold(pod, order.name)
                    self._teller.nominated(pod, claim=order.name)
                elif key in shapes:
                    self._holds.hold_virtual(shapes[key], order.name)
        for filled in plan.filled:
            # A drain may take long: what waits for its pods is nominated until the next plan.
            moving = any(key in answer.pods and answer.pods[key].node_name for key in filled.pods)
            seconds = max(env.settings.nomination, NEXT_PLAN_SECONDS) if moving else env.settings.nomination
            env.state.nominate(filled.name, seconds=seconds)
            for key in filled.pods:
                pod = answer.pods.get(key)
                if pod is not None and not _vanished(key, answer, env):
                    node = env.state.nodes.store.get(filled.name)
                    self._teller.nominated(
                        pod, claim="" if node is not None else filled.name, node=filled.name if node is not None else ""
                    )

    def _decide(self, answer: Answer, plan: Plan, done: _Done, unplaced: Sequence[Unplaced]) -> None:
        bought = [(order.name, order.planned, len(order.pods)) for order in done.created]
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
            )
        )


def _for_headroom(
    virtual: Sequence[Demand],
    sifted: Sifted,
    plan: Plan | None = None,
    created: Sequence[Order] = (),
    unplaced: Sequence[Unplaced] = (),
) -> Outcome:
    """What became of the pods of buffers."""
    wanted = {each.key for each in virtual}
    held = wanted & sifted.keys
    filled = plan.filled if plan is not None else ()
    machines = {each.name for each in filled if wanted & set(each.pods)}
    machines |= {order.name for order in created if wanted & set(order.pods)}
    machines |= set(sifted.shapes) if held else set()
    return Outcome(
        there=frozenset(wanted & {key for each in filled for key in each.pods}),
        coming=frozenset(held | (wanted & {key for order in created for key in order.pods})),
        unplaced={each.pod: each.reasons for each in unplaced if each.pod in wanted},
        machines=frozenset(machines),
    )


def _vanished(key: str, answer: Answer, env: Environment) -> bool:
    """Whether the pod was bound, moved, replaced or deleted since the plan was made."""
    pod = answer.pods.get(key)
    if pod is None:
        return False  # a buffer's
    now: CachedPod | None = env.state.pods.store.get(pod.name, pod.namespace)
    return (
        now is None or now.uid != pod.uid or now.node_name != pod.node_name or now.deleting is not None or is_done(now)
    )


def _buys_the_same(old: NodePool, new: NodePool) -> bool:
    """Whether a plan with the one is a plan with the other."""
    return (
        old.metadata.uid == new.metadata.uid
        and old.metadata.generation == new.metadata.generation
        and (old.metadata.deletion_timestamp is None) == (new.metadata.deletion_timestamp is None)
        and marked_paused(old.metadata) == marked_paused(new.metadata)
        and _ready(old) == _ready(new)
    )


def _ready(pool: NodePool) -> str:
    return next((each.status for each in pool.status.conditions if each.type == names.READY), "Unknown")


def _begins_to_go(old: Node | NodeClaim, new: Node | NodeClaim) -> bool:
    return old.metadata.deletion_timestamp is None and new.metadata.deletion_timestamp is not None
