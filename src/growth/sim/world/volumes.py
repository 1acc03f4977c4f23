"""Volumes: what the scheduler, the provisioner and the attacher of a CSI driver do with claims, in simple form.

A pod's ephemeral volume gets its claim, a claim that waits for its first consumer gets its volume in the zone of the
pod's node, a claim that does not wait gets one in some zone. A volume is attached to each node that has a pod with it,
detached a while after the last such pod is gone, and goes with its claim. Nodes say that they can attach `MOST` of them.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

from growth.api import names
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pods import POD, Pod
from growth.api.volumes import (
    CSI_NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    VOLUME_ATTACHMENT,
    PersistentVolumeClaim,
)
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, NotFound
from growth.kube.queue import WorkQueue
from growth.kube.store import Change, Deleted
from growth.ports import Random
from growth.sim.predicates import Scene
from growth.sim.predicates.of_volumes import used
from growth.sim.world.keeping import keep_all
from growth.sim.world.view import View

ATTACH_SECONDS: Final = 2.0
DETACH_SECONDS: Final = 6.0
MOST: Final = 24
WAITS: Final = "WaitForFirstConsumer"


async def provision(api: Api, pod: Pod, scene: Scene, *, zone_of: Mapping[str, str]) -> bool:
    """Makes the volumes of the pod's claims where its node is. False where a claim is not there yet."""
    for name, spec in used(pod, scene):
        claim = scene.claims.get((pod.metadata.namespace, name))
        if spec is None or claim is None:
            return False
        if not spec.volume_name:
            kind = scene.classes.get(spec.storage_class_name or "")
            await _make(api, claim, driver=kind.provisioner if kind else "", zone=zone_of.get(names.ZONE_LABEL, ""))
    return True


