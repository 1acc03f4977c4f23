"""Plans of generated clusters on the real kube-scheduler: it binds every pod where the plan has it.

For each plan the nodes are made, all but the planned one cordoned, and pods created in the recorded order
(`bench.playing`). Clusters whose placed pods wait for a provisioner are passed over.
"""

import argparse
import random
import sys
import time
from typing import Any

from bench.clusters import cluster
from bench.playing import Player, playable
from growth.planning.solve import solve
from tools.controlplane.plane import plane


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plans", type=int, default=50, help="how many plans")
    parser.add_argument("--doubts", action="store_true", help="compare the slow predicates with the scheduler, too")
    parser.add_argument("--first", type=int, default=0, help="the first seed")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Counts, and what was refused."""
    played = pods = 0
    refused: list[str] = []
    begun = time.perf_counter()
    seed = options.first - 1
    with plane(scheduler=True) as running:
        player = Player(running.url, str(running.ca), running.token)
        while played < options.plans:
            seed += 1
            made = cluster(seed, overhead=False)
            plan = solve(made.snapshot, made.demands)
            if not playable(made, plan):
                continue
            found = player.play(made, plan, doubts=random.Random(seed) if options.doubts else None)
            refused += [f"seed {seed}: {each.pod} on {each.node}: {each.said}" for each in found]
            played += 1
            pods += len(plan.order)
            if sys.stderr.isatty():
                print(f"\r{played} of {options.plans} plans", end="", file=sys.stderr, flush=True)
    return {
        "plans": played,
        "pods": pods,
        "refused": len(refused),
        "seconds": round(time.perf_counter() - begun, 1),
        "refusals": "; ".join(refused[:10]) or "none",
    }
