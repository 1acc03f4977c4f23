"""Whose the judges of a simulated world take a machine of LKE to be: its tags can change hands, and then its record does too."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable

import pytest

from growth.api.karpenter import NODE_CLAIM
from growth.api.nodes import NODE
from growth.providers.catalogues import builtin
from growth.sim import kernel as sim
from growth.sim.clouds.linode.account import kind_of
from growth.sim.clouds.linode.objects import Instance
from growth.sim.invariants.books import Books
from growth.sim.kernel import Kernel
from growth.sim.replica import settings_of
from growth.sim.scenario.model import Scenario
from growth.sim.scenario.oddities import claim
from growth.sim.scenario.vendors import told_for
from growth.sim.world.linode import CLUSTER_TAG, REGION, UID_TAG, LinodeHalf
from growth.sim.world.world import World, WorldSettings

CLAIM_TAG = "karpenter.sh/nodeclaim:"


@dataclasses.dataclass(frozen=True)
class Stage:
    """A world without an autoscaler, with the claims `one` and `two`. `spoiled`: claims that may buy another machine."""

    world: World
    half: LinodeHalf
    spoiled: list[str]

    def machine(self) -> Instance:
        kind = kind_of("g6-standard-2")
        assert kind is not None
        return self.half.fake.account.buy(label=f"m{len(self.half.fake.machines())}", kind=kind, region=REGION)

    async def tag(self, machine: Instance, name: str) -> None:
        uid = (await self.world.admin.get(NODE_CLAIM, name)).metadata.uid.replace("-", "")
        tags = (f"{CLUSTER_TAG}{self.world.identity}", f"{CLAIM_TAG}{name}", f"{UID_TAG}{uid}")
        self.half.fake.account.retag(machine, tags)

    async def name(self, machine: Instance, name: str) -> None:
        status = {"status": {"providerID": f"linode://{machine.id}"}}
        await self.world.admin.patch(NODE_CLAIM, name, status, subresource="status")
        await asyncio.sleep(0)

    async def untag(self, machine: Instance) -> None:
        self.half.fake.account.retag(machine, (f"{CLUSTER_TAG}{self.world.identity}",))

    def has(self, name: str) -> int | None:
        """The number of the machine that the judges take for the claim's."""
        books = Books.of(self.world.server, cluster=self.world.identity)
        record = books.machine_of(books.objects["karpenter.sh", "nodeclaims"]["", name])
        return None if record is None else int(record["data"]["providerID"].removeprefix("linode://"))

    async def joined(self) -> set[str]:
        """Provider IDs of the Nodes that there are in the end."""
        await asyncio.sleep(120)
        return {each.spec.provider_id for each in (await self.world.admin.list(NODE)).items}


def on(body: Callable[[Stage], Awaitable[None]]) -> None:
    async def main(kernel: Kernel) -> None:
        growth = settings_of(provider="linode", kwokCatalogue="linode", linodeCluster="standard")
        world = World(kernel, WorldSettings(growth=growth, catalogue=builtin("linode"), replicas=("growth-a",)))
        await world.begin()
        await world.create(told_for("linode", Scenario(objects=(claim("one"), claim("two")))).objects)
        half, spoiled = world.linode, list[str]()
        assert half is not None
        half.spoiled = spoiled.append
        await body(Stage(world, half, spoiled))
        world.check()

    sim.run(main, seed=1)


def test_a_machine_whose_tags_pass_to_another_claim_is_that_ones() -> None:
    """The first one's next machine is its own, both join, and the first is not blamed for having had two."""

    async def body(stage: Stage) -> None:
        first = stage.machine()
        await stage.tag(first, "one")
        assert (stage.has("one"), stage.has("two")) == (first.id, None)
        await stage.tag(first, "two")
        assert (stage.has("one"), stage.has("two")) == (None, first.id)
        assert stage.spoiled == [(await stage.world.admin.get(NODE_CLAIM, "one")).metadata.uid]
        second = stage.machine()
        await stage.tag(second, "one")
        assert (stage.has("one"), stage.has("two")) == (second.id, first.id)
        assert await stage.joined() == {f"linode://{first.id}", f"linode://{second.id}"}

    on(body)


def test_a_machine_that_a_claim_names_is_its_own_whatever_its_tags_say() -> None:
    """Tags that come late, or are taken off, take it from nobody."""

    async def body(stage: Stage) -> None:
        machine = stage.machine()
        await stage.tag(machine, "one")
        await stage.name(machine, "one")
        await stage.tag(machine, "two")
        assert (stage.has("one"), stage.has("two")) == (machine.id, None)
        await stage.untag(machine)
        assert stage.has("one") == machine.id
        assert stage.spoiled == []

    on(body)


def test_a_claim_that_names_a_machine_later_gets_it_back() -> None:
    """Its name was on the way while the tags of another came."""

    async def body(stage: Stage) -> None:
        machine = stage.machine()
        await stage.tag(machine, "one")
        await stage.tag(machine, "two")
        await stage.name(machine, "one")
        assert (stage.has("one"), stage.has("two")) == (machine.id, None)

    on(body)


def test_of_two_machines_of_a_claim_it_has_the_one_that_it_names() -> None:
    """Two leaders each tagged one; until the claim names one it has the first."""

    async def body(stage: Stage) -> None:
        first, second = stage.machine(), stage.machine()
        await stage.tag(first, "one")
        await stage.tag(second, "one")
        assert stage.has("one") == first.id
        await stage.name(second, "one")
        assert stage.has("one") == second.id
        assert await stage.joined() == {f"linode://{second.id}"}

    on(body)


@pytest.mark.parametrize("gone", [True, False])
def test_the_second_of_two_machines_is_the_claims_when_the_first_is_not(gone: bool) -> None:  # noqa: FBT001
    """Given back, or gone without a word."""

    async def body(stage: Stage) -> None:
        first, second = stage.machine(), stage.machine()
        await stage.tag(first, "one")
        await stage.tag(second, "one")
        if gone:
            stage.half.fake.end(first.id)
        else:
            await stage.untag(first)
        await asyncio.sleep(0)
        assert stage.has("one") == second.id
        assert stage.spoiled
        assert await stage.joined() == {f"linode://{second.id}"}

    on(body)


def test_a_machine_that_goes_is_whose_it_was_until_it_is_gone() -> None:
    """And its end comes, though its tags are taken off, or others reach it meanwhile."""

    async def body(stage: Stage) -> None:
        machine = stage.machine()
        await stage.tag(machine, "one")
        stage.half.fake.account.take_down(machine)
        await stage.untag(machine)
        await stage.tag(machine, "two")
        assert (stage.has("one"), stage.has("two")) == (machine.id, None)
        await asyncio.sleep(120)
        assert (stage.has("one"), stage.has("two")) == (None, None)
        assert not stage.half.fake.machines()

    on(body)


def test_a_machine_outlives_its_claim_as_that_ones() -> None:
    """Who lets a claim go before its machine leaves a leak that can be seen."""

    async def body(stage: Stage) -> None:
        machine = stage.machine()
        await stage.tag(machine, "one")
        await stage.world.admin.delete(NODE_CLAIM, "one")
        await stage.tag(stage.machine(), "two")
        books = Books.of(stage.world.server, cluster=stage.world.identity)
        assert [each["data"]["providerID"] for _, each in books.unclaimed()] == [f"linode://{machine.id}"]

    on(body)
