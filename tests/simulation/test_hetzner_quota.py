"""A project that may hold no more: who has a machine already gets it, everybody else waits."""

import asyncio

import pytest

from growth.api.clouds import CloudUnavailable, CreateError, InsufficientCapacity, QuotaExceeded
from growth.api.kinds import Json
from growth.sim.clouds.frame import Reply
from growth.sim.clouds.hetzner import FakeSettings, Faults, Limits
from growth.sim.clouds.hetzner.wire import Refusal
from tests.hetzner_provider import HetznerWorld, claim, in_hetzner


async def lose(world: HetznerWorld, name: str) -> None:
    """The claim's machine is bought, and nobody hears of it."""
    world.fake.faults = Faults(lost_answer=1.0)
    with pytest.raises(CloudUnavailable):
        await world.provider.create(claim(name, "cx33"))
    world.fake.faults = Faults()


def count_first(world: HetznerWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vendor looks at the quota before it looks at names."""
    shop, project = world.fake._servers, world.fake.project
    create = shop.create

    def counted(order: Json) -> Reply:
        if len(project.servers) >= project.limits.servers:
            raise Refusal(403, "resource_limit_exceeded", "servers limit exceeded")
        return create(order)

    monkeypatch.setattr(shop, "create", counted)


def test_what_fills_the_quota_may_be_the_claims_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its machine is found, whatever the vendor checks first, and nobody is held back for it."""

    async def body(world: HetznerWorld) -> None:
        await world.provider.create(claim("first", "cx33"))
        await lose(world, "one")
        count_first(world, monkeypatch)
        assert (await world.provider.create(claim("one", "cx33"))).claim == "one"
        assert world.bought == ["first", "one"]

    in_hetzner(body, settings=FakeSettings(limits=Limits(servers=2)))


def test_who_has_a_machine_gets_it_while_others_are_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often others are refused; those who wait cost a list a minute together, and no purchase."""

    async def body(world: HetznerWorld) -> None:
        await world.provider.create(claim("first", "cx33"))
        await lose(world, "one")
        count_first(world, monkeypatch)
        with pytest.raises(QuotaExceeded):
            await world.provider.create(claim("two", "cx33"))
        assert (await world.provider.create(claim("one", "cx33"))).claim == "one"
        before = len(world.fake.calls)
        for number in range(20):
            with pytest.raises(QuotaExceeded):
                await world.provider.create(claim(f"more-{number}", "cx33"))
        assert len(world.fake.calls) - before <= 1

    in_hetzner(body, settings=FakeSettings(limits=Limits(servers=2)))


def test_a_claim_needs_no_second_seat_for_the_machine_that_it_has() -> None:
    """Its machine filled the last group that the project may hold."""

    async def body(world: HetznerWorld) -> None:
        await asyncio.gather(*(world.provider.create(claim(f"one-{number}", "cx33")) for number in range(9)))
        await lose(world, "ten")
        with pytest.raises(CreateError, match="no more placement groups"):
            await world.provider.create(claim("more", "cx33"))
        assert (await world.provider.create(claim("ten", "cx33"))).claim == "ten"

    in_hetzner(
        body,
        node_class={"placementGroup": "Spread"},
        settings=FakeSettings(limits=Limits(placement_groups=1)),
    )


def test_a_full_quota_holds_back_nobody_who_takes_a_machine_that_people_own() -> None:
    """It counts what is bought: a free dedicated machine is booked, also where the claim allows others that are cheaper."""
    inventory = [{"name": f"gpu-{number}", "serverNumber": number, "serverType": "GEX44"} for number in (11, 12)]

    async def body(world: HetznerWorld) -> None:
        await world.provider.create(claim("first", "cx33"))
        with pytest.raises(QuotaExceeded):
            await world.provider.create(claim("two", "cx33"))
        for _ in range(2):
            assert (await world.provider.create(claim("one", "gex44"))).provider_id == "hrobot://11"
        assert (await world.provider.create(claim("either", "cx33", "gex44"))).provider_id == "hrobot://12"
        with pytest.raises(InsufficientCapacity):
            await world.provider.create(claim("late", "gex44"))
        with pytest.raises(QuotaExceeded):
            await world.provider.create(claim("more", "cx33", "gex44"))
        assert world.bought == ["first"]

    in_hetzner(body, node_class={"inventory": inventory}, settings=FakeSettings(limits=Limits(servers=1)))
