"""The rehearsal and the real kube-scheduler: every pod goes to one of the nodes that the model scores best."""

import random
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec
import pytest

from bench.playing import Player, pod_object
from growth.api import names
from growth.api.placement import Taint
from growth.api.pods import Pod
from growth.cluster.shapes import Shapes
from growth.cluster.snapshot import Demand, NodeView, Snapshot
from growth.planning.rehearsal import Stage
from growth.units.resources import amounts
from tools.controlplane.plane import plane as start_plane

T = TypeVar("T")

PODS = 150
BIND_SECONDS = 120.0  # long enough for a loaded machine
PODS_PATH = "/api/v1/namespaces/default/pods"
SIZES = (("4", "16Gi"), ("8", "16Gi"), ("8", "64Gi"), ("2", "4Gi"), ("16", "32Gi"), ("4", "8Gi"))
TAINTED = 4


@pytest.fixture(scope="module")
def player(control_plane: None) -> Iterator[Player]:
    """An API server and a scheduler; nobody else touches nodes or pods."""
    with start_plane(scheduler=True) as running:
        yield Player(running.url, str(running.ca), running.token)


def nodes() -> list[dict[str, Any]]:
    """Machines of different sizes in three zones, one of them discouraged."""
    return [
        {
            "metadata": {
                "name": f"node-{at}",
                "labels": {names.HOSTNAME_LABEL: f"node-{at}", names.ZONE_LABEL: "abc"[at % 3]},
            },
            "status": {
                "capacity": {"cpu": cpu, "memory": memory, "pods": "110"},
                "allocatable": {"cpu": cpu, "memory": memory, "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for at, (cpu, memory) in enumerate(SIZES)
    ]


def drawn_pod(number: int, chance: random.Random) -> Pod:
    """A pod with some size and, now and then, some wish or rule."""
    app = chance.choice(("web", "db"))
    requests = {"cpu": chance.choice(("100m", "250m", "500m", "1")), "memory": chance.choice(("128Mi", "512Mi", "1Gi"))}
    if chance.random() < 0.15:
        requests = {}
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    about = {"labelSelector": {"matchLabels": {"app": app}}}
    if chance.random() < 0.3:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": chance.choice((1, 2)),
                "topologyKey": key,
                "whenUnsatisfiable": chance.choice(("ScheduleAnyway", "ScheduleAnyway", "DoNotSchedule")),
                **about,
            }
            for key in chance.sample((names.ZONE_LABEL, names.HOSTNAME_LABEL), chance.choice((1, 2)))
        ]
    affinity: dict[str, Any] = {}
    wish = {"weight": chance.choice((1, 10, 100))}
    if chance.random() < 0.2:
        expression = {"key": names.ZONE_LABEL, "operator": "In", "values": [chance.choice("abc")]}
        terms = [{**wish, "preference": {"matchExpressions": [expression]}}]
        affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": terms}
    for kind in ("podAffinity", "podAntiAffinity"):
        if chance.random() < 0.15:
            term = {"topologyKey": chance.choice((names.ZONE_LABEL, names.HOSTNAME_LABEL)), **about}
            affinity[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": [{**wish, "podAffinityTerm": term}]}
    if affinity:
        spec["affinity"] = affinity
    if chance.random() < 0.2:
        spec["tolerations"] = [{"key": "dear", "operator": "Exists"}]
    made = {"metadata": {"name": f"pod-{number}", "namespace": "default", "labels": {"app": app}}, "spec": spec}
    return msgspec.convert(made, Pod)


def until(look: Callable[[], T | None], what: str) -> T:
    deadline = time.monotonic() + BIND_SECONDS
    while (found := look()) is None:
        assert time.monotonic() < deadline, f"not within {BIND_SECONDS:.0f} s: {what}"
        time.sleep(0.005)
    return found


def decided(player: Player, pod: Pod) -> str:
    """The node that the scheduler chose, and counts with from then on; nothing where it refused."""
    path = f"{PODS_PATH}/{pod.metadata.name}"
    player.call("POST", PODS_PATH, pod_object(pod))

    def chosen() -> str | None:
        found = player.call("GET", path)
        if found["spec"].get("nodeName"):
            return str(found["spec"]["nodeName"])
        return "" if refusal(found) else None

    where = until(chosen, f"a decision about {pod.metadata.name}")
    if not where:
        player.call("DELETE", path, {"gracePeriodSeconds": 0})
    return where


def refusal(pod: dict[str, Any]) -> str:
    """What the scheduler said of a pod that it refused."""
    conditions = pod.get("status", {}).get("conditions", [])
    return next((str(each.get("message")) for each in conditions if each.get("reason") == "Unschedulable"), "")


def wait_until_seen(player: Player, count: int) -> None:
    """Returns when the scheduler knows so many nodes as they are now: it tells a pod that wants another why each will not do.

    Of a node that it still knows as not ready it would name that taint instead.
    """
    spec = {"containers": [{"name": "main", "image": "none"}], "nodeSelector": {"nowhere": "to-be-found"}}
    player.call("POST", PODS_PATH, {"metadata": {"name": "probe"}, "spec": spec})
    wanted = f"0/{count} nodes are available: {count} node(s) didn't match Pod's node affinity/selector"
    until(lambda: refusal(player.call("GET", f"{PODS_PATH}/probe")).startswith(wanted) or None, "all nodes are seen")
    player.call("DELETE", f"{PODS_PATH}/probe", {"gracePeriodSeconds": 0})


def test_every_pod_goes_where_the_model_says(player: Player) -> None:
    """Whatever lot kube-scheduler draws is among the nodes that the model scores best, and it refuses whom the model does."""
    views = []
    for at, raw in enumerate(nodes()):
        player.call("POST", "/api/v1/nodes", raw)
        taints = [{"key": "dear", "effect": "PreferNoSchedule"}] if at == TAINTED else None
        player.call("PATCH", f"/api/v1/nodes/node-{at}", {"spec": {"taints": taints}})
        views.append(
            NodeView(
                name=f"node-{at}",
                labels=raw["metadata"]["labels"],
                taints=msgspec.convert(taints or [], tuple[Taint, ...]),
                allocatable=amounts(raw["status"]["allocatable"]),
            )
        )
    wait_until_seen(player, len(views))
    chance = random.Random(7)
    shapes = Shapes()
    pods = {f"default/pod-{number}": drawn_pod(number, chance) for number in range(PODS)}
    snapshot = Snapshot(currency="EUR", nodes=tuple(views), namespaces={"default": {}})
    stage = Stage(snapshot, [Demand(key, shapes.shape(pod)) for key, pod in pods.items()])
    wrong: list[str] = []
    alone = 0

    def told(key: str, best: tuple[str, ...]) -> str:
        nonlocal alone
        where = decided(player, pods[key])
        alone += len(best) == 1
        if where not in best and (where or best):
            wrong.append(f"{key}: kube-scheduler {where or 'refuses'}, the model {best}")
        return where

    stage.follow(told)
    assert wrong == []
    assert alone > PODS // 2  # mostly there is one right answer
