"""Linode's API: its calls, its limits and its words, on one account."""

import dataclasses
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from growth.api.kinds import Json
from growth.ports import Clock, Random
from growth.sim.clouds.api import Asked, FakeApi, Routes
from growth.sim.clouds.frame import UNREADABLE, Fate, Reply, Trouble, draw
from growth.sim.clouds.linode.account import Account, Limits, Times
from growth.sim.clouds.linode.belongings import Belongings
from growth.sim.clouds.linode.faults import REFUSALS, Faults
from growth.sim.clouds.linode.instances import Instances
from growth.sim.clouds.linode.lke import Lke
from growth.sim.clouds.linode.market import PLACES, REGIONS, Market
from growth.sim.clouds.linode.objects import STANDARD, Cluster, Instance
from growth.sim.clouds.linode.rates import Rates, Window
from growth.sim.clouds.linode.wire import Query, Refusal, not_found, page
from growth.sim.ports import Answer

STABLE: Final = "/v4"
BETA: Final = "/v4beta"
CLUSTER: Final = "growth"
# What lists are filtered and ordered by.
OF_TYPES: Final = ("id", "label", "class", "vcpus", "memory", "disk", "gpus", "transfer", "network_out")
CAPABILITIES: Final = ("Linodes", "Kubernetes", "Kubernetes Enterprise", "Cloud Firewall", "Placement Group")
# Addresses that are for documents and nobody's.
RESOLVERS: Final = ("192.0.2.53", "2001:db8::53")
OF_REGIONS: Final = ("id", "label", "country", "status", "site_type", "capabilities")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FakeSettings:
    """`tokens` empty: any token is accepted. The account has one cluster from the start."""

    tier: str = STANDARD
    region: str = "us-east"
    cluster: str = CLUSTER
    stock: Mapping[tuple[str, str], int] = dataclasses.field(default_factory=dict)
    tokens: frozenset[str] = frozenset()
    limits: Limits = dataclasses.field(default_factory=Limits)
    times: Times = dataclasses.field(default_factory=Times)
    rates: Rates = dataclasses.field(default_factory=Rates)


@dataclasses.dataclass(frozen=True, slots=True)
class _Order:
    """What a route makes of a request."""

    at: tuple[Any, ...]
    query: Query
    filter: str
    body: Json
    beta: bool


_Handler = Callable[[_Order], Reply]


