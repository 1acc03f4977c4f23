"""Consolidation of a worn cluster: how long a decision takes, and how near to the cheapest it ends, beside Karpenter's rule.

The cluster is `bench.worn`: machines of many kinds, 15 pods each, about 40 % in use. A decision is timed from a situation
as planning sees it to the finished list of moves, on one thread; `cpu` is the processor time of that, which tells a busy
machine from slow code. *To the end* makes decision after decision without budgets, pods bound by the model of
kube-scheduler each time, until nothing more is decided; `late` are pods for which a machine had to be bought afterwards.
The bound is `bench.patterns`: no cluster for these pods costs less; it shares nothing with the search. `closed` is the
share of the gap between the first cost and the bound. Beside it stands `bench.prefix`, Karpenter's rule on the same
cluster, whose first command is compared with that of Karpenter's own disruption package on generated clusters.

It ends with 1 where a row misses what it must show.
"""

import argparse
import collections
import dataclasses
import gc
import random
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bench import catalogues, patterns, worn
from bench.peers import karpenter
from bench.prefix import Prefix
from bench.scheduling import NANO
from growth.api import names
from growth.api.kinds import Json
from growth.api.requests import requests_of
from growth.planning.disruption import search
from growth.planning.disruption.search import Found

SECONDS: Final = 5.0  # of processor time for one decision about
DECIDED: Final = 1000  # nodes
CLOSED: Final = 0.80
MIB: Final = 1 << 20
# No decision of ours or theirs has come near to this: a search that never ends is a fault.
MOST_DECISIONS: Final = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="*", default=[250, 500, 1000, 2000], help="nodes of timed decisions")
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of the cluster that is consolidated to the end")
    parser.add_argument("--mixes", nargs="*", default=["web", "generic"], choices=sorted(worn.MIXES))
    parser.add_argument("--without-prefix", action="store_true", help="do not consolidate by Karpenter's rule")
    parser.add_argument("--states", type=int, default=50, help="clusters on which the rule is compared with Karpenter")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    faults: list[str] = []
    times = []
    for mix in options.mixes:
        for size in options.sizes:
            times.append(_timed(size, mix, faults))
            _tell(times[-1])
    ends = []
    for mix in options.mixes:
        ends += _to_the_end(options.nodes, mix, prefix=not options.without_prefix, faults=faults)
        _tell(ends[-1])
    result: dict[str, Any] = {"one decision": times, f"to the end, {options.nodes} nodes": ends}
    if options.states:
        result["first command"] = _compared(options.states, faults)
    return {**result, "faults": "; ".join(faults) or "none"}


def failed(result: Mapping[str, Any]) -> bool:
    return bool(result["faults"] != "none")


def _tell(row: Mapping[str, Any]) -> None:
    if sys.stderr.isatty():
        print(row, file=sys.stderr, flush=True)


# -- time -----------------------------------------------------------------------------------------------------------------


def _timed(size: int, mix: str, faults: list[str]) -> dict[str, Any]:
    world = worn.worn(size, mix=mix)
    use = world.use
    found, seconds, cpu = _decide(world)
    before = world.cost
    world.make(found.moves)
    if size <= DECIDED and cpu >= SECONDS:
        faults.append(f"{mix}: a decision about {size} nodes takes {cpu:.1f} s of processor time")
    if not found.complete:
        faults.append(f"{mix}: the search about {size} nodes ran out of steps")
    return {
        "mix": mix,
        "nodes": size,
        "pods": sum(map(len, world.pods.values())),
        "cpu use %": round(100 * use[0], 1),
        "memory use %": round(100 * use[1], 1),
        "seconds": round(seconds, 2),
        "cpu": round(cpu, 2),
        "steps": found.steps,
        "moves": len(found.moves),
        "evictions": sum(move.evictions for move in found.moves),
        "cost": before / NANO,
        "after": world.cost / NANO,
    }


def _decide(world: worn.World) -> tuple[Found, float, float]:
    situation = world.situation()
    gc.collect()
    begun, used = time.perf_counter(), time.thread_time()
    found = search.consolidate(situation, situation.nodes, worn.unlimited())
    return found, time.perf_counter() - begun, time.thread_time() - used


# -- to the end -------------------------------------------------------------------------------------------------------------


def _to_the_end(nodes: int, mix: str, *, prefix: bool, faults: list[str]) -> list[dict[str, Any]]:
    least = _bound(worn.worn(nodes, mix=mix))
    ours = _by_search(worn.worn(nodes, mix=mix), least)
    if ours["closed"] < CLOSED:
        faults.append(f"{mix}: only {ours['closed']:.1%} of the gap is closed")
    rows = [{"mix": mix, "by": "growth", **ours}]
    if prefix:
        theirs = _by_prefix(worn.worn(nodes, mix=mix), least)
        rows.append({"mix": mix, "by": "karpenter's rule", **theirs})
        if ours["closed"] < theirs["closed"]:
            faults.append(f"{mix}: the rule closes {theirs['closed']:.1%} of the gap, more than {ours['closed']:.1%}")
    return rows


