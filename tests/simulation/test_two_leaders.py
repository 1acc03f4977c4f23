"""Two replicas that both believe to lead, in a whole world: they really do, both of them write, and no promise breaks."""

import asyncio
import collections

from growth.api import names
from growth.operator.wiring import Role
from growth.sim import kernel as sim
from growth.sim.campaign import quiet
from growth.sim.company import company
from growth.sim.kernel import Kernel
from growth.sim.scenario import manifests
from growth.sim.scenario.load import Load
from growth.sim.scenario.model import Order, PodShape, Scenario, Waves
from growth.sim.seams import Step
from growth.sim.world.world import World

HOURS = 0.75
LEASES = ("coordination.k8s.io", "leases")


class Overlaps:
    """How long after another took the Lease its last holder still wrote, and how many writes that were."""

    def __init__(self) -> None:
        self.holder = ""
        self.taken_at = 0.0
        self.seconds: collections.Counter[str] = collections.Counter()
        self.writes = 0
        self._began: set[str] = set()

    def __call__(self, step: Step) -> None:
        if step.which == LEASES and step.key[1] == names.LEADER_LEASE:
            holder = step.last["spec"].get("holderIdentity") or ""
            if holder and holder != self.holder:
                self.holder, self.taken_at = holder, step.at
        elif step.actor.role in {Role.GROWTH, Role.CLOUD}:
            process = step.actor.process
            if process == self.holder:
                self._began.add(process)
            elif self.holder in self._began:  # both write
                self.writes += 1
                self.seconds[process] = max(self.seconds[process], round(step.at - self.taken_at))


def test_both_leaders_write_for_as_long_as_a_lost_lease_lets_them() -> None:
    """A leader that cannot know that it was replaced writes until its renewal is too old; limits and all else hold."""
    four = {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]}
    pool = manifests.node_pool("default", requirements=(four,), limits={"nodes": "6"}, consolidate_after="0s")
    load = Waves(name="app", low=0, high=24, period="3m", steps=4, pod=PodShape(cpu="1"))
    scenario = Scenario(hours=HOURS, objects=(pool,), workloads=(load,))
    order = Order(seed=3, scenario=scenario, hours=HOURS, faults="two-leaders=240")
    seen = Overlaps()
    quiet()

    async def main(kernel: Kernel) -> None:
        with_it = company(order)
        world = World(kernel, seams=with_it.seams)
        world.quiet_from = order.busy_seconds
        world.witness.listeners.append(seen)
        with_it.attach(world)
        await world.begin()
        await world.create(scenario.objects)
        world.run(Load(world, scenario, until=order.busy_seconds, traces={}).run(), with_it.disturb(world))
        world.start()
        await asyncio.sleep(order.busy_seconds)
        world.over.set()
        await asyncio.sleep(order.hours * 3600.0 - order.busy_seconds)
        world.check()
        await with_it.finish(world)
        assert list(with_it.violations) == []
        assert with_it.counts["two-leaders"] > 3

    sim.run(main, seed=order.seed)
    assert max(seen.seconds.values()) >= 6, seen.seconds
    assert seen.writes > 20
