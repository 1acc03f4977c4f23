"""The stand-in for kubelets of machines that a fake of Hetzner's API sells.

They register as the vendor's would with their user data, and report a little less memory than is advertised, as real ones
do.
"""

from collections.abc import Mapping
from typing import Final

from growth.kube.api import Api
from growth.providers import standin
from growth.providers.catalogues.hetzner import CPU_KEPT, CSI_LOCATION_LABEL, PODS
from growth.providers.hetzner import labels
from growth.providers.hetzner.client import HetznerApi
from growth.providers.hetzner.offerings import ARCHITECTURES
from growth.providers.hetzner.provider import HetznerProvider
from growth.providers.hetzner.wire import Server, ServerType
from growth.providers.http import Refused
from growth.providers.joining import taints_of
from growth.providers.standin import LOOK_SECONDS, RUNNING, Machine

STAND_IN_LABEL: Final = "growth.dev/hetzner-stand-in"
# Of the advertised memory: what the kernel shows, and what of it a kubelet leaves to pods.
MEMORY_PERCENT: Final = 96
POD_PERCENT: Final = 91


class StandIn(standin.StandIn):
    def __init__(self, api: Api, cloud: HetznerApi, provider: HetznerProvider, *, cluster: str) -> None:
        super().__init__(api, label=STAND_IN_LABEL, cluster=cluster)
        self._cloud = cloud
        self._provider = provider

    async def look(self) -> None:
        nodes = await self._nodes()
        servers = await self._provider.machines.all(within=LOOK_SECONDS / 2)
        types = {kind.name: kind for kind in await self._provider.account.server_types()}
        for server in servers.values():
            if server.status == RUNNING and server.name not in nodes:
                await self._come(server, types)
        for node in nodes.values():
            number = labels.number_of(node.spec.provider_id)
            if number is not None and number not in servers and await self._is_gone(number):
                await self._remove(node)

    async def _is_gone(self, number: int) -> bool:
        try:
            await self._cloud.server(number)
        except Refused as error:
            if error.code == "not_found":
                return True
            raise
        return False

    async def _come(self, server: Server, types: Mapping[str, ServerType]) -> None:
        kind = types.get(server.server_type.name if server.server_type is not None else "")
        claim = await self._claim(server.labels.get(labels.CLAIM, server.name), server.labels.get(labels.CLAIM_UID, ""))
        if kind is not None and claim is not None:
            node_class = await self._provider.readiness.found(claim.spec.node_class_ref)
            pods = node_class.spec.max_pods if node_class is not None else None
            await self._register(machine(server, kind, pods=pods or PODS), taints_of(claim))


def machine(server: Server, kind: ServerType, *, pods: int) -> Machine:
    place = server.location.name if server.location is not None else ""
    memory = int(kind.memory * (1 << 30))
    size = {"cpu": 1000 * kind.cores, "pods": pods, "ephemeral-storage": kind.disk * 10**9}
    return Machine(
        number=server.id,
        provider_id=labels.provider_id(server.id),
        name=server.name,
        type=kind.name,
        architecture=ARCHITECTURES.get(kind.architecture, kind.architecture),
        zone=place,
        capacity={**size, "memory": memory * MEMORY_PERCENT // 100},
        allocatable={**size, "cpu": 1000 * kind.cores - CPU_KEPT, "memory": memory * POD_PERCENT // 100},
        labels={CSI_LOCATION_LABEL: place},
    )