async def _make(api: Api, claim: PersistentVolumeClaim, *, driver: str, zone: str) -> None:
    meta = claim.metadata
    volume = f"pvc-{meta.uid}"
    spec: Json = {
        "capacity": {"storage": claim.spec.resources.requests.get("storage", "1Gi")},
        "accessModes": list(claim.spec.access_modes),
        "persistentVolumeReclaimPolicy": "Delete",
        "storageClassName": claim.spec.storage_class_name or "",
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
        },
        "csi": {"driver": driver, "volumeHandle": volume},
    }
    if zone:
        expression = {"key": names.ZONE_LABEL, "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    with contextlib.suppress(AlreadyExists):
        await api.create(PERSISTENT_VOLUME, {"metadata": {"name": volume}, "spec": spec})
    await api.patch(
        PERSISTENT_VOLUME_CLAIM, meta.name, {"spec": {"volumeName": volume}}, namespace=meta.namespace, uid=meta.uid
    )
    bound: Json = {"status": {"phase": "Bound"}}
    await api.patch(PERSISTENT_VOLUME_CLAIM, meta.name, bound, namespace=meta.namespace, subresource="status")
    await api.patch(PERSISTENT_VOLUME, volume, bound, subresource="status")


class Volumes:
    """`run` keeps claims, volumes and attachments until cancelled."""

    def __init__(self, api: Api, view: View, *, random: Random) -> None:
        self._api = api
        self._view = view
        self._random = random
        self._pods = view.pods
        self._nodes = view.nodes
        self._claims = view.claims
        self._classes = view.classes
        self._volumes = view.volumes
        self._attachments = view.attachments
        self._queue: WorkQueue[tuple[str, str, str]] = WorkQueue(random)
        self._pods.subscribe(self._on_pod)
        self._nodes.subscribe(self._on_node)
        self._claims.subscribe(self._on_claim)

    async def run(self) -> None:
        await keep_all(self._view, self._queue, lambda item: self._work(*item))

    def _on_pod(self, change: Change[Pod]) -> None:
        pod = change.old if isinstance(change, Deleted) else change.new
        if not pod.spec.volumes:
            return
        if not isinstance(change, Deleted):
            self._queue.add(("pod", *change.key))
        if pod.spec.node_name:
            self._queue.add_after(("node", "", pod.spec.node_name), ATTACH_SECONDS)
            if isinstance(change, Deleted) or not _runs(pod):
                self._queue.add_after(("node", "", pod.spec.node_name), DETACH_SECONDS)

    def _on_node(self, change: Change[Node]) -> None:
        if change.key[1] in {each.spec.node_name for each in self._attachments.store}:
            self._queue.add_after(("node", "", change.key[1]), DETACH_SECONDS)

    def _on_claim(self, change: Change[PersistentVolumeClaim]) -> None:
        self._queue.add(("claim", *change.key))

    async def _work(self, what: str, namespace: str, name: str) -> None:
        match what:
            case "pod":
                await self._make_claims(namespace, name)
            case "claim":
                await self._keep_claim(namespace, name)
            case _:
                await self._keep_attachments(name)

    async def _make_claims(self, namespace: str, name: str) -> None:
        pod = self._pods.store.get(name, namespace)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        for volume in pod.spec.volumes:
            own = f"{name}-{volume.name}"
            if volume.ephemeral is None or self._claims.store.get(own, namespace) is not None:
                continue
            raw = await self._api.get(POD.raw, name, namespace=namespace)
            given = next(each for each in raw["spec"]["volumes"] if each["name"] == volume.name)
            template = given["ephemeral"]["volumeClaimTemplate"]
            owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod.metadata.uid, "controller": True}
            body: Json = {
                "metadata": {**(template.get("metadata") or {}), "name": own, "ownerReferences": [owner]},
                "spec": template["spec"],
            }
            with contextlib.suppress(AlreadyExists):
                await self._api.create(PERSISTENT_VOLUME_CLAIM, body, namespace=namespace)

    async def _keep_claim(self, namespace: str, name: str) -> None:
        claim = self._claims.store.get(name, namespace)
        if claim is None:
            for volume in tuple(self._volumes.store):
                holder = volume.spec.claim_ref
                if holder is not None and (holder.namespace, holder.name) == (namespace, name):
                    made = volume.metadata.name
                    with contextlib.suppress(NotFound):  # a bound volume is protected
                        released: Json = {"status": {"phase": "Released"}}
                        await self._api.patch(PERSISTENT_VOLUME, made, released, subresource="status")
                        await self._api.delete(PERSISTENT_VOLUME, made, uid=volume.metadata.uid)
            return
        kind = self._classes.store.get(claim.spec.storage_class_name or "")
        if kind is not None and kind.volume_binding_mode != WAITS and not claim.spec.volume_name:
            zones = sorted({node.metadata.labels.get(names.ZONE_LABEL, "") for node in self._nodes.store} - {""})
            zone = self._random.choice(zones) if zones else ""
            await _make(self._api, claim, driver=kind.provisioner, zone=zone)

    async def _keep_attachments(self, node: str) -> None:
        there = self._nodes.store.get(node)
        wanted = {volume for pod in self._pods.store.find("node", node) if _runs(pod) for volume in self._of(pod)}
        for each in tuple(self._attachments.store):
            if each.spec.node_name == node and (there is None or each.spec.source.persistent_volume_name not in wanted):
                with contextlib.suppress(NotFound):
                    await self._api.delete(VOLUME_ATTACHMENT, each.metadata.name, uid=each.metadata.uid)
        if there is None:
            return
        for volume, driver in sorted((name, self._driver(name)) for name in wanted):
            await self._attach(there, volume, driver)

    async def _attach(self, node: Node, volume: str, driver: str) -> None:
        name = f"csi-{volume}-{node.metadata.name}"
        if self._attachments.store.get(name) is not None:
            return
        spec: Json = {
            "attacher": driver,
            "nodeName": node.metadata.name,
            "source": {"persistentVolumeName": volume},
        }
        with contextlib.suppress(AlreadyExists):
            await self._api.create(VOLUME_ATTACHMENT, {"metadata": {"name": name}, "spec": spec})
            await self._api.patch(VOLUME_ATTACHMENT, name, {"status": {"attached": True}}, subresource="status")
        await self._tell_most(node, driver)

    async def _tell_most(self, node: Node, driver: str) -> None:
        """The driver's registration on the node: how many volumes it can attach there."""
        meta = node.metadata
        owner = {"apiVersion": "v1", "kind": "Node", "name": meta.name, "uid": meta.uid}
        drivers = [{"name": driver, "nodeID": meta.name, "allocatable": {"count": MOST}}]
        body: Json = {"metadata": {"name": meta.name, "ownerReferences": [owner]}, "spec": {"drivers": drivers}}
        with contextlib.suppress(AlreadyExists):
            await self._api.create(CSI_NODE, body)

    def _of(self, pod: Pod) -> Iterator[str]:
        """The volumes behind the pod's claims."""
        for namespace, name in _claim_keys(pod):
            claim = self._claims.store.get(name, namespace)
            if claim is not None and claim.spec.volume_name:
                yield claim.spec.volume_name

    def _driver(self, volume: str) -> str:
        found = self._volumes.store.get(volume)
        return found.spec.csi.driver if found is not None and found.spec.csi is not None else ""


def _claim_keys(pod: Pod) -> list[tuple[str, str]]:
    return [
        (pod.metadata.namespace, volume.persistent_volume_claim.claim_name)
        if volume.persistent_volume_claim is not None
        else (pod.metadata.namespace, f"{pod.metadata.name}-{volume.name}")
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None
    ]


def _runs(pod: Pod) -> bool:
    return pod.status.phase not in {"Succeeded", "Failed"}
