"""A machine whose tags are another claim's than the one that names it: a write that came late. The claim decides whose it is."""

import asyncio

import pytest

from growth.api import names
from growth.api.clouds import InvariantViolation
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode.objects import Instance
from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.test_linode_doubles import CLAIM, TIERS, collected, machines, names_machine, stored, tagged
from tests.simulation.test_linode_pools import gone, made

UID = "growth.dev/uid"


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def bought(stage: LkeStage, name: str) -> tuple[NodeClaim, Instance]:
    """A claim with its machine, which it names."""
    wanted = await stored(stage, name)
    await made(stage.provider(), wanted)
    (machine,) = tagged(stage, name)
    await names_machine(stage, wanted, machine)
    return await stored(stage, name), machine


async def retagged_late(stage: LkeStage, machine: Instance, claim: NodeClaim) -> None:
    """What a leader that is gone wrote for the claim arrives only now, and takes the place of all tags."""
    others = [each for each in machine.tags if not each.startswith((CLAIM, UID))]
    uid = claim.metadata.uid.replace("-", "")
    stage.fake.account.retag(machine, (*others, f"{CLAIM}:{claim.metadata.name}", f"{UID}:{uid}"))
    stage.fake.advance()


async def mistagged(stage: LkeStage) -> tuple[NodeClaim, Instance, NodeClaim]:
    """A claim and the machine that it names, and another without a machine, whose tags that machine has."""
    owner, machine = await bought(stage, "owner")
    late = await stored(stage, "late")
    await retagged_late(stage, machine, late)
    return owner, machine, late


def test_a_claim_without_a_machine_does_not_delete_one_that_another_names(tier: str) -> None:
    """It is found by tags that came late, and those are put right: it goes with its own claim, and not before."""

    async def body(stage: LkeStage) -> None:
        owner, machine, late = await mistagged(stage)
        await gone(stage.provider(), late)
        assert machines(stage) == [machine.id]
        assert tagged(stage, "owner") == [machine]
        said = [each for each in machine.tags if each.startswith(UID)]
        assert said == [f"{UID}:{owner.metadata.uid.replace('-', '')}"]
        await gone(stage.provider(), owner)
        assert machines(stage) == []

    on(tier, body)


def test_a_purchase_does_not_end_with_a_machine_that_another_claim_names(tier: str) -> None:
    """Another is bought, and each claim has its own."""

    async def body(stage: LkeStage) -> None:
        _, machine, late = await mistagged(stage)
        found = await made(stage.provider(), late)
        assert found.provider_id != f"linode://{machine.id}"
        assert tagged(stage, "owner") == [machine]
        assert [f"linode://{each.id}" for each in tagged(stage, "late")] == [found.provider_id]
        assert len(stage.fake.ledger.purchases) == 2

    on(tier, body)


def test_a_machine_goes_with_the_claim_that_names_it(tier: str) -> None:
    """Whose tags it has by then is gone, or has another."""

    async def body(stage: LkeStage) -> None:
        owner, machine = await bought(stage, "owner")
        late, other = await bought(stage, "late")
        await retagged_late(stage, machine, late)
        await gone(stage.provider(), owner)
        assert machines(stage) == [other.id]

    on(tier, body)


def test_of_two_machines_the_one_that_another_claim_names_is_that_ones(tier: str) -> None:
    """The pool is not blocked for longer than a write can be late."""

    async def body(stage: LkeStage) -> None:
        _, machine = await bought(stage, "owner")
        late, other = await bought(stage, "late")
        await retagged_late(stage, machine, late)
        assert len(tagged(stage, "late")) == 2
        await collected(stage.provider(), seconds=120)
        assert (tagged(stage, "owner"), tagged(stage, "late")) == ([machine], [other])
        assert machines(stage) == sorted([machine.id, other.id])

    on(tier, body)


def test_two_machines_for_a_claim_that_names_none_while_another_names_the_first(tier: str) -> None:
    """The second is its own, whatever its number."""

    async def body(stage: LkeStage) -> None:
        _, machine = await bought(stage, "owner")
        late = await stored(stage, "late")
        await made(stage.provider(), late)
        (other,) = tagged(stage, "late")
        await retagged_late(stage, machine, late)
        await collected(stage.provider(), seconds=120)
        assert (tagged(stage, "owner"), tagged(stage, "late")) == ([machine], [other])

    on(tier, body)


