"""Which volumes are attached to which node, by CSI driver: what limits of attachments count."""

from collections.abc import Iterable, Iterator

from growth.api import names
from growth.api.pods import Volume
from growth.api.volumes import PersistentVolumeClaimSpec, StorageClass, VolumeAttachment
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import VolumesView


class Attachments:
    """Answers from a view of volumes and the attachments that the control plane has recorded."""

    def __init__(self, volumes: VolumesView, attachments: Iterable[VolumeAttachment] = ()) -> None:
        self._volumes = volumes
        self._recorded: dict[str, set[tuple[str, str]]] = {}
        for each in attachments:
            volume = volumes.volumes.get(each.spec.source.persistent_volume_name)
            if volume is not None and volume.spec.csi is not None:
                handle = volume.spec.csi.volume_handle or volume.metadata.name
                self._recorded.setdefault(each.spec.node_name, set()).add((volume.spec.csi.driver, handle))
        defaults = [
            each
            for each in volumes.classes.values()
            if each.metadata.annotations.get(names.DEFAULT_STORAGE_CLASS_ANNOTATION) == "true"
        ]
        self._default = min(defaults, key=lambda each: each.metadata.name) if defaults else None

    def on(self, node: str, pods: Iterable[CachedPod]) -> dict[str, frozenset[str]]:
        """Driver → volumes: those of the node's pods, and those that are still attached without a pod."""
        found = set(self._recorded.get(node, ()))
        for pod in pods:
            for volume in pod.shape.spec.volumes:
                found.update(self._of(pod, volume))
        drivers: dict[str, set[str]] = {}
        for driver, handle in found:
            drivers.setdefault(driver, set()).add(handle)
        return {driver: frozenset(handles) for driver, handles in drivers.items()}

    def _of(self, pod: CachedPod, volume: Volume) -> Iterator[tuple[str, str]]:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = f"{pod.name}-{volume.name}"
        else:
            return
        claim = self._volumes.claims.get((pod.namespace, name))
        if claim is None:
            return
        bound = self._volumes.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if bound is not None:
            if bound.spec.csi is not None:
                yield bound.spec.csi.driver, bound.spec.csi.volume_handle or bound.metadata.name
            return
        storage = self._class(claim.spec)
        if storage is not None and storage.provisioner:
            yield storage.provisioner, f"{pod.namespace}/{name}"

    def _class(self, spec: PersistentVolumeClaimSpec) -> StorageClass | None:
        if spec.storage_class_name is None:
            return self._default
        return self._volumes.classes.get(spec.storage_class_name)
