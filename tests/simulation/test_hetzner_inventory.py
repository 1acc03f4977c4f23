"""Dedicated machines that people own: booked for one claim at a time, given back with it, never bought."""

import asyncio

import pytest

from growth.api import names
from growth.api.clouds import CloudUnavailable, InsufficientCapacity, MachineNotFound
from growth.api.core import CONFIG_MAP
from growth.api.growthpools import GROWTH_POOL
from growth.api.instance_types import InstanceType
from growth.api.karpenter import NODE_CLAIM
from growth.api.nodeclasses import HETZNER_NODE_CLASS
from growth.sim.clouds.hetzner import Faults
from growth.sim.world.world import World
from tests.hetzner_provider import HOME, HetznerWorld, claim, in_hetzner, launched
from tests.manifests import growth_pool
from tests.simulation.vendors import in_world

CLASS = {"inventory": [{"name": f"gpu-{number}", "serverNumber": number, "serverType": "GEX44"} for number in (11, 12)]}


def test_a_machine_is_booked_for_one_claim_and_given_back_with_it() -> None:
    """Two claims have two machines, a third none; whoever asks again finds the first; nothing is bought."""

    async def body(world: HetznerWorld) -> None:
        def free() -> bool:
            (kind,) = [each for each in sold.of_classes["default"] if each.name == "gex44"]
            assert kind.owned
            assert kind.capacity["nvidia.com/gpu"] == 1
            return any(each.available for each in kind.offerings)

        one, two, three = (claim(name, "gex44") for name in ("one", "two", "three"))
        first = await world.provider.create(one)
        assert await world.new_provider().create(one) == first
        second = await world.provider.create(two)
        assert {first.provider_id, second.provider_id} == {"hrobot://11", "hrobot://12"}
        sold = await world.provider.catalogue()
        assert "gex44" in {kind.name for kind in sold.types}
        assert not free()
        with pytest.raises(InsufficientCapacity):
            await world.provider.create(three)
        assert {each.claim for each in await world.provider.list()} == {"one", "two"}
        assert (await world.provider.get(first.provider_id)).claim == "one"
        assert await world.gone(launched(one, first))
        with pytest.raises(MachineNotFound):
            await world.provider.get(first.provider_id)
        sold = await world.provider.catalogue()
        assert free()
        assert (await world.provider.create(claim("four", "gex44"))).provider_id == first.provider_id
        assert world.bought == []

    in_hetzner(body, node_class=CLASS)


def test_a_machine_of_any_type_is_booked_where_its_entry_says_what_it_is() -> None:
    """Its size, its architecture, its place and its price are the entry's; after a restart they are told as before."""
    size = {"cpu": "12", "memory": "64Gi", "ephemeral-storage": "1T"}
    entry = {"serverType": "AX41-NVMe", "capacity": size, "architecture": "amd64", "monthlyPrice": "62.40"}
    places = {21: "hel1", 22: "fsn1"}
    machines = [
        {**entry, "name": f"ax-{number}", "serverNumber": number, "location": place} for number, place in places.items()
    ]

    async def body(world: HetznerWorld) -> None:
        async def kind() -> InstanceType:
            (found,) = [each for each in (await world.provider.catalogue()).of_classes["default"] if each.owned]
            return found

        sold = await kind()
        assert (sold.name, sold.labels[names.ARCH_LABEL]) == ("ax41-nvme", ("amd64",))
        assert (sold.capacity["cpu"], sold.capacity["memory"], sold.capacity["pods"]) == (12_000, 64 << 30, 110)
        assert sold.allocatable["memory"] < sold.capacity["memory"]
        assert [(each.zone, each.price) for each in sold.offerings] == [("fsn1", 100_000_000), ("hel1", 100_000_000)]
        made = await world.provider.create(claim("one", "ax41-nvme", zones=("hel1",)))
        assert (made.provider_id, made.zone, made.capacity) == ("hrobot://21", "hel1", sold.capacity)
        assert made.allocatable == sold.allocatable
        assert made.labels[names.ARCH_LABEL] == "amd64"
        assert await world.new_provider().get(made.provider_id) == made
        assert [(each.zone, each.available) for each in (await kind()).offerings] == [("fsn1", True), ("hel1", False)]
        with pytest.raises(InsufficientCapacity):
            await world.provider.create(claim("two", "ax41-nvme", zones=("hel1",)))
        assert world.bought == []

    in_hetzner(body, node_class={"inventory": machines})


