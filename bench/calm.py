"""A simulated day of waves: what it costs and whom it moves, beside first fit with Karpenter's rules in the same world.

Six Deployments swell and shrink, each in its own rhythm, all of them every half an hour; at the peak about a hundred
machines run. The real autoscaler runs in virtual time, without faults: once as it is, once with the packer `first-fit` and
`bench.karpenters` in the place of its search. The NodePool has Karpenter's default policy and budget, and `consolidateAfter`
a minute. `cost` is every machine's price from its creation to its end. `bound` is the integral, minute by minute, of the
configuration bound (`bench.patterns`, which shares nothing with the planner) for the pods that are wanted then: a cluster that
always had the right machines, moved pods for nothing and started them at once would not be cheaper. `pending` are pod-seconds
from creation to binding. `circles` are machines of a kind that was given up since the load last changed, bought again in its place or for
pods that find none.
Seconds are those that the core worked, from the order to the outcome of each run alone; the bound is not among them.

It ends with 1 where Growth goes in a circle, breaks a promise, costs more than 1.25 times the bound, or as much as the other.
"""

import argparse
import asyncio
import collections
import contextlib
import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from unittest import mock

import numpy as np

from bench import patterns
from bench.karpenters import karpenters_rule
from growth.api import names
from growth.providers.catalogues import builtin
from growth.sim import runs
from growth.sim.campaign import quiet
from growth.sim.company import Company, company
from growth.sim.scenario import manifests
from growth.sim.scenario.load import seconds
from growth.sim.scenario.model import QUIET_SECONDS, Order, Outcome, PodShape, Scenario, Violation, Waves
from growth.sim.seams import PLAIN, Seams, Step
from growth.sim.world.world import World
from growth.units.money import NANO
from growth.units.resources import amounts

CLAIMS: Final = ("karpenter.sh", "nodeclaims")
REPLACES: Final = "growth.dev/replaces"
KIND: Final = (names.INSTANCE_TYPE_LABEL, names.ZONE_LABEL, names.CAPACITY_TYPE_LABEL)
CPUS: Final = ("4", "8")
CPU_LABEL: Final = "karpenter.kwok.sh/instance-cpu"
STEP_MINUTES: Final = 30
# Name, cpu and memory of a pod, fewest and most pods, hours of a period.
WAVES: Final = (
    ("web", "500m", "1Gi", 60, 300, 24),
    ("api", "1", "2Gi", 40, 160, 12),
    ("cache", "1", "6Gi", 20, 60, 8),
    ("worker", "2", "4Gi", 10, 60, 6),
    ("small", "250m", "512Mi", 50, 150, 4),
    ("night", "1500m", "3Gi", 80, 10, 24),
)
MINUTE: Final = 60.0
MIB: Final = 1 << 20
MOST_OF_BOUND: Final = 1.25
GROWTH: Final = "growth"
RULE: Final = "first-fit, karpenter's rules"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hours", type=float, default=24.0, help="how long the waves go on")
    parser.add_argument("--share", type=float, default=1.0, help="of the pods of each wave")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sides", nargs="+", choices=(GROWTH, RULE), default=[GROWTH, RULE])


def measure(options: argparse.Namespace) -> dict[str, Any]:
    quiet()
    waves = workloads(options.share)
    lasts = options.hours * 3600.0
    least = integral(waves, lasts, until=lasts + QUIET_SECONDS)
    rows = []
    told: list[str] = []
    for side in options.sides:
        began = time.process_time()
        outcome, circles = _run(side, waves, seed=options.seed, lasts=lasts)
        cost = outcome.cost / NANO
        rows.append(
            {
                "side": side,
                "cost": round(cost, 3),
                "bound": round(least, 3),
                "cost / bound": round(cost / least, 3),
                "evictions": outcome.evictions,
                "pending": round(outcome.pending_seconds),
                "bought": outcome.scale_ups,
                "peak machines": outcome.peak_machines,
                "peak pods": outcome.peak_pods,
                "circles": len(circles),
                "violations": len(outcome.violations),
                "seconds": round(time.process_time() - began, 1),
            }
        )
        if side == GROWTH:
            told = [*circles, *(f"{each.invariant} at {each.at:.0f} s" for each in outcome.violations)]
    return {"hours": options.hours, "sides": rows, "faults": "; ".join(_faults(rows, told)) or "none"}


