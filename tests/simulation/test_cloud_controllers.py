"""A cloud controller manager that labels Nodes in its own words: every pod runs, and no machine is bought in vain."""

import asyncio
from typing import Any

import pytest

from growth.api import names
from growth.api.events import EVENT
from growth.api.karpenter import NODE_CLAIM
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.api.workloads import DEPLOYMENT
from growth.sim.world.cloud_controller import ZONES, CloudControllerSettings, Zone, drawn
from growth.sim.world.cluster import workload
from growth.sim.world.hetzner import CLUSTER_LABEL
from growth.sim.world.world import World, WorldSettings
from tests.manifests import growth_pool, need, node_pool
from tests.simulation.vendors import in_world_with

PODS = 3
TYPE = need(names.INSTANCE_TYPE_LABEL, "In", "cx23")
POOLS: dict[str, Json] = {
    "karpenter": node_pool("default", TYPE),
    "growth": growth_pool("default", {"name": "cx23", "max": 10}),
}


def selecting(zone: str, **spec: Any) -> Json:
    """A pod for each machine of the type."""
    requests = {"resources": {"requests": {"cpu": "1500m"}}}
    chosen = {"nodeSelector": {names.ZONE_LABEL: zone}} if zone else {}
    return workload("web", PODS, containers=[{"name": "main", "image": "example", **requests}], **chosen, **spec)


