"""An informer on the simulation kernel: 2,000 changes, 100 cuts, 20 losses of history, once for each seed.

Nothing is compared: wall-clock seconds are those of the whole sweep, from the first run's start to the last one's end.
A broken promise ends the sweep with the seed that shows it.
"""

import argparse
import sys
import time
from typing import Any

from growth.sim.trials.following import follow


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--changes", type=int, default=2000)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    began = time.perf_counter()
    totals: dict[str, int] = {"events": 0, "reconnects": 0, "gone": 0, "relists": 0, "stalls": 0, "deletions": 0}
    totals["deletions_by_relist"] = 0
    for done, seed in enumerate(range(options.first, options.first + options.seeds), start=1):
        followed = follow(seed, changes=options.changes, shuffle=seed % 3 == 0)
        for name in totals:
            totals[name] += getattr(followed.statistics, name)
        if done % 100 == 0:
            print(f"informer: {done} of {options.seeds} seeds", file=sys.stderr)
    return {"seeds": options.seeds, "changes": options.changes, **totals, "seconds": time.perf_counter() - began}
