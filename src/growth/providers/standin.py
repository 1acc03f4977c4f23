"""Stands in for the kubelets of machines that a fake of a vendor's API sells: their Nodes come and go with them.

A machine of a vendor's joins by itself. A fake's cannot, so a Node is registered for each that runs, as its kubelet would,
and the Node of one that is gone is removed, as a cloud controller manager does. A vendor says which machines there are.
"""

import abc
import asyncio
import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

from growth.api import names
from growth.api.clouds import CloudError
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.placement import Taint
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, ConfigError, GateClosed, KubeError, NotFound
from growth.kube.whole import every
from growth.providers.http import CallError
from growth.telemetry.logs import logger
from growth.units.resources import Amounts, quantities

_log = logger("standin")

LOOK_SECONDS: Final = 5.0
# The state of a machine that is up, as the vendors call it.
RUNNING: Final = "running"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the kubelet of a machine knows of itself. `number` is the vendor's."""

    number: int
    provider_id: str
    name: str
    type: str
    architecture: str
    zone: str
    capacity: Amounts
    allocatable: Amounts
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)


class StandIn(abc.ABC):
    """`run` until cancelled; everything that it knows is in the account and the Nodes, so a restart goes on."""

    def __init__(self, api: Api, *, label: str, cluster: str) -> None:
        self._api = api
        self._mark = {label: cluster}
        self.selector: Final = f"{label}={cluster}"
        """Of the Nodes whose kubelets are played."""

    async def run(self) -> None:
        while True:
            try:
                await self.look()
            except (GateClosed, ConfigError):
                raise
            except (KubeError, CallError, CloudError) as error:
                _log.warning("the stand-in for kubelets will try again", error=str(error))
            await asyncio.sleep(LOOK_SECONDS)

    @abc.abstractmethod
    async def look(self) -> None:
        """Once: a Node for each machine that runs and has none, and none for a machine that is gone."""

    async def _nodes(self) -> Mapping[str, Node]:
        """Those that were registered here, by name."""
        return {node.metadata.name: node for node in await every(self._api, NODE, labels=self.selector)}

    async def _claim(self, name: str, uid: str) -> NodeClaim | None:
        """None where it is gone: then the machine is nobody's, and what it would join with is not known."""
        try:
            claim = await self._api.get(NODE_CLAIM, name)
        except NotFound:
            return None
        return claim if claim.metadata.uid == uid else None

    async def _register(self, machine: Machine, taints: Iterable[Taint]) -> None:
        with contextlib.suppress(AlreadyExists):
            await self._api.create(NODE, node_body(machine, taints, mark=self._mark))

    async def _remove(self, node: Node) -> None:
        with contextlib.suppress(NotFound):
            await self._api.delete(NODE, node.metadata.name, uid=node.metadata.uid)


def node_body(machine: Machine, taints: Iterable[Taint], *, mark: Mapping[str, str]) -> Json:
    """The Node that the machine's kubelet registers, not ready yet."""
    number = str(machine.number)
    return {
        "apiVersion": NODE.api_version,
        "kind": NODE.kind,
        "metadata": {
            "name": machine.name,
            "labels": {
                **mark,
                names.HOSTNAME_LABEL: machine.name,
                names.ARCH_LABEL: machine.architecture,
                names.OS_LABEL: "linux",
                names.INSTANCE_TYPE_LABEL: machine.type,
                names.ZONE_LABEL: machine.zone,
                names.REGION_LABEL: machine.zone,
                **machine.labels,
            },
        },
        "spec": {
            "providerID": machine.provider_id,
            "taints": [
                {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
                for taint in taints
            ],
        },
        "status": {
            "capacity": quantities(machine.capacity),
            "allocatable": quantities(machine.allocatable),
            "addresses": [{"type": "Hostname", "address": machine.name}],
            "nodeInfo": {
                "architecture": machine.architecture,
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
