"""Controllers of ReplicaSets and Deployments: as many pods as asked for, made from the template.

As kube-controller-manager: what was created or deleted and has not been seen yet is expected and counts, so that a slow
watch never makes too many. Of too many pods the unbound go first, then those not ready, then the youngest. A Deployment
whose template changed gets a new ReplicaSet at full size, and the old ones shrink as its pods become ready.
"""

import contextlib
import hashlib
from typing import Final

import msgspec

from growth.api.kinds import Json
from growth.api.pods import POD, Pod
from growth.api.workloads import DEPLOYMENT, REPLICA_SET, Deployment, ReplicaSet
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, NotFound
from growth.kube.queue import WorkQueue
from growth.kube.store import Added, Change, Deleted, Key
from growth.ports import Clock, Random
from growth.sim.world.keeping import keep_all
from growth.sim.world.templates import is_ready, pod_of
from growth.sim.world.view import View

HASH_LABEL: Final = "pod-template-hash"
# After this long something expected is expected no more: its event must have been lost.
EXPECTATION_SECONDS: Final = 300.0


class Workloads:
    """`run` keeps ReplicaSets and Deployments until cancelled."""

    def __init__(self, api: Api, view: View, *, clock: Clock, random: Random) -> None:
        self._api = api
        self._view = view
        self._clock = clock
        self._deployments = view.deployments
        self._sets = view.replica_sets
        self._pods = view.pods
        self._queue: WorkQueue[tuple[str, Key]] = WorkQueue(random)
        # By the ReplicaSet's uid: uids of pods to be seen or to vanish, and until when.
        self._expected: dict[str, dict[str, float]] = {}
        self._deployments.subscribe(lambda change: self._queue.add(("Deployment", change.key)))
        self._sets.subscribe(self._on_set)
        self._pods.subscribe(self._on_pod)

    async def run(self) -> None:
        await keep_all(self._view, self._queue, self._keep)

    async def _keep(self, item: tuple[str, Key]) -> None:
        kind, key = item
        await (self._keep_deployment(key) if kind == "Deployment" else self._keep_set(key))

    def _on_set(self, change: Change[ReplicaSet]) -> None:
        self._queue.add(("ReplicaSet", change.key))
        item = change.old if isinstance(change, Deleted) else change.new
        for owner in item.metadata.owner_references:
            if owner.kind == "Deployment":
                self._queue.add(("Deployment", (change.key[0], owner.name)))

    def _on_pod(self, change: Change[Pod]) -> None:
        pod = change.old if isinstance(change, Deleted) else change.new
        for owner in pod.metadata.owner_references:
            if owner.kind == "ReplicaSet":
                if isinstance(change, Added | Deleted) or pod.metadata.deletion_timestamp is not None:
                    self._expected.get(owner.uid, {}).pop(pod.metadata.uid, None)
                self._queue.add(("ReplicaSet", (change.key[0], owner.name)))

    # ReplicaSets.

    async def _keep_set(self, key: Key) -> None:
        replica_set = self._sets.store.get(key[1], key[0])
        if replica_set is None or replica_set.metadata.deletion_timestamp is not None:
            return
        uid = replica_set.metadata.uid
        now = self._clock.monotonic()
        waiting = {pod: until for pod, until in self._expected.get(uid, {}).items() if until > now}
        self._expected[uid] = waiting
        if waiting:
            self._queue.add_after(("ReplicaSet", key), min(waiting.values()) - now)
            return
        store = self._pods.store
        active, ready = store.count("active", uid), store.count("ready", uid)
        missing = replica_set.spec.replicas - active
        surplus = sorted(store.find("active", uid), key=_deletion_order)[:-missing] if missing < 0 else []
        raw = await self._api.get(REPLICA_SET.raw, key[1], namespace=key[0]) if missing > 0 else {}
        body = pod_of(raw, REPLICA_SET) if missing > 0 else {}
        for _ in range(missing):
            made = await self._api.create(POD, body, namespace=key[0])
            # The informer may be quicker than the answer.
            if store.get(made.metadata.name, key[0]) is None:
                waiting[made.metadata.uid] = now + EXPECTATION_SECONDS
        for pod in surplus:
            with contextlib.suppress(NotFound):
                await self._api.delete(POD, pod.metadata.name, namespace=key[0], uid=pod.metadata.uid)
                kept = store.get(pod.metadata.name, key[0])
                if kept is not None and kept.metadata.deletion_timestamp is None:
                    waiting[pod.metadata.uid] = now + EXPECTATION_SECONDS
        await self._tell_set(replica_set, active, ready)

    async def _tell_set(self, replica_set: ReplicaSet, active: int, ready: int) -> None:
        status = {
            "replicas": active,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "fullyLabeledReplicas": active,
            "observedGeneration": replica_set.metadata.generation,
        }
        old = replica_set.status
        if (old.replicas, old.ready_replicas, old.available_replicas, old.observed_generation) == (
            active,
            ready,
            ready,
            replica_set.metadata.generation,
        ):
            return
        meta = replica_set.metadata
        await self._api.patch(
            REPLICA_SET, meta.name, {"status": status}, namespace=meta.namespace, subresource="status", uid=meta.uid
        )

    # Deployments.

    async def _keep_deployment(self, key: Key) -> None:
        deployment = self._deployments.store.get(key[1], key[0])
        if deployment is None or deployment.metadata.deletion_timestamp is not None or deployment.spec.paused:
            return
        raw = await self._api.get(DEPLOYMENT.raw, key[1], namespace=key[0])
        template: Json = raw["spec"]["template"]
        digest = _template_hash(template)
        owned = self._sets.store.find("owner", deployment.metadata.uid)
        current = next((one for one in owned if one.metadata.labels.get(HASH_LABEL) == digest), None)
        if current is None:
            with contextlib.suppress(AlreadyExists):
                await self._api.create(REPLICA_SET, _set_body(raw, template, digest), namespace=key[0])
            return
        await self._scale(current, deployment.spec.replicas)
        still_needed = max(0, deployment.spec.replicas - current.status.ready_replicas)
        for old in owned:
            if old is not current:
                size = min(old.spec.replicas, still_needed)
                await self._scale(old, size)
                still_needed -= size
        await self._tell_deployment(deployment, current, owned)

    async def _scale(self, replica_set: ReplicaSet, replicas: int) -> None:
        if replica_set.spec.replicas != replicas:
            meta = replica_set.metadata
            await self._api.patch(
                REPLICA_SET, meta.name, {"spec": {"replicas": replicas}}, namespace=meta.namespace, uid=meta.uid
            )

    async def _tell_deployment(
        self, deployment: Deployment, current: ReplicaSet, owned: tuple[ReplicaSet, ...]
    ) -> None:
        ready = sum(one.status.ready_replicas for one in owned)
        new = (
            deployment.metadata.generation,
            sum(one.status.replicas for one in owned),
            ready,
            ready,
            current.status.replicas,
        )
        old = deployment.status
        if new == (
            old.observed_generation,
            old.replicas,
            old.ready_replicas,
            old.available_replicas,
            old.updated_replicas,
        ):
            return
        names = ("observedGeneration", "replicas", "readyReplicas", "availableReplicas", "updatedReplicas")
        meta = deployment.metadata
        patch = {"status": dict(zip(names, new, strict=True))}
        await self._api.patch(DEPLOYMENT, meta.name, patch, namespace=meta.namespace, subresource="status")


def _deletion_order(pod: Pod) -> tuple[bool, bool, float, str]:
    created = pod.metadata.creation_timestamp
    return (bool(pod.spec.node_name), is_ready(pod), -(created.timestamp() if created else 0.0), pod.metadata.name)


def _template_hash(template: Json) -> str:
    encoded = msgspec.json.encode(template, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:10]


def _set_body(deployment: Json, template: Json, digest: str) -> Json:
    meta = deployment["metadata"]
    labels = {**(template.get("metadata", {}).get("labels") or {}), HASH_LABEL: digest}
    selector = deployment["spec"]["selector"]
    return {
        "apiVersion": REPLICA_SET.api_version,
        "kind": REPLICA_SET.kind,
        "metadata": {
            "name": f"{meta['name']}-{digest}",
            "labels": labels,
            "ownerReferences": [
                {
                    "apiVersion": DEPLOYMENT.api_version,
                    "kind": DEPLOYMENT.kind,
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "replicas": deployment["spec"].get("replicas", 1),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }
