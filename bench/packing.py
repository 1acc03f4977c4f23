"""How long the `cost` packer takes, beside `first-fit` and Karpenter, on what it must do quickly.

Ours is timed from decoded objects to the finished plan, rehearsal and bound included, the best of three; Karpenter over
NewTopology, NewScheduler and Solve, once. Types are Karpenter's KWOK types. It ends with 1 where `cost` takes longer than
it may; the rows that it loses to a peer are printed all the same.
"""

import argparse
import random
from collections.abc import Mapping
from typing import Any, Final

from bench import catalogues, mixes
from bench.buying import Market
from bench.peers import karpenter
from bench.scheduling import catalogue_of
from growth.api.kinds import Json
from growth.planning.solve import Options

REPEATS: Final = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--without-peer", action="store_true", help="do not run Karpenter")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    types = catalogues.kwok_types()
    market = Market(types, catalogue_of(types))
    rows = []
    slow = []
    for name, pods, most in (
        ("100 pods", mixes.web(100), 0.15),
        ("1,000 pods of 30 classes", mixes.web(1000), 1.0),
        ("10,000 pods of 1,000 classes", many_sizes(10_000, 1_000), 5.0),
    ):
        objects = [mixes.node_pool(), *pods]
        seconds = {
            packer: min(market.growth(Options(packer=packer))(objects).seconds for _ in range(REPEATS))
            for packer in ("cost", "first-fit")
        }
        row: dict[str, Any] = {
            "pods": name,
            "cost_seconds": f"{seconds['cost']:.3f}",
            "at_most": most,
            "first_fit_seconds": f"{seconds['first-fit']:.3f}",
        }
        if not options.without_peer:
            theirs = market.peer(objects).seconds
            row |= {"karpenter_seconds": f"{theirs:.3f}", "times_faster": f"{theirs / seconds['cost']:.1f}"}
        if seconds["cost"] > most:
            slow.append(name)
        rows.append(row)
    return {"karpenter": karpenter.version(), "speed": rows, "too slow": ", ".join(slow) or "none"}


def failed(result: Mapping[str, Any]) -> bool:
    return bool(result["too slow"] != "none")


def many_sizes(count: int, sizes: int) -> list[Json]:
    """Pods of so many sizes, each equally often."""
    drawn = random.Random(mixes.SEED)
    made = [(drawn.randint(5, 400) * 10, drawn.randint(10, 800) * 10) for _ in range(sizes)]
    return [
        mixes.raw_pod(
            f"pod-{at:05}",
            uid=f"pod-{at:05}",
            cpu_milli=made[at % sizes][0],
            memory_mib=made[at % sizes][1],
            labels={"app": f"app-{at % sizes}"},
        )
        for at in range(count)
    ]
