"""Which nodes go, which stay, and what comes instead."""

import dataclasses
import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest

from growth.api import names
from growth.cluster.snapshot import NodeView
from growth.planning.disruption import words
from growth.planning.disruption.model import OwnedNode, Room
from growth.planning.disruption.search import Found, SearchOptions, consolidating
from growth.planning.disruption.search.course import Course, Step
from growth.planning.disruption.search.departing import Answer
from tests.unit.planning.builders import (
    EURO,
    HOST,
    LARGE,
    MEDIUM,
    SMALL,
    claim,
    csi_node,
    far,
    kind,
    node,
    pod,
    pods,
    spread,
    storage,
    term,
    volume,
)
from tests.unit.planning.searching import FREELY, NOW, found, gone, only, owned, why


def test_a_node_goes_whose_pods_have_room_elsewhere() -> None:
    """m→0: nothing is bought where room is free, and the nodes that take the pods are named and stay."""
    made = found(owned("a", *pods(1, "x")), owned("b", *pods(2, "y")))
    move = only(made)
    assert move.nodes == ("a",)
    assert move.replacements == ()
    assert move.destinations == ("b",)
    assert (move.savings, move.evictions, move.reason) == (EURO * 4 // 10, 1, names.UNDERUTILIZED)
    assert why(made) == {"b": words.DESTINATION}


def test_nobody_goes_where_everything_is_full() -> None:
    """Full nodes of the cheapest kind for their pods stay, and it is said why."""
    made = found(owned("a", *pods(4, "x")), owned("b", *pods(4, "y")))
    assert made.moves == ()
    assert set(why(made).values()) == {words.IN_USE}


def test_of_two_the_dearer_for_its_room_goes() -> None:
    """Not a prefix of an order, but what is dearest for the room that it gives."""
    dear = kind("dear", 4, "16Gi", price=0.9)
    made = found(owned("a", *pods(1, "x")), owned("b", *pods(1, "y"), of=dear), sold=(MEDIUM, dear))
    assert gone(made) == ["b"]


def test_many_go_at_once_and_every_one_by_itself() -> None:
    """Nodes that need no replacement are moves of their own: one that fails later holds up no other."""
    made = found(*(owned(f"n{at}", *pods(1, f"p{at}")) for at in range(8)))
    assert len(gone(made)) == 6
    assert all(len(move.nodes) == 1 and not move.replacements for move in made.moves)
    stay = {f"n{at}" for at in range(8)} - set(gone(made))
    assert {name for move in made.moves for name in move.destinations} <= stay


def test_two_nodes_become_one_that_is_cheaper() -> None:
    """m→1: the pods of both fit on one machine that costs less than both."""
    huge = kind("huge", 8, "32Gi", price=0.5)
    made = found(owned("a", *pods(3, "x")), owned("b", *pods(3, "y")), sold=(MEDIUM, huge))
    move = only(made)
    assert (sorted(move.nodes), [each.planned.instance_type for each in move.replacements]) == (["a", "b"], ["huge"])
    assert move.savings == EURO * 3 // 10


def test_several_nodes_become_several_that_are_cheaper() -> None:
    """m→n: no single machine holds all pods, but two cheaper ones do."""
    dear = kind("dear", 4, "16Gi", price=1.0)
    cheap = kind("cheap", 8, "32Gi", price=0.8)
    nodes = [owned(f"n{at}", *pods(4, f"p{at}"), of=dear) for at in range(4)]
    made = found(*nodes, sold=(dear, cheap))
    assert gone(made) == ["n0", "n1", "n2", "n3"]
    bought = [each.planned.instance_type for move in made.moves for each in move.replacements]
    assert bought == ["cheap", "cheap"]


def test_a_node_of_the_type_that_is_bought_stays_while_others_go_for_it() -> None:
    """Together with it nothing may be bought of its type; without it that replaces the others."""
    four, eight = kind("four", 4, "16Gi", price=0.4), kind("eight", 8, "32Gi", price=0.7)
    many = [owned(name, *pods(15, name, cpu="250m"), of=four) for name in "ab"]
    made = found(*many, owned("d", *pods(3, "large", cpu="2500m"), of=eight), sold=(four, eight))
    assert gone(made) == ["a", "b"]
    assert [each.planned.instance_type for each in only(made).replacements] == ["eight"]


def test_a_large_node_with_one_pod_becomes_a_small_one() -> None:
    """1→1: what is too large for what it holds is replaced."""
    made = found(owned("a", *pods(1, "x"), of=LARGE))
    assert [each.planned.instance_type for each in only(made).replacements] == ["small"]


def test_a_node_of_unknown_price_is_never_moved() -> None:
    """Nobody can say what a move would save."""
    made = found(owned("a", *pods(1, "x"), price=None), owned("b", *pods(4, "y")), candidates="a")
    assert (made.moves, why(made)["a"]) == ((), words.PRICE_UNKNOWN)


def test_pods_without_a_place_keep_theirs() -> None:
    """The room that a pending pod needs is not given to a pod that is moved."""
    assert gone(found(owned("a", *pods(2, "x")), owned("b", *pods(2, "y")), candidates="a", sold=(MEDIUM,))) == ["a"]
    waiting = pods(1, "w", cpu="2")
    made = found(owned("a", *pods(2, "x")), owned("b", *pods(2, "y")), candidates="a", sold=(MEDIUM,), pending=waiting)
    assert gone(made) == []


def test_nothing_is_moved_to_a_node_that_is_not_quiet() -> None:
    """`consolidateAfter` counts for destinations too; pods without a place may go there all the same."""
    busy = owned("b", *pods(1, "y"), quiet_seconds=10)
    quiet = {"consolidateAfter": "1m"}
    assert gone(found(owned("a", *pods(1, "x")), busy, candidates="a", disruption=quiet, sold=(MEDIUM,))) == []
    # The pending pod takes the busy node, and so the quiet one stays free for the pod that moves.
    made = found(
        owned("a", *pods(1, "x")),
        owned("c", *pods(3, "z")),
        busy,
        candidates="a",
        disruption=quiet,
        pending=pods(1, "w", cpu="3"),
        sold=(MEDIUM,),
    )
    assert only(made).destinations == ("c",)


def test_nothing_is_moved_to_machines_that_are_not_ready() -> None:
    """A machine on its way, or one whose kubelet is silent, is no place to move to; an unmanaged node is."""
    mine = owned("a", *pods(1, "x"))
    assert gone(found(mine, others=[node("new", initialized=False)], sold=(MEDIUM,))) == []
    assert gone(found(mine, owned("b", ready=False), candidates="a", sold=(MEDIUM,))) == []
    assert gone(found(mine, others=[node("pet")], sold=(MEDIUM,))) == ["a"]


def test_a_move_must_pay_for_its_disruption() -> None:
    """What evictions cost must be saved within the horizon."""
    nodes = (owned("a", *pods(1, "x")), owned("b", *pods(3, "y")))
    assert gone(found(*nodes, options=SearchOptions(eviction_cost=EURO, horizon=dt.timedelta(days=1)))) == ["a"]
    made = found(*nodes, options=SearchOptions(eviction_cost=EURO, horizon=dt.timedelta(hours=1)))
    assert (made.moves, why(made)["a"]) == ((), words.TOO_LITTLE)
    assert {each.message for each in made.kept} == {
        "moving 1 pod would cost more than it saves",
        "moving 3 pods would cost more than it saves",
    }


@pytest.mark.parametrize(("minutes", "owed"), [(1440, 2), (150, 20), (90, 32), (60, 48), (30, 96), (10, 288)])
def test_the_horizon_counts_to_the_minute(minutes: int, owed: int) -> None:
    """What an hour must save is what evictions cost by the hours of the horizon, whole or not, and rounded up."""
    options = SearchOptions(eviction_cost=24, horizon=dt.timedelta(minutes=minutes))
    assert options.owed(2) == owed


def test_machines_are_not_bought_for_next_to_nothing() -> None:
    """A move that buys must save a share of what goes; whoever stays for that is told of the share, not of its pods."""
    cheaper = kind("cheaper", 4, "16Gi", price=0.39)
    full = owned("a", *pods(4, "x"), quiet_seconds=600.0)
    assert gone(found(full, sold=(MEDIUM, cheaper))) == ["a"]
    asking = dataclasses.replace(FREELY, least_percent=3)
    assert gone(found(full, sold=(MEDIUM, cheaper), options=asking)) == []
    # Where the pods would cost less in fractions of a larger machine it is tried.
    made = found(full, sold=(MEDIUM, cheaper, kind("large", 64, "256Gi", price=1.0)), options=asking)
    assert (made.moves, why(made)) == ((), {"a": words.TOO_LITTLE})
    assert made.kept[0].message == "what would be bought instead saves only 2.5 % of what it costs, and 3 % are asked"


def test_where_nothing_has_happened_for_an_hour_less_is_enough() -> None:
    """A saving lasts where nothing comes or goes: 1 % of what goes will do, 3 % elsewhere; together all must be at rest."""
    fortieth, next_to_nothing = kind("fortieth", 4, "16Gi", price=0.39), kind("nothing", 4, "16Gi", price=0.399)
    options = SearchOptions(eviction_cost=0)
    for quiet, sold, expected in (
        (3_599.0, fortieth, []),
        (3_600.0, fortieth, ["a"]),
        (3_600.0, next_to_nothing, []),
    ):
        full = owned("a", *pods(4, "x"), quiet_seconds=quiet)
        assert gone(found(full, sold=(MEDIUM, sold), options=options)) == expected, (quiet, sold.name)
    restless, resting = owned("a", quiet_seconds=60.0), owned("b")
    assert [options.least(each) for each in ([resting], [restless], [resting, restless])] == [1, 3, 3]


def test_pods_that_were_moved_a_moment_ago_are_moved_again_only_for_a_real_part() -> None:
    """What buys must save a fifth of what goes; later, or where the node goes for nothing, less will do."""
    since = NOW - dt.timedelta(minutes=1)
    moved = {f"uid-x-0{at}": since for at in range(4)}
    full = owned("a", *pods(4, "x"), since=since)
    tenth, third = kind("tenth", 4, "16Gi", price=0.36), kind("third", 4, "16Gi", price=0.27)
    made = found(full, moved=moved, sold=(MEDIUM, tenth))
    assert (made.moves, why(made)["a"]) == ((), words.RECENTLY_MOVED)
    assert made.kept[0].waits
    assert gone(found(full, moved=moved, sold=(MEDIUM, third))) == ["a"]
    assert gone(found(full, owned("b"), candidates="a", moved=moved, sold=(MEDIUM,))) == ["a"]
    long_ago = dict.fromkeys(moved, NOW - dt.timedelta(hours=1))
    assert gone(found(full, moved=long_ago, sold=(MEDIUM, tenth))) == ["a"]


def test_a_destination_that_would_be_replaced_next_is_replaced_first() -> None:
    """Nobody is sent to a machine that is far too large even for everybody: it goes, and the others stay."""
    huge = kind("huge", 64, "256Gi", price=6.4)
    nodes = [owned(f"n{at}", *pods(3, f"p{at}")) for at in range(3)]
    made = found(owned("x", *pods(4, "x"), of=huge), *nodes, sold=(MEDIUM, huge))
    assert gone(made) == ["x"]
    assert [each.planned.instance_type for each in only(made).replacements] == ["medium"]


def test_a_budget_takes_first_of_the_end_what_saves_most() -> None:
    """With room for one node the dear one goes first, and nobody is sent to it before."""
    huge = kind("huge", 64, "256Gi", price=6.4)
    nodes = [owned(f"n{at}", *pods(1, f"p{at}")) for at in range(3)]
    made = found(owned("x", *pods(4, "x"), of=huge), *nodes, sold=(MEDIUM, huge), room=Room(1, 1))
    assert gone(made) == ["x"]
    assert set(why(made).values()) <= {words.BUDGET, words.DESTINATION, words.IN_USE}


def test_a_machine_that_was_bought_for_moved_pods_stays() -> None:
    """Deleting it again would send them in a circle."""
    since = NOW - dt.timedelta(minutes=1)
    young = owned("a", *pods(1, "x"), since=since, created=since)
    made = found(young, owned("b", *pods(1, "y")), candidates="a", moved={"uid-x-00": since})
    assert (made.moves, why(made)["a"]) == ((), words.RECENTLY_MOVED)
    assert gone(found(young, owned("b", *pods(1, "y")), candidates="a")) == ["a"]


@pytest.mark.parametrize(("seconds", "replaces", "stays"), [(90, False, False), (90, True, True), (150, True, False)])
def test_a_machine_that_was_up_before_the_move_stays_only_if_the_move_bought_it(
    seconds: int, *, replaces: bool, stays: bool
) -> None:
    """In a cluster that has just grown every node is young; one that merely took moved pods may go as any other."""
    since = NOW - dt.timedelta(minutes=1)
    created = since - dt.timedelta(seconds=seconds)
    young = owned("a", *pods(1, "x"), since=since, created=created, replaces=replaces)
    made = found(young, owned("b", *pods(1, "y")), candidates="a", moved={"uid-x-00": since})
    assert gone(made) == ([] if stays else ["a"])


def test_what_was_given_up_for_a_machine_does_not_come_in_its_place() -> None:
    """Nor in that of several, if it was there before one of them. The same on other terms is another."""

    def bought(*given_up: str) -> list[str]:
        large = owned("a", *pods(1, "x"), of=LARGE, given_up=given_up)
        made = found(large, sold=(SMALL, MEDIUM, LARGE))
        return [each.planned.instance_type for move in made.moves for each in move.replacements]

    assert bought() == ["small"]
    assert bought("small/on-demand") == ["medium"]
    assert bought("small/spot", "nonsense") == ["small"]
    both = ("small/on-demand", "medium/on-demand")
    assert bought(*both) == []
    (kept,) = found(owned("a", *pods(1, "x"), of=LARGE, given_up=both)).kept
    assert (kept.reason, kept.message) == (
        words.IN_USE,
        "What would be cheaper was given up for it a while ago, and pods do not go in a circle",
    )
    pair = [owned("a", *pods(1, "x"), of=LARGE, given_up=both), owned("b", *pods(1, "y"), of=LARGE)]
    assert all(not move.replacements for move in found(*pair).moves)


def test_nodes_that_are_to_follow_say_so() -> None:
    """Where budgets let some go and not all at once, the others wait for their turn: it is not that nothing cheaper holds their
    pods.
    """
    nodes = [owned(f"n{at}", *pods(1, f"p{at}"), of=LARGE) for at in range(4)]
    made = found(*nodes, sold=(SMALL, LARGE), room=Room(2, 2))
    assert 0 < len(gone(made)) < 4
    waiting = {each.node: each.reason for each in made.kept if each.node in made.target}
    assert waiting
    assert set(waiting.values()) <= {words.BUDGET, words.DESTINATION}


def test_budgets_bound_the_nodes_that_go() -> None:
    """As many nodes go as there is room for; the others are told that there is none."""
    nodes = [owned(f"n{at}", *pods(1, f"p{at}")) for at in range(8)]
    made = found(*nodes, room=Room(2, 2))
    assert len(gone(made)) == 2
    assert words.BUDGET in why(made).values()
    assert gone(found(*nodes, room=Room(0, 0))) == []


def test_a_node_limit_blocks_what_is_bought_and_not_what_only_goes() -> None:
    """`replace` bounds nodes that are replaced, `buy` what is bought; both leave deletions alone."""
    large = owned("a", *pods(1, "x"), of=LARGE)
    assert gone(found(large, room=Room(None, 0))) == []
    assert gone(found(large, room=Room(None, None, buy=0))) == []
    assert gone(found(large, room=Room(None, 1, buy=1))) == ["a"]
    assert gone(found(large, owned("b", *pods(1, "y")), candidates="a", room=Room(None, 0, buy=0))) == ["a"]


def test_limits_of_the_pool_hold_for_what_is_bought() -> None:
    """The replacement comes before the node goes, so both count."""
    large = owned("a", *pods(1, "x"), of=LARGE)
    assert gone(found(large, limits={"cpu": 17}, used={"cpu": 16})) == []
    assert gone(found(large, limits={"cpu": 18}, used={"cpu": 16})) == ["a"]


def test_the_policy_balanced_may_object() -> None:
    """A node that saves little of the pool's cost and disturbs much of it stays."""
    nodes = (
        owned("a", *pods(6, "x", cpu="100m"), of=SMALL, price=0.01),
        owned("b", *pods(1, "y"), of=LARGE, price=9.0),
    )
    assert gone(found(*nodes, candidates="a")) == ["a"]
    made = found(*nodes, candidates="a", disruption={"consolidationPolicy": "Balanced"})
    assert (made.moves, why(made)["a"]) == ((), words.BALANCED)


def crowded() -> tuple[OwnedNode, ...]:
    """Two small pods and a large one fit in our order; kube-scheduler spreads the small ones, and the large one is left."""
    small = pods(2, "s", cpu="1")
    return (
        owned("a", *small, pod("big", cpu="3"), of=kind("six", 6, "24Gi", price=2.0)),
        owned("b", *pods(1, "y", cpu="1")),
        owned("c", *pods(1, "z", cpu="2")),
    )


def test_a_move_is_believed_only_if_kube_scheduler_finds_the_places() -> None:
    """Where nothing may be bought for the pod that is left over the node stays."""
    for room in (Room(None, 0), Room(None, None, buy=0)):
        made = found(*crowded(), candidates="a", room=room)
        assert made.moves == ()
        assert why(made)["a"] == words.NO_PLACE


def test_for_a_pod_that_would_be_left_over_a_machine_is_bought_besides() -> None:
    """A node that goes for nothing but a place for one pod goes for a machine for that one, if it still pays."""
    made = found(*crowded(), candidates="a", sold=(SMALL, MEDIUM))
    assert [each.planned.pods for each in only(made).replacements] == [("default/big",)]
    assert only(made).savings == 2 * EURO - only(made).replacements[0].planned.price
    dear = kind("four", 4, "16Gi", price=1.99)
    assert gone(found(*crowded(), candidates="a", sold=(dear,))) == ["a"]
    assert gone(found(*crowded(), candidates="a", sold=(dear,), options=SearchOptions())) == []


def test_what_is_bought_besides_keeps_the_limits_of_the_pool() -> None:
    """The machine for the pod that is left over comes before the node goes, and counts."""
    assert gone(found(*crowded(), candidates="a", sold=(MEDIUM,), limits={"cpu": 17}, used={"cpu": 14})) == []
    assert gone(found(*crowded(), candidates="a", sold=(MEDIUM,), limits={"cpu": 18}, used={"cpu": 14})) == ["a"]


def test_rules_among_pods_hold_where_they_go() -> None:
    """Anti-affinity and spread are asked of the nodes that stay, without the pods of the node that goes."""
    apart = far(term(HOST, app="x"))
    x = {"affinity": apart, "labels": {"app": "x"}}
    made = found(owned("a", *pods(1, "x", **x)), owned("b", *pods(1, "y", **x)), sold=(MEDIUM,))
    assert gone(made) == []
    other = owned("c", *pods(1, "z"))
    made = found(owned("a", *pods(1, "x", **x)), owned("b", *pods(1, "y", **x)), other, sold=(MEDIUM,), candidates="a")
    assert only(made).destinations == ("c",)


def test_a_spread_counts_without_what_goes() -> None:
    """The pod may go where its own leaving makes room for it, and not into a zone that is too full."""
    even = {"spread": [spread(app="x")], "labels": {"app": "x"}}
    one = owned("a", *pods(1, "x", **even), zone="a")
    two = owned("b", *pods(1, "y", **even), zone="b")
    assert gone(found(one, two, sold=(MEDIUM,), candidates="a")) == []
    assert gone(found(one, two, owned("c", zone="a"), sold=(MEDIUM,), candidates="a")) == ["a"]


def test_a_volume_for_one_pod_moves_with_its_pod() -> None:
    """The claim is in use by the pod itself, which is no reason to keep it where it is."""
    data = storage(
        claim("data", volume="disk", modes=("ReadWriteOncePod",)),
        volume("disk", "a"),
        csi_node("b", 9),
        csi_node("a", 9),
    )
    made = found(owned("a", *pods(1, "x", claims=("data",))), owned("b", *pods(1, "y")), candidates="a", volumes=data)
    assert gone(made) == ["a"]


def test_equal_input_gives_an_equal_answer() -> None:
    """The order in which nodes are named decides nothing."""
    nodes = [owned(f"n{at}", *pods(1 + at % 3, f"p{at}"), of=(SMALL, MEDIUM, LARGE)[at % 3]) for at in range(12)]
    first = found(*nodes)
    again = found(*nodes)
    turned = found(*reversed(nodes))
    assert first == again
    assert {move.nodes for move in first.moves} == {move.nodes for move in turned.moves}


def test_a_search_that_runs_out_of_steps_says_so_and_what_it_found_stands() -> None:
    """Anytime: a small budget finds some of the moves, and they can be made."""
    nodes = [owned(f"n{at}", *pods(1, f"p{at}")) for at in range(16)]
    short = found(*nodes, options=dataclasses.replace(FREELY, budget=10))
    whole = found(*nodes)
    assert not short.complete
    assert whole.complete
    assert 0 < len(gone(short)) < len(gone(whole))


def test_a_search_that_is_stopped_ends_at_once() -> None:
    """Whoever needs the processor more urgently says so."""
    nodes = [owned(f"n{at}", *pods(1, f"p{at}")) for at in range(4)]
    made = found(*nodes, options=dataclasses.replace(FREELY, stop=lambda: True))
    assert not made.complete
    assert made.moves == ()


def test_a_pool_without_room_of_its_own_is_left_alone() -> None:
    """Nothing is known of its budgets: unknown is not unlimited."""
    made = found(owned("a", *pods(1, "x"), pool="other"), owned("b", *pods(1, "y")), candidates="a")
    assert made.moves == ()


def test_nodes_go_where_nothing_can_be_bought() -> None:
    """A pool that is not ready buys nothing, and needs nothing for nodes that go for nothing."""
    nodes = (owned("a", *pods(1, "x")), owned("b", *pods(2, "y")))
    assert gone(found(*nodes, problem="not ready")) == ["a"]
    assert gone(found(owned("a", *pods(1, "x"), of=LARGE), problem="not ready")) == []


def test_where_few_may_go_those_go_first_that_save_much_and_move_little() -> None:
    """A budget of one is spent on the large node, though the small ones are as dear for their room."""
    nodes = [owned(f"n{at}", *pods(1, f"p{at}"), of=SMALL) for at in range(4)]
    large = owned("z", *pods(1, "x"), of=LARGE)
    room = owned("b", *pods(1, "y"), of=LARGE)
    assert gone(found(*nodes, large, room, candidates="n0 n1 n2 n3 z", room=Room(1, 1))) == ["z"]


def test_a_move_is_believed_only_if_an_older_kube_scheduler_finds_the_places_too() -> None:
    """Before 1.36 it binds the small pod to the node whose balance is best, and that is the only place of the large one."""
    even, lean = kind("even", 4, "8Gi", price=9.0), kind("lean", 4, "32Gi", price=9.0)

    def made(cpu: str, memory: str) -> Found:
        return found(
            owned("old", pod("web", cpu="500m"), pod("store", cpu="1", memory="2Gi")),
            owned("even", pod("x", cpu=cpu, memory=memory), of=even),
            owned("lean", pod("y", cpu="3500m", memory="3584Mi"), of=lean),
            candidates="old",
            sold=(MEDIUM,),
        )

    assert (gone(made("3", "6Gi")), why(made("3", "6Gi")).get("old")) == ([], words.NO_PLACE)
    assert gone(made("2500m", "5Gi")) == ["old"]  # there is room for both


def test_machines_are_bought_such_that_kube_scheduler_can_fill_them() -> None:
    """What is cheapest if packed by us is not bought where pods would be left over; what has room for all of them is."""
    small = kind("two", 2, "8Gi", price=0.2)
    four = kind("four", 4, "16Gi", price=0.4)
    eight = kind("eight", 8, "32Gi", price=0.9)
    dear = kind("dear", 16, "64Gi", price=3.0)
    old = owned("a", *pods(3, "s", cpu="1"), pod("big", cpu="3"), of=dear)
    made = found(old, sold=(small, four, eight, dear))
    assert gone(made) == ["a"]
    assert sum(each.planned.price for each in only(made).replacements) <= EURO * 9 // 10


def test_a_decision_for_many_nodes_takes_back_no_more_than_it_must() -> None:
    """Where kube-scheduler would leave one pod over, the other nodes go all the same."""
    nodes = [owned(f"n{at:02}", *pods(2, f"p{at:02}", cpu="900m")) for at in range(20)]
    made = found(*nodes, sold=(MEDIUM,))
    assert len(gone(made)) >= 8


def test_where_all_moves_are_too_many_those_are_made_that_save_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moves that are not believed together do not keep one that is believed alone."""

    def rehearsed(course: Course, steps: Sequence[Step], _: frozenset[str]) -> Answer:
        keys = [key for step in steps for at in step.nodes for key in course.ground.evicted[at]]
        return Answer(keys if len(steps) > 1 else (), crowded=True, orders=1)

    monkeypatch.setattr(Course, "rehearsed", rehearsed)
    nodes = [owned(name, *pods(1, name), price=price) for name, price in (("a", 0.4), ("b", 0.6), ("c", 0.5))]
    made = found(*nodes, owned("d", *pods(1, "d"), of=LARGE), candidates="a b c")
    assert gone(made) == ["b"]


def test_where_nothing_is_found_together_each_is_tried_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """One move and no other, that which saves most for each pod that it moves; and only if it is believed."""

    def nothing(search: Any, rooms: Any, **_: Any) -> Any:
        return search._course(search._candidates, rooms, {})

    monkeypatch.setattr(consolidating._Search, "_attempted", nothing)
    monkeypatch.setattr(consolidating._Search, "_by_prefix", nothing)
    few, many = owned("few", *pods(1, "x")), owned("many", *pods(2, "y"))
    assert gone(found(few, many, sold=(SMALL, MEDIUM))) == ["few"]
    assert only(found(many, sold=(SMALL, MEDIUM))).nodes == ("many",)
    assert found(few, many, sold=(SMALL, MEDIUM), room=Room(0, 0)).moves == ()
    assert found(*crowded(), candidates="a", room=Room(None, 0)).moves == ()


def test_a_pod_that_waits_for_a_machine_may_take_the_room_of_one_that_is_bought_for_a_move() -> None:
    """It waits already and comes first: a move that has room for its own pods alone is not believed."""
    dear = kind("dear", 4, "16Gi", price=2.0)
    full = owned("a", *pods(4, "x"), of=dear)
    assert gone(found(full, sold=(MEDIUM, dear))) == ["a"]
    made = found(full, sold=(MEDIUM, dear), pending=pods(1, "w", cpu="3"))
    assert (made.moves, why(made)["a"]) == ((), words.NO_PLACE)


def test_a_node_that_goes_is_a_place_without_pods_while_it_goes() -> None:
    """Until it is gone those who spread over zones count it with none: they would have to wait, and so it stays."""
    even = {"spread": [spread(app="x")], "labels": {"app": "x"}}
    nodes = [owned(zone, *pods(2, f"x{zone}", cpu="100m", **even), zone=zone) for zone in "abc"]
    made = found(*nodes, candidates="a", sold=(kind("far", 4, "16Gi", zones="z"),))
    assert made.moves == ()


def test_a_node_of_another_move_is_a_place_with_its_pods_until_it_is_gone() -> None:
    """Those who spread over zones have no second place in one while the other stands empty; with a pod there they have."""
    even = {"spread": [spread(app="x")], "labels": {"app": "x"}}
    near = kind("near", 4, "16Gi", zones="a")
    nodes = [owned(name, *pods(1, f"x{name}", **even), of=near) for name in ("a", "c")]
    last = pods(1, "z", **even)

    def made(*closing: NodeView, **more: Any) -> list[str]:
        closed = tuple(dataclasses.replace(each, allocatable={}, requested={}) for each in closing)
        return gone(found(*nodes, candidates="a", sold=(near,), closing=closed, **more))

    assert made() == ["a"]
    assert made(node("b", zone="b")) == []
    assert made(node("b", *last, zone="b"), pending=last, ending=frozenset({"default/z-00"})) == ["a"]


def test_who_waits_for_a_machine_without_a_node_takes_the_place_of_one_like_it_that_leaves() -> None:
    """Its zone is none yet, so that whoever left would have to wait in its stead; a node that is up takes it."""
    even = {"spread": [spread(app="x")], "labels": {"app": "x"}}
    near = kind("near", 4, "16Gi", zones="a")
    nodes = [owned(name, *pods(1, f"x{name}", **even), of=near) for name in ("a", "c")]
    full = node("f", *pods(1, "xf", **even), zone="f", cpu="1")

    def made(*, up: bool) -> list[str]:
        others = (full, node("z", zone="z", initialized=up))
        return gone(found(*nodes, candidates="a", sold=(near,), others=others, pending=pods(1, "w", **even)))

    assert made(up=True) == ["a"]
    assert made(up=False) == []


def test_pods_that_nobody_can_place_block_no_move() -> None:
    """A pod that fits on no node and no machine waits with the move and without it."""
    nodes = (owned("a", *pods(1, "x")), owned("b", *pods(1, "y")))
    assert gone(found(*nodes, candidates="a", pending=pods(1, "w", cpu="99"))) == ["a"]


def test_what_keeps_a_node_for_good_is_said_before_what_keeps_it_for_a_moment() -> None:
    """Otherwise people would be told something new whenever a moment has passed, though nothing has changed."""
    since = NOW - dt.timedelta(minutes=1)
    small = owned("a", *pods(6, "x", cpu="100m"), of=SMALL, price=0.01, since=since, created=since)
    large = owned("b", *pods(1, "y"), of=LARGE, price=9.0)
    policy = {"consolidationPolicy": "Balanced"}
    moved = {f"uid-x-0{at}": since for at in range(6)}
    assert why(found(small, large, candidates="a", disruption=policy, moved=moved))["a"] == words.BALANCED
    assert why(found(small, large, candidates="a", disruption=policy))["a"] == words.BALANCED
    assert why(found(small, large, candidates="a", moved=moved))["a"] == words.RECENTLY_MOVED
