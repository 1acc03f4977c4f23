"""Names of zones: what Nodes to come carry, and what requirements mean."""

import pytest

from growth.api import names
from growth.api.decoding import convert
from growth.api.instance_types import InstanceType, Offering
from growth.api.karpenter import Requirement
from growth.api.overlays import NodeOverlay
from growth.api.pods import PodSpec
from growth.api.pools import PoolRef
from growth.api.volumes import PersistentVolume, StorageClass
from growth.api.zones import DATACENTERS, in_all_names, in_catalogue_names, zone_of
from growth.cluster.pricing import price_of
from growth.cluster.snapshot import PoolView, Snapshot
from growth.cluster.zone_names import of_volumes, preferred, selected_by, zone_names
from growth.planning.overlays import overlaid
from growth.providers.catalogues import builtin

SOLD = ("fsn1", "nbg1", "hel1")
KIND = InstanceType("cx23", {}, {}, tuple(Offering(zone, names.ON_DEMAND, 5) for zone in SOLD))


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        *((name, zone) for zone, name in DATACENTERS.items()),
        ("fsn1-dc8", "fsn1"),
        ("us-east", "us-east"),
        ("a-dc", "a-dc"),
    ],
)
def test_a_datacenter_is_its_location(name: str, zone: str) -> None:
    """By its name, whatever its number; zones of other clouds are what they are called."""
    assert zone_of(name) == zone


@pytest.mark.parametrize("cloud", ["kwok", "linode"])
def test_zones_of_other_clouds_have_one_name(cloud: str) -> None:
    """Nothing that they sell is called otherwise."""
    zones = {offering.zone for kind in builtin(cloud).types for offering in kind.offerings}
    assert {zone_of(each) for each in zones} == zones
    assert zone_names(sold=zones, others=zones, pools=(), asked=zones).of == {}


@pytest.mark.parametrize(
    ("others", "pools", "expected"),
    [
        ((), (), "nbg1"),
        (("nbg1-dc3",), ("nbg1",), "nbg1-dc3"),
        (("nbg1", "nbg1-dc3"), (), "nbg1-dc3"),
        (("nbg1",), ("nbg1-dc3",), "nbg1"),
        (("fsn1-dc14",), (), "nbg1-dc3"),
        ((), ("nbg1-dc3",), "nbg1-dc3"),
        (("fsn1",), (), "nbg1"),
    ],
)
def test_the_name_is_that_of_other_nodes_then_of_pools(
    others: tuple[str, ...], pools: tuple[str, ...], expected: str
) -> None:
    """Where Nodes of another zone carry its datacenter, so does a Node of this one."""
    assert preferred("nbg1", others, pools) == expected


def test_a_zone_is_sold_by_another_name_where_pods_select_it() -> None:
    """At the same price, and after the preferred name."""
    found = zone_names(sold=SOLD, others=["fsn1-dc14"], pools=(), asked=["fsn1", "hel1-dc2"])
    (kind,) = found.sold((KIND,))
    assert [(each.zone, each.spare) for each in kind.offerings] == [
        ("fsn1-dc14", False),
        ("fsn1", True),
        ("nbg1-dc3", False),
        ("hel1-dc2", False),
    ]
    assert {each.price for each in kind.offerings} == {5}
    assert price_of({names.ZONE_LABEL: "fsn1", names.REGION_LABEL: "fsn1"}, kind) == 5


def test_nothing_changes_where_all_use_one_name() -> None:
    """The very same types are sold."""
    types = (KIND,)
    assert zone_names(sold=SOLD, others=["fsn1"], pools=["fsn1"], asked=["nbg1"]).sold(types) is types


def test_requirements_on_zones_mean_the_place() -> None:
    """In the catalogue's names for a purchase, in all names for a plan; other keys stay."""
    asked = [
        Requirement(key="failure-domain.beta.kubernetes.io/zone", operator="In", values=("fsn1-dc14", "fsn1")),
        Requirement(key="team", operator="In", values=("fsn1-dc14",)),
    ]
    assert [each.values for each in in_catalogue_names(asked)] == [("fsn1",), ("fsn1-dc14",)]
    known = {"fsn1": ("fsn1-dc14", "fsn1")}
    assert [each.values for each in in_all_names(asked, known)] == [("fsn1-dc14", "fsn1"), ("fsn1-dc14",)]


def test_what_a_pod_selects_and_what_it_rules_out() -> None:
    """Selected names are sold; ruled out is the place, and all else of the pod stays."""

    def term(operator: str, *values: str) -> dict[str, object]:
        return {"matchExpressions": [{"key": names.ZONE_LABEL, "operator": operator, "values": list(values)}]}

    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [term("In", "hel1-dc2"), term("NotIn", "fsn1-dc14")]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term("In", "nbg1")}],
    }
    raw = {"nodeSelector": {names.ZONE_LABEL: "fsn1"}, "affinity": {"nodeAffinity": affinity}}
    spec = convert(raw, PodSpec)
    assert sorted(selected_by(spec)) == ["fsn1", "hel1-dc2", "nbg1"]
    plain = convert({"nodeSelector": {"a": "b"}}, PodSpec)
    none = zone_names(sold=SOLD, others=(), pools=(), asked=())
    assert none.without_zones(plain) is plain
    wider = none.without_zones(spec).affinity
    assert wider is not None
    assert wider.node_affinity is not None
    required = wider.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    assert [each.match_expressions[0].values for each in required.node_selector_terms] == [
        ("hel1-dc2",),
        ("fsn1-dc14", "fsn1"),
    ]


def test_volumes_and_their_classes_name_zones_too() -> None:
    """A pod that waits for a volume in `fsn1` needs a Node of that name."""
    required = {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": names.ZONE_LABEL, "operator": "In", "values": ["fsn1"]}]}]
    }
    volumes = [
        convert({"spec": {"nodeAffinity": {"required": required}}}, PersistentVolume),
        convert({"metadata": {"labels": {"failure-domain.beta.kubernetes.io/zone": "hel1__nbg1"}}}, PersistentVolume),
    ]
    terms = [{"matchLabelExpressions": [{"key": names.ZONE_LABEL, "values": ["ash"]}]}]
    assert sorted(of_volumes(volumes, [convert({"allowedTopologies": terms}, StorageClass)])) == [
        "ash",
        "fsn1",
        "hel1",
        "nbg1",
    ]


@pytest.mark.parametrize("zone", ["fsn1", "fsn1-dc14"])
def test_an_overlay_means_the_place(zone: str) -> None:
    """The price of a zone is laid over each of its names, and over none of another zone."""
    found = zone_names(sold=SOLD, others=["fsn1-dc14"], pools=(), asked=["fsn1"])
    view = PoolView(ref=PoolRef.karpenter("default"), instance_types=found.sold((KIND,)))
    requirements = [{"key": names.ZONE_LABEL, "operator": "In", "values": [zone]}]
    overlay = convert({"metadata": {"name": "x"}, "spec": {"requirements": requirements, "price": "2"}}, NodeOverlay)
    snapshot, problems = overlaid(Snapshot(currency="EUR", pools=(view,)), [overlay])
    assert problems == ()
    (kind,) = snapshot.pools[0].instance_types
    assert [each.price for each in kind.offerings] == [2 * 10**9, 2 * 10**9, 5, 5]
