"""Every field of every kind of object that the fake of Hetzner's API serves, beside the models that the vendor publishes in its SDK."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hcloud.actions.domain import Action, ActionError, ActionResource
from hcloud.core.domain import Meta, Pagination
from hcloud.deprecation.domain import DeprecationInfo
from hcloud.firewalls.domain import Firewall, FirewallResource, FirewallRule
from hcloud.images.domain import Image
from hcloud.locations.domain import Location
from hcloud.networks.domain import Network, NetworkSubnet
from hcloud.placement_groups.domain import PlacementGroup
from hcloud.server_types.domain import ServerType, ServerTypeLocation
from hcloud.servers.domain import (
    CreateServerResponse,
    IPv4Address,
    IPv6Network,
    PrivateNet,
    PublicNetwork,
    PublicNetworkFirewall,
    Server,
)
from hcloud.ssh_keys.domain import SSHKey

from growth.api.kinds import Json
from growth.sim.clouds.hetzner import FakeSettings, Faults
from growth.sim.ports import Request
from tests.hetzner import SSH_KEY, START, TOKEN, new_fake

ORDER = {"name": "web", "server_type": "cx23", "image": "ubuntu-24.04", "location": "fsn1"}
SUBNET = {"type": "cloud", "network_zone": "eu-central", "ip_range": "10.0.0.0/24"}
RULE = {"direction": "in", "protocol": "tcp", "port": "22", "source_ips": ["0.0.0.0/0"]}
# Models whose fields the SDK lists in no `__api_properties__`.
LISTED: dict[type, tuple[str, ...]] = {
    ActionResource: ("id", "type"),
    ActionError: ("code", "message"),
}
# Fields that one side alone has, each with its reason.
OURS_ALONE: dict[tuple[type, str], str] = {
    (Image, "deprecated"): "the API has it beside `deprecation`, and the SDK reads the newer one",
    (Image, "deleted"): "the API has it, and the SDK reads no deleted image",
    (Network, "load_balancers"): "the API has it, and the SDK reads them from the balancers",
    (Server, "load_balancers"): "the API has it, and the SDK reads them from the balancers",
    (IPv4Address, "id"): "the API has it; the SDK makes `primary_ipv4` of the public net of it",
    (IPv6Network, "id"): "the API has it; the SDK makes `primary_ipv6` of the public net of it",
    (PublicNetworkFirewall, "id"): "the SDK makes `firewall` of it",
    (ServerTypeLocation, "id"): "the SDK makes `location` of number and name",
    (ServerTypeLocation, "name"): "the SDK makes `location` of number and name",
}
THEIRS_ALONE: dict[tuple[type, str], str] = {
    (PublicNetwork, "primary_ipv4"): "the SDK makes it of the `id` of `ipv4`",
    (PublicNetwork, "primary_ipv6"): "the SDK makes it of the `id` of `ipv6`",
    (IPv6Network, "network"): "the SDK makes it of `ip`",
    (IPv6Network, "network_mask"): "the SDK makes it of `ip`",
    (PublicNetworkFirewall, "firewall"): "the SDK makes it of `id`",
    (ServerTypeLocation, "location"): "the SDK makes it of `id` and `name`",
    (FirewallResource, "label_selector"): "of resources of that type, which the fake does not make",
    (
        FirewallResource,
        "applied_to_resources",
    ): "of resources that are selected by labels, which the fake does not make",
}
# What is served and has no model in the SDK.
WITHOUT_MODEL = {"pricing": "the SDK hands the price list on as it is"}


class Api:
    def __init__(self) -> None:
        self.fake, self.clock = new_fake(settings=FakeSettings(tokens=frozenset({TOKEN})))

    def call(self, method: str, path: str, body: Json | None = None) -> Json:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        url = f"https://hetzner.test/v1/{path}"
        raw = None if body is None else json.dumps(body).encode()
        response, _ = self.fake.handle(Request(method=method, url=url, headers=headers, body=raw))
        assert response.status < 300, response.body
        found: Json = json.loads(response.body)
        return found


@pytest.fixture(scope="module")
def bodies() -> list[tuple[type, Json]]:
    """One object of every kind, with all its parts, and the model of each."""
    api = Api()
    api.fake.market.deprecate("cx33", "hel1", announced=START, unavailable_after=START.replace(year=2027))
    key = api.call("POST", "ssh_keys", {"name": "me", "public_key": SSH_KEY})["ssh_key"]
    group = api.call("POST", "placement_groups", {"name": "spread", "type": "spread"})["placement_group"]
    network = api.call("POST", "networks", {"name": "net", "ip_range": "10.0.0.0/16", "subnets": [SUBNET]})["network"]
    firewall = api.call("POST", "firewalls", {"name": "wall", "rules": [RULE]})["firewall"]
    parts = {
        "ssh_keys": [key["id"]],
        "placement_group": group["id"],
        "networks": [network["id"]],
        "firewalls": [{"firewall": firewall["id"]}],
    }
    made = api.call("POST", "servers", {**ORDER, **parts})
    api.clock.add(600)
    api.fake.advance()
    server = api.call("GET", f"servers/{made['server']['id']}")["server"]
    listed = api.call("GET", "servers")
    api.fake.faults = Faults(late_failure=1.0)
    api.call("POST", "servers", {**ORDER, "name": "broken"})
    api.fake.faults = Faults()
    api.clock.add(600)
    api.fake.advance()
    done = api.call("GET", f"servers/{server['id']}/actions")["actions"]
    failed = [each for each in api.fake.project.actions.values() if each.failed]
    error = failed[0].json(api.fake.project.now)
    wall = api.call("GET", f"firewalls/{firewall['id']}")["firewall"]
    kinds = api.call("GET", "server_types")["server_types"]
    kind = next(each for each in kinds if any(place.get("deprecation") for place in each["locations"]))
    place = next(each for each in kind["locations"] if each.get("deprecation"))
    net = server["public_net"]
    return [
        (CreateServerResponse, made),
        (Server, server),
        (PublicNetwork, net),
        (IPv4Address, net["ipv4"]),
        (IPv6Network, net["ipv6"]),
        (PublicNetworkFirewall, net["firewalls"][0]),
        (PrivateNet, server["private_net"][0]),
        (Image, server["image"]),
        (Location, server["location"]),
        (ServerType, kind),
        (ServerTypeLocation, place),
        (DeprecationInfo, place["deprecation"]),
        (PlacementGroup, server["placement_group"]),
        (Network, api.call("GET", f"networks/{network['id']}")["network"]),
        (NetworkSubnet, network["subnets"][0]),
        (Firewall, wall),
        (FirewallRule, wall["rules"][0]),
        (FirewallResource, wall["applied_to"][0]),
        (SSHKey, key),
        (Action, done[0]),
        (ActionResource, done[0]["resources"][0]),
        (ActionError, error["error"]),
        (Meta, listed["meta"]),
        (Pagination, listed["meta"]["pagination"]),
    ]


def fields_of(model: Any) -> set[str]:
    return {*(LISTED.get(model) or model.__api_properties__)}


def differences(bodies: list[tuple[type, Json]]) -> Iterator[tuple[type, str, str]]:
    for model, body in bodies:
        yield from ((model, field, "ours") for field in body.keys() - fields_of(model))
        yield from ((model, field, "theirs") for field in fields_of(model) - body.keys())


def test_the_fake_serves_the_fields_of_the_vendors_models(bodies: list[tuple[type, Json]]) -> None:
    """All of them and no others, but for exemptions that say why."""
    known = {(*each, "ours") for each in OURS_ALONE} | {(*each, "theirs") for each in THEIRS_ALONE}
    assert {*differences(bodies)} - known == set()


def test_no_exemption_outlives_its_reason(bodies: list[tuple[type, Json]]) -> None:
    """Each of them is of a difference that there is."""
    found = {*differences(bodies)}
    assert {(*each, "ours") for each in OURS_ALONE} - found == set()
    assert {(*each, "theirs") for each in THEIRS_ALONE} - found == set()


def test_every_kind_that_is_served_is_compared(bodies: list[tuple[type, Json]]) -> None:
    """Whatever the fake lists has its model here."""
    served = {path for method, path in Api().fake._table() if method == "GET" and path.isidentifier()}
    compared = {model.__name__.lower() for model, _ in bodies}
    assert {each for each in served if each.removesuffix("s").replace("_", "") not in compared} == {*WITHOUT_MODEL}
