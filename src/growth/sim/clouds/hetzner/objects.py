"""What a project holds, and how the API shows each thing."""

import dataclasses
import datetime as dt
from decimal import Decimal
from typing import Final

from growth.api.kinds import Json
from growth.sim.clouds.hetzner.market import ServerType, location_json
from growth.sim.clouds.hetzner.wire import text_time

FULL_GROUP: Final = 10


@dataclasses.dataclass(slots=True, kw_only=True)
class Action:
    """Something under way. It ends at `ends` with `error`, or well; None: never. `begins` is when it starts to advance."""

    id: int
    command: str
    started: dt.datetime
    begins: dt.datetime
    ends: dt.datetime | None
    resources: list[tuple[str, int]]
    error: tuple[str, str] | None = None
    finished: dt.datetime | None = None
    failed: bool = False

    @property
    def running(self) -> bool:
        return self.finished is None

    def json(self, now: dt.datetime) -> Json:
        return {
            "id": self.id,
            "command": self.command,
            "status": "running" if self.running else "error" if self.failed else "success",
            "progress": self._progress(now),
            "started": text_time(self.started),
            "finished": text_time(self.finished),
            "resources": [{"id": number, "type": kind} for kind, number in self.resources],
            "error": {"code": self.error[0], "message": self.error[1]} if self.failed and self.error else None,
        }

    def _progress(self, now: dt.datetime) -> int:
        if not self.running:
            return 100
        if self.ends is None or self.ends <= self.begins:
            return 0
        share = (now - self.begins) / (self.ends - self.begins)
        return min(max(int(share * 100), 0), 99)


@dataclasses.dataclass(slots=True, kw_only=True)
class Image:
    """`name` is None of snapshots. `size_gb` is the disk that it needs at least."""

    id: int
    name: str | None
    description: str
    type: str
    arm: bool
    size_gb: int
    created: dt.datetime
    flavor: str = "ubuntu"
    version: str | None = None
    status: str = "available"
    labels: dict[str, str] = dataclasses.field(default_factory=dict)

    def json(self) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "type": self.type,
            "status": self.status,
            "image_size": None if self.type == "system" else 2.5,
            "disk_size": self.size_gb,
            "created": text_time(self.created),
            "created_from": None,
            "bound_to": None,
            "os_flavor": self.flavor,
            "os_version": self.version,
            "architecture": "arm" if self.arm else "x86",
            "rapid_deploy": self.type == "system",
            "protection": {"delete": False},
            "deprecated": None,
            "deprecation": None,
            "deleted": None,
            "labels": dict(self.labels),
        }


@dataclasses.dataclass(slots=True, kw_only=True)
class SshKey:
    id: int
    name: str
    public_key: str
    fingerprint: str
    created: dt.datetime
    labels: dict[str, str]

    def json(self) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            "fingerprint": self.fingerprint,
            "public_key": self.public_key,
            "labels": dict(self.labels),
            "created": text_time(self.created),
        }


@dataclasses.dataclass(slots=True, kw_only=True)
class PlacementGroup:
    id: int
    name: str
    created: dt.datetime
    labels: dict[str, str]
    servers: list[int] = dataclasses.field(default_factory=list)

    @property
    def full(self) -> bool:
        return len(self.servers) >= FULL_GROUP

    def json(self) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            "type": "spread",
            "labels": dict(self.labels),
            "servers": sorted(self.servers),
            "created": text_time(self.created),
        }


@dataclasses.dataclass(slots=True, kw_only=True)
class Network:
    """`members` are addresses by server, those included that are on the way."""

    id: int
    name: str
    ip_range: str
    subnets: list[Json]
    created: dt.datetime
    labels: dict[str, str]
    members: dict[int, str] = dataclasses.field(default_factory=dict)

    def json(self) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            "ip_range": self.ip_range,
            "subnets": list(self.subnets),
            "routes": [],
            "servers": sorted(self.members),
            "load_balancers": [],
            "protection": {"delete": False},
            "labels": dict(self.labels),
            "created": text_time(self.created),
            "expose_routes_to_vswitch": False,
        }


@dataclasses.dataclass(slots=True, kw_only=True)
class Firewall:
    id: int
    name: str
    rules: list[Json]
    created: dt.datetime
    labels: dict[str, str]
    servers: list[int] = dataclasses.field(default_factory=list)

    def json(self) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            "rules": list(self.rules),
            "labels": dict(self.labels),
            "applied_to": [{"type": "server", "server": {"id": number}} for number in sorted(self.servers)],
            "created": text_time(self.created),
        }


@dataclasses.dataclass(slots=True, kw_only=True)
class Server:
    """`user_data` and `ssh_keys` are told to the machine and never shown again. `busy` is the action that locks it."""

    id: int
    name: str
    type: ServerType
    location: str
    image: Image
    created: dt.datetime
    labels: dict[str, str]
    hourly: Decimal
    monthly: Decimal
    user_data: str
    ssh_keys: list[int]
    ipv4: str | None
    ipv6: str | None
    status: str = "initializing"
    backups: bool = False
    delete_protected: bool = False
    rebuild_protected: bool = False
    group: PlacementGroup | None = None
    networks: dict[int, str] = dataclasses.field(default_factory=dict)
    firewalls: list[int] = dataclasses.field(default_factory=list)
    busy: int | None = None
    running_since: dt.datetime | None = None

    def json(self, now: dt.datetime) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "created": text_time(self.created),
            "public_net": {
                "ipv4": self.ipv4
                and {
                    "id": self.id * 10 + 4,
                    "ip": self.ipv4,
                    "blocked": False,
                    "dns_ptr": f"static.{self.ipv4}.clients.your-server.de",
                },
                "ipv6": self.ipv6 and {"id": self.id * 10 + 6, "ip": self.ipv6, "blocked": False, "dns_ptr": []},
                "floating_ips": [],
                "firewalls": [{"id": number, "status": "applied"} for number in self.firewalls],
            },
            "private_net": [
                {
                    "network": number,
                    "ip": address,
                    "alias_ips": [],
                    "mac_address": f"86:00:00:{self.id >> 16 & 255:02x}:{self.id >> 8 & 255:02x}:{self.id & 255:02x}",
                }
                for number, address in self.networks.items()
            ],
            "server_type": self.type.json(now),
            "location": location_json(self.location),
            "image": self.image.json(),
            "iso": None,
            "rescue_enabled": False,
            "locked": self.busy is not None,
            "backup_window": "22-02" if self.backups else None,
            "outgoing_traffic": 0,
            "ingoing_traffic": 0,
            "included_traffic": 20 * 10**12,
            "primary_disk_size": self.type.disk_gb,
            "protection": {"delete": self.delete_protected, "rebuild": self.rebuild_protected},
            "labels": dict(self.labels),
            "volumes": [],
            "load_balancers": [],
            "placement_group": self.group.json() if self.group is not None else None,
        }
