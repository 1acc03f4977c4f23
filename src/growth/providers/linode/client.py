"""Calls of Linode's API: one method a call, lists read whole.

The vendor counts lists, purchases of instances and all other calls apart, each with headers of its own; so each has its
budget here. What has no unique name (pools) and what takes effect by its moment (a pool's count, an instance's tags) is
never repeated by itself: its caller looks again first.

It is v4beta that is asked, also where an address names v4, as the vendor's pages do: tiers of LKE are told nowhere else.
"""

import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from growth.api.decoding import decode
from growth.kube.api import ALWAYS_OPEN, Gate
from growth.ports import Clock, Random, Transport
from growth.providers.http import (
    Client,
    ClientSettings,
    Dialect,
    Journal,
    Problem,
    RateHeaders,
    Refused,
    Secret,
    Unanswered,
)
from growth.providers.linode import wire
from growth.providers.linode.failures import Meaning, meaning

T = TypeVar("T")
P = TypeVar("P", bound="_Paged")

STABLE: Final = "v4"
BETA: Final = "v4beta"
ENDPOINT: Final = f"https://api.linode.com/{BETA}"
PER_PAGE: Final = 500
MOST_PAGES: Final = 500
# How often a list is read that changed while it was.
READINGS: Final = 3
SETTINGS: Final = ClientSettings(deadline_seconds=20.0, attempt_seconds=10.0, attempts=4)


class _Paged(Protocol):
    @property
    def pages(self) -> int: ...

    @property
    def results(self) -> int: ...


def problem(body: bytes) -> Problem | None:
    """What an error of the vendor's says; None where the body is none. The field that it blames stands for a code."""
    try:
        failures = decode(body, wire.Envelope).errors
    except msgspec.DecodeError:
        return None
    if not failures:
        return None
    return Problem(code=failures[0].field or "api", message="; ".join(each.reason for each in failures))


def transient(refused: Refused) -> bool:
    return meaning(refused) is Meaning.TRANSIENT


DIALECT: Final = Dialect(
    name="linode",
    problem=problem,
    transient=transient,
    rate_headers=RateHeaders(
        limit="x-ratelimit-limit", remaining="x-ratelimit-remaining", reset="x-ratelimit-reset", steady=False
    ),
    request_id_header="x-request-id",
)


def in_beta(endpoint: str) -> str:
    """The address with v4beta in place of v4, or of no path. Another path is somebody's own, and stays as it is."""
    parts = urllib.parse.urlsplit(endpoint.rstrip("/"))
    before, _, last = parts.path.rpartition("/")
    if parts.path and last != STABLE:
        return endpoint.rstrip("/")
    return parts._replace(path=f"{before}/{BETA}").geturl()


