"""Limits of a pool hold inside one pass, whichever of the listed types is bought."""

import pytest

from growth.planning.plan import Filter
from tests.unit.planning.builders import AT_ANY_PRICE, LARGE, MEDIUM, SMALL, kind, node, plan, pod, pods, pool


def test_no_more_nodes_than_the_limit() -> None:
    """`limits.nodes` bounds the number of machines of a pool."""
    made = plan(pool("default", MEDIUM, limits={"nodes": 2}), pods(12))
    assert made.sizes == [4, 4]
    assert len(made.unplaced) == 4


def test_nodes_in_use_count_against_the_limit() -> None:
    """What exists, is in flight or is reserved is counted."""
    made = plan(pool("default", MEDIUM, limits={"nodes": 3}, used={"nodes": 2}), pods(8))
    assert made.sizes == [4]


def test_a_limit_of_no_nodes_buys_none() -> None:
    """Zero is a limit."""
    made = plan(pool(limits={"nodes": 0}), pod())
    assert made.reason().filter is Filter.LIMITS


def test_a_pool_beyond_its_limit_buys_nothing() -> None:
    """A limit lowered below what is there stops purchases."""
    made = plan(pool(limits={"nodes": 2}, used={"nodes": 5}), pod())
    assert made.reason().filter is Filter.LIMITS


def test_existing_nodes_are_filled_at_the_limit() -> None:
    """A limit keeps no pod from a node that is there."""
    assert plan(node("one"), pool(limits={"nodes": 0}), pod()).where() == "one"


@pytest.mark.parametrize(("cpu", "bought"), [("4", ("small", "medium")), ("2", ("small",)), ("1", ())])
def test_a_limit_on_cores_filters_types(cpu: str, bought: tuple[str, ...]) -> None:
    """Only types whose capacity is within what is left are listed."""
    made = plan(pool(limits={"cpu": cpu}), pod(), options=AT_ANY_PRICE)
    assert (made.claim.instance_types if made.claims else ()) == bought


def test_capacity_counts_and_not_requests() -> None:
    """A machine costs the pool its whole capacity, however little runs on it."""
    made = plan(pool("default", MEDIUM, limits={"cpu": "8"}), pods(3, cpu="3"))
    assert len(made.claims) == 2


def test_the_largest_listed_type_counts() -> None:
    """The sum over claims of the largest type that each lists stays within the limit."""
    made = plan(pool(limits={"cpu": "20"}), pods(3, cpu="2"))
    most = {"small": 2, "medium": 4, "large": 16}
    assert sum(max(most[name] for name in claim.instance_types) for claim in made.claims) <= 20


def test_limits_on_memory_count_too() -> None:
    """Any resource can be limited."""
    made = plan(pool("default", MEDIUM, limits={"memory": "32Gi"}), pods(12))
    assert len(made.claims) == 2


def test_limits_on_devices_count_too() -> None:
    """A limit on an extended resource bounds machines that have it."""
    gpu = kind("gpu", extended={"example.com/gpu": 1}, price=3)
    made = plan(
        pool("default", gpu, limits={"example.com/gpu": 2}), pods(3, cpu="100m", extended={"example.com/gpu": "1"})
    )
    assert len(made.claims) == 2


def test_a_limit_on_what_a_type_lacks_does_not_bind_it() -> None:
    """A limit on devices lets machines without devices be bought."""
    assert plan(pool(limits={"example.com/gpu": 0}), pod()).unplaced == []


@pytest.mark.parametrize(
    "limits",
    [
        {"cpu": "100", "nodes": 1},
        {"cpu": "4", "nodes": 9},
        {"cpu": "100", "memory": "16Gi"},
        {"pods": 1000, "cpu": "7"},
    ],
)
def test_several_limits_hold_at_once(limits: dict[str, str | int]) -> None:
    """The tightest of them decides."""
    made = plan(pool("default", MEDIUM, limits=limits), pods(8))
    assert made.sizes == [4]


def test_a_pool_at_its_limit_is_passed_over() -> None:
    """The next pool by weight takes what the first may not buy."""
    made = plan(pool("heavy", MEDIUM, weight=9, limits={"nodes": 1}), pool("light", MEDIUM), pods(6))
    assert {str(claim.pool): len(claim.pods) for claim in made.claims} == {"heavy": 4, "light": 2}


def test_limits_are_each_pools_own() -> None:
    """One pool's machines do not count against another's limit."""
    made = plan(pool("a", MEDIUM, weight=9, limits={"nodes": 1}), pool("b", MEDIUM, limits={"nodes": 1}), pods(12))
    assert made.sizes == [4, 4]


def test_a_machine_does_not_grow_beyond_the_limit() -> None:
    """A pod joins a machine only if the larger type that it then needs is within the limit."""
    made = plan(pool("default", SMALL, LARGE, limits={"cpu": "4"}), pods(4))
    assert made.sizes == [2, 2]


def test_growing_gives_back_what_was_held() -> None:
    """A machine that grows from small to medium counts as medium, not as both."""
    assert plan(pool("default", SMALL, MEDIUM, limits={"cpu": "4"}), pods(4)).sizes == [4]


def test_large_pods_are_served_first_under_a_limit() -> None:
    """The queue's order decides who gets what is left."""
    made = plan(pool("default", MEDIUM, limits={"nodes": 1}), pod("big", cpu="4"), pods(4))
    assert made.claim.pods == ("default/big",)


def test_what_is_left_over_is_told_the_limit() -> None:
    """A pod kept out by a limit hears which."""
    made = plan(pool("default", MEDIUM, limits={"nodes": 1}), pods(5))
    (left,) = made.unplaced
    assert made.reason(left).filter is Filter.LIMITS
    assert "limits.nodes" in made.reason(left).message


def test_a_resource_limit_is_named() -> None:
    """A pod kept out by a limit on cores hears its size."""
    made = plan(pool(limits={"cpu": "1"}), pod())
    assert made.reason().filter is Filter.LIMITS
    assert "cpu" in made.reason().message


def test_nodes_of_no_pool_are_not_counted() -> None:
    """Nodes that nobody manages use up no pool's limit."""
    made = plan(
        node("static", cpu="100m"), node("other", cpu="100m"), pool("default", MEDIUM, limits={"nodes": 1}), pod()
    )
    assert made.sizes == [1]


@pytest.mark.parametrize("burst", [1, 7, 60])
def test_a_burst_stays_within_the_limit(burst: int) -> None:
    """However many pods come at once, no more machines are planned than the limit leaves."""
    made = plan(
        pool("a", MEDIUM, weight=9, limits={"nodes": 3}, used={"nodes": 1}),
        pool("b", SMALL, limits={"nodes": 2}),
        pods(burst, cpu="1500m"),
    )
    assert sum(str(claim.pool) == "a" for claim in made.claims) <= 2
    assert sum(str(claim.pool) == "b" for claim in made.claims) <= 2
