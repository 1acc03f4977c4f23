"""The API as one function: a request comes in, an answer goes out, or the connection breaks."""

import asyncio
import collections
import dataclasses
import email.utils
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from growth.api.kinds import Json
from growth.ports import Clock, Random, Response, TransportError
from growth.sim.clouds.frame import KEPT, Called, Dropped, Page, draw
from growth.sim.clouds.hetzner import resources
from growth.sim.clouds.hetzner.faults import GOOD, REFUSALS, Faults
from growth.sim.clouds.hetzner.market import Market, pricing
from growth.sim.clouds.hetzner.objects import Server
from growth.sim.clouds.hetzner.project import Limits, Project
from growth.sim.clouds.hetzner.rates import Bucket
from growth.sim.clouds.hetzner.servers import Servers, Times
from growth.sim.clouds.hetzner.wire import Query, Refusal, Reply
from growth.sim.clouds.ledger import Ledger
from growth.sim.ports import Answer, Request

PREFIX: Final = "/v1"
_REMOVED: Final = frozenset({"datacenters"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FakeSettings:
    """`tokens` empty: any token is accepted."""

    stock: Mapping[tuple[str, str], int] = dataclasses.field(default_factory=dict)
    tokens: frozenset[str] = frozenset()
    limits: Limits = dataclasses.field(default_factory=Limits)
    times: Times = dataclasses.field(default_factory=Times)
    calls_per_hour: int = 3600


class HetznerFake:
    """One project. `await fake(request)` is the cloud of a `SimTransport`; `handle` is the same without waiting."""

    def __init__(self, *, clock: Clock, random: Random, settings: FakeSettings | None = None) -> None:
        settings = settings or FakeSettings()
        self.faults: Faults = GOOD
        """May be exchanged at any time."""
        self.readonly: bool = False
        """The token may only read from now on."""
        self.market = Market(settings.stock)
        self.project = Project(market=self.market, limits=settings.limits, now=clock.now())
        self.calls: collections.deque[Called] = collections.deque(maxlen=KEPT)
        self._clock = clock
        self._random = random
        self._settings = settings
        self._servers = Servers(self.project, random=random, times=settings.times)
        self._collections = resources.collections(self.project)
        self._bucket = Bucket(
            limit=settings.calls_per_hour, per_second=settings.calls_per_hour / 3600, now=self.project.now
        )
        self._routes = self._table()

    # -- for those who watch and disturb --------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """What was bought, up to now."""
        self.advance()
        return self.project.ledger

    def advance(self) -> None:
        """Brings the project up to the clock."""
        self.project.advance(self._clock.now())

    def machines(self) -> Sequence[Server]:
        """Every server there is now, with what the API does not show: a machine knows its user data."""
        self.advance()
        return tuple(self.project.servers.values())

    def end(self, number: int) -> None:
        """The server is gone, now and without a word."""
        self.project.advance(self._clock.now())
        self._servers.end(number)

    def add_server(self, body: Json) -> int:
        """Somebody else in the project buys a server; its number. Raises `Refusal`."""
        reply = self._servers.create(body)
        assert reply.body is not None
        return int(reply.body["server"]["id"])

    def spend(self, calls: int) -> None:
        """Somebody else uses the project's calls."""
        self._bucket.spend(self._clock.now(), calls=calls)

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
        now = self.project.now
        parts = urllib.parse.urlsplit(request.url)
        path, write = parts.path, request.method not in {"GET", "HEAD"}
        disturbed = self.faults.conflict if write else 0.0
        fate = draw(self.faults, lambda rate: self._random.uniform(0.0, 1.0) < rate, disturbed=disturbed)
        headers = {
            "content-type": "application/json",
            "date": email.utils.format_datetime(now, usegmt=True),
            "x-correlation-id": self._random.uuid().replace("-", "")[:16],
        }

        def note(status: int, code: str = "", *, done: bool = True) -> None:
            self.calls.append(Called(now, request.method, path, status, code, done))

        if fate.lost_request:
            note(0, done=False)
            raise Dropped(done=False)
        try:
            token = self._authorized(request)
            if not self._bucket.spend(now):
                raise Refusal(
                    429,
                    "rate_limit_exceeded",
                    f"limit of {self._settings.calls_per_hour} requests per hour reached for token {token[: len(token) // 2]}…",
                )
            if fate.page is not None:
                raise fate.page
            if fate.trouble is not None:
                raise Refusal(*REFUSALS[fate.trouble])
            if write and self.readonly:
                raise Refusal(403, "token_readonly", "the token is only allowed to perform GET requests")
            reply = self._route(request.method, path, urllib.parse.parse_qs(parts.query), request.body)
        except Refusal as refusal:
            note(0 if fate.lost_answer else refusal.status, refusal.code, done=False)
            if fate.lost_answer:
                raise Dropped(done=False) from None
            return self._answer(refusal.status, refusal.body(), headers), fate.seconds
        except Page as html:
            note(html.status, done=False)
            return html.answer(), fate.seconds
        if write:
            self.project.validate()
        note(0 if fate.lost_answer else reply.status)
        if fate.lost_answer:
            raise Dropped(done=True)
        if fate.half_done:
            return Page(504).answer(), fate.seconds
        return self._answer(reply.status, reply.body, headers), fate.seconds

    def _answer(self, status: int, body: Json | None, headers: Mapping[str, str]) -> Answer:
        limits = self._bucket.headers(self.project.now)
        return Answer(status, {**headers, **limits}, b"" if body is None else msgspec.json.encode(body))

    def _authorized(self, request: Request) -> str:
        given = {name.lower(): value for name, value in request.headers.items()}.get("authorization", "")
        word, _, token = given.partition(" ")
        if word != "Bearer" or not token or (self._settings.tokens and token not in self._settings.tokens):
            raise Refusal(401, "unauthorized", "unable to authenticate")
        return token

    def _route(self, method: str, path: str, query: Query, raw: bytes | None) -> Reply:
        self._servers.faults = self.faults
        # Whoever was told the address without its version means this one: there is no other.
        parts = path.removeprefix(PREFIX).strip("/").split("/")
        if parts[0] in _REMOVED:
            raise Refusal(410, "deprecated_api_endpoint", "datacenters were removed, use locations")
        known = False
        for (verb, pattern), handler in self._routes.items():
            match = re.fullmatch(pattern, "/".join(parts))
            if match is None:
                continue
            known = True
            if verb == method:
                numbers = [int(each) if each.isdigit() else each for each in match.groups()]
                return handler(numbers, query, _decoded(raw) if method in {"POST", "PUT"} else {})
        if known:
            raise Refusal(405, "method_not_allowed", "method not allowed")
        raise Refusal(404, "not_found", "no such resource")

    def _table(self) -> "Mapping[tuple[str, str], _Handler]":
        project, servers = self.project, self._servers
        table: dict[tuple[str, str], _Handler] = {
            ("GET", "servers"): lambda _, query, __: servers.listed(query),
            ("POST", "servers"): lambda _, __, body: servers.create(body),
            ("GET", r"servers/(\d+)"): lambda at, _, __: servers.shown(at[0]),
            ("PUT", r"servers/(\d+)"): lambda at, _, body: servers.update(at[0], body),
            ("DELETE", r"servers/(\d+)"): lambda at, _, __: servers.delete(at[0]),
            ("POST", r"servers/(\d+)/actions/([a-z_]+)"): lambda at, _, body: servers.act(at[0], at[1], body),
            ("GET", "actions"): lambda _, query, __: resources.actions(project, query, ids_needed=True),
            ("GET", r"actions/(\d+)"): lambda at, _, __: resources.action(project, at[0]),
            ("GET", "server_types"): lambda _, query, __: resources.server_types(project, None, query),
            ("GET", r"server_types/(\d+)"): lambda at, query, __: resources.server_types(project, at[0], query),
            ("GET", "locations"): lambda _, query, __: resources.locations(None, query),
            ("GET", r"locations/(\d+)"): lambda at, query, __: resources.locations(at[0], query),
            ("GET", "pricing"): lambda _, __, ___: Reply(200, {"pricing": pricing(self.market, project.now)}),
        }
        for plural, kind in {
            "servers": "server",
            "networks": "network",
            "firewalls": "firewall",
            "images": "image",
        }.items():
            table |= _action_routes(project, plural, kind)
        for plural, collection in self._collections.items():
            table |= _collection_routes(plural, collection)
        return table


class _Handler(Protocol):
    def __call__(self, at: list[Any], query: Query, body: Json, /) -> Reply: ...


def _action_routes(project: Project, plural: str, kind: str) -> dict[tuple[str, str], _Handler]:
    return {
        ("GET", f"{plural}/actions"): lambda _, query, __: resources.actions(project, query, resource=kind),
        ("GET", rf"{plural}/actions/(\d+)"): lambda at, _, __: resources.action(project, at[0]),
        ("GET", rf"{plural}/(\d+)/actions"): lambda at, query, __: resources.actions(
            project, query, resource=kind, of=at[0]
        ),
        ("GET", rf"{plural}/(?:\d+)/actions/(\d+)"): lambda at, _, __: resources.action(project, at[0]),
    }


def _collection_routes(plural: str, collection: resources.Collection) -> dict[tuple[str, str], _Handler]:
    return {
        ("GET", plural): lambda _, query, __: collection.listed(query),
        ("POST", plural): lambda _, __, body: collection.created(body),
        ("GET", rf"{plural}/(\d+)"): lambda at, _, __: collection.shown(at[0]),
        ("PUT", rf"{plural}/(\d+)"): lambda at, _, body: collection.updated(at[0], body),
        ("DELETE", rf"{plural}/(\d+)"): lambda at, _, __: collection.deleted(at[0]),
    }


def _decoded(raw: bytes | None) -> Json:
    if not raw:
        return {}
    try:
        body = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        raise Refusal(400, "json_error", "the request's body is no JSON") from None
    if not isinstance(body, dict):
        raise Refusal(400, "json_error", "the request's body is no object")
    return body
