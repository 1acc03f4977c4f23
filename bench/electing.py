"""Two electors on the simulation kernel, with partitions, crashes, freezes, wrong clocks and late writes, for each seed.

Nothing is compared: wall-clock seconds are those of the whole sweep, from the first run's start to the last one's end.
A write that passes a gate too late, a process that outlives its lease, or an end state that differs from that of a run
without late writes ends the sweep with the seed that shows it.
"""

import argparse
import sys
import time
from typing import Any

from growth.sim.trials.electing import elect, without_late_writes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    began = time.perf_counter()
    totals = {"terms": 0, "lost": 0, "crashed": 0, "passed": 0, "refused": 0, "late": 0}
    for done, seed in enumerate(range(options.first, options.first + options.seeds), start=1):
        elected = elect(seed)
        if elected.state != without_late_writes():
            raise AssertionError(f"seed {seed}: the end state is {elected.state}")
        for name in totals:
            totals[name] += getattr(elected, name)
        if done % 100 == 0:
            print(f"electing: {done} of {options.seeds} seeds", file=sys.stderr)
    return {"seeds": options.seeds, **totals, "seconds": time.perf_counter() - began}
