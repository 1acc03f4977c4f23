"""Which seed catches each deliberate bug: the table of invariants, sabotages and seeds.

For each sabotage of `growth.sim.chaos.sabotage` seeds are tried from 0 on, until its invariant is violated. Nothing is
timed. It fails where one is not caught, or where an invariant has no sabotage.
"""

import argparse
import sys
from typing import Any

from growth.operator import logs
from growth.ports import SystemClock
from growth.sim.chaos.sabotage import SABOTAGES
from growth.sim.invariants.auditor import ALL
from growth.sim.runs import run
from growth.sim.scenario.generate import generate
from growth.sim.scenario.model import Order


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=50, help="how many seeds are tried for each at most")
    parser.add_argument("--only", default="", help="one sabotage, by its name")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    logs.configure(clock=SystemClock(), stream=sys.stderr, level="error")
    rows = []
    for name, sabotage in SABOTAGES.items():
        if options.only not in {"", name}:
            continue
        seed = _caught(name, sabotage.breaks, options)
        rows.append({"invariant": sabotage.breaks, "sabotage": name, "seed": "-" if seed is None else seed})
        print(f"bench: {name}: {'not caught' if seed is None else f'seed {seed}'}", file=sys.stderr)
    without = sorted(set(ALL) - {each.breaks for each in SABOTAGES.values()})
    return {"without_sabotage": ", ".join(without) or "none", "sabotages": rows}


def failed(result: dict[str, Any]) -> bool:
    return result["without_sabotage"] != "none" or any(row["seed"] == "-" for row in result["sabotages"])


def _caught(name: str, invariant: str, options: argparse.Namespace) -> int | None:
    for seed in range(options.seeds):
        hours = SABOTAGES[name].hours
        outcome = run(Order(seed=seed, scenario=generate(seed, hours=hours), hours=hours, faults="all", sabotage=name))
        if any(each.invariant == invariant for each in outcome.violations):
            return seed
    return None
