"""Who sells the demo's machines: KWOK, or a vendor's provider as `growth run` has it, at a fake of its API in this process.

    growth run's provider ── its client ── Line ── the fake of `growth.sim.clouds`

The fakes boot machines in a few seconds, and their prices are those of the built-in lists: what `growth top` and `growth
plan` say of the cluster from outside is then what was paid.
"""

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Final, Literal, Protocol

from growth.api import names
from growth.api.kinds import Json
from growth.ports import Clock, Random, Response, TransportError
from growth.providers.catalogues import hetzner, linode
from growth.sim.clouds import hetzner as fake_hetzner
from growth.sim.clouds import linode as fake_linode
from growth.sim.clouds.ledger import Ledger
from growth.sim.ports import Request

Provider = Literal["kwok", "hetzner", "linode", "linode-enterprise"]

# No name is looked up and no connection made: that it is plain HTTP tells the provider that no machine will boot.
ENDPOINT: Final = "http://127.0.0.1"
# One way through a network.
LATENCY_SECONDS: Final = (0.01, 0.05)
# A cloud takes half a minute and more; who watches has less.
HETZNER_TIMES: Final = fake_hetzner.Times(create=(1.0, 2.0), start=(0.3, 0.6), delete=(1.0, 2.0))
LINODE_TIMES: Final = fake_linode.Times(instance=(0.3, 0.8), listed=(2.0, 4.0), boot=(1.0, 2.0), delete=(1.0, 2.0))


class Fake(Protocol):
    """A vendor's API as a function, and its books."""

    @property
    def ledger(self) -> Ledger: ...

    async def __call__(self, request: Request, /) -> Response: ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seller:
    """`cloud` is whose types and prices they are, `batch` how many of each type the growth pool may have."""

    cloud: str
    settings: Mapping[str, str]
    node_class: Json
    batch: Mapping[str, int]
    tier: str = ""

    @property
    def reference(self) -> Json:
        return {
            "group": str(self.node_class["apiVersion"]).partition("/")[0],
            "kind": self.node_class["kind"],
            "name": self.node_class["metadata"]["name"],
        }

    def fake(self, *, clock: Clock, random: Random) -> Fake | None:
        """A new and empty account; None where machines are not sold by an API."""
        match self.settings["provider"]:
            case "hetzner":
                settings = fake_hetzner.FakeSettings(times=HETZNER_TIMES)
                return fake_hetzner.HetznerFake(clock=clock, random=random, settings=settings)
            case "linode":
                return _linode(self.tier, clock=clock, random=random)
            case _:
                return None


def _linode(tier: str, *, clock: Clock, random: Random) -> fake_linode.LinodeFake:
    settings = fake_linode.FakeSettings(tier=tier, times=LINODE_TIMES)
    return fake_linode.LinodeFake(clock=clock, random=random, settings=settings)


class Line:
    """`ports.Transport` to a fake in this process."""

    def __init__(self, fake: Fake, random: Random) -> None:
        self._fake = fake
        self._random = random

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, timeout_seconds: float
    ) -> Response:
        try:
            async with asyncio.timeout(timeout_seconds):
                await asyncio.sleep(self._random.uniform(*LATENCY_SECONDS))
                return await self._fake(Request(method, url, dict(headers), body))
        except TimeoutError as error:
            raise TransportError(f"{method} {url}: no answer in {timeout_seconds:g} s") from error


def _lke(tier: str) -> Seller:
    return Seller(
        cloud=linode.CLOUD,
        settings={
            "provider": "linode",
            "apiEndpoint": f"{ENDPOINT}/v4beta",
            "linodeCluster": fake_linode.FakeSettings().cluster,
        },
        node_class={
            "apiVersion": f"{names.LINODE_CLASS_GROUP}/v1alpha1",
            "kind": "LinodeNodeClass",
            "metadata": {"name": "default"},
            "spec": {"tags": ["demo:growth"]},
        },
        batch={"g6-dedicated-4": 4, "g6-dedicated-8": 2},
        tier=tier,
    )


SELLERS: Final[Mapping[Provider, Seller]] = {
    "kwok": Seller(
        cloud=hetzner.CLOUD,
        settings={"provider": "kwok", "kwokCatalogue": hetzner.CLOUD},
        node_class={
            "apiVersion": "karpenter.kwok.sh/v1alpha1",
            "kind": "KWOKNodeClass",
            "metadata": {"name": "default"},
            "spec": {"nodeRegistrationDelay": "2s"},
        },
        batch={"CAX21": 4, "CAX31": 2},
    ),
    "hetzner": Seller(
        cloud=hetzner.CLOUD,
        settings={"provider": "hetzner", "apiEndpoint": f"{ENDPOINT}/v1"},
        node_class={
            "apiVersion": "growth.dev/v1alpha1",
            "kind": "HetznerNodeClass",
            "metadata": {"name": "default"},
            # An address costs extra, and the built-in list is without.
            "spec": {"publicNet": {"ipv4": False}},
        },
        batch={"CAX21": 4, "CAX31": 2},
    ),
    "linode": _lke(fake_linode.STANDARD),
    "linode-enterprise": _lke(fake_linode.ENTERPRISE),
}
