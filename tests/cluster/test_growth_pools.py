"""Two pools of growth.dev on a real control plane, with Hetzner's catalogue and no cloud: their whole story in order."""

import time
from collections.abc import Iterator

import pytest

from bench.owning import autoscaler, desk
from bench.owning.desk import Desk
from growth.api.kinds import Json
from tests.cluster.owning import Autoscaled, condition
from tools.controlplane.plane import Plane

POOLS = "/apis/growth.dev/v1alpha1/growthpools"
REQUESTS = "/apis/growth.dev/v1alpha1/noderequests"
REMOVALS = "/apis/growth.dev/v1alpha1/noderemovalrequests"
DECISIONS = "/apis/growth.dev/v1alpha1/decisions"
FAULTS = "/api/v1/namespaces/growth/configmaps"
TYPE = "node.kubernetes.io/instance-type"
ATTEMPTS = 2
SCALE_DOWN_SECONDS = 2
# Everything that happens of itself when pods are gone happens within this: a mark, its time, the look afterwards.
QUIET_SECONDS = 3 * SCALE_DOWN_SECONDS

DEFAULT: Json = {
    "apiVersion": "growth.dev/v1alpha1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "serverTypes": [
            {"name": "CAX11", "max": 10},
            {"name": "CAX21", "min": 1, "max": 5},
            {"name": "CAX31", "max": 1},
        ]
    },
}
GPU: Json = {
    "apiVersion": "growth.dev/v1alpha1",
    "kind": "NodePool",
    "metadata": {"name": "gpu"},
    "spec": {"serverTypes": [{"name": "GEX44", "max": 5}]},
}


@pytest.fixture(scope="module")
def cluster(plane: Plane) -> Iterator[Autoscaled]:
    """Growth runs with the catalogue of Hetzner; a node class `default` is there, and no pool."""
    server = Desk(plane)
    autoscaler.prepare(server, autoscaler.GROWTH)
    options = ("--kwok-catalogue", "hetzner", "--unmet-ttl", "10s", "--refused-ttl", "10s")
    more = ("--removal-retry-after", "1s", "--max-removal-attempts", str(ATTEMPTS))
    with autoscaler.stopped_at_last(autoscaler.growth(plane, *autoscaler.QUICK, *options, *more)) as process:
        process.wait_ready()
        yield Autoscaled(plane, process, server)


def types(cluster: Autoscaled, pool: str = "default") -> list[str]:
    """The types of the machines that are there, sorted."""
    claims = [
        each for each in cluster.desk.items(desk.CLAIMS) if each["metadata"]["labels"].get("growth.dev/pool") == pool
    ]
    return sorted(each["metadata"]["labels"].get(TYPE, "") for each in claims)


def phase(request: Json) -> str:
    """Empty while it has none yet."""
    return str(request.get("status", {}).get("phase", ""))


def deploy(cluster: Autoscaled, name: str, replicas: int, *, cpu: str = "1", selector: Json | None = None) -> None:
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "nodeSelector": selector or {}, "terminationGracePeriodSeconds": 1}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }
    cluster.desk.create(desk.APPS, body)


def faults(cluster: Autoscaled, data: Json | None) -> None:
    path = f"{FAULTS}/growth-kwok-faults"
    if cluster.desk.exists(path):
        cluster.desk.delete(path)
    if data is not None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "growth-kwok-faults"}, "data": data}
        cluster.desk.create(FAULTS, body)
    time.sleep(2)  # it is read every second


