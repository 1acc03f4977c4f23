"""A KWOK cloud in a small simulated cluster, and claims in one line each."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from growth.api.core import CONFIG_MAP, NAMESPACE
from growth.api.crds import all_crds
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json, Kind
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.kube.api import Api
from growth.kube.memory import MemoryApi
from growth.providers.catalogues import builtin
from growth.providers.kwok.faults import FAULTS_CONFIG_MAP
from growth.providers.kwok.kubelets import KubeletSettings
from growth.providers.kwok.provider import KwokProvider
from growth.providers.kwok.registrar import Registrar, RegistrarSettings
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.ports import SimRandom
from growth.sim.world.cluster import SimCluster

R = TypeVar("R")

CLUSTER = "abc123"
HOME = "growth"

_CRD: Kind[Json] = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False, dict
)


def claim(name: str, *requirements: Json, uid: str = "", **more: Any) -> NodeClaim:
    """A claim as the server would have stored it; `spec` fields and `annotations` by name."""
    meta = {"name": name, "uid": uid or f"uid-of-{name}", "annotations": more.pop("annotations", {})}
    reference = {"group": KWOK_NODE_CLASS.group, "kind": KWOK_NODE_CLASS.kind, "name": "default"}
    spec = {"nodeClassRef": reference, "requirements": list(requirements), **more}
    return msgspec.convert({"metadata": meta, "spec": spec}, NODE_CLAIM.type)


def need(key: str, *values: str, operator: str = "In") -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


class KwokWorld:
    """The provider as a process would have it, and the cloud's own half, which survives that process."""

    def __init__(self, cluster: SimCluster, kernel: Kernel, catalogue: Catalogue, settings: RegistrarSettings) -> None:
        self.cluster = cluster
        self.admin = cluster.admin
        self._kernel = kernel
        self._catalogue = catalogue
        self._settings = settings
        self.provider = self.new_provider()
        self.registrar = self.new_registrar()

    def new_provider(self, api: Api | None = None) -> KwokProvider:
        return KwokProvider(
            api or MemoryApi(self.cluster.server, user="growth-kwok"),
            catalogue=self._catalogue,
            cluster=CLUSTER,
            namespace=HOME,
            clock=self.cluster.clock,
            random=SimRandom(self._kernel.seed, "provider"),
        )

    def new_registrar(self) -> Registrar:
        return Registrar(
            MemoryApi(self.cluster.server, user="growth-kwok"),
            cluster=CLUSTER,
            namespace=HOME,
            clock=self.cluster.clock,
            random=SimRandom(self._kernel.seed, "registrar"),
            settings=self._settings,
        )

    def start(self, registrar: Registrar | None = None) -> asyncio.Task[None]:
        return self._kernel.create_task((registrar or self.registrar).run(), name="registrar")

    async def fault(self, **data: str) -> None:
        """What goes wrong from now on; nothing given: nothing. Two seconds later everybody knows."""
        body: Json = {"metadata": {"name": FAULTS_CONFIG_MAP}, "data": data}
        listed = await self.admin.list(CONFIG_MAP, namespace=HOME, fields=f"metadata.name={FAULTS_CONFIG_MAP}")
        if listed.items:
            await self.admin.delete(CONFIG_MAP, FAULTS_CONFIG_MAP, namespace=HOME)
        await self.admin.create(CONFIG_MAP, body, namespace=HOME)
        await asyncio.sleep(2)


def in_kwok(
    body: Callable[[KwokWorld], Coroutine[Any, Any, R]],
    *,
    seed: int = 1,
    delay: str = "5s",
    catalogue: Catalogue | None = None,
    settings: RegistrarSettings | None = None,
    registrar: bool = True,
) -> R:
    """Runs `body` in a cluster with a KWOKNodeClass `default`; machines register after `delay`."""

    async def main(kernel: Kernel) -> R:
        cluster = SimCluster(kernel, kubelets=KubeletSettings(heartbeat=10))
        cluster.start()
        for definition in all_crds():
            await cluster.admin.create(_CRD, definition)
        await asyncio.sleep(1)
        await cluster.admin.create(NAMESPACE, {"metadata": {"name": HOME}})
        node_class: Json = {"metadata": {"name": "default"}, "spec": {"nodeRegistrationDelay": delay}}
        await cluster.admin.create(KWOK_NODE_CLASS, node_class)
        world = KwokWorld(cluster, kernel, catalogue or builtin("kwok"), settings or RegistrarSettings())
        if registrar:
            world.start()
        return await body(world)

    return sim.run(main, seed=seed, limit_seconds=100_000).value
