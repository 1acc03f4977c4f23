"""Growth and Karpenter on the same generated scenarios: who places which pods, and how do nodes and cost compare.

Each scenario (`bench.scenarios`) is planned by both. Pods of one kind are alike, so verdicts are compared by kind: how
many of them got a place. A difference must be explained by an entry of `bench.deliberate`, and so that the difference is
gone in the same scenario without what the entry is about; or it is the consequence of such a difference: gone without
the pods, or without what explains them. Karpenter's answer may vary; a difference that is gone when it is asked again is
none of ours. Anything else is made small, printed, and fails the command.
"""

import argparse
import collections
import dataclasses
import datetime as dt
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from bench import deliberate, features
from bench.deliberate import LESS, MORE, Objects, Scene
from bench.peers import karpenter
from bench.peers.karpenter import Answer
from bench.scenarios import Scenario, instance_types, kind_of, scenario
from bench.scheduling import catalogue_of
from bench.smaller import shrunk
from growth.api.core import Namespace
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NodePool
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pods import Pod
from growth.api.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from growth.api.workloads import DaemonSet
from growth.cluster.assemble import Assembled, assemble
from growth.cluster.assemble import Objects as Known
from growth.cluster.shapes import Shapes
from growth.planning.plan import Plan
from growth.planning.solve import solve
from growth.sim.judge import judge

NOW: Final = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NANO: Final = 1_000_000_000
CONSEQUENCE: Final = "Consequences"
VARIATION: Final = "Karpenter's own variation"
# Karpenter walks Go maps: what it says on one of so many further asks, it says.
ASKS: Final = 4
# Scenarios that are planned at one start of the peer.
BATCH: Final = 100
ROUNDS: Final = 60
STRUCTS: Final[dict[str, tuple[str, type[Any]]]] = {
    "DaemonSet": ("daemon_sets", DaemonSet),
    "Namespace": ("namespaces", Namespace),
    "Node": ("nodes", Node),
    "NodePool": ("pools", NodePool),
    "PersistentVolume": ("volumes", PersistentVolume),
    "PersistentVolumeClaim": ("volume_claims", PersistentVolumeClaim),
    "StorageClass": ("storage_classes", StorageClass),
}

Gaps = dict[str, int]  # kind → pods that Growth places more than Karpenter
Question = tuple[int, str, int, tuple[str, ...], Objects]  # seed, kind, its gap, entries, the scenario without them


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """A kind of pods of which the two place unlike numbers. `entries` explain it; empty: nothing does."""

    seed: int
    kind: str
    pods: int
    direction: str
    entries: tuple[str, ...]


@dataclasses.dataclass(kw_only=True)
class Tally:
    """What a run found."""

    scenarios: int = 0
    pods: int = 0
    placed: int = 0
    karpenter_placed: int = 0
    alike: int = 0
    nodes: int = 0
    karpenter_nodes: int = 0
    hourly: float = 0.0
    karpenter_hourly: float = 0.0
    refused: list[str] = dataclasses.field(default_factory=list)
    differences: list[Difference] = dataclasses.field(default_factory=list)
    features: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    @property
    def unexplained(self) -> list[Difference]:
        return [each for each in self.differences if not each.entries]


class Planners:
    """Both sides over one catalogue."""

    def __init__(self, types: Sequence[Json]) -> None:
        self._types = types
        self._catalogue: Catalogue = catalogue_of(types)

    def theirs(self, scenarios: Sequence[Sequence[Json]]) -> list[Answer]:
        return karpenter.solve_each(scenarios, instance_types=self._types)

    def ours(self, objects: Iterable[Json]) -> tuple[Assembled, Plan]:
        found: dict[str, Any] = {}
        shapes = Shapes()
        for each in objects:
            if each["kind"] == "Pod":
                found.setdefault("pods", []).append(shapes.keep(msgspec.convert(each, Pod)))
            else:
                field, struct = STRUCTS[each["kind"]]
                found.setdefault(field, []).append(msgspec.convert(each, struct))
        assembled = assemble(Known(**found), self._catalogue, now=NOW)
        return assembled, solve(assembled.snapshot, assembled.demands)

    def gaps(self, scenarios: Sequence[Objects]) -> list[Gaps]:
        """For each scenario the kinds on which the two differ."""
        answers = self.theirs(scenarios) if scenarios else []
        return [gaps_between(self.ours(objects)[1], answer) for objects, answer in zip(scenarios, answers, strict=True)]


