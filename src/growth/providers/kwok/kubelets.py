"""Stand-in kubelets: heartbeats, pods that start, stop and finish.

A node becomes Ready a while after it appears, loses its not-ready taint (which the node controller would do) and renews
its Lease. A pod bound to it starts, runs and is ready; a Job's succeeds; one that is being deleted stops and is then
removed for good. Times are ranges, drawn per node and pod. What was going on before a restart goes on after it.
"""

import asyncio
import collections
import contextlib
import dataclasses
import zlib
from collections.abc import Sequence
from typing import Final

from growth.api import names
from growth.api.coordination import LEASE
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.pods import POD, Pod
from growth.kube.api import Api, PatchType
from growth.kube.errors import AlreadyExists, ConfigError, Conflict, GateClosed, KubeError, NotFound
from growth.kube.informer import Informer, Informers, Selection
from growth.kube.queue import WorkQueue
from growth.kube.store import Added, Change, Deleted, Key
from growth.ports import Clock, Random
from growth.providers.kwok.records import NEVER_READY_ANNOTATION
from growth.units import Duration, UnitError, print_micro_time, print_time

LEASE_NAMESPACE: Final = "kube-node-lease"
NOT_READY: Final = names.NOT_READY_TAINT
# On a pod of a Job: how long it runs before it succeeds.
RUN_ANNOTATION: Final = "growth.dev/kwok-runs-for"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSettings:
    """Seconds; ranges are uniform. A heartbeat of 0 means none, for long runs that look at no Lease."""

    node_ready: tuple[float, float] = (1.0, 5.0)
    pod_start: tuple[float, float] = (0.5, 3.0)
    pod_stop: tuple[float, float] = (0.2, 2.0)
    job_run: tuple[float, float] = (5.0, 30.0)
    heartbeat: float = 10.0
    lease: int = 40
    workers: int = 20


