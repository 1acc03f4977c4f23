"""HetznerNodeClasses: what their conditions say, and with what their machines join."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import yaml

from growth.api import names
from growth.api.clouds import CloudError, InsufficientCapacity
from growth.api.conditions import find
from growth.api.core import SECRET
from growth.api.karpenter import NODE_CLAIM
from growth.api.nodeclasses import HETZNER_NODE_CLASS, HetznerNodeClass
from growth.api.nodes import NODE
from growth.providers.hetzner.keeper import Keeper
from growth.providers.hetzner.provider import HetznerProvider
from growth.providers.hetzner.standin import StandIn
from growth.providers.http import KeptSecret
from growth.sim.clouds.hetzner import FakeSettings, Faults
from growth.sim.ports import SimClock, SimRandom
from growth.units import parse_time
from tests.hetzner_provider import CLUSTER, TOKEN, HetznerWorld, claim, in_hetzner, launched

CLASS_LABEL = names.node_class_label(HETZNER_NODE_CLASS.group, HETZNER_NODE_CLASS.kind)


@contextlib.asynccontextmanager
async def kept(world: HetznerWorld, provider: HetznerProvider | None = None) -> AsyncIterator[None]:
    """With somebody who keeps the classes' status."""
    keeper = Keeper(
        world.admin,
        provider or world.provider,
        clock=SimClock(world.kernel),
        random=SimRandom(world.kernel.seed, "keeper"),
    )
    running = world.kernel.create_task(keeper.run(), name="keeper")
    try:
        await asyncio.sleep(5)
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def read(world: HetznerWorld, name: str = "default") -> HetznerNodeClass:
    return await world.admin.get(HETZNER_NODE_CLASS, name)


async def told(world: HetznerWorld, name: str = "default") -> tuple[str, str, str]:
    ready = find((await read(world, name)).status.conditions, names.READY)
    assert ready is not None
    return ready.status, ready.reason, ready.message


def test_a_class_is_ready_once_everything_that_it_names_is_there() -> None:
    """What is missing is said, by reason and in words; once it is there the class becomes ready by itself."""

    async def body(world: HetznerWorld) -> None:
        await world.make_class("odd", firewalls=["walls"], locations=["mars"])
        async with kept(world):
            assert (await told(world))[0] == "True"
            status, reason, message = await told(world, "odd")
            assert (status, reason) == ("False", "NotFoundAtHetzner")
            assert "no location mars" in message
            assert "no firewall walls" in message
            await world.cloud.client.call("POST", "/firewalls", dict, body={"name": "walls"})
            await world.admin.patch(HETZNER_NODE_CLASS, "odd", {"spec": {"locations": ["fsn1"]}})
            await asyncio.sleep(400)
            assert (await told(world, "odd"))[0] == "True"

    in_hetzner(body)


def test_while_the_account_is_silent_what_was_said_stands() -> None:
    """A class that was never judged is Unknown; one that was ready stays so."""

    async def body(world: HetznerWorld) -> None:
        await world.cloud.client.call("POST", "/firewalls", dict, body={"name": "walls"})
        async with kept(world):
            world.fake.faults = Faults(server_error=1.0)
            await world.make_class("new", firewalls=["walls"])
            await asyncio.sleep(700)
            assert (await told(world, "new"))[0] == "Unknown"
            assert (await told(world))[0] == "True"
            world.fake.faults = Faults()
            await asyncio.sleep(700)
            assert (await told(world, "new"))[0] == "True"

    in_hetzner(body)


def test_a_refused_token_stands_in_every_class() -> None:
    """With what to do about it, and without the token."""

    async def body(world: HetznerWorld) -> None:
        async with kept(world):
            status, reason, message = await told(world)
            assert (status, reason) == ("False", "TokenRefused")
            assert "make another" in message

    in_hetzner(body, settings=FakeSettings(tokens=frozenset({"another"})))