def gaps_between(plan: Plan, answer: Answer) -> Gaps:
    """The kinds of which the two place unlike numbers."""
    ours = collections.Counter(kind_of(key) for key, _ in plan.order)
    theirs = collections.Counter(kind_of(key) for key in answer.placed)
    return {kind: ours[kind] - theirs[kind] for kind in sorted({*ours, *theirs}) if ours[kind] != theirs[kind]}


def compare(scenarios: Iterable[Scenario], planners: Planners) -> Tally:
    """Plans all of them twice and explains what differs."""
    tally = Tally()
    waiting = list(scenarios)
    for at in range(0, len(waiting), BATCH):
        batch = waiting[at : at + BATCH]
        differing: list[tuple[Scenario, Gaps]] = []
        for made, answer in zip(batch, planners.theirs([each.objects for each in batch]), strict=True):
            assembled, plan = planners.ours(made.objects)
            for complaint in judge(assembled.snapshot, assembled.demands, plan):
                tally.refused.append(f"seed {made.seed}: {complaint}")
            gaps = gaps_between(plan, answer)
            _add(tally, made, plan, answer)
            if gaps:
                differing.append((made, gaps))
        tally.differences += _explained(differing, planners)
    return tally


def _add(tally: Tally, made: Scenario, plan: Plan, answer: Answer) -> None:
    tally.scenarios += 1
    tally.pods += len(made.pending)
    tally.placed += len(plan.order)
    tally.karpenter_placed += len(answer.placed)
    tally.features.update(features.of(made.objects))
    if {key for key, _ in plan.order} == answer.placed:  # cost can be compared only for the same pods
        tally.alike += 1
        tally.nodes += len(plan.claims)
        tally.karpenter_nodes += len(answer.claims)
        tally.hourly += plan.hourly / NANO
        tally.karpenter_hourly += answer.hourly


def _explained(differing: Sequence[tuple[Scenario, Gaps]], planners: Planners) -> list[Difference]:
    """Attributes each difference; asks the planners about the scenarios without what is said to make it."""
    found = _varying(differing, planners)
    asked: list[Question] = []
    for made, gaps in differing:
        scene = Scene(made.objects)
        for kind, gap in gaps.items():
            if (made.seed, kind) in found:
                continue
            entries = deliberate.explaining(scene, scene.kinds[kind], MORE if gap > 0 else LESS)
            for some in [[entry] for entry in entries] + ([entries] if len(entries) > 1 else []):
                titles = tuple(entry.title for entry in some)
                asked.append((made.seed, kind, gap, titles, deliberate.without(made.objects, titles)))
    _settle(asked, found, planners)
    asked = []
    for made, gaps in differing:
        direct = [kind for kind in gaps if (made.seed, kind) in found]
        named = {title for kind in direct for title in found[made.seed, kind]}
        others = [deliberate.left_out(made.objects, direct), deliberate.without(made.objects, named)]
        for kind, gap in gaps.items():
            if direct and kind not in direct:
                asked += [(made.seed, kind, gap, (CONSEQUENCE,), objects) for objects in others]
    _settle(asked, found, planners)
    return [
        Difference(
            seed=made.seed,
            kind=kind,
            pods=abs(gap),
            direction=MORE if gap > 0 else LESS,
            entries=found.get((made.seed, kind), ()),
        )
        for made, gaps in differing
        for kind, gap in gaps.items()
    ]


def _varying(differing: Sequence[tuple[Scenario, Gaps]], planners: Planners) -> dict[tuple[int, str], tuple[str, ...]]:
    """The differences that are gone when Karpenter is asked again."""
    found: dict[tuple[int, str], tuple[str, ...]] = {}
    for _ in range(ASKS if differing else 0):
        again = planners.gaps([made.objects for made, _ in differing])
        for (made, gaps), now in zip(differing, again, strict=True):
            found.update({(made.seed, kind): (VARIATION,) for kind in gaps if kind not in now})
    return found


