"""Which nodes are the next to go, while others of their pool go: pods that came there would have to move again."""

from typing import Any

import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.planning.disruption import words
from growth.planning.disruption.decide import decide
from growth.planning.disruption.model import Decided
from tests.unit.planning.clusters import LARGE, SMALL, cluster, machine, pods, pool
from tests.unit.planning.disrupting import decided, node
from tests.unit.planning.disrupting import pool as plain_pool
from tests.unit.planning.test_deciding import STILL, drifted, full

MARK: Json = {"key": names.LEAVING_SOON_TAINT, "effect": "PreferNoSchedule"}


def one_at_a_time(**disruption: Any) -> dict[str, Any]:
    return {"disruption": {"budgets": [{"nodes": "1"}], **disruption}}


def little(name: str, **more: Any) -> list[Json]:
    """A large machine with next to nothing on it."""
    return [*machine(name, **more), *pods(1, on=name)]


def kept(made: Decided) -> dict[str, str]:
    return {each.node: each.reason for each in made.kept}


def gone(made: Decided) -> frozenset[str]:
    return frozenset(name for move in made.moves for name in move.nodes)


def test_what_would_go_but_for_the_budget_is_next() -> None:
    """All four would end on one machine; one goes now. Who takes the pods is not next."""
    made = decide(cluster(pool(types=(LARGE,), **one_at_a_time()), *map(little, "abcd")))
    assert len(gone(made)) == 1
    assert made.next == {name for name, reason in kept(made).items() if reason == words.BUDGET}
    assert len(made.next) == 2


def test_without_a_budget_that_holds_them_up_nobody_is_next() -> None:
    """What stays then stays because it is of use."""
    made = decide(cluster(pool(types=(LARGE,)), *map(little, "abcd")))
    assert len(gone(made)) == 3
    assert made.next == frozenset()


def test_empty_nodes_wait_for_their_turn() -> None:
    """Of three that are empty one goes; kube-scheduler likes nothing better than the others."""
    made = decided(node("a"), node("b"), node("c"), pools=(plain_pool(**one_at_a_time()),))
    assert (gone(made), made.next) == (frozenset("a"), frozenset("bc"))


@pytest.mark.parametrize("budget", ["0", "nonsense"])
def test_where_nothing_may_go_nobody_is_next(budget: str) -> None:
    """Nobody knows when their turn comes; a node that goes for other reasons changes nothing about it."""
    closed = plain_pool(disruption={"budgets": [{"nodes": budget}]})
    made = decided(node("a"), node("b"), node("c", leaving=True), pools=(closed,))
    assert (gone(made), made.next) == (frozenset(), frozenset())


def test_a_budget_that_is_used_up_leaves_them_next() -> None:
    """While one is on its way out, the others are not searched: what was found before holds, by their mark."""
    leaving = machine("c", taints=({"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"},))
    made = decide(cluster(pool(**one_at_a_time()), little("a", taints=(MARK,)), little("b"), leaving))
    assert kept(made) == {"a": words.BUDGET, "b": words.BUDGET, "c": words.LEAVING}
    assert made.next == {"a"}


def test_where_nothing_of_a_pool_goes_its_marks_are_over() -> None:
    """The same with nothing on its way out, and a budget that allows nothing now."""
    shut = one_at_a_time(budgets=[{"nodes": "0"}])
    made = decide(cluster(pool(**shut), little("a", taints=(MARK,)), little("b")))
    assert (kept(made), made.next) == ({"a": words.BUDGET, "b": words.BUDGET}, frozenset())


def test_drifted_nodes_follow_each_other() -> None:
    """No pod is moved to a node that has drifted itself, and kube-scheduler sends none there if it can help it."""
    made = decide(cluster(pool(**STILL), full("old", age=99.0), full("young", age=9.0), facts=drifted("old", "young")))
    assert (gone(made), made.next) == (frozenset({"old"}), frozenset({"young"}))


def test_a_reason_whose_budget_is_closed_makes_nobody_next() -> None:
    """Drift is not to happen: what has drifted stays as good a place as any, though empty nodes go."""
    shut: dict[str, Any] = {"disruption": {"budgets": [{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "1"}]}}
    made = decide(cluster(pool(**shut), machine("empty", SMALL), full("old"), facts=drifted("old")))
    assert (gone(made), made.next) == (frozenset({"empty"}), frozenset())


def test_the_mark_makes_nobody_buy() -> None:
    """Room on a node that is the next to go is room: the search counts on it as on any other."""
    made = decide(cluster(pool(**STILL), machine("a", taints=(MARK,)), full("old"), facts=drifted("old")))
    (move,) = made.moves
    assert (move.nodes, move.replacements, move.destinations) == (("old",), (), ("a",))
