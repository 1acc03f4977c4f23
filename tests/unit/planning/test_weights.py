"""Which pool is asked first, and what counts more than price."""

from growth.planning.plan import Filter
from tests.unit.planning.builders import LARGE, SMALL, ZONE, kind, need, plan, pod, pods, pool, spread


def test_the_heavier_pool_is_asked_first() -> None:
    """Pools are asked by weight, greatest first."""
    assert str(plan(pool("a", weight=1), pool("b", weight=2), pod()).claim.pool) == "b"


def test_weight_counts_more_than_price() -> None:
    """A dear pool of greater weight is used before a cheap one."""
    dear = pool("dear", kind("gold", price=100), weight=10)
    assert str(plan(dear, pool("cheap"), pod()).claim.pool) == "dear"


def test_the_order_in_which_pools_are_given_does_not_matter() -> None:
    """Equal pools give equal plans, however they are listed."""
    one, two = pool("one", weight=3), pool("two", weight=7)
    assert plan(one, two, pods(3)).plan == plan(two, one, pods(3)).plan


def test_pools_of_equal_weight_are_asked_by_name_backwards() -> None:
    """As in Karpenter, of two pools of one weight the later in the alphabet comes first."""
    assert str(plan(pool("a"), pool("b"), pod()).claim.pool) == "b"


def test_a_pool_that_cannot_hold_the_pod_is_passed_over() -> None:
    """The next pool by weight gets what does not fit the first."""
    made = plan(pool("heavy", SMALL, weight=9), pool("light", LARGE), pod(cpu="8"))
    assert str(made.claim.pool) == "light"


def test_each_pod_is_offered_to_the_heaviest_pool() -> None:
    """That one pod needed a lighter pool does not send the others there."""
    made = plan(pool("heavy", SMALL, weight=9), pool("light", kind("eight", 8)), pod("big", cpu="8"), pod("tiny"))
    assert {claim.pods[0]: str(claim.pool) for claim in made.claims} == {
        "default/big": "light",
        "default/tiny": "heavy",
    }


def test_an_open_machine_is_used_before_a_heavier_pool_buys() -> None:
    """What is planned already is filled first, whatever pool it belongs to."""
    made = plan(pool("heavy", SMALL, weight=9), pool("light", LARGE), pod("big", cpu="8"), pod("tiny", cpu="1"))
    assert made.sizes == [2]


def test_a_pool_with_a_problem_is_not_used() -> None:
    """A pool that is not ready buys nothing, whatever its weight."""
    made = plan(pool("broken", weight=9, problem="node class is missing"), pool("fine"), pod())
    assert str(made.claim.pool) == "fine"


def test_without_any_pool_a_pod_is_told_so() -> None:
    """No pool at all is a reason of its own."""
    assert plan(pod()).reason().filter is Filter.POOL


def test_a_pool_without_types_buys_nothing() -> None:
    """A pool whose cloud sells nothing for it is passed over."""
    empty = pool("empty", kind("gone", offerings=[]), weight=5)
    assert str(plan(empty, pool("fine"), pod()).claim.pool) == "fine"


def test_domains_do_not_override_weight() -> None:
    """A lighter pool is not used because it sells in a cheaper zone."""
    heavy = pool("heavy", kind("h", zones="c"), weight=9)
    light = pool("light", kind("l", zones="ab"))
    first = plan(heavy, light, pod(labels={"app": "w"}, spread=[spread(skew=1, app="w")]))
    assert str(first.claim.pool) == "heavy"


def test_requirements_are_each_pools_own() -> None:
    """What one pool excludes another may sell."""
    made = plan(pool("heavy", weight=9, needs=[need(ZONE, "In", "a")]), pool("light"), pod(selector={ZONE: "b"}))
    assert str(made.claim.pool) == "light"
