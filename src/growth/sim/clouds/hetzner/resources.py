"""The smaller collections: SSH keys, placement groups, networks, firewalls, images, types, locations and actions."""

import base64
import binascii
import hashlib
import ipaddress
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from growth.api.kinds import Json
from growth.providers.numbered import number_in
from growth.sim.clouds.frame import Reply
from growth.sim.clouds.hetzner import labels
from growth.sim.clouds.hetzner.market import LOCATIONS, location_json
from growth.sim.clouds.hetzner.objects import Firewall, Network, PlacementGroup, SshKey
from growth.sim.clouds.hetzner.project import Project, admitted
from growth.sim.clouds.hetzner.wire import Query, Refusal, first, invalid, not_found, ordered, page, taken

_SORTED: Final = ("id", "name", "created")
_IMAGE_WORDS: Final = {
    "type": frozenset({"system", "app", "snapshot", "backup"}),
    "architecture": frozenset({"x86", "arm"}),
    "status": frozenset({"available", "creating", "unavailable"}),
}


def _selected(things: Sequence[Any], query: Query) -> list[Json]:
    selector, name = labels.selector(first(query, "label_selector")), first(query, "name")
    return [each.json() for each in things if (not name or each.name == name) and selector.selects(each.labels)]


def _name(body: Json, among: Mapping[int, Any], *, what: str, but: int = 0) -> str:
    name = body.get("name")
    if not isinstance(name, str) or not name.strip() or len(name) > 255:
        raise invalid("name", "must be a text of 1 to 255 characters")
    if any(each.name == name and each.id != but for each in among.values()):
        raise taken("name", f"{what} name is already used")
    return name


class Collection:
    """One kind of thing with a name and labels. `create` makes one of a body; `refuse` says why one cannot go."""

    def __init__(
        self,
        plural: str,
        singular: str,
        things: dict[int, Any],
        *,
        create: Callable[[Json], Any] | None = None,
        refuse: Callable[[Any], Refusal | None] = lambda _: None,
    ) -> None:
        self.plural = plural
        self._singular = singular
        self._things = things
        self._create = create
        self._refuse = refuse

    def listed(self, query: Query) -> Reply:
        return page(ordered(_selected(list(self._things.values()), query), query, by=_SORTED), self.plural, query)

    def shown(self, number: int) -> Reply:
        return Reply(200, {self._singular: self._find(number).json()})

    def created(self, body: Json) -> Reply:
        if self._create is None:
            raise Refusal(405, "method_not_allowed", "method not allowed")
        made = self._create(body)
        self._things[made.id] = made
        more: Json = {} if self._singular in {"ssh_key", "network"} else {"actions": []}
        if self._singular == "placement_group":
            more = {"action": None}
        return Reply(201, {self._singular: made.json(), **more})

    def updated(self, number: int, body: Json) -> Reply:
        thing = self._find(number)
        if body.get("name") is not None:
            thing.name = _name(body, self._things, what=self._singular, but=number)
        if body.get("labels") is not None:
            thing.labels = labels.checked(body["labels"])
        return self.shown(number)

    def deleted(self, number: int) -> Reply:
        thing = self._find(number)
        if (refusal := self._refuse(thing)) is not None:
            raise refusal
        del self._things[number]
        return Reply(204)

    def _find(self, number: int) -> Any:
        if number not in self._things:
            raise not_found(self._singular, number)
        return self._things[number]


def collections(project: Project) -> Mapping[str, Collection]:
    """By the first part of their path."""

    def ssh_key(body: Json) -> SshKey:
        admitted(len(project.ssh_keys), project.limits.ssh_keys, "ssh_keys")
        name, text = _name(body, project.ssh_keys, what="SSH key"), body.get("public_key")
        fingerprint = _fingerprint(text)
        if any(each.fingerprint == fingerprint for each in project.ssh_keys.values()):
            raise taken("public_key", "SSH key with the same fingerprint already exists")
        return SshKey(
            id=project.new_id(),
            name=name,
            public_key=str(text),
            fingerprint=fingerprint,
            created=project.now,
            labels=labels.checked(body.get("labels")),
        )

    def group(body: Json) -> PlacementGroup:
        admitted(len(project.placement_groups), project.limits.placement_groups, "placement_groups")
        name = _name(body, project.placement_groups, what="placement group")
        if body.get("type") != "spread":
            raise invalid("type", "must be spread")
        return PlacementGroup(
            id=project.new_id(), name=name, created=project.now, labels=labels.checked(body.get("labels"))
        )

    def network(body: Json) -> Network:
        admitted(len(project.networks), project.limits.networks, "networks")
        name = _name(body, project.networks, what="network")
        whole = _range(body.get("ip_range"), "ip_range")
        subnets = [_subnet(each, whole) for each in body.get("subnets") or ()]
        return Network(
            id=project.new_id(),
            name=name,
            ip_range=str(whole),
            subnets=subnets,
            created=project.now,
            labels=labels.checked(body.get("labels")),
        )

    def firewall(body: Json) -> Firewall:
        admitted(len(project.firewalls), project.limits.firewalls, "firewalls")
        name = _name(body, project.firewalls, what="firewall")
        return Firewall(
            id=project.new_id(),
            name=name,
            rules=[_rule(each) for each in body.get("rules") or ()],
            created=project.now,
            labels=labels.checked(body.get("labels")),
        )

    def in_use(what: str, holds: Callable[[Any], bool]) -> Callable[[Any], Refusal | None]:
        return lambda thing: Refusal(422, "resource_in_use", f"{what} is still in use") if holds(thing) else None

    return {
        each.plural: each
        for each in (
            Collection("ssh_keys", "ssh_key", project.ssh_keys, create=ssh_key),
            Collection(
                "placement_groups",
                "placement_group",
                project.placement_groups,
                create=group,
                refuse=in_use("placement group", lambda thing: bool(thing.servers)),
            ),
            Collection(
                "networks",
                "network",
                project.networks,
                create=network,
                refuse=in_use("network", lambda thing: bool(thing.members)),
            ),
            Collection(
                "firewalls",
                "firewall",
                project.firewalls,
                create=firewall,
                refuse=in_use("firewall", lambda thing: bool(thing.servers)),
            ),
            _Images("images", "image", project.images, refuse=_only_own),
        )
    }


