"""Taints keep pods away from machines unless they tolerate them."""

import pytest

from growth.api.placement import Taint, Toleration
from growth.planning.plan import Filter
from tests.unit.planning.builders import node, plan, pod, pool, taint, tolerate


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_keeps_pods_out_of_a_pool(effect: str) -> None:
    """A pod that does not tolerate the pool's taint buys nothing there."""
    assert plan(pool(taints=[taint(effect=effect)]), pod()).reason().filter is Filter.TAINTS


@pytest.mark.parametrize(
    "toleration",
    [
        tolerate("dedicated", "batch"),
        tolerate("dedicated"),
        tolerate(),
        tolerate("dedicated", "batch", effect="NoSchedule"),
        tolerate("dedicated", effect="NoSchedule"),
        Toleration(key="dedicated", operator="", value="batch"),
    ],
)
def test_a_toleration_that_matches_lets_the_pod_in(toleration: Toleration) -> None:
    """Key, value and effect match; what is left empty matches everything."""
    assert plan(pool(taints=[taint("dedicated", "batch")]), pod(tolerations=[toleration])).unplaced == []


@pytest.mark.parametrize(
    "toleration",
    [
        tolerate("dedicated", "web"),
        tolerate("other"),
        tolerate("dedicated", effect="NoExecute"),
        Toleration(key="dedicated", operator="Equal"),
        Toleration(key="dedicated", operator="Near", value="batch"),
    ],
)
def test_a_toleration_that_differs_does_not(toleration: Toleration) -> None:
    """Another value, key or effect, or an operator that nobody knows, tolerates nothing."""
    assert plan(pool(taints=[taint("dedicated", "batch")]), pod(tolerations=[toleration])).unplaced == ["pod"]


def test_every_taint_must_be_tolerated() -> None:
    """One toleration of two is not enough."""
    both = pool(taints=[taint("one"), taint("two")])
    assert plan(both, pod(tolerations=[tolerate("one")])).unplaced == ["pod"]


def test_startup_taints_keep_nobody_away() -> None:
    """Taints that go away while a machine starts need no toleration."""
    assert plan(pool(startup=[taint("starting")]), pod()).unplaced == []


def test_a_tainted_pool_is_passed_over_for_the_next() -> None:
    """The pod goes to the next pool by weight that it tolerates."""
    made = plan(pool("heavy", weight=50, taints=[taint()]), pool("light"), pod())
    assert str(made.claim.pool) == "light"


def test_pods_that_tolerate_share_with_nobody_who_does_not() -> None:
    """A machine of a tainted pool takes only pods that tolerate it."""
    made = plan(
        pool("heavy", weight=50, taints=[taint()]),
        pool("light"),
        pod("x", tolerations=[tolerate("dedicated")]),
        pod("y"),
    )
    assert {str(claim.pool): claim.pods for claim in made.claims} == {
        "heavy": ("default/x",),
        "light": ("default/y",),
    }


def test_a_tainted_node_is_passed_over() -> None:
    """Existing nodes keep pods away by the same rule."""
    assert plan(node("one", taints=[taint()]), node("two"), pool(), pod()).where() == "two"


def test_a_tainted_node_takes_those_who_tolerate() -> None:
    """Existing nodes are used by pods that tolerate them."""
    assert plan(node("one", taints=[taint()]), pool(), pod(tolerations=[tolerate("dedicated")])).where() == "one"


def test_prefer_no_schedule_sends_pods_elsewhere_first() -> None:
    """A pool that prefers not to be used is used after the others, even by weight."""
    soft = Taint(key="spare", effect="PreferNoSchedule")
    made = plan(pool("heavy", weight=50, taints=[soft]), pool("light"), pod())
    assert str(made.claim.pool) == "light"


def test_prefer_no_schedule_is_given_up_when_nothing_else_is_left() -> None:
    """A soft taint keeps no pod pending."""
    soft = Taint(key="spare", effect="PreferNoSchedule")
    assert plan(pool(taints=[soft]), pod()).unplaced == []


def test_prefer_no_schedule_on_a_node_is_a_preference_too() -> None:
    """A node that prefers to stay empty is used after a new machine would be, and before the pod waits."""
    soft = Taint(key="spare", effect="PreferNoSchedule")
    assert plan(node("one", taints=[soft]), node("two"), pool(), pod()).where() == "two"
    assert plan(node("one", taints=[soft]), pod()).where() == "one"


def test_nobody_buys_to_avoid_a_node_that_is_the_next_to_go() -> None:
    """kube-scheduler avoids it where it can; where there is no other room it is used before anything is bought."""
    soon = Taint(key="growth.dev/leaving-soon", effect="PreferNoSchedule")
    assert plan(node("one", taints=[soon]), pool(), pod()).where() == "one"
    spare = Taint(key="spare", effect="PreferNoSchedule")
    assert plan(node("one", taints=[spare]), pool(), pod()).claims
