"""The controller of DaemonSets: one pod for each node that may have it.

As kube-controller-manager: the pod is tied to its node by the node's name and left to the scheduler, tolerates the taints
of nodes in trouble, and is not replaced while it is going. Taints and labels decide which nodes; room does not.
"""

import contextlib
from typing import Final

from growth.api import names
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.placement import NO_EXECUTE, NO_SCHEDULE, Toleration
from growth.api.pods import POD, Pod
from growth.api.workloads import DAEMON_SET, DaemonSet
from growth.kube.api import Api
from growth.kube.errors import NotFound
from growth.kube.queue import WorkQueue
from growth.kube.store import Change, Deleted, Key
from growth.ports import Clock, Random
from growth.sim.predicates import Host
from growth.sim.predicates.on_one_node import kept_out_by, selected
from growth.sim.world.keeping import keep_all
from growth.sim.world.templates import pod_of
from growth.sim.world.view import View

# News of nodes come in crowds.
BATCH_SECONDS: Final = 0.2
EXPECTATION_SECONDS: Final = 300.0
TOLERATED: Final = (
    (names.NOT_READY_TAINT, NO_EXECUTE),
    (names.UNREACHABLE_TAINT, NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)


class Daemons:
    """`run` keeps DaemonSets until cancelled."""

    def __init__(self, api: Api, view: View, *, clock: Clock, random: Random) -> None:
        self._api = api
        self._view = view
        self._clock = clock
        self._sets = view.daemon_sets
        self._nodes = view.nodes
        self._pods = view.pods
        self._queue: WorkQueue[Key] = WorkQueue(random)
        # By the DaemonSet's uid and the node: a pod that was made and has not been seen, and until when.
        self._expected: dict[tuple[str, str], tuple[str, float]] = {}
        self._sets.subscribe(lambda change: self._queue.add(change.key))
        self._nodes.subscribe(self._on_node)
        self._pods.subscribe(self._on_pod)

    async def run(self) -> None:
        await keep_all(self._view, self._queue, self._keep)

    def _on_node(self, change: Change[Node]) -> None:
        del change
        for each in self._sets.store:
            self._queue.add_after((each.metadata.namespace, each.metadata.name), BATCH_SECONDS)

    def _on_pod(self, change: Change[Pod]) -> None:
        pod = change.old if isinstance(change, Deleted) else change.new
        for owner in pod.metadata.owner_references:
            if owner.kind == "DaemonSet":
                self._queue.add_after((change.key[0], owner.name), BATCH_SECONDS)

    async def _keep(self, key: Key) -> None:
        found = self._sets.store.get(key[1], key[0])
        if found is None or found.metadata.deletion_timestamp is not None:
            return
        pods = self._pods.store.find("owner", found.metadata.uid)
        by_node: dict[str, list[Pod]] = {}
        for pod in pods:
            by_node.setdefault(pod.spec.node_name or _meant_for(pod), []).append(pod)
        wanted = [node for node in self._nodes.store if _may_run(found, node)]
        lacking = [node for node in wanted if not by_node.get(node.metadata.name) and not self._expects(found, node)]
        if lacking:
            raw = await self._api.get(DAEMON_SET.raw, key[1], namespace=key[0])
            for node in lacking:
                made = await self._api.create(POD, _pod_for(raw, node.metadata.name), namespace=key[0])
                until = self._clock.monotonic() + EXPECTATION_SECONDS
                self._expected[found.metadata.uid, node.metadata.name] = (made.metadata.uid, until)
        homes = {node.metadata.name for node in wanted}
        for name in sorted(by_node):
            # Pods of nodes that are gone belong to the garbage collector of pods.
            if name not in homes and self._nodes.store.get(name) is not None:
                await self._remove(by_node[name])
        await self._tell(found, pods, len(wanted))

    def _expects(self, owner: DaemonSet, node: Node) -> bool:
        """Whether a pod was made for the node and the watch has not told us yet."""
        known = self._expected.get((owner.metadata.uid, node.metadata.name))
        if known is None:
            return False
        uid, until = known
        seen = any(pod.metadata.uid == uid for pod in self._pods.store.find("owner", owner.metadata.uid))
        if seen or until <= self._clock.monotonic():
            del self._expected[owner.metadata.uid, node.metadata.name]
            return False
        return True

    async def _remove(self, pods: list[Pod]) -> None:
        for pod in pods:
            if pod.metadata.deletion_timestamp is None:
                with contextlib.suppress(NotFound):
                    meta = pod.metadata
                    await self._api.delete(POD, meta.name, namespace=meta.namespace, uid=meta.uid)

    async def _tell(self, found: DaemonSet, pods: tuple[Pod, ...], wanted: int) -> None:
        ready = sum(any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions) for pod in pods)
        meta, old = found.metadata, found.status
        new = (meta.generation, wanted, len(pods), ready)
        if new == (
            old.observed_generation,
            old.desired_number_scheduled,
            old.current_number_scheduled,
            old.number_ready,
        ):
            return
        fields = ("observedGeneration", "desiredNumberScheduled", "currentNumberScheduled", "numberReady")
        status: Json = {**dict(zip(fields, new, strict=True)), "numberMisscheduled": 0}
        await self._api.patch(
            DAEMON_SET, meta.name, {"status": status}, namespace=meta.namespace, subresource="status", uid=meta.uid
        )


def _may_run(found: DaemonSet, node: Node) -> bool:
    if node.metadata.deletion_timestamp is not None:
        return False
    spec = found.spec.template.spec
    own = (*spec.tolerations, *(Toleration(key=key, operator="Exists", effect=effect) for key, effect in TOLERATED))
    taints = [each for each in node.spec.taints if not any(_covers(one, each.key, each.effect) for one in own)]
    return selected(spec, Host.of(node)) and not kept_out_by(spec, taints)


def _covers(toleration: Toleration, key: str, effect: str) -> bool:
    return (toleration.key, toleration.effect, toleration.operator) == (key, effect, "Exists")


def _meant_for(pod: Pod) -> str:
    """The node that the pod is tied to by its required node affinity."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in required.node_selector_terms if required else ():
        for each in term.match_fields:
            if each.key == "metadata.name" and each.values:
                return each.values[0]
    return ""


def _pod_for(raw: Json, node: str) -> Json:
    body = pod_of(raw, DAEMON_SET)
    spec = dict(body["spec"])
    given = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in TOLERATED]
    spec["tolerations"] = [*spec.get("tolerations", ()), *given]
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = dict(spec.get("affinity") or {})
    affinity["nodeAffinity"] = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [here]}]}
    }
    spec["affinity"] = affinity
    return {**body, "spec": spec}
