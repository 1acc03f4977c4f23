"""Planning pending pods on an empty cluster, beside Karpenter's own scheduler, both sides in one run.

Ours is timed from decoded objects (structs) to the finished plan: interning, compiling, topology, packing, reasons.
Karpenter is timed over NewTopology + NewScheduler + Solve, and `Solve` alone stands beside it; what its
program does before (decoding, the copy of its state) is not counted. Its price of a node is its cheapest compatible
offering. Both sides run equally often, and the best run of each counts: five times for plain pods, where a run takes
milliseconds, otherwise once. Each run begins with an empty cache of pods; what lives on is what the operator keeps too:
the catalogue, with what its types know of themselves (labels, room), and quantities read before. Every cell is printed,
those that we lose too.
"""

import argparse
import datetime as dt
import functools
import gc
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from bench import catalogues, mixes
from bench.peers import karpenter
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NodePool
from growth.api.kinds import Json
from growth.api.pods import Pod
from growth.cluster.assemble import Objects, assemble
from growth.cluster.shapes import Shapes
from growth.planning.plan import Plan
from growth.planning.solve import Options, solve
from growth.providers.catalogues.file import parse

PLAIN_REPEATS: Final = 5
NOW: Final = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NANO: Final = 1_000_000_000


class Cell:
    """One row of the table."""

    def __init__(
        self,
        name: str,
        pods: Callable[[], list[Json]],
        types: Callable[[], list[Json]],
        *,
        policy: str = "Respect",
        repeats: int = 1,
    ) -> None:
        self.repeats = repeats
        self.name = name
        self.pods = pods
        self.types = types
        self.policy = policy


def cells(sizes: Sequence[int]) -> list[Cell]:
    """Karpenter's own mixes on its own types, and a web shop on KWOK's."""
    found = [Cell(f"diverse {n}", functools.partial(mixes.diverse, n), catalogues.fake_types) for n in sizes]
    found += [
        Cell(f"generic {n}", functools.partial(mixes.generic, n), catalogues.fake_types, repeats=PLAIN_REPEATS)
        for n in sizes
    ]
    found += [
        Cell(f"web {n}", functools.partial(mixes.web, n), catalogues.kwok_types, repeats=PLAIN_REPEATS) for n in sizes
    ]
    found += [
        Cell("preferences respected", mixes.preferences, catalogues.fake_types),
        Cell("preferences ignored", mixes.preferences, catalogues.fake_types, policy="Ignore"),
        Cell("varied preferences respected", mixes.varied_preferences, catalogues.fake_types),
    ]
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 5000, 10000], help="pods of the sized mixes")
    parser.add_argument("--only", default="", help="only cells whose name holds this text")
    parser.add_argument("--large", type=int, default=100_000, help="pods of the one cell without the peer; 0: none")
    parser.add_argument("--without-peer", action="store_true", help="do not run Karpenter")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    result: dict[str, Any] = {"karpenter": karpenter.version()}
    for cell in cells(options.sizes):
        if options.only in cell.name:
            result[cell.name] = _row(cell, peer=not options.without_peer)
    if options.large and options.only in "diverse large":
        large = Cell(f"diverse {options.large}", functools.partial(mixes.diverse, options.large), catalogues.fake_types)
        result[f"{large.name} (ours alone)"] = _row(large, peer=False)
    return result


def _row(cell: Cell, *, peer: bool) -> dict[str, Any]:
    pool = mixes.node_pool()
    raw = cell.pods()
    types = cell.types()
    options = Options(respect_preferences=cell.policy == "Respect")
    seconds, plan = ours(raw, [pool], types, options, repeats=cell.repeats)
    row: dict[str, Any] = {
        "pods": len(raw),
        "seconds": round(seconds, 4),
        "pods_per_second": round(len(raw) / seconds),
        "nodes": len(plan.claims),
        "hourly": plan.hourly / NANO,
        "unplaced": len(plan.unplaced),
    }
    if peer:
        policy: karpenter.PreferencePolicy = "Respect" if cell.policy == "Respect" else "Ignore"
        theirs = karpenter.solve([pool, *raw], instance_types=types, preference_policy=policy, repeat=cell.repeats)
        row |= {
            "karpenter_seconds": round(theirs.best.seconds, 3),
            "karpenter_solve_seconds": round(theirs.best.solve_seconds, 3),
            "karpenter_pods_per_second": round(len(raw) / theirs.best.seconds),
            "karpenter_nodes": len(theirs.claims),
            "karpenter_hourly": theirs.hourly,
            "karpenter_unplaced": len(theirs.errors),
            "times_faster": round(theirs.best.seconds / seconds, 1),
        }
    return row


def ours(
    raw: Sequence[Json], pools: Sequence[Json], types: Sequence[Json], options: Options, *, repeats: int = 1
) -> tuple[float, Plan]:
    """The best time, and the plan."""
    pods = [msgspec.convert(each, Pod) for each in raw]
    decoded = [msgspec.convert(each, NodePool) for each in pools]
    catalogue = catalogue_of(types)
    runs = [_run(pods, decoded, catalogue, options) for _ in range(repeats)]
    return min(seconds for seconds, _ in runs), runs[-1][1]


def _run(pods: Sequence[Pod], pools: Sequence[NodePool], catalogue: Catalogue, options: Options) -> tuple[float, Plan]:
    """One pass from the start. What it made is freed after the clock has stopped."""
    gc.collect()
    start = time.perf_counter()
    shapes = Shapes()
    objects = Objects(pods=[shapes.keep(pod) for pod in pods], pools=pools)
    assembled = assemble(objects, catalogue, now=NOW)
    plan = solve(assembled.snapshot, assembled.demands, options)
    return time.perf_counter() - start, plan


def catalogue_of(types: Sequence[Json]) -> Catalogue:
    """Instance types in the format of Karpenter's KWOK provider, read as `growth plan` reads a file."""
    return parse(msgspec.json.encode(types).decode(), source="the benchmark's types", cloud="kwok", currency="USD")