class LinodeFake(FakeApi):
    """One account."""

    def __init__(self, *, clock: Clock, random: Random, settings: FakeSettings | None = None) -> None:
        settings = settings or FakeSettings()
        self.market = Market(settings.stock)
        self.account = Account(
            market=self.market, limits=settings.limits, times=settings.times, random=random, now=clock.now()
        )
        super().__init__(self.account, clock=clock, random=random, tokens=settings.tokens)
        self.cluster: Cluster = self.account.add_cluster(settings.cluster, region=settings.region, tier=settings.tier)
        self._windows = {
            "lists": Window(settings.rates.lists),
            "purchases": Window(settings.rates.purchases),
            "others": Window(settings.rates.others),
        }
        self._lke = Lke(self.account)
        self._instances = Instances(self.account)
        self._routes = self._table()

    # -- for those who watch and disturb --------------------------------------------------------------------------

    @property
    def faults(self) -> Faults:
        """May be exchanged at any time."""
        return self.account.faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self.account.faults = faults

    def machines(self) -> Sequence[Instance]:
        """Every instance there is now, with what the API does not show: a machine knows its user data."""
        self.advance()
        return tuple(self.account.instances.values())

    def end(self, number: int) -> None:
        """The instance is gone, now and without a word."""
        self.advance()
        self.account.end(number)

    def spend(self, calls: int) -> None:
        """Of every sort."""
        for window in self._windows.values():
            window.spend(self._present, calls=calls)

    # -- the API --------------------------------------------------------------------------------------------------

    def _fate(self, asked: Asked) -> Fate:
        return draw(self.faults, self._chance, disturbed=self.faults.busy if asked.writes else 0.0)

    def _meter(self, asked: Asked) -> Window:
        return self._windows[_sort(asked.method, asked.path)]

    def _refusal(self, why: Trouble, asked: Asked) -> Refusal:  # noqa: ARG002 - the words are fixed
        return Refusal(*REFUSALS[why])

    def _answer(self, asked: Asked, status: int, body: Any, headers: Mapping[str, str]) -> Answer:
        answer = super()._answer(asked, status, body, headers)
        if status != 429:
            return answer
        wait = {"retry-after": str(self._meter(asked).retry_after(self.now))}
        return Answer(status, {**answer.headers, **wait}, answer.body)

    def _route(self, asked: Asked) -> Reply:
        base = next((each for each in (BETA, STABLE) if asked.path.startswith(f"{each}/")), None)
        if base is None:
            raise self._refusal(Trouble.NOWHERE, asked)
        handler, at = self._routed(self._routes, asked.path.removeprefix(base).strip("/"), asked)
        body = _decoded(asked.body) if asked.method in {"POST", "PUT"} else {}
        return handler(_Order(at, asked.query, asked.headers.get("x-filter", ""), body, base == BETA))

    def _table(self) -> Routes[_Handler]:
        lke, instances, market, belongings = self._lke, self._instances, self.market, Belongings(self.account)
        pool, node = r"lke/clusters/(\d+)/pools/(\d+)", r"lke/clusters/(\d+)/nodes/(\d+-[0-9a-f]+)"
        return {
            ("GET", "lke/clusters"): lambda order: lke.clusters(order.query, order.filter, beta=order.beta),
            ("GET", r"lke/clusters/(\d+)"): lambda order: lke.cluster(order.at[0], beta=order.beta),
            ("POST", r"lke/clusters/(\d+)/recycle"): lambda order: lke.recycle(order.at[0]),
            ("GET", "lke/versions"): lambda order: lke.versions(order.query, order.filter),
            ("GET", r"lke/tiers/([a-z]+)/versions"): lambda order: lke.versions(
                order.query, order.filter, tier=order.at[0]
            ),
            ("GET", r"lke/versions/([^/]+)"): lambda order: lke.version(_text(order.at[0])),
            ("GET", r"lke/tiers/([a-z]+)/versions/([^/]+)"): lambda order: lke.version(
                _text(order.at[1]), tier=order.at[0]
            ),
            ("GET", r"lke/clusters/(\d+)/pools"): lambda order: lke.pools(
                order.at[0], order.query, order.filter, beta=order.beta
            ),
            ("POST", r"lke/clusters/(\d+)/pools"): lambda order: lke.create_pool(
                order.at[0], order.body, beta=order.beta
            ),
            ("GET", pool): lambda order: lke.pool(order.at[0], order.at[1], beta=order.beta),
            ("PUT", pool): lambda order: lke.update_pool(order.at[0], order.at[1], order.body, beta=order.beta),
            ("DELETE", pool): lambda order: lke.delete_pool(order.at[0], order.at[1]),
            ("POST", f"{pool}/recycle"): lambda order: lke.recycle(order.at[0], order.at[1]),
            ("GET", node): lambda order: lke.node(order.at[0], order.at[1]),
            ("DELETE", node): lambda order: lke.delete_node(order.at[0], order.at[1]),
            ("POST", f"{node}/recycle"): lambda order: lke.recycle(order.at[0], node=order.at[1]),
            ("GET", "linode/instances"): lambda order: instances.listed(order.query, order.filter),
            ("POST", "linode/instances"): lambda order: instances.create(order.body),
            ("GET", r"linode/instances/(\d+)"): lambda order: instances.shown(order.at[0]),
            ("PUT", r"linode/instances/(\d+)"): lambda order: instances.update(order.at[0], order.body),
            ("DELETE", r"linode/instances/(\d+)"): lambda order: instances.delete(order.at[0]),
            ("POST", r"linode/instances/(\d+)/(boot|reboot|shutdown)"): lambda order: instances.power(*order.at),
            ("GET", "tags"): lambda order: instances.tags(order.query, order.filter),
            ("POST", "tags"): lambda order: instances.add_tag(order.body),
            # With what stands before it a tag of digits stays a text.
            ("GET", r"(tags/.+)"): lambda order: instances.tagged(_tag(order.at[0]), order.query, order.filter),
            ("DELETE", r"(tags/.+)"): lambda order: instances.delete_tag(_tag(order.at[0])),
            ("GET", "linode/types"): lambda order: page(market.types(), order.query, order.filter, by=OF_TYPES),
            ("GET", r"linode/types/([a-z0-9-]+)"): lambda order: _one(market.types(), order.at[0]),
            ("GET", "regions"): lambda order: page(_regions(), order.query, order.filter, by=OF_REGIONS),
            ("GET", "regions/availability"): lambda order: page(
                market.availability(), order.query, order.filter, by=("region", "plan", "available")
            ),
            ("GET", r"regions/([a-z-]+)"): lambda order: _one(_regions(), order.at[0]),
            ("GET", r"regions/([a-z-]+)/availability"): lambda order: Reply(
                200, market.availability(_one(_regions(), order.at[0]).body["id"])
            ),
            ("GET", "networking/firewalls"): lambda order: belongings.firewalls(order.query, order.filter),
            ("POST", "networking/firewalls"): lambda order: belongings.add_firewall(order.body),
            ("GET", r"networking/firewalls/(\d+)"): lambda order: belongings.firewall(order.at[0]),
            ("DELETE", r"networking/firewalls/(\d+)"): lambda order: belongings.delete_firewall(order.at[0]),
            ("GET", "placement/groups"): lambda order: belongings.groups(order.query, order.filter),
            ("POST", "placement/groups"): lambda order: belongings.add_group(order.body),
            ("GET", r"placement/groups/(\d+)"): lambda order: belongings.group(order.at[0]),
            ("DELETE", r"placement/groups/(\d+)"): lambda order: belongings.delete_group(order.at[0]),
            ("GET", "locks"): lambda order: belongings.locks(order.query, order.filter),
            ("POST", "locks"): lambda order: belongings.add_lock(order.body),
            ("GET", r"locks/(\d+)"): lambda order: belongings.lock(order.at[0]),
            ("DELETE", r"locks/(\d+)"): lambda order: belongings.delete_lock(order.at[0]),
            ("GET", "images"): lambda order: belongings.images(order.query, order.filter),
            ("GET", r"images/(.+)"): lambda order: belongings.image(_text(order.at[0])),
        }


