"""The laws that every cloud keeps, whoever sells the machines. docs/providers.md explains them."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from growth.api import names
from growth.api.clouds import (
    CloudError,
    CloudMachine,
    CloudUnavailable,
    CreateError,
    InsufficientCapacity,
    InvariantViolation,
    MachineNotFound,
    NodeClassNotReady,
)
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NodeClaim
from growth.controllers.settings import ControllerSettings
from growth.kube.errors import GateClosed
from growth.providers.contract import CloudProvider
from growth.sim.ports import SimRandom
from growth.units.money import Money
from tests.conformance.providers.stages import STAGES, THEIRS, Closed, Stage, claim, need, on

Body = Callable[[Stage], Awaitable[None]]

# Longer than any cloud here remembers a refusal.
RECOVERED_SECONDS = 700.0
# So long a claim may take to get its machine, unless it is told otherwise.
LAUNCH_TTL = ControllerSettings().launch_ttl


@pytest.fixture(params=sorted(STAGES))
def cloud(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def until_made(provider: CloudProvider, wanted: NodeClaim, *, within: float = 1800.0) -> CloudMachine:
    """Asks as the lifecycle does: again after every error that passes."""
    loop = asyncio.get_running_loop()
    until = loop.time() + within
    while True:
        try:
            return await provider.create(wanted)
        except (CloudUnavailable, CreateError) as error:
            if loop.time() > until or (isinstance(error, CreateError) and not error.retryable):
                raise
        await asyncio.sleep(5)


async def until_gone(provider: CloudProvider, which: NodeClaim, *, within: float = 1800.0) -> None:
    """Asks until the cloud says that there is no such machine."""
    loop = asyncio.get_running_loop()
    until = loop.time() + within
    while True:
        try:
            await provider.delete(which)
        except MachineNotFound:
            return
        except CloudUnavailable:
            pass
        assert loop.time() < until, "it is still there"
        await asyncio.sleep(2)


def offerings(catalogue: Catalogue, kind: str) -> dict[str, bool]:
    return {
        offering.zone: offering.available
        for each in catalogue.types
        if each.name == kind
        for offering in each.offerings
    }


def test_a_machine_is_what_the_claim_asked_for(cloud: str) -> None:
    """Create says whose it is and what it is; get and list say the same of it."""

    async def body(stage: Stage) -> None:
        provider, wanted = stage.provider(), claim(stage, "one")
        made = await provider.create(wanted)
        assert (made.claim, made.claim_uid) == ("one", "uid-of-one")
        assert made.provider_id.startswith(stage.scheme)
        assert (made.instance_type, made.zone) == (stage.types[0], stage.zone)
        assert made.capacity_type
        assert made.labels[names.INSTANCE_TYPE_LABEL] == made.instance_type
        assert made.labels[names.ZONE_LABEL] == made.zone
        assert made.labels[names.CAPACITY_TYPE_LABEL] == made.capacity_type
        assert made.labels[names.ARCH_LABEL] == "amd64"
        assert set(made.capacity) >= {"cpu", "memory", "pods"}
        assert all(0 < made.allocatable[name] <= made.capacity[name] for name in ("cpu", "memory", "pods"))
        assert not made.deleting
        shown = await provider.get(made.provider_id)
        assert (shown.provider_id, shown.claim_uid, shown.labels) == (made.provider_id, made.claim_uid, made.labels)
        assert [each.provider_id for each in await provider.list()] == [made.provider_id]
        assert await stage.held() == ["uid-of-one"]

    on(cloud, body)


def test_the_catalogue_can_be_planned_with(cloud: str) -> None:
    """Types are named once, offerings have a place and a price that is a number or missing, never a guess of zero."""

    async def body(stage: Stage) -> None:
        catalogue = await stage.provider().catalogue()
        assert len({kind.name for kind in catalogue.types}) == len(catalogue.types) > 1
        assert catalogue.currency
        for kind in catalogue.types:
            assert kind.labels[names.ARCH_LABEL]
            assert all(kind.allocatable[name] > 0 for name in ("cpu", "memory", "pods"))
            assert all(offering.zone and offering.capacity_type for offering in kind.offerings)
            assert all(offering.price is None or offering.price > 0 for offering in kind.offerings)
        assert all(offerings(catalogue, kind)[stage.zone] for kind in stage.types)

    on(cloud, body)


def test_a_purchase_that_is_repeated_finds_the_first_machine(cloud: str) -> None:
    """Also by another process, and when the offering is sold out by now and known to be."""

    async def body(stage: Stage) -> None:
        provider = stage.provider()
        first = await provider.create(claim(stage, "one"))
        await stage.sell_out(*stage.types)
        assert (await stage.provider().create(claim(stage, "one"))).provider_id == first.provider_id
        with pytest.raises(InsufficientCapacity):
            await until_made(provider, claim(stage, "two"))
        assert (await provider.create(claim(stage, "one"))).provider_id == first.provider_id
        assert await stage.held() == ["uid-of-one"]

    on(cloud, body)


def test_many_who_buy_for_one_claim_buy_once(cloud: str) -> None:
    """Two processes that both believe to lead, several times each: one machine, and all who get one get that."""

    async def body(stage: Stage) -> None:
        providers = [stage.provider(), stage.provider()]
        asked = [provider.create(claim(stage, "one")) for provider in providers for _ in range(3)]
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(each, CloudMachine | CloudError) for each in results)
        assert len({each.provider_id for each in results if isinstance(each, CloudMachine)}) <= 1
        await until_made(providers[0], claim(stage, "one"))
        assert await stage.held() == ["uid-of-one"]

    on(cloud, body)


def test_a_lost_answer_buys_once(cloud: str) -> None:
    """The purchase was made and nobody heard of it: the next attempt finds the machine."""

    async def body(stage: Stage) -> None:
        provider = stage.provider()
        await provider.catalogue()
        await stage.lose_answers()
        with pytest.raises((CloudUnavailable, CreateError)):
            await provider.create(claim(stage, "one"))
        await stage.heal()
        made = await until_made(provider, claim(stage, "one"))
        assert await stage.held() == ["uid-of-one"]
        assert [each.provider_id for each in await provider.list()] == [made.provider_id]

    on(cloud, body)


def test_a_purchase_given_up_at_any_moment_leaves_one_machine(cloud: str) -> None:
    """A process that ends in the middle of a purchase, wherever that is, leaves nothing that its successor buys again."""

    async def body(stage: Stage) -> None:
        for number in range(40):
            wanted = claim(stage, f"claim-{number}")
            task = asyncio.ensure_future(stage.provider().create(wanted))
            await asyncio.sleep(0.012 * number * (1 if cloud == "kwok" else 10))
            task.cancel()
            await asyncio.wait([task])
            await until_made(stage.provider(), wanted)
        assert await stage.held() == sorted(f"uid-of-claim-{number}" for number in range(40))
        assert len(await stage.provider().list()) == 40

    on(cloud, body)


def test_the_cheapest_that_the_claim_allows_is_bought(cloud: str) -> None:
    """The claim's order of types says nothing; its highest price does."""

    async def body(stage: Stage) -> None:
        provider = stage.provider()
        reversed_types = need(names.INSTANCE_TYPE_LABEL, *reversed(stage.types))
        made = await provider.create(claim(stage, "one", reversed_types, need(names.ZONE_LABEL, stage.zone)))
        assert made.instance_type == stage.types[0]
        dear = claim(stage, "two", annotations={names.MAX_PRICE_ANNOTATION: "0.000001"})
        with pytest.raises(InsufficientCapacity):
            await provider.create(dear)
        with pytest.raises(CreateError) as refused:
            await provider.create(claim(stage, "three", annotations={names.MAX_PRICE_ANNOTATION: "cheap"}))
        assert not refused.value.retryable
        assert await stage.held() == ["uid-of-one"]

    on(cloud, body)


