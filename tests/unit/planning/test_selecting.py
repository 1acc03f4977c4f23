"""Pods choose machines by labels: selectors, node affinity, the pool's own requirements and labels."""

import pytest

from growth.api import names
from growth.planning.plan import Filter
from tests.unit.planning.builders import (
    ARCH,
    AT_ANY_PRICE,
    CPU,
    FAMILY,
    LARGE,
    MEDIUM,
    SMALL,
    TERMS,
    TYPE,
    ZONE,
    expression,
    kind,
    need,
    offering,
    on_nodes,
    plan,
    pod,
    pool,
)

TEAM = "example.com/team"


def test_a_selector_of_a_zone_buys_there() -> None:
    """A pod's zone selector narrows its machine to that zone."""
    assert plan(pool(), pod(selector={ZONE: "b"})).claim.zone == "b"


def test_a_selector_of_a_type_buys_that_type() -> None:
    """A pod may ask for an instance type by name."""
    assert plan(pool(), pod(selector={TYPE: "large"})).claim.instance_type == "large"


def test_a_selector_of_terms_buys_on_those_terms() -> None:
    """A pod may ask for on-demand although spot is cheaper."""
    both = kind("both", offerings=[offering("a", 0.1, names.SPOT), offering("a", 0.3)])
    assert plan(pool("default", both), pod(selector={TERMS: names.ON_DEMAND})).claim.capacity_type == names.ON_DEMAND


def test_without_a_wish_the_cheapest_is_expected() -> None:
    """Spot is chosen where nobody asks for anything else."""
    both = kind("both", offerings=[offering("a", 0.1, names.SPOT), offering("a", 0.3)])
    assert plan(pool("default", both), pod()).claim.capacity_type == names.SPOT


def test_a_selector_of_an_architecture_is_kept() -> None:
    """A pod for arm goes on arm."""
    made = plan(pool("default", SMALL, kind("arm", arch="arm64", price=9)), pod(selector={ARCH: "arm64"}))
    assert made.claim.instance_type == "arm"


def test_old_label_names_select_too() -> None:
    """A beta label in a selector means the label of today."""
    assert plan(pool(), pod(selector={"failure-domain.beta.kubernetes.io/zone": "c"})).claim.zone == "c"


def test_a_selector_of_the_pool_keeps_to_the_pool() -> None:
    """`karpenter.sh/nodepool` chooses a pool by name, whatever its weight."""
    made = plan(pool("heavy", weight=50), pool("light"), pod(selector={names.NODE_POOL_LABEL: "light"}))
    assert str(made.claim.pool) == "light"


def test_a_label_of_the_pool_can_be_selected() -> None:
    """Labels of the template are on its machines."""
    made = plan(pool(labels={TEAM: "red"}), pod(selector={TEAM: "red"}))
    assert made.claim.labels[TEAM] == "red"


def test_another_value_of_the_pools_label_cannot() -> None:
    """A pool with one value of a label has no machine with another."""
    assert plan(pool(labels={TEAM: "red"}), pod(selector={TEAM: "blue"})).reason().filter is Filter.REQUIREMENTS


def test_a_label_that_no_pool_names_cannot_be_selected() -> None:
    """A custom label that the pool does not define never comes to its machines."""
    assert plan(pool(), pod(selector={TEAM: "red"})).unplaced == ["pod"]


def test_a_pool_that_leaves_a_label_open_gives_it_as_asked() -> None:
    """With `Exists` in the pool each pod gets the value that it selects."""
    made = plan(pool(needs=[need(TEAM, "Exists")]), pod("x", selector={TEAM: "red"}), pod("y", selector={TEAM: "blue"}))
    assert sorted(claim.labels[TEAM] for claim in made.claims) == ["blue", "red"]


def test_a_pool_that_lists_values_gives_one_of_them() -> None:
    """With `In` in the pool a pod gets its value only if it is listed."""
    open_pool = pool(needs=[need(TEAM, "In", "red", "blue")])
    made = plan(open_pool, pod("x", selector={TEAM: "blue"}), pod("y", selector={TEAM: "green"}))
    assert made.claim.labels[TEAM] == "blue"
    assert made.unplaced == ["y"]


