"""The whole autoscaler in a simulated world whose machines LKE sells, each tier."""

import asyncio

import pytest

from growth.api.clouds import CloudMachine
from growth.api.karpenter import NodeClaim
from growth.providers.linode import wire
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode.fake import LinodeFake
from growth.sim.clouds.linode.objects import Pool
from growth.sim.runs import run
from growth.sim.scenario.oddities import claim
from growth.sim.world.linode import TOKEN
from growth.sim.world.world import World
from tests.simulation.vendors import all_that_is_told, in_world, order

TIERS = ("linode", "linode-enterprise", "linode-instances")


@pytest.mark.parametrize("provider", TIERS)
def test_a_burst_buys_and_gives_back(provider: str) -> None:
    """Machines come for the pods and go after them; nothing is left, and no promise is broken."""
    outcome = run(order(provider, 3))
    assert outcome.violations == ()
    assert outcome.scale_ups == outcome.scale_downs >= 2
    # Each is there for a few minutes and paid for an hour; none was bought that no claim had.
    assert outcome.cost == pytest.approx(outcome.scale_ups * 72_000_000)


@pytest.mark.parametrize("provider", TIERS)
@pytest.mark.parametrize("seed", range(2))
def test_a_bad_cloud_breaks_no_promise(provider: str, seed: int) -> None:
    """Refusals, lost answers, pages by proxies, nodes without machines and crashes, on a tenth of all calls."""
    faults = "cloud-error=0.1,cloud-answer-lost=0.1,stock-out=20,crash=20,list-empty=0.2"
    outcome = run(order(provider, seed, faults=faults))
    assert outcome.violations == ()
    assert outcome.scale_ups >= 1


def test_equal_seeds_repeat_a_run() -> None:
    """To the last step."""
    first, second = (run(order("linode", 1, faults="cloud-error=0.1,cloud-answer-lost=0.1")) for _ in range(2))
    assert first.digest == second.digest


def test_instances_are_bought_for_claims_and_not_through_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by its own call, and LKE is asked for nothing."""
    real, asked = LinodeApi.create_instance, set()

    async def counted(self: LinodeApi, body: dict[str, object]) -> wire.Instance:
        asked.add(body["label"])
        return await real(self, body)

    async def refused(self: LinodeApi, cluster: int) -> list[wire.Pool]:
        raise AssertionError(f"{self} looks for pools of {cluster}")

    monkeypatch.setattr(LinodeApi, "create_instance", counted)
    monkeypatch.setattr(LinodeApi, "pools", refused)
    outcome = run(order("linode-instances", 3))
    assert outcome.violations == ()
    assert outcome.scale_ups == len(asked) >= 2


def test_a_provider_that_gives_one_machine_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judges see the machines that the API sold, whatever the provider believes: this one answers with what it has."""
    real = LinodeProvider.create
    bought: list[CloudMachine] = []

    async def careless(self: LinodeProvider, asked: NodeClaim) -> CloudMachine:
        if not bought:
            bought.append(await real(self, asked))
        return bought[0]

    monkeypatch.setattr(LinodeProvider, "create", careless)
    assert run(order("linode", 0)).violations


@pytest.mark.parametrize("provider", TIERS)
def test_the_token_is_told_to_nobody(
    provider: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In no object of the cluster (events, conditions, decisions) and no log."""
    bad = order(provider, 2, faults="cloud-error=0.3,cloud-answer-lost=0.2")
    seen = all_that_is_told(bad, monkeypatch, capsys)
    assert not any(TOKEN[at : at + 8] in text for text in seen for at in range(len(TOKEN) - 8))


async def too_large(world: World, count: int) -> tuple[LinodeFake, Pool]:
    """The cloud, and a pool of ours that somebody scaled to so many, of which one is claimed."""
    half = world.linode
    assert half is not None
    await asyncio.sleep(120)
    (ours,) = half.fake.account.pools.values()
    half.fake.account.scale(ours, count)
    return half.fake, ours


@pytest.mark.parametrize("tier", ["standard", "enterprise"])
def test_capacity_that_nobody_claims_goes(tier: str) -> None:
    """A pool of ours that is two too large is brought down to the machine that somebody has."""

    async def body(world: World) -> None:
        fake, ours = await too_large(world, 3)
        await asyncio.sleep(1200)
        fake.advance()
        assert ours.count == len(fake.machines()) == 1

    in_world("linode", body, claim("alone"), linodeCluster=tier)
