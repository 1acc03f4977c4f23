"""The Hetzner provider on the fake of Hetzner's API, in virtual time, and claims in one line each."""

import asyncio
import base64
import dataclasses
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from growth.api import names
from growth.api.clouds import CloudMachine, MachineNotFound
from growth.api.core import NAMESPACE, SECRET
from growth.api.crds import all_crds
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json, Kind
from growth.api.nodeclasses import HETZNER_NODE_CLASS
from growth.kube.api import ALWAYS_OPEN, Api, Gate
from growth.kube.memory import MemoryApi
from growth.kube.memory.server import MemoryServer
from growth.ports import Response
from growth.providers.hetzner.client import DIALECT, HetznerApi
from growth.providers.hetzner.provider import HetznerProvider
from growth.providers.http import Client, Secret
from growth.sim import kernel as sim
from growth.sim.clouds.hetzner import FakeSettings, HetznerFake
from growth.sim.kernel import Kernel
from growth.sim.ports import Request, SimClock, SimRandom, SimTransport

R = TypeVar("R")

CLUSTER = "abc123"
HOME = "growth"
TOKEN = "wQfFvJ3kpXcY8sLrT2nBzH6mDgA9eUxK"
ENDPOINT = "https://hetzner.test/v1"

_CRD: Kind[Json] = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False, dict
)


def claim(
    name: str, *types: str, uid: str = "", node_class: str = "default", zones: tuple[str, ...] = (), **more: Any
) -> NodeClaim:
    """A claim of these types as the server would have stored it; `spec` fields, `annotations` and `labels` by name."""
    meta = {
        "name": name,
        "uid": uid or f"uid-of-{name}",
        "annotations": more.pop("annotations", {}),
        "labels": more.pop("labels", {}),
    }
    reference = {"group": HETZNER_NODE_CLASS.group, "kind": HETZNER_NODE_CLASS.kind, "name": node_class}
    requirements = [{"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": list(types)}] if types else []
    if zones:
        requirements.append({"key": names.ZONE_LABEL, "operator": "In", "values": list(zones)})
    spec = {"nodeClassRef": reference, "requirements": requirements, **more}
    return msgspec.convert({"metadata": meta, "spec": spec}, NODE_CLAIM.type)


def launched(of: NodeClaim, machine: CloudMachine) -> NodeClaim:
    """The claim as it is once its machine is known."""
    return msgspec.structs.replace(of, status=msgspec.structs.replace(of.status, provider_id=machine.provider_id))


@dataclasses.dataclass
class HetznerWorld:
    """One project, one cluster, and a provider as a process would have it."""

    kernel: Kernel
    fake: HetznerFake
    server: MemoryServer
    admin: MemoryApi
    provider: HetznerProvider
    cloud: HetznerApi

    def new_provider(
        self,
        *,
        cluster: str = CLUSTER,
        api: Api | None = None,
        gate: Gate = ALWAYS_OPEN,
        seed: str = "provider",
        token: Secret | None = None,
    ) -> HetznerProvider:
        """As after a restart: it remembers nothing."""
        own = api or self.admin
        return new_provider(self.kernel, self.fake, own, cluster=cluster, gate=gate, seed=seed, token=token)[0]

    async def make_class(self, name: str = "default", **spec: Any) -> None:
        await self.admin.create(HETZNER_NODE_CLASS, {"metadata": {"name": name}, "spec": spec})

    async def make_secret(self, name: str, **values: str) -> None:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        await self.admin.create(SECRET, {"metadata": {"name": name}, "data": data}, namespace=HOME)

    async def gone(self, which: NodeClaim, *, within: float = 120.0, provider: HetznerProvider | None = None) -> bool:
        """Asks for the deletion until the cloud says that there is no such machine."""
        for _ in range(int(within / 5)):
            try:
                await (provider or self.provider).delete(which)
            except MachineNotFound:
                return True
            await asyncio.sleep(5)
        return False

    @property
    def bought(self) -> list[str]:
        """The names of all machines that were ever bought."""
        return [each.name for each in self.fake.ledger.purchases]

    @property
    def standing(self) -> list[str]:
        return sorted(server.name for server in self.fake.machines())


def new_provider(
    kernel: Kernel,
    fake: Callable[[Request], Coroutine[Any, Any, Response]] | HetznerFake,
    api: Api,
    *,
    cluster: str = CLUSTER,
    gate: Gate = ALWAYS_OPEN,
    seed: str = "provider",
    token: Secret | None = None,
) -> tuple[HetznerProvider, HetznerApi]:
    random, clock = SimRandom(kernel.seed, seed), SimClock(kernel)
    client = Client(
        DIALECT,
        endpoint=ENDPOINT,
        token=token or Secret(TOKEN),
        transport=SimTransport(fake, kernel=kernel, random=random.stream("network")),
        clock=clock,
        random=random.stream("client"),
        gate=gate,
    )
    cloud = HetznerApi(client)
    provider = HetznerProvider(
        api, cloud, cluster=cluster, namespace=HOME, clock=clock, random=random.stream("provider")
    )
    return provider, cloud


def in_hetzner(
    body: Callable[[HetznerWorld], Coroutine[Any, Any, R]],
    *,
    seed: int = 1,
    settings: FakeSettings | None = None,
    node_class: Json | None = None,
    limit_seconds: float = 1_000_000,
) -> R:
    """Runs `body` with a HetznerNodeClass `default` of this spec; None makes it empty."""

    async def main(kernel: Kernel) -> R:
        random, clock = SimRandom(kernel.seed, "world"), SimClock(kernel)
        server = MemoryServer(clock, random.stream("server"))
        admin = MemoryApi(server, user="admin")
        for definition in all_crds():
            await admin.create(_CRD, definition)
        await asyncio.sleep(1)
        await admin.create(NAMESPACE, {"metadata": {"name": HOME}})
        fake = HetznerFake(clock=clock, random=random.stream("hetzner"), settings=settings)
        provider, cloud = new_provider(kernel, fake, admin)
        world = HetznerWorld(kernel, fake, server, admin, provider, cloud)
        await world.make_class(**(node_class or {}))
        return await body(world)

    return sim.run(main, seed=seed, limit_seconds=limit_seconds).value
