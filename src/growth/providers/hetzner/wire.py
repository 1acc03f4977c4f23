"""The vendor's JSON, as far as it is read. Unknown fields are skipped; what may be missing or null has a default."""

import datetime as dt
from typing import Any

import msgspec


class Wire(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base: names on the wire are ours."""


class Fault(Wire, frozen=True):
    """Why an action failed."""

    code: str = ""
    message: str = ""


class Resource(Wire, frozen=True):
    id: int
    type: str = ""


class Action(Wire, frozen=True):
    """`status` is running, success or error."""

    id: int
    command: str = ""
    status: str = "running"
    progress: int = 0
    error: Fault | None = None
    resources: tuple[Resource, ...] = ()


class Named(Wire, frozen=True):
    """Anything with a number and a name: firewalls, keys, types."""

    id: int
    name: str = ""


class Location(Named, frozen=True):
    network_zone: str = ""


class Subnet(Wire, frozen=True):
    """`type` is cloud, server (its older name) or vswitch, which is for dedicated machines."""

    type: str = ""
    network_zone: str = ""


class Network(Named, frozen=True):
    subnets: tuple[Subnet, ...] = ()


class Deprecation(Wire, frozen=True):
    announced: dt.datetime | None = None
    unavailable_after: dt.datetime | None = None


class TypeLocation(Wire, frozen=True):
    """A server type at a place. `available` is advice: what is flagged unavailable may be sold, and the reverse. None: it is
    not said.
    """

    name: str
    id: int = 0
    available: bool | None = None
    recommended: bool = False
    deprecation: Deprecation | None = None


class Amount(Wire, frozen=True):
    net: str = ""
    gross: str = ""


class Price(Wire, frozen=True):
    location: str
    price_hourly: Amount = Amount()
    price_monthly: Amount = Amount()


class ServerType(Wire, frozen=True):
    """Memory is in GB of 2³⁰ bytes, disk in GB of 10⁹."""

    id: int
    name: str
    cores: int = 0
    memory: float = 0.0
    disk: int = 0
    storage_type: str = ""
    cpu_type: str = ""
    category: str | None = None
    architecture: str = "x86"
    prices: tuple[Price, ...] = ()
    locations: tuple[TypeLocation, ...] | None = None
    deprecation: Deprecation | None = None


class Image(Wire, frozen=True):
    id: int
    name: str | None = None
    description: str = ""
    type: str = ""
    status: str = ""
    architecture: str = "x86"
    disk_size: float = 0.0
    created: dt.datetime | None = None
    deprecated: dt.datetime | None = None
    labels: dict[str, str] = {}


class PrivateNet(Wire, frozen=True):
    network: int
    ip: str = ""


class Server(Wire, frozen=True):
    id: int
    name: str
    status: str = ""
    created: dt.datetime | None = None
    server_type: Named | None = None
    location: Named | None = None
    image: Image | None = None
    labels: dict[str, str] = {}
    placement_group: Named | None = None
    private_net: tuple[PrivateNet, ...] = ()
    backup_window: str | None = None


class PlacementGroup(Wire, frozen=True):
    id: int
    name: str = ""
    type: str = "spread"
    labels: dict[str, str] = {}
    servers: tuple[int, ...] = ()
    created: dt.datetime | None = None


class AddressPrice(Wire, frozen=True):
    type: str
    prices: tuple[Price, ...] = ()


class BackupPrice(Wire, frozen=True):
    percentage: str = ""


class Pricing(Wire, frozen=True):
    currency: str = ""
    primary_ips: tuple[AddressPrice, ...] = ()
    server_backup: BackupPrice | None = None


class Created(Wire, frozen=True):
    """The answer to a purchase. The root password that may stand in it is never read."""

    server: Server
    action: Action
    next_actions: tuple[Action, ...] = ()

    @property
    def actions(self) -> tuple[Action, ...]:
        return (self.action, *self.next_actions)


class Pagination(Wire, frozen=True):
    page: int = 1
    next_page: int | None = None
    last_page: int | None = None
    total_entries: int | None = None


class Meta(Wire, frozen=True):
    pagination: Pagination = Pagination()


class Servers(Wire, frozen=True):
    servers: tuple[Server, ...]
    meta: Meta = Meta()


class OneServer(Wire, frozen=True):
    server: Server


class ServerTypes(Wire, frozen=True):
    server_types: tuple[ServerType, ...]
    meta: Meta = Meta()


class Locations(Wire, frozen=True):
    locations: tuple[Location, ...]
    meta: Meta = Meta()


class Images(Wire, frozen=True):
    images: tuple[Image, ...]
    meta: Meta = Meta()


class OneImage(Wire, frozen=True):
    image: Image


class Networks(Wire, frozen=True):
    networks: tuple[Network, ...]
    meta: Meta = Meta()


class Firewalls(Wire, frozen=True):
    firewalls: tuple[Named, ...]
    meta: Meta = Meta()


class Keys(Wire, frozen=True):
    ssh_keys: tuple[Named, ...]
    meta: Meta = Meta()


class PlacementGroups(Wire, frozen=True):
    placement_groups: tuple[PlacementGroup, ...]
    meta: Meta = Meta()


class OnePlacementGroup(Wire, frozen=True):
    placement_group: PlacementGroup
    action: Action | None = None


class Actions(Wire, frozen=True):
    actions: tuple[Action, ...]
    meta: Meta = Meta()


class OneAction(Wire, frozen=True):
    action: Action | None = None


class Prices(Wire, frozen=True):
    pricing: Pricing


class Failure(Wire, frozen=True):
    code: str
    message: str = ""
    details: Any = None


class Envelope(Wire, frozen=True):
    """As errors come."""

    error: Failure
