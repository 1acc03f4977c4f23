"""Which offering a cloud buys for a claim."""

import dataclasses
import itertools

from growth.api import names
from growth.api.instance_types import Catalogue, InstanceType, Labels, Offering
from growth.api.karpenter import Requirement
from growth.planning import requirements as algebra
from growth.providers.choice import choices, meets
from tests.kwok import claim, need

ROOM = {"cpu": 2000, "memory": 4 << 30, "pods": 10}


def kind(name: str, *offerings: Offering, labels: Labels | None = None, cpu: int = 2000) -> InstanceType:
    return InstanceType(name, labels or {}, {**ROOM, "cpu": cpu}, offerings)


def catalogue(*types: InstanceType) -> Catalogue:
    return Catalogue("kwok", "USD", types)


def test_a_label_is_judged_as_planning_judges_it() -> None:
    """For every operator and value, and for a label that is absent, the cloud and the planner say the same."""
    values = ("a", "b", "3", "4", "1000000000000000000", "9223372036854775808", "+4", "04", "", None)
    operands: dict[str, list[tuple[str, ...]]] = {
        "In": [("a",), ("a", "4")],
        "NotIn": [("a",), ("a", "4")],
        "Exists": [()],
        "DoesNotExist": [()],
        **{operator: [("3",), ("4",), ("0",)] for operator in ("Gt", "Lt", "Gte", "Lte")},
    }
    judged = 0
    for operator, given in operands.items():
        for operand, value in itertools.product(given, values):
            requirement = Requirement(key="x", operator=operator, values=operand)
            assert meets(requirement, value) == algebra.parse(requirement).meets(value), (operator, operand, value)
            judged += 1
    assert judged == 180


def test_cheapest_first_ties_by_name_and_place() -> None:
    """The order is that of prices, and where they are equal that of names, so that equal claims get equal machines."""
    sold = catalogue(
        kind("b", Offering("z1", "spot", 5), Offering("z2", "spot", 5)),
        kind("a", Offering("z2", "spot", 5), Offering("z1", "on-demand", 3)),
    )
    assert [str(each) for each in choices(claim("c"), sold)] == [
        "a/z1/on-demand",
        "a/z2/spot",
        "b/z1/spot",
        "b/z2/spot",
    ]


def test_only_what_the_claim_allows_fits_and_has_a_price() -> None:
    """Type, place, terms, the type's labels, room and price each rule offerings out."""
    arm, amd = {names.ARCH_LABEL: ("arm64",)}, {names.ARCH_LABEL: ("amd64",), "gpu": ("yes",)}
    sold = catalogue(
        kind("small", Offering("z1", "spot", 1), labels=amd, cpu=500),
        kind("arm", Offering("z1", "spot", 2), labels=arm),
        kind("unpriced", Offering("z1", "spot", None), labels=amd),
        kind("good", Offering("z1", "spot", 3), Offering("z2", "spot", 4), Offering("z1", "on-demand", 5), labels=amd),
        kind("dear", Offering("z1", "spot", 900), labels=amd),
    )

    def bought(*needs: object, **more: object) -> list[str]:
        return [str(each) for each in choices(claim("c", *needs, **more), sold)]  # type: ignore[arg-type]

    cpu = {"requests": {"cpu": "1"}}
    assert bought(need(names.ARCH_LABEL, "amd64"), resources=cpu)[0] == "good/z1/spot"
    assert bought(need(names.ZONE_LABEL, "z2")) == ["good/z2/spot"]
    assert bought(need("failure-domain.beta.kubernetes.io/zone", "z2")) == ["good/z2/spot"]
    assert bought(need(names.CAPACITY_TYPE_LABEL, "on-demand")) == ["good/z1/on-demand"]
    assert bought(need(names.INSTANCE_TYPE_LABEL, "dear", "good"))[-1] == "dear/z1/spot"
    assert bought(need("gpu", operator="DoesNotExist")) == ["arm/z1/spot"]
    cheap = {names.MAX_PRICE_ANNOTATION: "0.0000001"}
    assert "dear/z1/spot" not in bought(annotations=cheap)
    assert bought(need(names.ARCH_LABEL, "s390x")) == []


def test_resources_that_the_cloud_does_not_know_do_not_rule_out_machines() -> None:
    """What an overlay promised is not the cloud's to refuse; what the cloud itself counts is."""
    plain, with_gpu = kind("plain", Offering("z1", "spot", 1)), kind("gpu", Offering("z1", "spot", 2))
    sold = catalogue(plain, dataclasses.replace(with_gpu, capacity={**with_gpu.capacity, "example.com/gpu": 1}))

    def bought(**requests: str) -> list[str]:
        return [str(each) for each in choices(claim("c", resources={"requests": requests}), sold)]

    assert bought(**{"example.com/dongle": "1"}) == ["plain/z1/spot", "gpu/z1/spot"]
    assert bought(**{"example.com/gpu": "1"}) == ["gpu/z1/spot"]


def test_labels_of_the_pool_itself_do_not_rule_out_machines() -> None:
    """A key that nothing in the catalogue knows comes from the claim, whatever the machine is."""
    sold = catalogue(kind("a", Offering("z1", "spot", 1)))
    assert len(choices(claim("c", need("team", "blue"), need(names.NODE_POOL_LABEL, "default")), sold)) == 1


def test_a_label_that_the_type_leaves_open_gets_an_allowed_value() -> None:
    """A type of two systems becomes the one that the claim asks for, and the first where it does not mind."""
    sold = catalogue(kind("a", Offering("z1", "spot", 1), labels={names.OS_LABEL: ("linux", "windows")}))
    (windows,) = choices(claim("c", need(names.OS_LABEL, "linux", operator="NotIn")), sold)
    (either,) = choices(claim("c"), sold)
    assert (windows.labels[names.OS_LABEL], either.labels[names.OS_LABEL]) == ("windows", "linux")
