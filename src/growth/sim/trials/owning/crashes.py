"""The process dies after every write in turn: of a scale-up, a scale-down, a replacement, the deletion of a NodePool.

A first run, without a crash, says how many writes an act takes. Then the same run is made as many times, and each time the
process dies at the moment when the server has applied the next write, before it hears the answer. It comes back some
seconds later, with nothing but the server's memory. In the end machines = claims = Nodes, every pod runs, nothing was
bought twice and nothing left behind, no taint and no claim that replaces what is still there; the ledger looks at every
revision in between too.
"""

import asyncio
import dataclasses
import enum
from typing import Final

from growth.api import names
from growth.api.conditions import is_true
from growth.api.karpenter import NODE_CLAIM
from growth.api.nodes import NODE
from growth.cluster.replacing import being_replaced
from growth.kube.lease import LeaseLost
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.trials.owning.life import Life
from growth.sim.trials.owning.stage import Body, Pool, ServerPool, Stage

PODS: Final = 10
LIMIT: Final = 3
POOL: Final = Pool(nodes=LIMIT)
# Ten pods of one cpu are two machines of eight, or one of eight and one of four. Of those that are left after a
# replacement one is enough, and of the smaller kind; the limit leaves room for one machine more, and no second.
LEFT: Final = 2
PODS_ON_ONE: Final = 7
SETTLE_SECONDS: Final = 900.0
RUN_SECONDS: Final = 7200.0


class Act(enum.StrEnum):
    """What is going on when the process dies."""

    UP = "scale-up"
    DOWN = "scale-down"
    REPLACEMENT = "replacement"
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
        replacing = act is Act.REPLACEMENT
        pods = PODS_ON_ONE if replacing else PODS
        await stage.prepare(_consolidated(pool) if replacing else pool)
        replica = stage.start("growth", body or Life())
        # Spot machines are not replaced by spot machines.
        await stage.deploy("app", 0, nodeSelector={names.CAPACITY_TYPE_LABEL: "on-demand"} if replacing else {})
        if act is not Act.UP:
            await stage.scale("app", pods)
            await stage.settle(pods=pods, seconds=SETTLE_SECONDS)
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
        case Act.REPLACEMENT:
            await stage.scale("app", LEFT)
            await _replaced(stage)
            await stage.settle(pods=LEFT, machines=1, seconds=SETTLE_SECONDS)
            await unmarked(stage)
        case Act.DELETION:
            await stage.admin.delete(pool.kind, pool.name)
            await stage.settle(pods=None, machines=0, seconds=SETTLE_SECONDS)


def _consolidated(pool: Pool | ServerPool) -> Pool | ServerPool:
    """A pool of the same API whose machines are replaced, with room for one more."""
    if isinstance(pool, ServerPool):
        return ServerPool(nodes=2, optimise="Continuous")
    return Pool(nodes=2, policy="WhenEmptyOrUnderutilized")


async def _replaced(stage: Stage) -> None:
    """Until nothing but one machine of the smaller kind is there."""
    deadline = stage.kernel.time() + SETTLE_SECONDS
    while True:
        stage.check()
        claims = (await stage.admin.list(NODE_CLAIM)).items
        kinds = [each.metadata.labels.get(names.INSTANCE_TYPE_LABEL, "") for each in claims]
        if [kind.split("-")[1] for kind in kinds if kind] == ["4x"]:
            return
        assert stage.kernel.time() < deadline, f"not replaced after {SETTLE_SECONDS} s: {kinds}"
        await asyncio.sleep(1.0)


async def unmarked(stage: Stage) -> None:
    """Nothing says of what is there that it is being disrupted, or replaced."""
    nodes = (await stage.admin.list(NODE)).items
    claims = (await stage.admin.list(NODE_CLAIM)).items
    tainted = [
        each.metadata.name for each in nodes if any(one.key == names.DISRUPTED_TAINT for one in each.spec.taints)
    ]
    marked = [each.metadata.name for each in claims if is_true(each.status.conditions, names.DISRUPTION_REASON)]
    assert not tainted, f"left tainted: {tainted}"
    assert not marked, f"left with a reason for its disruption: {marked}"
    assert not being_replaced(claims), f"left to be replaced: {being_replaced(claims)}"
