"""Clouds on which the laws of providers are tried: each with a second witness of what it really holds.

A provider that is added gets a stage here and nothing else: the laws know nothing of it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from growth.api import names
from growth.api.core import CONFIG_MAP, NAMESPACE
from growth.api.crds import all_crds
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json, Kind
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.api.nodeclasses import HETZNER_NODE_CLASS, KWOK_NODE_CLASS
from growth.kube.api import ALWAYS_OPEN, Gate
from growth.kube.errors import GateClosed
from growth.kube.memory import MemoryApi
from growth.ports import Response
from growth.providers.catalogues import builtin
from growth.providers.contract import CloudProvider
from growth.providers.hetzner import keeper as hetzner_keeper
from growth.providers.hetzner.client import DIALECT, HetznerApi
from growth.providers.hetzner.provider import HetznerProvider
from growth.providers.http import Client, Secret
from growth.providers.kwok.faults import FAULTS_CONFIG_MAP
from growth.providers.kwok.kubelets import KubeletSettings
from growth.providers.kwok.provider import KwokProvider
from growth.providers.kwok.registrar import Registrar
from growth.providers.linode import keeper as linode_keeper
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.provider import LinodeProvider
from growth.sim import kernel as sim
from growth.sim.clouds import linode
from growth.sim.clouds.hetzner import FakeSettings, Faults, HetznerFake
from growth.sim.kernel import Kernel
from growth.sim.network import NetworkApi
from growth.sim.ports import Request, SimRandom, SimTransport
from growth.sim.world.cluster import SimCluster

R = TypeVar("R")
Wire = Callable[[Request], Awaitable[Response]]

HOME = "growth"
OURS, THEIRS = "abc123", "fed456"
TOKEN = "wQfFvJ3kpXcY8sLrT2nBzH6mDgA9eUxK"
_CRD: Kind[Json] = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False, dict
)


class Stage(Protocol):
    """What the laws need of a cloud. Times are virtual."""

    @property
    def kernel(self) -> Kernel: ...

    @property
    def node_class(self) -> Kind[Any]:
        """Of which there is one that is ready, `default`."""

    @property
    def types(self) -> tuple[str, str]:
        """Two types of one architecture in one zone, the cheaper first; a claim of the laws allows these."""

    @property
    def zone(self) -> str: ...

    @property
    def scheme(self) -> str:
        """With which its provider IDs begin."""

    def provider(self, *, cluster: str = OURS, gate: Gate = ALWAYS_OPEN) -> CloudProvider:
        """A provider as a process that was just started has it."""

    async def held(self) -> Sequence[str]:
        """The UIDs of the claims of all machines that the cloud really holds, as the cloud's own books say."""

    async def sell_out(self, *types: str) -> None:
        """Of these types there is none left anywhere; of all others there is. Nothing named: of all there is."""

    async def silence(self) -> None:
        """From now on no call is answered."""

    async def lose_answers(self) -> None:
        """From now on calls are performed and no answer comes."""

    async def trouble(self) -> None:
        """From now on much goes wrong by chance."""

    async def heal(self) -> None: ...


def claim(stage: Stage, name: str, *requirements: Json, uid: str = "", **more: Any) -> NodeClaim:
    """A claim as the server would have stored it, for the stage's two types unless it says otherwise."""
    meta = {"name": name, "uid": uid or f"uid-of-{name}", "annotations": more.pop("annotations", {})}
    meta["labels"] = more.pop("labels", {})
    kind = stage.node_class
    reference = {"group": kind.group, "kind": kind.kind, "name": more.pop("node_class", "default")}
    asked = list(requirements) or [need(names.INSTANCE_TYPE_LABEL, *stage.types), need(names.ZONE_LABEL, stage.zone)]
    body = {"metadata": meta, "spec": {"nodeClassRef": reference, "requirements": asked, **more}}
    return msgspec.convert(body, NODE_CLAIM.type)


def need(key: str, *values: str, operator: str = "In") -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


