"""`minValues`: a claim keeps as many different values of a label as the pool asks for."""

from typing import get_args

import pytest

from growth.planning.offerings import Assortment, Shelf
from growth.planning.plan import Filter
from growth.planning.solve import Options, Packer, offered
from tests.unit.planning.builders import (
    ARCH,
    AT_ANY_PRICE,
    CPU,
    FAMILY,
    HOST,
    TYPE,
    ZONE,
    expression,
    kind,
    need,
    node,
    offering,
    on_nodes,
    plan,
    pod,
    pods,
    pool,
    spread,
)

SIX = [kind(f"t{cpu}", cpu, f"{4 * cpu}Gi", family="cmr"[at % 3]) for at, cpu in enumerate((2, 4, 8, 16, 32, 64))]
# The larger, the less a core costs.
BULK = [kind(f"t{cpu}", cpu, f"{4 * cpu}Gi", price=cpu**0.5) for cpu in (2, 4, 8, 16, 32, 64)]
PACKERS = get_args(Packer)
RELAXED = Options(strict_min_values=False)
ANYHOW = Options(strict_min_values=False, flexibility=1_000_000)


@pytest.mark.parametrize("least", [1, 3, 6])
def test_a_claim_lists_as_many_types_as_asked(least: int) -> None:
    """Six types are enough for a wish of six, and where fewer are asked for no type is dropped, least of all the cheapest."""
    made = plan(pool("default", *SIX, needs=[need(TYPE, "Exists", least=least)]), pod(), options=AT_ANY_PRICE)
    assert made.claim.instance_types == tuple(each.name for each in SIX)


@pytest.mark.parametrize("packer", PACKERS)
def test_a_pod_that_leaves_too_few_types_opens_another_claim(packer: Packer) -> None:
    """Packing stops before a claim has fewer types than asked, and the next claim begins, though one machine would cost less."""
    options = Options(packer=packer)
    assert plan(pool("default", *BULK), pods(20), options=options).sizes == [20]
    made = plan(pool("default", *BULK, needs=[need(TYPE, "Exists", least=3)]), pods(20), options=options)
    assert sum(made.sizes) == 20
    assert max(made.sizes) <= 16
    assert all(len(claim.instance_types) >= 3 for claim in made.claims)


def test_first_fit_fills_a_claim_as_far_as_flexibility_goes() -> None:
    """Sixteen pods leave three types; the seventeenth would leave two."""
    assert plan(pool("default", *SIX, needs=[need(TYPE, "Exists", least=3)]), pods(20)).sizes == [16, 4]


def test_without_min_values_packing_goes_on() -> None:
    """The same pods share one machine where no flexibility is asked for."""
    assert plan(pool("default", *SIX), pods(20)).sizes == [20]


@pytest.mark.parametrize("packer", PACKERS)
def test_a_single_pod_that_breaks_it_goes_to_the_next_pool(packer: Packer) -> None:
    """A pod that leaves too few values falls back to the next pool by weight."""
    picky = pool("picky", *SIX, weight=9, needs=[need(TYPE, "Exists", least=3)])
    easy, last = pool("easy", *SIX, weight=5), pool("last", *SIX)
    assert str(plan(last, picky, easy, pod(cpu="20"), options=Options(packer=packer)).claim.pool) == "easy"


@pytest.mark.parametrize("packer", PACKERS)
def test_a_single_pod_that_breaks_it_waits_where_there_is_no_other_pool(packer: Packer) -> None:
    """Without another pool the pod is unschedulable with that reason."""
    made = plan(
        pool("default", *SIX, needs=[need(TYPE, "Exists", least=3)]), pod(cpu="20"), options=Options(packer=packer)
    )
    assert made.reason().filter is Filter.MIN_VALUES
    assert "2" in made.reason().message
    assert "3" in made.reason().message


def test_a_pool_that_can_never_meet_it_buys_nothing() -> None:
    """More values than there are cannot be had."""
    made = plan(pool("default", *SIX, needs=[need(TYPE, "Exists", least=7)]), pod())
    assert made.reason().filter is Filter.MIN_VALUES


def test_it_counts_values_and_not_types() -> None:
    """Six types of three families are three values."""
    assert plan(pool("default", *SIX, needs=[need(FAMILY, "Exists", least=3)]), pod()).unplaced == []
    assert plan(pool("default", *SIX, needs=[need(FAMILY, "Exists", least=4)]), pod()).unplaced == ["pod"]


def test_it_counts_only_values_that_the_requirement_admits() -> None:
    """Values that the requirement excludes are not counted."""
    made = plan(pool("default", *SIX, needs=[need(FAMILY, "In", "c", "m", least=2)]), pod())
    assert made.unplaced == []
    assert plan(pool("default", *SIX, needs=[need(FAMILY, "NotIn", "r", least=3)]), pod()).unplaced == ["pod"]


def test_two_wishes_hold_at_once() -> None:
    """Families and types are counted each by themselves."""
    both = [need(FAMILY, "In", "c", "m", "r", least=2), need(TYPE, "Exists", least=4)]
    made = plan(pool("default", *SIX, needs=both), pods(9))
    assert all(len(claim.instance_types) >= 4 for claim in made.claims)


def test_two_wishes_on_one_label_are_the_greater() -> None:
    """Several requirements on a label ask for the most of them."""
    both = [need(FAMILY, "Exists", least=1), need(FAMILY, "In", "c", "m", least=2)]
    made = plan(pool("default", *SIX, needs=both), pod(selector={FAMILY: "c"}))
    assert made.unplaced == ["pod"]


