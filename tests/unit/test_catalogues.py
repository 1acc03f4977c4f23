"""What clouds sell: built-in lists, and files in the format of Karpenter's KWOK provider."""

import json
import pathlib
from typing import Any

import pytest

from growth.api import names
from growth.api.instance_types import InstanceType
from growth.providers.catalogues import CLOUDS, builtin, hetzner, hours_of_month
from growth.providers.catalogues.file import CatalogueError, load, parse
from growth.units.money import Money, monthly


def by_name(cloud: str) -> dict[str, InstanceType]:
    return {kind.name: kind for kind in builtin(cloud, dedicated=True).types}


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "name": "m5.xlarge",
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "4", "memory": "16Gi"},
        "offerings": [{"price": 0.192, "zone": "eu-1a", "capacityType": "on-demand"}],
        **changes,
    }


def read(*entries: object) -> list[InstanceType]:
    return list(parse(json.dumps(entries), source="types.json", cloud="kwok", currency="USD").types)


def refused(*entries: object) -> str:
    with pytest.raises(CatalogueError) as caught:
        read(*entries)
    return str(caught.value)


def test_kwok_has_144_types_in_8_offerings_each() -> None:
    """Twelve sizes, three ratios, two systems, two architectures; four zones, spot and on demand."""
    types = builtin("kwok").types
    assert len(types) == len({kind.name for kind in types}) == 144
    assert {len(kind.offerings) for kind in types} == {8}


@pytest.mark.parametrize(
    ("name", "cores", "gib", "pods", "on_demand", "spot"),
    [
        ("c-1x-amd64-linux", 1, 2, 16, 27_147_484, 19_003_239),
        ("s-4x-arm64-windows", 4, 16, 64, 117_179_869, 82_025_908),
        ("m-256x-amd64-linux", 256, 2048, 1024, 8_599_023_256, 6_019_316_279),
    ],
)
def test_a_kwok_type_is_calculated_as_karpenter_does(
    *, name: str, cores: int, gib: int, pods: int, on_demand: int, spot: int
) -> None:
    """0.025 a core and 0.001 a GB an hour, spot at 70 %, 16 pods a core and 1024 at most, 20 GiB of disk."""
    kind = by_name("kwok")[name]
    assert kind.capacity == {
        "cpu": 1000 * cores,
        "memory": gib << 30,
        "pods": pods,
        "ephemeral-storage": 20 << 30,
    }
    assert kind.allocatable["cpu"] == 1000 * cores - 100
    assert kind.allocatable["memory"] == (gib << 30) - (10 << 20)
    prices = {offering.capacity_type: offering.price for offering in kind.offerings}
    assert prices == {"on-demand": on_demand, "spot": spot}
    assert kind.labels[names.KWOK_INSTANCE_FAMILY_LABEL] == (name[0],)
    assert kind.labels[names.KWOK_INSTANCE_SIZE_LABEL] == (str(cores),)


def test_a_hetzner_hour_is_the_month_by_624() -> None:
    """€5.49 a month is €0.008798077 an hour; seven percent of the memory and a tenth of a core are not for pods."""
    kind = by_name("hetzner")["cx23"]
    assert {offering.price for offering in kind.offerings} == {8_798_077}
    assert [offering.zone for offering in kind.offerings] == ["fsn1", "nbg1", "hel1"]
    assert kind.allocatable["cpu"] == 1900
    assert kind.allocatable["memory"] == (4 << 30) * 93 // 100
    assert kind.capacity["pods"] == 110
    assert kind.volume_limits == {"csi.hetzner.cloud": 16}


def test_arm_types_are_arm() -> None:
    """Hetzner's CAX are the only types of arm64 there."""
    arm = {name for name, kind in by_name("hetzner").items() if kind.labels[names.ARCH_LABEL] == ("arm64",)}
    assert arm == {"cax11", "cax21", "cax31", "cax41"}


def test_dedicated_machines_are_offered_only_on_request() -> None:
    """No API sells a GEX44, so that no plan may count on one that nobody asked for."""
    assert "gex44" not in {kind.name for kind in builtin("hetzner").types}
    assert by_name("hetzner")["gex44"].capacity["nvidia.com/gpu"] == 1


