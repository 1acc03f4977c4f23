"""Machines that are not Growth's and have the name of a claim of ours: another name is taken, and nothing is bought in vain."""

import asyncio
from collections.abc import Callable

import pytest

from growth.api.growthpools import NODE_REQUEST
from growth.api.karpenter import NODE_CLAIM
from growth.api.kinds import Json
from growth.api.pods import POD
from growth.api.workloads import DEPLOYMENT
from growth.sim.clouds.hetzner import HetznerFake
from growth.sim.seams import Step
from growth.sim.world.cluster import workload
from growth.sim.world.hetzner import CLUSTER_LABEL
from growth.sim.world.world import World
from tests.manifests import growth_pool, node_pool
from tests.simulation.vendors import in_world

FOREIGN = {"server_type": "cx33", "image": "ubuntu-24.04", "location": "fsn1"}
NAMED = {("growth.dev", "noderequests"), ("karpenter.sh", "nodeclaims")}
POOLS: dict[str, Json] = {
    "growth": growth_pool("default", {"name": "cx23", "max": 3}, scaleDownAfter="1m"),
    "karpenter": node_pool("default"),
}


def stranger(world: World) -> tuple[HetznerFake, Callable[[], list[str]]]:
    """Takes the first name that Growth chooses, before its machine is asked for; and the names that we bought."""
    half = world.hetzner
    assert half is not None
    taken: list[str] = []

    def see(step: Step) -> None:
        if step.which in NAMED and step.old is None and not taken:
            taken.append(step.key[1])
            half.fake.add_server({**FOREIGN, "name": step.key[1]})

    world.witness.listeners.append(see)
    return half.fake, lambda: [each.name for each in half.fake.ledger.purchases if CLUSTER_LABEL in each.labels]


def refused(fake: HetznerFake) -> int:
    return sum(each.code == "uniqueness_error" for each in fake.calls)


async def until_refused(fake: HetznerFake) -> None:
    for _ in range(300):
        await asyncio.sleep(0.2)
        if refused(fake):
            return


@pytest.mark.parametrize("api", POOLS)
def test_a_pod_gets_its_machine_under_another_name(api: str) -> None:
    """The name is asked for once, and one machine is bought."""

    async def body(world: World) -> None:
        fake, bought = stranger(world)
        await world.admin.create(DEPLOYMENT, workload("web", 1), namespace="default")
        await asyncio.sleep(600)
        (pod,) = (await world.admin.list(POD)).items
        assert pod.status.phase == "Running"
        assert len(bought()) == 1
        assert refused(fake) == 1

    in_world("hetzner", body, POOLS[api])


@pytest.mark.parametrize("api", POOLS)
def test_without_demand_nothing_is_bought_when_the_name_is_free_again(api: str) -> None:
    """The pod goes while its machine's name is taken: nothing is asked for any more, and no object of it stays."""

    async def body(world: World) -> None:
        fake, bought = stranger(world)
        await world.admin.create(DEPLOYMENT, workload("web", 1), namespace="default")
        await until_refused(fake)
        await world.admin.delete(DEPLOYMENT, "web", namespace="default")
        await asyncio.sleep(180)
        assert refused(fake) == 1
        for server in [each for each in fake.machines() if CLUSTER_LABEL not in each.labels]:
            fake.end(server.id)
        before = len(bought())
        await asyncio.sleep(1200)
        assert len(bought()) == before
        assert (await world.admin.list(NODE_REQUEST)).items == ()
        assert (await world.admin.list(NODE_CLAIM)).items == ()

    in_world("hetzner", body, POOLS[api])