def test_the_pools_run_as_they_are_written(cluster: Autoscaled) -> None:
    """One CAX21 is warm without load; pods that ask for a pool, and those that ask for none, get their places."""
    cluster.desk.create(POOLS, DEFAULT)
    cluster.desk.create(POOLS, GPU)
    cluster.until(lambda: types(cluster) == ["cax21"], "one CAX21 is kept warm")
    assert types(cluster, "gpu") == []
    deploy(cluster, "asks", 1, selector={"growth.dev/pool": "default"})
    deploy(cluster, "asks-none", 2)
    deploy(cluster, "graphics", 1, selector={"growth.dev/pool": "gpu"})
    cluster.wait_running("asks", 1)
    cluster.wait_running("asks-none", 2)
    cluster.wait_running("graphics", 1)
    assert types(cluster) == ["cax21"]
    assert types(cluster, "gpu") == ["gex44"]
    ready = cluster.until(
        lambda: condition(cluster.desk.get(f"{POOLS}/default"), "Ready"), "the pool says that it is ready"
    )
    assert ready["status"] == "True"
    told = cluster.kubectl("get", "gpool,nreq")
    assert "nodeReady" in told
    assert "hetzner-cax21" in told
    assert "hetzner-gex44" in told
    assert "Ready" in told


def _asked_for(cluster: Autoscaled) -> list[str]:
    """The types that plans have asked for, in the order of the Decisions."""
    found = [each for each in cluster.desk.items(DECISIONS) if each["spec"]["controller"] == "provisioning"]
    found.sort(key=lambda each: int(each["metadata"]["resourceVersion"]))
    return [
        action["instanceType"]
        for each in found
        for action in each["spec"].get("actions", ())
        if action["verb"] == "create"
    ]


def test_a_type_without_stock_is_planned_around_and_asked_for_again(cluster: Autoscaled) -> None:
    """CAX11 is `Unmet`, the pod gets another type at once, and after its time CAX11 is bought."""
    faults(cluster, {"noCapacity": "cax11/*/*"})
    deploy(cluster, "one", 1, cpu="1500m", selector={"growth.dev/pool": "default"})
    unmet = cluster.until(
        lambda: [each for each in cluster.desk.items(REQUESTS) if phase(each) == "Unmet"], "CAX11 cannot be had"
    )
    assert [each["spec"]["targetOffering"] for each in unmet] == ["hetzner-cax11"]
    assert [each["name"] for each in unmet[0]["status"]["events"]] == ["nodeRequested", "nodeRequestFailed"]
    cluster.wait_running("one", 1)
    assert types(cluster) == ["cax21", "cax21"]
    # Replanned within one loop: the very next thing that was decided is the other type.
    asked = cluster.until(
        lambda: created if len(created := _asked_for(cluster)) >= 2 and created[-1] != "cax11" else None,
        "the second plan was written down",
    )
    assert asked[-2:] == ["cax11", "cax21"]
    faults(cluster, None)
    cluster.until(lambda: not cluster.desk.exists(f"{REQUESTS}/{unmet[0]['metadata']['name']}"), "its time is over")
    deploy(cluster, "small", 1, selector={TYPE: "cax11"})
    cluster.until(lambda: "cax11" in types(cluster), "CAX11 is bought again")
    cluster.wait_running("small", 1)


def test_scale_down_leaves_the_minimum(cluster: Autoscaled) -> None:
    """Without pods everything goes but the one CAX21, which is never marked."""
    for name in ("default", "gpu"):
        cluster.desk.merge(f"{POOLS}/{name}", {"spec": {"scaleDownAfter": f"{SCALE_DOWN_SECONDS}s"}})
    for each in cluster.desk.items(desk.APPS):
        cluster.desk.delete(f"{desk.APPS}/{each['metadata']['name']}")
    cluster.until(
        lambda: types(cluster) == ["cax21"] and not types(cluster, "gpu") and not cluster.desk.items(REMOVALS),
        "all but the minimum is gone",
    )
    time.sleep(QUIET_SECONDS)
    assert types(cluster) == ["cax21"]


def _told(cluster: Autoscaled, removal: Json) -> list[Json]:
    about = {removal["metadata"]["name"], removal["spec"]["nodeName"]}
    return [each for name in sorted(about) for each in cluster.events("RemovalFailed", about=name)]


