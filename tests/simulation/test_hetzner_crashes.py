"""The Hetzner provider under bad networks, and crashed after each of its requests: machines bought are claims, never more."""

import asyncio
import contextlib

import pytest

from growth.api.clouds import CloudError, CloudMachine, MachineNotFound
from growth.api.karpenter import NodeClaim
from growth.providers.hetzner.provider import HetznerProvider
from growth.sim.clouds.hetzner import FakeSettings, Faults, Limits
from tests.hetzner_provider import TOKEN, HetznerWorld, claim, in_hetzner, launched, new_provider
from tests.simulation.crashing import Crashing, crashed

BAD = Faults(
    rate_limit=0.03,
    server_error=0.03,
    bad_gateway=0.02,
    half_done=0.02,
    lost_request=0.03,
    lost_answer=0.04,
    conflict=0.02,
    unavailable=0.03,
    late_failure=0.05,
)


LEAKS: list[str] = []
"""Parts of the token that stood in an error."""


async def launch(provider: HetznerProvider, wanted: NodeClaim) -> CloudMachine:
    """As the lifecycle does: again and again until there is a machine."""
    while True:
        try:
            return await provider.create(wanted)
        except CloudError as error:
            LEAKS.extend(part for part in (TOKEN, TOKEN[:16], TOKEN[16:]) if part in str(error))
            await asyncio.sleep(20)


@pytest.mark.parametrize("seed", range(20))
def test_two_hundred_concurrent_purchases_on_a_bad_day(seed: int) -> None:
    """Every claim has exactly one machine, no machine two claims, and no more stand than there are claims."""

    async def body(world: HetznerWorld) -> None:
        world.fake.faults = BAD
        wanted = [claim(f"one-{number}", "cx33", "cax21", "cx43") for number in range(200)]
        made: dict[str, CloudMachine] = {}

        async def one(each: NodeClaim) -> None:
            made[each.metadata.name] = await launch(world.provider, each)

        async with asyncio.TaskGroup() as group:
            for each in wanted:
                group.create_task(one(each))
        world.fake.faults = Faults()
        assert len({machine.provider_id for machine in made.values()}) == 200
        listed = {each.provider_id: each.claim for each in await world.provider.list()}
        assert listed == {machine.provider_id: name for name, machine in made.items()}
        assert world.standing == sorted(made)
        assert LEAKS == []
        assert not any(TOKEN[:16] in str(entry) for entry in world.cloud.client.journal.entries())

    in_hetzner(body, seed=seed, settings=FakeSettings(limits=Limits(servers=500)), limit_seconds=100_000)


def provider_of(world: HetznerWorld, cloud: Crashing, after: int) -> HetznerProvider:
    return new_provider(world.kernel, cloud, world.admin, seed=f"crashing {after}")[0]


@pytest.mark.parametrize(
    "spec", [{}, {"placementGroup": "Spread", "backups": True}], ids=["plain", "with groups and backups"]
)
def test_a_purchase_that_crashes_after_any_request_is_made_once(spec: dict[str, object]) -> None:
    """After the restart the same claim gets its one machine."""

    async def body(world: HetznerWorld) -> int:
        for after in range(1, 100):
            wanted = claim(f"one-{after}", "cx33")
            cloud = Crashing(world.fake, after)
            if not await crashed(provider_of(world, cloud, after).create(wanted), cloud):
                return after
            made = await launch(world.new_provider(), wanted)
            assert [server.id for server in world.fake.machines()] == [int(made.provider_id.removeprefix("hcloud://"))]
            assert world.bought.count(f"one-{after}") == 1
            assert await world.gone(launched(wanted, made), provider=world.new_provider())
        raise AssertionError("a purchase has no end")

    assert in_hetzner(body, node_class=spec) > 5


def test_a_deletion_that_crashes_after_any_request_is_completed() -> None:
    """After the restart the machine goes, whether or not the claim knew its ID; nothing else goes with it."""

    async def body(world: HetznerWorld) -> list[int]:
        stays = await world.provider.create(claim("stays", "cx33"))
        return [await requests(world, stays, known=known) for known in (True, False)]

    async def requests(world: HetznerWorld, stays: CloudMachine, *, known: bool) -> int:
        for after in range(1, 100):
            wanted = claim(f"one-{known}-{after}".lower(), "cx33")
            made = await world.provider.create(wanted)
            asked = launched(wanted, made) if known else wanted
            cloud = Crashing(world.fake, after)
            fell = await crashed(world.gone(asked, provider=provider_of(world, cloud, after)), cloud)
            assert await world.gone(asked, provider=world.new_provider())
            assert [each.provider_id for each in await world.provider.list()] == [stays.provider_id]
            if not fell:
                return after
        raise AssertionError("a deletion has no end")

    assert min(in_hetzner(body)) > 3


def test_a_purchase_given_up_in_the_middle_leaves_a_machine_that_is_found() -> None:
    """A claim that is deleted while its purchase runs: the machine is listed with the claim's name, and can be removed."""

    async def body(world: HetznerWorld) -> None:
        wanted = claim("one", "cx33")
        buying = asyncio.ensure_future(world.provider.create(wanted))
        await asyncio.sleep(2)
        buying.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await buying
        (machine,) = await world.provider.list()
        assert (machine.claim, machine.claim_uid) == ("one", "uid-of-one")
        assert await world.gone(wanted)
        with pytest.raises(MachineNotFound):
            await world.provider.get(machine.provider_id)

    in_hetzner(body)


def test_a_budget_that_others_use_up_stops_nothing_for_good() -> None:
    """While the account has no calls left nothing is unavailable for good and no offering is blamed."""

    async def body(world: HetznerWorld) -> None:
        await world.provider.create(claim("one", "cx33"))
        world.fake.spend(3600)
        await launch(world.provider, claim("two", "cx33"))
        sold = await world.provider.catalogue()
        assert all(each.available for kind in sold.types for each in kind.offerings)
        assert world.standing == ["one", "two"]

    in_hetzner(body)
