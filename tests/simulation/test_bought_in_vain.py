"""Nodes that come otherwise than planned: machines are bought in vain in two rounds at most, and the pods are told why."""

import asyncio
import contextlib
import dataclasses
import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import pytest

from growth.api import names
from growth.api.conditions import FALSE, find
from growth.api.core import CONFIG_MAP
from growth.api.edits import add_taint
from growth.api.events import EVENT
from growth.api.karpenter import NODE_POOL
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.api.workloads import DEPLOYMENT
from growth.kube.changes import change
from growth.kube.errors import KubeError
from growth.providers.kwok.faults import FAULTS_CONFIG_MAP
from growth.sim.scenario import manifests, oddities
from growth.sim.seams import Step
from growth.sim.world.cluster import workload
from growth.sim.world.world import NAMESPACE_OF_GROWTH, World
from tests.manifests import growth_pool
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


# --- the same whatever else happens

ZONE: Final = WAYS["another zone"]


def asking_zone(provider: str, number: int = PODS) -> Json:
    return workload("app", number, **ZONE.asks(provider))


def test_pods_made_anew_are_the_same_pods() -> None:
    """A ReplicaSet makes others of other names and UIDs, again and again: no machine more is bought for them."""

    async def body(world: World) -> None:
        distorter = Distorter(world, ZONE.edit)
        await world.admin.create(DEPLOYMENT, asking_zone("kwok"), namespace="default")
        for _ in range(SECONDS // 60):
            await asyncio.sleep(60)
            for pod in (await world.admin.list(POD)).items:
                await world.admin.delete(POD, pod.metadata.name, namespace="default")
        assert rounds(distorter.bought)[1:] == [1]

    in_cloud("kwok", body, pool())


def test_a_rollout_of_equal_pods_is_the_same_pods() -> None:
    """Labels that no rule of the pods reads, the hash of their template among them, make no other sort."""

    async def body(world: World) -> None:
        distorter = Distorter(world, ZONE.edit)
        await world.admin.create(DEPLOYMENT, asking_zone("kwok"), namespace="default")
        for number in range(10):
            await asyncio.sleep(SECONDS / 10)
            labels = {"spec": {"template": {"metadata": {"labels": {"version": f"v{number}"}}}}}
            await world.admin.patch(DEPLOYMENT, "app", labels, namespace="default")
        assert rounds(distorter.bought)[1:] == [1]

    in_cloud("kwok", body, pool())


@pytest.mark.parametrize("provider", ["hetzner", "linode"])
@pytest.mark.parametrize("way", ["another zone", "a taint that stays", "the template's label is gone"])
def test_machines_of_growth_pools_come_in_vain_in_two_rounds_at_most(way: str, provider: str) -> None:
    """The request carries to the claim for which pods it is."""
    how = WAYS[way]
    ours = growth_pool("default", {"name": TYPES[provider], "max": 10}, template=dict(how.pool))

    async def body(world: World) -> None:
        distorter = Distorter(world, how.edit, status=how.status)
        await world.admin.create(DEPLOYMENT, workload("app", PODS, **how.asks(provider)), namespace="default")
        await asyncio.sleep(SECONDS)
        assert rounds(distorter.bought)[1:] == [1]
        assert any(how.said in each for each in await told(world)), await told(world)

    in_cloud(provider, body, ours)


def test_another_process_knows_what_came_in_vain() -> None:
    """The autoscaler ends again and again, after the purchase, when the Node is there, and when nothing happens."""

    async def body(world: World) -> None:
        distorter = Distorter(world, ZONE.edit)
        await world.admin.create(DEPLOYMENT, asking_zone("kwok"), namespace="default")
        for _ in range(SECONDS // 70):
            await asyncio.sleep(70)
            process = world.replicas[0].process
            assert process is not None
            process.crash()
        assert rounds(distorter.bought)[1:] == [1]

    in_cloud("kwok", body, pool())


@pytest.mark.parametrize("provider", ["kwok", "hetzner"])
def test_machines_that_never_register_come_in_two_rounds_at_most(provider: str) -> None:
    """A claim that is given up was a round, and the pods are told that no Node came."""

    async def body(world: World) -> None:
        faults: Json = {"metadata": {"name": FAULTS_CONFIG_MAP}, "data": {"neverRegister": "*"}}
        await world.admin.create(CONFIG_MAP, faults, namespace=NAMESPACE_OF_GROWTH)
        distorter = Distorter(world, None)
        await world.admin.create(DEPLOYMENT, workload("app", PODS), namespace="default")
        await asyncio.sleep(SECONDS)
        assert rounds(distorter.bought)[1:] == [1]
        assert any("its machine did not register a Node within 300 s" in each for each in await told(world))
        (found,) = (await world.admin.list(NODE_POOL)).items
        health = find(found.status.conditions, names.NODE_REGISTRATION_HEALTHY)
        assert health is not None
        assert health.status == FALSE

    in_cloud(provider, body, pool())


@pytest.mark.parametrize(
    ("provider", "made"),
    [
        ("kwok", oddities.static_pool(3, name="replicas")),
        ("hetzner", growth_pool("default", {"name": "cx33", "min": 3, "max": 10})),
    ],
    ids=["replicas", "minimum"],
)
def test_machines_that_no_pod_asks_for_come_in_vain_in_two_rounds_at_most(provider: str, made: Json) -> None:
    """Replicas of a static pool, and the minimum of a growth pool, that never register; when they do, all of them come."""

    async def body(world: World) -> None:
        faults: Json = {"metadata": {"name": FAULTS_CONFIG_MAP}, "data": {"neverRegister": "*"}}
        await world.admin.create(CONFIG_MAP, faults, namespace=NAMESPACE_OF_GROWTH)
        distorter = Distorter(world, None)
        await asyncio.sleep(SECONDS)
        assert rounds(distorter.bought) == [3, 1]
        await world.admin.delete(CONFIG_MAP, FAULTS_CONFIG_MAP, namespace=NAMESPACE_OF_GROWTH)
        await asyncio.sleep(4000)
        assert len((await world.admin.list(NODE)).items) == 3

    in_cloud(provider, body, made)


def test_room_for_capacity_buffers_comes_in_vain_in_two_rounds_at_most() -> None:
    """Nobody binds their pods: the plan itself says whether the Node that came would take them."""
    template = oddities.pod_template("small", cpu="500m")
    room_ = oddities.buffer("some", podTemplateRef={"name": "small"}, replicas=3)

    async def body(world: World) -> None:
        distorter = Distorter(world, taint)
        await asyncio.sleep(SECONDS)
        assert rounds(distorter.bought)[1:] == [1]

    in_cloud("kwok", body, pool(), template, room_)


def test_a_move_buys_nothing_again_that_came_in_vain() -> None:
    """Drifted machines stay when what replaces them comes otherwise than planned: one round, whatever time passes."""

    async def body(world: World) -> None:
        distorter = Distorter(world, None)
        await world.admin.create(DEPLOYMENT, asking_zone("kwok"), namespace="default")
        await asyncio.sleep(300)
        assert await waiting(world) == 0
        before = {name for _, name in distorter.bought}
        old = {node.metadata.name for node in (await world.admin.list(NODE)).items}

        def only_new(draft: Json) -> None:
            if draft["metadata"]["name"] not in old:
                draft["metadata"]["labels"][names.ZONE_LABEL] = "fsn1-dc14"

        distorter.edit = only_new
        labels = {"spec": {"template": {"metadata": {"labels": {"generation": "two"}}}}}
        await world.admin.patch(NODE_POOL, "default", labels)
        await asyncio.sleep(SECONDS)
        assert len({name for _, name in distorter.bought} - before) <= len(before) + 1

    in_cloud("kwok", body, pool())


def test_the_second_round_does_not_wait_for_the_first_to_go() -> None:
    """The machine that is tried is bought while those of the first round stand there."""

    async def body(world: World) -> None:
        distorter = Distorter(world, ZONE.edit)
        await world.admin.create(DEPLOYMENT, asking_zone("kwok"), namespace="default")
        await asyncio.sleep(SECONDS)
        assert rounds(distorter.bought)[1:] == [1]
        assert distorter.bought[-1][0] - distorter.bought[0][0] < 120

    in_cloud("kwok", body, manifests.node_pool("default", consolidate_after="2h"))


# --- and nobody is held back for longer than that


def test_other_pods_are_not_held_back() -> None:
    """While one sort backs off another that does not ask for the zone gets its machines."""

    async def body(world: World) -> None:
        Distorter(world, ZONE.edit)
        await world.admin.create(DEPLOYMENT, asking_zone("kwok"), namespace="default")
        await asyncio.sleep(600)
        await world.admin.create(DEPLOYMENT, workload("other", 6), namespace="default")
        await asyncio.sleep(300)
        pods = (await world.admin.list(POD)).items
        assert sum(bool(each.spec.node_name) for each in pods if each.metadata.name.startswith("other")) == 6

    in_cloud("kwok", body, pool())


def test_a_corrected_label_ends_the_rest() -> None:
    """The pods run on the Nodes that are there, and more are bought for those that have no room."""

    async def body(world: World) -> None:
        distorter = Distorter(world, ZONE.edit)
        await world.admin.create(DEPLOYMENT, asking_zone("kwok", 40), namespace="default")
        await asyncio.sleep(600)
        assert await waiting(world) == 40
        distorter.edit = label(names.ZONE_LABEL, ZONES["kwok"])
        await asyncio.sleep(300)
        assert await waiting(world) == 0

    in_cloud("kwok", body, manifests.node_pool("default", consolidate_after="2h"))


def test_a_change_of_the_pool_lets_one_machine_be_tried() -> None:
    """And when that one serves, all others come."""

    async def body(world: World) -> None:
        distorter = Distorter(world, ZONE.edit)
        await world.admin.create(DEPLOYMENT, asking_zone("kwok", 40), namespace="default")
        await asyncio.sleep(900)
        before = len(distorter.bought)
        labels = {"spec": {"template": {"metadata": {"labels": {"corrected": "no"}}}}}
        await world.admin.patch(NODE_POOL, "default", labels)
        await asyncio.sleep(900)
        assert len(distorter.bought) == before + 1
        distorter.edit = None
        await asyncio.sleep(300)
        await world.admin.patch(
            NODE_POOL, "default", {"spec": {"template": {"metadata": {"labels": {"corrected": "yes"}}}}}
        )
        await asyncio.sleep(600)
        assert await waiting(world) == 0

    in_cloud("kwok", body, pool())


def test_after_a_rest_one_machine_is_tried_and_the_next_rest_is_twice_as_long() -> None:
    """Three probes in an hour where the first rest is eight minutes."""

    async def body(world: World) -> None:
        distorter = Distorter(world, ZONE.edit)
        await world.admin.create(DEPLOYMENT, asking_zone("kwok"), namespace="default")
        await asyncio.sleep(3900)
        assert rounds(distorter.bought)[1:] == [1, 1, 1, 1]
        probes = [at for at, _ in distorter.bought][-4:]
        gaps = [later - sooner for sooner, later in itertools.pairwise(probes)]
        assert 480 <= gaps[0] <= 720
        assert 960 <= gaps[1] <= 1200
        assert 1920 <= gaps[2] <= 2160

    in_cloud("kwok", body, pool(), vainBackOff="8m")
