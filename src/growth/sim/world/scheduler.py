"""A scheduler: binds pending pods one by one where the predicates let them, or says why it cannot.

As kube-scheduler: higher priority first, then first come, first served; among the nodes that fit, the one that is least
allocated; a pod that fits nowhere gets the condition PodScheduled=False with reason Unschedulable. Not here: preferences,
preemption, volumes.
"""

import asyncio
import collections
import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Final

import msgspec

from growth.api.core import NAMESPACE
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.pods import POD, Pod
from growth.kube.api import Api, PatchType
from growth.kube.errors import KubeError
from growth.kube.informer import Informers
from growth.kube.store import Change, Changed, Deleted, Key
from growth.ports import Clock, Random
from growth.sim.predicates import Cluster, Refusal, amounts, refusals, requests
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
        self._wake = asyncio.Event()
        # Bound by us and not yet seen as bound: they take room all the same.
        self._assumed: dict[Key, tuple[str, str]] = {}
        self._counts: collections.Counter[str] = collections.Counter()
        self._pods.subscribe(self._on_pod)
        self._nodes.subscribe(lambda _change: self._wake.set())

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
        for pod in pending:
            try:
                await self._schedule(pod)
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

    async def _schedule(self, pod: Pod) -> None:
        cluster = self._cluster()
        verdicts = [(node, refusals(pod, node, cluster)) for node in cluster.nodes]
        fitting = [node for node, found in verdicts if not found]
        if not fitting:
            self._counts["refused"] += 1
            await self._refuse(pod, explain([found for _, found in verdicts]))
            return
        node = min(fitting, key=lambda one: (_load(one, pod, cluster), one.metadata.name))
        name, namespace, uid = pod.metadata.name, pod.metadata.namespace, pod.metadata.uid
        await self._api.bind(name, namespace=namespace, node=node.metadata.name, uid=uid)
        self._assumed[namespace, name] = (uid, node.metadata.name)
        self._counts["bound"] += 1

    def _cluster(self) -> Cluster:
        pods: list[Pod] = []
        for key, pod in self._pods.store.items():
            assumed = self._assumed.get(key)
            if assumed is not None:
                pods.append(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=assumed[1])))
            elif pod.spec.node_name and _alive(pod):
                pods.append(pod)
        return Cluster(
            nodes=tuple(self._nodes.store),
            pods=tuple(pods),
            namespaces={one.metadata.name: one.metadata.labels for one in self._namespaces.store},
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


def _load(node: Node, pod: Pod, cluster: Cluster) -> float:
    """The mean share of cpu and memory that would be taken."""
    room = amounts(node.status.allocatable)
    taken = add(requests(pod), *(requests(other) for other in cluster.on(node)))
    shares = [taken.get(name, 0) / room[name] for name in ("cpu", "memory") if room.get(name)]
    return round(sum(shares) / len(shares), 6) if shares else 0.0


def explain(verdicts: Sequence[Sequence[Refusal]]) -> str:
    """Why a pod fits on none of the nodes, as people know it from `kubectl describe pod`.

    A node that several rules refuse is counted for the first: kube-scheduler asks it no further.
    """
    against: collections.Counter[str] = collections.Counter()
    for found in verdicts:
        against.update(one.detail for one in found if one.filter is found[0].filter)
    parts = sorted(f"{count} {detail}" for detail, count in against.items())
    return f"0/{len(verdicts)} nodes are available{': ' + ', '.join(parts) if parts else ''}."
