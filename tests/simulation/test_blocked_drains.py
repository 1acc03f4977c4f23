"""A node that cannot be drained for long: what is bought for its pods meanwhile, in the whole wired system."""

import asyncio
from typing import Any

import pytest

from growth.api.karpenter import NODE_CLAIM
from growth.api.kinds import Json
from growth.api.pods import POD
from growth.api.policy import POD_DISRUPTION_BUDGET
from growth.api.workloads import DEPLOYMENT
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.trials.owning.life import Life
from growth.sim.trials.owning.stage import Pool, Stage
from growth.sim.world.cluster import workload

SELECTOR: Json = {"matchLabels": {"app": "web"}}
# The second would allow an eviction if there were two pods.
BUDGETS: dict[str, Json] = {"never": {"maxUnavailable": 0}, "not now": {"minAvailable": 1}}


async def blocked(kernel: Kernel, how: str) -> tuple[set[str], int, int]:
    """Every claim that was ever there, and how many claims and pods there are in the end."""
    stage = Stage(kernel)
    await stage.prepare(Pool())
    stage.start("growth", Life())
    body = workload("web", 1)
    if how == "annotation":
        template: dict[str, Any] = body["spec"]["template"]["metadata"]
        template["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    else:
        budget = {"metadata": {"name": "web"}, "spec": {"selector": SELECTOR, **BUDGETS[how]}}
        await stage.admin.create(POD_DISRUPTION_BUDGET, budget, namespace="default")
    await stage.admin.create(DEPLOYMENT, body, namespace="default")
    await asyncio.sleep(60)
    (first,) = (await stage.admin.list(NODE_CLAIM)).items
    await stage.admin.delete(NODE_CLAIM, first.metadata.name)
    seen: set[str] = set()
    for _ in range(180):
        await asyncio.sleep(10)
        seen |= {each.metadata.name for each in (await stage.admin.list(NODE_CLAIM)).items}
    claims = len((await stage.admin.list(NODE_CLAIM)).items)
    return seen, claims, len((await stage.admin.list(POD)).items)


@pytest.mark.parametrize(("how", "spare"), [("annotation", 0), ("never", 0), ("not now", 1)])
def test_pods_that_may_not_leave_do_not_buy_machines_again_and_again(how: str, spare: int) -> None:
    """In half an hour of a blocked drain: a machine that waits where the pod may leave any moment, and none otherwise."""

    async def main(kernel: Kernel) -> tuple[set[str], int, int]:
        return await blocked(kernel, how)

    seen, claims, pods = sim.run(main, seed=1, limit_seconds=100_000).value
    assert (len(seen), claims, pods) == (1 + spare, 1 + spare, 1), seen
