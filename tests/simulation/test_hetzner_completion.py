"""A machine of Hetzner's is a claim's once it is whole; what fails late is paid for once, and told."""

import pytest

from growth.api.clouds import CreateError, QuotaExceeded
from growth.api.nodeclasses import HETZNER_NODE_CLASS
from growth.sim.clouds.hetzner import Faults
from tests.hetzner_provider import HetznerWorld, claim, in_hetzner


def fails_late(world: HetznerWorld, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """From now on every machine's start fails with the code."""
    world.fake.faults = Faults(late_failure=1.0)
    monkeypatch.setattr(world.fake._servers, "_late", lambda: (1, (code, "the vendor's words")))


async def problems(world: HetznerWorld) -> list[str]:
    """What is told of the class."""
    return [
        each.reason
        for each in await world.provider.readiness.problems(await world.admin.get(HETZNER_NODE_CLASS, "default"))
    ]


def test_a_late_word_against_the_class_is_told_there_and_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the purchase had been refused: each further try would buy and pay a machine."""

    async def body(world: HetznerWorld) -> None:
        fails_late(world, monkeypatch, "invalid_input")
        with pytest.raises(CreateError, match=r"words \(invalid_input\), in start_server") as told:
            await world.provider.create(claim("one", "cx33"))
        assert (told.value.reason, told.value.retryable) == ("Refused", False)
        assert await problems(world) == ["Refused"]
        assert world.bought == ["one"]
        assert world.standing == []

    in_hetzner(body)


def test_a_late_word_against_the_token_stops_purchases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next claim buys nothing, and every class says why."""

    async def body(world: HetznerWorld) -> None:
        fails_late(world, monkeypatch, "forbidden")
        for name in ("one", "two"):
            with pytest.raises(CreateError, match="Read & Write") as told:
                await world.provider.create(claim(name, "cx33"))
            assert (told.value.reason, told.value.retryable) == ("TokenRefused", True)
        assert await problems(world) == ["TokenRefused"]
        assert world.bought == ["one"]
        assert world.standing == []

    in_hetzner(body)


def test_a_late_word_about_the_quota_holds_everybody_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next claim buys nothing for a while."""

    async def body(world: HetznerWorld) -> None:
        fails_late(world, monkeypatch, "resource_limit_exceeded")
        for name in ("one", "two"):
            with pytest.raises(QuotaExceeded):
                await world.provider.create(claim(name, "cx33"))
        assert world.bought == ["one"]
        assert world.standing == []

    in_hetzner(body)


def act(world: HetznerWorld, command: str, *more: tuple[str, int], code: str = "") -> None:
    """Somebody does something to the only machine, and it ends at once, badly where a code is given."""
    (server,) = world.fake.machines()
    error = (code, "the vendor's words") if code else None
    world.fake.project.act(command, [("server", server.id), *more], seconds=0.0, error=error)
    world.fake.machines()


def test_what_others_did_to_a_machine_is_no_reason_to_remove_it() -> None:
    """A repeated purchase judges what the machine was made by, and of that the last try."""

    async def body(world: HetznerWorld) -> None:
        made = await world.provider.create(claim("one", "cx33"))
        act(world, "change_dns_ptr", code="action_failed")
        act(world, "start_server", code="action_failed")
        act(world, "start_server")
        assert await world.new_provider().create(claim("one", "cx33")) == made
        assert world.bought == ["one"]

    in_hetzner(body)


def test_a_machine_that_lacks_one_of_its_networks_is_not_whole() -> None:
    """After a restart too: that it has the other does not count for both."""

    async def body(world: HetznerWorld) -> None:
        await world.provider.create(claim("one", "cx33"))
        act(world, "attach_to_network", ("network", 1), code="action_failed")
        act(world, "attach_to_network", ("network", 2))
        with pytest.raises(CreateError, match="failed in attach_to_network"):
            await world.new_provider().create(claim("one", "cx33"))
        assert world.standing == []

    in_hetzner(body)
