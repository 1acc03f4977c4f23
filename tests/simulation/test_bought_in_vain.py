"""Nodes that come otherwise than planned: machines are bought in vain in two rounds at most, and the pods are told why."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
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
TYPES: Final = {"kwok": "c-4x-amd64-linux", "hetzner": "cx33", "linode": "g6-standard-4"}
DEVICE: Final = "example.com/device"
PODS: Final = 4
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


def cordoned(draft: Json) -> None:
    draft["spec"]["unschedulable"] = True


def room(resource: str, quantity: str) -> Edit:
    def edit(draft: Json) -> None:
        draft["status"]["allocatable"][resource] = quantity

    return edit


class Distorter:
    """A controller manager or kubelet that makes every Node another one, whatever is written over it."""

    def __init__(self, world: World, edit: Edit | None, *, status: bool = False) -> None:
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Way:
    """How Nodes come, what pods ask for that this concerns, and what their event says. `status`: the edit is of the status."""

    said: str
    edit: Edit | None = None
    status: bool = False
    asks: Callable[[str], Json] = lambda _: {}
    pool: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    objects: tuple[Json, ...] = ()


def selecting(key: str, values: Mapping[str, str] | str) -> Callable[[str], Json]:
    return lambda provider: {"nodeSelector": {key: values if isinstance(values, str) else values[provider]}}


def apart(_: str) -> Json:
    """Spread over hosts, as the label of the host says."""
    spread = {
        "maxSkew": 1,
        "topologyKey": names.HOSTNAME_LABEL,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "app"}},
    }
    return {"topologySpreadConstraints": [spread]}


def with_device(_: str) -> Json:
    amounts = {"cpu": "1", "memory": "1Gi", DEVICE: "1"}
    return {
        "containers": [
            {"name": "main", "image": "example", "resources": {"requests": amounts, "limits": {DEVICE: "1"}}}
        ]
    }


WAYS: Final = {
    "another zone": Way(
        asks=selecting(names.ZONE_LABEL, ZONES),
        edit=label(names.ZONE_LABEL, "fsn1-dc14"),
        said=f"label {names.ZONE_LABEL} is fsn1-dc14 where",
    ),
    "another type": Way(
        asks=selecting(names.INSTANCE_TYPE_LABEL, TYPES),
        edit=label(names.INSTANCE_TYPE_LABEL, "vm"),
        said=f"label {names.INSTANCE_TYPE_LABEL} is vm where",
    ),
    "another architecture": Way(
        asks=selecting(names.ARCH_LABEL, "amd64"),
        edit=label(names.ARCH_LABEL, "x86_64"),
        said=f"label {names.ARCH_LABEL} is x86_64 where amd64 was planned",
    ),
    "another system": Way(
        asks=selecting(names.OS_LABEL, "linux"),
        edit=label(names.OS_LABEL, "Linux"),
        said=f"label {names.OS_LABEL} is Linux where linux was planned",
    ),
    "no label of the host": Way(
        asks=apart, edit=label(names.HOSTNAME_LABEL, None), said=f"label {names.HOSTNAME_LABEL} is missing where"
    ),
    "the template's label is gone": Way(
        asks=selecting("team", "a"),
        pool={"labels": {"team": "a"}},
        edit=label("team", None),
        said="label team is missing where a was planned",
    ),
    "the template's label is another": Way(
        asks=selecting("team", "a"),
        pool={"labels": {"team": "a"}},
        edit=label("team", "b"),
        said="label team is b where a was planned",
    ),
    "a taint that stays": Way(edit=taint, said="taint example.com/agent:NoSchedule was not planned"),
    "a cordon": Way(edit=cordoned, said="taint node.kubernetes.io/unschedulable:NoSchedule was not planned"),
    "a startup taint that stays": Way(
        pool={"startup_taints": ({"key": "example.com/starting", "effect": "NoSchedule"},)},
        said="waiting for startup taint example.com/starting:NoSchedule to be removed",
    ),
    "less cpu": Way(edit=room("cpu", "500m"), status=True, said="allocatable cpu is 500m where"),
    "less memory": Way(edit=room("memory", "200Mi"), status=True, said="allocatable memory is 200Mi where"),
    "no pods": Way(edit=room("pods", "0"), status=True, said="the Node reports no pods, which its pods ask for"),
    "a device is missing": Way(
        asks=with_device,
        objects=(
            {
                "apiVersion": "karpenter.sh/v1alpha1",
                "kind": "NodeOverlay",
                "metadata": {"name": "device"},
                "spec": {"requirements": [], "capacity": {DEVICE: "4"}},
            },
        ),
        said=f"the Node reports no {DEVICE}, which its pods ask for",
    ),
}


@pytest.mark.parametrize("provider", ["kwok", "hetzner", "linode"])
@pytest.mark.parametrize("way", WAYS)
def test_machines_come_in_vain_in_two_rounds_at_most(way: str, provider: str) -> None:
    """The second round is one machine, then none comes, and the event on the pods says what keeps them off the Node."""
    how = WAYS[way]

    async def body(world: World) -> None:
        distorter = Distorter(world, how.edit, status=how.status)
        await world.admin.create(DEPLOYMENT, workload("app", PODS, **how.asks(provider)), namespace="default")
        await asyncio.sleep(SECONDS)
        assert rounds(distorter.bought)[1:] == [1]
        assert await waiting(world) == PODS
        assert any(how.said in each for each in await told(world)), await told(world)

    in_cloud(provider, body, pool(**how.pool), *how.objects)


def in_cloud(provider: str, body: Callable[[World], Awaitable[None]], *objects: Json, **settings: str) -> None:
    if provider == "linode":
        settings["linodeCluster"] = "standard"
    in_world(provider, body, *objects, initializationTTL="5m", registrationTTL="5m", readinessWait="5m", **settings)
