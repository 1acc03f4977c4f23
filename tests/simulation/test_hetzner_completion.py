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
