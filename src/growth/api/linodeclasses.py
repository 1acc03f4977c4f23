"""`karpenter.k8s.linode/v1alpha1` LinodeNodeClass, with the fields of the Karpenter provider for Linode.

Not every field has an effect: on LKE only `tags`, `firewallID`, `lkeK8sVersion` and `kubelet`; disks, configuration, VPC
and IPv6 options are accepted so that existing manifests apply. Ours are `userData`, for instances outside of LKE, and
`learnedTypes` in the status.
"""

from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec

from growth.api import names
from growth.api.kinds import Kind
from growth.api.meta import CONDITIONS, Condition, ObjectMeta, Quantity, Struct
from growth.api.nodeclasses import LEARNED_TYPES, HetznerUserData, LearnedType
from growth.api.placement import NodeSelectorRequirement
from growth.api.schema import Rule, Schema

Names: TypeAlias = Annotated[tuple[str, ...], Schema(list_type="set")]


class LinodeDisk(Struct, frozen=True):
    size: Annotated[Quantity, Schema("Its size, as a quantity.")]
    disk_id: Annotated[int | None, Schema("Linode's number of the disk.")] = msgspec.field(default=None, name="diskID")
    label: Annotated[str, Schema("Its label; without one the name of its device.")] = ""
    filesystem: Annotated[
        str, Schema("Its file system; ext4 where nothing is said.", enum=("raw", "swap", "ext3", "ext4", "initrd"))
    ] = ""


Disk: TypeAlias = Annotated[LinodeDisk | None, Schema("The disk at this device.")]


class LinodeDisks(Struct, frozen=True):
    sdb: Disk = None
    sdc: Disk = None
    sdd: Disk = None
    sde: Disk = None
    sdf: Disk = None
    sdg: Disk = None
    sdh: Disk = None


class LinodeConfiguration(Struct, frozen=True):
    kernel: Annotated[str, Schema("The kernel to boot, such as linode/latest-64bit.")] = ""


class LinodePlacementGroup(Struct, frozen=True):
    id: Annotated[int, Schema("Linode's number of the group.")]
    compliant_only: Annotated[bool | None, Schema("Refuse a machine that would break the group's rule.")] = (
        msgspec.field(default=None, name="compliant_only")
    )


_FIXED: Final = Schema(rules=(Rule("self == oldSelf", "the value is immutable: make another LinodeNodeClass"),))


class LinodeIPv6Options(Struct, frozen=True):
    enable_slaac: Annotated[bool | None, Schema("Addresses by SLAAC."), _FIXED] = msgspec.field(
        default=None, name="enableSLAAC"
    )
    enable_ranges: Annotated[bool | None, Schema("A range of addresses."), _FIXED] = None
    is_public_ipv6: Annotated[bool | None, Schema("A range that is routed publicly."), _FIXED] = msgspec.field(
        default=None, name="isPublicIPv6"
    )


def _only(keys: tuple[str, ...], field: str) -> Rule:
    listed = ", ".join(f"'{key}'" for key in keys)
    return Rule(f"self.all(x, x in [{listed}])", f"{field} knows only the keys {', '.join(keys)}")


_RESERVABLE: Final = ("cpu", "memory", "ephemeral-storage", "pid")
_SIGNALS: Final = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
)


def _amounts(keys: tuple[str, ...], field: str) -> tuple[Rule, ...]:
    return (
        _only(keys, field),
        Rule("self.all(x, !self[x].startsWith('-'))", f"{field} cannot be negative"),
    )