class _Images(Collection):
    def listed(self, query: Query) -> Reply:
        wanted = {field: set(query.get(field, ())) for field in _IMAGE_WORDS}
        for field, values in wanted.items():
            if unknown := values - _IMAGE_WORDS[field]:
                raise invalid(field, f"{min(unknown)} is none of {', '.join(sorted(_IMAGE_WORDS[field]))}")
        found = [
            each
            for each in _selected(list(self._things.values()), query)
            if all(not values or each[field] in values for field, values in wanted.items())
        ]
        return page(ordered(found, query, by=_SORTED), self.plural, query)


def _only_own(image: Any) -> Refusal | None:
    return None if image.type != "system" else Refusal(403, "forbidden", "system images cannot be deleted")


# -- what can only be read ------------------------------------------------------------------------------------------


def server_types(project: Project, number: int | None, query: Query) -> Reply:
    if number is not None:
        kind = project.market.find(number, project.now)
        if kind is None:
            raise not_found("server_type", number)
        return Reply(200, {"server_type": kind.json(project.now)})
    name = first(query, "name")
    found = [kind.json(project.now) for kind in project.market.types(project.now) if not name or kind.name == name]
    return page(ordered(found, query, by=("id", "name")), "server_types", query)


def locations(number: int | None, query: Query) -> Reply:
    found = [location_json(name) for name in LOCATIONS]
    if number is not None:
        for each in found:
            if each["id"] == number:
                return Reply(200, {"location": each})
        raise not_found("location", number)
    name = first(query, "name")
    return page(
        ordered([each for each in found if not name or each["name"] == name], query, by=("id", "name")),
        "locations",
        query,
    )


def actions(
    project: Project, query: Query, *, resource: str = "", of: int | None = None, ids_needed: bool = False
) -> Reply:
    """Of everything (then `id` must name them), of one kind of resource, or of one resource."""
    numbers = query.get("id", ())
    if ids_needed and not numbers:
        raise Refusal(410, "deprecated_api_endpoint", "list actions by id, or of one resource")
    if bad := [each for each in numbers if number_in(each) is None]:
        raise invalid("id", f"{bad[0]} is no number")
    wanted, statuses = {number_in(each) for each in numbers}, set(query.get("status", ()))
    found = [
        action.json(project.now)
        for action in project.actions.values()
        if (not wanted or action.id in wanted)
        and (not resource or any(kind == resource and of in {None, number} for kind, number in action.resources))
    ]
    found = [each for each in found if not statuses or each["status"] in statuses]
    return page(
        ordered(found, query, by=("id", "command", "status", "progress", "started", "finished")), "actions", query
    )


def action(project: Project, number: int) -> Reply:
    if number not in project.actions:
        raise not_found("action", number)
    return Reply(200, {"action": project.actions[number].json(project.now)})


# -- fields ---------------------------------------------------------------------------------------------------------


def _fingerprint(text: Any) -> str:
    parts = text.split() if isinstance(text, str) else []
    try:
        raw = base64.b64decode(parts[1], validate=True)
    except (IndexError, binascii.Error):
        raise invalid("public_key", "is no SSH public key") from None
    digest = hashlib.md5(raw, usedforsecurity=False).hexdigest()
    return ":".join(digest[at : at + 2] for at in range(0, 32, 2))


def _range(text: Any, field: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(text)
    except (ValueError, TypeError):
        raise invalid(field, "must be an IPv4 range in CIDR notation") from None


def _subnet(body: Any, whole: ipaddress.IPv4Network) -> Json:
    if not isinstance(body, dict) or body.get("type") not in {"cloud", "server", "vswitch"}:
        raise invalid("subnets", "each has a type: cloud")
    zone = body.get("network_zone")
    if zone not in {place[5] for place in LOCATIONS.values()}:
        raise invalid("subnets", f"unknown network zone {zone}")
    part = _range(body.get("ip_range") or str(whole), "subnets")
    if not part.subnet_of(whole):
        raise invalid("subnets", f"{part} is not inside {whole}")
    return {
        "type": body["type"],
        "ip_range": str(part),
        "network_zone": zone,
        "gateway": str(whole.network_address + 1),
        "vswitch_id": None,
    }


def _rule(body: Any) -> Json:
    if not isinstance(body, dict) or body.get("direction") not in {"in", "out"} or not body.get("protocol"):
        raise invalid("rules", "each has a direction and a protocol")
    return {
        "direction": body["direction"],
        "protocol": body["protocol"],
        "port": body.get("port"),
        "source_ips": body.get("source_ips") or [],
        "destination_ips": body.get("destination_ips") or [],
        "description": body.get("description"),
    }
