"""The simulated autoscaler dies after every write in turn, of a scale-up, a scale-down and the deletion of the pool.

Once for a NodePool of Karpenter's API and once for a growth pool.

See `growth.sim.trials.owning.crashes`, and `exchanges` for moves with several machines. Printed for each act: how many
writes it takes without a crash, so how many times it was repeated with one, and how many of those ended with something
leaked, bought twice or not running. Nothing is timed.
"""

import argparse
import sys
from typing import Any, Final

from growth.operator import logs
from growth.ports import SystemClock
from growth.sim.trials.owning.crashes import POOL, Act, run
from growth.sim.trials.owning.exchanges import Exchange
from growth.sim.trials.owning.exchanges import run as run_exchange
from growth.sim.trials.owning.stage import Pool, ServerPool

SERVERS: Final = ServerPool(nodes=4, types=(("c-4x-amd64-linux", 1, 2), ("C-8x-amd64-linux", 0, 3)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="crash after every so many writes only")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    logs.configure(clock=SystemClock(), stream=sys.stderr, level="error")
    rows = [
        everywhere(act, seed=options.seed, every=options.every, pool=pool) for pool in (POOL, SERVERS) for act in Act
    ]
    rows += [exchanged(each, seed=options.seed, every=options.every) for each in Exchange]
    return {"seed": options.seed, "crashes": sum(row["crashes"] for row in rows), "acts": rows}


def failed(result: dict[str, Any]) -> bool:
    return any(row["broken"] for row in result["acts"])


def everywhere(act: Act, *, seed: int, every: int = 1, pool: Pool | ServerPool = POOL) -> dict[str, Any]:
    """One act, once without a crash and then once for each write."""
    calm = run(act, seed=seed, pool=pool)
    broken = []
    crashes = 0
    for number in range(1, calm.writes + 1, every):
        crashes += 1
        try:
            run(act, seed=seed, crash_after=number, pool=pool)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other writes are tried too
            broken.append(f"after write {number}: {type(error).__name__}: {error}")
    return {
        "act": str(act),
        "pool": pool.kind.api_version,
        "writes": calm.writes,
        "crashes": crashes,
        "broken": len(broken),
        "first": broken[0][:300] if broken else "",
    }


def exchanged(exchange: Exchange, *, seed: int, every: int = 1) -> dict[str, Any]:
    """The same for a move with several machines."""
    calm = run_exchange(exchange, seed=seed)
    broken = []
    numbers = range(1, calm.writes + 1, every)
    for number in numbers:
        try:
            run_exchange(exchange, seed=seed, crash_after=number)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other writes are tried too
            broken.append(f"after write {number}: {type(error).__name__}: {error}")
    return {
        "act": f"{exchange} replaced by two",
        "pool": POOL.kind.api_version,
        "writes": calm.writes,
        "crashes": len(numbers),
        "broken": len(broken),
        "first": broken[0][:300] if broken else "",
    }