def test_pods_that_agree_on_a_label_share_a_machine() -> None:
    """A pod without a wish joins the machine of one with a wish."""
    made = plan(pool(needs=[need(TEAM, "Exists")]), pod("x", cpu="2", selector={TEAM: "red"}), pod("y"))
    assert made.sizes == [2]


def test_pods_that_disagree_on_a_label_do_not_share() -> None:
    """Two values of one label need two machines."""
    made = plan(pool(), pod("x", selector={ZONE: "a"}), pod("y", selector={ZONE: "b"}))
    assert made.zones == ["a", "b"]


def test_a_pool_requirement_excludes_types() -> None:
    """A pool's `Lt` on cores keeps larger types out."""
    made = plan(pool(needs=[need(CPU, "Lt", "4")]), pod(cpu="2"))
    assert made.claim.instance_types == ("small",)


@pytest.mark.parametrize(
    ("operator", "values", "bought"),
    [
        ("In", ("2", "4"), ("small", "medium")),
        ("NotIn", ("2",), ("medium", "large")),
        ("Exists", (), ("small", "medium", "large")),
        ("DoesNotExist", (), ()),
        ("Gt", ("2",), ("medium", "large")),
        ("Lt", ("16",), ("small", "medium")),
        ("Gte", ("4",), ("medium", "large")),
        ("Lte", ("4",), ("small", "medium")),
    ],
)
def test_every_operator_of_a_pool_filters_types(
    operator: str, values: tuple[str, ...], bought: tuple[str, ...]
) -> None:
    """Each of the eight operators leaves exactly the types that it admits."""
    made = plan(pool(needs=[need(CPU, operator, *values)]), pod(cpu="500m"), options=AT_ANY_PRICE)
    assert (made.claim.instance_types if made.claims else ()) == bought


@pytest.mark.parametrize(
    ("operator", "values", "bought"),
    [
        ("In", ("4",), ("medium",)),
        ("NotIn", ("2", "16"), ("medium",)),
        ("Exists", (), ("small", "medium", "large")),
        ("DoesNotExist", (), ()),
        ("Gt", ("4",), ("large",)),
        ("Lt", ("4",), ("small",)),
    ],
)
def test_every_operator_of_a_pod_filters_types(operator: str, values: tuple[str, ...], bought: tuple[str, ...]) -> None:
    """Each operator of node affinity leaves exactly the types that it admits."""
    made = plan(pool(), pod(cpu="500m", affinity=on_nodes([expression(CPU, operator, *values)])), options=AT_ANY_PRICE)
    assert (made.claim.instance_types if made.claims else ()) == bought


def test_expressions_of_one_term_hold_together() -> None:
    """All expressions of a term must be met at once."""
    made = plan(pool(), pod(affinity=on_nodes([expression(ZONE, "In", "b", "c"), expression(ZONE, "NotIn", "b")])))
    assert made.claim.zone == "c"


def test_selector_and_affinity_hold_together() -> None:
    """A node selector and node affinity are both required."""
    made = plan(pool(), pod(selector={ZONE: "a"}, affinity=on_nodes([expression(ZONE, "In", "b")])))
    assert made.unplaced == ["pod"]


def test_of_several_terms_one_is_enough() -> None:
    """Terms of required node affinity are alternatives."""
    made = plan(pool(), pod(affinity=on_nodes([expression(ZONE, "In", "mars")], [expression(ZONE, "In", "b")])))
    assert made.claim.zone == "b"


def test_the_first_term_that_can_be_met_is_taken() -> None:
    """Alternatives are tried in their order."""
    made = plan(pool(), pod(affinity=on_nodes([expression(ZONE, "In", "c")], [expression(ZONE, "In", "a")])))
    assert made.claim.zone == "c"


def test_when_no_term_can_be_met_the_pod_waits() -> None:
    """Required node affinity is never given up altogether."""
    made = plan(pool(), pod(affinity=on_nodes([expression(ZONE, "In", "mars")], [expression(ZONE, "In", "venus")])))
    assert made.reason().filter is Filter.REQUIREMENTS