def test_derived_prices_are_of_types_that_exist() -> None:
    """Every price that is marked as derived belongs to a type in the list."""
    assert by_name("hetzner").keys() >= hetzner.DERIVED_PRICES


def test_linode_prices_are_in_dollars() -> None:
    """Fourteen regions, two of them dearer, and premium types in some of them only."""
    assert builtin("linode").currency == "USD"
    prices = {each.zone: each.price for each in by_name("linode")["g6-standard-1"].offerings}
    assert len(prices) == 14
    assert (prices.pop("id-cgk"), prices.pop("br-gru")) == (21_600_000, 25_200_000)
    assert set(prices.values()) == {18_000_000}
    assert len(by_name("linode")["g7-premium-2"].offerings) == 5


@pytest.mark.parametrize(
    ("cloud", "name", "month"),
    [("hetzner", "cx33", "8.49"), ("linode", "g6-standard-1", "12"), ("linode", "g7-premium-4", "86")],
)
def test_a_month_costs_what_the_cloud_lists_for_one(cloud: str, name: str, month: str) -> None:
    """Neither bills all 730 hours: what is shown, and where the offering's price ends, is the vendor's monthly price."""
    catalogue = builtin(cloud)
    offering = by_name(cloud)[name].offerings[0]
    listed = Money.parse(month, catalogue.currency)
    shown = monthly(Money(offering.price or 0, catalogue.currency), hours=hours_of_month(cloud))
    assert abs(shown.nano - listed.nano) < 1000
    assert offering.billing is not None
    assert offering.billing.monthly_cap == listed.nano
    assert hours_of_month("kwok") == 730


@pytest.mark.parametrize("cloud", CLOUDS)
def test_names_are_in_lower_case_and_offerings_have_a_price(cloud: str) -> None:
    """Pools are matched without regard to case, which needs one spelling on our side."""
    for kind in builtin(cloud, dedicated=True).types:
        assert kind.name == kind.name.lower()
        assert all(offering.price for offering in kind.offerings)
        assert all(amount > 0 for amount in kind.allocatable.values())


def test_a_file_may_say_zone_and_terms_either_way() -> None:
    """Karpenter's `Requirements`, or `zone` and `capacityType`: the same offering."""
    long = {
        "Price": 0.192,
        "Available": True,
        "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["eu-1a"]},
        ],
    }
    assert read(entry()) == read(entry(offerings=[long]))


def test_labels_are_derived_from_the_name() -> None:
    """Amazon's size, others' cores; the family up to the first dot or dash, else the first letter."""
    amazon, google, plain = read(entry(), entry(name="n2-standard-4"), entry(name="Standard"))
    assert amazon.labels[names.KWOK_INSTANCE_SIZE_LABEL] == ("xlarge",)
    assert amazon.labels[names.KWOK_INSTANCE_FAMILY_LABEL] == ("m5",)
    assert google.labels[names.KWOK_INSTANCE_SIZE_LABEL] == ("4",)
    assert google.labels[names.KWOK_INSTANCE_FAMILY_LABEL] == ("n2",)
    assert plain.labels[names.KWOK_INSTANCE_FAMILY_LABEL] == ("S",)
    assert amazon.labels[names.KWOK_INSTANCE_CPU_LABEL] == ("4",)
    assert amazon.labels[names.KWOK_INSTANCE_MEMORY_LABEL] == ("16Gi",)


def test_a_type_of_a_file_has_110_pods_unless_it_says_otherwise() -> None:
    """And 100m and 10Mi are the simulated kubelet's."""
    usual, own = read(entry(), entry(name="small", resources={"cpu": "1", "memory": "1Gi", "pods": "8"}))
    assert usual.capacity["pods"] == 110
    assert own.capacity["pods"] == 8
    assert own.allocatable["cpu"] == 900


def test_an_offering_that_says_false_is_not_available() -> None:
    """What says nothing is available."""
    offered = entry()["offerings"][0]
    (kind,) = read(entry(offerings=[offered, {**offered, "Available": False, "zone": "eu-1b"}]))
    assert [offering.available for offering in kind.offerings] == [True, False]


