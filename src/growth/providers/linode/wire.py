"""The vendor's JSON, as far as it is read. Unknown fields are skipped; what may be missing or null has a default."""

import datetime as dt

import msgspec


class Wire(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base: names on the wire are ours."""


class Cluster(Wire, frozen=True):
    """`tier` is told by v4beta alone, and there not to every account."""

    id: int
    label: str = ""
    region: str = ""
    k8s_version: str = ""
    tier: str | None = None


class Node(Wire, frozen=True):
    """`instance_id` is null, or 0, until LKE has made the machine."""

    id: str
    instance_id: int | None = None
    status: str = ""


class Autoscaler(Wire, frozen=True):
    enabled: bool = False


class Taint(Wire, frozen=True):
    key: str
    effect: str
    value: str | None = None


class Pool(Wire, frozen=True):
    """The last two are told of enterprise pools alone. One without a count cannot be read: no count is not none."""

    id: int
    count: int
    type: str = ""
    nodes: tuple[Node, ...] = ()
    tags: tuple[str, ...] = ()
    autoscaler: Autoscaler = Autoscaler()
    taints: tuple[Taint, ...] = ()
    k8s_version: str = ""
    firewall_id: int | None = None


class Instance(Wire, frozen=True):
    """`created` has no zone: UTC is meant."""

    id: int
    label: str = ""
    status: str = ""
    type: str = ""
    region: str = ""
    tags: tuple[str, ...] = ()
    image: str | None = None
    lke_cluster_id: int | None = None
    created: str = ""

    @property
    def made(self) -> dt.datetime | None:
        try:
            moment = dt.datetime.fromisoformat(self.created)
        except ValueError:
            return None
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)

    @property
    def deleting(self) -> bool:
        return self.status == "deleting"


class Price(Wire, frozen=True):
    hourly: float | None = None
    monthly: float | None = None


class RegionPrice(Wire, frozen=True):
    id: str
    hourly: float | None = None
    monthly: float | None = None


class Type(Wire, frozen=True):
    """Memory and disk are MiB."""

    id: str
    vcpus: int = 0
    memory: int = 0
    disk: int = 0
    gpus: int = 0
    accelerated_devices: int = 0
    transfer: int = 0
    network_out: int = 0
    price: Price = Price()
    region_prices: tuple[RegionPrice, ...] = ()
    kind: str = msgspec.field(default="", name="class")


class Region(Wire, frozen=True):
    id: str
    capabilities: tuple[str, ...] = ()


class Availability(Wire, frozen=True):
    region: str
    plan: str
    available: bool = True


class Image(Wire, frozen=True):
    """None: it says nothing of what it can."""

    capabilities: tuple[str, ...] | None = None


class Named(Wire, frozen=True):
    """Versions: the ID says all."""

    id: str


class Numbered(Wire, frozen=True):
    id: int


class Clusters(Wire, frozen=True):
    data: tuple[Cluster, ...]
    pages: int = 1
    results: int = 0


class Pools(Wire, frozen=True):
    data: tuple[Pool, ...]
    pages: int = 1
    results: int = 0


class Instances(Wire, frozen=True):
    data: tuple[Instance, ...]
    pages: int = 1
    results: int = 0


class Types(Wire, frozen=True):
    data: tuple[Type, ...]
    pages: int = 1
    results: int = 0


class Names(Wire, frozen=True):
    data: tuple[Named, ...]
    pages: int = 1
    results: int = 0


class Nothing(Wire, frozen=True):
    """An answer of which nothing is read."""


class Failure(Wire, frozen=True):
    reason: str
    field: str = ""


class Envelope(Wire, frozen=True):
    """As errors come."""

    errors: tuple[Failure, ...]