def test_a_pods_selector_may_take_the_flexibility() -> None:
    """A pod that asks for one family, or for one type, leaves no choice of families."""
    for selector in ({FAMILY: "c"}, {TYPE: "t8"}):
        made = plan(pool("default", *SIX, needs=[need(FAMILY, "Exists", least=2)]), pod(selector=selector))
        assert made.reason().filter is Filter.MIN_VALUES


def test_a_pods_affinity_may_leave_enough() -> None:
    """A pod that admits two families of three leaves two."""
    wish = on_nodes([expression(FAMILY, "NotIn", "r")])
    made = plan(pool("default", *SIX, needs=[need(FAMILY, "Exists", least=2)]), pod(affinity=wish))
    assert made.unplaced == []


def test_a_wish_with_bounds_counts_within_them() -> None:
    """Gt and Lt with `minValues` count the values between."""
    made = plan(pool("default", *SIX, needs=[need(CPU, "Gt", "4", least=4)]), pod())
    assert made.claim.instance_types == ("t8", "t16", "t32", "t64")
    assert plan(pool("default", *SIX, needs=[need(CPU, "Gt", "4", least=5)]), pod()).unplaced == ["pod"]


def test_unavailable_types_are_not_counted() -> None:
    """What cannot be bought now is no choice."""
    gone = kind("gone", offerings=[offering(available=False)])
    made = plan(pool("default", SIX[0], gone, needs=[need(TYPE, "Exists", least=2)]), pod())
    assert made.unplaced == ["pod"]


def test_types_beyond_the_limits_are_not_counted() -> None:
    """What the pool's limits forbid is no choice."""
    made = plan(pool("default", *SIX, needs=[need(TYPE, "Exists", least=4)], limits={"cpu": "8"}), pod())
    assert made.unplaced == ["pod"]


def test_zones_can_be_asked_for() -> None:
    """A wish for two zones holds as long as the machine may be in two."""
    assert plan(pool("default", *SIX, needs=[need(ZONE, "Exists", least=2)]), pod()).unplaced == []
    assert plan(pool("default", *SIX, needs=[need(ZONE, "Exists", least=2)]), pod(selector={ZONE: "a"})).unplaced == [
        "pod"
    ]


def test_machines_that_are_there_do_not_count() -> None:
    """Flexibility is asked of what is bought; nodes that exist are filled as they are."""
    made = plan(node("one"), pool("default", *SIX, needs=[need(TYPE, "Exists", least=9)]), pod())
    assert made.where() == "one"


def test_rules_of_topology_and_flexibility_hold_together() -> None:
    """Pods that spread over hosts keep each claim flexible."""
    made = plan(
        pool("default", *SIX, needs=[need(TYPE, "Exists", least=3)]),
        pods(3, labels={"app": "w"}, spread=[spread(HOST, app="w")]),
    )
    assert made.sizes == [1, 1, 1]


def test_a_pool_of_two_architectures_stays_open_to_both() -> None:
    """A wish for two architectures keeps pods that name one away."""
    both = [kind("amd", 4), kind("arm", 4, arch="arm64")]
    flexible_pool = pool("default", *both, needs=[need(ARCH, "Exists", least=2)])
    assert len(plan(flexible_pool, pod()).claim.instance_types) == 2
    assert plan(flexible_pool, pod(selector={ARCH: "arm64"})).unplaced == ["pod"]


def test_best_effort_lowers_the_wish() -> None:
    """With BestEffort a claim with fewer values is bought, and says that the wish was lowered."""
    made = plan(pool("default", *SIX, needs=[need(TYPE, "Exists", least=7)]), pod(), options=RELAXED)
    assert made.unplaced == []
    assert made.claim.min_values_relaxed


def test_best_effort_keeps_the_wish_where_it_can() -> None:
    """With BestEffort a claim that has enough values is not marked."""
    made = plan(pool("default", *SIX, needs=[need(TYPE, "Exists", least=3)]), pod(), options=ANYHOW)
    assert not made.claim.min_values_relaxed


def test_strict_claims_are_never_marked() -> None:
    """With Strict no wish is lowered."""
    made = plan(pool("default", *SIX, needs=[need(TYPE, "Exists", least=3)]), pod())
    assert not made.claim.min_values_relaxed


def test_counts_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each set of options that a claim is narrowed to is counted once a label: asked again, the check is a look at a count."""
    shelf = Shelf(pool("default", *SIX, needs=[need(FAMILY, "Exists", least=2)]), offered(pool("default", *SIX)))
    walks: list[str] = []
    by_value = Assortment.by_value

    def counted(self: Assortment, key: str) -> dict[str, int] | None:
        walks.append(key)
        return by_value(self, key)

    monkeypatch.setattr(Assortment, "by_value", counted)
    masks = [sum(shelf.options_with(TYPE, each.name) for each in SIX[fewer:]) for fewer in range(len(SIX))]
    walks.clear()
    met = [shelf.too_rigid(shelf.start, mask) is None for mask in masks]
    assert met == [True] * (len(SIX) - 1) + [False]
    assert len(walks) == len(masks)
    for _ in range(100):
        assert [shelf.too_rigid(shelf.start, mask) is None for mask in masks] == met
    assert len(walks) == len(masks)