def _settle(
    asked: Sequence[Question],
    found: dict[tuple[int, str], tuple[str, ...]],
    planners: Planners,
) -> None:
    """An explanation holds if the difference is gone without what it names; the first one that holds counts.

    Gone is also what has turned round: that is another difference, of another scenario.
    """
    gaps = planners.gaps([objects for *_, objects in asked])
    for (seed, kind, gap, titles, _), left in zip(asked, gaps, strict=True):
        if left.get(kind, 0) * gap <= 0:
            found.setdefault((seed, kind), titles)


# -- the command ------------------------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pods", type=int, default=5000, help="how many pods at least")
    parser.add_argument("--seed", type=int, default=0, help="the first scenario")
    parser.add_argument("--show", type=int, default=3, help="make so many unexplained differences small and print them")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    planners = Planners(instance_types())
    tally = compare(scenarios_with(options.pods, first=options.seed), planners)
    for each in tally.unexplained[: options.show]:
        print(told(each, planners), file=sys.stderr)
    for complaint in tally.refused[: options.show]:
        print(complaint, file=sys.stderr)
    by_entry: collections.Counter[str] = collections.Counter()
    for each in tally.differences:
        by_entry[f"{' and '.join(each.entries) or 'unexplained'}: {each.direction}"] += each.pods
    return {
        "karpenter": karpenter.version(),
        "scenarios": tally.scenarios,
        "pods": tally.pods,
        "placed": tally.placed,
        "karpenter_placed": tally.karpenter_placed,
        "verdicts_that_differ": sum(each.pods for each in tally.differences),
        "unexplained": sum(each.pods for each in tally.unexplained),
        "plans_that_the_judge_refuses": len(tally.refused),
        "differences": dict(by_entry.most_common()) or "none",
        "scenarios_with_equal_verdicts": {
            "scenarios": tally.alike,
            "nodes": tally.nodes,
            "karpenter_nodes": tally.karpenter_nodes,
            "hourly": round(tally.hourly, 2),
            "karpenter_hourly": round(tally.karpenter_hourly, 2),
        },
        "occurrences": dict(sorted(tally.features.items())),
    }


def failed(result: dict[str, Any]) -> bool:
    """Whether there is a difference that nothing explains, or a plan that cannot be."""
    return bool(result["unexplained"] or result["plans_that_the_judge_refuses"])


def scenarios_with(pods: int, *, first: int = 0) -> list[Scenario]:
    """Scenarios from the first seed on, until there are so many pods."""
    found: list[Scenario] = []
    while pods > 0:
        found.append(scenario(first + len(found)))
        pods -= len(found[-1].pending)
    return found


def told(difference: Difference, planners: Planners) -> str:
    """An unexplained difference on the smallest scenario that still shows it, with what both say."""
    sign = 1 if difference.direction == MORE else -1

    def differs(batch: Sequence[Objects]) -> list[bool]:
        return [gaps.get(difference.kind, 0) * sign > 0 for gaps in planners.gaps(batch)]

    objects = shrunk(scenario(difference.seed).objects, differs, rounds=ROUNDS)
    (answer,) = planners.theirs([objects])
    _, plan = planners.ours(objects)
    lines = [f"seed {difference.seed}, {difference.kind}: Growth places {difference.pods} {difference.direction}"]
    lines += [f"  {json.dumps(each)}" for each in objects if each["kind"] != "Namespace"]
    lines += [f"  Karpenter buys {each.node_pool} {each.instance_types[:3]} for {each.pods}" for each in answer.claims]
    lines += [f"  Karpenter fills {each.name} with {each.pods}" for each in answer.existing_nodes]
    lines += [f"  Karpenter leaves {pod}: {why[:500]}" for pod, why in (answer.errors | answer.ignored).items()]
    lines += [f"  Growth buys {each.pool} {each.instance_types[:3]} for {each.pods}" for each in plan.claims]
    lines += [f"  Growth fills {each.name} with {each.pods}" for each in plan.filled]
    lines += [
        f"  Growth leaves {each.pod}: {'; '.join(why.message for why in each.reasons)[:500]}" for each in plan.unplaced
    ]
    return "\n".join(lines)
