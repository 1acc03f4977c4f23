"""Instances at Linode from which somebody took tags: whose they are all the same, and how they end."""

import asyncio
import contextlib

import pytest

from growth.api.clouds import CreateError, InvariantViolation
from growth.api.karpenter import NODE_CLAIM
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode.market import KINDS
from growth.sim.clouds.linode.objects import Instance
from growth.sim.scenario.oddities import claim as claim_in_world
from growth.sim.world.world import World
from tests.conformance.providers.stages import LinodeInstanceStage, claim, on
from tests.simulation.test_linode_classes import launched
from tests.simulation.test_linode_doubles import stored
from tests.simulation.test_linode_pools import gone, machine_of, made
from tests.simulation.vendors import in_world

INSTANCES = "linode-instances"
CLAIM, UID, CLUSTER = "karpenter.sh/nodeclaim", "growth.dev/uid", "growth.dev/cluster"


def without(machine: Instance, *keys: str) -> tuple[str, ...]:
    return tuple(each for each in machine.tags if not each.startswith(keys))


async def later(stage: LinodeInstanceStage) -> LinodeProvider:
    """A process that remembers nothing of the purchase."""
    await asyncio.sleep(200)
    return stage.provider()


@pytest.mark.parametrize("name", ["web-1", "a--b", "x--" * 20 + "xyz"])
@pytest.mark.parametrize("keys", [(CLAIM,), (CLAIM, UID)])
def test_a_machine_without_its_claims_tag_is_listed_as_its_claims(name: str, keys: tuple[str, ...]) -> None:
    """By the UID and by the label, which is made of the claim's name: sweeps see it, and spare it while its claim is there."""

    async def body(stage: LinodeInstanceStage) -> None:
        wanted = await stored(stage, name)
        machine = machine_of(stage, await made(stage.provider(), wanted))
        stage.fake.account.retag(machine, without(machine, *keys))
        provider = await later(stage)
        (listed,) = await provider.list()
        assert listed.claim == (await provider.get(listed.provider_id)).claim == name
        assert listed.claim_uid == ("" if UID in keys else wanted.metadata.uid)

    on(INSTANCES, body)


@pytest.mark.parametrize(("label", "told"), [("web-1", "web-1"), ("Some_Server", "")])
def test_a_machine_whose_claim_is_gone_is_told_by_its_label(label: str, told: str) -> None:
    """Where that can be a claim's name; of any other nobody can tell whose it was, and people hear that there is one."""

    async def body(stage: LinodeInstanceStage) -> None:
        stage.fake.account.buy(
            label=label, kind=KINDS["g6-standard-2"], region=stage.zone, tags=(f"{CLUSTER}:abc123", f"{UID}:gone")
        )
        (listed,) = await stage.provider().list()
        assert listed.claim == told
        assert listed.claim_uid == ("gone" if told else "")

    on(INSTANCES, body)


def test_a_machine_without_its_claims_tag_goes_once_its_claim_is_gone() -> None:
    """As every machine without a claim does; the others stay."""

    async def body(world: World) -> None:
        half = world.linode
        assert half is not None
        await asyncio.sleep(300)
        machines = {each.label: each for each in half.fake.machines()}
        assert machines.keys() == {"one", "two"}
        for machine in machines.values():
            half.fake.account.retag(machine, without(machine, CLAIM))
        await asyncio.sleep(1200)
        assert {each.label for each in half.fake.machines()} == {"one", "two"}
        await world.cluster.admin.delete(NODE_CLAIM, "two")
        await world.cluster.admin.patch(NODE_CLAIM, "two", {"metadata": {"finalizers": None}})
        await asyncio.sleep(1200)
        assert {each.label for each in half.fake.machines()} == {"one"}

    in_world("linode", body, claim_in_world("one"), claim_in_world("two"), linodeRegion="us-east")


@pytest.mark.parametrize("keys", [(CLUSTER,), (CLUSTER, CLAIM), (CLUSTER, UID), (CLUSTER, CLAIM, UID)])
def test_a_claim_that_names_a_machine_without_tags_ends_it(keys: tuple[str, ...]) -> None:
    """The UID is the claim's, or the label is: the claim would stay for ever, and the machine be paid for."""

    async def body(stage: LinodeInstanceStage) -> None:
        wanted = claim(stage, "web-1")
        answer = await made(stage.provider(), wanted)
        machine = machine_of(stage, answer)
        stage.fake.account.retag(machine, without(machine, *keys))
        with contextlib.suppress(InvariantViolation):
            await gone(await later(stage), launched(wanted, answer.provider_id))
        assert stage.fake.machines() == ()

    on(INSTANCES, body)


