"""The KWOK cloud: what its machines are, and what becomes of them through repetitions, restarts and faults."""

import asyncio
import contextlib
import datetime as dt

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
from growth.api.core import CONFIG_MAP
from growth.api.instance_types import Catalogue, InstanceType, Offering
from growth.api.karpenter import NodeClaim
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.api.nodes import NODE, Node
from growth.kube.errors import GateClosed, NotFound
from growth.kube.memory import MemoryApi
from growth.providers.kwok.faults import Faults
from growth.providers.kwok.registrar import RegistrarSettings
from growth.units import print_time
from tests.kwok import HOME, KwokWorld, claim, in_kwok, need

SMALL = need(names.INSTANCE_TYPE_LABEL, "c-2x-amd64-linux", "c-4x-amd64-linux")


async def machines(world: KwokWorld) -> dict[str, CloudMachine]:
    return {machine.claim: machine for machine in await world.provider.list()}


async def nodes(world: KwokWorld) -> dict[str, Node]:
    return {node.metadata.name: node for node in (await world.admin.list(NODE)).items}


async def gone(world: KwokWorld, which: NodeClaim, *, within: float) -> bool:
    """Asks for the deletion until the cloud says that there is no such machine."""
    for _ in range(int(within)):
        try:
            await world.provider.delete(which)
        except MachineNotFound:
            return True
        await asyncio.sleep(1)
    return False


def test_a_machine_registers_its_node_after_the_delay_and_becomes_ready() -> None:
    """The Node has the machine's labels, full capacity and allocatable, the claim's taints and `unregistered`."""

    async def body(world: KwokWorld) -> None:
        taint = {"key": "cni", "value": "wait", "effect": "NoSchedule"}
        made = await world.provider.create(claim("one", SMALL, startupTaints=[taint]))
        assert made.provider_id == "kwok://one"
        assert (made.instance_type, made.capacity_type) == ("c-2x-amd64-linux", "spot")
        assert made.labels[names.ARCH_LABEL] == "amd64"
        await asyncio.sleep(4)
        assert await nodes(world) == {}
        await asyncio.sleep(10)
        node = (await nodes(world))["one"]
        assert node.spec.provider_id == "kwok://one"
        assert {each.key for each in node.spec.taints} == {names.UNREGISTERED_TAINT, "cni"}
        assert (node.status.capacity["cpu"], node.status.allocatable["cpu"]) == ("2", "1900m")
        assert {key: node.metadata.labels[key] for key in made.labels} == dict(made.labels)
        assert [each.status for each in node.status.conditions if each.type == "Ready"] == ["True"]
        assert names.KWOK_NODE not in node.metadata.annotations
        assert (await machines(world))["one"] == await world.provider.get("kwok://one")

    in_kwok(body)


def test_creating_again_adopts_the_first_machine() -> None:
    """A repeated create answers with the machine that there is, also when its offering is out of stock by now."""

    async def body(world: KwokWorld) -> None:
        first = await world.provider.create(claim("one", SMALL))
        await world.fault(noCapacity="*/*/*")
        again = await world.new_provider().create(claim("one", SMALL))
        assert again == first
        assert list(await machines(world)) == ["one"]

    in_kwok(body)


def test_an_answer_that_is_lost_buys_once() -> None:
    """When the record is made and no answer comes, the next attempt finds it."""

    async def body(world: KwokWorld) -> None:
        world.provider.faults.fixed = Faults(lost_answers=1.0)
        with pytest.raises(CloudUnavailable, match="lost the answer"):
            await world.provider.create(claim("one", SMALL))
        world.provider.faults.fixed = None
        assert (await world.provider.create(claim("one", SMALL))).claim_uid == "uid-of-one"
        assert len(await machines(world)) == 1

    in_kwok(body)


def test_a_name_that_another_claim_has_is_not_taken_over() -> None:
    """The machine of another claim of the same name is never adopted, deleted or shown as ours."""

    async def body(world: KwokWorld) -> None:
        old, new = claim("one", SMALL, uid="old"), claim("one", SMALL, uid="new")
        await world.provider.create(old)
        with pytest.raises(InvariantViolation, match="another claim"):
            await world.provider.create(new)
        with pytest.raises(MachineNotFound, match="another claim"):
            await world.provider.delete(new)
        await world.fault(stuckDelete="*")
        await world.provider.delete(old)
        with pytest.raises(CreateError, match="being deleted") as refused:
            await world.provider.create(new)
        assert refused.value.retryable
        await world.fault()
        await asyncio.sleep(10)
        assert (await world.provider.create(new)).claim_uid == "new"

    in_kwok(body)