DEFAULT_KUBELETS: Final = KubeletSettings()
# As the kwok controller: everything at once.
QUICK_KUBELETS: Final = KubeletSettings(
    node_ready=(0.0, 0.0), pod_start=(0.0, 0.0), pod_stop=(0.0, 0.0), job_run=(1.0, 1.0)
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KubeletStatistics:
    ready: int = 0
    heartbeats: int = 0
    started: int = 0
    finished: int = 0
    stopped: int = 0
    failed: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class _Pod:
    """What a kubelet must know of a pod: a cluster may have very many."""

    key: Key
    uid: str
    node: str
    phase: str
    deleting: bool
    grace: int | None
    job: bool
    runs: float | None
    """Seconds that the pod of a Job says that it runs."""
    containers: tuple[str, ...]


def _kept(pod: Pod) -> _Pod:
    meta = pod.metadata
    return _Pod(
        key=(meta.namespace, meta.name),
        uid=meta.uid,
        node=pod.spec.node_name,
        phase=pod.status.phase,
        deleting=meta.deletion_timestamp is not None,
        grace=meta.deletion_grace_period_seconds,
        job=any(owner.kind == "Job" for owner in meta.owner_references),
        runs=_runs_for(meta.annotations.get(RUN_ANNOTATION, "")),
        containers=tuple(container.name for container in pod.spec.containers),
    )


def _runs_for(text: str) -> float | None:
    """None where nothing is said, or nothing that can be read: then it is one run like any other."""
    try:
        return max(0.0, Duration.parse(text).seconds) if text else None
    except UnitError:
        return None


class Kubelets:
    """`run` plays the kubelets until cancelled: of all Nodes, or of those with certain labels.

    `silence` stops one of them, as a dead machine does, and `revive` brings it back.
    """

    def __init__(
        self,
        api: Api,
        *,
        clock: Clock,
        random: Random,
        settings: KubeletSettings = DEFAULT_KUBELETS,
        labels: str = "",
    ) -> None:
        """`labels` is a selector of Nodes in the server's syntax; empty for all."""
        self._api = api
        self._clock = clock
        self._random = random
        self._settings = settings
        self._informers = Informers(api, clock=clock, random=random)
        self._nodes = self._informers.watch(NODE, selection=Selection(labels=labels))
        self._pods: Informer[Pod, _Pod] = self._informers.watch_as(
            POD, _kept, selection=Selection(fields="spec.nodeName!="), indexes={"node": lambda pod: [pod.node]}
        )
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

    def is_silent(self, node: str) -> bool:
        return node in self._silent

    def revive(self, node: str) -> None:
        """The machine answers again."""
        self._silent.pop(node, None)
        known = self._nodes.store.get(node)
        if known is not None:
            self._look_at(known)
            self._look_at_pods(node)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run(), name="kubelets' informers")
            for _ in range(self._settings.workers):
                group.create_task(self._work(), name="kubelets")

    async def _work(self) -> None:
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
                    case "finish":
                        await self._finish(key)
                    case _:
                        await self._stop(key)
                self._queue.forget(item)
            except (NotFound, Conflict):
                self._queue.forget(item)
            except (GateClosed, ConfigError):
                raise
            except KubeError:
                self._counts["failed"] += 1
                self._queue.retry(item)
            finally:
                self._queue.done(item)

    # What is to be done.

    def _on_node(self, change: Change[Node]) -> None:
        if isinstance(change, Deleted):
            self._silent.pop(change.key[1], None)
            self._forget(change.old.metadata.uid)
        else:
            self._look_at(change.new)
            if isinstance(change, Added):
                self._look_at_pods(change.key[1])  # they may have been seen before their node was

    def _look_at(self, node: Node) -> None:
        name, uid = node.metadata.name, node.metadata.uid
        if not self._alive(name):
            return
        if not _is_ready(node):
            self._plan("ready", ("", name), uid, self._settings.node_ready)
            return
        self._planned.pop(("ready", uid), None)
        if self._settings.heartbeat and ("beat", uid) not in self._planned:
            self._planned["beat", uid] = None
            self._queue.add(("beat", ("", name)))

    def _look_at_pods(self, node: str) -> None:
        for pod in self._pods.store.find("node", node):
            self._look_at_pod(pod)

    def _on_pod(self, change: Change[_Pod]) -> None:
        if isinstance(change, Deleted):
            self._forget(change.old.uid)
        else:
            self._look_at_pod(change.new)

    def _look_at_pod(self, pod: _Pod) -> None:
        if not self._alive(pod.node):
            return
        if pod.deleting and pod.grace == 0:
            return  # the server removes it by itself
        if pod.deleting:
            low, high = self._settings.pod_stop
            most = high if pod.grace is None else float(pod.grace)
            self._plan("stop", pod.key, pod.uid, (min(low, most), min(high, most)))
        elif pod.phase == "Pending":
            self._plan("start", pod.key, pod.uid, self._settings.pod_start)
        elif pod.phase == "Running" and pod.job:
            self._plan("finish", pod.key, pod.uid, self._settings.job_run if pod.runs is None else (pod.runs, pod.runs))

    def _alive(self, name: str) -> bool:
        """Whether the node is one of ours and somebody plays its kubelet."""
        node = self._nodes.store.get(name)
        broken = node is None or node.metadata.annotations.get(NEVER_READY_ANNOTATION) == "true"
        return not broken and name not in self._silent

    def _plan(self, what: str, key: Key, uid: str, range_: tuple[float, float]) -> None:
        if (what, uid) not in self._planned:
            self._planned[what, uid] = None
            self._queue.add_after((what, key), self._random.uniform(*range_))

    def _forget(self, uid: str) -> None:
        for what in ("ready", "beat", "start", "finish", "stop"):
            self._planned.pop((what, uid), None)

    # Nodes.

    async def _make_ready(self, name: str) -> None:
        """It stays planned until the watch shows it ready, so that news from before then do not make it ready twice."""
        node = self._nodes.store.get(name)
        if node is None:
            return
        if not self._alive(name):
            self._planned.pop(("ready", node.metadata.uid), None)
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
        if self._settings.heartbeat:
            await self._renew(node)  # first: a Ready node without a fresh Lease is taken for dead
        await self._api.patch(
            NODE,
            name,
            {"status": {"conditions": [condition]}},
            subresource="status",
            patch_type=PatchType.STRATEGIC,
            uid=node.metadata.uid,
        )
        self._counts["ready"] += 1
        if any(taint.key == NOT_READY for taint in node.spec.taints):
            await self._untaint(name)

    async def _untaint(self, name: str) -> None:
        raw = await self._api.get(NODE.raw, name)
        taints = [taint for taint in raw["spec"].get("taints", ()) if taint["key"] != NOT_READY]
        revision = raw["metadata"]["resourceVersion"]
        with contextlib.suppress(Conflict):  # the node controller was quicker, or does it next
            await self._api.patch(NODE, name, {"spec": {"taints": taints or None}}, revision=revision)

    async def _beat(self, name: str) -> None:
        node = self._nodes.store.get(name)
        if node is None:
            return
        if not self._alive(name):
            self._planned.pop(("beat", node.metadata.uid), None)
            return
        self._queue.add_after(("beat", ("", name)), self._settings.heartbeat)
        await self._renew(node)
        self._counts["heartbeats"] += 1

    async def _renew(self, node: Node) -> None:
        name = node.metadata.name
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

    # Pods.

    async def _start(self, key: Key) -> None:
        pod = self._taken_up("start", key)
        if pod is None or pod.deleting or pod.phase != "Pending":
            return
        now = print_time(self._clock.now())
        address = zlib.crc32(pod.uid.encode())
        await self._tell(
            pod,
            {
                "phase": "Running",
                "startTime": now,
                "podIP": f"10.{address >> 16 & 255}.{address >> 8 & 255}.{address & 255}",
                "conditions": [
                    {"type": kind, "status": "True", "lastTransitionTime": now}
                    for kind in ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
                ],
                "containerStatuses": _containers(pod.containers, ready=True, state={"running": {"startedAt": now}}),
            },
        )
        self._counts["started"] += 1

    async def _finish(self, key: Key) -> None:
        pod = self._taken_up("finish", key)
        if pod is None or pod.deleting or pod.phase != "Running":
            return
        now = print_time(self._clock.now())
        ended = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now}}
        await self._tell(
            pod,
            {
                "phase": "Succeeded",
                "conditions": [
                    {"type": kind, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now}
                    for kind in ("ContainersReady", "Ready")
                ],
                "containerStatuses": _containers(pod.containers, ready=False, state=ended),
            },
        )
        self._counts["finished"] += 1

    async def _stop(self, key: Key) -> None:
        pod = self._taken_up("stop", key)
        if pod is None or not pod.deleting:
            return
        await self._api.delete(POD, key[1], namespace=key[0], uid=pod.uid, grace_seconds=0)
        self._counts["stopped"] += 1

    def _taken_up(self, what: str, key: Key) -> _Pod | None:
        """The pod whose time has come; None where it is gone or its machine is dead: it is planned anew when that changes."""
        pod = self._pods.store.get(key[1], key[0])
        if pod is None:
            return None
        if not self._alive(pod.node):
            self._planned.pop((what, pod.uid), None)
            return None
        return pod

    async def _tell(self, pod: _Pod, status: Json) -> None:
        await self._api.patch(
            POD,
            pod.key[1],
            {"status": status},
            namespace=pod.key[0],
            subresource="status",
            patch_type=PatchType.STRATEGIC,
            uid=pod.uid,
        )


def _containers(listed: Sequence[str], *, ready: bool, state: Json) -> list[Json]:
    return [
        {
            "name": name,
            "ready": ready,
            "started": ready,
            "restartCount": 0,
            "image": "simulated",
            "imageID": "simulated",
            "state": state,
        }
        for name in listed
    ]


def _is_ready(node: Node) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
