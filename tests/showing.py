"""A small cluster for those who look at one: two pools, three machines, pods that wait, two decisions; all at one time."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Callable
from typing import Any

from growth.api.core import NAMESPACE
from growth.api.crds import all_crds
from growth.api.instance_types import Catalogue
from growth.api.kinds import Json
from growth.cluster.state import State
from growth.kube.memory import MemoryApi, MemoryServer
from growth.providers.catalogues import builtin
from growth.sim.ports import SimRandom
from growth.sim.world.world import named
from growth.top.following import Following

NOW = dt.datetime(2030, 1, 7, 9, 0, tzinfo=dt.UTC)
LATER = dt.timedelta(minutes=10)
# Long enough for a loaded machine; nobody waits so long unless something is broken.
PATIENCE_SECONDS = 120.0


class Stopped:
    """A clock whose hands a test moves."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> dt.datetime:
        return self.time

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def boot_time(self) -> float:
        return self.monotonic()


class Inline:
    """Computes on the spot."""

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)


def hetzner(_: State) -> Catalogue:
    return builtin("hetzner")


def machine(name: str, kind: str, *, cpu: str, memory: str, pool: str = "general", **more: Any) -> list[Json]:
    """A claim and its Node, ready since long."""
    labels = {
        "karpenter.sh/nodepool": pool,
        "node.kubernetes.io/instance-type": kind,
        "topology.kubernetes.io/zone": "fsn1",
        "karpenter.sh/capacity-type": "on-demand",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }
    done = [
        {"type": each, "status": "True", "reason": each, "message": "", "lastTransitionTime": "2030-01-07T08:00:00Z"}
        for each in ("Launched", "Registered", "Initialized", "Ready")
    ]
    room = {"cpu": cpu, "memory": memory, "pods": "110"}
    claim: Json = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [kind]}],
        },
        "status": {
            "providerID": f"kwok://{name}",
            "nodeName": name,
            "capacity": room,
            "allocatable": room,
            "conditions": done,
        },
    }
    own = {"kubernetes.io/hostname": name, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    node: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels, **own}},
        "spec": {"providerID": f"kwok://{name}", **more},
        "status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    return [claim, node]


def pod(name: str, *, cpu: str = "1", memory: str = "1Gi", node: str = "", **spec: Any) -> Json:
    asked = {"requests": {"cpu": cpu, "memory": memory}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "containers": [{"name": "main", "image": "example", "resources": asked}],
            **({"nodeName": node} if node else {}),
            **spec,
        },
    }


def decision(name: str, at: str, **spec: Any) -> Json:
    return {
        "apiVersion": "growth.dev/v1alpha1",
        "kind": "Decision",
        "metadata": {"name": name},
        "spec": {"at": at, "controller": "disruption", "outcome": "Acted", **spec},
    }


POOL: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "general"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
            }
        },
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s"},
        "limits": {"nodes": "3"},
    },
    "status": {
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Ready",
                "message": "",
                "lastTransitionTime": "2030-01-07T08:00:00Z",
            }
        ]
    },
}
NODE_CLASS: Json = {
    "apiVersion": "karpenter.kwok.sh/v1alpha1",
    "kind": "KWOKNodeClass",
    "metadata": {"name": "default"},
}
SHOP: list[Json] = [
    NODE_CLASS,
    POOL,
    *machine("general-a", "cx43", cpu="7900m", memory="14Gi"),
    *machine("general-b", "cx33", cpu="3900m", memory="7Gi"),
    *machine("general-c", "cx33", cpu="3900m", memory="7Gi", unschedulable=True),
    *(pod(f"web-{number}", cpu="1500m", memory="2Gi", node="general-a") for number in range(4)),
    pod("api-0", cpu="2", memory="1Gi", node="general-b"),
    pod("cache-0", cpu="1", memory="6Gi", node="general-c"),
    pod("huge-0", cpu="60", memory="4Gi"),
    pod("one-more-0", cpu="3", memory="4Gi"),
    decision(
        "disruption-1",
        "2030-01-07T08:58:00Z",
        summary="replaces 2 underutilized nodes by 1 × cx43",
        actions=[
            {"verb": "create", "instanceType": "cx43", "price": 0.025625, "pods": 4},
            {"verb": "delete", "instanceType": "cx33", "price": 0.013605769},
            {"verb": "delete", "instanceType": "cx33", "price": 0.013605769},
        ],
        cost={"currency": "EUR", "before": 0.06, "after": 0.05},
    ),
]


async def filled(server: MemoryServer, objects: list[Json]) -> None:
    """Puts the objects there, with what their status says."""
    admin = MemoryApi(server, user="admin")
    for body in all_crds():
        kind, _, _ = named(server, body)
        await admin.create(kind, body)
    await admin.create(NAMESPACE, {"metadata": {"name": "growth"}})
    for body in objects:
        kind, name, namespace = named(server, body)
        await admin.create(kind, {key: value for key, value in body.items() if key != "status"}, namespace=namespace)
        if "status" in body:
            await admin.patch(kind, name, {"status": body["status"]}, namespace=namespace, subresource="status")


@contextlib.asynccontextmanager
async def followed(objects: list[Json]) -> AsyncIterator[tuple[Following, Stopped, MemoryApi]]:
    """A cluster with these objects, ten minutes old, somebody who follows it, and its administrator."""
    clock = Stopped()
    server = MemoryServer(clock, SimRandom(1, "server"))
    await filled(server, objects)
    clock.time += LATER
    api = MemoryApi(server, user="admin")
    yield Following(api, clock=clock, random=SimRandom(1, "top"), choose=hetzner), clock, api


async def until(look: Callable[[], bool]) -> None:
    """Lets others work until it is so; the test fails where it never is."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not look():  # noqa: ASYNC110 - what is looked at belongs to others, who set no event
            await asyncio.sleep(0.01)
