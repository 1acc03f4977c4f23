"""The process dies after every write in turn: of a scale-up, of a scale-down, of the deletion of a NodePool.

A first run, without a crash, says how many writes an act takes. Then the same run is made as many times, and each time the
process dies at the moment when the server has applied the next write, before it hears the answer. It comes back some
seconds later, with nothing but the server's memory. In the end machines = claims = Nodes, every pod runs, nothing was
bought twice and nothing left behind; the ledger looks at every revision in between too.
"""

import dataclasses
import enum
from typing import Final

from growth.kube.lease import LeaseLost
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.trials.owning.life import Life
from growth.sim.trials.owning.stage import Body, Pool, ServerPool, Stage

PODS: Final = 10
LIMIT: Final = 3
POOL: Final = Pool(nodes=LIMIT)
# Ten pods of one cpu are two machines of eight, or one of eight and one of four.
SETTLE_SECONDS: Final = 900.0
RUN_SECONDS: Final = 7200.0


class Act(enum.StrEnum):
    """What is going on when the process dies."""

    UP = "scale-up"
    DOWN = "scale-down"
    DELETION = "deletion of the NodePool"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One run: how many writes the act took, how often the process died, what was bought, and the trace's hash."""

    act: Act
    seed: int
    writes: int
    crashed: int
    bought: int
    seconds: float
    digest: str


def run(
    act: Act,
    *,
    seed: int,
    crash_after: int | None = None,
    body: Body | None = None,
    pool: Pool | ServerPool = POOL,
) -> Ended:
    """One run; the process dies after the n-th write of the act. AssertionError where a promise is broken."""
    least = sum(each for _, each, _ in pool.types) if isinstance(pool, ServerPool) else 0

    async def main(kernel: Kernel) -> tuple[int, int, int]:
        stage = Stage(kernel, forgiven=(LeaseLost,))
        await stage.prepare(pool)
        replica = stage.start("growth", body or Life())
        await stage.deploy("app", 0)
        if act is not Act.UP:
            await stage.scale("app", PODS)
            await stage.settle(pods=PODS, seconds=SETTLE_SECONDS)
        before = replica.written
        if crash_after is not None:
            replica.crash_after_write(crash_after)
        await _perform(act, stage, pool, least)
        stage.check()
        assert crash_after is None or replica.crashed == 1, f"the process died {replica.crashed} times, not once"
        return replica.written - before, replica.crashed, stage.ledger.statistics().bought

    done = sim.run(main, seed=seed, limit_seconds=RUN_SECONDS, keep=40)
    writes, crashed, bought = done.value
    return Ended(
        act=act,
        seed=seed,
        writes=writes,
        crashed=crashed,
        bought=bought,
        seconds=done.seconds,
        digest=done.digest,
    )


async def _perform(act: Act, stage: Stage, pool: Pool | ServerPool, least: int) -> None:
    """`least` machines stay without load."""
    match act:
        case Act.UP:
            await stage.scale("app", PODS)
            await stage.settle(pods=PODS, seconds=SETTLE_SECONDS)
        case Act.DOWN:
            await stage.scale("app", 0)
            await stage.settle(pods=0, machines=least, seconds=SETTLE_SECONDS)
        case Act.DELETION:
            await stage.admin.delete(pool.kind, pool.name)
            await stage.settle(pods=None, machines=0, seconds=SETTLE_SECONDS)