class LinodeApi:
    """Raises `growth.providers.http.CallError`. `is_beta`: whether the address says that v4beta is asked."""

    def __init__(
        self,
        *,
        endpoint: str,
        token: Secret,
        transport: Transport,
        clock: Clock,
        random: Random,
        gate: Gate = ALWAYS_OPEN,
    ) -> None:
        self.journal = Journal()
        endpoint = in_beta(endpoint)
        self.is_beta: Final = endpoint.endswith(f"/{BETA}")

        def client() -> Client:
            return Client(
                DIALECT,
                endpoint=endpoint,
                token=token,
                transport=transport,
                clock=clock,
                random=random,
                gate=gate,
                settings=SETTINGS,
                journal=self.journal,
            )

        self.lists, self.purchases, self.others = client(), client(), client()

    # Clusters and pools.

    async def clusters(self, label: str) -> Sequence[wire.Cluster]:
        found = await self._whole("/lke/clusters", wire.Clusters, lambda page: page.data, filter_={"label": label})
        return [each for each in found if each.label == label]

    async def cluster(self, number: int) -> wire.Cluster:
        return await self.others.call("GET", f"/lke/clusters/{number}", wire.Cluster)

    async def pools(self, cluster: int) -> Sequence[wire.Pool]:
        """All of them: the vendor's filter by tags cannot be relied on."""
        return await self._whole(f"/lke/clusters/{cluster}/pools", wire.Pools, lambda page: page.data)

    async def pool(self, cluster: int, number: int) -> wire.Pool:
        return await self.others.call("GET", f"/lke/clusters/{cluster}/pools/{number}", wire.Pool)

    async def create_pool(self, cluster: int, body: Mapping[str, Any]) -> wire.Pool:
        return await self.others.call("POST", f"/lke/clusters/{cluster}/pools", wire.Pool, body=body)

    async def scale_pool(self, cluster: int, number: int, count: int, *, more: Mapping[str, Any]) -> wire.Pool:
        """`more` is what else of the pool changes."""
        path = f"/lke/clusters/{cluster}/pools/{number}"
        return await self.others.call("PUT", path, wire.Pool, body={"count": count, **more}, repeatable=False)

    async def delete_pool(self, cluster: int, number: int) -> None:
        await self.others.call("DELETE", f"/lke/clusters/{cluster}/pools/{number}", wire.Nothing)

    async def delete_node(self, cluster: int, node: str) -> None:
        await self.others.call("DELETE", f"/lke/clusters/{cluster}/nodes/{node}", wire.Nothing)

    # Instances.

    async def instances(self, *, tagged: str) -> Sequence[wire.Instance]:
        """All whose tags contain the text: the caller filters exactly."""
        asked = {"tags": {"+contains": tagged}}
        return await self._whole("/linode/instances", wire.Instances, lambda page: page.data, filter_=asked)

    async def instance_labelled(self, label: str) -> wire.Instance | None:
        found = await self._whole("/linode/instances", wire.Instances, lambda page: page.data, filter_={"label": label})
        return next((each for each in found if each.label == label), None)

    async def instance(self, number: int) -> wire.Instance:
        return await self.others.call("GET", f"/linode/instances/{number}", wire.Instance)

    async def retag(self, number: int, tags: Sequence[str]) -> wire.Instance:
        """Replaces all tags."""
        path = f"/linode/instances/{number}"
        return await self.others.call("PUT", path, wire.Instance, body={"tags": list(tags)}, repeatable=False)

    async def create_instance(self, body: Mapping[str, Any]) -> wire.Instance:
        """Labels are unique in an account: a repeat is refused."""
        return await self.purchases.call("POST", "/linode/instances", wire.Instance, body=body, repeatable=True)

    async def delete_instance(self, number: int) -> None:
        """Never of LKE's: LKE would make another."""
        await self.others.call("DELETE", f"/linode/instances/{number}", wire.Nothing)

    # What is sold, and what the account holds.

    async def types(self) -> Sequence[wire.Type]:
        return await self._whole("/linode/types", wire.Types, lambda page: page.data)

    async def region(self, name: str) -> wire.Region:
        return await self.others.call("GET", f"/regions/{urllib.parse.quote(name, safe='')}", wire.Region)

    async def availability(self, region: str) -> Sequence[wire.Availability]:
        found = await self.others.call("GET", f"/regions/{region}/availability", tuple[wire.Availability, ...])
        return [each for each in found if each.region == region]

    async def versions(self, tier: str) -> Sequence[str]:
        found = await self._whole(f"/lke/tiers/{tier}/versions", wire.Names, lambda page: page.data)
        return [each.id for each in found]

    async def image(self, name: str) -> wire.Image:
        return await self.others.call("GET", f"/images/{urllib.parse.quote(name, safe='')}", wire.Image)

    async def firewall(self, number: int) -> wire.Numbered:
        return await self.others.call("GET", f"/networking/firewalls/{number}", wire.Numbered)

    async def _whole(
        self,
        path: str,
        answer: type[P],
        items: Callable[[P], Sequence[T]],
        *,
        filter_: Mapping[str, Any] | None = None,
    ) -> Sequence[T]:
        """Every page; read again where the list changed between two of them."""
        headers = {"X-Filter": msgspec.json.encode(filter_).decode()} if filter_ is not None else {}
        for _ in range(READINGS):
            pages: list[P] = []
            while not pages or len(pages) < min(pages[0].pages, MOST_PAGES):
                query = [("page", str(len(pages) + 1)), ("page_size", str(PER_PAGE))]
                try:
                    pages.append(await self.lists.call("GET", path, answer, query=query, headers=headers))
                except Refused as error:
                    if not pages or meaning(error) is not Meaning.GONE:
                        raise
                    break  # the last page went while we read
            found = [item for page in pages for item in items(page)]
            if {page.results for page in pages} == {len(found)}:
                return found
        raise Unanswered(f"GET {path}: the list changed whenever it was read")