def test_an_offering_in_several_zones_is_one_a_zone() -> None:
    """Other labels of the offering stay with it."""
    wide = {
        "Price": 1,
        "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"]},
            {"key": "example.com/reservation-id", "operator": "In", "values": ["r-1"]},
        ],
        "ReservationCapacity": 3,
    }
    (kind,) = read(entry(offerings=[wide]))
    assert [(each.zone, each.reservation, each.reservation_capacity) for each in kind.offerings] == [
        ("a", "r-1", 3),
        ("b", "r-1", 3),
    ]


def test_a_file_may_be_yaml(tmp_path: pathlib.Path) -> None:
    """For people who write it by hand."""
    path = tmp_path / "types.yaml"
    path.write_text(
        "- name: a\n  architecture: arm64\n  operatingSystems: [linux]\n  resources: {cpu: 2, memory: 4Gi}\n"
        "  offerings: [{price: 0.1, zone: z, capacityType: spot}]\n"
    )
    catalogue = load(path, cloud="kwok", currency="EUR")
    assert catalogue.types[0].capacity["cpu"] == 2000
    assert catalogue.currency == "EUR"


OFFERING = entry()["offerings"][0]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (entry(name=""), "entry 0: name is empty"),
        (entry(name=7), "entry 0: name must be a text, but is a number"),
        ("m5", "entry 0: must be an object, but is a text"),
        (entry(architecture=None), "entry 0 (m5.xlarge): architecture is missing"),
        (entry(operatingSystems=[]), "entry 0 (m5.xlarge): operatingSystems must name at least one"),
        (entry(resources={"cpu": "4"}), "entry 0 (m5.xlarge): resources.memory is missing"),
        (entry(resources={"cpu": "4x", "memory": "1Gi"}), "entry 0 (m5.xlarge): resources.cpu: "),
        (entry(resources={"cpu": "-4", "memory": "1Gi"}), "resources.cpu: -4 is less than nothing"),
        (entry(offerings=[]), "entry 0 (m5.xlarge): offerings is empty"),
        (entry(offerings=[{**OFFERING, "price": None}]), "offerings[0]: Price is missing"),
        (entry(offerings=[{**OFFERING, "price": "dear"}]), "offerings[0]: Price: "),
        (entry(offerings=[{**OFFERING, "price": -1}]), "offerings[0]: Price -1 is less than nothing"),
        (entry(offerings=[OFFERING, {**OFFERING, "zone": None}]), "offerings[1]: zone is missing"),
        (entry(offerings=[{**OFFERING, "Available": "no"}]), "offerings[0]: Available must be true or false"),
        (
            entry(offerings=[{"price": 1, "Requirements": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}]),
            "offerings[0].Requirements[0]: operator must be In",
        ),
        (
            entry(offerings=[{"price": 1, "Requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}]),
            "offerings[0]: Requirements lack topology.kubernetes.io/zone",
        ),
    ],
)
def test_an_error_names_file_entry_and_field(given: object, told: str) -> None:
    """Whatever is wrong, a person finds it without searching."""
    text = refused(given)
    assert text.startswith("types.json: entry 0")
    assert told in text


def test_a_name_stands_only_once() -> None:
    """The second entry is named, and the first."""
    assert refused(entry(), entry()) == "types.json: entry 1 (m5.xlarge): name is already that of entry 0"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "must be a list"),
        ("{}", "must be a list"),
        ("[", "is not JSON"),
        ("[]", "holds no"),
        ("a: [b", "neither JSON nor YAML"),
    ],
)
def test_a_file_that_is_no_list_is_refused(text: str, told: str) -> None:
    """With the file's name and what it is instead."""
    with pytest.raises(CatalogueError, match=r"^types\.json: ") as caught:
        parse(text, source="types.json", cloud="kwok", currency="USD")
    assert told in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: pathlib.Path) -> None:
    """In one line with its name."""
    with pytest.raises(CatalogueError, match=r"none\.json: cannot be read: No such file"):
        load(tmp_path / "none.json", cloud="kwok", currency="USD")
