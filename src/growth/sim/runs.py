"""One run of a simulated world from an order to its outcome.

    0 ─────────── busy: load, faults ─────────── quiet_from ───── in peace: everything must come right ───── end ─ ─ at rest

What a run costs is counted to its end. Where machines are still being put together then, move by move, it is watched a while
longer: the last judgement is of a cluster at rest, or of one that finds none.

Whatever breaks inside is an outcome, not an exception: a promise of the autoscaler that was broken, a process that ended
by itself, a deadlock.
"""

import asyncio
import dataclasses
import pathlib
from collections.abc import Callable
from typing import Final

from growth.operator.settings import read
from growth.operator.wiring import Role
from growth.providers.catalogues import builtin
from growth.sim import kernel as sim
from growth.sim.chaos import sabotage
from growth.sim.company import Company, company
from growth.sim.kernel import Kernel, SimulationError
from growth.sim.scenario import trace
from growth.sim.scenario.load import Load, seconds
from growth.sim.scenario.model import Order, Outcome, Recorded, Violation
from growth.sim.scenario.trace import Life
from growth.sim.seams import Step
from growth.sim.world import cloud_controller, hetzner_classes, linode_types
from growth.sim.world.tally import Tally, Totals, prices_of, quanta_of
from growth.sim.world.world import HETZNER, LINODE, World, WorldSettings

LOOK_SECONDS: Final = 10.0
# So long after its end a run has still time to come to rest.
PATIENCE_SECONDS: Final = 1800.0
NAMES: Final = ("growth-a", "growth-b", "growth-c")
# What is broken where the run itself could not go on.
BY_ITSELF: Final = "no process ends by itself"
STUCK: Final = "the run goes on"


@dataclasses.dataclass(frozen=True, slots=True)
class _Ended:
    totals: Totals
    writes: int
    violations: tuple[Violation, ...]


def _alone(_: World) -> None:
    return


def run(
    order: Order, *, tell: Callable[[float], None] = lambda _: None, attend: Callable[[World], None] = _alone
) -> Outcome:
    """`tell` hears the virtual seconds that have passed, now and then; `attend` is handed the world before it moves."""
    with sabotage.applied(order.sabotage):
        return _run(sabotage.prepared(order), tell, attend)


def _run(order: Order, tell: Callable[[float], None], attend: Callable[[World], None]) -> Outcome:
    settings = _settings(order)
    with_it = company(order)
    traces = _traces(order)
    tally = Tally(prices_of(settings.catalogue), quanta=quanta_of(settings.catalogue))
    worlds: list[World] = []

    async def main(kernel: Kernel) -> _Ended:
        world = World(kernel, settings, seams=with_it.seams)
        worlds.append(world)
        world.quiet_from = order.busy_seconds
        world.witness.listeners.append(tally)
        points = _Points(world, order.crash_after)
        world.witness.listeners.append(points)
        with_it.attach(world)
        attend(world)
        await world.begin()
        await world.create(order.scenario.objects)
        load = Load(world, order.scenario, until=order.busy_seconds, traces=traces)
        world.run(load.run(), with_it.disturb(world))
        world.start()
        end = order.hours * 3600.0
        found = await _watch(world, order, with_it, tell, until=lambda: end)
        totals = _billed(tally.totals(kernel.time()), world)
        if not found:
            found = await _watch(
                world, order, with_it, tell, until=lambda: min(with_it.rest_at, end + PATIENCE_SECONDS)
            )
        if not found and not with_it.violations:
            await with_it.finish(world)
        return _Ended(totals, points.count, found)

    violations: tuple[Violation, ...] = ()
    digest, steps, writes, now = "", 0, 0, 0.0
    try:
        done = sim.run(main, seed=order.seed)
        totals, writes, violations = done.value.totals, done.value.writes, done.value.violations
        digest, steps, now = done.digest, done.steps, done.seconds
    except SimulationError as error:
        kernel = worlds[0].kernel
        digest, steps, now = kernel.trace.digest, kernel.steps, kernel.time()
        totals = tally.totals(now)
        violations = (Violation(seed=order.seed, invariant=STUCK, at=now, story=f"{type(error).__name__}: {error}"),)
    (world,) = worlds
    return Outcome(
        seed=order.seed,
        crash_after=order.crash_after,
        steps=steps,
        writes=writes,
        hours=now / 3600.0,
        peak_machines=totals.peak_machines,
        peak_pods=totals.peak_pods,
        scale_ups=totals.bought,
        scale_downs=totals.given_back,
        pending_seconds=totals.pending_seconds,
        evictions=totals.evictions,
        cost=totals.cost,
        currency=settings.catalogue.currency,
        digest=digest,
        effects=world.witness.effects.digest(now),
        faults=dict(with_it.counts),
        violations=(*with_it.violations, *violations),
    )


def _billed(totals: Totals, world: World) -> Totals:
    """What the vendor's own books say, where the machines are a vendor's: every hour that began is paid."""
    return totals if world.vendor is None else dataclasses.replace(totals, cost=world.vendor.cost())


async def _watch(
    world: World, order: Order, with_it: Company, tell: Callable[[float], None], *, until: Callable[[], float]
) -> tuple[Violation, ...]:
    """Lets the time pass; ends early where something is found."""
    while (now := world.kernel.time()) < (end := until()) and not with_it.violations:
        if now >= world.quiet_from and not world.over.is_set():
            world.over.set()
        following = end if world.over.is_set() else world.quiet_from
        await asyncio.sleep(min(LOOK_SECONDS, following - now))
        tell(world.kernel.time())
        try:
            world.check()
        except AssertionError as error:
            return (Violation(seed=order.seed, invariant=BY_ITSELF, at=world.kernel.time(), story=str(error)),)
    return ()


def _settings(order: Order) -> WorldSettings:
    growth = read(order.scenario.flags(), {})
    on_linode = growth.process.provider == LINODE
    catalogue = linode_types.catalogue() if on_linode else builtin(growth.process.kwok_catalogue)
    at_hetzner = growth.process.provider == HETZNER
    node_class = hetzner_classes.drawn(order.seed) if at_hetzner else {}
    return WorldSettings(
        growth=growth,
        catalogue=hetzner_classes.sold_to(node_class, catalogue) if node_class else catalogue,
        replicas=NAMES[: order.replicas],
        node_class=node_class,
        cloud_controller=cloud_controller.drawn(order.seed) if at_hetzner else None,
    )


class _Points:
    """Counts the writes of the autoscaler, renewals of the Lease left out, and ends the process that made the n-th."""

    def __init__(self, world: World, crash_after: int) -> None:
        self.count = 0
        self._world = world
        self._crash_after = crash_after

    def __call__(self, step: Step) -> None:
        if step.actor.role in {None, Role.ELECTOR} or not step.direct:
            return
        self.count += 1
        if self.count == self._crash_after:
            for replica in self._world.replicas:
                if replica.process is not None and replica.process.name == step.actor.process:
                    replica.process.crash()


def _traces(order: Order) -> dict[str, tuple[Life, ...]]:
    return {
        work.name: trace.window(
            trace.read(pathlib.Path(work.file)), since=seconds(work.since), lasts=seconds(work.lasts), limit=work.limit
        )
        for work in order.scenario.workloads
        if isinstance(work, Recorded)
    }
