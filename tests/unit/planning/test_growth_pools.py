"""Pools of the simple API: server types with a maximum and a priority, beside Karpenter's."""

from growth.api import names
from growth.planning.plan import Filter
from tests.unit.planning.builders import (
    ARCH,
    LARGE,
    MEDIUM,
    SMALL,
    growth_pool,
    kind,
    node,
    plan,
    pod,
    pods,
    pool,
)

NAMED = {names.POOL_LABEL: "special"}


def test_no_more_of_a_type_than_its_maximum() -> None:
    """`max` bounds the machines of one type."""
    made = plan(growth_pool("default", MEDIUM, most={"medium": 2}), pods(12))
    assert made.sizes == [4, 4]
    assert len(made.unplaced) == 4


def test_machines_in_use_count_against_the_maximum() -> None:
    """What exists or is on its way is counted."""
    made = plan(growth_pool("default", MEDIUM, most={"medium": 2}, used={"medium": 1}), pods(8))
    assert made.sizes == [4]


def test_the_next_type_is_bought_when_one_is_at_its_maximum() -> None:
    """A type at its maximum is passed over for the next cheapest."""
    made = plan(growth_pool("default", SMALL, MEDIUM, most={"small": 1, "medium": 5}), pods(3, cpu="2"))
    assert sorted(claim.instance_type for claim in made.claims) == ["medium", "small"]


def test_higher_priority_comes_before_price() -> None:
    """A dear type of higher priority is bought before a cheap one."""
    made = plan(growth_pool(priorities={"large": 10}), pod())
    assert made.claim.instance_type == "large"


def test_lower_priority_is_used_when_the_higher_cannot_hold_the_pod() -> None:
    """A type of lower priority is bought only where no higher one does."""
    made = plan(growth_pool("default", SMALL, LARGE, priorities={"small": 10}), pod(cpu="8"))
    assert made.claim.instance_type == "large"


def test_lower_priority_is_used_when_the_higher_is_at_its_maximum() -> None:
    """A type at its maximum gives way to the next priority."""
    made = plan(
        growth_pool("default", SMALL, LARGE, priorities={"small": 10}, most={"small": 1, "large": 1}), pods(2, cpu="2")
    )
    assert sorted(claim.instance_type for claim in made.claims) == ["large", "small"]


def test_equal_priority_lets_the_price_decide() -> None:
    """Types of one priority are ordered by price."""
    made = plan(growth_pool(priorities={"small": 5, "medium": 5, "large": 5}), pod())
    assert made.claim.instance_type == "small"


def test_the_limit_over_all_types_holds() -> None:
    """`limits.nodes` bounds the pool beside each type's maximum."""
    made = plan(growth_pool("default", MEDIUM, most={"medium": 9}, limits={"nodes": 2}), pods(12))
    assert made.sizes == [4, 4]


def test_pods_without_a_wish_go_to_karpenters_pools_first() -> None:
    """The default pool of the simple API comes after every Karpenter pool."""
    assert str(plan(growth_pool(), pool("karpenter"), pod()).claim.pool) == "karpenter"


def test_the_default_pool_takes_what_karpenters_pools_cannot() -> None:
    """What no Karpenter pool holds is offered to the default pool."""
    made = plan(growth_pool(), pool("karpenter", SMALL), pod(cpu="8"))
    assert str(made.claim.pool) == "growth.dev/default"


def test_a_named_pool_takes_only_those_who_ask_for_it() -> None:
    """A pool other than the default one is asked for by its label."""
    made = plan(growth_pool("special"), pod())
    assert made.unplaced == ["pod"]


def test_a_pod_that_names_a_pool_goes_there() -> None:
    """The label `growth.dev/pool` chooses the pool, before any of Karpenter's."""
    made = plan(growth_pool("special"), pool("karpenter"), pod(selector=NAMED))
    assert str(made.claim.pool) == "growth.dev/special"
    assert made.claim.labels[names.POOL_LABEL] == "special"


def test_a_pod_that_names_a_missing_pool_waits() -> None:
    """A pod that asks for a pool which does not exist is not put elsewhere."""
    made = plan(growth_pool(), pool("karpenter"), pod(selector=NAMED))
    assert made.unplaced == ["pod"]


def test_a_pod_that_names_a_full_pool_waits() -> None:
    """A named pool at its maximum sends nobody to another pool."""
    made = plan(growth_pool("special", SMALL, most={"small": 0}), pool("karpenter"), pod(selector=NAMED))
    assert made.unplaced == ["pod"]


def test_a_full_type_says_so() -> None:
    """A pod kept out by a type's maximum hears of limits."""
    made = plan(growth_pool("default", SMALL, most={"small": 0}), pod())
    assert made.reason().filter is Filter.LIMITS
    assert "max" in made.reason().message


def test_pods_that_name_no_architecture_get_the_pools_first() -> None:
    """A pool that sells two architectures does not hand one to a pod that may not run on it."""
    both = growth_pool("default", kind("amd", 4, price=9), kind("arm", 4, arch="arm64", price=1))
    assert plan(both, pod()).claim.instance_type == "amd"


def test_pods_that_name_an_architecture_get_it() -> None:
    """A pod that asks for the other architecture gets it."""
    both = growth_pool("default", kind("amd", 4, price=9), kind("arm", 4, arch="arm64", price=1))
    assert plan(both, pod(selector={ARCH: "arm64"})).claim.instance_type == "arm"


def test_pools_of_one_name_are_two_pools() -> None:
    """A Karpenter pool and one of ours may share a name, and neither counts for the other."""
    made = plan(
        pool("default", MEDIUM, limits={"nodes": 1}), growth_pool("default", MEDIUM, most={"medium": 1}), pods(8)
    )
    assert sorted(str(claim.pool) for claim in made.claims) == ["default", "growth.dev/default"]


def test_existing_nodes_come_before_growth_pools() -> None:
    """Room that is there is used first here too."""
    assert plan(node("one"), growth_pool(), pod()).where() == "one"


def test_a_paused_pool_buys_nothing() -> None:
    """A pool with a problem is told, and not used."""
    made = plan(growth_pool(problem="it is paused"), pod())
    assert made.reason().filter is Filter.POOL
    assert "paused" in made.reason().message
