"""Plans of generated clusters before the judge: none may fail.

Each seed is one small random cluster (`bench.clusters`); its plan is replayed with kube-scheduler's predicates and its
books are checked (`growth.sim.judge`). Prints each kind of complaint with the seeds that show it.
"""

import argparse
import collections
import sys
import time
from typing import Any

from bench.clusters import cluster
from growth.planning.solve import Options, solve
from growth.sim.judge import judge


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=10_000, help="how many clusters")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--packer", choices=("first-fit", "cost"), default="first-fit", help="who made the plans")
    parser.add_argument("--show", type=int, default=0, help="print the complaints of so many seeds")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Counts, and for each rule broken the first seeds that break it."""
    pods = placed = machines = filled = shown = 0
    reasons: collections.Counter[str] = collections.Counter()
    broken: dict[str, list[int]] = {}
    begun = time.perf_counter()
    for seed in range(options.first, options.first + options.seeds):
        made = cluster(seed)
        try:
            plan = solve(made.snapshot, made.demands, Options(packer=options.packer))
        except Exception as error:  # noqa: BLE001 - a crash is a finding like any other
            broken.setdefault(f"crash {type(error).__name__}", []).append(seed)
            continue
        pods += len(made.demands)
        placed += len(plan.order)
        machines += len(plan.claims)
        filled += sum(len(each.pods) for each in plan.filled)
        reasons.update({each.reasons[0].filter.value for each in plan.unplaced})
        complaints = judge(made.snapshot, made.demands, plan)
        for rule in {complaint.rule for complaint in complaints}:
            broken.setdefault(rule, []).append(seed)
        if complaints and shown < options.show:
            shown += 1
            for complaint in complaints:
                print(f"seed {seed}: {complaint}", file=sys.stderr)
    seconds = time.perf_counter() - begun
    return {
        "clusters": options.seeds,
        "failed": len({seed for seeds in broken.values() for seed in seeds}),
        "pods": pods,
        "placed": placed,
        "on_existing_nodes": filled,
        "machines": machines,
        "clusters_with_unplaced_by_filter": dict(sorted(reasons.items())),
        "seconds": round(seconds, 1),
        "broken": {rule: f"{len(seeds)} clusters, such as {seeds[:12]}" for rule, seeds in sorted(broken.items())}
        or "nothing",
    }
