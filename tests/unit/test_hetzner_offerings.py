"""What Hetzner sells, read from its own words: prices, places, ends, successors, sizes; and what its codes mean."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from growth.api import names
from growth.api.instance_types import InstanceType
from growth.api.nodeclasses import HETZNER_NODE_CLASS
from growth.providers.hetzner.classes import hash_of
from growth.providers.hetzner.failures import Meaning, in_words, meaning
from growth.providers.hetzner.labels import label_value, number_of
from growth.providers.hetzner.offerings import catalogue, for_class, owned_by_class
from growth.providers.hetzner.owned import figures
from growth.providers.hetzner.wire import Pricing, ServerType
from growth.providers.sizes import learned_sizes

NOW = dt.datetime(2026, 11, 16, tzinfo=dt.UTC)
PRICING = msgspec.convert(
    {
        "currency": "EUR",
        "primary_ips": [{"type": "ipv4", "prices": []}],
        "server_backup": {"percentage": "20.0000"},
    },
    Pricing,
)


def price(location: str, hourly: str, monthly: str = "8.49") -> dict[str, Any]:
    return {
        "location": location,
        "price_hourly": {"net": hourly, "gross": "1"},
        "price_monthly": {"net": monthly, "gross": "1"},
    }


def server_type(name: str, **more: Any) -> ServerType:
    raw = {
        "id": 1,
        "name": name,
        "cores": 4,
        "memory": 8.0,
        "disk": 80,
        "cpu_type": "shared",
        "architecture": "x86",
        "prices": [price("fsn1", "0.0136"), price("nbg1", "0.0140")],
        "locations": [{"id": 1, "name": "fsn1", "available": True}, {"id": 2, "name": "nbg1", "available": False}],
        **more,
    }
    return msgspec.convert(raw, ServerType)


def node_class(status: dict[str, Any] | None = None, **spec: Any) -> Any:
    return msgspec.convert(
        {"metadata": {"name": "default"}, "spec": spec, "status": status or {}}, HETZNER_NODE_CLASS.type
    )


def one(*types: ServerType) -> InstanceType:
    (kind,) = catalogue(types, PRICING, now=NOW).types
    return kind


def ended(days: int) -> dict[str, str]:
    return {"announced": "2024-06-06T00:00:00Z", "unavailable_after": (NOW + dt.timedelta(days=days)).isoformat()}


def test_a_type_is_sold_where_it_has_a_price_whatever_its_flag_says() -> None:
    """`available` is advice; memory is binary, disk decimal; an hour is the quantum and a month the cap."""
    kind = one(server_type("cx33"))
    assert [(each.zone, each.price, each.available) for each in kind.offerings] == [
        ("fsn1", 13_600_000, True),
        ("nbg1", 14_000_000, True),
    ]
    assert kind.capacity == {"cpu": 4000, "memory": 8 << 30, "pods": 110, "ephemeral-storage": 80 * 10**9}
    assert kind.labels[names.ARCH_LABEL] == ("amd64",)
    billing = kind.offerings[0].billing
    assert billing is not None
    assert (billing.quantum_seconds, billing.monthly_cap) == (3600, 8_490_000_000)


def test_a_price_that_is_missing_means_not_sold() -> None:
    """Never zero: neither of a type nor of an extra that the class has."""
    assert [each.zone for each in one(server_type("cx33", prices=[price("fsn1", "0.0136")])).offerings] == ["fsn1"]
    assert catalogue([server_type("cx33", prices=[price("fsn1", "")])], PRICING, now=NOW).types == ()
    sold = catalogue([server_type("cx33")], PRICING, now=NOW)
    (with_address,) = for_class(node_class(), sold, PRICING)
    assert {each.price for each in with_address.offerings} == {None}
    (bare,) = for_class(node_class(publicNet={"ipv4": False}, backups=True), sold, PRICING)
    assert [each.price for each in bare.offerings] == [16_320_000, 16_800_000]


def test_what_can_no_longer_be_ordered_names_its_successor() -> None:
    """Of one that ended everywhere the type of the same sort and size; one that only was announced is still sold."""
    sold = catalogue(
        [
            server_type("cx32", deprecation=ended(-1)),
            server_type("cx33"),
            server_type("cpx33x"),
            server_type("cpx31", locations=[{"name": "fsn1", "deprecation": ended(-1)}]),
            server_type("cpx32"),
            server_type("ccx13", deprecation=ended(+30)),
        ],
        PRICING,
        now=NOW,
    )
    assert [kind.name for kind in sold.types] == ["ccx13", "cpx32", "cpx33x", "cx33"]
    assert sold.successors["cx32"] == "cx33"
    assert sold.successors["cx31"] == "cx33"
    assert sold.successors["cpx31"] == "cpx32"


def test_a_place_where_a_type_ended_is_left_out() -> None:
    """The others stay."""
    places = [{"name": "fsn1", "deprecation": ended(-1)}, {"name": "nbg1", "deprecation": ended(1)}]
    assert [each.zone for each in one(server_type("cx33", locations=places)).offerings] == ["nbg1"]


def test_a_class_narrows_places_and_sets_pods() -> None:
    """Everything else is as it is sold."""
    sold = catalogue([server_type("cx33")], PRICING, now=NOW)
    (kind,) = for_class(node_class(locations=["nbg1"], maxPods=250, publicNet={"ipv4": False}), sold, PRICING)
    assert [each.zone for each in kind.offerings] == ["nbg1"]
    assert kind.allocatable["pods"] == 250


def test_what_nodes_reported_counts_until_the_class_changes() -> None:
    """Allocatable is what they reported, to the byte; of a class that was changed nothing is known."""
    sold = catalogue([server_type("cx33")], PRICING, now=NOW)
    spec = {"publicNet": {"ipv4": False}}
    learned = {
        "name": "cx33",
        "hash": hash_of(node_class(**spec).spec),
        "capacity": {"cpu": "4", "memory": "7900Mi", "pods": "110"},
        "allocatable": {"cpu": "3800m", "memory": "7400Mi", "pods": "100"},
    }
    (kind,) = for_class(node_class({"learnedTypes": [learned]}, **spec), sold, PRICING)
    assert kind.capacity["memory"] == 7900 << 20
    assert (kind.allocatable["memory"], kind.allocatable["cpu"], kind.allocatable["pods"]) == (7400 << 20, 3800, 100)
    assert kind.allocatable["ephemeral-storage"] == 80 * 10**9
    (anew,) = for_class(node_class({"learnedTypes": [learned]}, **spec, labels={"a": "b"}), sold, PRICING)
    assert anew.capacity["memory"] == 8 << 30


def test_nodes_that_allow_more_pods_than_their_class_change_nothing() -> None:
    """The class says how many at most, whatever a kubelet that nobody told says; one that allows fewer is believed."""
    sold = catalogue([server_type("cx33")], PRICING, now=NOW)
    for reported, reckoned in (("110", 30), ("20", 20)):
        spec: dict[str, Any] = {"publicNet": {"ipv4": False}, "maxPods": 30}
        size = {"cpu": "4", "memory": "7900Mi", "pods": reported}
        learned = {"name": "cx33", "hash": hash_of(node_class(**spec).spec), "capacity": size, "allocatable": size}
        made = node_class({"learnedTypes": [learned]}, **spec)
        (kind,) = for_class(made, sold, PRICING)
        assert (kind.capacity["pods"], kind.allocatable["pods"]) == (reckoned, reckoned)
        assert learned_sizes(HETZNER_NODE_CLASS, made)["cx33"][1]["pods"] == reckoned


def test_owned_machines_hold_no_more_pods_than_their_class_allows() -> None:
    """Nor more than their entry or their Nodes say: the class sets no kubelet of theirs."""
    machine = {"name": "gpu-1", "serverNumber": 11, "serverType": "GEX44"}
    few = {**machine, "capacity": {"pods": "30"}}
    for entry, most, reckoned in ((machine, 20, 20), (machine, 250, 110), (few, 250, 30), (few, 20, 20)):
        spec: dict[str, Any] = {"inventory": [entry], "maxPods": most}
        (kind,) = owned_by_class(node_class(**spec), ())
        assert (kind.capacity["pods"], kind.allocatable["pods"]) == (reckoned, reckoned)
        size = {"cpu": "20", "memory": "60Gi", "pods": "200"}
        (told,) = filter(None, map(figures, node_class(**spec).spec.inventory))
        learned = {"name": "gex44", "hash": told.hash, "capacity": size, "allocatable": size}
        (kind,) = owned_by_class(node_class({"learnedTypes": [learned]}, **spec), ())
        assert kind.allocatable["memory"] == 60 << 30
        assert kind.allocatable["pods"] == min(most, 200)


def test_the_hash_is_of_what_a_machine_is_made_with() -> None:
    """Order does not count, nor do places; every other field does."""
    base = hash_of(node_class(sshKeys=["a", 1], networks=["n"]).spec)
    assert hash_of(node_class(sshKeys=[1, "a"], networks=["n"], locations=["fsn1"]).spec) == base
    for change in (
        {"image": {"name": "debian-13"}},
        {"firewalls": ["x"]},
        {"placementGroup": "Spread"},
        {"publicNet": {"ipv4": False}},
        {"backups": True},
        {"maxPods": 50},
        {"labels": {"a": "b"}},
        {"userData": {"mode": "raw", "secretRef": {"name": "x"}}},
    ):
        assert hash_of(node_class(sshKeys=["a", 1], networks=["n"], **change).spec) != base, change


@pytest.mark.parametrize(
    ("code", "message", "means"),
    [
        ("resource_unavailable", "", Meaning.CAPACITY),
        ("placement_error", "", Meaning.CAPACITY),
        ("no_space_left_in_location", "", Meaning.CAPACITY),
        ("maintenance", "", Meaning.CAPACITY),
        ("invalid_input", "unsupported location for server type cx33", Meaning.CAPACITY),
        ("invalid_input", "invalid input in field 'user_data'", Meaning.CONFIG),
        ("resource_limit_exceeded", "", Meaning.QUOTA),
        ("rate_limit_exceeded", "", Meaning.TRANSIENT),
        ("conflict", "", Meaning.TRANSIENT),
        ("locked", "", Meaning.TRANSIENT),
        ("service_error", "", Meaning.TRANSIENT),
        ("server_error", "", Meaning.TRANSIENT),
        ("a_code_of_next_year", "", Meaning.TRANSIENT),
        ("", "", Meaning.TRANSIENT),
        ("uniqueness_error", "", Meaning.TAKEN),
        ("not_found", "", Meaning.CONFIG),
        ("invalid_server_type", "", Meaning.CONFIG),
        ("no_subnet_available", "", Meaning.CONFIG),
        ("service_error", "no subnet or IP available", Meaning.CONFIG),
        ("ip_not_available", "", Meaning.CONFIG),
        ("networks_overlap", "", Meaning.CONFIG),
        ("unauthorized", "", Meaning.FATAL),
        ("forbidden", "", Meaning.FATAL),
        ("token_readonly", "", Meaning.FATAL),
    ],
)
def test_codes_mean_one_thing(code: str, message: str, means: Meaning) -> None:
    """The code decides; what is not known blames nobody."""
    assert meaning(code, message) is means


def test_a_refused_token_is_told_of_in_our_own_words() -> None:
    """The vendor's may quote the token."""
    assert "tok" not in in_words("unauthorized", "tok-of-mine").replace("token", "")


