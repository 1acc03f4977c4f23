"""Nodes, as their kubelets and the control plane describe them."""

import datetime as dt
from typing import Final

import msgspec

from growth.api.kinds import Kind
from growth.api.meta import ObjectMeta, ResourceList, Struct
from growth.api.placement import Taint


class NodeSpec(Struct, frozen=True):
    provider_id: str = msgspec.field(default="", name="providerID")
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeCondition(Struct, frozen=True):
    """`lastHeartbeatTime` is left out: it changes every few minutes and says nothing that a Lease does not."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: dt.datetime | None = None


class NodeAddress(Struct, frozen=True):
    type: str = ""
    address: str = ""


class NodeSystemInfo(Struct, frozen=True):
    """`boot_id` changes with every boot of the machine."""

    architecture: str = ""
    operating_system: str = ""
    boot_id: str = msgspec.field(default="", name="bootID")
    machine_id: str = msgspec.field(default="", name="machineID")
    system_uuid: str = msgspec.field(default="", name="systemUUID")
    kubelet_version: str = ""
    os_image: str = ""


class AttachedVolume(Struct, frozen=True):
    name: str = ""
    device_path: str = ""


class NodeStatus(Struct, frozen=True):
    phase: str = ""
    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    volumes_in_use: tuple[str, ...] = ()


class Node(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        """Whether its kubelet says that it is ready, and nobody has doubted that since."""
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)


NODE: Final = Kind("", "v1", "Node", "nodes", namespaced=False, type=Node)
