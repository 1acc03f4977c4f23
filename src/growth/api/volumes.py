"""Volumes: claims, the volumes bound to them, their classes, and what nodes can attach."""

from typing import Final

import msgspec

from growth.api.kinds import Kind
from growth.api.meta import LabelSelector, ObjectMeta, ObjectReference, ResourceList, Struct
from growth.api.placement import NodeSelector


class VolumeResourceRequirements(Struct, frozen=True):
    requests: ResourceList = {}


class PersistentVolumeClaimSpec(Struct, frozen=True):
    """`storage_class_name` None means the cluster's default class, an empty string means no class at all."""

    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = ""
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()


class PersistentVolumeClaimStatus(Struct, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(Struct, frozen=True):
    required: NodeSelector | None = None


class CSIPersistentVolumeSource(Struct, frozen=True):
    driver: str
    volume_handle: str = ""


class AwsVolume(Struct, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class GceVolume(Struct, frozen=True):
    pd_name: str = ""


class AzureVolume(Struct, frozen=True):
    disk_name: str = ""


class LocalVolume(Struct, frozen=True):
    path: str = ""


class HostPathVolume(Struct, frozen=True):
    path: str = ""


class PersistentVolumeSpec(Struct, frozen=True):
    """The sources that decide which driver's limit counts, or that tie the volume to one machine."""

    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    persistent_volume_reclaim_policy: str = ""
    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ObjectReference | None = None
    csi: CSIPersistentVolumeSource | None = None
    aws_elastic_block_store: AwsVolume | None = None
    gce_persistent_disk: GceVolume | None = None
    azure_disk: AzureVolume | None = None
    local: LocalVolume | None = None
    host_path: HostPathVolume | None = None


class PersistentVolumeStatus(Struct, frozen=True):
    phase: str = ""


class PersistentVolume(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorTerm(Struct, frozen=True):
    match_label_expressions: tuple["TopologySelectorLabelRequirement", ...] = ()


class TopologySelectorLabelRequirement(Struct, frozen=True):
    key: str
    values: tuple[str, ...] = ()


class StorageClass(Struct, frozen=True):
    """Default class of the cluster where annotation `storageclass.kubernetes.io/is-default-class` is «true»."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
    parameters: dict[str, str] = {}


class VolumeNodeResources(Struct, frozen=True):
    """None is «no limit», which is not zero."""

    count: int | None = None


class CSINodeDriver(Struct, frozen=True):
    name: str
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Struct, frozen=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Struct, frozen=True):
    """Named as its Node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class VolumeAttachmentSource(Struct, frozen=True):
    persistent_volume_name: str = ""


class VolumeAttachmentSpec(Struct, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Struct, frozen=True):
    attached: bool = False


class VolumeAttachment(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()


class CSIDriverSpec(Struct, frozen=True):
    """`attach_required` false: the driver's volumes need no attachment and count against no limit."""

    attach_required: bool = True


class CSIDriver(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


PERSISTENT_VOLUME_CLAIM: Final = Kind(
    "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True, type=PersistentVolumeClaim
)
PERSISTENT_VOLUME: Final = Kind(
    "", "v1", "PersistentVolume", "persistentvolumes", namespaced=False, type=PersistentVolume
)
STORAGE_CLASS: Final = Kind(
    "storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False, type=StorageClass
)
CSI_NODE: Final = Kind("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False, type=CSINode)
CSI_DRIVER: Final = Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", namespaced=False, type=CSIDriver)
VOLUME_ATTACHMENT: Final = Kind(
    "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False, type=VolumeAttachment
)
