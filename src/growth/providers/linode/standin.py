"""The stand-in for kubelets of machines that a fake of Linode's API sells.

A node of LKE joins by itself, an instance by its user data. Nodes are registered for claimed machines, under their labels,
and report a little less memory than is advertised.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from growth.api.instance_types import InstanceType
from growth.api.placement import Taint
from growth.kube.api import Api
from growth.ports import Clock
from growth.providers import standin
from growth.providers.joining import taints_of
from growth.providers.linode import tags, wire
from growth.providers.linode.pools import Pools
from growth.providers.linode.provider import LinodeProvider
from growth.providers.standin import LOOK_SECONDS, RUNNING, Machine

STAND_IN_LABEL: Final = "growth.dev/linode-stand-in"
# Of the advertised memory: what the kernel shows, and what of it a kubelet leaves to pods.
MEMORY_PERCENT: Final = 96
POD_PERCENT: Final = 93


class StandIn(standin.StandIn):
    def __init__(self, api: Api, provider: LinodeProvider, *, cluster: str, clock: Clock) -> None:
        super().__init__(api, label=STAND_IN_LABEL, cluster=cluster)
        self._provider = provider
        self._clock = clock

    async def look(self) -> None:
        held = (await self._provider.parts()).held
        nodes = await self._nodes()
        listed = await held.machines.since(self._clock.monotonic() - LOOK_SECONDS / 2)
        machines = {each.id: each for each in listed}
        types = {kind.name: kind for kind in (await self._provider.catalogue()).types}
        for instance in listed:
            if instance.status == RUNNING and instance.label not in nodes:
                await self._come(instance, types)
        for node in nodes.values():
            number = tags.number_of(node.spec.provider_id)
            if number is not None and number not in machines and await held.instance(number) is None:
                await self._remove(node)

    async def _come(self, instance: wire.Instance, types: Mapping[str, InstanceType]) -> None:
        kind, bought = types.get(instance.type), await self._provider.get(tags.provider_id(instance.id))
        if kind is None or not bought.claim:
            return
        claim = await self._claim(bought.claim, tags.uid_of(instance.tags))
        if claim is None:
            return
        parts = await self._provider.parts()
        asked = await self._of_pool(parts.held, instance) if isinstance(parts.held, Pools) else taints_of(claim)
        await self._register(machine(instance, kind), asked)

    async def _of_pool(self, pools: Pools, instance: wire.Instance) -> Sequence[Taint]:
        """LKE gives a node its pool's taints; of its claim it knows nothing. An enterprise pool lists its nodes late."""
        for pool in await pools.pools.since(self._clock.monotonic() - LOOK_SECONDS / 2):
            if instance.label.startswith(f"lke{instance.lke_cluster_id}-{pool.id}-"):
                return [Taint(key=each.key, value=each.value or "", effect=each.effect) for each in pool.taints]
        return ()


def machine(instance: wire.Instance, kind: InstanceType) -> Machine:
    memory = kind.capacity["memory"]
    return Machine(
        number=instance.id,
        provider_id=tags.provider_id(instance.id),
        name=instance.label,
        type=instance.type,
        architecture="amd64",
        zone=instance.region,
        capacity={**kind.capacity, "memory": memory * MEMORY_PERCENT // 100},
        allocatable={**kind.allocatable, "memory": memory * POD_PERCENT // 100},
    )