class Closed:
    """The gate of a process that lost its lease."""

    def check(self) -> None:
        raise GateClosed("the lease is too old")


@contextlib.asynccontextmanager
async def _cluster(kernel: Kernel) -> AsyncIterator[SimCluster]:
    cluster = SimCluster(kernel, kubelets=KubeletSettings(heartbeat=60))
    for definition in all_crds():
        await cluster.admin.create(_CRD, definition)
    await asyncio.sleep(1)
    await cluster.admin.create(NAMESPACE, {"metadata": {"name": HOME}})
    yield cluster


class KwokStage:
    node_class = KWOK_NODE_CLASS
    types = ("c-2x-amd64-linux", "c-4x-amd64-linux")
    zone = "test-zone-a"
    scheme = "kwok://"

    def __init__(self, kernel: Kernel, cluster: SimCluster) -> None:
        self.kernel = kernel
        self._cluster = cluster
        self._made = 0

    def provider(self, *, cluster: str = OURS, gate: Gate = ALWAYS_OPEN) -> CloudProvider:
        self._made += 1
        random = SimRandom(self.kernel.seed, f"provider {self._made}")
        api = NetworkApi(
            MemoryApi(self._cluster.server, user="growth-kwok"),
            kernel=self.kernel,
            random=random.stream("network"),
            gate=gate,
        )
        return KwokProvider(
            api,
            catalogue=builtin("kwok"),
            cluster=cluster,
            namespace=HOME,
            clock=self._cluster.clock,
            random=random,
        )

    async def start(self, **spec: Any) -> None:
        await self._cluster.admin.create(KWOK_NODE_CLASS, {"metadata": {"name": "default"}, "spec": spec})
        for number, cluster in enumerate((OURS, THEIRS)):
            registrar = Registrar(
                MemoryApi(self._cluster.server, user="growth-kwok"),
                cluster=cluster,
                namespace=HOME,
                clock=self._cluster.clock,
                random=SimRandom(self.kernel.seed, f"registrar {number}"),
            )
            self.kernel.create_task(registrar.run(), name="registrar")

    async def held(self) -> Sequence[str]:
        found = (await self._cluster.admin.list(CONFIG_MAP, namespace=HOME)).items
        return sorted(item.data["claimUID"] for item in found if item.metadata.name.startswith("kwok-"))

    async def sell_out(self, *types: str) -> None:
        await self._fault(noCapacity="\n".join(f"{each}/*/*" for each in types))

    async def silence(self) -> None:
        await self._fault(unavailable="true")

    async def lose_answers(self) -> None:
        await self._fault(lostAnswers="1")

    async def trouble(self) -> None:
        await self._fault(lostAnswers="0.3")

    async def heal(self) -> None:
        await self._fault()

    async def _fault(self, **data: str) -> None:
        """Two seconds later everybody knows."""
        admin = self._cluster.admin
        listed = await admin.list(CONFIG_MAP, namespace=HOME, fields=f"metadata.name={FAULTS_CONFIG_MAP}")
        if listed.items:
            await admin.delete(CONFIG_MAP, FAULTS_CONFIG_MAP, namespace=HOME)
        await admin.create(CONFIG_MAP, {"metadata": {"name": FAULTS_CONFIG_MAP}, "data": data}, namespace=HOME)
        await asyncio.sleep(2)