def test_what_the_vendor_says_of_single_fields_is_told() -> None:
    """The message names the field, its details the cause; several fields are told apart, and odd details harm nothing."""
    head, one = "invalid input in field 'labels'", {"name": "labels", "messages": ["a/b is reserved", "c is too long"]}
    assert in_words("invalid_input", head, {"fields": [one]}) == (
        f"{head}: a/b is reserved, c is too long (invalid_input)"
    )
    two = [one, {"name": "name", "messages": ["is empty"]}]
    assert in_words("invalid_input", "invalid input", {"fields": two}) == (
        "invalid input: labels: a/b is reserved, c is too long; name: is empty (invalid_input)"
    )
    odd_ones: tuple[dict[str, Any], ...] = (
        {},
        {"fields": None},
        {"fields": ["x", {"name": 1}, {"messages": "x"}, {"messages": [1]}]},
        {"limits": []},
    )
    for odd in odd_ones:
        assert in_words("invalid_input", head, odd) == f"{head} (invalid_input)"
    long = in_words("invalid_input", head, {"fields": [{"name": "labels", "messages": ["x" * 10_000]}]})
    assert len(long) < 500


def test_ids_and_long_names() -> None:
    """Only whole numbers after our scheme; a label's value keeps a long name apart from others."""
    assert number_of("hcloud://42") == 42
    assert [number_of(each) for each in ("hcloud://", "hcloud://4x", "hcloud://-1", "kwok://4", "hcloud://²")] == [
        None
    ] * 5
    assert label_value("a" * 63) == "a" * 63
    assert len(label_value("a" * 64)) == 63
    assert label_value("a" * 64) != label_value("a" * 65)
