"""A scheduler: binds pending pods one by one where the predicates let them, or says why it cannot.

As kube-scheduler: higher priority first, then first come, first served; among the nodes that fit, the one that is least
allocated; a pod that fits nowhere gets the condition PodScheduled=False with reason Unschedulable. Not here: preferences,
preemption, binding of volumes.
"""

import asyncio
import collections
import contextlib
import dataclasses
from typing import Final

import msgspec

from growth.api.core import NAMESPACE
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.pods import POD, Pod
from growth.api.volumes import CSI_NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from growth.kube.api import Api, PatchType
from growth.kube.errors import KubeError
from growth.kube.informer import Informers
from growth.kube.store import Change, Changed, Deleted, Key
from growth.ports import Clock, Random
from growth.sim.predicates import Host, Scene, refusals, requests
from growth.sim.world.words import explain
from growth.units import print_time
from growth.units.resources import add

SCHEDULER_NAME: Final = "default-scheduler"
# A pass starts this long after something changed, so that a burst of pods is one pass.
BATCH_SECONDS: Final = 0.05
# Without any news the unschedulable are tried again, as kube-scheduler flushes its queue.
FLUSH_SECONDS: Final = 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerStatistics:
    passes: int = 0
    bound: int = 0
    refused: int = 0
    failed: int = 0


class Scheduler:
    """`run` schedules until cancelled."""

    def __init__(self, api: Api, *, clock: Clock, random: Random) -> None:
        self._api = api
        self._clock = clock
        self._informers = Informers(api, clock=clock, random=random)
        self._pods = self._informers.watch(POD)
        self._nodes = self._informers.watch(NODE)
        self._namespaces = self._informers.watch(NAMESPACE)
        self._claims = self._informers.watch(PERSISTENT_VOLUME_CLAIM)
        self._volumes = self._informers.watch(PERSISTENT_VOLUME)
        self._classes = self._informers.watch(STORAGE_CLASS)
        self._csi_nodes = self._informers.watch(CSI_NODE)
        self._wake = asyncio.Event()
        # Bound by us and not yet seen as bound: they take room all the same.
        self._assumed: dict[Key, tuple[str, str]] = {}
        self._counts: collections.Counter[str] = collections.Counter()
        self._pods.subscribe(self._on_pod)
        for informer in (self._nodes, self._claims, self._volumes, self._classes, self._csi_nodes):
            informer.subscribe(lambda _change: self._wake.set())

    def statistics(self) -> SchedulerStatistics:
        return SchedulerStatistics(**self._counts)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run())
            await self._informers.wait_synced()
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(FLUSH_SECONDS):
                        await self._wake.wait()
                await asyncio.sleep(BATCH_SECONDS)
                self._wake.clear()
                await self._pass()

    def _on_pod(self, change: Change[Pod]) -> None:
        uid, _ = self._assumed.get(change.key, ("", ""))
        new = None if isinstance(change, Deleted) else change.new
        if uid and (new is None or new.metadata.uid != uid or new.spec.node_name):
            del self._assumed[change.key]
        if isinstance(change, Changed) and change.old.spec == change.new.spec and _alive(change.new):
            return  # a new status makes no room
        self._wake.set()

    async def _pass(self) -> None:
        self._counts["passes"] += 1
        pending = [pod for pod in self._pods.store if self._is_pending(pod)]
        pending.sort(key=lambda pod: -(pod.spec.priority or 0))
        scene = self._scene()
        for pod in pending:
            try:
                await self._schedule(pod, scene)
            except KubeError:
                self._counts["failed"] += 1
                self._wake.set()

    def _is_pending(self, pod: Pod) -> bool:
        return (
            not pod.spec.node_name
            and not pod.spec.scheduling_gates
            and (pod.spec.scheduler_name or SCHEDULER_NAME) == SCHEDULER_NAME
            and pod.metadata.deletion_timestamp is None
            and _alive(pod)
            and (pod.metadata.namespace, pod.metadata.name) not in self._assumed
        )

    async def _schedule(self, pod: Pod, scene: Scene) -> None:
        verdicts = [(host, refusals(pod, host, scene)) for host in scene.hosts]
        fitting = [host for host, found in verdicts if not found]
        if not fitting:
            self._counts["refused"] += 1
            await self._refuse(pod, explain([found for _, found in verdicts]))
            return
        host = min(fitting, key=lambda one: (_load(one, pod), one.name))
        name, namespace, uid = pod.metadata.name, pod.metadata.namespace, pod.metadata.uid
        await self._api.bind(name, namespace=namespace, node=host.name, uid=uid)
        self._assumed[namespace, name] = (uid, host.name)
        host.pods.append(_bound(pod, host.name))
        self._counts["bound"] += 1

    def _scene(self) -> Scene:
        """The cluster as it is now, with what this scheduler has bound and not yet seen."""
        csi = {one.metadata.name: one for one in self._csi_nodes.store}
        hosts = {node.metadata.name: Host.of(node, csi.get(node.metadata.name)) for node in self._nodes.store}
        for key, pod in self._pods.store.items():
            assumed = self._assumed.get(key)
            if assumed is not None and assumed[1] in hosts:
                hosts[assumed[1]].pods.append(_bound(pod, assumed[1]))
            elif pod.spec.node_name in hosts and _alive(pod):
                hosts[pod.spec.node_name].pods.append(pod)
        return Scene(
            hosts=list(hosts.values()),
            namespaces={one.metadata.name: one.metadata.labels for one in self._namespaces.store},
            claims=dict(self._claims.store.items()),
            volumes={one.metadata.name: one for one in self._volumes.store},
            classes={one.metadata.name: one for one in self._classes.store},
        )

    async def _refuse(self, pod: Pod, message: str) -> None:
        old = next((one for one in pod.status.conditions if one.type == "PodScheduled"), None)
        if old is not None and (old.status, old.reason, old.message) == ("False", "Unschedulable", message):
            return
        condition: Json = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        if old is None or old.status != "False" or old.last_transition_time is None:
            condition["lastTransitionTime"] = print_time(self._clock.now())
        await self._api.patch(
            POD,
            pod.metadata.name,
            {"status": {"conditions": [condition]}},
            namespace=pod.metadata.namespace,
            subresource="status",
            patch_type=PatchType.STRATEGIC,
            uid=pod.metadata.uid,
        )


def _alive(pod: Pod) -> bool:
    return pod.status.phase not in {"Succeeded", "Failed"}


def _bound(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def _load(host: Host, pod: Pod) -> float:
    """The mean share of cpu and memory that would be taken."""
    taken = add(requests(pod.spec), *(requests(other.spec) for other in host.pods))
    shares = [taken.get(name, 0) / host.allocatable[name] for name in ("cpu", "memory") if host.allocatable.get(name)]
    return round(sum(shares) / len(shares), 6) if shares else 0.0
