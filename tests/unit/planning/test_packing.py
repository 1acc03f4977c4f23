"""How pods fill machines: what they ask for, which type is bought, what a claim lists."""

import pytest

from growth.api.pods import Container, PodSpec, ResourceRequirements
from growth.api.requests import requests_of
from growth.planning.listing import MAX_TYPES
from growth.planning.plan import Filter
from growth.planning.solve import Options
from tests.unit.planning.builders import (
    AT_ANY_PRICE,
    EURO,
    LARGE,
    MEDIUM,
    SMALL,
    TYPE,
    container,
    kind,
    need,
    offering,
    plan,
    pod,
    pods,
    pool,
)


def test_the_cheapest_type_that_fits_is_expected() -> None:
    """One core goes on the smallest type."""
    assert plan(pool(), pod()).claim.instance_type == "small"


def test_every_type_that_fits_is_listed_cheapest_first() -> None:
    """A claim names all types that would do, so that a stock-out falls through to the next."""
    assert plan(pool(), pod(cpu="3"), options=AT_ANY_PRICE).claim.instance_types == ("medium", "large")


def test_price_decides_not_size() -> None:
    """A large type that is cheaper comes first."""
    sale = kind("sale", 32, price=0.01)
    assert plan(pool("default", SMALL, sale), pod()).claim.instance_type == "sale"


def test_equal_prices_are_ordered_by_name() -> None:
    """Ties are broken by name, so that equal input gives an equal plan."""
    made = plan(pool("default", kind("b", price=1), kind("a", price=1)), pod())
    assert made.claim.instance_types == ("a", "b")


def test_the_next_best_is_told() -> None:
    """A claim says which other type would be bought, and at what price."""
    assert plan(pool(), pod(), options=AT_ANY_PRICE).claim.next_best == ("medium", round(0.4 * EURO))


def test_without_an_alternative_there_is_no_next_best() -> None:
    """A claim with one type has no next best."""
    assert plan(pool("default", SMALL), pod()).claim.next_best is None


def test_pods_share_a_machine_as_long_as_one_type_holds_them() -> None:
    """A planned machine grows to a larger type when the next pod needs it."""
    made = plan(pool(), pods(4))
    assert made.sizes == [4]
    assert made.claim.instance_type == "medium"


def test_a_full_machine_makes_room_for_another() -> None:
    """What the largest type cannot hold goes on the next machine."""
    assert plan(pool("default", MEDIUM), pods(9)).sizes == [4, 4, 1]


def test_large_pods_are_placed_before_small_ones() -> None:
    """Sorted by cores, then memory: small pods fill the gaps that large ones leave."""
    made = plan(pool("default", MEDIUM), pods(4, "small"), pods(2, "large", cpu="2500m"))
    assert made.plan.order[0][0].startswith("default/large")
    assert len(made.claims) == 3


def test_memory_breaks_ties_of_cores() -> None:
    """Of two pods with equal cores the one with more memory comes first."""
    made = plan(pool(), pod("a", memory="1Gi"), pod("b", memory="4Gi"))
    assert [key for key, _ in made.plan.order] == ["default/b", "default/a"]


def test_a_pod_larger_than_every_type_waits() -> None:
    """No machine is bought for a pod that fits on none."""
    made = plan(pool(), pod(cpu="64"))
    assert made.claims == ()
    assert made.reason().filter is Filter.RESOURCES


def test_what_the_system_keeps_is_not_for_pods() -> None:
    """Overhead of the type is taken off its capacity."""
    lean = kind("lean", 2, overhead={"cpu": "100m"})
    assert plan(pool("default", lean), pod(cpu="2")).unplaced == ["pod"]


def test_the_number_of_pods_of_a_type_is_kept() -> None:
    """A type for ten pods gets ten, however small they are."""
    few = kind("few", 16, pods=10)
    assert plan(pool("default", few), pods(25, cpu="10m", memory="1Mi")).sizes == [10, 10, 5]


