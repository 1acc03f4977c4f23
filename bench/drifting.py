"""Growth pools that drift while everything goes wrong: worlds with a template change, judged by every promise.

Each seed is one run of the named world "drifting servers" with all faults and two processes that lead in turns: a pool of five with
`min: 2` and a budget of one whose template changes twice, and pools that lose a type, keep what they have, have no room for a
replacement, and are empty. The promises `warm` (fewer Ready machines than `min` never come of a removal) and `renewed` (in the end
every machine is what its pool asks for) are among those that are judged. A campaign goes on by its seeds: `--first` and `--seeds`.
"""

import argparse
import collections
import sys
from typing import Any, Final

from growth.sim import campaign
from growth.sim.scenario.model import Order, Outcome
from growth.sim.scenario.named import NAMED

WORLD: Final = "drifting servers"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--faults", default="all")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    scenario = NAMED[WORLD]
    orders = [
        Order(seed=seed, scenario=scenario, hours=scenario.hours, faults=options.faults)
        for seed in range(options.first, options.first + options.seeds)
    ]
    done: list[Outcome] = []
    for outcome in campaign.perform(orders, jobs=options.jobs):
        done.append(outcome)
        told = ", ".join(sorted({each.invariant for each in outcome.violations})) or "kept"
        print(f"seed {outcome.seed}: {told} ({len(done)} of {len(orders)})", file=sys.stderr, flush=True)
    broken = {each.seed: each.violations[0] for each in done if each.violations}
    return {
        "worlds": len(done),
        "worlds in which a promise was broken": len(broken),
        "machines bought": sum(each.scale_ups for each in done),
        "machines given back": sum(each.scale_downs for each in done),
        "faults": dict(sum((collections.Counter(each.faults) for each in done), collections.Counter())),
        "broken": [{"seed": seed, "promise": each.invariant, "at": each.at} for seed, each in sorted(broken.items())],
    }


def failed(result: dict[str, Any]) -> bool:
    return bool(result["worlds in which a promise was broken"])