def test_two_machines_that_others_name_are_none_of_the_claims(tier: str) -> None:
    """Each gets the tags of who names it."""

    async def body(stage: LkeStage) -> None:
        _, first = await bought(stage, "first")
        _, second = await bought(stage, "second")
        late = await stored(stage, "late")
        for machine in (first, second):
            await retagged_late(stage, machine, late)
        await collected(stage.provider(), seconds=120)
        assert (tagged(stage, "first"), tagged(stage, "second"), tagged(stage, "late")) == ([first], [second], [])

    on(tier, body)


@pytest.mark.parametrize("ends", ["owner", "late"])
def test_a_machine_that_two_claims_name_is_left_to_people(tier: str, ends: str) -> None:
    """Nothing says whose it is: it is deleted for neither, nor for the one whose tags it has."""

    async def body(stage: LkeStage) -> None:
        _, machine, late = await mistagged(stage)
        await names_machine(stage, late, machine)
        with pytest.raises(InvariantViolation, match=rf"names? machine {machine.id}"):
            await stage.provider().delete(await stored(stage, ends))
        assert machines(stage) == [machine.id]

    on(tier, body)


def test_a_machine_that_two_claims_name_goes_when_both_do(tier: str) -> None:
    """Nobody wants it any more."""

    async def body(stage: LkeStage) -> None:
        owner, machine, late = await mistagged(stage)
        await names_machine(stage, late, machine)
        for each in (owner, late):
            finalizers = {"metadata": {"finalizers": [names.TERMINATION_FINALIZER]}}
            await stage.admin.patch(NODE_CLAIM, each.metadata.name, finalizers)
            await stage.admin.delete(NODE_CLAIM, each.metadata.name)
        for each in (late, owner):
            await gone(stage.provider(), await stored(stage, each.metadata.name))
        assert machines(stage) == []

    on(tier, body)


@pytest.mark.parametrize("age", [70, 130, 290, 600])
def test_a_machine_that_a_claim_names_is_not_claimed_for_another(tier: str, age: int) -> None:
    """Somebody took the claim's tags off: it is the claim's all the same, and the pool grows for the other."""

    async def body(stage: LkeStage) -> None:
        provider, wanted = stage.provider(), await stored(stage, "owner")
        await made(provider, wanted)
        (machine,) = tagged(stage, "owner")
        await names_machine(stage, wanted, machine)
        await asyncio.sleep(age)
        left = [each for each in machine.tags if not each.startswith((CLAIM, UID))]
        stage.fake.account.retag(machine, tuple(left))
        await asyncio.sleep(3)
        other = await made(provider, await stored(stage, "other"))
        assert other.provider_id != f"linode://{machine.id}"
        assert len(machines(stage)) == 2

    on(tier, body)


async def answered(stage: LkeStage) -> tuple[LinodeProvider, NodeClaim, Instance, NodeClaim]:
    """A purchase ended with a machine and its claim does not say so yet; by then it has the tags of another claim."""
    provider, owner, late = stage.provider(), await stored(stage, "owner"), await stored(stage, "late")
    await made(provider, owner)
    (machine,) = tagged(stage, "owner")
    await retagged_late(stage, machine, late)
    return provider, owner, machine, late


def test_a_machine_that_a_purchase_ended_with_is_no_answer_to_another(tier: str) -> None:
    """Its claim names it as soon as that can be written: the other gets its own, however often such tags come."""

    async def body(stage: LkeStage) -> None:
        provider, _, machine, late = await answered(stage)
        found = await made(provider, late)
        assert found.provider_id != f"linode://{machine.id}"
        assert tagged(stage, "owner") == [machine]
        await retagged_late(stage, machine, later := await stored(stage, "later"))
        assert (await made(provider, later)).provider_id not in {found.provider_id, f"linode://{machine.id}"}
        assert tagged(stage, "owner") == [machine]

    on(tier, body)


def test_a_machine_that_a_purchase_ended_with_is_not_deleted_for_another(tier: str) -> None:
    """The tags are put right, and the claim whose they were has no machine."""

    async def body(stage: LkeStage) -> None:
        provider, owner, machine, late = await answered(stage)
        await asyncio.sleep(70)
        await gone(provider, late)
        assert machines(stage) == [machine.id]
        assert (await provider.create(owner)).provider_id == f"linode://{machine.id}"

    on(tier, body)
