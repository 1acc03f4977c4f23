"""A scheduler: binds pending pods one by one where the predicates let them, or says why it cannot.

As kube-scheduler: higher priority first, then first come, first served; among the nodes that fit, the best by `scores`;
a pod that fits nowhere takes the place of less important ones (`preemption`) and gets the condition PodScheduled=False
with reason Unschedulable. Volumes that wait for their first consumer are made where the pod goes (`volumes`).
"""

import asyncio
import collections
import contextlib
import dataclasses
from typing import Final

import msgspec

from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pods import POD, Pod
from growth.api.volumes import CSINode
from growth.kube.api import Api, PatchType
from growth.kube.errors import KubeError, NotFound
from growth.kube.store import Change, Deleted, Key
from growth.ports import Clock
from growth.sim.predicates import Host
from growth.sim.world import preemption, scores
from growth.sim.world.board import Board, Shape
from growth.sim.world.budgets import selects
from growth.sim.world.view import View
from growth.sim.world.volumes import provision
from growth.sim.world.words import explain
from growth.units import print_time

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
    preempted: int = 0
    failed: int = 0


class Scheduler:
    """`run` schedules until cancelled."""

    def __init__(self, api: Api, view: View, *, clock: Clock) -> None:
        self._api = api
        self._view = view
        self._clock = clock
        self._board = Board()
        self._pending: dict[Key, Pod] = {}
        self._wake = asyncio.Event()
        # Bound by us and not yet seen as bound: they take room all the same.
        self._assumed: dict[Key, str] = {}
        self._counts: collections.Counter[str] = collections.Counter()
        self._pods = view.pods
        self._nodes = view.nodes
        self._csi_nodes = view.csi_nodes
        self._budgets = view.budgets
        self._namespaces = view.namespaces
        self._claims = view.claims
        self._volumes = view.volumes
        self._classes = view.classes
        self._stale = True
        self._pods.subscribe(self._on_pod)
        self._nodes.subscribe(self._on_node)
        self._csi_nodes.subscribe(self._on_csi_node)
        self._namespaces.subscribe(self._on_surroundings)
        self._claims.subscribe(self._on_surroundings)
        self._volumes.subscribe(self._on_surroundings)
        self._classes.subscribe(self._on_surroundings)

    def statistics(self) -> SchedulerStatistics:
        return SchedulerStatistics(**self._counts)

    async def run(self) -> None:
        await self._view.synced()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await self._wake.wait()
            await asyncio.sleep(BATCH_SECONDS)
            self._wake.clear()
            await self._pass()

    # News.

    def _on_pod(self, change: Change[Pod]) -> None:
        old = None if not hasattr(change, "old") else change.old
        new = None if isinstance(change, Deleted) else change.new
        key, version = change.key, self._board.version
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._assumed.pop(key, None)
            self._pending.pop(key, None)
            self._board.drop(old.metadata.uid)
            self._board.forget(old.metadata.uid)
        if new is not None:
            self._place(key, new)
        if self._board.version != version:
            self._wake.set()

    def _place(self, key: Key, pod: Pod) -> None:
        uid = pod.metadata.uid
        if not _alive(pod):
            self._pending.pop(key, None)
            self._assumed.pop(key, None)
            self._board.drop(uid)
        elif pod.spec.node_name:
            self._pending.pop(key, None)
            self._assumed.pop(key, None)
            self._board.put(pod, pod.spec.node_name)
        elif key in self._assumed:
            return
        elif _is_ours(pod):
            if key not in self._pending:
                self._wake.set()
            self._pending[key] = pod
        else:
            self._pending.pop(key, None)

    def _on_node(self, change: Change[Node]) -> None:
        version = self._board.version
        if isinstance(change, Deleted):
            self._board.remove_node(change.key[1])
        else:
            self._board.set_node(Host.of(change.new, self._csi_nodes.store.get(change.key[1])))
        if self._board.version != version:
            self._wake.set()

    def _on_csi_node(self, change: Change[CSINode]) -> None:
        node = self._nodes.store.get(change.key[1])
        if node is not None:
            csi = None if isinstance(change, Deleted) else change.new
            self._board.set_node(Host.of(node, csi))
            self._wake.set()

    def _on_surroundings(self, change: object) -> None:
        del change
        self._stale = True
        self._board.changed()
        self._wake.set()

    # Scheduling.

    async def _pass(self) -> None:
        self._counts["passes"] += 1
        if self._stale:
            self._look_around()
        # Room is kept for who is nominated from all of no higher priority: of one priority they go first.
        pending = sorted(
            self._pending.values(), key=lambda pod: (-preemption.priority(pod), not pod.status.nominated_node_name)
        )
        for pod in pending:
            if (pod.metadata.namespace, pod.metadata.name) in self._pending:
                try:
                    await self._schedule(pod)
                except KubeError:
                    self._counts["failed"] += 1
                    self._wake.set()

    def _look_around(self) -> None:
        self._stale = False
        scene = self._board.scene
        scene.namespaces = {one.metadata.name: one.metadata.labels for one in self._namespaces.store}
        scene.claims = dict(self._claims.store.items())
        scene.volumes = {one.metadata.name: one for one in self._volumes.store}
        scene.classes = {one.metadata.name: one for one in self._classes.store}

    async def _schedule(self, pod: Pod) -> None:
        board = self._board
        shape = board.shape(pod)
        # Binding a pod makes room for nobody, but where pods are counted it may let another in.
        versions = (board.grown, board.version if shape.among else 0)
        if shape.refused is not None and shape.refused[0] == versions:
            # It is not tried, as nothing has changed that could help it: a name that it was given meanwhile stays.
            await self._refuse(pod, shape.refused[1])
            return
        verdicts = list(board.verdicts(pod, shape))
        fitting = [place for place, found in verdicts if not found]
        if fitting:
            nominated = [place for place in fitting if place.name == pod.status.nominated_node_name]
            best = nominated[0] if nominated else scores.best(pod, shape.wanted, fitting, board.scene)
            await self._bind(pod, shape, best.name)
            return
        message = explain([found for _, found in verdicts])
        await self._refuse(pod, message)
        if not await self._preempt(pod):
            shape.refused = (versions, message)
            await self._no_longer_there(pod)

    async def _bind(self, pod: Pod, shape: Shape, node: str) -> None:
        name, namespace, uid = pod.metadata.name, pod.metadata.namespace, pod.metadata.uid
        if not shape.local and not await provision(
            self._api, pod, self._board.scene, zone_of=self._board.places[node].labels
        ):
            return  # its claims are made by others; they wake us
        await self._api.bind(name, namespace=namespace, node=node, uid=uid)
        if self._pending.pop((namespace, name), None) is not None:  # unless the news were quicker
            self._assumed[namespace, name] = uid
            self._board.put(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node)), node)
        self._counts["bound"] += 1

    async def _preempt(self, pod: Pod) -> bool:
        """Whether room is being made: others were asked to go, or are on their way already."""
        if preemption.priority(pod) <= min(map(preemption.priority, self._pods.store), default=0):
            return False
        if self._is_making_room(pod):
            return True
        found = preemption.choose(pod, self._board.scene, protected=self._is_protected)
        if found is None:
            return False
        await self._tell(pod, {"nominatedNodeName": found.node})
        for victim in found.victims:
            meta = victim.metadata
            with contextlib.suppress(NotFound):
                await self._api.delete(POD, meta.name, namespace=meta.namespace, uid=meta.uid)
                self._counts["preempted"] += 1
        return True

    def _is_making_room(self, pod: Pod) -> bool:
        nominated = self._board.places.get(pod.status.nominated_node_name)
        return nominated is not None and any(
            each.metadata.deletion_timestamp is not None and preemption.priority(each) < preemption.priority(pod)
            for each in nominated.pods
        )

    async def _no_longer_there(self, pod: Pod) -> None:
        """Whoever waits for a node that others took waits for it no more."""
        if pod.status.nominated_node_name and not self._is_making_room(pod):
            await self._tell(pod, {"nominatedNodeName": None})

    def _is_protected(self, pod: Pod) -> bool:
        return any(budget.status.disruptions_allowed <= 0 and selects(budget, pod) for budget in self._budgets.store)

    async def _refuse(self, pod: Pod, message: str) -> None:
        self._counts["refused"] += 1
        old = next((one for one in pod.status.conditions if one.type == "PodScheduled"), None)
        if old is not None and (old.status, old.reason, old.message) == ("False", "Unschedulable", message):
            return
        condition: Json = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        if old is None or old.status != "False" or old.last_transition_time is None:
            condition["lastTransitionTime"] = print_time(self._clock.now())
        await self._tell(pod, {"conditions": [condition]})

    async def _tell(self, pod: Pod, status: Json) -> None:
        await self._api.patch(
            POD,
            pod.metadata.name,
            {"status": status},
            namespace=pod.metadata.namespace,
            subresource="status",
            patch_type=PatchType.STRATEGIC,
            uid=pod.metadata.uid,
        )


def _is_ours(pod: Pod) -> bool:
    return (
        not pod.spec.scheduling_gates
        and (pod.spec.scheduler_name or SCHEDULER_NAME) == SCHEDULER_NAME
        and pod.metadata.deletion_timestamp is None
    )


def _alive(pod: Pod) -> bool:
    return pod.status.phase not in {"Succeeded", "Failed"}
