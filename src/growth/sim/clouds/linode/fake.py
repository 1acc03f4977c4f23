"""The API as one function: a request comes in, an answer goes out, or the connection breaks."""

import asyncio
import collections
import dataclasses
import email.utils
import re
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from growth.api.kinds import Json
from growth.ports import Clock, Random, Response, TransportError
from growth.sim.clouds.frame import KEPT, Called, Dropped, Page, draw
from growth.sim.clouds.ledger import Ledger
from growth.sim.clouds.linode.account import Account, Limits, Times
from growth.sim.clouds.linode.faults import REFUSALS, Faults
from growth.sim.clouds.linode.instances import Instances
from growth.sim.clouds.linode.lke import Lke
from growth.sim.clouds.linode.market import REGIONS, Market
from growth.sim.clouds.linode.objects import STANDARD, Cluster, Instance
from growth.sim.clouds.linode.rates import Rates, Window
from growth.sim.clouds.linode.wire import Query, Refusal, Reply, filtered, not_found, page
from growth.sim.ports import Answer, Request

STABLE: Final = "/v4"
BETA: Final = "/v4beta"
CLUSTER: Final = "growth"


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
class _Asked:
    """One request, taken apart."""

    at: tuple[Any, ...]
    query: Query
    filter: str
    body: Json
    beta: bool


_Handler = Callable[[_Asked], Reply]


