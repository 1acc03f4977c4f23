"""Stands in for the kubelets of machines that a fake of Linode's API sells: their Nodes come and go with them.

A node of LKE joins by itself, an instance by its user data. A fake's cannot, so this registers a Node for each claimed machine
that runs, under its label, and removes the Node of one that is gone. Such Nodes report a little less memory than is advertised.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final

from growth.api import names
from growth.api.clouds import CloudError
from growth.api.instance_types import InstanceType
from growth.api.karpenter import NODE_CLAIM
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, ConfigError, GateClosed, KubeError, NotFound
from growth.kube.whole import every
from growth.ports import Clock
from growth.providers.http import CallError
from growth.providers.joining import taints_of
from growth.providers.linode import tags, wire
from growth.providers.linode.holdings import INSTANCES
from growth.providers.linode.provider import LinodeProvider
from growth.telemetry.logs import logger
from growth.units.resources import quantities

_log = logger("standin")

STAND_IN_LABEL: Final = "growth.dev/linode-stand-in"
LOOK_SECONDS: Final = 5.0
RUNNING: Final = "running"
# Of the advertised memory: what the kernel shows, and what of it a kubelet leaves to pods.
MEMORY_PERCENT: Final = 96
POD_PERCENT: Final = 93


def selector(cluster: str) -> str:
    """Of the Nodes whose kubelets are played."""
    return f"{STAND_IN_LABEL}={cluster}"


class StandIn:
    """`run` until cancelled; everything that it knows is in the account and the Nodes, so a restart goes on."""

    def __init__(self, api: Api, provider: LinodeProvider, *, cluster: str, clock: Clock) -> None:
        self._api = api
        self._provider = provider
        self._cluster = cluster
        self._clock = clock

    async def run(self) -> None:
        while True:
            try:
                await self.look()
            except (GateClosed, ConfigError):
                raise
            except (KubeError, CallError, CloudError) as error:
                _log.warning("the stand-in for kubelets will try again", error=str(error))
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Once: a Node for each machine that runs and has none, and none for a machine that is gone."""
        held = (await self._provider.parts()).held
        nodes = {node.metadata.name: node for node in await every(self._api, NODE, labels=selector(self._cluster))}
        listed = await held.machines.since(self._clock.monotonic() - LOOK_SECONDS / 2)
        machines = {each.id: each for each in listed}
        types = {kind.name: kind for kind in (await self._provider.catalogue()).types}
        for instance in listed:
            if instance.status == RUNNING and instance.label not in nodes:
                await self._register(instance, types)
        for node in nodes.values():
            number = tags.number_of(node.spec.provider_id)
            if number is not None and number not in machines and await held.instance(number) is None:
                with contextlib.suppress(NotFound):
                    await self._api.delete(NODE, node.metadata.name, uid=node.metadata.uid)

    async def _register(self, instance: wire.Instance, types: Mapping[str, InstanceType]) -> None:
        uid, kind = tags.uid_of(instance.tags), types.get(instance.type)
        machine = await self._provider.get(tags.provider_id(instance.id))
        if kind is None or not machine.claim:
            return
        try:
            claim = await self._api.get(NODE_CLAIM, machine.claim)
        except NotFound:
            return
        if claim.metadata.uid != uid:
            return
        home = (await self._provider.parts()).home
        asked = taints_of(claim) if home.tier == INSTANCES else (*claim.spec.taints, *claim.spec.startup_taints)
        found = {(each.key, each.effect): each for each in asked}
        taints: list[Json] = [
            {"key": each.key, "effect": each.effect, **({"value": each.value} if each.value else {})}
            for each in found.values()
        ]
        with contextlib.suppress(AlreadyExists):
            await self._api.create(NODE, node_body(instance, kind, taints=taints, cluster=self._cluster))


def node_body(instance: wire.Instance, kind: InstanceType, *, taints: list[Json], cluster: str) -> Json:
    """The Node that the machine's kubelet registers, not ready yet."""
    memory = kind.capacity["memory"]
    capacity = {**kind.capacity, "memory": memory * MEMORY_PERCENT // 100}
    allocatable = {**kind.allocatable, "memory": memory * POD_PERCENT // 100}
    number = str(instance.id)
    return {
        "apiVersion": NODE.api_version,
        "kind": NODE.kind,
        "metadata": {
            "name": instance.label,
            "labels": {
                STAND_IN_LABEL: cluster,
                names.HOSTNAME_LABEL: instance.label,
                names.ARCH_LABEL: "amd64",
                names.OS_LABEL: "linux",
                names.INSTANCE_TYPE_LABEL: instance.type,
                names.ZONE_LABEL: instance.region,
                names.REGION_LABEL: instance.region,
            },
        },
        "spec": {"providerID": tags.provider_id(instance.id), "taints": taints},
        "status": {
            "capacity": quantities(capacity),
            "allocatable": quantities(allocatable),
            "addresses": [{"type": "Hostname", "address": instance.label}],
            "nodeInfo": {
                "architecture": "amd64",
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