def test_what_nothing_meets_buys_nothing(cloud: str) -> None:
    """A claim that no offering fits is told so."""

    async def body(stage: Stage) -> None:
        provider = stage.provider()
        for number, asked in enumerate(
            (
                need(names.INSTANCE_TYPE_LABEL, "no-such-type"),
                need(names.ZONE_LABEL, "no-such-zone"),
                need(names.ARCH_LABEL, "riscv64"),
            )
        ):
            with pytest.raises(InsufficientCapacity):
                await provider.create(claim(stage, f"claim-{number}", asked))
        big = claim(stage, "big", resources={"requests": {"cpu": "5000"}})
        with pytest.raises(InsufficientCapacity):
            await provider.create(big)
        assert await stage.held() == []

    on(cloud, body)


def test_out_of_stock_falls_through_and_comes_back(cloud: str) -> None:
    """The next cheapest is bought; what was refused is shown as unavailable for a while, and then is tried again."""

    async def body(stage: Stage) -> None:
        provider, (cheap, dear) = stage.provider(), stage.types
        await stage.sell_out(cheap)
        assert (await until_made(provider, claim(stage, "one"))).instance_type == dear
        assert not offerings(await provider.catalogue(), cheap)[stage.zone]
        assert offerings(await provider.catalogue(), dear)[stage.zone]
        await stage.sell_out(cheap, dear)
        with pytest.raises(InsufficientCapacity):
            await until_made(provider, claim(stage, "two"))
        await stage.sell_out()
        await asyncio.sleep(RECOVERED_SECONDS)
        assert offerings(await provider.catalogue(), cheap)[stage.zone]
        assert (await provider.create(claim(stage, "two"))).instance_type == cheap
        assert await stage.held() == ["uid-of-one", "uid-of-two"]

    on(cloud, body)