@pytest.mark.parametrize("may_read", [False, True])
def test_a_token_that_was_exchanged_makes_the_classes_ready(may_read: bool) -> None:  # noqa: FBT001 - a parameter
    """Within half a minute, whoever else asks the cloud or not; not one that the cloud refuses as well, and not because the one
    that may only read is good for reading.
    """
    newer = "pZr4VbN8sQkW2xTfYc6LhJ9mGdE3uAoR"

    async def body(world: HetznerWorld) -> None:
        where = [TOKEN]
        provider = world.new_provider(token=KeptSecret(TOKEN, read=lambda: where[0]))
        async with kept(world, provider):
            assert (await told(world))[0] == "True"
            if may_read:
                world.fake.readonly = True
            else:
                world.fake._tokens = frozenset({newer})
            with pytest.raises(CloudError):
                await provider.create(claim("one", "cx33"))
            for _ in range(6):
                with contextlib.nullcontext() if may_read else pytest.raises(CloudError):
                    await provider.list()
                await asyncio.sleep(15)
                assert (await told(world))[1] == "TokenRefused"
            if not may_read:
                where[0] = newer[::-1]
                await asyncio.sleep(35)
                assert (await told(world))[1] == "TokenRefused"
            where[0], world.fake.readonly = newer, False
            await asyncio.sleep(35)
            assert (await told(world))[0] == "True"
            await provider.create(claim("two", "cx33"))

    in_hetzner(body)


def test_each_machine_joins_with_a_token_of_its_own_that_ends() -> None:
    """A bootstrap token in kube-system, for half an hour, in this machine's user data and in no other's."""

    async def body(world: HetznerWorld) -> None:
        await world.make_secret("join", server="https://10.0.0.2:6443")
        for name in ("one", "two"):
            await world.provider.create(claim(name, "cx33"))
        tokens = (await world.admin.list(SECRET, namespace="kube-system")).items
        assert {token.type for token in tokens} == {"bootstrap.kubernetes.io/token"}
        texts = {(token.data["token-id"] + b"." + token.data["token-secret"]).decode() for token in tokens}
        used = set()
        for server in world.fake.machines():
            (file, _) = yaml.safe_load(server.user_data)["write_files"]
            config = yaml.safe_load(file["content"])
            used.add(config["token"])
            assert config["node-name"] == server.name
            assert "karpenter.sh/unregistered:NoExecute" in config["node-taint"]
            assert f"csi.hetzner.cloud/location={server.location}" in config["node-label"]
            assert not [each for each in config["node-label"] if each.startswith(names.ZONE_LABEL)]
        assert used == texts
        assert len(texts) == 2
        now = SimClock(world.kernel).now()
        for token in tokens:
            left = (parse_time(token.data["expiration"].decode()) - now).total_seconds()
            assert 1700 < left <= 1800

    in_hetzner(body, node_class={"userData": {"mode": "k3s", "secretRef": {"name": "join"}}})


def test_a_purchase_that_is_repeated_uses_the_same_token() -> None:
    """As long as it lasts: a bad day at the cloud does not fill kube-system."""

    async def body(world: HetznerWorld) -> None:
        await world.make_secret("join", server="https://10.0.0.2:6443")
        world.fake.market.stock("*", "*", 0)
        for _ in range(5):
            with pytest.raises(Exception, match="can be had now"):
                await world.provider.create(claim("one", "cx33", "cx43"))
            await asyncio.sleep(181)
        tokens = (await world.admin.list(SECRET, namespace="kube-system")).items
        assert 1 <= len(tokens) <= 2

    in_hetzner(body, node_class={"userData": {"mode": "k3s", "secretRef": {"name": "join"}}})


def test_only_secrets_of_growths_own_namespace_are_read() -> None:
    """A Secret of that name elsewhere is not found; the class says where it is to be."""

    async def body(world: HetznerWorld) -> None:
        data = {"userData": base64.b64encode(b"#!/bin/sh").decode()}
        await world.admin.create(SECRET, {"metadata": {"name": "join"}, "data": data}, namespace="default")
        async with kept(world):
            status, reason, message = await told(world)
            assert (status, reason) == ("False", "UserDataInvalid")
            assert "no Secret join in namespace growth" in message
            await world.make_secret("join", userData="#!/bin/sh")
            await asyncio.sleep(60)
            assert (await told(world))[0] == "True"

    in_hetzner(body, node_class={"userData": {"mode": "raw", "secretRef": {"name": "join"}}})


