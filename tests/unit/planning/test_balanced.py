"""The policy Balanced: a move's share of the savings against its share of the disruption."""

import pytest

from growth.planning.disruption.balanced import Total, totals, why_not
from growth.planning.occupants import ONE
from tests.unit.planning.disrupting import node, pods_of, pool, situation

BALANCED = pool(disruption={"consolidationPolicy": "Balanced"})


@pytest.mark.parametrize(("savings", "fine"), [(1000, True), (500, True), (499, False), (0, False), (-5, False)])
def test_half_the_share_is_enough(savings: int, *, fine: bool) -> None:
    """One of ten equal nodes is a tenth of the disruption: it must save a twentieth of the cost."""
    nodes = [node(f"n-{at}", price=1000, pods=pods_of(4)) for at in range(10)]
    made = situation(*nodes, pools=(BALANCED,))
    assert totals(made) == {"default": Total(10_000, 50 * ONE)}
    assert (why_not(nodes[:1], savings, made) == "") is fine


def test_other_policies_do_not_object() -> None:
    """Any saving is worth it to them."""
    nodes = [node(f"n-{at}", pods=pods_of(4)) for at in range(10)]
    assert why_not(nodes[:1], 1, situation(*nodes)) == ""


def test_a_move_across_pools_must_please_each() -> None:
    """The savings belong to the pools as the prices of their nodes do."""
    other = pool("other", disruption={"consolidationPolicy": "Balanced"})
    cheap = [node(f"c-{at}", price=100, pods=pods_of(9)) for at in range(10)]
    dear = [node(f"d-{at}", pool="other", price=9900) for at in range(10)]
    made = situation(*cheap, *dear, pools=(BALANCED, other))
    both = [cheap[0], dear[0]]
    assert why_not(both, 5000, made) == ""
    assert "NodePool default" in why_not(both, 4999, made)


def test_the_refusal_says_both_shares() -> None:
    """So that people can judge it."""
    nodes = [node(f"n-{at}", price=1000, pods=pods_of(4)) for at in range(10)]
    assert why_not(nodes[:2], 400, situation(*nodes, pools=(BALANCED,))) == (
        "it would save 4.0 % of what NodePool default costs and disturb 20.0 % of it,"
        " more than 2 times as much (consolidationPolicy Balanced)"
    )


def test_nodes_without_a_price_and_such_as_leave_do_not_count() -> None:
    """They would only blur the shares."""
    made = situation(node("a"), node("b", price=None), node("c", leaving=True), pools=(BALANCED,))
    assert totals(made) == {"default": Total(1000, ONE)}
