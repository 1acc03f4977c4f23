"""How many nodes may be disturbed: budgets by reason, and node limits in both modes."""

import dataclasses
import datetime as dt

import pytest

from growth.api import names
from growth.planning.disruption import words
from growth.planning.disruption.decide import decide
from growth.planning.disruption.model import Room
from growth.planning.disruption.room import counts, limit_message, overdrawn, rooms
from growth.planning.disruption.search.allowance import Allowance
from tests.unit.planning import clusters
from tests.unit.planning.disrupting import NOW, node, pod, pool, situation

EVERY = (names.EMPTY, names.UNDERUTILIZED, names.DRIFTED_REASON, names.UNHEALTHY)


def room(
    *, budget: str = "100%", nodes: int = 10, limit: int | None = None, mode: str = "Hard", count: int | None = None
) -> Room:
    limits = {} if limit is None else {"nodes": limit}
    of = pool(limits=limits, disruption={"budgets": [{"nodes": budget}], "nodeLimitMode": mode})
    made = situation(*(node(f"n-{at}", pods=[pod()]) for at in range(nodes)), pools=(of,), count=count)
    return rooms(made, reason=names.UNDERUTILIZED)["default"]


def test_without_budgets_and_limits_there_is_no_bound() -> None:
    """None is any number."""
    made = situation(node("a"), pools=(pool(disruption={"budgets": []}),))
    assert rooms(made, reason=names.EMPTY)["default"] == Room(delete=None, replace=None)


@pytest.mark.parametrize(
    ("budget", "limit", "delete", "replace"),
    [
        ("10", None, 10, 10),
        ("10", 12, 10, 2),  # the limit leaves less than the budget
        ("1", 12, 1, 1),  # the budget leaves less than the limit
        ("10", 10, 10, 0),  # full
        ("10", 7, 10, 0),  # more than full: never below zero
        ("0", 12, 0, 0),
    ],
)
def test_a_hard_limit_bounds_replacements_and_not_deletions(
    budget: str, limit: int | None, delete: int, replace: int
) -> None:
    """What replaces has max(0, min(budget, limit − count)); what only deletes has the budget alone."""
    found = room(budget=budget, limit=limit)
    assert (found.delete, found.replace) == (delete, replace)
    assert found.limited is (delete > 0 and replace == 0)


@pytest.mark.parametrize(("limit", "buy"), [(None, None), (12, 2), (100, 90), (10, 0), (7, 0)])
def test_what_may_come_is_bounded_by_the_limit_alone(limit: int | None, buy: int | None) -> None:
    """No budget counts machines that come."""
    assert room(budget="1", limit=limit).buy == buy


def test_moves_that_buy_more_than_the_limit_leaves_are_overdrawn() -> None:
    """However few nodes go for them: one that needs three machines needs room for three beside it."""
    of = clusters.pool(types=("c-8x-amd64-linux",), disruption={"consolidateAfter": "Never"})
    drifted = {"a": dataclasses.replace(clusters.QUIET, drifted=names.NODE_POOL_DRIFTED)}
    full = (clusters.machine("a"), clusters.pods(15, on="a"))
    (move,) = decide(clusters.cluster(of, *full, facts=drifted)).moves
    assert len(move.replacements) == 3
    for buy, expected in ((2, ("default", words.NODE_LIMIT)), (3, None), (None, None)):
        left = {"default": Room(delete=9, replace=9, buy=buy)}
        assert overdrawn([move], left, {"a": "default"}) == expected
        (node,) = clusters.cluster(of, *full).nodes
        assert Allowance(left).replaces([node], ["default"] * 3) is (expected is None)
        booked = Allowance(left)
        booked.take([node], ["default"] * 2)
        assert booked.rebook([node], ["default"] * 2, ["default"] * 3) is (expected is None)
        assert booked.limited("default") is (buy is not None)


def test_a_soft_limit_bounds_no_move() -> None:
    """At the limit and beyond it the budget alone counts."""
    for limit in (12, 10, 3):
        found = room(limit=limit, mode="Soft")
        assert (found.delete, found.replace, found.limited) == (10, 10, False)


def test_the_limit_counts_what_is_on_its_way_too() -> None:
    """Claims in flight, reserved names and machines that go count until they are gone."""
    assert room(limit=12, count=12).replace == 0
    assert room(limit=12, count=11).replace == 1


