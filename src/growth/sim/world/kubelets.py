"""Stand-in kubelets for every Node: heartbeats, pods that start and stop.

A node becomes Ready a while after it appears, loses its not-ready taint (which the node controller would do) and renews
its Lease. A pod bound to it starts, runs and is ready; one that is being deleted stops and is then removed for good.
Times are ranges, drawn per node and pod.
"""

import asyncio
import collections
import contextlib
import dataclasses
import zlib
from typing import Final

from growth.api.coordination import LEASE
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.pods import POD, Pod
from growth.kube.api import Api, PatchType
from growth.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from growth.kube.informer import Informers
from growth.kube.queue import WorkQueue
from growth.kube.store import Change, Deleted, Key
from growth.ports import Clock, Random
from growth.units import print_micro_time, print_time

LEASE_NAMESPACE: Final = "kube-node-lease"
NOT_READY: Final = "node.kubernetes.io/not-ready"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSettings:
    """Seconds; ranges are uniform. A heartbeat of 0 means none, for long runs that look at no Lease."""

    node_ready: tuple[float, float] = (1.0, 5.0)
    pod_start: tuple[float, float] = (0.5, 3.0)
    pod_stop: tuple[float, float] = (0.2, 2.0)
    heartbeat: float = 10.0
    lease: int = 40


DEFAULT_KUBELETS: Final = KubeletSettings()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KubeletStatistics:
    ready: int = 0
    heartbeats: int = 0
    started: int = 0
    stopped: int = 0
    failed: int = 0


class Kubelets:
    """`run` plays the kubelets of all Nodes until cancelled. `silence` stops one of them, as a dead machine does."""

    def __init__(self, api: Api, *, clock: Clock, random: Random, settings: KubeletSettings = DEFAULT_KUBELETS) -> None:
        self._api = api
        self._clock = clock
        self._random = random
        self._settings = settings
        self._informers = Informers(api, clock=clock, random=random)
        self._nodes = self._informers.watch(NODE)
        self._pods = self._informers.watch(POD, indexes={"node": lambda pod: [pod.spec.node_name]})
        self._queue: WorkQueue[tuple[str, Key]] = WorkQueue(random)
        self._silent: dict[str, None] = {}
        self._counts: collections.Counter[str] = collections.Counter()
        # What waits for its time already, by the state that it was planned in.
        self._planned: dict[tuple[str, str], None] = {}
        self._nodes.subscribe(self._on_node)
        self._pods.subscribe(self._on_pod)

    def statistics(self) -> KubeletStatistics:
        return KubeletStatistics(**self._counts)

    def silence(self, node: str) -> None:
        """The machine is dead: no heartbeats, and its pods neither start nor stop."""
        self._silent[node] = None

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run())
            while True:
                item = await self._queue.get()
                what, key = item
                try:
                    match what:
                        case "ready":
                            await self._make_ready(key[1])
                        case "beat":
                            await self._beat(key[1])
                        case "start":
                            await self._start(key)
                        case _:
                            await self._stop(key)
                    self._queue.forget(item)
                except (NotFound, Conflict):
                    self._queue.forget(item)
                except KubeError:
                    self._counts["failed"] += 1
                    self._queue.retry(item)
                finally:
                    self._queue.done(item)

    def _on_node(self, change: Change[Node]) -> None:
        name = change.key[1]
        if isinstance(change, Deleted):
            self._silent.pop(name, None)
            return
        node = change.new
        if not _is_ready(node) and self._plan("ready", node.metadata.uid):
            self._queue.add_after(("ready", change.key), self._random.uniform(*self._settings.node_ready))

    def _on_pod(self, change: Change[Pod]) -> None:
        if isinstance(change, Deleted):
            for what in ("start", "stop"):
                self._planned.pop((what, change.old.metadata.uid), None)
            return
        pod = change.new
        if not pod.spec.node_name:
            return
        uid = pod.metadata.uid
        if pod.metadata.deletion_timestamp is not None:
            if self._plan("stop", uid):
                seconds = self._random.uniform(*self._settings.pod_stop)
                grace = pod.metadata.deletion_grace_period_seconds
                self._queue.add_after(("stop", change.key), seconds if grace is None else min(seconds, grace))
        elif pod.status.phase == "Pending" and self._plan("start", uid):
            self._queue.add_after(("start", change.key), self._random.uniform(*self._settings.pod_start))

    def _plan(self, what: str, uid: str) -> bool:
        """Whether it was not planned yet."""
        if (what, uid) in self._planned:
            return False
        self._planned[what, uid] = None
        return True

    async def _make_ready(self, name: str) -> None:
        node = self._nodes.store.get(name)
        if node is None or name in self._silent:
            return
        now = print_time(self._clock.now())
        condition: Json = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        await self._api.patch(
            NODE,
            name,
            {"status": {"conditions": [condition]}},
            subresource="status",
            patch_type=PatchType.STRATEGIC,
            uid=node.metadata.uid,
        )
        if any(taint.key == NOT_READY for taint in node.spec.taints):
            raw = await self._api.get(NODE.raw, name)
            taints = [taint for taint in raw["spec"].get("taints", ()) if taint["key"] != NOT_READY]
            revision = raw["metadata"]["resourceVersion"]
            await self._api.patch(NODE, name, {"spec": {"taints": taints or None}}, revision=revision)
        self._counts["ready"] += 1
        self._planned.pop(("ready", node.metadata.uid), None)
        if self._settings.heartbeat:
            self._queue.add(("beat", ("", name)))

    async def _beat(self, name: str) -> None:
        node = self._nodes.store.get(name)
        if node is None or name in self._silent:
            return
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": self._settings.lease,
            "renewTime": print_micro_time(self._clock.now()),
        }
        try:
            await self._api.patch(LEASE, name, {"spec": spec}, namespace=LEASE_NAMESPACE)
        except NotFound:
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid}
            body: Json = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
            with contextlib.suppress(AlreadyExists):
                await self._api.create(LEASE, body, namespace=LEASE_NAMESPACE)
        self._counts["heartbeats"] += 1
        self._queue.add_after(("beat", ("", name)), self._settings.heartbeat)

    async def _start(self, key: Key) -> None:
        pod = self._pods.store.get(key[1], key[0])
        if pod is None or pod.spec.node_name in self._silent or pod.metadata.deletion_timestamp is not None:
            return
        now = print_time(self._clock.now())
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": now}
            for kind in ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
        ]
        statuses = [
            {
                "name": container.name,
                "ready": True,
                "started": True,
                "restartCount": 0,
                "image": "simulated",
                "imageID": "simulated",
                "state": {"running": {"startedAt": now}},
            }
            for container in pod.spec.containers
        ]
        address = zlib.crc32(pod.metadata.uid.encode())
        status: Json = {
            "phase": "Running",
            "startTime": now,
            "podIP": f"10.{address >> 16 & 255}.{address >> 8 & 255}.{address & 255}",
            "conditions": conditions,
            "containerStatuses": statuses,
        }
        await self._api.patch(
            POD,
            key[1],
            {"status": status},
            namespace=key[0],
            subresource="status",
            patch_type=PatchType.STRATEGIC,
            uid=pod.metadata.uid,
        )
        self._counts["started"] += 1

    async def _stop(self, key: Key) -> None:
        pod = self._pods.store.get(key[1], key[0])
        if pod is None or pod.spec.node_name in self._silent:
            return
        await self._api.delete(POD, key[1], namespace=key[0], uid=pod.metadata.uid, grace_seconds=0)
        self._counts["stopped"] += 1


def _is_ready(node: Node) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
