"""An idle cluster is left alone. `python -m bench lag --idle` shows the same of 200 nodes on a real control plane."""

import asyncio

from growth.kube.lease import LeaseLost
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.trials.owning.life import Life
from growth.sim.trials.owning.stage import Pool, Stage

NODES = 40
# Nominations end, statuses are counted, events are told.
AFTERMATH_SECONDS = 60.0
IDLE_SECONDS = 300.0


def test_an_idle_cluster_sees_no_write_but_the_lease() -> None:
    """For five minutes neither Growth nor its cloud writes anything; the lease is renewed all the while."""

    async def main(kernel: Kernel) -> tuple[dict[str, int], int]:
        stage = Stage(kernel, forgiven=(LeaseLost,))
        await stage.prepare(Pool(sizes=("2",), consolidate_after="30s"))
        stage.start("growth", Life())
        await stage.deploy("wide", NODES, cpu="1500m")
        await stage.settle(pods=NODES, machines=NODES, seconds=900.0)
        await asyncio.sleep(AFTERMATH_SECONDS)
        before = stage.cluster.server.statistics().writes
        await asyncio.sleep(IDLE_SECONDS)
        after = stage.cluster.server.statistics().writes
        written = {user: after[user] - before.get(user, 0) for user in ("growth", "growth-kwok")}
        return written, after["growth-elector"] - before["growth-elector"]

    written, renewals = sim.run(main, seed=1).value
    assert written == {"growth": 0, "growth-kwok": 0}
    assert renewals > 100
