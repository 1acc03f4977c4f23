"""Buying servers, changing them and letting them go."""

import dataclasses
import datetime as dt
import ipaddress
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from growth.api.kinds import Json
from growth.ports import Random
from growth.sim.clouds.frame import Reply
from growth.sim.clouds.hetzner import labels
from growth.sim.clouds.hetzner.doings import Doings, attaches, known, unlocked
from growth.sim.clouds.hetzner.faults import Faults
from growth.sim.clouds.hetzner.market import (
    IPV4_HOURLY,
    IPV4_MONTHLY,
    LOCATIONS,
    Offer,
    ServerType,
)
from growth.sim.clouds.hetzner.objects import Action, Image, Network, PlacementGroup, Server
from growth.sim.clouds.hetzner.project import Project, admitted, free_address
from growth.sim.clouds.hetzner.wire import Query, Refusal, first, invalid, not_found, ordered, page, taken
from growth.sim.clouds.ledger import Purchase

LARGEST_USER_DATA: Final = 32 * 1024
DEFAULT_LOCATION: Final = "fsn1"
STATUSES: Final = frozenset(
    {"initializing", "starting", "running", "stopping", "off", "deleting", "migrating", "rebuilding", "unknown"}
)
_HOSTNAME: Final = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
# What an action says that failed while it ran.
_LATE: Final = (
    ("resource_unavailable", "the requested server type is currently unavailable"),
    ("placement_error", "an error during the placement occurred"),
    ("server_error", "the action failed"),
    ("timeout", "the action took too long"),
)
_LATE_REFUSAL: Final = ("invalid_input", "invalid input in field 'networks'")
LATE_CODES: Final = frozenset(code for code, _ in (*_LATE, _LATE_REFUSAL))
_FIELDS: Final = frozenset(
    {
        "name",
        "server_type",
        "image",
        "location",
        "ssh_keys",
        "networks",
        "firewalls",
        "placement_group",
        "labels",
        "user_data",
        "start_after_create",
        "automount",
        "volumes",
        "public_net",
    }
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long actions take, in seconds, uniformly."""

    create: tuple[float, float] = (5.0, 12.0)
    start: tuple[float, float] = (2.0, 5.0)
    attach: tuple[float, float] = (1.0, 4.0)
    delete: tuple[float, float] = (2.0, 8.0)
    other: tuple[float, float] = (0.5, 2.0)
    vanish: tuple[float, float] = (180.0, 600.0)


@dataclasses.dataclass(frozen=True, slots=True)
class _Order:
    """A request for a server that can be fulfilled, if there is stock."""

    name: str
    type: ServerType
    location: str
    image: Image
    ssh_keys: list[int]
    networks: list[Network]
    firewalls: list[int]
    group: PlacementGroup | None
    labels: dict[str, str]
    user_data: str
    start: bool
    ipv4: bool
    ipv6: bool


class Servers:
    """The part of the API below /servers."""

    def __init__(self, project: Project, *, random: Random, times: Times) -> None:
        self._project = project
        self._random = random
        self._times = times
        self._doings = Doings(project, random=random, seconds=times.other)
        self.faults = Faults()

    # -- reading --------------------------------------------------------------------------------------------------

    def listed(self, query: Query) -> Reply:
        selector = labels.selector(first(query, "label_selector"))
        name, statuses = first(query, "name"), set(query.get("status", ()))
        if unknown := statuses - STATUSES:
            raise invalid("status", f"{min(unknown)} is no status")
        found = [
            server.json(self._project.now)
            for server in self._project.servers.values()
            if (not name or server.name == name)
            and (not statuses or server.status in statuses)
            and selector.selects(server.labels)
        ]
        return page(ordered(found, query, by=("id", "name", "created")), "servers", query)

    def shown(self, number: int) -> Reply:
        return Reply(200, {"server": self.find(number).json(self._project.now)})

    def find(self, number: int) -> Server:
        server = self._project.servers.get(number)
        if server is None:
            raise not_found("server", number)
        return server

    # -- buying ---------------------------------------------------------------------------------------------------

    def create(self, body: Json) -> Reply:
        project = self._project
        order = self._order(body)
        # All are drawn for every purchase, so that one rate shifts no other.
        unavailable, placement = self._chance(self.faults.unavailable), self._chance(self.faults.placement)
        late, stuck = self._chance(self.faults.late_failure), self._chance(self.faults.stuck)
        vanish, refusal = self._chance(self.faults.vanish), self._chance(self.faults.late_refusal)
        if any(server.name == order.name for server in project.servers.values()):
            raise taken("name", "server name is already used")
        admitted(len(project.servers), project.limits.servers, "servers")
        if order.group is not None and order.group.full:
            raise Refusal(422, "placement_error", "the placement group is full")
        if placement:
            raise Refusal(422, "placement_error", "an error during the placement occurred")
        if unavailable:
            raise Refusal(412, "resource_unavailable", "error during placement: no capacity for this server type")
        offer = project.market.buy(order.type, order.location, project.now)
        server = self._new(order, offer)
        fails = self._late() if late else (self._step(), _LATE_REFUSAL) if refusal else None
        actions = self._set_up(server, order, fails=fails, stuck=stuck)
        if vanish:
            self._project.later(
                project.now + dt.timedelta(seconds=self._random.uniform(*self._times.vanish)),
                lambda at: self._gone(server, at),
            )
        return Reply(
            201,
            {
                "server": server.json(project.now),
                "action": actions[0].json(project.now),
                "next_actions": [action.json(project.now) for action in actions[1:]],
                "root_password": None if order.ssh_keys else self._random.uuid().replace("-", "")[:20],
            },
        )

    def _order(self, body: Json) -> _Order:
        project = self._project
        if unknown := set(body) - _FIELDS:
            raise invalid(min(unknown), "unknown field")
        name = body.get("name")
        if not isinstance(name, str) or len(name) > 253 or not _HOSTNAME.fullmatch(name):
            raise invalid("name", "must be a valid hostname as per RFC 1123")
        kind = project.market.find(body.get("server_type"), project.now)
        if kind is None:
            raise invalid("server_type", f"unknown server type {body.get('server_type')}")
        location = self._location(body.get("location"))
        user_data = body.get("user_data") or ""
        if not isinstance(user_data, str) or len(user_data.encode()) > LARGEST_USER_DATA:
            raise invalid("user_data", f"must be a text of at most {LARGEST_USER_DATA} bytes")
        public = body.get("public_net") or {}
        ipv4, ipv6 = public.get("enable_ipv4", True), public.get("enable_ipv6", True)
        networks = [known("network", project.networks, each) for each in body.get("networks") or ()]
        if not (ipv4 or ipv6 or networks):
            raise invalid("public_net", "a server needs a public address or a network")
        if body.get("volumes"):
            raise not_found("volume", body["volumes"][0])
        for network in networks:
            free_address(network, network_zone=LOCATIONS[location][5])
        return _Order(
            name=name,
            type=kind,
            location=location,
            image=self._image(body.get("image"), kind),
            ssh_keys=[self._ssh_key(each) for each in body.get("ssh_keys") or ()],
            networks=networks,
            firewalls=[
                known("firewall", project.firewalls, each["firewall"]).id for each in body.get("firewalls") or ()
            ],
            group=(
                known("placement group", project.placement_groups, body["placement_group"])
                if body.get("placement_group")
                else None
            ),
            labels=labels.checked(body.get("labels")),
            user_data=user_data,
            start=body.get("start_after_create", True) is not False,
            ipv4=bool(ipv4),
            ipv6=bool(ipv6),
        )

    def _new(self, order: _Order, offer: Offer) -> Server:
        project = self._project
        extra = (IPV4_HOURLY, IPV4_MONTHLY) if order.ipv4 else (Decimal(0), Decimal(0))
        number = project.address()
        server = Server(
            id=project.new_id(),
            name=order.name,
            type=order.type,
            location=order.location,
            image=order.image,
            created=project.now,
            labels=order.labels,
            hourly=offer.hourly + extra[0],
            monthly=offer.monthly + extra[1],
            user_data=order.user_data,
            ssh_keys=order.ssh_keys,
            # Addresses that are set aside for documentation and tests.
            ipv4=str(ipaddress.ip_address("198.18.0.0") + number) if order.ipv4 else None,
            ipv6=f"2001:db8:{number:x}::/64" if order.ipv6 else None,
            group=order.group,
            firewalls=list(order.firewalls),
        )
        project.servers[server.id] = server
        for firewall in order.firewalls:
            project.firewalls[firewall].servers.append(server.id)
        if order.group is not None:
            order.group.servers.append(server.id)
        project.ledger.bought(
            Purchase(
                server=server.id,
                name=server.name,
                type=server.type.name,
                location=server.location,
                labels=dict(server.labels),
                bought=project.now,
                hourly=server.hourly,
                monthly=server.monthly,
            )
        )
        project.tell("bought", server)
        return server

    def _set_up(
        self, server: Server, order: _Order, *, fails: tuple[int, tuple[str, str]] | None, stuck: bool
    ) -> list[Action]:
        """The actions of a new server: created, attached, started, one after the other. A failure ends those after it."""
        project, me = self._project, ("server", server.id)
        steps: list[tuple[str, list[tuple[str, int]], tuple[float, float], Callable[[dt.datetime], None]]] = [
            ("create_server", [me], self._times.create, lambda _: self._created(server))
        ]
        steps.extend(
            ("attach_to_network", [me, ("network", network.id)], self._times.attach, attaches(project, server, network))
            for network in order.networks
        )
        if order.start:
            steps.append(("start_server", [me], self._times.start, lambda at: self._started(server, at)))
        failing = None if fails is None else min(fails[0], len(steps) - 1)
        begins, actions = project.now, list[Action]()
        for number, (command, resources, seconds, then) in enumerate(steps):
            length = self._random.uniform(*seconds)
            error = fails[1] if fails is not None and failing is not None and number >= failing else None
            action = project.act(
                command, resources, begins=begins, seconds=None if stuck else length, error=error, then=then
            )
            actions.append(action)
            begins += dt.timedelta(seconds=length)
        server.busy = None if stuck else actions[0].id
        if failing == 0 and not stuck:
            project.later(actions[0].ends or begins, lambda _: self._created(server))
        return actions

    def _created(self, server: Server) -> None:
        if server.status == "initializing":
            server.status = "off"
            server.busy = None

    def _started(self, server: Server, at: dt.datetime) -> None:
        if server.status in {"off", "starting"}:
            server.status = "running"
            server.running_since = at
            self._project.tell("running", server)

    # -- changing -------------------------------------------------------------------------------------------------

    def update(self, number: int, body: Json) -> Reply:
        server = self.find(number)
        if body.get("name") is not None and body["name"] != server.name:
            if any(each.name == body["name"] for each in self._project.servers.values()):
                raise taken("name", "server name is already used")
            if not isinstance(body["name"], str) or not _HOSTNAME.fullmatch(body["name"]):
                raise invalid("name", "must be a valid hostname as per RFC 1123")
            server.name = body["name"]
        if body.get("labels") is not None:
            server.labels = labels.checked(body["labels"])  # the whole set: what is not named is gone
        return self.shown(number)

    def delete(self, number: int) -> Reply:
        project, server = self._project, self.find(number)
        if server.delete_protected:
            raise Refusal(403, "protected", "server deletion is protected")
        unlocked(project, server)
        for action in project.actions.values():
            if action.running and ("server", number) in action.resources:
                project.fail(action, "server_deleted", "the server was deleted")
        server.status = "deleting"
        action = project.act(
            "delete_server",
            [("server", server.id)],
            seconds=self._random.uniform(*self._times.delete),
            then=lambda at: self._gone(server, at),
        )
        server.busy = action.id
        project.tell("deleting", server)
        return Reply(200, {"action": action.json(project.now)})

    def end(self, number: int) -> None:
        """Whatever was to become of the server, it is gone now."""
        server = self._project.servers.get(number)
        if server is not None:
            for action in self._project.actions.values():
                if action.running and ("server", number) in action.resources:
                    action.finished = self._project.now
                    action.failed = action.command != "delete_server"
                    action.error = ("server_deleted", "the server was deleted") if action.failed else None
            self._gone(server, self._project.now)

    def _gone(self, server: Server, at: dt.datetime) -> None:
        project = self._project
        if project.servers.pop(server.id, None) is None:
            return
        for network in project.networks.values():
            network.members.pop(server.id, None)
        for firewall in server.firewalls:
            if firewall in project.firewalls and server.id in project.firewalls[firewall].servers:
                project.firewalls[firewall].servers.remove(server.id)
        if server.group is not None and server.id in server.group.servers:
            server.group.servers.remove(server.id)
        project.market.give_back(server.type, server.location)
        project.ledger.ended(server.id, at)
        project.tell("gone", server)

    def act(self, number: int, word: str, body: Json) -> Reply:
        """`POST /servers/{id}/actions/{word}`."""
        server = self.find(number)
        return Reply(201, {"action": self._doings.perform(server, word, body).json(self._project.now)})

    # -- what a request names -------------------------------------------------------------------------------------

    def _location(self, key: Any) -> str:
        if key is None:
            return DEFAULT_LOCATION
        for name, (number, *_) in LOCATIONS.items():
            if str(key) in {name, str(number)}:
                return name
        raise invalid("location", f"unknown location {key}")

    def _image(self, key: Any, kind: ServerType) -> Image:
        found = [each for each in self._project.images.values() if str(key) in {str(each.id), each.name}]
        if not found:
            raise Refusal(404, "not_found", f"image {key} not found")
        fitting = [each for each in found if each.arm == kind.arm]
        if not fitting:
            raise invalid("image", f"image architecture does not fit server type {kind.name} ({kind.architecture})")
        image = fitting[0]
        if image.status != "available":
            raise Refusal(412, "resource_unavailable", f"image {image.id} is not available")
        if image.size_gb > kind.disk_gb:
            raise invalid("image", f"image disk is bigger than the disk of server type {kind.name}")
        return image

    def _ssh_key(self, key: Any) -> int:
        for each in self._project.ssh_keys.values():
            if str(key) in {str(each.id), each.name}:
                return each.id
        raise Refusal(404, "not_found", f"SSH key {key} not found")

    def _chance(self, rate: float) -> bool:
        return self._random.uniform(0.0, 1.0) < rate

    def _late(self) -> tuple[int, tuple[str, str]]:
        return self._step(), self._random.choice(_LATE)

    def _step(self) -> int:
        return self._random.choice((0, 1, 2))