def test_a_cloud_that_refuses_is_given_up(cluster: Autoscaled) -> None:
    """`RemovalFailed` with events on request and Node; nobody asks again, and the taint stays."""
    deploy(cluster, "graphics", 1, selector={"growth.dev/pool": "gpu"})
    cluster.wait_running("graphics", 1)
    faults(cluster, {"refuseDelete": "gex44"})
    cluster.desk.delete(f"{desk.APPS}/graphics")
    cluster.until(
        lambda: [phase(each) for each in cluster.desk.items(REMOVALS)] == ["RemovalFailed"],
        "the removal has failed",
    )
    (removal,) = cluster.desk.items(REMOVALS)
    assert removal["status"]["removalAttempt"] == ATTEMPTS
    names = [each["name"] for each in removal["status"]["events"]]
    assert names == ["Deletion requested", "Deletion failed"] * ATTEMPTS
    told = cluster.until(
        lambda: events if len(events := _told(cluster, removal)) == 2 else None, "both were told of the failure"
    )
    assert {each["involvedObject"]["kind"] for each in told} == {"Node", "NodeRemovalRequest"}
    time.sleep(QUIET_SECONDS)
    (later,) = cluster.desk.items(REMOVALS)
    assert later["metadata"]["resourceVersion"] == removal["metadata"]["resourceVersion"]
    node = cluster.desk.get(f"{desk.NODES}/{removal['spec']['nodeName']}")
    assert "growth.dev/scale-down" in {each["key"] for each in node["spec"]["taints"]}
    assert "RemovalFailed" in cluster.kubectl("get", "nrem")


DRIFTING: Json = {
    "apiVersion": "growth.dev/v1alpha1",
    "kind": "NodePool",
    "metadata": {"name": "drifting"},
    "spec": {
        "serverTypes": [{"name": "CAX11", "min": 2, "max": 10}],
        "disruption": {"budgets": [{"nodes": "1"}]},
        "scaleDownAfter": "10m",
    },
}
MACHINES = 5
LEAST = 2


def _nodes(cluster: Autoscaled, pool: str) -> list[Json]:
    return [
        each for each in cluster.desk.items(desk.NODES) if each["metadata"]["labels"].get("growth.dev/pool") == pool
    ]


def _is_ready(node: Json) -> bool:
    told = (condition(node, "Ready") or {}).get("status")
    return told == "True" and node["metadata"].get("deletionTimestamp") is None


def test_a_changed_template_replaces_every_machine_and_keeps_the_minimum_ready(cluster: Autoscaled) -> None:
    """Five machines, `min: 2`, a budget of one: all are replaced through removals of the reason Drifted, never fewer than two ready."""
    cluster.desk.create(POOLS, DRIFTING)
    deploy(cluster, "holds", MACHINES, cpu="1500m", selector={"growth.dev/pool": "drifting"})
    cluster.wait_running("holds", MACHINES)
    cluster.until(lambda: types(cluster, "drifting") == ["cax11"] * MACHINES, "five machines, one a pod")
    before = {each["metadata"]["uid"] for each in _nodes(cluster, "drifting")}
    cluster.desk.merge(f"{POOLS}/drifting", {"spec": {"template": {"labels": {"team": "b"}}}})
    least, most = MACHINES, 0
    reasons: set[str] = set()

    def is_replaced() -> bool:
        nonlocal least, most
        removals = [each for each in cluster.desk.items(REMOVALS) if each["metadata"]["name"].startswith("drifting-")]
        nodes = _nodes(cluster, "drifting")
        least = min(least, sum(map(_is_ready, nodes)))
        most = max(most, len(removals))
        reasons.update(each["spec"]["reason"] for each in removals)
        return before.isdisjoint(each["metadata"]["uid"] for each in nodes) and not removals

    cluster.until(is_replaced, "all machines are replaced", seconds=300)
    assert least >= LEAST
    assert most == 1
    assert reasons == {"Drifted"}
    assert {each["metadata"]["labels"].get("team") for each in _nodes(cluster, "drifting")} == {"b"}
    cluster.wait_running("holds", MACHINES)
    assert types(cluster, "drifting") == ["cax11"] * MACHINES