def _text(part: Any) -> str:
    """A part of the path as it was before it was one."""
    return urllib.parse.unquote(str(part))


def _tag(path: str) -> str:
    return _text(path).removeprefix("tags/")


def _sort(method: str, path: str) -> str:
    """Which of the account's windows a call is counted in."""
    if method == "POST" and path.endswith("/linode/instances"):
        return "purchases"
    last = path.rstrip("/").rsplit("/", 1)[-1]
    paged = {
        *("instances", "pools", "clusters", "types", "regions", "tags", "firewalls", "groups", "locks", "images"),
        "versions",
    }
    is_list = last in paged or path.endswith("regions/availability") or "/tags/" in path
    return "lists" if method == "GET" and is_list else "others"


def _regions() -> list[Json]:
    return [
        {
            "id": name,
            "label": PLACES[name],
            "country": PLACES[name].rpartition(", ")[2].lower(),
            "resolvers": {"ipv4": RESOLVERS[0], "ipv6": RESOLVERS[1]},
            "status": "ok",
            "site_type": "core",
            "capabilities": [*CAPABILITIES, *(["Metadata"] if metadata else [])],
            "placement_group_limits": {"maximum_pgs_per_customer": 100, "maximum_linodes_per_pg": 5},
            "monitors": {"alerts": [], "metrics": []},
        }
        for name, (metadata, _) in REGIONS.items()
    ]


def _one(items: Sequence[Json], which: Any) -> Reply:
    for item in items:
        if item["id"] == which:
            return Reply(200, item)
    raise not_found()


def _decoded(raw: bytes | None) -> Json:
    if not raw:
        return {}
    try:
        body = msgspec.json.decode(raw)
    except UNREADABLE:
        body = None
    if not isinstance(body, dict):
        raise Refusal(400, "Malformed JSON")
    return body
