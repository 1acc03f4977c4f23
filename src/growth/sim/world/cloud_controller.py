"""Hetzner's cloud controller manager in the simulated world: it initialises the Nodes of servers.

As the vendor's: kubelets register with the taint `node.cloudprovider.kubernetes.io/uninitialized` and leave type, region and
zone to it. A while later it writes these labels, over whatever is there, with the addresses, and takes the taint off. Its zone is
the name of the datacenter; newer versions can leave it out. It looks at a Node once.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias

from growth.api import names
from growth.api.edits import remove_taint, set_labels
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.placement import NO_SCHEDULE
from growth.kube.api import Api
from growth.kube.changes import change
from growth.kube.errors import KubeError
from growth.providers.kwok.records import Record
from growth.sim.clouds.hetzner.objects import Server
from growth.sim.ports import SimRandom
from growth.sim.world.view import View

Zone: TypeAlias = Literal["datacenter", "location", "none"]

LOOK_SECONDS: Final = 0.5
# From a Node's registration to its initialisation.
SECONDS: Final = (0.5, 30.0)
ZONES: Final[tuple[Zone, ...]] = ("datacenter", "location", "none")
SCHEME: Final = "hcloud://"
WRITTEN: Final = frozenset({names.INSTANCE_TYPE_LABEL, names.REGION_LABEL, names.ZONE_LABEL})
DATACENTERS: Final = {"fsn1": "fsn1-dc14", "nbg1": "nbg1-dc3", "hel1": "hel1-dc2"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CloudControllerSettings:
    """`seconds` pass between a Node's registration and its initialisation. Without `taint` nothing says that it is to come."""

    seconds: float = 1.0
    zone: Zone = "datacenter"
    taint: bool = True


def drawn(seed: int) -> CloudControllerSettings | None:
    """What the world of that seed has: in every third no controller."""
    random = SimRandom(seed, "cloud controller")
    there, late, zone = random.chance(2 / 3), random.uniform(*SECONDS), random.choice(ZONES)
    return CloudControllerSettings(seconds=late, zone=zone) if there else None


class CloudController:
    """`run` until cancelled. `servers` are the machines of the project."""

    def __init__(
        self, api: Api, view: View, settings: CloudControllerSettings, servers: Callable[[], Sequence[Server]]
    ) -> None:
        self._api = api
        self._view = view
        self._settings = settings
        self._servers = servers
        self._seen: dict[str, float] = {}  # when each Node, by its UID, came
        self._done: set[str] = set()

    async def run(self) -> None:
        await self._view.synced()
        loop = asyncio.get_running_loop()
        while True:
            for node in tuple(self._view.nodes.store):
                uid, number = node.metadata.uid, node.spec.provider_id.removeprefix(SCHEME)
                came = self._seen.setdefault(uid, loop.time())
                if uid in self._done or loop.time() - came < self._settings.seconds:
                    continue
                server = next((each for each in self._servers() if str(each.id) == number), None)
                if server is not None:
                    await self._initialize(node.metadata.name, uid, server)
            await asyncio.sleep(LOOK_SECONDS)

    async def _initialize(self, name: str, uid: str, server: Server) -> None:
        labels: dict[str, str | None] = {
            names.INSTANCE_TYPE_LABEL: server.type.name,
            names.REGION_LABEL: server.location,
        }
        if self._settings.zone != "none":
            by_datacenter = self._settings.zone == "datacenter"
            labels[names.ZONE_LABEL] = DATACENTERS[server.location] if by_datacenter else server.location

        def initialize(draft: Json) -> None:
            set_labels(draft, labels)
            remove_taint(draft, key=names.CLOUD_UNINITIALIZED_TAINT, effect=NO_SCHEDULE)

        try:
            await change(self._api, NODE, name, initialize)
        except KubeError:
            return  # the next look tries again
        self._done.add(uid)


def uninitialized(record: Record, settings: CloudControllerSettings) -> Record:
    """As the machine's kubelet registers where a cloud controller is to initialise its Node."""
    labels = {key: value for key, value in record.labels.items() if key not in WRITTEN}
    taint = {"key": names.CLOUD_UNINITIALIZED_TAINT, "value": "true", "effect": NO_SCHEDULE}
    return dataclasses.replace(record, labels=labels, taints=(*record.taints, *([taint] if settings.taint else ())))