def test_a_new_machine_of_an_old_name_gets_a_node_of_its_own() -> None:
    """The Node that an earlier machine left behind is removed, and then the new kubelet registers."""

    async def body(world: KwokWorld) -> None:
        await world.provider.create(claim("one", SMALL, uid="old"))
        await asyncio.sleep(5)
        before = (await nodes(world))["one"].metadata.uid
        await world.admin.patch(NODE, "one", {"metadata": {"finalizers": [names.TERMINATION_FINALIZER]}})
        await gone(world, claim("one", uid="old"), within=10)
        await world.provider.create(claim("one", SMALL, uid="new"))
        await asyncio.sleep(20)
        assert (await nodes(world))["one"].metadata.uid == before
        await world.admin.patch(NODE, "one", {"metadata": {"finalizers": None}})
        await asyncio.sleep(60)
        assert (await nodes(world))["one"].metadata.uid != before

    in_kwok(body, delay="1s")


def test_a_foreign_node_of_the_name_is_left_alone() -> None:
    """A kubelet whose name is taken by somebody else's Node waits, and registers when it is free."""

    async def body(world: KwokWorld) -> None:
        foreign = await world.cluster.add_node("one")
        await world.provider.create(claim("one", SMALL))
        await asyncio.sleep(60)
        assert (await nodes(world))["one"].metadata.uid == foreign.metadata.uid
        await world.admin.delete(NODE, "one")
        await asyncio.sleep(60)
        assert (await nodes(world))["one"].spec.provider_id == "kwok://one"

    in_kwok(body)


def test_deleting_takes_the_machine_then_its_node() -> None:
    """Delete is accepted, then the machine is gone (and says so), then its Node object goes."""

    async def body(world: KwokWorld) -> None:
        one = claim("one", SMALL)
        await world.provider.create(one)
        await asyncio.sleep(10)
        await world.provider.delete(one)
        assert (await machines(world))["one"].deleting
        await asyncio.sleep(4)
        assert "one" in await nodes(world)
        with pytest.raises(MachineNotFound):
            await world.provider.get("kwok://one")
        with pytest.raises(MachineNotFound):
            await world.provider.delete(one)
        await asyncio.sleep(3)
        assert await nodes(world) == {}

    in_kwok(body, settings=RegistrarSettings(deletion=2, node_removal=3))


def test_the_cloud_goes_on_after_a_restart() -> None:
    """What was pending registers, what was deleting goes, a Node whose machine went meanwhile is removed."""

    async def body(world: KwokWorld) -> None:
        await world.provider.create(claim("leftover", SMALL))
        first = world.start()
        await asyncio.sleep(8)
        first.cancel()
        await asyncio.wait((first,))
        await world.admin.delete(CONFIG_MAP, "kwok-leftover", namespace=HOME)
        await world.provider.create(claim("pending", SMALL))
        await world.provider.create(claim("leaving", SMALL))
        await world.provider.delete(claim("leaving"))
        await asyncio.sleep(30)
        assert set(await nodes(world)) == {"leftover"}
        world.start(world.new_registrar())
        await asyncio.sleep(10)
        assert set(await nodes(world)) == {"pending"}
        assert set(await machines(world)) == {"pending"}

    in_kwok(body, registrar=False)


def test_a_node_that_somebody_deleted_is_not_made_again() -> None:
    """A kubelet registers once: deleting a Node by hand leaves a machine without one."""

    async def body(world: KwokWorld) -> None:
        await world.provider.create(claim("one", SMALL))
        await asyncio.sleep(10)
        await world.admin.delete(NODE, "one")
        await asyncio.sleep(60)
        assert await nodes(world) == {}
        assert set(await machines(world)) == {"one"}

    in_kwok(body)


