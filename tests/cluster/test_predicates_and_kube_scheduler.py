"""The slow predicates and the real kube-scheduler say the same of generated pods and nodes."""

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from growth.api.core import NAMESPACE
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.pods import POD, Pod
from growth.kube import access
from growth.kube.http import HttpApi
from growth.kube.informer import Informer, unchanged
from growth.ports import SystemClock, SystemRandom
from growth.sim.predicates import Host, Scene, refusals
from growth.sim.world.words import explain
from tools.controlplane.plane import Plane
from tools.controlplane.plane import plane as start_plane

NODES = 8
PODS = 200
PATIENCE_SECONDS = 120.0  # long enough for a loaded machine
ZONE = "topology.kubernetes.io/zone"
APPS = ("web", "db", "cache")


@pytest.fixture(scope="module")
def scheduling(control_plane: None) -> Iterator[Plane]:
    """An API server and kube-scheduler; nobody else touches nodes or pods."""
    with start_plane(scheduler=True) as running:
        yield running


class Generator:
    """Nodes and pods that use every rule, from a seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def node(self, number: int) -> tuple[Json, Json]:
        chance = self._chance
        labels = {"kubernetes.io/hostname": f"node-{number}", "cores": str(chance.choice((2, 4, 8)))}
        if chance.random() < 0.9:
            labels[ZONE] = f"zone-{number % 3}"
        taints = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}] if chance.random() < 0.25 else []
        body = {"metadata": {"name": f"node-{number}", "labels": labels}, "spec": {"unschedulable": number == 5}}
        room = {"cpu": str(chance.choice((2, 4, 8))), "memory": "16Gi", "pods": str(chance.choice((8, 20)))}
        return body, {"taints": taints, "room": room}

    def pod(self, number: int) -> Json:
        chance = self._chance
        app = chance.choice(APPS)
        spec: Json = {"containers": [self._container()]}
        if chance.random() < 0.2:
            spec["initContainers"] = [{**self._container(), "name": "init", "ports": []}]
        if chance.random() < 0.4:
            spec["tolerations"] = [
                chance.choice(
                    (
                        {"key": "dedicated", "operator": "Exists"},
                        {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
                        {"key": "dedicated", "value": "fpga"},
                        {"operator": "Exists"},
                    )
                )
            ]
        if chance.random() < 0.2:
            spec["nodeSelector"] = {ZONE: f"zone-{chance.randrange(3)}"}
        affinity = self._affinity()
        if affinity:
            spec["affinity"] = affinity
        if chance.random() < 0.4:
            spec["topologySpreadConstraints"] = [self._spread()]
        return {"metadata": {"name": f"pod-{number}", "labels": {"app": app}}, "spec": spec}

    def _container(self) -> Json:
        chance = self._chance
        requests = {"cpu": chance.choice(("50m", "100m", "300m", "1", "1500m")), "memory": "128Mi"}
        container: Json = {"name": "main", "image": "example", "resources": {"requests": requests}}
        if chance.random() < 0.1:
            container["ports"] = [{"containerPort": 80, "hostPort": chance.choice((8080, 8081))}]
        return container

    def _affinity(self) -> Json:
        chance = self._chance
        affinity: Json = {}
        if chance.random() < 0.25:
            operator = chance.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
            values = {"In": ["2", "8"], "NotIn": ["4"], "Gt": ["3"], "Lt": ["8"]}.get(operator, [])
            expression = {"key": "cores", "operator": operator, "values": values}
            terms = [{"matchExpressions": [expression]}]
            affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        for kind, rate in (("podAffinity", 0.15), ("podAntiAffinity", 0.2)):
            if chance.random() < rate:
                affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [self._term()]}
        return affinity

    def _term(self) -> Json:
        chance = self._chance
        term: Json = {
            "topologyKey": chance.choice((ZONE, "kubernetes.io/hostname")),
            "labelSelector": {"matchLabels": {"app": chance.choice(APPS)}},
        }
        match chance.randrange(4):
            case 0:
                term["namespaces"] = ["team-b"]
            case 1:
                term["namespaceSelector"] = {"matchLabels": {"team": "b"}}
            case _:
                pass
        return term

    def _spread(self) -> Json:
        chance = self._chance
        spread: Json = {
            "maxSkew": chance.choice((1, 1, 2)),
            "topologyKey": chance.choice((ZONE, "kubernetes.io/hostname")),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": chance.choice(APPS)}},
        }
        if chance.random() < 0.2:
            spread["minDomains"] = chance.choice((2, 4))
        if chance.random() < 0.3:
            spread["nodeTaintsPolicy"] = "Honor"
        if chance.random() < 0.3:
            spread["nodeAffinityPolicy"] = "Ignore"
        return spread

    def namespace(self) -> str:
        return self._chance.choice(("team-a", "team-b"))


async def prepare(api: HttpApi, generator: Generator) -> None:
    for name in ("team-a", "team-b"):
        await api.create(NAMESPACE, {"metadata": {"name": name, "labels": {"team": name[-1]}}})
    for number in range(NODES):
        body, more = generator.node(number)
        await api.create(NODE, body)
        name = body["metadata"]["name"]
        await api.patch(NODE, name, {"status": {"allocatable": more["room"]}}, subresource="status")
        # The server taints a new node as not ready; no controller is there to take that away.
        await api.patch(NODE, name, {"spec": {"taints": more["taints"]}})


async def until(pods: Informer[Pod, Pod], key: tuple[str, str], holds: Callable[[Pod], object]) -> Pod:
    """The pod once this holds of it."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            pod = pods.store.get(key[1], key[0])
            if pod is not None and holds(pod):
                return pod
            await asyncio.sleep(0.002)