def _by_search(world: worn.World, least: float) -> dict[str, Any]:
    first = world.cost / NANO
    evictions = late = decisions = 0
    longest = total = 0.0
    while decisions < MOST_DECISIONS:
        found, _, cpu = _decide(world)
        longest, total = max(longest, cpu), total + cpu
        if not found.moves:
            break
        decisions += 1
        made = world.make(found.moves)
        evictions, late = evictions + made.evictions, late + made.late
    return _ended(world, first, least, decisions, evictions, late, longest, total)


def _by_prefix(world: worn.World, least: float) -> dict[str, Any]:
    first = world.cost / NANO
    evictions = late = decisions = 0
    longest = total = 0.0
    while decisions < MOST_DECISIONS:
        used = time.thread_time()
        rule = Prefix(world.situation())
        command = rule.command()
        cpu = time.thread_time() - used
        longest, total = max(longest, cpu), total + cpu
        if not command.nodes:
            break
        decisions += 1
        made = world.make([rule.move(command)])
        evictions, late = evictions + made.evictions, late + made.late
    return _ended(world, first, least, decisions, evictions, late, longest, total)


def _ended(  # noqa: PLR0917 - the columns of a table
    world: worn.World,
    first: float,
    least: float,
    decisions: int,
    evictions: int,
    late: int,
    longest: float,
    total: float,
) -> dict[str, Any]:
    last = world.cost / NANO
    return {
        "cost": first,
        "after": last,
        "bound": least,
        "closed": round((first - last) / (first - least), 4),
        "nodes": len(world.machines),
        "decisions": decisions,
        "evictions": evictions,
        "late": late,
        "longest cpu": round(longest, 2),
        "total cpu": round(total, 2),
    }


def _bound(world: worn.World) -> float:
    """What no cluster for these pods costs less than, an hour."""
    sold = [
        (min(prices), kind)
        for kind in worn.kwok().types
        if kind.labels[names.ARCH_LABEL] == ("amd64",) and "linux" in kind.labels[names.OS_LABEL]
        for prices in (
            [
                each.price / NANO
                for each in kind.offerings
                if each.price is not None and each.capacity_type == names.ON_DEMAND
            ],
        )
        if prices
    ]
    asked = [
        (request["cpu"], request["memory"] / MIB, 1.0)
        for pods in world.pods.values()
        for pod in pods
        for request in (requests_of(pod.shape.spec),)
    ]
    request, count = patterns.classes_of(asked)
    problem = patterns.Problem(
        price=np.array([price for price, _ in sold]),
        room=np.array(
            [(a["cpu"], a["memory"] / MIB, a["pods"]) for _, kind in sold for a in (kind.allocatable,)],
            dtype=np.float64,
        ),
        request=request,
        count=count,
        fits=np.ones((len(sold), len(count)), dtype=np.bool_),
    )
    return float(patterns.bound(problem).value)


# -- Karpenter's own first command ------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class _State:
    """A small cluster, by its numbers."""

    seed: int
    nodes: int
    pods: int
    mix: str
    terms: tuple[str, ...]

    @classmethod
    def drawn(cls, seed: int) -> "_State":
        lots = random.Random(seed)
        return cls(
            seed,
            nodes=lots.randint(3, 30),
            pods=lots.randint(2, 15),
            mix=lots.choice(sorted(worn.MIXES)),
            terms=lots.choice([(names.ON_DEMAND,), (names.ON_DEMAND,), (names.SPOT, names.ON_DEMAND), (names.SPOT,)]),
        )

    def made(self) -> tuple[worn.World, list[Json]]:
        machines, pods = worn.drawn(
            self.nodes, mix=self.mix, pods_per_node=self.pods, seed=self.seed, terms=self.terms, costly=True
        )
        world = worn.World(machines, pods, worn.kwok(), terms=self.terms)
        return world, worn.raw_objects(machines, pods, terms=self.terms)


def _compared(number: int, faults: list[str]) -> dict[str, Any]:
    """How often the rule's first command is Karpenter's own."""
    states = [_State.drawn(seed) for seed in range(number)]
    made = [state.made() for state in states]
    theirs = karpenter.consolidate([raw for _, raw in made], instance_types=catalogues.kwok_types())
    equal: collections.Counter[str] = collections.Counter()
    for state, (world, _), said in zip(states, made, theirs, strict=True):
        ours = Prefix(world.situation()).command()
        same = (ours.decision, sorted(ours.nodes), sorted(ours.types)) == (
            said.decision,
            sorted(said.nodes),
            sorted(said.instance_types),
        )
        equal["equal" if same else "different"] += 1
        equal[said.decision] += 1
        if not same:
            faults.append(
                f"{state}: Karpenter's command is {said.decision} {len(said.nodes)} nodes for"
                f" {len(said.instance_types)} types, the rule's {ours.decision} {len(ours.nodes)} for {len(ours.types)}"
            )
    return {"karpenter": karpenter.version(), "states": number, **equal}