class LinodeKubelet(Struct, frozen=True):
    """Settings of the kubelet; Growth reads them to know what is left for pods."""

    schema: ClassVar = Schema(
        rules=(
            Rule(
                "!has(self.evictionSoft) || self.evictionSoft.all(e,"
                " has(self.evictionSoftGracePeriod) && e in self.evictionSoftGracePeriod)",
                "every key of evictionSoft needs one in evictionSoftGracePeriod",
                field=".evictionSoft",
            ),
            Rule(
                "!has(self.evictionSoftGracePeriod) || self.evictionSoftGracePeriod.all(e,"
                " has(self.evictionSoft) && e in self.evictionSoft)",
                "every key of evictionSoftGracePeriod needs one in evictionSoft",
                field=".evictionSoftGracePeriod",
            ),
        ),
    )

    cluster_dns: Annotated[tuple[str, ...], Schema("Addresses of the cluster's DNS.")] = msgspec.field(
        default=(), name="clusterDNS"
    )
    max_pods: Annotated[int | None, Schema("At most this many pods on a node.", format="int32", minimum=0)] = None
    pods_per_core: Annotated[
        int | None, Schema("At most this many pods a core, within maxPods.", format="int32", minimum=0)
    ] = None
    system_reserved: Annotated[
        dict[str, str], Schema("Kept from pods for the system.", rules=_amounts(_RESERVABLE, "systemReserved"))
    ] = {}
    kube_reserved: Annotated[
        dict[str, str], Schema("Kept from pods for Kubernetes.", rules=_amounts(_RESERVABLE, "kubeReserved"))
    ] = {}
    eviction_hard: Annotated[
        dict[str, str], Schema("Below this pods are evicted at once.", rules=_amounts(_SIGNALS, "evictionHard"))
    ] = {}
    eviction_soft: Annotated[
        dict[str, str], Schema("Below this pods are evicted after a while.", rules=_amounts(_SIGNALS, "evictionSoft"))
    ] = {}
    eviction_soft_grace_period: Annotated[
        dict[str, str], Schema("How long a while.", rules=(_only(_SIGNALS, "evictionSoftGracePeriod"),))
    ] = {}
    eviction_max_pod_grace_period: Annotated[
        int | None, Schema("Seconds that an evicted pod may take at most.", format="int32")
    ] = None
    cpu_cfs_quota: Annotated[bool | None, Schema("Whether limits on cpu are enforced by quota.")] = msgspec.field(
        default=None, name="cpuCFSQuota"
    )


class LinodeNodeClassSpec(Struct, frozen=True):
    """How the machines are made. On LKE only tags, firewallID, lkeK8sVersion and kubelet have an effect."""

    authorized_keys: Annotated[Names, Schema("Public SSH keys of the machines.")] = ()
    authorized_users: Annotated[Names, Schema("Users of Linode whose keys the machines get.")] = ()
    image: Annotated[str, Schema("The image of the machines.")] = ""
    backups_enabled: Annotated[bool, Schema("Whether the machines are backed up, which costs extra.")] = False
    tags: Annotated[Names, Schema("Tags of the machines at Linode.")] = ()
    firewall_id: Annotated[int | None, Schema("Number of the machines' firewall.")] = msgspec.field(
        default=None, name="firewallID"
    )
    os_disk: Annotated[LinodeDisk | None, Schema("The disk with the system.")] = None
    data_disks: Annotated[LinodeDisks | None, Schema("Further disks.")] = None
    disk_encryption: Annotated[str, Schema("Whether disks are encrypted.", enum=("enabled", "disabled"))] = ""
    configuration: Annotated[LinodeConfiguration | None, Schema("What the machines boot.")] = None
    placement_group: Annotated[LinodePlacementGroup | None, Schema("The machines' placement group.")] = None
    vpc_id: Annotated[int | None, Schema("Number of the machines' VPC.")] = msgspec.field(default=None, name="vpcID")
    ipv6_options: Annotated[LinodeIPv6Options | None, Schema("IPv6 of the machines.")] = msgspec.field(
        default=None, name="ipv6Options"
    )
    swap_size: Annotated[int | None, Schema("Size of the swap disk in MiB.")] = msgspec.field(
        default=None, name="swap_size"
    )
    user_data: Annotated[
        HetznerUserData | None, Schema("How machines join that are no nodes of LKE; without it their image must.")
    ] = None
    kubelet: Annotated[LinodeKubelet | None, Schema("Settings of the kubelet.")] = None
    lke_k8s_version: Annotated[str | None, Schema("Version of Kubernetes on the nodes; LKE Enterprise only.")] = (
        msgspec.field(default=None, name="lkeK8sVersion")
    )


class LinodeImage(Struct, frozen=True):
    id: Annotated[str, Schema("The image's ID.")]
    label: Annotated[str, Schema("Its label.")] = ""
    deprecated: Annotated[bool, Schema("Whether Linode is about to withdraw it.")] = False
    requirements: Annotated[tuple[NodeSelectorRequirement, ...], Schema("For which machines it is used.")] = ()


class LinodeNodeClassStatus(Struct, frozen=True):
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()
    linode_images: Annotated[tuple[LinodeImage, ...], Schema("The images that are used.")] = ()
    learned_types: Annotated[tuple[LearnedType, ...], LEARNED_TYPES] = ()
    applied_tags: Annotated[Names, Schema("Tags that machines may have of the class, as it is or was.")] = ()


class LinodeNodeClass(Struct, frozen=True):
    """How machines are made at Linode."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LinodeNodeClassSpec = LinodeNodeClassSpec()
    status: LinodeNodeClassStatus = LinodeNodeClassStatus()


LINODE_NODE_CLASS: Final = Kind(
    names.LINODE_CLASS_GROUP, "v1alpha1", "LinodeNodeClass", "linodenodeclasses", namespaced=False, type=LinodeNodeClass
)