def zone_affinity(operator: str, *zones: str) -> Json:
    term = {"matchExpressions": [{"key": names.ZONE_LABEL, "operator": operator, "values": list(zones)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def played(
    controller: CloudControllerSettings, body: Json, *, pool: Json, others: str = "", seconds: float = 900.0
) -> tuple[int, int, list[str]]:
    """How many pods run in the end, how many machines were bought, and the zones that their Nodes carry."""
    found: list[tuple[int, int, list[str]]] = []

    async def play(world: World) -> None:
        half = world.hetzner
        assert half is not None
        if others:
            await world.cluster.add_node("control-plane", cpu="100m", zone=others)
        await world.admin.create(DEPLOYMENT, body, namespace="default")
        await asyncio.sleep(seconds)
        running = [pod for pod in (await world.admin.list(POD)).items if pod.status.phase == "Running"]
        bought = [each for each in half.fake.ledger.purchases if CLUSTER_LABEL in each.labels]
        nodes = [node for node in (await world.admin.list(NODE)).items if node.metadata.name != "control-plane"]
        zones = sorted(node.metadata.labels.get(names.ZONE_LABEL, "") for node in nodes)
        found.append((len(running), len(bought), zones))

    in_world_with(WorldSettings(cloud_controller=controller), "hetzner", play, pool)
    return found[0]


# With the taint a Node is taken when it is initialised, without it its labels are put right.
@pytest.mark.parametrize(("api", "taint"), [("karpenter", True), ("growth", False)])
@pytest.mark.parametrize("seconds", [1.0, 8.0, 60.0])
@pytest.mark.parametrize("spelling", ZONES)
@pytest.mark.parametrize("zone", ["fsn1", "fsn1-dc14"])
def test_pods_run_where_they_select_whatever_the_controller_calls_it(
    zone: str, spelling: Zone, seconds: float, *, taint: bool, api: str
) -> None:
    """As many machines as pods need, and the Nodes carry the name that the pods select."""
    controller = CloudControllerSettings(seconds=seconds, zone=spelling, taint=taint)
    running, bought, zones = played(controller, selecting(zone), pool=POOLS[api], others="fsn1-dc14")
    assert (running, bought) == (PODS, PODS)
    assert zones == [zone] * PODS


@pytest.mark.parametrize("others", ["fsn1-dc14", "fsn1", ""])
def test_nodes_carry_the_name_that_other_nodes_carry(others: str) -> None:
    """For pods that select no zone: kube-scheduler spreads pods over names."""
    spread = {"maxSkew": 1, "topologyKey": names.ZONE_LABEL, "whenUnsatisfiable": "DoNotSchedule"}
    body = selecting("", topologySpreadConstraints=[{**spread, "labelSelector": {"matchLabels": {"app": "web"}}}])
    running, bought, zones = played(CloudControllerSettings(), body, pool=POOLS["karpenter"], others=others)
    assert (running, bought) == (PODS, PODS)
    expected = ["fsn1-dc14", "hel1-dc2", "nbg1-dc3"] if others == "fsn1-dc14" else ["fsn1", "hel1", "nbg1"]
    assert zones == expected


@pytest.mark.parametrize("zone", ["fsn1", "fsn1-dc14"])
@pytest.mark.parametrize("others", ["fsn1-dc14", "fsn1"])
def test_pools_and_pods_mean_the_place(zone: str, others: str) -> None:
    """A pool that names a zone either way sells it, and a pod that rules one out either way gets no machine there."""
    pool = node_pool("default", TYPE, need(names.ZONE_LABEL, "In", zone))
    assert played(CloudControllerSettings(), selecting(""), pool=pool, others=others)[:2] == (PODS, PODS)
    elsewhere = selecting("", affinity=zone_affinity("NotIn", zone, "nbg1"))
    running, bought, zones = played(
        CloudControllerSettings(), elsewhere, pool=node_pool("default", TYPE), others=others
    )
    assert (running, bought) == (PODS, PODS)
    assert {each.partition("-")[0] for each in zones} == {"hel1"}


def test_a_machine_in_a_zone_of_two_names_has_not_drifted() -> None:
    """The pool says `fsn1`, the Nodes of the cluster carry `fsn1-dc14`: an hour later the same machines run."""
    pool = node_pool("default", TYPE, need(names.ZONE_LABEL, "In", "fsn1"))
    found = played(CloudControllerSettings(), selecting(""), pool=pool, others="fsn1-dc14", seconds=5400.0)
    assert found == (PODS, PODS, ["fsn1-dc14"] * PODS)


def test_a_claim_says_that_the_controller_does_not_run() -> None:
    """A Node that nobody initialises is not taken, and its claim is given up with that reason."""

    async def play(world: World) -> None:
        await world.admin.create(DEPLOYMENT, selecting("fsn1"), namespace="default")
        await asyncio.sleep(600)
        told = {
            each.message
            for claim in (await world.admin.list(NODE_CLAIM)).items
            for each in claim.status.conditions
            if each.type == names.REGISTERED and each.status != "True"
        }
        assert len(told) == 1
        assert "cloud controller manager" in told.pop()
        await asyncio.sleep(600)
        events = [each for each in (await world.admin.list(EVENT)).items if each.reason == names.REGISTRATION_TIMEOUT]
        assert events
        assert all("cloud controller manager" in each.message for each in events)

    in_world_with(
        WorldSettings(cloud_controller=CloudControllerSettings(seconds=1e6)), "hetzner", play, POOLS["karpenter"]
    )


def test_seeds_try_every_name_and_none() -> None:
    """Worlds have a controller, or none, with each of its names of zones."""
    found = {controller.zone if controller is not None else None for controller in map(drawn, range(40))}
    assert found == {None, *ZONES}


def test_later_machines_carry_the_name_of_the_first() -> None:
    """What the controller writes on a Node that is not taken yet decides nothing: no other Node says `fsn1-dc14`."""

    async def play(world: World) -> None:
        await world.admin.create(DEPLOYMENT, selecting(""), namespace="default")
        for replicas in range(PODS, 3 * PODS):
            await world.admin.patch(DEPLOYMENT, "web", {"spec": {"replicas": replicas}}, namespace="default")
            await asyncio.sleep(20)
        await asyncio.sleep(300)
        assert {node.metadata.labels[names.ZONE_LABEL] for node in (await world.admin.list(NODE)).items} == {"fsn1"}

    pool = node_pool("default", TYPE, need(names.ZONE_LABEL, "Exists"))
    in_world_with(WorldSettings(cloud_controller=CloudControllerSettings(seconds=0.5)), "hetzner", play, pool)
