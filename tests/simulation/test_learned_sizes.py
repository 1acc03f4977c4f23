"""What Nodes of a type turn out to hold is remembered in the status of their class, whoever sells the machines."""

import asyncio
from typing import Any

import pytest

from growth.api import names
from growth.api.clouds import InsufficientCapacity
from growth.api.instance_types import InstanceType
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE
from tests.conformance.providers.stages import claim, need, on
from tests.conformance.providers.test_laws import until_made
from tests.simulation.class_keeping import KEPT, KeptStage, kept, read

# A change of each vendor's class that makes other machines, where there is one.
CHANGES: dict[str, Json] = {
    "hetzner": {"labels": {"team": "b"}},
    "lke": {"kubelet": {"maxPods": 50}},
    "lke-enterprise": {"lkeK8sVersion": "v1.32.8+lke3"},
    "linode-instances": {"image": "linode/ubuntu22.04"},
}


@pytest.fixture(params=KEPT)
def cloud(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def node(stage: KeptStage, name: str, provider_id: str, *, capacity: str, allocatable: str) -> None:
    """A Node as it is once it registered, of the cheaper type."""
    label = names.node_class_label(stage.node_class.group, stage.node_class.kind)
    body: Json = {
        "metadata": {"name": name, "labels": {label: "default", names.INSTANCE_TYPE_LABEL: stage.types[0]}},
        "spec": {"providerID": provider_id},
        "status": {
            "capacity": {"cpu": "2", "pods": "110", "memory": capacity},
            "allocatable": {"cpu": "1900m", "pods": "110", "memory": allocatable},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    await stage.admin.create(NODE, body)
    await asyncio.sleep(5)


async def bought(stage: KeptStage, provider: Any, name: str) -> str:
    return (await until_made(provider, claim(stage, name))).provider_id


async def size(stage: KeptStage, provider: Any) -> InstanceType:
    """Of the cheaper type, as machines of the class are."""
    types: tuple[InstanceType, ...] = (await provider.catalogue()).of_classes["default"]
    return next(kind for kind in types if kind.name == stage.types[0])


async def memory(stage: KeptStage, provider: Any) -> int:
    return (await size(stage, provider)).allocatable["memory"]


def test_the_least_that_nodes_report_is_remembered_and_reckoned_with(cloud: str) -> None:
    """In the class' status, so after a restart too; not of a machine that an older class made."""

    async def body(stage: KeptStage) -> None:
        async with kept(stage) as provider:
            first, second = [await bought(stage, provider, name) for name in ("first", "second")]
            assumed = await memory(stage, provider)
            assert assumed > 3600 << 20
            await node(stage, "first", first, capacity="3900Mi", allocatable="3500Mi")
            assert await memory(stage, provider) == 3500 << 20
            await node(stage, "second", second, capacity="3890Mi", allocatable="3550Mi")
            assert await memory(stage, provider) == 3500 << 20
        (learned,) = (await read(stage)).status.learned_types
        assert (learned.name, learned.capacity["memory"]) == (stage.types[0], "3890Mi")
        async with kept(stage) as again:
            assert await memory(stage, again) == 3500 << 20
            await stage.admin.patch(stage.node_class, "default", {"spec": CHANGES[cloud]})
            await asyncio.sleep(5)
            # Nothing that a class of LKE standard says makes other machines.
            assert await memory(stage, again) == (3500 << 20 if cloud == "lke" else assumed)

    on(cloud, body)


def for_memory(stage: KeptStage, name: str, amount: int) -> NodeClaim:
    """A claim of the cheaper type alone, for so much memory."""
    only = need(names.INSTANCE_TYPE_LABEL, stage.types[0])
    return claim(stage, name, only, resources={"requests": {"memory": str(amount)}})


def test_what_nodes_have_no_room_for_is_not_bought(cloud: str) -> None:
    """Although it would fit what is assumed of a type."""

    async def body(stage: KeptStage) -> None:
        async with kept(stage) as provider:
            assumed = await memory(stage, provider)
            await node(stage, "first", await bought(stage, provider, "first"), capacity="3900Mi", allocatable="3500Mi")
            with pytest.raises(InsufficientCapacity):
                await provider.create(for_memory(stage, "too-much", assumed))

    on(cloud, body)


def test_what_nodes_have_room_for_is_bought(cloud: str) -> None:
    """Although it would not fit what is assumed of a type; and the machine is told to be as large."""

    async def body(stage: KeptStage) -> None:
        async with kept(stage) as provider:
            more = await memory(stage, provider) + (1 << 20)
            with pytest.raises(InsufficientCapacity):
                await provider.create(for_memory(stage, "none", more))
            first = await bought(stage, provider, "first")
            await node(stage, "first", first, capacity="3990Mi", allocatable=str(more))
            assert (await until_made(provider, for_memory(stage, "one", more))).allocatable["memory"] == more

    on(cloud, body)


def test_a_machine_that_was_just_bought_teaches(cloud: str) -> None:
    """However quick its Node is, and however old the list of machines that was read last."""

    async def body(stage: KeptStage) -> None:
        async with kept(stage) as provider:
            await node(stage, "older", await bought(stage, provider, "older"), capacity="3900Mi", allocatable="3600Mi")
            newer = await bought(stage, provider, "newer")
            await node(stage, "newer", newer, capacity="3900Mi", allocatable="3500Mi")
            assert await memory(stage, provider) == 3500 << 20

    on(cloud, body)


def test_nodes_of_others_teach_nothing(cloud: str) -> None:
    """Neither a Node of another cloud nor one whose machine is not ours."""

    async def body(stage: KeptStage) -> None:
        async with kept(stage):
            await node(stage, "theirs", f"{stage.scheme}999999", capacity="1Mi", allocatable="1Mi")
            await node(stage, "other", "kwok://other", capacity="1Mi", allocatable="1Mi")
            assert (await read(stage)).status.learned_types == ()

    on(cloud, body)
