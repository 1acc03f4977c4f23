"""Hetzner's API: its calls, its limits and its words, on one project."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from growth.api.kinds import Json
from growth.ports import Clock, Random
from growth.sim.clouds.api import Asked, FakeApi, Routes
from growth.sim.clouds.frame import UNREADABLE, Fate, Reply, Trouble, draw
from growth.sim.clouds.hetzner import resources
from growth.sim.clouds.hetzner.faults import GOOD, REFUSALS, Faults
from growth.sim.clouds.hetzner.market import Market, pricing
from growth.sim.clouds.hetzner.objects import Server
from growth.sim.clouds.hetzner.project import Limits, Project
from growth.sim.clouds.hetzner.rates import Bucket
from growth.sim.clouds.hetzner.servers import Servers, Times
from growth.sim.clouds.hetzner.wire import Query, Refusal

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


class HetznerFake(FakeApi):
    """One project."""

    def __init__(self, *, clock: Clock, random: Random, settings: FakeSettings | None = None) -> None:
        settings = settings or FakeSettings()
        self.faults: Faults = GOOD
        """May be exchanged at any time."""
        self.market = Market(settings.stock)
        self.project = Project(market=self.market, limits=settings.limits, now=clock.now())
        super().__init__(self.project, clock=clock, random=random, tokens=settings.tokens)
        self._calls_per_hour = settings.calls_per_hour
        self._servers = Servers(self.project, random=random, times=settings.times)
        self._collections = resources.collections(self.project)
        self._bucket = Bucket(
            limit=settings.calls_per_hour, per_second=settings.calls_per_hour / 3600, now=self.project.now
        )
        self._routes = self._table()

    # -- for those who watch and disturb --------------------------------------------------------------------------

    def machines(self) -> Sequence[Server]:
        """Every server there is now, with what the API does not show: a machine knows its user data."""
        self.advance()
        return tuple(self.project.servers.values())

    def end(self, number: int) -> None:
        """The server is gone, now and without a word."""
        self.advance()
        self._servers.end(number)

    def add_server(self, body: Json) -> int:
        """Somebody else in the project buys a server; its number. Raises `Refusal`."""
        reply = self._servers.create(body)
        assert reply.body is not None
        return int(reply.body["server"]["id"])

    def add_network(self, body: Json) -> None:
        """Somebody makes a network in the project. Raises `Refusal`."""
        self._collections["networks"].created(body)

    def spend(self, calls: int) -> None:
        self._bucket.spend(self._present, calls=calls)

    # -- the API --------------------------------------------------------------------------------------------------

    def _fate(self, asked: Asked) -> Fate:
        return draw(self.faults, self._chance, disturbed=self.faults.conflict if asked.writes else 0.0)

    def _marks(self) -> Mapping[str, str]:
        return {"x-correlation-id": self._random.uuid().replace("-", "")[:16]}

    def _meter(self, asked: Asked) -> Bucket:  # noqa: ARG002 - all calls are counted alike
        return self._bucket

    def _refusal(self, why: Trouble, asked: Asked) -> Refusal:
        if why is Trouble.SPENT:
            shown = asked.token[: len(asked.token) // 2]
            limit = f"limit of {self._calls_per_hour} requests per hour reached for token {shown}…"
            return Refusal(429, "rate_limit_exceeded", limit)
        return Refusal(*REFUSALS[why])

    def _route(self, asked: Asked) -> Reply:
        self._servers.faults = self.faults
        # Whoever was told the address without its version means this one: there is no other.
        parts = asked.path.removeprefix(PREFIX).strip("/").split("/")
        if parts[0] in _REMOVED:
            raise Refusal(410, "deprecated_api_endpoint", "datacenters were removed, use locations")
        handler, at = self._routed(self._routes, "/".join(parts), asked)
        return handler(at, asked.query, _decoded(asked.body) if asked.method in {"POST", "PUT"} else {})

    def _table(self) -> "Routes[_Handler]":
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
    def __call__(self, at: tuple[Any, ...], query: Query, body: Json, /) -> Reply: ...


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
    except UNREADABLE:
        raise Refusal(400, "json_error", "the request's body is no JSON") from None
    if not isinstance(body, dict):
        raise Refusal(400, "json_error", "the request's body is no object")
    return body