def test_concurrent_claims_share_the_machines_out() -> None:
    """Also when two processes book: no machine has two claims."""

    async def body(world: HetznerWorld) -> None:
        providers = [world.provider, world.new_provider(seed="other")]
        made = await asyncio.gather(
            *(providers[number % 2].create(claim(f"one-{number}", "gex44")) for number in range(6)),
            return_exceptions=True,
        )
        machines = [each.provider_id for each in made if not isinstance(each, BaseException)]
        assert sorted(machines) == ["hrobot://11", "hrobot://12"]
        assert sum(isinstance(each, InsufficientCapacity) for each in made) == 4

    in_hetzner(body, node_class=CLASS)


def test_a_claim_that_never_learned_its_machine_gives_it_back_all_the_same() -> None:
    """The answer of its purchase was lost: the booking names the claim."""

    async def body(world: HetznerWorld) -> None:
        one = claim("one", "gex44")
        await world.provider.create(one)
        assert await world.gone(one)
        assert (await world.admin.list(CONFIG_MAP, namespace=HOME, labels="growth.dev/hetzner-inventory")).items == ()

    in_hetzner(body, node_class=CLASS)


def test_bookings_need_no_account_but_a_list_needs_both() -> None:
    """While the cloud is silent no list is given: a part of it would look like leaks."""

    async def body(world: HetznerWorld) -> None:
        await world.provider.create(claim("one", "gex44"))
        world.fake.faults = Faults(server_error=1.0)
        with pytest.raises(Exception, match="Hetzner"):
            await world.provider.list()

    in_hetzner(body, node_class=CLASS)


def test_a_claim_that_has_a_bought_machine_books_none() -> None:
    """The answer of its purchase was lost and its type is short by now: the machine that stands is the claim's."""

    async def body(world: HetznerWorld) -> None:
        one = claim("one", "cx33", "gex44")
        await world.provider.create(claim("first", "cx33"))
        world.fake.faults = Faults(lost_answer=1.0)
        with pytest.raises(CloudUnavailable):
            await world.provider.create(one)
        world.fake.faults = Faults()
        world.fake.market.stock("cx33", "*", 0)
        assert (await world.provider.create(claim("two", "cx33", "gex44"))).provider_id == "hrobot://11"
        assert (await world.provider.create(one)).instance_type == "cx33"
        assert {each.claim: each.instance_type for each in await world.provider.list()} == {
            "first": "cx33",
            "one": "cx33",
            "two": "gex44",
        }

    in_hetzner(body, node_class=CLASS)


def test_a_claim_that_has_a_booked_machine_buys_none() -> None:
    """Also when cheaper ones can be had again, and when its own is the last of the inventory."""

    async def body(world: HetznerWorld) -> None:
        one = claim("one", "cx33", "gex44")
        world.fake.market.stock("cx33", "*", 0)
        booked = await world.provider.create(one)
        assert booked.provider_id == "hrobot://11"
        assert await world.new_provider().create(one) == booked
        world.fake.market.stock("cx33", "*", 10)
        assert await world.new_provider().create(one) == booked
        assert world.bought == []

    in_hetzner(body, node_class={"inventory": CLASS["inventory"][:1]})


def test_inventory_that_is_added_is_seen_at_once() -> None:
    """A pod that waits for a GEX44 gets one within seconds of the entry, however rarely the catalogue is read."""

    async def body(world: World) -> None:
        await asyncio.sleep(600)
        assert (await world.admin.list(NODE_CLAIM)).items == ()
        await world.admin.patch(HETZNER_NODE_CLASS, "default", {"spec": CLASS})
        await asyncio.sleep(15)
        (found,) = (await world.admin.list(NODE_CLAIM)).items
        assert found.status.provider_id == "hrobot://11"
        await asyncio.sleep(20)
        pool = await world.admin.get(GROWTH_POOL, "gpu")
        (told,) = [each for each in pool.status.conditions if each.type == "ServerTypesOrderable"]
        assert told.status == "True", told.message

    pod = {"nodeSelector": {names.POOL_LABEL: "gpu"}, "containers": [{"name": "main", "image": "example"}]}
    waiting = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "wants", "namespace": "default"}, "spec": pod}
    in_world("hetzner", body, growth_pool("gpu", {"name": "GEX44", "max": 2}), waiting, cataloguePeriod="1h")