@pytest.mark.parametrize("said", [f"{CLUSTER}:fed456", f"{CLAIM}:other", f"{UID}:other"])
def test_a_machine_that_says_another_owner_is_not_deleted(said: str) -> None:
    """Whatever the claim names: another cluster has it, or another claim."""

    async def body(stage: LinodeInstanceStage) -> None:
        wanted = claim(stage, "web-1")
        answer = await made(stage.provider(), wanted)
        machine = machine_of(stage, answer)
        stage.fake.account.retag(machine, (said, *without(machine, CLUSTER, said.partition(":")[0])))
        with pytest.raises(InvariantViolation):
            await (await later(stage)).delete(launched(wanted, answer.provider_id))
        assert machine.status == "running"

    on(INSTANCES, body)


def test_a_claim_whose_machine_nobody_can_tell_is_told_which_tag_to_put_back() -> None:
    """A machine that somebody renamed, without any tag of ours."""

    async def body(stage: LinodeInstanceStage) -> None:
        wanted = claim(stage, "web-1")
        answer = await made(stage.provider(), wanted)
        machine = machine_of(stage, answer)
        stage.fake.account.retag(machine, ())
        machine.label = "mine"
        with pytest.raises(InvariantViolation, match=f"put back {CLUSTER}:abc123"):
            await (await later(stage)).delete(launched(wanted, answer.provider_id))
        assert machine.status == "running"

    on(INSTANCES, body)


@pytest.mark.parametrize("keys", [(CLAIM,), (CLUSTER,), (CLUSTER, CLAIM)])
def test_a_purchase_that_is_repeated_finds_its_machine_and_puts_its_tags_back(keys: tuple[str, ...]) -> None:
    """By its UID, which no other claim has. All else that the machine has stays."""

    async def body(stage: LinodeInstanceStage) -> None:
        wanted = claim(stage, "web-1")
        answer = await made(stage.provider(), wanted)
        machine = machine_of(stage, answer)
        before = {*machine.tags, "team:web"}
        stage.fake.account.retag(machine, (*without(machine, *keys), "team:web"))
        again = await (await later(stage)).create(wanted)
        assert (again.provider_id, again.claim_uid) == (answer.provider_id, wanted.metadata.uid)
        assert set(machine.tags) == before
        assert len(stage.fake.ledger.purchases) == 1

    on(INSTANCES, body)


@pytest.mark.parametrize("keys", [(CLAIM,), (CLUSTER,)])
def test_a_claim_that_names_no_machine_ends_the_one_with_its_uid(keys: tuple[str, ...]) -> None:
    """It is not said to have none: the machine would be paid for without it."""

    async def body(stage: LinodeInstanceStage) -> None:
        wanted = claim(stage, "web-1")
        machine = machine_of(stage, await made(stage.provider(), wanted))
        stage.fake.account.retag(machine, without(machine, *keys))
        await gone(await later(stage), wanted)
        assert stage.fake.machines() == ()

    on(INSTANCES, body)


def test_a_name_that_is_taken_is_said_to_be_by_whom() -> None:
    """A machine of this cluster without a UID is not called another claim's: whoever knows it can say whose it is."""

    async def body(stage: LinodeInstanceStage) -> None:
        wanted = claim(stage, "web-1")
        machine = machine_of(stage, await made(stage.provider(), wanted))
        whole = machine.tags
        provider = await later(stage)
        stage.fake.account.retag(machine, without(machine, CLAIM, UID))
        with pytest.raises(InvariantViolation, match=f"does not say whose it is: put back {CLAIM}:web-1, {UID}:"):
            await provider.create(wanted)
        stage.fake.account.retag(machine, (*without(machine, UID), f"{UID}:another"))
        with pytest.raises(InvariantViolation, match=r"another claim \(another\)"):
            await provider.create(wanted)
        stage.fake.account.retag(machine, ())
        with pytest.raises(CreateError, match=f"has not the tag {CLUSTER}:abc123"):
            await provider.create(wanted)
        stage.fake.account.retag(machine, whole)
        await provider.create(wanted)
        assert len(stage.fake.machines()) == 1

    on(INSTANCES, body)
