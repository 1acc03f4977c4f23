"""Which nodes are the next to go, while others of their pool go: pods that came there would have to move again."""

from typing import Any

import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.planning.disruption import words
from growth.planning.disruption.decide import Options, decide
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


def leaving(name: str) -> list[Json]:
    return machine(name, SMALL, taints=({"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"},))


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
    """While one is on its way out, the others are not searched: what was found before holds, and a mark is no reason for
    itself.
    """
    made = cluster(pool(**one_at_a_time()), little("a"), little("b", taints=(MARK,)), leaving("c"))
    again = decide(made, Options(next=frozenset("a")))
    assert kept(again) == {"a": words.BUDGET, "b": words.BUDGET, "c": words.LEAVING}
    assert again.next == {"a"}


def test_where_nothing_of_a_pool_goes_nobody_follows() -> None:
    """The budget is used up by a node that is not ready and stays: the turn of the others may never come."""
    for other, following in ((machine("c", ready=False), ""), (leaving("c"), "a")):
        made = cluster(pool(**one_at_a_time()), little("a"), other)
        assert decide(made, Options(next=frozenset("a"))).next == frozenset(following)


def test_a_drifted_node_that_has_no_place_is_not_next_while_the_budget_is_used_up() -> None:
    """It was tried when there was room for it, and its pods fit on nothing that can be bought."""
    of = pool(types=(SMALL,), **one_at_a_time(consolidateAfter="Never"))
    big = [*machine("big", age=99.0), *pods(2, on="big", cpu=7)]
    small = [*machine("small", SMALL, age=9.0), *pods(1, on="small")]
    facts = drifted("big", "small")
    first = decide(cluster(of, big, small, facts=facts))
    assert (gone(first), first.next) == (frozenset({"small"}), frozenset())
    assert decide(cluster(of, big, leaving("c"), facts=facts), Options(next=first.next)).next == frozenset()


def test_who_takes_pods_is_not_next() -> None:
    """An empty node that waits for its turn is the place for a drifted one's pods: it stays, and is marked for nobody."""
    one, two = pool("one", types=(LARGE,), **one_at_a_time()), pool("two", types=(LARGE,))
    empty = [machine(name, of="one") for name in ("a", "b")]
    made = decide(cluster(one, two, *empty, full("old", of="two"), facts=drifted("old")))
    taking = {name for move in made.moves for name in move.destinations}
    assert (gone(made), taking, made.next) == (frozenset({"a", "old"}), {"b"}, frozenset())


def test_who_is_held_up_by_empty_nodes_is_next() -> None:
    """They use up the budget that the search counted on: what it would have moved first is the first to follow."""
    made = decide(cluster(pool(types=(LARGE,), **one_at_a_time()), machine("empty"), *map(little, "bde")))
    assert gone(made) == {"empty"}
    assert made.next == {name for name, reason in kept(made).items() if reason == words.BUDGET}
    assert len(made.next) == 2


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


@pytest.mark.parametrize("taints", [(), (MARK,)])
def test_a_marked_empty_node_is_used_again(taints: tuple[Json, ...]) -> None:
    """Beside a node of the kind that goes nothing is bought, marked or not."""
    made = decide(cluster(pool(types=(LARGE,)), machine("empty", taints=taints), full("old"), facts=drifted("old")))
    assert [(move.nodes, len(move.replacements)) for move in made.moves] == [(("old",), 0)]
