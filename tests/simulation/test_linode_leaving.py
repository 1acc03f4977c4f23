"""A machine that nobody claims and that joined by itself: its pods leave in order before it goes."""

import asyncio

import pytest

from growth.api import names
from growth.api.clouds import CloudUnavailable
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.pods import POD
from growth.providers.linode.pools import Pools
from growth.providers.linode.provider import LinodeProvider
from growth.providers.linode.tags import Key
from growth.sim.clouds.linode.objects import Instance, Pool
from growth.sim.scenario.oddities import claim
from growth.sim.world.world import World
from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.test_linode_lost_machines import PERIOD_SECONDS, TTL_SECONDS, collecting, spare
from tests.simulation.test_linode_pools import CLAIM, TIERS, add_pool, in_node, made, pools_of, wanted_of
from tests.simulation.test_linode_worlds import too_large
from tests.simulation.vendors import in_world

CLASS_LABEL = "karpenter.k8s.linode/linodenodeclass"


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def node_of(machine: Instance) -> Json:
    return {
        "metadata": {"name": machine.label},
        "spec": {"providerID": f"linode://{machine.id}"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


async def joined(stage: LkeStage, machine: Instance) -> Node:
    await stage.admin.create(NODE, node_of(machine))
    return await stage.admin.get(NODE, machine.label)


async def joined_spare(stage: LkeStage, provider: LinodeProvider) -> tuple[Pool, Instance]:
    """A pool with a machine that nobody claims, and that machine, whose Node is there."""
    pool = await spare(stage, provider)
    machine = in_node(stage, pool, 1)
    await joined(stage, machine)
    return pool, machine


async def drained(stage: LkeStage, machine: Instance) -> None:
    """As `termination` does, once its pods are gone."""
    await stage.admin.patch(NODE, machine.label, {"metadata": {"finalizers": None}})


def test_its_node_goes_first_and_is_drained(tier: str) -> None:
    """It has the finalizer and the label of Nodes that Growth drains; the machine stays for as long as the Node does."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool, machine = await joined_spare(stage, provider)
        assert await collecting(provider, 2 * TTL_SECONDS) == 0
        node = await stage.admin.get(NODE, machine.label)
        assert node.metadata.deletion_timestamp is not None
        assert names.TERMINATION_FINALIZER in node.metadata.finalizers
        assert node.metadata.labels[CLASS_LABEL] == "default"
        assert pool.count == 2
        await drained(stage, machine)
        assert await collecting(provider, 2 * PERIOD_SECONDS) == 1
        assert pool.count == 1
        assert await stage.held() == ["uid-of-stays"]

    on(tier, body)


def test_nobody_claims_it_meanwhile(tier: str) -> None:
    """The pool grows for who waits."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool, machine = await joined_spare(stage, provider)
        await collecting(provider, TTL_SECONDS)
        other = await made(provider, wanted_of(stage, "other"))
        assert other.provider_id != f"linode://{machine.id}"
        await drained(stage, machine)
        assert await collecting(provider, 2 * PERIOD_SECONDS) == 1
        assert pool.count == 2
        assert await stage.held() == ["uid-of-other", "uid-of-stays"]

    on(tier, body)


@pytest.mark.parametrize("until", ["its Node goes", "its Node is gone"])
def test_nobody_claims_it_after_a_restart_either(tier: str, until: str) -> None:
    """The next process reads it off the Node that goes, or that an old machine which runs has no longer; then it goes."""

    async def body(stage: LkeStage) -> None:
        pool, machine = await joined_spare(stage, provider := stage.provider())
        await collecting(provider, TTL_SECONDS)
        if until == "its Node is gone":
            await drained(stage, machine)
        new = stage.provider()
        other = await made(new, wanted_of(stage, "other"))
        assert other.provider_id != f"linode://{machine.id}"
        if until == "its Node goes":
            await drained(stage, machine)
        assert await collecting(new, 2 * PERIOD_SECONDS) == 1
        assert pool.count == 2
        assert await stage.held() == ["uid-of-other", "uid-of-stays"]

    on(tier, body)


def test_a_machine_that_has_not_joined_yet_is_claimed(tier: str) -> None:
    """Joining takes a while, and an old one is claimed as long as its Node stands."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool = await spare(stage, provider)
        await made(provider, wanted_of(stage, "first"))
        stage.fake.account.scale(pool, 3)
        await asyncio.sleep(2 * TTL_SECONDS)
        await joined(stage, in_node(stage, pool, 2))
        await made(provider, wanted_of(stage, "second"))
        assert pool.count == 3

    on(tier, body)


def test_a_node_that_comes_again_does_not_hold_it(tier: str) -> None:
    """A kubelet that registers anew would keep its machine for ever."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool, machine = await joined_spare(stage, provider)
        await collecting(provider, TTL_SECONDS)
        await drained(stage, machine)
        await joined(stage, machine)
        assert await collecting(provider, 2 * PERIOD_SECONDS) == 1
        assert pool.count == 1

    on(tier, body)


def test_no_more_nodes_are_drained_than_go(tier: str) -> None:
    """A purchase counts on one of two: which is its own is not known yet, and one stays as it is."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool = await spare(stage, provider)
        stage.fake.account.scale(pool, 3)
        await asyncio.sleep(TTL_SECONDS + 70)
        stage.fake.advance()
        machines = [in_node(stage, pool, index) for index in (1, 2)]
        for machine in machines:
            await joined(stage, machine)
        held = (await provider.parts()).held
        assert isinstance(held, Pools)
        held.reservations.take(Key("karpenter.sh/nodepool", "web", stage.types[0]), "uid")
        await collecting(provider, 4 * PERIOD_SECONDS)
        nodes = [await stage.admin.get(NODE, machine.label) for machine in machines]
        assert [node.metadata.deletion_timestamp is None for node in nodes].count(True) == 1

    on(tier, body)


def test_pods_leave_a_pool_that_was_made_twice_before_it_goes(tier: str) -> None:
    """Its machine joined meanwhile: the Node is drained, however long that takes, and nothing is bought for the key until then."""

    async def body(stage: LkeStage) -> None:
        provider, wanted = stage.provider(), wanted_of(stage, "b")
        await made(provider, wanted_of(stage, "a"))
        (pool,) = pools_of(stage)
        second = add_pool(stage, *pool.tags)
        await asyncio.sleep(120)
        machine = in_node(stage, second, 0)
        await joined(stage, machine)
        for _ in range(4):
            with pytest.raises(CloudUnavailable, match="made twice"):
                await provider.create(wanted)
            assert await collecting(provider, TTL_SECONDS / 2) == 0
        assert machine.status == "running"
        assert (await stage.admin.get(NODE, machine.label)).metadata.deletion_timestamp is not None
        assert (pool.count, second.count) == (1, 1)
        await drained(stage, machine)
        await made(provider, wanted)
        assert pools_of(stage) == [pool]
        assert await stage.held() == ["uid-of-a", "uid-of-b"]

    on(tier, body)


def test_a_node_that_cannot_be_written_stops_no_other_pool(tier: str) -> None:
    """As where somebody's tag of the class is no label: capacity of pools that come after it goes all the same."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        pool, machine = await joined_spare(stage, provider)
        spoilt = [each.replace("growth.dev/nodeclass:default", "growth.dev/nodeclass:team web") for each in pool.tags]
        pool.tags = tuple(spoilt)
        add_pool(stage, *(each.replace(":web", ":lost") for each in pool.tags))
        assert await collecting(provider, 2 * TTL_SECONDS) == 1
        assert pools_of(stage) == [pool]
        assert machine.status == "running"

    on(tier, body)


@pytest.mark.parametrize("tier", ["standard", "enterprise"])
def test_its_pods_are_evicted(tier: str) -> None:
    """In a whole world: they are gone before their machine is asked to go."""

    async def body(world: World) -> None:
        fake, _ = await too_large(world, 2)
        await asyncio.sleep(120)
        (machine,) = [each for each in fake.machines() if not any(CLAIM in tag for tag in each.tags)]
        await world.admin.create(NODE, node_of(machine))
        pod = {"nodeName": machine.label, "containers": [{"name": "main", "image": "none"}]}
        meta = {"name": "web", "namespace": "default"}
        await world.admin.create(POD, {"metadata": meta, "spec": pod}, namespace="default")
        left, began = 1, asyncio.get_running_loop().time()
        while machine in fake.machines() and machine.status != "deleting":
            left = len((await world.admin.list(POD)).items)
            assert asyncio.get_running_loop().time() - began < 1800, "it never went"
            await asyncio.sleep(1)
        assert left == 0
        await asyncio.sleep(30)
        assert len(fake.machines()) == 1

    in_world("linode", body, claim("alone"), linodeCluster=tier)
