"""Stands in for the kubelets of machines that a fake of Hetzner's API sells: their Nodes come and go with them.

A machine of the vendor's joins by its user data. A fake's cannot, so this registers a Node for each that runs, as its kubelet
would with that user data, and removes the Node of one that is gone, as a cloud controller manager does. Such Nodes report a
little less memory than is advertised, as real ones do.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final

from growth.api import names
from growth.api.karpenter import NODE_CLAIM
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, ConfigError, GateClosed, KubeError, NotFound
from growth.kube.whole import every
from growth.ports import Clock
from growth.providers.catalogues.hetzner import CPU_KEPT, CSI_LOCATION_LABEL, PODS
from growth.providers.hetzner import labels
from growth.providers.hetzner.client import HetznerApi
from growth.providers.hetzner.offerings import ARCHITECTURES
from growth.providers.hetzner.provider import HetznerProvider
from growth.providers.hetzner.wire import Server, ServerType
from growth.providers.http import CallError, Refused
from growth.providers.joining import taints_of
from growth.telemetry.logs import logger
from growth.units.resources import quantities

_log = logger("standin")

STAND_IN_LABEL: Final = "growth.dev/hetzner-stand-in"
LOOK_SECONDS: Final = 5.0
RUNNING: Final = "running"
# Of the advertised memory: what the kernel shows, and what of it a kubelet leaves to pods.
MEMORY_PERCENT: Final = 96
POD_PERCENT: Final = 91


def selector(cluster: str) -> str:
    """Of the Nodes whose kubelets are played."""
    return f"{STAND_IN_LABEL}={cluster}"


class StandIn:
    """`run` until cancelled; everything that it knows is in the account and the Nodes, so a restart goes on."""

    def __init__(self, api: Api, cloud: HetznerApi, provider: HetznerProvider, *, cluster: str, clock: Clock) -> None:
        self._api = api
        self._cloud = cloud
        self._provider = provider
        self._cluster = cluster
        self._clock = clock

    async def run(self) -> None:
        while True:
            try:
                await self.look()
            except (GateClosed, ConfigError):
                raise
            except (KubeError, CallError) as error:
                _log.warning("the stand-in for kubelets will try again", error=str(error))
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Once: a Node for each machine that runs and has none, and none for a machine that is gone."""
        nodes = {node.metadata.name: node for node in await every(self._api, NODE, labels=selector(self._cluster))}
        servers = await self._provider.machines.all(within=LOOK_SECONDS / 2)
        types = {kind.name: kind for kind in await self._provider.account.server_types()}
        for server in servers.values():
            if server.status == RUNNING and server.name not in nodes:
                await self._register(server, types)
        for node in nodes.values():
            number = labels.number_of(node.spec.provider_id)
            if number is not None and number not in servers and await self._is_gone(number):
                with contextlib.suppress(NotFound):
                    await self._api.delete(NODE, node.metadata.name, uid=node.metadata.uid)

    async def _is_gone(self, number: int) -> bool:
        try:
            await self._cloud.server(number)
        except Refused as error:
            if error.code == "not_found":
                return True
            raise
        return False

    async def _register(self, server: Server, types: Mapping[str, ServerType]) -> None:
        kind = types.get(server.server_type.name if server.server_type is not None else "")
        try:
            claim = await self._api.get(NODE_CLAIM, server.labels.get(labels.CLAIM, server.name))
        except NotFound:
            return  # nobody's machine: its user data is not known
        if kind is None or claim.metadata.uid != server.labels.get(labels.CLAIM_UID):
            return
        taints: list[Json] = [
            {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
            for taint in taints_of(claim)
        ]
        with contextlib.suppress(AlreadyExists):
            await self._api.create(NODE, node_body(server, kind, taints=taints, cluster=self._cluster))


def node_body(server: Server, kind: ServerType, *, taints: list[Json], cluster: str) -> Json:
    """The Node that the machine's kubelet registers, not ready yet."""
    place = server.location.name if server.location is not None else ""
    memory = int(kind.memory * (1 << 30))
    size = {"cpu": 1000 * kind.cores, "pods": PODS, "ephemeral-storage": kind.disk * 10**9}
    capacity = {**size, "memory": memory * MEMORY_PERCENT // 100}
    allocatable = {**size, "cpu": 1000 * kind.cores - CPU_KEPT, "memory": memory * POD_PERCENT // 100}
    architecture = ARCHITECTURES.get(kind.architecture, kind.architecture)
    number = str(server.id)
    return {
        "apiVersion": NODE.api_version,
        "kind": NODE.kind,
        "metadata": {
            "name": server.name,
            "labels": {
                STAND_IN_LABEL: cluster,
                names.HOSTNAME_LABEL: server.name,
                names.ARCH_LABEL: architecture,
                names.OS_LABEL: "linux",
                names.INSTANCE_TYPE_LABEL: kind.name,
                names.ZONE_LABEL: place,
                names.REGION_LABEL: place,
                CSI_LOCATION_LABEL: place,
            },
        },
        "spec": {"providerID": labels.provider_id(server.id), "taints": taints},
        "status": {
            "capacity": quantities(capacity),
            "allocatable": quantities(allocatable),
            "addresses": [{"type": "Hostname", "address": server.name}],
            "nodeInfo": {
                "architecture": architecture,
                "operatingSystem": "linux",
                "machineID": number,
                "systemUUID": number,
                "bootID": number,
                "kernelVersion": "simulated",
                "osImage": "simulated",
                "containerRuntimeVersion": "simulated",
                "kubeletVersion": "simulated",
                "kubeProxyVersion": "",
            },
        },
    }