class HetznerStage:
    node_class = HETZNER_NODE_CLASS
    types = ("cx23", "cx33")
    zone = "nbg1"
    scheme = "hcloud://"

    def __init__(self, kernel: Kernel, cluster: SimCluster) -> None:
        self.kernel = kernel
        self._cluster = cluster
        self._made = 0
        self.fake = HetznerFake(
            clock=cluster.clock,
            random=SimRandom(kernel.seed, "hetzner"),
            settings=FakeSettings(tokens=frozenset({TOKEN})),
        )
        self.admin = cluster.admin
        self.clients: list[Client] = []

    def provider(self, *, cluster: str = OURS, gate: Gate = ALWAYS_OPEN) -> HetznerProvider:
        self._made += 1
        random = SimRandom(self.kernel.seed, f"provider {self._made}")
        client = Client(
            DIALECT,
            endpoint="https://hetzner.test/v1",
            token=Secret(TOKEN),
            transport=SimTransport(self.fake, kernel=self.kernel, random=random.stream("transport")),
            clock=self._cluster.clock,
            random=random,
            gate=gate,
        )
        self.clients.append(client)
        return HetznerProvider(
            MemoryApi(self._cluster.server, user="growth"),
            HetznerApi(client),
            cluster=cluster,
            namespace=HOME,
            clock=self._cluster.clock,
            random=random,
        )

    def keeper(self, provider: HetznerProvider) -> hetzner_keeper.Keeper:
        random = SimRandom(self.kernel.seed, f"keeper {self._made}")
        return hetzner_keeper.Keeper(self.admin, provider, clock=self._cluster.clock, random=random)

    async def start(self, **spec: Any) -> None:
        await self._cluster.admin.create(HETZNER_NODE_CLASS, {"metadata": {"name": "default"}, "spec": spec})

    async def held(self) -> Sequence[str]:
        return sorted(each.labels.get("growth.dev/claim-uid", "") for each in self.fake.ledger.standing)

    async def sell_out(self, *types: str) -> None:
        self.fake.market.stock("*", "*", None)
        for each in types:
            self.fake.market.stock(each, "*", 0)

    async def silence(self) -> None:
        self.fake.faults = Faults(lost_request=1.0)

    async def lose_answers(self) -> None:
        self.fake.faults = Faults(lost_answer=1.0)

    async def trouble(self) -> None:
        self.fake.faults = Faults(
            rate_limit=0.05,
            server_error=0.05,
            bad_gateway=0.05,
            half_done=0.05,
            lost_request=0.05,
            lost_answer=0.05,
            conflict=0.05,
            slow=0.02,
            late_failure=0.1,
        )

    async def heal(self) -> None:
        self.fake.faults = Faults()