def test_nine_types_without_stock_fall_through_to_the_tenth(cloud: str) -> None:
    """One claim gets past all of them by its own retries, before it would be given up, and is no dearer than it may be."""

    async def body(stage: Stage) -> None:
        provider = stage.provider()
        known = await provider.catalogue()
        sold = {
            kind.name: min(each.price for each in kind.offerings if each.price is not None)
            for kind in known.of_classes.get("default", known.types)
            if any(each.available and each.price is not None for each in kind.offerings)
        }
        ten = sorted(sold, key=lambda name: (sold[name], name))[:10]
        await stage.sell_out(*ten[:9])
        most = {names.MAX_PRICE_ANNOTATION: Money(sold[ten[9]], known.currency).exact}
        wanted = claim(stage, "one", need(names.INSTANCE_TYPE_LABEL, *sold), annotations=most)
        assert (await until_made(provider, wanted, within=LAUNCH_TTL)).instance_type == ten[9]
        assert await stage.held() == ["uid-of-one"]

    on(cloud, body)


def test_a_deletion_is_asked_for_until_the_machine_is_gone(cloud: str) -> None:
    """Asking again is harmless; at the end, and for what never was, the answer is «there is no such machine».

    A process that has just begun may have to wait before it can say so.
    """

    async def body(stage: Stage) -> None:
        provider, wanted = stage.provider(), claim(stage, "one")
        made = await provider.create(wanted)
        other = await provider.create(claim(stage, "two"))
        await until_gone(provider, wanted)
        assert await stage.held() == ["uid-of-two"]
        with pytest.raises(MachineNotFound):
            await provider.get(made.provider_id)
        assert [each.provider_id for each in await provider.list()] == [other.provider_id]
        for _ in range(2):
            await until_gone(stage.provider(), wanted)
        with pytest.raises(MachineNotFound):
            await provider.delete(claim(stage, "never"))
        assert await stage.held() == ["uid-of-two"]

    on(cloud, body)


def test_a_machine_that_is_going_is_not_given_to_anybody(cloud: str) -> None:
    """A purchase of its name waits until it is gone, and then gets another machine."""

    async def body(stage: Stage) -> None:
        provider, wanted = stage.provider(), claim(stage, "one")
        first = await provider.create(wanted)
        await provider.delete(wanted)
        with contextlib.suppress(MachineNotFound):
            assert (await provider.get(first.provider_id)).deleting
        with contextlib.suppress(CreateError):
            assert (await provider.create(wanted)).provider_id is not None
        await until_gone(provider, wanted)
        again = await until_made(stage.provider(), wanted)
        assert await stage.held() == ["uid-of-one"]
        assert not (await provider.get(again.provider_id)).deleting

    on(cloud, body)


def test_another_claim_of_the_same_name_has_another_machine(cloud: str) -> None:
    """What was bought for a claim that is gone is not handed to its successor of that name, and not deleted for it."""

    async def body(stage: Stage) -> None:
        provider = stage.provider()
        old, new = claim(stage, "one", uid="old"), claim(stage, "one", uid="new")
        await provider.create(old)
        with pytest.raises(InvariantViolation):
            await provider.create(new)
        with pytest.raises(MachineNotFound):
            await provider.delete(new)
        assert await stage.held() == ["old"]
        await until_gone(provider, old)
        assert (await until_made(provider, new)).claim_uid == "new"
        assert await stage.held() == ["new"]

    on(cloud, body)


def test_silence_is_not_absence(cloud: str) -> None:
    """Where no answer comes nothing is said to be gone, and a list is whole or an error."""

    async def body(stage: Stage) -> None:
        provider, wanted = stage.provider(), claim(stage, "one")
        made = await provider.create(wanted)
        await asyncio.sleep(60)
        await stage.silence()
        with pytest.raises(CloudUnavailable):
            await provider.list()
        with pytest.raises(CloudUnavailable):
            await provider.delete(wanted)
        with pytest.raises(CloudUnavailable):
            await provider.get(made.provider_id)
        with pytest.raises((CloudUnavailable, CreateError)):
            await provider.create(claim(stage, "two"))
        await stage.heal()
        await asyncio.sleep(60)
        assert [each.provider_id for each in await provider.list()] == [made.provider_id]
        assert await stage.held() == ["uid-of-one"]

    on(cloud, body)