def test_not_in_on_an_undefined_label_is_met() -> None:
    """A label that machines do not have is not one of the excluded values."""
    assert plan(pool(), pod(affinity=on_nodes([expression(TEAM, "NotIn", "red")]))).unplaced == []


def test_does_not_exist_on_an_undefined_label_is_met() -> None:
    """A label that machines do not have does not exist."""
    assert plan(pool(), pod(affinity=on_nodes([expression(TEAM, "DoesNotExist")]))).unplaced == []


def test_does_not_exist_refuses_a_label_of_the_pool() -> None:
    """A pod that wants the label absent does not go to a pool that sets it."""
    made = plan(pool(labels={TEAM: "red"}), pod(affinity=on_nodes([expression(TEAM, "DoesNotExist")])))
    assert made.unplaced == ["pod"]


def test_a_machine_narrowed_by_one_pod_stays_narrowed() -> None:
    """What a machine was narrowed to for one pod holds for the next."""
    made = plan(
        pool("default", LARGE),
        pod("x", cpu="2", affinity=on_nodes([expression(ZONE, "NotIn", "a")])),
        pod("y", affinity=on_nodes([expression(ZONE, "NotIn", "b")])),
    )
    assert made.zones == ["c"]


def test_a_label_that_only_some_types_have_is_required_of_the_type() -> None:
    """A pool that asks for a label of the catalogue buys only types that have it."""
    gpu = kind("gpu", labels={"example.com/gpu-name": "a100"}, price=9)
    made = plan(pool("default", SMALL, gpu, needs=[need("example.com/gpu-name", "In", "a100")]), pod())
    assert made.claim.instance_types == ("gpu",)


def test_a_label_with_several_values_is_narrowed_by_the_pod() -> None:
    """Where the buyer may choose a label's value, the pod's wish decides."""
    flexible = kind("flexible", labels={"example.com/disk": ("hdd", "ssd")})
    made = plan(pool("default", flexible), pod(selector={"example.com/disk": "ssd"}))
    assert made.claim.labels["example.com/disk"] == "ssd"


def test_labels_of_an_offering_count() -> None:
    """An offering's own labels choose among places of one type."""
    racks = kind(
        "racks", offerings=[offering("a", 0.1, labels={"rack": "r1"}), offering("a", 0.2, labels={"rack": "r2"})]
    )
    made = plan(pool("default", racks), pod(selector={"rack": "r2"}))
    assert made.claim.price == 200_000_000


def test_the_type_must_have_all_labels_at_once() -> None:
    """Two wishes that different types meet are not met together."""
    made = plan(
        pool("default", kind("one", family="c"), kind("two", family="r", arch="arm64")),
        pod(selector={FAMILY: "c", ARCH: "arm64"}),
    )
    assert made.reason().filter is Filter.REQUIREMENTS


def test_hostname_cannot_be_chosen_in_advance() -> None:
    """A pod that selects a host by name gets no new machine."""
    made = plan(pool(), pod(selector={names.HOSTNAME_LABEL: "node-7"}))
    assert made.unplaced == ["pod"]


def test_unavailable_offerings_are_not_bought() -> None:
    """What the cloud has run out of is passed over for the next best."""
    scarce = kind("scarce", offerings=[offering("a", 0.1, available=False), offering("b", 0.2)])
    assert plan(pool("default", scarce), pod()).claim.zone == "b"


def test_offerings_without_a_price_are_not_for_sale() -> None:
    """An offering for which the cloud names no price is not bought."""
    odd = kind("odd", offerings=[offering("a", None), offering("b", 0.2)])
    assert plan(pool("default", odd, MEDIUM), pod(selector={TYPE: "odd"})).claim.zone == "b"


def test_an_empty_term_matches_nothing() -> None:
    """Required node affinity with empty terms alone excludes every machine; beside others they are passed over."""
    assert plan(pool(), pod(affinity=on_nodes([]))).reason().filter is Filter.REQUIREMENTS
    assert plan(pool(), pod(affinity=on_nodes([], [expression(ZONE, "In", "b")]))).claim.zone == "b"