def test_the_annotation_speaks_where_the_field_cannot() -> None:
    """Karpenter's definitions drop the field."""
    of = pool(limits={"nodes": 1}, annotations={names.NODE_LIMIT_MODE_ANNOTATION: "Soft"})
    assert rooms(situation(node("a"), pools=(of,)), reason=names.EMPTY)["default"].replace == 1


def test_the_limits_event_is_not_the_budgets() -> None:
    """Its text is a contract, and it is only for a limit that alone is in the way."""
    assert limit_message("Underutilized") == (
        "No allowed disruptions for disruption reason Underutilized due to node hard limit"
    )
    assert not room(budget="0", limit=10).limited
    assert room(budget="0", limit=10).blocked.startswith("the budget of NodePool default")


@pytest.mark.parametrize("reason", EVERY)
def test_a_budget_holds_for_its_reasons_alone(reason: str) -> None:
    """Each of the four reasons can have a budget of its own; one without reasons is for all."""
    budgets = [{"nodes": "5"}, {"nodes": "0", "reasons": [reason]}]
    made = situation(*(node(f"n-{at}") for at in range(10)), pools=(pool(disruption={"budgets": budgets}),))
    assert {each: rooms(made, reason=each)["default"].delete for each in EVERY} == {
        each: 0 if each == reason else 5 for each in EVERY
    }


def test_nodes_that_are_not_ready_or_going_use_the_budget_of_every_reason() -> None:
    """Whatever they are disturbed for."""
    nodes = [node("a", ready=False), node("b", leaving=True), *(node(f"n-{at}") for at in range(8))]
    made = situation(*nodes, pools=(pool(disruption={"budgets": [{"nodes": "30%"}]}),))
    assert {rooms(made, reason=reason)["default"].delete for reason in EVERY} == {1}
    found = counts(made, reason=names.EMPTY)["default"]
    assert (found.allowed.nodes, found.nodes, found.disrupting) == (3, 10, 2)


def test_schedules_are_in_utc_and_percentages_round_up() -> None:
    """A budget that is active from nine for eight hours is so by UTC, wherever we are."""
    budgets = [{"nodes": "1%", "schedule": "0 9 * * *", "duration": "8h"}]
    for hour, zone, expected in ((9, 0, 1), (8, 0, None), (18, 9, 1), (17, 0, None)):
        now = dt.datetime(2030, 1, 7, hour, tzinfo=dt.timezone(dt.timedelta(hours=zone)))
        made = situation(*(node(f"n-{at}") for at in range(3)), pools=(pool(disruption={"budgets": budgets}),), now=now)
        assert rooms(made, reason=names.EMPTY)["default"].delete == expected


def test_a_budget_that_cannot_be_read_allows_nothing() -> None:
    """It fails closed, and says what is wrong."""
    budgets = [{"nodes": "5", "schedule": "at noon", "duration": "1h"}]
    found = rooms(situation(node("a"), pools=(pool(disruption={"budgets": budgets}),)), reason=names.EMPTY)["default"]
    assert found.delete == found.replace == 0
    assert "spec.disruption.budgets[0]: schedule 'at noon'" in found.blocked


def test_pools_do_not_share_their_room() -> None:
    """Each has its own nodes, budgets and limits."""
    one, two = pool("one", disruption={"budgets": [{"nodes": "1"}]}), pool("two", limits={"nodes": 1})
    found = rooms(
        situation(node("a", pool="one"), node("b", pool="two"), pools=(one, two), now=NOW), reason=names.EMPTY
    )
    assert (found["one"].delete, found["one"].replace) == (1, 1)
    assert (found["two"].delete, found["two"].replace, found["two"].limited) == (1, 0, True)


def test_each_pool_has_its_own_mode() -> None:
    """Both are at their limit: what is Hard replaces nothing, and what is Soft as many as its budgets allow."""
    hard = pool("hard", limits={"nodes": 1})
    soft = pool("soft", limits={"nodes": 1}, disruption={"nodeLimitMode": "Soft"})
    made = situation(node("a", pool="hard"), node("b", pool="soft"), pools=(hard, soft))
    found = rooms(made, reason=names.DRIFTED_REASON)
    assert (found["hard"].replace, found["hard"].limited) == (0, True)
    assert (found["soft"].replace, found["soft"].limited) == (1, False)