async def decided(pods: Informer[Pod, Pod], key: tuple[str, str]) -> Pod:
    """The pod once the scheduler has said yes or no."""
    return await until(pods, key, lambda pod: pod.spec.node_name or _message(pod))


async def wait_until_seen(api: HttpApi, pods: Informer[Pod, Pod], scene: Scene) -> None:
    """Returns when the scheduler knows the nodes as they are now: it says why each of them will not do for a pod."""
    spec = {"containers": [{"name": "main", "image": "example"}], "nodeSelector": {"nowhere": "to-be-found"}}
    probe = await api.create(POD, {"metadata": {"name": "probe"}, "spec": spec}, namespace="team-a")
    wanted = explain([refusals(probe, host, scene) for host in scene.hosts])
    await until(pods, ("team-a", "probe"), lambda pod: _message(pod).startswith(wanted))
    await api.delete(POD, "probe", namespace="team-a", grace_seconds=0)


def _message(pod: Pod) -> str:
    return next((one.message for one in pod.status.conditions if one.reason == "Unschedulable"), "")


def test_predicates_agree_with_kube_scheduler(scheduling: Plane) -> None:
    """A bound pod's node has no refusal; a refused pod has one on every node, in the scheduler's own words."""

    async def compare() -> tuple[int, int]:
        found = access.find(kubeconfig=str(scheduling.kubeconfig))
        ports: dict[str, Any] = {"clock": SystemClock(), "random": SystemRandom()}
        async with HttpApi.connect(found, clock=SystemClock(), user_agent="growth/test", qps=5000, burst=5000) as api:
            generator = Generator(2)
            await prepare(api, generator)
            pods = Informer(api, POD, transform=unchanged, **ports)
            following = asyncio.create_task(pods.run())
            await pods.wait_synced()
            nodes: tuple[Node, ...] = (await api.list(NODE)).items
            labels = {item.metadata.name: item.metadata.labels for item in (await api.list(NAMESPACE)).items}
            scene = Scene(hosts=[Host.of(node) for node in nodes], namespaces=labels)
            await wait_until_seen(api, pods, scene)
            bound = refused = 0
            for number in range(PODS):
                namespace = generator.namespace()
                created = await api.create(POD, generator.pod(number), namespace=namespace)
                verdicts = {host.name: refusals(created, host, scene) for host in scene.hosts}
                answer = await decided(pods, (namespace, created.metadata.name))
                if answer.spec.node_name:
                    assert verdicts[answer.spec.node_name] == [], (created, answer.spec.node_name)
                    next(host for host in scene.hosts if host.name == answer.spec.node_name).pods.append(answer)
                    bound += 1
                else:
                    assert all(verdicts.values()), (created, verdicts)
                    assert _message(answer).startswith(explain(list(verdicts.values()))), (created, verdicts)
                    refused += 1
                    await api.delete(POD, created.metadata.name, namespace=namespace, grace_seconds=0)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        return bound, refused

    bound, refused = asyncio.run(compare())
    assert bound > 20
    assert refused > 20