def test_the_stand_in_registers_nodes_of_a_fakes_machines_and_removes_them() -> None:
    """With the claim's taints, the provider ID, the class' number of pods and a little less memory than is advertised; gone
    with the machine.
    """

    async def body(world: HetznerWorld) -> None:
        stand_in = StandIn(world.admin, world.cloud, world.provider, cluster=CLUSTER)
        raw: dict[str, Any] = {
            "metadata": {"name": "one"},
            "spec": {
                "nodeClassRef": {"group": "growth.dev", "kind": "HetznerNodeClass", "name": "default"},
                "requirements": [{"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": ["cx33"]}],
                "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
            },
        }
        stored = await world.admin.create(NODE_CLAIM, raw)
        made = await world.provider.create(stored)
        await stand_in.look()
        found = await world.admin.get(NODE, "one")
        assert found.spec.provider_id == made.provider_id
        assert [taint.key for taint in found.spec.taints][:2] == ["karpenter.sh/unregistered", "team"]
        assert (found.status.capacity["pods"], found.status.allocatable["pods"]) == ("30", "30")
        await world.provider.create(claim("nobodys", "cx33"))
        await asyncio.sleep(10)
        await stand_in.look()
        assert [each.metadata.name for each in (await world.admin.list(NODE)).items] == ["one"]
        assert await world.gone(launched(stored, made))
        await asyncio.sleep(10)
        await stand_in.look()
        assert (await world.admin.list(NODE)).items == ()

    in_hetzner(body, node_class={"maxPods": 30})


def test_groups_of_a_class_that_spreads_no_longer_are_removed() -> None:
    """After a restart too, once they are empty; where none are left nobody asks for them."""

    async def body(world: HetznerWorld) -> None:
        def asked() -> int:
            return sum("/placement_groups" in each.path for each in world.fake.calls)

        wanted = claim("one", "cx33")
        owned = launched(wanted, await world.provider.create(wanted))
        await world.admin.patch(HETZNER_NODE_CLASS, "default", {"spec": {"placementGroup": "None"}})
        async with kept(world, world.new_provider()):
            await asyncio.sleep(1000)
            assert len(world.fake.project.placement_groups) == 1
            assert await world.gone(owned)
            await asyncio.sleep(1000)
            assert len(world.fake.project.placement_groups) == 0
            before = asked()
            await asyncio.sleep(4000)
            assert asked() == before

    in_hetzner(body, node_class={"placementGroup": "Spread"})


def test_what_nodes_of_owned_machines_report_is_reckoned_with() -> None:
    """As long as the inventory tells of the type what it told when they were booked, whatever else the class says; Nodes of
    machines that no claim has teach nothing. So what does not fit books one machine, and not one after the other.
    """
    entry: dict[str, Any] = {
        "serverType": "AX41-NVMe",
        "capacity": {"cpu": "12", "memory": "64Gi", "ephemeral-storage": "1T", "example.com/card": "2"},
        "architecture": "amd64",
        "location": "hel1",
        "monthlyPrice": "62.40",
    }

    def listed(**more: Any) -> list[dict[str, Any]]:
        return [{**entry, **more, "name": f"ax-{number}", "serverNumber": number} for number in (21, 22)]

    async def size(world: HetznerWorld) -> Mapping[str, int]:
        types = (await world.new_provider().catalogue()).of_classes["default"]
        return next(kind.allocatable for kind in types if kind.name == "ax41-nvme")

    async def node(world: HetznerWorld, name: str, provider_id: str, memory: str) -> None:
        labels = {CLASS_LABEL: "default", names.INSTANCE_TYPE_LABEL: "ax41-nvme"}
        held = {"cpu": "12", "pods": "110", "memory": memory}
        ready = [{"type": "Ready", "status": "True"}]
        body = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"providerID": provider_id},
            "status": {"capacity": held, "allocatable": held, "conditions": ready},
        }
        await world.admin.create(NODE, body)
        await asyncio.sleep(5)

    async def body(world: HetznerWorld) -> None:
        async with kept(world):
            assumed = await size(world)
            assert (await world.provider.create(claim("one", "ax41-nvme"))).provider_id == "hrobot://21"
            await node(world, "free", "hrobot://22", "1Gi")
            await node(world, "bought", "hcloud://21", "1Gi")
            assert await size(world) == assumed
            await node(world, "one", "hrobot://21", "56Gi")
            assert await size(world) == {**assumed, "cpu": 12_000, "memory": 56 << 30}
            much = {"requests": {"memory": str(assumed["memory"])}}
            with pytest.raises(InsufficientCapacity):
                await world.provider.create(claim("two", "ax41-nvme", resources=much))
            await world.admin.patch(HETZNER_NODE_CLASS, "default", {"spec": {"labels": {"team": "b"}}})
            await asyncio.sleep(5)
            assert (await size(world))["memory"] == 56 << 30
            larger = {**entry["capacity"], "memory": "128Gi"}
            await world.admin.patch(HETZNER_NODE_CLASS, "default", {"spec": {"inventory": listed(capacity=larger)}})
            await asyncio.sleep(5)
            assert (await size(world))["memory"] > 100 << 30

    in_hetzner(body, node_class={"inventory": listed()})