def test_the_cheapest_offering_is_bought_and_a_stock_out_falls_through() -> None:
    """An offering without stock is skipped for the next, left out of the catalogue for a while, and then offered again."""

    async def body(world: KwokWorld) -> None:
        until = print_time(world.cluster.clock.now() + dt.timedelta(seconds=60))
        await world.fault(noCapacity=f"c-2x-amd64-linux/*/spot until {until}")
        made = await world.provider.create(claim("one", SMALL))
        assert (made.instance_type, made.capacity_type) == ("c-2x-amd64-linux", "on-demand")
        listed = [kind for kind in (await world.provider.catalogue()).types if kind.name == made.instance_type]
        assert [each.capacity_type for each in listed[0].offerings if each.available] == ["on-demand"] * 4
        await asyncio.sleep(100)
        assert (await world.provider.create(claim("two", SMALL))).capacity_type == "on-demand"
        await asyncio.sleep(100)
        assert (await world.provider.create(claim("three", SMALL))).capacity_type == "spot"

    in_kwok(body)


def test_nothing_dearer_than_the_claim_allows_is_bought() -> None:
    """`growth.dev/max-price` bounds the fallback; beyond it there is no capacity."""

    async def body(world: KwokWorld) -> None:
        await world.fault(noCapacity="*/*/spot")
        capped = claim("one", SMALL, annotations={names.MAX_PRICE_ANNOTATION: "0.04"})
        with pytest.raises(InsufficientCapacity, match="claim one allows"):
            await world.provider.create(capped)
        wrong = claim("two", SMALL, annotations={names.MAX_PRICE_ANNOTATION: "cheap"})
        with pytest.raises(CreateError, match=r"growth.dev/max-price: 'cheap' is not an amount") as refused:
            await world.provider.create(wrong)
        assert not refused.value.retryable
        assert await machines(world) == {}

    in_kwok(body)


def test_a_class_that_is_missing_or_not_ready_is_said() -> None:
    """Each way in which a node class cannot be used is `NodeClassNotReady` with its reason."""

    async def body(world: KwokWorld) -> None:
        conditions = [
            {"type": "Ready", "status": "False", "message": "broken", "lastTransitionTime": "2030-01-01T00:00:00Z"}
        ]
        await world.admin.create(KWOK_NODE_CLASS, {"metadata": {"name": "bad"}, "spec": {}})
        await world.admin.patch(KWOK_NODE_CLASS, "bad", {"status": {"conditions": conditions}}, subresource="status")
        group = KWOK_NODE_CLASS.group
        for reference, said in (
            ({"group": group, "kind": "KWOKNodeClass", "name": "none"}, "there is no KWOKNodeClass 'none'"),
            ({"group": group, "kind": "KWOKNodeClass", "name": "bad"}, "not ready: broken"),
            ({"group": "growth.dev", "kind": "HetznerNodeClass", "name": "x"}, "not served by the KWOK provider"),
        ):
            with pytest.raises(NodeClassNotReady, match=said):
                await world.provider.create(claim("one", SMALL, nodeClassRef=reference))

    in_kwok(body)


def test_reserved_places_are_not_sold_twice() -> None:
    """A reservation holds as many machines as it has places, however many claims ask at once."""

    async def body(world: KwokWorld) -> None:
        made = await asyncio.gather(*(world.provider.create(claim(f"c{index}")) for index in range(5)))
        assert sorted(each.capacity_type for each in made) == ["on-demand"] * 3 + ["reserved"] * 2
        (kind,) = (await world.provider.catalogue()).types
        assert [(each.reservation_capacity, each.available) for each in kind.offerings] == [(0, True), (0, False)]

    offerings = (
        Offering("a", "on-demand", 100),
        Offering("a", "reserved", 0, reservation="r1", reservation_capacity=2),
    )
    kind = InstanceType("one", {}, {"cpu": 1000, "memory": 1 << 30, "pods": 10}, offerings)
    in_kwok(body, catalogue=Catalogue("kwok", "USD", (kind,)))


