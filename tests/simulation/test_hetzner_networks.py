"""Private networks of a HetznerNodeClass: machines are bought where they reach, and what keeps them out is said."""

from decimal import Decimal

import pytest

from growth.api.clouds import CreateError, InsufficientCapacity, NodeClassNotReady
from growth.api.nodeclasses import HETZNER_NODE_CLASS
from growth.sim.clouds.hetzner.market import Offer
from growth.sim.ports import SimClock
from tests.hetzner_provider import HetznerWorld, claim, in_hetzner

CLASS = {"networks": ["cluster"], "publicNet": {"ipv4": False}}
EU, US = "eu-central", "us-east"


async def make_network(world: HetznerWorld, *zones: str, name: str = "cluster", type_: str = "cloud") -> None:
    subnets = [
        {"type": type_, "ip_range": f"10.0.{number}.0/24", "network_zone": zone} for number, zone in enumerate(zones)
    ]
    body = {"name": name, "ip_range": "10.0.0.0/16", "subnets": subnets}
    await world.cloud.client.call("POST", "/networks", dict, body=body)


def sell_in_ash(world: HetznerWorld, kind: str) -> None:
    found = world.fake.market.find(kind, SimClock(world.kernel).now())
    assert found is not None
    found.offers["ash"] = Offer(Decimal("0.0100"), Decimal("6.00"))


async def zones_of(world: HetznerWorld, kind: str) -> set[str]:
    sold = (await world.provider.catalogue()).of_classes["default"]
    return {each.zone for found in sold if found.name == kind for each in found.offerings}


def test_places_that_a_network_does_not_reach_are_left_out() -> None:
    """They are in no plan and no purchase, however cheap: a machine there could not join the network."""

    async def body(world: HetznerWorld) -> None:
        sell_in_ash(world, "cx33")
        await make_network(world, EU)
        assert await zones_of(world, "cx33") == {"fsn1", "nbg1", "hel1"}
        assert (await world.provider.create(claim("one", "cx33"))).zone == "fsn1"
        world.fake.market.stock("cx33", "*", 0)
        with pytest.raises(InsufficientCapacity):
            await world.provider.create(claim("two", "cx33"))

    in_hetzner(body, node_class=CLASS)


def test_every_network_of_the_class_must_reach_a_place() -> None:
    """One that reaches only some places leaves out the others."""

    async def body(world: HetznerWorld) -> None:
        sell_in_ash(world, "cx33")
        await make_network(world, EU, US)
        await make_network(world, US, name="other")
        assert await zones_of(world, "cx33") == {"ash"}
        assert (await world.provider.create(claim("one", "cx33"))).zone == "ash"

    in_hetzner(body, node_class={**CLASS, "networks": ["cluster", "other"]})


@pytest.mark.parametrize(
    ("zones", "type_"), [((), "cloud"), ((US,), "cloud"), ((EU,), "vswitch")], ids=["none", "elsewhere", "vSwitch"]
)
def test_a_network_that_reaches_no_place_of_the_class_is_told(zones: tuple[str, ...], type_: str) -> None:
    """Nothing is bought; the class says which network it is and what to do. A vSwitch's subnet is none for these machines."""

    async def body(world: HetznerWorld) -> None:
        await make_network(world, *zones, type_=type_)
        with pytest.raises(NodeClassNotReady, match=r"networks: .*cluster.* no subnet .*fsn1, nbg1.*: add one"):
            await world.provider.create(claim("one", "cx33"))
        assert world.bought == []

    in_hetzner(body, node_class={**CLASS, "locations": ["fsn1", "nbg1"]})


def test_a_number_that_no_network_can_have_harms_its_own_class_only() -> None:
    """However long: the class is told so, and what is sold can be read."""

    async def body(world: HetznerWorld) -> None:
        await world.make_class("odd", networks=["9" * 5000])
        assert await zones_of(world, "cx33") >= {"fsn1"}
        odd = await world.admin.get(HETZNER_NODE_CLASS, "odd")
        assert [each.reason for each in await world.provider.readiness.problems(odd)] == ["NotFoundAtHetzner"]

    in_hetzner(body)


def test_a_network_without_free_addresses_is_told_and_not_tried_again() -> None:
    """One refusal is enough: only people can make the network larger."""

    async def body(world: HetznerWorld) -> None:
        subnet = {"type": "cloud", "ip_range": "10.0.1.0/30", "network_zone": EU}
        body = {"name": "cluster", "ip_range": "10.0.0.0/16", "subnets": [subnet]}
        await world.cloud.client.call("POST", "/networks", dict, body=body)
        await world.provider.create(claim("one", "cx33"))
        with pytest.raises(CreateError, match="no subnet or IP available") as told:
            await world.provider.create(claim("two", "cx33"))
        assert (told.value.reason, told.value.retryable) == ("Refused", False)
        assert sum(each.code == "no_subnet_available" for each in world.fake.calls) == 1
        (problem,) = await world.provider.readiness.problems(await world.admin.get(HETZNER_NODE_CLASS, "default"))
        assert "no subnet or IP available" in problem.message
        assert world.standing == ["one"]

    in_hetzner(body, node_class=CLASS)
