"""Clusters, pools, nodes and instances as the account holds them."""

import dataclasses
import datetime as dt
from typing import Final

from growth.api.kinds import Json
from growth.sim.clouds.linode.market import Kind
from growth.sim.clouds.linode.wire import text_time

# From which on people are told, where they say nothing else.
ALERTS: Final = {"io": 10_000, "network_in": 10, "network_out": 10, "transfer_quota": 80}
STANDARD = "standard"
ENTERPRISE = "enterprise"


@dataclasses.dataclass(slots=True, kw_only=True)
class Cluster:
    id: int
    label: str
    region: str
    tier: str
    k8s_version: str
    created: dt.datetime
    tags: tuple[str, ...] = ()

    @property
    def enterprise(self) -> bool:
        return self.tier == ENTERPRISE

    def body(self, *, beta: bool) -> Json:
        return {
            "id": self.id,
            "label": self.label,
            "region": self.region,
            "status": "ready",
            "k8s_version": self.k8s_version,
            "created": text_time(self.created),
            "updated": text_time(self.created),
            "control_plane": {"high_availability": self.enterprise},
            "tags": list(self.tags),
            "locks": [],
            **({"tier": self.tier, "apl_enabled": False} if beta else {}),
        }


@dataclasses.dataclass(slots=True, kw_only=True)
class Node:
    """`instance` is None until the machine is there; `shown_from` is when the pool lists it.

    `stocked`: one of the stock is set aside for it, or is its machine.
    """

    id: str
    instance: int | None = None
    stocked: bool = True
    ready: bool = False
    shown_from: dt.datetime

    def body(self) -> Json:
        return {"id": self.id, "instance_id": self.instance, "status": "ready" if self.ready else "not_ready"}


@dataclasses.dataclass(slots=True, kw_only=True)
class Pool:
    id: int
    cluster: Cluster
    kind: Kind
    count: int = 0
    nodes: list[Node] = dataclasses.field(default_factory=list)
    label: str = ""
    tags: tuple[str, ...] = ()
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    taints: list[Json] = dataclasses.field(default_factory=list)
    autoscaler: Json = dataclasses.field(default_factory=dict)
    k8s_version: str = ""
    update_strategy: str = "rolling_update"
    firewall_id: int = 0
    disk_encryption: str = "enabled"
    created: dt.datetime

    def body(self, now: dt.datetime, *, beta: bool) -> Json:
        return {
            "id": self.id,
            "type": self.kind.id,
            "label": self.label,
            "count": self.count,
            "nodes": [node.body() for node in self.nodes if node.shown_from <= now],
            "disks": [],
            "autoscaler": self.autoscaler,
            "labels": self.labels,
            "taints": self.taints,
            "tags": list(self.tags),
            "disk_encryption": self.disk_encryption,
            "locks": [],
            **(
                {
                    "k8s_version": self.k8s_version,
                    "update_strategy": self.update_strategy,
                    "firewall_id": self.firewall_id,
                }
                if beta and self.cluster.enterprise
                else {}
            ),
        }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementGroup:
    label: str
    region: str
    kind: str = "anti_affinity:local"
    policy: str = "strict"


@dataclasses.dataclass(slots=True, kw_only=True)
class Instance:
    """`listed_tags` are what lists show until `tags_from`: they lag behind."""

    id: int
    label: str
    kind: Kind
    region: str
    created: dt.datetime
    status: str = "provisioning"
    tags: tuple[str, ...] = ()
    listed_tags: tuple[str, ...] = ()
    tags_from: dt.datetime
    cluster: int | None = None
    pool: int | None = None
    node: str = ""
    image: str = ""
    user_data: str = ""
    settings: Json = dataclasses.field(default_factory=dict)
    group: str = ""
    watchdog: bool = True
    alerts: dict[str, int] = dataclasses.field(default_factory=dict)
    schedule: Json = dataclasses.field(default_factory=lambda: {"day": None, "window": None})
    maintenance_policy: str = "linode/migrate"
    locks: tuple[str, ...] = ()
    running_since: dt.datetime | None = None

    def body(self, now: dt.datetime, *, listed: bool = False) -> Json:
        tags = self.listed_tags if listed and now < self.tags_from else self.tags
        return {
            "id": self.id,
            "label": self.label,
            "group": self.group,
            "status": self.status,
            "created": text_time(self.created),
            "updated": text_time(self.created),
            "type": self.kind.id,
            "ipv4": [f"192.0.{self.id // 250 % 250}.{self.id % 250 + 1}"],
            "ipv6": None,
            "image": self.image or None,
            "region": self.region,
            "specs": {
                "disk": self.kind.disk,
                "memory": self.kind.memory,
                "vcpus": self.kind.vcpus,
                "gpus": self.kind.gpus,
                "transfer": 1000,
                "accelerated_devices": 0,
            },
            "alerts": {**ALERTS, "cpu": 90 * self.kind.vcpus, **self.alerts},
            "backups": {
                "enabled": bool(self.settings.get("backups_enabled")),
                "available": False,
                "schedule": self.schedule,
                "last_successful": None,
            },
            "hypervisor": "kvm",
            "watchdog_enabled": self.watchdog,
            "tags": list(tags),
            "host_uuid": f"{self.id:040x}",
            "has_user_data": bool(self.user_data),
            "placement_group": self.settings.get("placement_group"),
            "disk_encryption": self.settings.get("disk_encryption", "enabled"),
            "lke_cluster_id": self.cluster,
            "capabilities": [],
            "interface_generation": "legacy_config",
            "maintenance_policy": self.maintenance_policy,
            "locks": list(self.locks),
        }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """Who has one is not deleted."""

    instance: Instance
    kind: str