def test_faults_on_demand() -> None:
    """Each fault does what its name says to the machines that it names, and to no others, and ends when it is taken back."""

    async def body(world: KwokWorld) -> None:
        await world.fault(
            neverRegister="silent-*", neverReady="broken-*", stuckDelete="stuck-*", vanish="ghost-* after 30s"
        )
        named = ("silent-1", "broken-1", "stuck-1", "ghost-1", "good-1")
        for name in named:
            await world.provider.create(claim(name, SMALL))
        await asyncio.sleep(20)
        seen = await nodes(world)
        ready = {
            name
            for name, node in seen.items()
            if any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
        }
        assert set(seen) == {"broken-1", "stuck-1", "ghost-1", "good-1"}
        assert ready == {"stuck-1", "ghost-1", "good-1"}
        await asyncio.sleep(20)
        assert set(await machines(world)) == set(named) - {"ghost-1"}
        assert "ghost-1" not in await nodes(world)
        assert not await gone(world, claim("stuck-1"), within=60)
        assert await gone(world, claim("good-1"), within=60)
        await world.fault()
        await asyncio.sleep(20)
        assert "stuck-1" not in await machines(world)
        assert "silent-1" in await nodes(world)

    in_kwok(body)


def test_an_unavailable_cloud_says_unknown_and_not_nothing() -> None:
    """While the cloud is down every call raises `CloudUnavailable`; a slow one answers late."""

    async def body(world: KwokWorld) -> None:
        one = claim("one", SMALL)
        await world.provider.create(one)
        await world.fault(unavailable="true")
        for call in (
            world.provider.list(),
            world.provider.get("kwok://one"),
            world.provider.delete(one),
            world.provider.create(one),
        ):
            with pytest.raises(CloudUnavailable):
                await call
        await world.fault(slowAnswers="7s")
        begun = world.cluster.clock.monotonic()
        assert len(await world.provider.list()) == 1
        assert world.cluster.clock.monotonic() - begun >= 7

    in_kwok(body)


def test_a_record_spoiled_by_hand_still_counts() -> None:
    """Who can be read goes on; the spoiled machine is listed, never bought a second time, and can be deleted."""

    async def body(world: KwokWorld) -> None:
        await world.provider.create(claim("one", SMALL))
        await world.provider.create(claim("two", SMALL))
        await world.admin.patch(CONFIG_MAP, "kwok-one", {"data": {"node": "{", "zone": None}}, namespace=HOME)
        await asyncio.sleep(10)
        assert set(await machines(world)) == {"one", "two"}
        assert set(await nodes(world)) == {"two"}
        with pytest.raises(InvariantViolation, match="cannot be read"):
            await world.provider.create(claim("one", SMALL))
        await world.provider.delete(claim("one"))
        assert (await machines(world))["one"].deleting

    in_kwok(body)


def test_machines_of_another_cluster_are_neither_shown_nor_touched() -> None:
    """A record whose label names another cluster is in no list, and asking for it directly is a contradiction."""

    async def body(world: KwokWorld) -> None:
        await world.provider.create(claim("one", SMALL))
        patch = {"metadata": {"labels": {names.KWOK_MACHINE_LABEL: "other"}}}
        await world.admin.patch(CONFIG_MAP, "kwok-one", patch, namespace=HOME)
        assert await machines(world) == {}
        for call in (
            world.provider.get("kwok://one"),
            world.provider.delete(claim("one")),
            world.provider.get("hcloud://1"),
        ):
            with pytest.raises(InvariantViolation):
                await call

    in_kwok(body)


def test_a_closed_gate_ends_the_caller_and_buys_nothing() -> None:
    """`GateClosed` passes through: this process may no longer act, which is no trouble of the cloud."""

    class Shut:
        def check(self) -> None:
            raise GateClosed("closed")

    async def body(world: KwokWorld) -> None:
        late = world.new_provider(MemoryApi(world.cluster.server, user="growth-kwok", gate=Shut()))
        with pytest.raises(GateClosed):
            await late.create(claim("one", SMALL))
        assert await machines(world) == {}

    in_kwok(body)


def test_hundreds_of_machines_come_up_together() -> None:
    """Machines wait for nobody but their own delay."""

    async def body(world: KwokWorld) -> None:
        await asyncio.gather(*(world.provider.create(claim(f"m-{index}", SMALL)) for index in range(300)))
        await asyncio.sleep(5.5)
        assert len(await nodes(world)) == 300
        with contextlib.suppress(NotFound, CloudError):
            await asyncio.gather(*(world.provider.delete(claim(f"m-{index}")) for index in range(300)))
        await asyncio.sleep(1)
        assert await machines(world) == {}
        assert await nodes(world) == {}

    in_kwok(body)