class LkeStage:
    """What two processes bought too much is collected after five minutes: `held` waits for that."""

    node_class = LINODE_NODE_CLASS
    types = ("g6-standard-2", "g6-standard-4")
    zone = "us-east"
    scheme = "linode://"
    tier = linode.STANDARD

    def __init__(self, kernel: Kernel, cluster: SimCluster) -> None:
        self.kernel = kernel
        self._cluster = cluster
        self.fake = linode.LinodeFake(
            clock=cluster.clock,
            random=SimRandom(kernel.seed, "linode"),
            settings=linode.FakeSettings(tier=self.tier, cluster=OURS, tokens=frozenset({TOKEN})),
        )
        self.fake.account.add_cluster(THEIRS, region=self.zone, tier=self.tier)
        self.admin = cluster.admin
        self.clock = cluster.clock
        self.clouds: list[LinodeApi] = []
        self._collectors: list[LinodeProvider] = []

    def provider(
        self,
        *,
        cluster: str = OURS,
        gate: Gate = ALWAYS_OPEN,
        through: Wire | None = None,
        endpoint: str = "https://linode.test/v4beta",
    ) -> LinodeProvider:
        random = SimRandom(self.kernel.seed, f"provider {len(self.clouds)}")
        cloud = LinodeApi(
            endpoint=endpoint,
            token=Secret(TOKEN),
            transport=SimTransport(through or self.fake, kernel=self.kernel, random=random.stream("transport")),
            clock=self._cluster.clock,
            random=random,
            gate=gate,
        )
        self.clouds.append(cloud)
        return LinodeProvider(
            MemoryApi(self._cluster.server, user="growth"),
            cloud,
            cluster=cluster,
            lke_cluster=self.where(cluster)[0],
            region=self.where(cluster)[1],
            namespace=HOME,
            clock=self._cluster.clock,
            random=random,
        )

    def where(self, cluster: str) -> tuple[str, str]:
        """The cluster at Linode, or a region."""
        return cluster, ""

    def keeper(self, provider: LinodeProvider) -> linode_keeper.Keeper:
        """Of the provider that was made last."""
        random = SimRandom(self.kernel.seed, f"keeper {len(self.clouds)}")
        return linode_keeper.Keeper(self.admin, self.clouds[-1], provider, clock=self.clock, random=random)

    async def start(self, **spec: Any) -> None:
        await self._cluster.admin.create(LINODE_NODE_CLASS, {"metadata": {"name": "default"}, "spec": spec})

    def unclaimed(self) -> int:
        """Machines without a claim, and what is on its way to be one."""
        self.fake.advance()
        count = sum(pool.count for pool in self.fake.account.pools.values())
        nodes = {node.instance for pool in self.fake.account.pools.values() for node in pool.nodes}
        claimed = [each for each in self.fake.machines() if _tag(each.tags, "growth.dev/uid") and each.id in nodes]
        going = [
            each for each in self.fake.machines() if not _tag(each.tags, "growth.dev/uid") and each.id not in nodes
        ]
        return count - len(claimed) + len(going)

    async def held(self) -> Sequence[str]:
        if self.unclaimed() and not self._collectors:
            self._collectors = [self.provider(), self.provider(cluster=THEIRS)]
        for _ in range(20):
            if not self.unclaimed():
                break
            await asyncio.sleep(30)
            for each in self._collectors:
                await each.collect()
            await asyncio.sleep(30)
        standing = {each.server for each in self.fake.ledger.standing}
        machines = self.fake.machines()
        assert {each.id for each in machines} == standing
        return sorted(_tag(each.tags, "growth.dev/uid") for each in machines)

    async def sell_out(self, *types: str) -> None:
        self.fake.market.stock("*", "*", None)
        for each in types:
            self.fake.market.stock(each, "*", 0)

    async def silence(self) -> None:
        self.fake.faults = linode.Faults(lost_request=1.0)

    async def lose_answers(self) -> None:
        self.fake.faults = linode.Faults(lost_answer=1.0)

    async def trouble(self) -> None:
        self.fake.faults = linode.Faults(
            rate_limit=0.05,
            server_error=0.05,
            bad_gateway=0.05,
            half_done=0.05,
            lost_request=0.05,
            lost_answer=0.05,
            busy=0.05,
            slow=0.02,
            late_id=0.1,
            stuck=0.02,
            late_tags=0.1,
            partial=0.02,
            unavailable=0.02,
        )

    async def heal(self) -> None:
        self.fake.faults = linode.Faults()


class LkeEnterpriseStage(LkeStage):
    tier = linode.ENTERPRISE


class LinodeInstanceStage(LkeStage):
    """Machines that are no nodes of LKE."""

    def where(self, cluster: str) -> tuple[str, str]:
        del cluster
        return "", self.zone

    def unclaimed(self) -> int:
        self.fake.advance()
        return 0


def _tag(tags: Sequence[str], key: str) -> str:
    return next((each.removeprefix(f"{key}:") for each in tags if each.startswith(f"{key}:")), "")


AnyStage = KwokStage | HetznerStage | LkeStage
STAGES: Mapping[str, type[AnyStage]] = {
    "kwok": KwokStage,
    "hetzner": HetznerStage,
    "lke": LkeStage,
    "lke-enterprise": LkeEnterpriseStage,
    "linode-instances": LinodeInstanceStage,
}


def on(cloud: str, body: Callable[[Any], Awaitable[R]], *, seed: int = 1, **spec: Any) -> R:
    """Runs `body` with the stage of that cloud; `spec` is of its node class `default`."""

    async def main(kernel: Kernel) -> R:
        async with _cluster(kernel) as cluster:
            stage = STAGES[cloud](kernel, cluster)
            await stage.start(**spec)
            return await body(stage)

    return sim.run(main, seed=seed, limit_seconds=200_000).value