class LinodeFake:
    """One account. `await fake(request)` is the cloud of a `SimTransport`; `handle` is the same without waiting."""

    def __init__(self, *, clock: Clock, random: Random, settings: FakeSettings | None = None) -> None:
        settings = settings or FakeSettings()
        self.readonly: bool = False
        """The token may only read from now on."""
        self.market = Market(settings.stock)
        self.account = Account(
            market=self.market, limits=settings.limits, times=settings.times, random=random, now=clock.now()
        )
        self.cluster: Cluster = self.account.add_cluster(settings.cluster, region=settings.region, tier=settings.tier)
        self.calls: collections.deque[Called] = collections.deque(maxlen=KEPT)
        self._clock = clock
        self._random = random
        self._settings = settings
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

    @property
    def ledger(self) -> Ledger:
        """What was bought, up to now."""
        self.advance()
        return self.account.ledger

    def advance(self) -> None:
        """Brings the account up to the clock."""
        self.account.advance(self._clock.now())

    def machines(self) -> Sequence[Instance]:
        """Every instance there is now, with what the API does not show: a machine knows its user data."""
        self.advance()
        return tuple(self.account.instances.values())

    def end(self, number: int) -> None:
        """The instance is gone, now and without a word."""
        self.advance()
        self.account.end(number)

    def spend(self, calls: int) -> None:
        """Somebody else uses the account's calls, of every sort."""
        for window in self._windows.values():
            window.spend(self._clock.now(), calls=calls)

    # -- the API --------------------------------------------------------------------------------------------------

    async def __call__(self, request: Request) -> Response:
        """`TransportError` where the connection breaks."""
        try:
            answer, seconds = self.handle(request)
        except Dropped as error:
            raise TransportError(f"{request.method} {request.url}: the connection broke") from error
        if seconds:
            await asyncio.sleep(seconds)
        return answer

    def handle(self, request: Request) -> tuple[Answer, float]:
        """The answer, and how long it takes. Raises `Dropped`."""
        self.advance()
        now = self.account.now
        parts = urllib.parse.urlsplit(request.url)
        given = {name.lower(): value for name, value in request.headers.items()}
        write = request.method not in {"GET", "HEAD"}
        fate = draw(self.faults, self.account.chance, disturbed=self.faults.busy if write else 0.0)
        window = self._windows[_sort(request.method, parts.path)]
        headers = {"content-type": "application/json", "date": email.utils.format_datetime(now, usegmt=True)}

        def note(status: int, code: str = "", *, done: bool = True) -> None:
            self.calls.append(Called(now, request.method, parts.path, status, code, done))

        if fate.lost_request:
            note(0, done=False)
            raise Dropped(done=False)
        try:
            self._authorize(given.get("authorization", ""))
            if not window.spend(now):
                raise Refusal(429, "Too many requests")
            if fate.page is not None:
                raise fate.page
            if fate.trouble is not None:
                raise Refusal(*REFUSALS[fate.trouble])
            if write and self.readonly:
                raise Refusal(401, "Your OAuth token is not authorized to use this endpoint.")
            query = urllib.parse.parse_qs(parts.query)
            reply = self._route(request.method, parts.path, query, given.get("x-filter", ""), request.body)
        except Refusal as refusal:
            note(0 if fate.lost_answer else refusal.status, refusal.code, done=False)
            if fate.lost_answer:
                raise Dropped(done=False) from None
            limits = window.headers(now, refused=refusal.status == 429)
            body = msgspec.json.encode(refusal.body())
            return Answer(refusal.status, {**headers, **limits}, body), fate.seconds
        except Page as html:
            note(html.status, done=False)
            return html.answer(), fate.seconds
        if write:
            self.account.validate()
        note(0 if fate.lost_answer else reply.status)
        if fate.lost_answer:
            raise Dropped(done=True)
        if fate.half_done:
            return Page(504).answer(), fate.seconds
        return Answer(reply.status, {**headers, **window.headers(now)}, msgspec.json.encode(reply.body)), fate.seconds

    def _authorize(self, given: str) -> None:
        word, _, token = given.partition(" ")
        if word != "Bearer" or not token or (self._settings.tokens and token not in self._settings.tokens):
            raise Refusal(401, "Invalid Token")

    def _route(self, method: str, path: str, query: Query, filter_: str, raw: bytes | None) -> Reply:
        base = next((each for each in (BETA, STABLE) if path.startswith(f"{each}/")), None)
        if base is None:
            raise not_found()
        below = path.removeprefix(base).strip("/")
        known = False
        for (verb, pattern), handler in self._routes.items():
            match = re.fullmatch(pattern, below)
            if match is None:
                continue
            known = True
            if verb == method:
                at = tuple(int(each) if each.isdigit() else each for each in match.groups())
                body = _decoded(raw) if method in {"POST", "PUT"} else {}
                return handler(_Asked(at, query, filter_, body, base == BETA))
        if known:
            raise Refusal(405, "Method Not Allowed")
        raise not_found()

    def _table(self) -> Mapping[tuple[str, str], _Handler]:
        lke, instances, market, account = self._lke, self._instances, self.market, self.account
        pool, node = r"lke/clusters/(\d+)/pools/(\d+)", r"lke/clusters/(\d+)/nodes/(\d+-[0-9a-f]+)"
        return {
            ("GET", "lke/clusters"): lambda asked: lke.clusters(asked.query, asked.filter, beta=asked.beta),
            ("GET", r"lke/clusters/(\d+)"): lambda asked: lke.cluster(asked.at[0], beta=asked.beta),
            ("POST", r"lke/clusters/(\d+)/recycle"): lambda asked: lke.recycle(asked.at[0]),
            ("GET", "lke/versions"): lambda asked: lke.versions(STANDARD, asked.query),
            ("GET", r"lke/tiers/([a-z]+)/versions"): lambda asked: lke.versions(asked.at[0], asked.query),
            ("GET", r"lke/clusters/(\d+)/pools"): lambda asked: lke.pools(
                asked.at[0], asked.query, asked.filter, beta=asked.beta
            ),
            ("POST", r"lke/clusters/(\d+)/pools"): lambda asked: lke.create_pool(
                asked.at[0], asked.body, beta=asked.beta
            ),
            ("GET", pool): lambda asked: lke.pool(asked.at[0], asked.at[1], beta=asked.beta),
            ("PUT", pool): lambda asked: lke.update_pool(asked.at[0], asked.at[1], asked.body, beta=asked.beta),
            ("DELETE", pool): lambda asked: lke.delete_pool(asked.at[0], asked.at[1]),
            ("POST", f"{pool}/recycle"): lambda asked: lke.recycle(asked.at[0], asked.at[1]),
            ("GET", node): lambda asked: lke.node(asked.at[0], asked.at[1]),
            ("DELETE", node): lambda asked: lke.delete_node(asked.at[0], asked.at[1]),
            ("POST", f"{node}/recycle"): lambda asked: lke.recycle(asked.at[0], node=asked.at[1]),
            ("GET", "linode/instances"): lambda asked: instances.listed(asked.query, asked.filter),
            ("POST", "linode/instances"): lambda asked: instances.create(asked.body),
            ("GET", r"linode/instances/(\d+)"): lambda asked: instances.shown(asked.at[0]),
            ("PUT", r"linode/instances/(\d+)"): lambda asked: instances.update(asked.at[0], asked.body),
            ("DELETE", r"linode/instances/(\d+)"): lambda asked: instances.delete(asked.at[0]),
            ("GET", "tags"): lambda asked: instances.tags(asked.query),
            ("POST", "tags"): lambda asked: instances.add_tag(asked.body),
            ("GET", "linode/types"): lambda asked: page(market.types(), asked.query),
            ("GET", r"linode/types/([a-z0-9-]+)"): lambda asked: _one(market.types(), asked.at[0]),
            ("GET", "regions"): lambda asked: page(_regions(), asked.query),
            ("GET", "regions/availability"): lambda asked: page(
                filtered(market.availability(), asked.filter, by=("region", "plan", "available")), asked.query
            ),
            ("GET", r"regions/([a-z-]+)"): lambda asked: _one(_regions(), asked.at[0]),
            ("GET", r"regions/([a-z-]+)/availability"): lambda asked: Reply(200, market.availability(asked.at[0])),
            ("GET", "networking/firewalls"): lambda asked: page(_named(account.firewalls), asked.query),
            ("GET", r"networking/firewalls/(\d+)"): lambda asked: _one(_named(account.firewalls), asked.at[0]),
            ("GET", "images"): lambda asked: page(_named(account.images), asked.query),
            ("GET", r"images/(.+)"): lambda asked: _one(_named(account.images), urllib.parse.unquote(asked.at[0])),
        }


def _sort(method: str, path: str) -> str:
    """Which of the account's windows a call is counted in."""
    if method == "POST" and path.endswith("/linode/instances"):
        return "purchases"
    last = path.rstrip("/").rsplit("/", 1)[-1]
    paged = {"instances", "pools", "clusters", "types", "regions", "tags", "firewalls", "images", "versions"}
    return "lists" if method == "GET" and (last in paged or path.endswith("regions/availability")) else "others"


def _named(things: Mapping[Any, str]) -> list[Json]:
    return [{"id": key, "label": label, "status": "available"} for key, label in things.items()]


def _regions() -> list[Json]:
    return [
        {
            "id": name,
            "label": name,
            "country": "xx",
            "status": "ok",
            "site_type": "core",
            "capabilities": ["Linodes", "Kubernetes", *(["Metadata"] if metadata else [])],
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
    except msgspec.DecodeError:
        body = None
    if not isinstance(body, dict):
        raise Refusal(400, "Malformed JSON")
    return body
