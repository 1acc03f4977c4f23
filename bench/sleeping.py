"""A leader's machine is suspended for 1, 20 and 200 s at many moments of a world, and wakes while another leads.

See `growth.sim.trials.sleeping`. The world is a scale-up and a scale-down; a moment is right after one of the leader's
writes, evenly from the first to the last. Each row is a length of sleep: how many worlds, in how many of them another took
the Lease meanwhile; then, from the simulated server's own log, writes of the sleeper after that, machines that a claim had
beyond its first, machines without a claim and claims without a machine at the end; and worlds that broke an invariant.
Nothing is timed. All but the first three columns must be 0.
"""

import argparse
import sys
from typing import Any

from growth.sim.scenario.vendors import PROVIDERS
from growth.sim.trials.sleeping import PLAN, moments, sleep


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--provider", choices=PROVIDERS, default="kwok")
    parser.add_argument("--share", type=int, default=1, help="of the moments only every so-many-th")
    parser.add_argument("--sabotage", default="", help="a bug of growth.sim.chaos.sabotage, to see it counted")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    awake = sleep(options.seed, after=0, seconds=0.0, provider=options.provider)
    rows = []
    for seconds, count in PLAN:
        row: dict[str, Any] = {
            "asleep": seconds,
            "worlds": 0,
            "lease_taken": 0,
            "late_writes": 0,
            "doubled": 0,
            "lost": 0,
            "broken": 0,
        }
        for after in moments(awake.writes, count)[:: options.share]:
            slept = sleep(
                options.seed, after=after, seconds=seconds, provider=options.provider, sabotage=options.sabotage
            )
            row["worlds"] += 1
            row["lease_taken"] += slept.taken
            row["late_writes"] += len(slept.late)
            row["doubled"] += slept.doubled
            row["lost"] += slept.lost
            row["broken"] += bool(slept.broken)
            for said in (*slept.late, *slept.broken):
                print(f"bench: {seconds:g} s after write {after}: {said}", file=sys.stderr)
        rows.append(row)
        print(f"bench: {seconds:g} s: {row['worlds']} worlds", file=sys.stderr)
    return {"provider": options.provider, "seed": options.seed, "writes": awake.writes, "sleeps": rows}


def failed(result: dict[str, Any]) -> bool:
    return any(row[name] for row in result["sleeps"] for name in ("late_writes", "doubled", "lost", "broken"))
