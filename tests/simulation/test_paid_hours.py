"""A machine of Hetzner's that nobody needs any more, with and without `--use-paid-time`: how long it stays, and what it costs."""

import asyncio
import copy

import pytest

from growth.api.pods import POD
from growth.sim.world.world import World
from tests.manifests import pod
from tests.simulation.test_learning_worlds import POOL
from tests.simulation.vendors import in_world


@pytest.mark.parametrize("used", [True, False])
def test_an_empty_machine_stays_for_the_hour_that_is_paid(used: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Pods that come meanwhile find it there; it goes before the next hour begins, and one hour is what it costs."""

    async def body(world: World) -> None:
        pool = copy.deepcopy(POOL)
        pool["spec"]["disruption"] = {"consolidateAfter": "30s", "budgets": [{"nodes": "100%"}]}
        await world.create([pool])
        half = world.hetzner
        assert half is not None
        await asyncio.sleep(60)
        await world.create([pod("short")])
        await asyncio.sleep(300)
        (bought,) = half.fake.ledger.purchases
        await world.admin.delete(POD, "short", namespace="default")
        await asyncio.sleep(1800)
        assert len(half.fake.machines()) == (1 if used else 0)
        await asyncio.sleep(1300)
        assert len(half.fake.machines()) == (1 if used else 0)
        await asyncio.sleep(400)
        assert half.fake.machines() == ()
        (paid,) = half.fake.ledger.purchases
        assert paid.server == bought.server
        assert paid.hours(half.fake.project.now) == 1

    in_world("hetzner", body, usePaidTime="true" if used else "false")
