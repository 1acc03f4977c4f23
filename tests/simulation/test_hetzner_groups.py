"""Placement groups: ten machines each, counted before they are used, and no more of them than are needed."""

import asyncio

import pytest

from growth.api.clouds import CloudError, CreateError
from growth.api.nodeclasses import HETZNER_NODE_CLASS
from growth.sim.clouds.hetzner import FakeSettings, Faults, Limits
from tests.hetzner_provider import HetznerWorld, claim, in_hetzner, launched

SPREAD = {"placementGroup": "Spread"}


def test_placement_groups_hold_ten_each() -> None:
    """Concurrent purchases share them out without one too many; a group that others filled is passed over."""

    async def body(world: HetznerWorld) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(25):
                group.create_task(world.provider.create(claim(f"one-{number}", "cx33")))
        sizes = sorted(len(each.servers) for each in world.fake.project.placement_groups.values())
        assert sizes == [5, 10, 10]
        assert sum(each.code == "placement_error" for each in world.fake.calls) == 0
        again = world.new_provider()
        await again.create(claim("two", "cx33"))
        assert sorted(len(each.servers) for each in world.fake.project.placement_groups.values()) == [6, 10, 10]

    in_hetzner(body, node_class=SPREAD)


def test_a_full_placement_group_is_no_lack_of_stock() -> None:
    """Where the vendor calls a group full that we thought had a seat, another group is taken."""

    async def body(world: HetznerWorld) -> None:
        await world.provider.create(claim("first", "cx33"))
        other = world.new_provider(seed="other")
        await asyncio.gather(*(other.create(claim(f"more-{number}", "cx33")) for number in range(9)))
        await world.provider.create(claim("second", "cx33"))
        assert sum(each.code == "placement_error" for each in world.fake.calls) == 1
        assert len(world.fake.project.placement_groups) == 2
        sold = await world.provider.catalogue()
        assert all(each.available for kind in sold.types for each in kind.offerings)

    in_hetzner(body, node_class=SPREAD)


def test_empty_groups_are_removed() -> None:
    """A group whose machines are gone goes; one with a machine stays."""

    async def body(world: HetznerWorld) -> None:
        wanted = [claim(f"one-{number}", "cx33") for number in range(11)]
        made = [launched(each, await world.provider.create(each)) for each in wanted]
        assert len(world.fake.project.placement_groups) == 2
        assert await world.gone(made[-1])
        await asyncio.sleep(700)
        assert await world.provider.groups.tidy() == 1
        assert len(world.fake.project.placement_groups) == 1

    in_hetzner(body, node_class=SPREAD)


def test_a_placement_that_fails_makes_no_further_groups() -> None:
    """A group with free seats is not full: the offering is short, no group is made, and stock that is back is bought."""

    async def body(world: HetznerWorld) -> None:
        world.fake.faults = Faults(placement=1.0)
        for number in range(3):
            with pytest.raises(CloudError):
                await world.provider.create(claim(f"one-{number}", "cx33", "cx43", "cax21"))
        assert len(world.fake.project.placement_groups) == 1
        sold = await world.provider.catalogue()
        kind = next(each for each in sold.types if each.name == "cx33")
        assert not any(each.available for each in kind.offerings)
        world.fake.faults = Faults()
        await asyncio.sleep(181)
        assert (await world.provider.create(claim("two", "cx33"))).instance_type == "cx33"
        assert len(world.fake.project.placement_groups) == 1

    in_hetzner(body, node_class=SPREAD)


def test_a_lack_of_groups_holds_back_nobody_who_needs_none() -> None:
    """The claim is told what is lacking and may come again, others buy at once, and the vendor is asked once a minute."""

    async def body(world: HetznerWorld) -> None:
        await world.make_class("plain")
        await asyncio.gather(*(world.provider.create(claim(f"one-{number}", "cx33")) for number in range(10)))
        for number in range(3):
            with pytest.raises(CreateError, match="no more placement groups") as told:
                await world.provider.create(claim(f"more-{number}", "cx33"))
            assert told.value.retryable
            await world.provider.create(claim(f"plain-{number}", "cx33", node_class="plain"))
        assert sum(each.code == "resource_limit_exceeded" for each in world.fake.calls) == 1
        await asyncio.sleep(61)
        with pytest.raises(CreateError, match="no more placement groups"):
            await world.provider.create(claim("later", "cx33"))

    in_hetzner(body, node_class=SPREAD, settings=FakeSettings(limits=Limits(placement_groups=1)))


def test_a_group_that_somebody_removed_is_replaced_at_once() -> None:
    """The vendor does not find it: the class is not to blame, and the same purchase takes a seat in another."""

    async def body(world: HetznerWorld) -> None:
        wanted = claim("one", "cx33")
        assert await world.gone(launched(wanted, await world.provider.create(wanted)))
        (number,) = world.fake.project.placement_groups
        await world.cloud.delete_placement_group(number)
        await world.provider.create(claim("two", "cx33"))
        assert [len(each.servers) for each in world.fake.project.placement_groups.values()] == [1]
        assert await world.provider.readiness.problems(await world.admin.get(HETZNER_NODE_CLASS, "default")) == []

    in_hetzner(body, node_class=SPREAD)


def test_a_group_that_cannot_be_removed_is_not_taken_for_gone() -> None:
    """The vendor refuses for now: it is tried again."""

    async def body(world: HetznerWorld) -> None:
        wanted = claim("one", "cx33")
        assert await world.gone(launched(wanted, await world.provider.create(wanted)))
        await asyncio.sleep(700)
        (group,) = world.fake.project.placement_groups.values()
        world.fake.faults = Faults(conflict=1.0)
        assert await world.provider.groups.tidy() == 0
        assert world.provider.groups.are_there()
        world.fake.faults = Faults()
        assert await world.provider.groups.tidy() == 1
        assert not world.provider.groups.are_there()
        assert group.id not in world.fake.project.placement_groups

    in_hetzner(body, node_class=SPREAD)


@pytest.mark.parametrize("code", ["placement_error", "server_error"])
def test_a_machine_that_failed_late_keeps_no_seat(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is gone, so the next takes its place: failures fill no groups."""

    async def body(world: HetznerWorld) -> None:
        world.fake.faults = Faults(late_failure=1.0)
        monkeypatch.setattr(world.fake._servers, "_late", lambda: (0, (code, "the vendor's words")))
        for number in range(12):
            with pytest.raises(CloudError):
                await world.provider.create(claim(f"one-{number}", *(f"cx{each}3" for each in range(2, 6))))
        assert len(world.bought) > 10
        assert len(world.fake.project.placement_groups) == 1

    in_hetzner(body, node_class=SPREAD)
