"""How much of the controllers, the cluster's view and the KWOK cloud the simulation alone goes through, branch by branch.

Runs worlds of `growth simulate` with probes in the code (`bench.probes`) and counts the outcomes of every `if`, `for`,
`while` and `case` of the packages: each has two, entered and passed by. The worlds are hours that seeds make up, with all
faults; small ones whose process ends after a write; and those with a name (`growth.sim.scenario.named`). Nothing is timed.
The rows are modules; those least covered come first. It fails below the share that is wanted, or where a promise breaks.
"""

import argparse
import collections
import importlib
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, Final

from bench import probes

PACKAGES: Final = ("growth.controllers", "growth.cluster", "growth.providers.kwok")
WANTED: Final = 0.85

Play = tuple[str, str]
"""What is played: of which kind, and which."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="only the worlds whose names contain this")
    parser.add_argument("--missing", action="store_true", help="print the outcomes that were not seen, to stderr")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    # Fresh processes: the probes must be there before the code is imported.
    news: list[dict[str, Any]] = []
    broken: list[str] = []
    with ProcessPoolExecutor(
        options.jobs, mp_context=get_context("spawn"), initializer=probes.install, initargs=(PACKAGES,)
    ) as pool:
        decisions, seen = pool.submit(probes.decisions).result(), pool.submit(probes.outcomes).result()
        plays = [play for play in pool.submit(_plays, options.seeds).result() if options.only in " ".join(play)]
        for play, (found, violations) in zip(
            plays, pool.map(_played, plays, [options.hours] * len(plays)), strict=True
        ):
            news.append({"world": " ".join(play), "outcomes": len(found), "first seen here": len(found - seen)})
            seen |= found
            broken += [f"{' '.join(play)}: {each}" for each in violations]
            print(f"bench: {' '.join(play)}", file=sys.stderr)
    by_module: dict[str, list[probes.Decision]] = collections.defaultdict(list)
    for each in sorted(decisions):
        by_module[each.module].append(each)
    rows: list[dict[str, Any]] = []
    for module, those in by_module.items():
        count = sum((each, taken) in seen for each in those for taken in (True, False))
        rows.append({"module": module, "outcomes": 2 * len(those), "seen": count / (2 * len(those))})
    if options.missing:
        _tell_missing(decisions, seen)
    return {
        "worlds": news,
        "modules": sorted(rows, key=lambda row: row["seen"]),
        "violations": "; ".join(broken) or "none",
        "outcomes": 2 * len(decisions),
        "seen": len(seen),
        "share": len(seen) / (2 * len(decisions)),
    }


def failed(result: dict[str, Any]) -> bool:
    return bool(result["share"] < WANTED) or result["violations"] != "none"


def _tell_missing(decisions: list[probes.Decision], seen: set[probes.Outcome]) -> None:
    for each in sorted(decisions):
        for taken, words in ((True, "entered"), (False, "passed by")):
            if (each, taken) not in seen:
                print(f"bench: {each.module}:{each.line}: never {words}", file=sys.stderr)


# -- in the other process: its imports come after the probes ----------------------------------------------------------------


def _plays(seeds: int) -> list[Play]:
    found: list[Play] = importlib.import_module("bench.plays").plays(seeds)
    return found


def _played(play: Play, hours: float) -> tuple[set[probes.Outcome], list[str]]:
    found: tuple[set[probes.Outcome], list[str]] = importlib.import_module("bench.plays").played(play, hours)
    return found
