"""What the checks know of who sent a request: that its process stood still before, and when it went on."""

import asyncio

from growth.sim import kernel as sim
from growth.sim.campaign import quiet
from growth.sim.invariants.auditor import Auditor
from growth.sim.kernel import Kernel
from growth.sim.scenario import manifests
from growth.sim.scenario.model import Scenario
from growth.sim.seams import Step
from growth.sim.world.world import World

STANDS_STILL_AT, FOR = 31.5, 4.0


def test_the_checks_know_when_a_sender_went_on_after_it_had_stood_still() -> None:
    """Of requests before it they know of none, of every later one of that process when it was; other processes have none."""
    quiet()

    async def main(kernel: Kernel) -> list[tuple[float, float]]:
        world, auditor, heard = World(kernel), Auditor(), []
        auditor.attach(world)

        def hear(step: Step) -> None:
            if step.actor.is_growth:
                heard.append((step.at, auditor.case.thawed))

        world.witness.listeners.append(hear)
        await world.begin()
        await world.create(Scenario(objects=(manifests.node_pool("default"),)).objects)
        world.start()
        await asyncio.sleep(STANDS_STILL_AT)
        for replica in world.replicas:
            if replica.autoscaler is not None and replica.autoscaler.leading and replica.process is not None:
                replica.process.freeze(FOR)
        await asyncio.sleep(60.0)
        return heard

    heard = sim.run(main, seed=1).value
    before = {thawed for at, thawed in heard if at < STANDS_STILL_AT}
    after = {thawed for at, thawed in heard if at > STANDS_STILL_AT + FOR}
    assert before == {float("-inf")}
    assert {each for each in after if each > 0} == {STANDS_STILL_AT + FOR}
