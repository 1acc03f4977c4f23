"""Nodes that come otherwise than planned: machines are bought in vain in two rounds at most, and the pods are told why."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

import pytest

from growth.api import names
from growth.api.edits import add_taint
from growth.api.events import EVENT
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.api.workloads import DEPLOYMENT
from growth.kube.changes import change
from growth.kube.errors import KubeError
from growth.sim.scenario import manifests
from growth.sim.seams import Step
from growth.sim.world.cluster import workload
from growth.sim.world.world import World
from tests.simulation.vendors import in_world

ZONES: Final = {"kwok": "test-zone-a", "hetzner": "fsn1", "linode": "us-east"}
# Shorter than the first rest of a sort, and long enough for ten rounds of machines.
SECONDS: Final = 3000

Edit = Callable[[Json], None]


def label(key: str, value: str | None) -> Edit:
    def edit(draft: Json) -> None:
        if value is None:
            draft["metadata"]["labels"].pop(key, None)
        else:
            draft["metadata"]["labels"][key] = value

    return edit


def taint(draft: Json) -> None:
    add_taint(draft, key="example.com/agent", effect="NoSchedule")


def room(resource: str, quantity: str) -> Edit:
    def edit(draft: Json) -> None:
        draft["status"]["allocatable"][resource] = quantity

    return edit


class Distorter:
    """A controller manager or kubelet that makes every Node another one, whatever is written over it."""

    def __init__(self, world: World, edit: Edit, *, status: bool = False) -> None:
        self.bought: list[tuple[float, str]] = []
        self.edit: Edit | None = edit
        self._world = world
        self._status = status
        world.witness.listeners.append(self._see)
        world.run(self._run())

    def _see(self, step: Step) -> None:
        if step.which[1] == "nodeclaims" and step.old is None and step.new is not None:
            self.bought.append((step.at, step.key[1]))

    async def _run(self) -> None:
        admin = self._world.admin
        while True:
            await asyncio.sleep(0.2)
            for node in (await admin.list(NODE)).items:
                if self.edit is not None:
                    with contextlib.suppress(KubeError):
                        part = "status" if self._status else ""
                        await change(admin, NODE, node.metadata.name, self.edit, subresource=part)


def pool(**more: Any) -> Json:
    return manifests.node_pool("default", consolidate_after="20s", **more)


async def told(world: World) -> list[str]:
    events = (await world.admin.list(EVENT)).items
    return [each.message for each in events if each.reason == names.FAILED_SCHEDULING]


async def waiting(world: World) -> int:
    return sum(not pod.spec.node_name for pod in (await world.admin.list(POD)).items)


def rounds(bought: list[tuple[float, str]]) -> list[int]:
    """How many machines were bought at each moment."""
    found: list[tuple[float, int]] = []
    for at, _ in bought:
        if found and at - found[-1][0] < 15:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((at, 1))
    return [number for _, number in found]


WAYS: Final[dict[str, tuple[Callable[[str], Json], Edit, bool, Json, str]]] = {
    "zone": (
        lambda provider: {"nodeSelector": {names.ZONE_LABEL: ZONES[provider]}},
        label(names.ZONE_LABEL, "fsn1-dc14"),
        False,
        {},
        f"label {names.ZONE_LABEL} is fsn1-dc14 where",
    ),
    "taint": (lambda _: {}, taint, False, {}, "taint example.com/agent:NoSchedule was not planned"),
    "cpu": (lambda _: {}, room("cpu", "500m"), True, {}, "allocatable cpu is 500m where"),
}


@pytest.mark.parametrize("provider", ["kwok", "hetzner", "linode"])
@pytest.mark.parametrize("way", WAYS)
def test_machines_come_in_vain_in_two_rounds_at_most(way: str, provider: str) -> None:
    """The second round is one machine, then none comes, and the event on the pods says what keeps them off the Node."""
    asks, edit, status, more, said = WAYS[way]

    async def body(world: World) -> None:
        distorter = Distorter(world, edit, status=status)
        await world.admin.create(DEPLOYMENT, workload("app", 40, **asks(provider)), namespace="default")
        await asyncio.sleep(SECONDS)
        assert rounds(distorter.bought)[1:] == [1]
        assert await waiting(world) == 40
        assert any(said in each for each in await told(world))

    in_world(provider, body, pool(**more), **({"linodeCluster": "standard"} if provider == "linode" else {}))