def failed(result: Mapping[str, Any]) -> bool:
    return bool(result["faults"] != "none")


def _faults(rows: Sequence[Mapping[str, Any]], told: Sequence[str]) -> Iterator[str]:
    yield from told
    cost = {row["side"]: row["cost"] for row in rows}
    for row in rows:
        if row["side"] == GROWTH and row["cost / bound"] > MOST_OF_BOUND:
            yield f"it costs {row['cost / bound']} times the bound"
    if len(cost) > 1 and cost[GROWTH] >= cost[RULE]:
        yield "it costs no less than first fit with Karpenter's rules"


# -- the world --------------------------------------------------------------------------------------------------------------


def workloads(share: float) -> tuple[Waves, ...]:
    """In lockstep: every wave changes every half an hour, up to its `high` and down again within its period."""
    return tuple(
        Waves(
            name=name,
            low=max(1, round(low * share)),
            high=max(1, round(high * share)),
            period=f"{hours}h",
            steps=hours * 30 // STEP_MINUTES,
            pod=PodShape(cpu=cpu, memory=memory),
        )
        for name, cpu, memory, low, high, hours in WAVES
    )


def wanted(wave: Waves, at: float) -> int:
    """How many pods the wave asks for at a time, as `growth.sim.scenario.load` plays it."""
    pause = seconds(wave.period) / (2 * wave.steps)
    step = int(at // pause) % (2 * wave.steps)
    height = step if step <= wave.steps else 2 * wave.steps - step
    return wave.low + (wave.high - wave.low) * height // wave.steps


def _pool() -> dict[str, Any]:
    requirements = (
        {"key": names.CAPACITY_TYPE_LABEL, "operator": "In", "values": [names.ON_DEMAND]},
        {"key": names.ARCH_LABEL, "operator": "In", "values": ["amd64"]},
        {"key": CPU_LABEL, "operator": "In", "values": list(CPUS)},
    )
    return manifests.node_pool(
        "default",
        requirements=requirements,
        consolidate_after="60s",
        budgets=({"nodes": "10%"},),
        policy="WhenEmptyOrUnderutilized",
    )


def _run(side: str, waves: tuple[Waves, ...], *, seed: int, lasts: float) -> tuple[Outcome, list[str]]:
    circles: list[str] = []
    packer = "cost" if side == GROWTH else "first-fit"
    order = Order(
        seed=seed,
        hours=(lasts + QUIET_SECONDS) / 3600.0,
        scenario=Scenario(objects=(_pool(),), workloads=waves, settings={"packer": packer}),
    )
    judged = company if side == GROWTH else _nobody
    rule = contextlib.nullcontext() if side == GROWTH else karpenters_rule()
    with rule, mock.patch.object(runs, "company", lambda given: _Watched(judged(given), circles)):
        return runs.run(order), circles


def _nobody(_: Order) -> Company:
    return _Nobody()


class _Nobody:
    """Neither disturbs nor judges: Karpenter's rules made none of our promises."""

    def __init__(self) -> None:
        self.seams: Seams = PLAIN
        self.violations: Sequence[Violation] = ()
        self.counts: Mapping[str, int] = {}
        self.rest_at = 0.0

    def attach(self, world: World) -> None:
        pass

    async def disturb(self, _: World) -> None:
        await asyncio.Event().wait()

    async def finish(self, world: World) -> None:
        pass


class _Watched:
    """Company with one more, who looks for circles: what was given up since the load last changed comes again.

    Either a replacement is of a kind that it or those before it replaced, or somebody's pods need such a machine anew.
    """

    def __init__(self, inner: Company, circles: list[str]) -> None:
        self._inner = inner
        self._circles = circles
        self._given_up: dict[tuple[str, ...], float] = {}
        self._lines: dict[str, set[tuple[str, ...]]] = {}  # by claim: the kinds that went for it
        self._kinds: dict[str, tuple[str, ...]] = {}
        self._changed_at = 0.0

    @property
    def seams(self) -> Seams:
        return self._inner.seams

    @property
    def violations(self) -> Sequence[Violation]:
        return self._inner.violations

    @property
    def counts(self) -> Mapping[str, int]:
        return self._inner.counts

    @property
    def rest_at(self) -> float:
        return self._inner.rest_at

    def attach(self, world: World) -> None:
        world.witness.listeners.append(lambda step: self._heard(step, world))
        self._inner.attach(world)

    async def disturb(self, world: World) -> None:
        await self._inner.disturb(world)

    async def finish(self, world: World) -> None:
        await self._inner.finish(world)

    def _heard(self, step: Step, world: World) -> None:
        if step.which != CLAIMS:
            return
        if world.changed_at > self._changed_at:
            self._changed_at = world.changed_at
            self._given_up.clear()
            self._lines.clear()
        if step.old is not None and not _ends(step.old) and (step.new is None or _ends(step.new)):
            self._given_up[_kind(step.old)] = step.at
        elif step.new is not None and all(_kind(step.new)) and not (step.old and all(_kind(step.old))):
            self._bought(step.new, step.at)

    def _bought(self, claim: Mapping[str, Any], at: float) -> None:
        kind = self._kinds[claim["metadata"]["name"]] = _kind(claim)
        going = [name for name in claim["metadata"].get("annotations", {}).get(REPLACES, "").split(",") if name]
        before: set[tuple[str, ...]] = set()
        for name in going:
            before |= self._lines.get(name, set())
            # One of several that go may well be of the kind that comes in their place.
            before |= {self._kinds[name]} if len(going) == 1 and name in self._kinds else set()
        self._lines[claim["metadata"]["name"]] = before | {self._kinds[name] for name in going if name in self._kinds}
        if kind in before if going else kind in self._given_up:
            since = self._given_up.get(kind, at)
            instead = f"in the place of {', '.join(going)}" if going else "for pods without a place"
            self._circles.append(f"{kind[0]} given up at {since:.0f} s and bought at {at:.0f} s {instead}")


def _kind(claim: Mapping[str, Any]) -> tuple[str, ...]:
    labels = claim["metadata"].get("labels", {})
    return tuple(labels.get(key, "") for key in KIND)


def _ends(body: Mapping[str, Any]) -> bool:
    return bool(body["metadata"].get("deletionTimestamp"))


# -- the bound --------------------------------------------------------------------------------------------------------------


def integral(waves: Sequence[Waves], lasts: float, *, until: float) -> float:
    """The bound for the pods that are wanted, minute by minute; after `lasts` they stay as they are."""
    counts: dict[tuple[int, ...], float] = collections.defaultdict(float)
    at = 0.0
    while at < until:
        counts[tuple(wanted(wave, min(at, lasts)) for wave in waves)] += min(MINUTE, until - at)
        at += MINUTE
    shapes = tuple((wave.pod.cpu, wave.pod.memory) for wave in waves)
    return sum(_least(shapes, pods) * spent / 3600.0 for pods, spent in sorted(counts.items()))


def _least(shapes: tuple[tuple[str, str], ...], pods: tuple[int, ...]) -> float:
    """What no cluster for these pods costs less than, an hour."""
    needs = [amounts({"cpu": cpu, "memory": memory}) for cpu, memory in shapes]
    asked = [
        (float(need["cpu"]), need["memory"] / MIB, 1.0)
        for need, number in zip(needs, pods, strict=True)
        for _ in range(number)
    ]
    request, count = patterns.classes_of(asked)
    price, room = _sold()
    problem = patterns.Problem(
        price=price, room=room, request=request, count=count, fits=np.ones((len(price), len(count)), dtype=np.bool_)
    )
    return float(patterns.bound(problem).value)


@functools.cache
def _sold() -> tuple[Any, Any]:
    """Prices and rooms of the types that the pool allows."""
    types = [
        (min(prices), kind.allocatable)
        for kind in builtin("kwok").types
        if kind.labels[names.ARCH_LABEL] == ("amd64",)
        and "linux" in kind.labels[names.OS_LABEL]
        and kind.labels[CPU_LABEL][0] in CPUS
        and (
            prices := [
                each.price / NANO
                for each in kind.offerings
                if each.price is not None and each.capacity_type == names.ON_DEMAND
            ]
        )
    ]
    rooms = [(room["cpu"], room["memory"] / MIB, room["pods"]) for _, room in types]
    return np.array([price for price, _ in types]), np.array(rooms, dtype=np.float64)