def test_another_cluster_in_the_same_account_is_left_alone(cloud: str) -> None:
    """Its machines are not shown, not adopted and not deleted, also under a name of ours."""

    async def body(stage: Stage) -> None:
        ours, theirs = stage.provider(), stage.provider(cluster=THEIRS)
        foreign = await theirs.create(claim(stage, "shared", uid="theirs"))
        await ours.create(claim(stage, "ours"))
        assert [each.claim for each in await ours.list()] == ["ours"]
        assert [each.claim for each in await theirs.list()] == ["shared"]
        mine = claim(stage, "shared", uid="mine")
        with contextlib.suppress(CreateError, InvariantViolation):  # where names are unique in an account
            assert (await ours.create(mine)).provider_id != foreign.provider_id
            await until_gone(ours, mine)
        with pytest.raises((MachineNotFound, InvariantViolation)):
            await ours.delete(claim(stage, "shared", uid="mine"))
        with pytest.raises((MachineNotFound, InvariantViolation)):
            await ours.get(foreign.provider_id)
        assert await stage.held() == ["theirs", "uid-of-ours"]

    on(cloud, body)


def test_an_identity_of_another_cloud_is_a_contradiction(cloud: str) -> None:
    """It is not «not found»: whoever asked would remove the claim of a machine that is there."""

    async def body(stage: Stage) -> None:
        provider = stage.provider()
        for foreign in ("aws:///eu-central-1a/i-1234", f"x{stage.scheme}1", ""):
            with pytest.raises(InvariantViolation):
                await provider.get(foreign)

    on(cloud, body)


def test_a_node_class_that_cannot_be_used_buys_nothing(cloud: str) -> None:
    """One that is missing, or another cloud's."""

    async def body(stage: Stage) -> None:
        provider = stage.provider()
        with pytest.raises(NodeClassNotReady):
            await provider.create(claim(stage, "one", node_class="missing"))
        reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        foreign = claim(stage, "two")
        foreign = type(foreign)(
            metadata=foreign.metadata,
            spec=type(foreign.spec)(
                node_class_ref=type(foreign.spec.node_class_ref)(**reference), requirements=foreign.spec.requirements
            ),
        )
        with pytest.raises(NodeClassNotReady):
            await provider.create(foreign)
        assert await stage.held() == []

    on(cloud, body)


def test_a_process_that_may_not_write_does_not(cloud: str) -> None:
    """Behind a closed gate nothing is bought and nothing is deleted; reading goes on."""

    async def body(stage: Stage) -> None:
        await stage.provider().create(claim(stage, "one"))
        late = stage.provider(gate=Closed())
        with pytest.raises(GateClosed):
            await late.create(claim(stage, "two"))
        with pytest.raises(GateClosed):
            await late.delete(claim(stage, "one"))
        await asyncio.sleep(60)
        assert [each.claim for each in await late.list()] == ["one"]
        assert await stage.held() == ["uid-of-one"]

    on(cloud, body)


def test_nothing_drifts_by_itself(cloud: str) -> None:
    """A machine that was just bought is as its class asks."""

    async def body(stage: Stage) -> None:
        provider, wanted = stage.provider(), claim(stage, "one")
        await provider.create(wanted)
        assert await provider.is_drifted(wanted) == ""

    on(cloud, body)


def test_repair_policies_have_patience(cloud: str) -> None:
    """No condition means a broken machine at once."""

    async def body(stage: Stage) -> None:
        for policy in stage.provider().repair_policies():
            assert policy.toleration.total_seconds() >= 60

    on(cloud, body)


@pytest.mark.parametrize("seed", range(3))
def test_through_trouble_every_claim_has_one_machine(cloud: str, seed: int) -> None:
    """Whatever goes wrong by chance, nothing comes out but the errors of the contract; the books are right at the end."""

    async def body(stage: Stage) -> None:
        random = SimRandom(seed, "order")
        providers = [stage.provider(), stage.provider()]
        claims = [claim(stage, f"claim-{number}") for number in range(30)]
        await stage.trouble()

        async def tried(wanted: NodeClaim) -> None:
            await asyncio.sleep(random.uniform(0, 20))
            for _ in range(random.between(1, 3)):
                with contextlib.suppress(CloudError):
                    await random.choice(providers).create(wanted)

        await asyncio.gather(*map(tried, claims))
        await stage.heal()
        await asyncio.sleep(RECOVERED_SECONDS)
        await asyncio.gather(*(until_made(providers[0], wanted) for wanted in claims))
        assert await stage.held() == sorted(each.metadata.uid for each in claims)
        listed = await providers[1].list()
        assert sorted(each.claim_uid for each in listed if not each.deleting) == await stage.held()
        await stage.trouble()
        for wanted in claims:
            with contextlib.suppress(CloudError):
                await providers[0].delete(wanted)
        await stage.heal()
        await asyncio.sleep(RECOVERED_SECONDS)
        await asyncio.gather(*(until_gone(providers[1], wanted) for wanted in claims))
        assert await stage.held() == []

    on(cloud, body, seed=seed)