def test_extended_resources_choose_the_type() -> None:
    """A pod for a device goes on a type that has it."""
    gpu = kind("gpu", price=5, extended={"example.com/gpu": 2})
    made = plan(pool("default", SMALL, gpu), pods(2, cpu="100m", extended={"example.com/gpu": "1"}))
    assert made.claim.instance_types == ("gpu",)
    assert made.sizes == [2]


def test_devices_run_out() -> None:
    """A machine takes as many pods as it has devices."""
    gpu = kind("gpu", price=5, extended={"example.com/gpu": 2})
    made = plan(pool("default", gpu), pods(3, cpu="100m", extended={"example.com/gpu": "1"}))
    assert made.sizes == [2, 1]


def test_pods_without_requests_are_placed() -> None:
    """A pod that asks for nothing still needs a place."""
    assert plan(pool(), pod(cpu="", memory="")).sizes == [1]


@pytest.mark.parametrize(
    ("containers", "init", "cpu"),
    [
        (["1", "2"], [], 3000),
        (["1"], ["3"], 3000),
        (["1"], ["500m"], 1000),
        (["1"], ["3", "2"], 3000),
    ],
)
def test_containers_add_up_and_init_containers_take_turns(containers: list[str], init: list[str], cpu: int) -> None:
    """A pod needs the sum of its containers or the largest init container, whichever is more."""
    asked = pod(containers=[container(each) for each in containers], init=[container(each) for each in init])
    assert requests_of(asked.spec)["cpu"] == cpu


@pytest.mark.parametrize(
    ("containers", "init", "cpu"),
    [
        (["1"], [("1", True)], 2000),
        (["1"], [("1", True), ("3", False)], 4000),
        (["1"], [("3", False), ("1", True)], 3000),
        (["2"], [("1", True), ("1", True), ("1", False)], 4000),
        (["100m"], [("1", True), ("2", False), ("1", True)], 3000),
    ],
)
def test_sidecars_run_beside_what_starts_after_them(
    containers: list[str], init: list[tuple[str, bool]], cpu: int
) -> None:
    """An init container that stays runs beside the later ones and beside the containers."""
    asked = pod(
        containers=[container(each) for each in containers],
        init=[container(each, always=always) for each, always in init],
    )
    assert requests_of(asked.spec)["cpu"] == cpu


def test_overhead_of_the_runtime_comes_on_top() -> None:
    """A sandbox takes room beside the containers."""
    assert requests_of(pod(cpu="1", overhead={"cpu": "250m"}).spec)["cpu"] == 1250


def test_pod_level_requests_take_the_place_of_the_sum() -> None:
    """What a pod asks for as a whole counts instead of what its containers ask for."""
    spec = PodSpec(
        containers=(container("1", "1Gi"), container("1")), resources=ResourceRequirements(requests={"cpu": "3"})
    )
    assert requests_of(spec) == {"cpu": 3000, "memory": 1 << 30, "pods": 1}


def test_pod_level_limits_count_only_where_nobody_asks() -> None:
    """A pod-level limit is a request of what no container asks for, as API servers fill it in."""
    spec = PodSpec(containers=(container("1"),), resources=ResourceRequirements(limits={"cpu": "4", "memory": "1Gi"}))
    assert requests_of(spec) == {"cpu": 1000, "memory": 1 << 30, "pods": 1}


def test_a_limit_without_a_request_is_a_request() -> None:
    """API servers fill in requests from limits."""
    spec = PodSpec(containers=(Container(resources=ResourceRequirements(limits={"cpu": "2"})),))
    assert requests_of(spec)["cpu"] == 2000


def test_a_request_stands_beside_its_limit() -> None:
    """Where both are given the request counts."""
    spec = PodSpec(containers=(Container(resources=ResourceRequirements(limits={"cpu": "2"}, requests={"cpu": "1"})),))
    assert requests_of(spec)["cpu"] == 1000


