"""Bursts against limits in the simulated cluster, many seeds: is a limit ever exceeded, even for one revision?

Each seed is a whole run of `growth.sim.trials.owning.limits`: two replicas, in half of the seeds both of them leading; a
burst of pods many times larger than the limit allows; processes that die, freeze and come back, networks that delay, lose
and refuse. An independent ledger counts claims together with reserved names at every revision of the server.

Four rounds: `limits.nodes: 10` of the pool, `--max-nodes` and `--max-hourly` of the cluster, and a growth pool with `min`,
`max` and `limits.nodes`. Nothing is timed.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import Any, Final

from growth.operator import logs
from growth.ports import SystemClock
from growth.sim.ledger import Caps
from growth.sim.trials.owning.limits import LIMIT, Held, burst, prices
from growth.sim.trials.owning.stage import ServerPool

MAX_NODES: Final = 7
GROWTH: Final = "growth pool"
SERVERS: Final = ServerPool(nodes=7, types=(("c-4x-amd64-linux", 2, 4), ("c-8x-amd64-linux", 0, 5)))
TOLD_EVERY: Final = 25  # seeds: a long campaign says how far it is
# Some small machines, in billionths an hour.
MAX_HOURLY: Final = 1_000_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=500, help="of the limit of the pool")
    parser.add_argument("--cap-seeds", type=int, default=100, help="of each cap of the cluster")
    parser.add_argument("--growth-seeds", type=int, default=500, help="of the growth pool")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--workers", type=int, default=1, help="processes side by side")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    logs.configure(clock=SystemClock(), stream=sys.stderr, level="error")
    result: dict[str, Any] = {}
    for name, run in ROUNDS.items():
        count = {"limits.nodes": options.seeds, GROWTH: options.growth_seeds}.get(name, options.cap_seeds)
        if count:
            result[name] = _round(run, range(options.first, options.first + count), workers=options.workers)
    return result


def failed(result: dict[str, Any]) -> bool:
    return any(each["broken"] for each in result.values())


def of_pool(seed: int) -> Held:
    return burst(seed)


def of_nodes(seed: int) -> Held:
    return burst(seed, limit=None, caps=Caps(max_nodes=MAX_NODES))


def of_money(seed: int) -> Held:
    return burst(seed, limit=None, caps=Caps(max_hourly=MAX_HOURLY, prices=prices()))


def of_growth_pool(seed: int) -> Held:
    """Every other pool is optimised continuously."""
    return burst(seed, pool=dataclasses.replace(SERVERS, optimise="Continuous" if seed % 2 else "WhenEmpty"))


ROUNDS: Final[dict[str, Callable[[int], Held]]] = {
    "limits.nodes": of_pool,
    "--max-nodes": of_nodes,
    "--max-hourly": of_money,
    GROWTH: of_growth_pool,
}
ALLOWED: Final = {"limits.nodes": LIMIT, "--max-nodes": MAX_NODES, "--max-hourly": MAX_HOURLY}


def tried(run: Callable[[int], Held], seed: int) -> Held | str:
    """What held, or what broke with this seed."""
    try:
        return run(seed)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other seeds are run too
        return f"seed {seed}: {type(error).__name__}: {error}"


def _round(run: Callable[[int], Held], seeds: range, *, workers: int) -> dict[str, Any]:
    one = functools.partial(tried, run)
    found: list[Held | str] = []
    with concurrent.futures.ProcessPoolExecutor(workers) as pool:
        for each in pool.map(one, seeds):
            found.append(each)
            if len(found) % TOLD_EVERY == 0:
                broken = sum(isinstance(held, str) for held in found)
                print(f"{len(found)} of {len(seeds)} seeds, {broken} broken", file=sys.stderr, flush=True)
    held = [each for each in found if isinstance(each, Held)]
    failures = [each for each in found if isinstance(each, str)]
    most = collections.Counter(each.most for each in held)
    return {
        "seeds": len(seeds),
        "broken": len(failures),
        "first broken": failures[0][:500] if failures else "",
        "most at any revision": max(most, default=0),
        "most an hour, billionths": max((each.most_hourly for each in held), default=0),
        "machines bought": sum(each.bought for each in held),
        "processes died": sum(each.crashed for each in held),
        "runs with two leaders": sum(each.both_led for each in held),
    }
