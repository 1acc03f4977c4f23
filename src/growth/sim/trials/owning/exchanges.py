"""The process dies after every write in turn of a move with several machines: two by two others, and one by two that drifted.

As `crashes`, for what only such moves can get wrong: half of what replaces is bought, half of what goes is marked or gone.
"""

import asyncio
import dataclasses
import enum
from typing import Final

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Json
from growth.kube.lease import LeaseLost
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.trials.owning.crashes import RUN_SECONDS, SETTLE_SECONDS, unmarked
from growth.sim.trials.owning.life import Life
from growth.sim.trials.owning.stage import Pool, Stage

LARGE: Final = "8"
SMALL: Final = "4"
TWO: Final = 2


class Exchange(enum.StrEnum):
    """What is being replaced by two small machines when the process dies."""

    PAIR = "two machines"
    DRIFTED = "a drifted machine"

    @property
    def pods(self) -> int:
        """Two that cannot live together need two machines, whatever their size; six of one core fill two small ones."""
        return 2 if self is Exchange.PAIR else 6

    @property
    def machines(self) -> int:
        return 2 if self is Exchange.PAIR else 1

    @property
    def limit(self) -> int | None:
        """Room for what comes, and for no third. Where there is a limit a budget of one node allows one machine for it."""
        return 4 if self is Exchange.PAIR else None

    @property
    def sizes(self) -> list[str]:
        """What the pool may buy afterwards; a machine of a size that it may not has drifted."""
        return [SMALL, LARGE] if self is Exchange.PAIR else [SMALL]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """One run: the writes of the exchange, how often the process died, and how many machines were bought in all.

    `together` says whether one move had all of them: what replaces, and what went.
    """

    writes: int
    crashed: int
    bought: int
    together: bool


def run(exchange: Exchange, *, seed: int, crash_after: int | None = None) -> Exchanged:
    """One run; the process dies after the n-th write of the exchange. AssertionError where a promise is broken."""

    async def main(kernel: Kernel) -> Exchanged:
        stage = Stage(kernel, forgiven=(LeaseLost,))
        await stage.prepare(Pool(nodes=exchange.limit, sizes=(LARGE,), policy="WhenEmptyOrUnderutilized"))
        replica = stage.start("growth", Life())
        await stage.deploy("app", exchange.pods, **_APART if exchange is Exchange.PAIR else {})
        await stage.settle(pods=exchange.pods, machines=exchange.machines, seconds=SETTLE_SECONDS)
        before = replica.written
        if crash_after is not None:
            replica.crash_after_write(crash_after)
        await _resize(stage, exchange.sizes)
        together = await _exchanged(stage, exchange)
        await stage.settle(pods=exchange.pods, machines=TWO, seconds=SETTLE_SECONDS)
        await unmarked(stage)
        stage.check()
        assert crash_after is None or replica.crashed == 1, f"the process died {replica.crashed} times, not once"
        bought = stage.ledger.statistics().bought
        return Exchanged(writes=replica.written - before, crashed=replica.crashed, bought=bought, together=together)

    return sim.run(main, seed=seed, limit_seconds=RUN_SECONDS, keep=40).value


_APART: Final[Json] = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "app"}}, "topologyKey": names.HOSTNAME_LABEL}
            ]
        }
    }
}


async def _resize(stage: Stage, sizes: list[str]) -> None:
    pool = await stage.admin.get(NODE_POOL.raw, "default")
    wanted = pool["spec"]["template"]["spec"]["requirements"]
    for each in wanted:
        if each["key"] == "karpenter.kwok.sh/instance-cpu":
            each["values"] = sizes
    spec = {"template": {"spec": {"requirements": wanted}}}
    await stage.admin.patch(NODE_POOL, "default", {"spec": spec})


async def _exchanged(stage: Stage, exchange: Exchange) -> bool:
    """Until two machines of the smaller kind are there and nothing else; whether they came as one move."""
    deadline = stage.kernel.time() + SETTLE_SECONDS
    together = False
    while True:
        stage.check()
        claims = (await stage.admin.list(NODE_CLAIM)).items
        replaced = [each.metadata.annotations.get(names.REPLACES_ANNOTATION, "") for each in claims]
        whole = [text for text in replaced if text and len(text.split(",")) == exchange.machines]
        together = together or len(whole) == TWO
        kinds = [each.metadata.labels.get(names.INSTANCE_TYPE_LABEL, "") for each in claims]
        if [kind.split("-")[1] for kind in kinds if kind] == [f"{SMALL}x"] * TWO:
            return together
        assert stage.kernel.time() < deadline, f"not replaced after {SETTLE_SECONDS} s: {kinds}"
        await asyncio.sleep(0.5)
