"""The whole autoscaler in a simulated world whose machines Hetzner's API sells."""

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from growth.api.nodeclasses import HETZNER_NODE_CLASS
from growth.api.nodes import NODE
from growth.providers.catalogues import builtin
from growth.providers.hetzner import wire
from growth.providers.hetzner.client import HetznerApi
from growth.sim.chaos.rates import parse
from growth.sim.clouds.hetzner import Faults
from growth.sim.runs import run
from growth.sim.scenario.generate import generate
from growth.sim.scenario.model import QUIET_SECONDS, Order, busy_seconds
from growth.sim.scenario.oddities import claim
from growth.sim.scenario.vendors import told_for
from growth.sim.world.hetzner import TOKEN
from growth.sim.world.hetzner_classes import drawn, sold_to
from growth.sim.world.world import World
from tests.simulation.vendors import all_that_is_told, in_world, order

SERVER = {"server_type": "cx33", "image": "ubuntu-24.04", "location": "fsn1"}


def test_a_burst_buys_and_gives_back() -> None:
    """Machines come for the pods and go after them; nothing is left, and no promise is broken."""
    outcome = run(order("hetzner", 3))
    assert outcome.violations == ()
    assert outcome.scale_ups == outcome.scale_downs >= 2
    # Each is there for a few minutes and paid for an hour, its address too; the cheapest costs this much.
    assert outcome.cost >= outcome.scale_ups * 9_600_000


@pytest.mark.parametrize("seed", range(4))
def test_a_bad_cloud_breaks_no_promise(seed: int) -> None:
    """Refusals, lost answers, pages by proxies and actions that fail late, on a tenth of all calls; some arrive late."""
    faults = "cloud-error=0.1,cloud-answer-lost=0.1,late-write=0.1,stock-out=20,crash=20,list-empty=0.2"
    outcome = run(order("hetzner", seed, faults=faults))
    assert outcome.violations == ()
    assert outcome.scale_ups >= 2


@pytest.mark.parametrize("seed", range(2))
def test_no_promise_is_broken_in_any_weather(seed: int) -> None:
    """Whole worlds with all faults: machines are bought and given back, and every invariant holds."""
    busy = 0.6
    scenario = told_for("hetzner", generate(seed, hours=busy))
    scenario = msgspec.structs.replace(scenario, settings={**scenario.settings, "registrationTTL": "3m"})
    hours = (busy_seconds(busy) + QUIET_SECONDS) / 3600.0
    outcome = run(Order(seed=seed, scenario=scenario, hours=hours, faults="all", quiet_seconds=QUIET_SECONDS))
    assert outcome.violations == (), outcome.violations[0].story
    assert min(outcome.scale_ups, outcome.scale_downs) > 0


def test_a_bad_cloud_has_all_that_the_fake_can_do() -> None:
    """Nothing of it is left out of worlds where everything goes wrong; machines vanish there by the world's own hand."""

    async def body(world: World) -> None:
        half = world.hetzner
        assert half is not None
        await asyncio.sleep(60)
        half.disturb(parse("all"))
        assert {name for name, rate in dataclasses.asdict(half.fake.faults).items() if not rate} == {"vanish"}
        half.disturb({})
        assert half.fake.faults == Faults()

    in_world("hetzner", body)


def test_seeds_try_all_that_a_class_may_ask() -> None:
    """Each is asked in some worlds and not in others; what can be bought there is known to the judges."""
    fields = ("placementGroup", "networks", "publicNet", "backups", "maxPods", "locations")
    classes = [drawn(seed) for seed in range(40)]
    for field in fields:
        assert 0 < sum(field in each for each in classes) < len(classes), field
    assert {field for each in classes for field in each} == {*fields}
    sold = sold_to({"maxPods": 40, "locations": ["fsn1"]}, builtin("hetzner"))
    assert {offering.zone for kind in sold.types for offering in kind.offerings} == {"fsn1"}
    assert {kind.allocatable["pods"] for kind in sold.types} == {40}


def test_a_world_buys_machines_as_its_class_says() -> None:
    """In groups and in the network, backed up and without a public address, where the seed draws it."""
    spec = {"placementGroup": "Spread", "networks": ["cluster"], "publicNet": {"ipv4": False}, "backups": True}

    async def body(world: World) -> None:
        await world.admin.patch(HETZNER_NODE_CLASS, "default", {"spec": spec})
        await asyncio.sleep(300)
        half = world.hetzner
        assert half is not None
        (server,) = half.fake.machines()
        assert server.group is not None
        assert server.networks
        assert server.backups
        assert server.ipv4 is None

    in_world("hetzner", body, claim("alone"))


def test_equal_seeds_repeat_a_run() -> None:
    """To the last step."""
    first, second = (run(order("hetzner", 1, faults="cloud-error=0.1,cloud-answer-lost=0.1")) for _ in range(2))
    assert first.digest == second.digest


def test_a_provider_that_buys_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judges see the machines that the API sold, whatever the provider believes: this one forgets what it bought."""
    real = HetznerApi.create_server

    async def careless(self: HetznerApi, body: Mapping[str, Any]) -> wire.Created:
        await real(self, {**body, "name": f"{body['name']}-first"})
        return await real(self, body)

    monkeypatch.setattr(HetznerApi, "create_server", careless)
    assert "one machine" in {each.invariant for each in run(order("hetzner", 1)).violations}


def test_the_token_is_told_to_nobody(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Not even half of it, which the vendor quotes: in no object of the cluster (events, conditions, decisions) and no log."""
    bad = order("hetzner", 2, faults="cloud-error=0.3,cloud-answer-lost=0.2")
    seen = all_that_is_told(bad, monkeypatch, capsys)
    assert not any(TOKEN[at : at + 8] in text for text in seen for at in range(len(TOKEN) - 8))


def test_kubelets_take_as_many_pods_as_their_class_says() -> None:
    """Thirty where it says thirty."""

    async def body(world: World) -> None:
        await world.admin.patch(HETZNER_NODE_CLASS, "default", {"spec": {"maxPods": 30}})
        await asyncio.sleep(300)
        (node,) = (await world.admin.list(NODE)).items
        assert (node.status.capacity["pods"], node.status.allocatable["pods"]) == ("30", "30")

    in_world("hetzner", body, claim("alone"))


def test_what_nobody_claims_is_collected_and_what_is_not_ours_stays() -> None:
    """A machine with our mark and no claim goes; one of another cluster, and one without a mark, do not."""

    async def body(world: World) -> None:
        half = world.hetzner
        assert half is not None
        fake = half.fake
        await asyncio.sleep(120)
        ours = {"growth.dev/cluster": world.identity, "growth.dev/claim": "lost", "growth.dev/claim-uid": "gone"}
        fake.add_server({**SERVER, "name": "lost", "labels": ours})
        fake.add_server({**SERVER, "name": "theirs", "labels": {"growth.dev/cluster": "another"}})
        fake.add_server({**SERVER, "name": "by-hand"})
        await asyncio.sleep(1800)
        assert {server.name for server in fake.machines()} == {"alone", "theirs", "by-hand"}

    in_world("hetzner", body, claim("alone"))
