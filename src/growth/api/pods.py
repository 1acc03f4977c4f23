"""Pods: what decides where they fit, when they may be moved, and how far they have come."""

import datetime as dt
from typing import Final

import msgspec

from growth.api.kinds import Kind
from growth.api.meta import ObjectMeta, ResourceList, Struct
from growth.api.placement import Affinity, Toleration, TopologySpreadConstraint
from growth.api.volumes import PersistentVolumeClaimSpec


class ResourceClaimUse(Struct, frozen=True):
    """A container's use of one of the pod's resource claims."""

    name: str
    request: str = ""


class ResourceRequirements(Struct, frozen=True):
    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ResourceClaimUse, ...] = ()


class ContainerPort(Struct, frozen=True):
    """Only ports with a `host_port` bind the node; servers set it for every port of a pod on the host network."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Struct, frozen=True):
    """`restart_policy` is set on init containers only: with `Always` they are sidecars and run beside the others."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class PersistentVolumeClaimVolumeSource(Struct, frozen=True):
    claim_name: str
    read_only: bool = False


class PersistentVolumeClaimTemplate(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(Struct, frozen=True):
    """A generic ephemeral volume: its claim is named `<pod>-<volume>` and owned by the pod."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class CSIVolumeSource(Struct, frozen=True):
    """An inline CSI volume; it counts against the driver's limit only where the driver attaches it."""

    driver: str


class Volume(Struct, frozen=True):
    """Other volume sources neither bind a pod to a place nor count against a limit, and are not read."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    csi: CSIVolumeSource | None = None


class PodSchedulingGate(Struct, frozen=True):
    name: str


class PodResourceClaim(Struct, frozen=True):
    name: str
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSchedulingGroup(Struct, frozen=True):
    """The group with which the pod must be scheduled all at once or not at all."""

    pod_group_name: str = ""


class PodSpec(Struct, frozen=True):
    """`priority` and `overhead` are filled in by admission, from the PriorityClass and the RuntimeClass.

    `resources` are pod-level requests: where set they take the place of the sum over containers.
    """

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: ResourceList = {}
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    restart_policy: str = ""
    runtime_class_name: str = ""
    termination_grace_period_seconds: int | None = None


class PodCondition(Struct, frozen=True):
    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: dt.datetime | None = None


class ContainerStatus(Struct, frozen=True):
    """`resources` is what runs and `allocated_resources` what the kubelet granted: they differ during a resize."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodResourceClaimStatus(Struct, frozen=True):
    name: str
    resource_claim_name: str = ""


class PodStatus(Struct, frozen=True):
    """`resources` and `allocated_resources` are the pod-level ones."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: str = ""
    start_time: dt.datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}
    resize: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class Pod(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplateSpec(Struct, frozen=True):
    """What a workload makes its pods from."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class PodTemplate(Struct, frozen=True):
    """A template that stands by itself; a capacity buffer refers to one."""

    metadata: ObjectMeta = ObjectMeta()
    template: PodTemplateSpec = PodTemplateSpec()


POD: Final = Kind("", "v1", "Pod", "pods", namespaced=True, type=Pod)
POD_TEMPLATE: Final = Kind("", "v1", "PodTemplate", "podtemplates", namespaced=True, type=PodTemplate)