def test_a_quantity_that_cannot_be_read_is_told() -> None:
    """A pod with a broken request is refused with that reason and harms nobody else."""
    made = plan(pool(), pod("broken", cpu="lots"), pod("fine"), judged=False)
    assert made.unplaced == ["broken"]
    assert "lots" in made.reason("broken").message


def test_a_claim_lists_at_most_sixty_types() -> None:
    """A claim stays small: the sixty cheapest of a hundred."""
    many = [kind(f"t{at:03}", 4, price=1 + at / 100) for at in range(100)]
    made = plan(pool("default", *many), pod(), options=AT_ANY_PRICE)
    assert len(made.claim.instance_types) == MAX_TYPES == 60
    assert made.claim.instance_types[0] == "t000"


def test_a_claim_lists_more_where_min_values_needs_them() -> None:
    """The bound on types gives way to `minValues`; where it need not, the dearest types go that no key needs."""
    many = [kind(f"t{at:03}", 4, price=1 + at / 100, family=f"f{at // 10}") for at in range(100)]
    made = plan(pool("default", *many, needs=[need(TYPE, "Exists", least=71)]), pod())
    assert made.claim.instance_types == tuple(f"t{at:03}" for at in range(71))
    made = plan(pool("default", *many, needs=[need("karpenter.kwok.sh/instance-family", "Exists", least=8)]), pod())
    assert made.claim.instance_types == (*(f"t{at:03}" for at in range(58)), "t060", "t070")


def test_a_type_in_several_places_is_listed_once() -> None:
    """Types are listed, not offerings."""
    assert plan(pool("default", MEDIUM), pod()).claim.instance_types == ("medium",)


def test_the_price_is_that_of_the_cheapest_offering() -> None:
    """Of a type's places the cheapest counts."""
    odd = kind("odd", offerings=[offering("a", 0.3), offering("b", 0.2), offering("c", 0.25)])
    made = plan(pool("default", odd), pod())
    assert (made.claim.price, made.claim.zone) == (round(0.2 * EURO), "b")


def test_the_plan_costs_what_its_claims_cost() -> None:
    """The hourly price is the sum over machines."""
    made = plan(pool("default", MEDIUM), pods(9))
    assert made.plan.hourly == 3 * round(0.4 * EURO)


def test_equal_input_gives_an_equal_plan() -> None:
    """Planning has no dice: twice the same is the same."""
    given = (pool(), pods(7), pods(3, "other", cpu="700m", selector={TYPE: "large"}))
    assert plan(*given).plan == plan(*given).plan


def test_the_order_of_demands_does_not_matter() -> None:
    """Pods are sorted before they are placed."""
    many = [pod(f"p{at}", cpu=f"{300 + 50 * at}m") for at in range(8)]
    assert plan(pool(), many).plan == plan(pool(), many[::-1]).plan


def test_nothing_to_do_is_an_empty_plan() -> None:
    """Without demands nothing is bought."""
    made = plan(pool())
    assert (made.claims, made.plan.order, made.plan.hourly) == ((), (), 0)


def test_a_pass_ends_when_its_work_is_used_up() -> None:
    """The budget counts steps; pods that were not tried are told that, and what was placed stays placed."""
    made = plan(pool("default", SMALL), pods(30, cpu="1500m"), pod("last", cpu="100m"), options=Options(budget=10))
    assert made.unplaced
    assert {reason.filter for reason in made.reasons(made.unplaced[0])} == {Filter.CAPS}


def test_labels_of_a_claim_name_its_machine() -> None:
    """A claim carries what the machine will be: type, zone, terms, pool."""
    labels = plan(pool("default", MEDIUM), pod()).claim.labels
    assert labels[TYPE] == "medium"
    assert labels["topology.kubernetes.io/zone"] == "a"
    assert labels["karpenter.sh/capacity-type"] == "on-demand"
    assert labels["karpenter.sh/nodepool"] == "default"


def test_large_types_hold_many_small_pods() -> None:
    """A machine grows up to the largest type of the pool."""
    assert plan(pool("default", SMALL, LARGE), pods(16)).sizes == [16]
