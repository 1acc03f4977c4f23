"""A burst of pods against a limit, with processes that die, networks that lie, and two replicas that both lead.

Each seed draws its own misfortunes: how late the watches tell, how often writes conflict, get lost or answer nothing; when
processes die or freeze; and whether the two replicas share one Lease or each has its own and believes that it leads.
At no revision may there be more claims and reserved names together than the limit allows.
"""

import asyncio
import dataclasses
from typing import Final

from growth.kube.errors import KubeError
from growth.kube.lease import LeaseLost
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.ledger import NO_CAPS, Caps
from growth.sim.network import Faults
from growth.sim.ports import SimRandom
from growth.sim.trials.owning.life import CATALOGUE, Life
from growth.sim.trials.owning.stage import Body, Pool, Replica, ServerPool, Stage

LIMIT: Final = 10
PODS: Final = 500
SIZES: Final = ("4",)  # three pods of one cpu
WAVES: Final = (0, 3, 9, 15, 24, 27, 30, 36, 60)
SMALLEST: Final = ("c-4x-amd64-linux", "on-demand")
DISTURBED_SECONDS: Final = 120.0
SETTLE_SECONDS: Final = 600.0
RUN_SECONDS: Final = 7200.0
# No request is on its way for longer than this; a claim is not created from a reservation half as old as one that is
# released, and this is less than the difference.
LATEST_WRITE_SECONDS: Final = 20.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One run: the most that was ever counted, what was bought, how often processes died, who led."""

    seed: int
    most: int
    most_hourly: int
    bought: int
    crashed: int
    both_led: bool
    digest: str


def burst(
    seed: int,
    *,
    pods: int = PODS,
    limit: int | None = LIMIT,
    caps: Caps = NO_CAPS,
    two_leaders: bool | None = None,
    body: Body | None = None,
    pool: ServerPool | None = None,
) -> Held:
    """One run. AssertionError where a limit was exceeded, something bought twice or left behind.

    `pool` is a growth pool instead of one with `limit` nodes.
    """
    most_machines = _allowed(limit, caps) if pool is None else _largest(pool)
    least = 0 if pool is None else sum(each for _, each, _ in pool.types)
    random = SimRandom(seed, "limits")
    both = random.chance(0.5) if two_leaders is None else two_leaders
    faults = _faults(random)

    async def main(kernel: Kernel) -> tuple[int, int, int, int]:
        stage = Stage(kernel, caps=caps, late_writes=True, forgiven=(LeaseLost, KubeError))
        await stage.prepare(pool or Pool(nodes=limit, sizes=SIZES))
        life = body or Life()
        team = [
            stage.start("a", life, faults=faults, lease="growth"),
            stage.start("b", life, faults=faults, lease="other" if both else "growth"),
        ]
        await stage.deploy("burst", 0)
        moving = [
            kernel.create_task(_disturb(kernel, team, random.stream("fate"))),
            kernel.create_task(_swell(kernel, stage, random.stream("waves"))),
        ]
        while not all(task.done() for task in moving):
            await asyncio.sleep(1.0)
            stage.check()
        for task in moving:
            task.result()
        await stage.scale("burst", pods)
        # Left in peace it buys all that it may, and no more.
        await stage.settle(pods=None, machines=most_machines, seconds=SETTLE_SECONDS)
        await stage.scale("burst", 0)
        await stage.settle(pods=0, machines=least, seconds=SETTLE_SECONDS)
        seen = stage.ledger.statistics()
        return seen.most, seen.most_hourly, seen.bought, sum(each.crashed for each in team)

    done = sim.run(main, seed=seed, limit_seconds=RUN_SECONDS, keep=40)
    most, most_hourly, bought, crashed = done.value
    return Held(
        seed=seed,
        most=most,
        most_hourly=most_hourly,
        bought=bought,
        crashed=crashed,
        both_led=both,
        digest=done.digest,
    )


def _largest(pool: ServerPool) -> int:
    """How many machines a growth pool may have."""
    together = sum(most for _, _, most in pool.types)
    return together if pool.nodes is None else min(together, pool.nodes)


def _allowed(limit: int | None, caps: Caps) -> int:
    """How many machines of the pool's one size may be bought."""
    if limit is not None:
        return limit
    if caps.max_nodes is not None:
        return caps.max_nodes
    assert caps.max_hourly is not None, "a burst needs something to hold it"
    cheapest = min(price for (kind, _, terms), price in caps.prices.items() if (kind, terms) == SMALLEST)
    return caps.max_hourly // cheapest


def prices() -> dict[tuple[str, str, str], int]:
    """What the ledger reckons with under a cap of money: the list prices of the simulated cloud."""
    return {
        (kind.name, offering.zone, offering.capacity_type): offering.price
        for kind in CATALOGUE.types
        for offering in kind.offerings
        if offering.price is not None
    }


def _faults(random: SimRandom) -> Faults:
    slow = random.choice((0.02, 0.3, 2.0))
    return Faults(
        latency=(0.001, random.choice((0.01, 0.2))),
        conflict=random.choice((0.0, 0.05)),
        throttled=random.choice((0.0, 0.02)),
        server_error=random.choice((0.0, 0.03)),
        unreachable=random.choice((0.0, 0.02)),
        lost_answer=random.choice((0.0, 0.03)),
        broken_answer=random.choice((0.0, 0.03)),
        delayed_write=random.choice((0.0, 0.05)),
        write_delay=(1.0, LATEST_WRITE_SECONDS),
        watch_delay=(0.0, slow),
        watch_cut_seconds=random.choice((20.0, 200.0)),
        watch_gone=0.2,
    )


async def _swell(kernel: Kernel, stage: Stage, random: SimRandom) -> None:
    """Before the burst, waves: some machines' worth of pods more or less, too quickly for machines to follow."""
    await asyncio.sleep(random.uniform(3.0, 10.0))
    while kernel.time() < DISTURBED_SECONDS:
        await stage.scale("burst", random.choice(WAVES))
        await asyncio.sleep(random.uniform(0.5, 8.0))


async def _disturb(kernel: Kernel, team: list[Replica], random: SimRandom) -> None:
    """Something happens to one or the other every few seconds; then the network is good again."""
    while kernel.time() < DISTURBED_SECONDS:
        await asyncio.sleep(random.uniform(4.0, 20.0))
        replica = random.choice(team)
        what, number = random.choice(("crash", "crash", "crash after a write", "freeze", "cut")), random.between(1, 12)
        seconds = random.uniform(1.0, 12.0)
        process = replica.process
        if process is None or process.dead or process.frozen:
            continue
        match what:
            case "crash":
                process.crash()
            case "crash after a write":
                process.crash_after_write(number)
            case "freeze":
                process.freeze(seconds)
            case _:
                for network in replica.networks:
                    network.cut_watches()
    for replica in team:
        replica.mend()
