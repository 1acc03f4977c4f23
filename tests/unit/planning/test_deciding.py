"""The whole decision: drift and consolidation after emptiness, each with the room that the others leave."""

import dataclasses
from typing import Any

import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.planning.disruption import words
from growth.planning.disruption.decide import Options, decide
from growth.planning.disruption.model import Decided, Situation
from growth.planning.disruption.room import counts
from growth.planning.disruption.search import SearchOptions
from growth.planning.disruption.situating import Facts
from tests.unit.planning.clusters import LARGE, QUIET, SMALL, cluster, machine, pods, pool

DRIFTED = dataclasses.replace(QUIET, drifted=names.NODE_POOL_DRIFTED)
# Nothing but drift: no node of such a pool is consolidated.
STILL: dict[str, Any] = {"disruption": {"consolidateAfter": "Never"}}


def drifted(*nodes: str) -> dict[str, Facts]:
    return dict.fromkeys(nodes, DRIFTED)


def moves(made: Decided) -> list[tuple[str, tuple[str, ...], int]]:
    return [(move.reason, move.nodes, len(move.replacements)) for move in made.moves]


def kept(made: Decided) -> dict[str, str]:
    return {each.node: each.reason for each in made.kept}


def full(name: str, **more: Any) -> list[Json]:
    """A large machine whose pods would fill another."""
    return [*machine(name, **more), *pods(15, on=name)]


def tied(name: str, **more: Any) -> list[Json]:
    """A pod that shares a node with none of its like."""
    (pod,) = pods(1, on=name, **more)
    pod["metadata"]["labels"]["sort"] = "tied"
    term = {"topologyKey": names.HOSTNAME_LABEL, "labelSelector": {"matchLabels": {"sort": "tied"}}}
    pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return [pod]


# --- drift


def test_empty_drifted_nodes_go_together_and_first() -> None:
    """They need no replacement, so all go that the budget allows; then the oldest of the others is replaced."""
    of = pool(**STILL)
    made = decide(
        cluster(
            of,
            machine("empty-1"),
            machine("empty-2"),
            full("young", age=10.0),
            full("old", age=1000.0),
            facts=drifted("empty-1", "empty-2", "young", "old"),
        )
    )
    assert moves(made) == [("Drifted", ("empty-1", "empty-2"), 0), ("Drifted", ("old",), 1)]
    assert kept(made) == {"young": words.DRIFTED_WAITS}


def test_the_oldest_goes_first_and_ties_go_by_name() -> None:
    """Whatever order they come in, and whatever they cost."""
    nodes = [full("c", age=50.0), full("b", age=90.0), full("a", age=10.0), full("d", age=90.0)]
    made = decide(cluster(pool(**STILL), *nodes, facts=drifted("a", "b", "c", "d")))
    assert moves(made) == [("Drifted", ("b",), 1)]


def test_one_pools_drift_does_not_wait_for_anothers() -> None:
    """Each pool replaces one at a time, and one whose drift rests holds nobody up."""
    nodes = [full("a", of="one", age=99.0), full("b", of="one"), full("c", of="two")]
    made = cluster(pool("one", **STILL), pool("two", **STILL), *nodes, facts=drifted("a", "b", "c"))
    assert [move.nodes for move in decide(made).moves] == [("b",), ("c",)]
    resting = decide(made, Options(resting={"one": "its last replacements failed"}))
    assert [move.nodes for move in resting.moves] == [("c",)]
    assert kept(resting) == {"a": words.BACK_OFF, "b": words.BACK_OFF}


def test_a_drifted_node_that_rests_does_not_block_the_next() -> None:
    """Its pool goes on with the one after it."""
    made = cluster(pool(**STILL), full("old", age=99.0), full("young", age=9.0), facts=drifted("old", "young"))
    assert moves(decide(made)) == [("Drifted", ("old",), 1)]
    resting = decide(made, Options(resting_nodes={"old": "its move was taken back"}))
    assert moves(resting) == [("Drifted", ("young",), 1)]
    assert kept(resting) == {"old": words.BACK_OFF}


def test_a_node_whose_pods_have_no_place_does_not_block_the_next() -> None:
    """Some pod of the oldest fits on nothing that can be bought."""
    stuck = pods(1, on="old")
    stuck[0]["spec"]["nodeSelector"] = {"example.com/rack": "7"}
    made = decide(
        cluster(pool(**STILL), machine("old", age=10.0**6), stuck, full("young"), facts=drifted("old", "young"))
    )
    assert moves(made) == [("Drifted", ("young",), 1)]
    assert kept(made) == {"old": words.NO_PLACE}


def test_a_drifted_node_may_need_several_machines() -> None:
    """Its budget counts what is disturbed, not what comes."""
    one = pool(types=("c-8x-amd64-linux",), disruption={**STILL["disruption"], "budgets": [{"nodes": "1"}]})
    (move,) = decide(cluster(one, full("a"), facts=drifted("a"))).moves
    assert len(move.replacements) == 3


def test_pods_do_not_go_from_one_drifted_node_to_another() -> None:
    """They would be moved twice; what is up to date may take them."""
    nodes = [machine("a", age=99999.0), pods(2, on="a"), machine("b"), pods(2, on="b")]
    (move,) = decide(cluster(pool(**STILL), *nodes, facts=drifted("a", "b"))).moves
    assert (move.nodes, len(move.replacements), move.destinations) == (("a",), 1, ())
    (move,) = decide(cluster(pool(**STILL), *nodes, facts=drifted("a"))).moves
    assert (move.nodes, len(move.replacements), move.destinations) == (("a",), 0, ("b",))


def test_static_pools_replace_their_own() -> None:
    """Neither drifted nor empty nodes of a pool with replicas are touched."""
    made = decide(cluster(pool(replicas=2), machine("a"), full("b"), facts=drifted("b")))
    assert made.moves == ()
    assert kept(made) == {"a": words.STATIC, "b": words.STATIC}


def test_drift_that_budgets_forbid_does_not_protect_from_consolidation() -> None:
    """Who wants no drift writes a budget of 0 for it, and still wants to save."""
    none = {"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}
    made = decide(cluster(pool(disruption=none), machine("a"), pods(1, on="a"), facts=drifted("a")))
    assert moves(made) == [("Underutilized", ("a",), 1)]
    assert made.kept == ()


# --- budgets between the methods


def test_what_one_method_takes_the_next_has_not() -> None:
    """A budget of two for all reasons: of an empty and two idle nodes the empty one and one other go."""
    two = pool(disruption={"budgets": [{"nodes": "2"}]})
    idle = [each for at in "abc" for each in (machine(at), pods(1, on=at))]
    made = decide(cluster(two, machine("empty"), *idle))
    assert moves(made)[0] == ("Empty", ("empty",), 0)
    assert sum(len(move.nodes) for move in made.moves) == 2
    assert made.room[names.EMPTY, "default"].delete == 2
    assert made.room[names.UNDERUTILIZED, "default"].delete == 1


def test_empty_nodes_come_before_drifted_and_drifted_before_such_as_could_be_cheaper() -> None:
    """A node that is several of these goes for the first of them: empty and drifted for Empty, drifted and too large for
    Drifted, with a replacement that would be cheaper all the same.
    """
    idle = [machine("empty"), machine("large"), pods(1, on="large")]
    made = decide(cluster(pool(), *idle, facts=drifted("empty", "large")))
    assert moves(made) == [("Empty", ("empty",), 0), ("Drifted", ("large",), 1)]
    assert made.moves[1].replacements[0].planned.instance_type == SMALL
    assert moves(decide(cluster(pool(), *idle))) == [("Empty", ("empty",), 0), ("Underutilized", ("large",), 1)]


def test_budgets_by_reason_are_apart() -> None:
    """No empty node may go, but used ones may be replaced."""
    budgets = [{"nodes": "0", "reasons": ["Empty"]}]
    made = decide(cluster(pool(disruption={"budgets": budgets}), machine("empty"), machine("a"), pods(1, on="a")))
    assert moves(made) == [("Underutilized", ("a",), 0)]
    assert kept(made) == {"empty": words.BUDGET}


def test_a_pool_whose_purchases_rest_goes_on_with_what_needs_none() -> None:
    """Its budget of one is not kept for a move that is not made: the next node goes, and those that wait say so."""
    one = pool(disruption={"budgets": [{"nodes": "1"}]})
    alone = pods(1, on="dear")
    alone[0]["spec"]["nodeSelector"] = {names.ZONE_LABEL: "test-zone-b"}
    nodes = [machine("dear", zone="test-zone-b"), alone, machine("idle", SMALL), pods(1, on="idle", cpu="100m")]
    made = cluster(one, *nodes, machine("busy", SMALL), pods(2, on="busy", cpu="500m"))
    assert moves(decide(made)) == [("Underutilized", ("dear",), 1)]
    why = "what was to replace its nodes failed"
    resting = decide(made, Options(buying_rests={"default": why}))
    assert moves(resting) == [("Underutilized", ("idle",), 0)]
    assert set(kept(resting)) == {"busy", "dear"}
    alone_there = decide(cluster(one, *nodes[:2]), Options(buying_rests={"default": why}))
    assert [(each.node, each.reason, each.message, each.waits) for each in alone_there.kept] == [
        ("dear", words.BACK_OFF, why, True)
    ]
    elsewhere = decide(made, Options(buying_rests={"other": why}))
    assert moves(elsewhere) == [("Underutilized", ("dear",), 1)]


def test_where_purchases_keep_failing_nothing_is_put_off_for_them() -> None:
    """The dear node is to be replaced; as long as that is only put off, nobody is moved there, and then the other node goes."""
    busy = machine("busy", "c-4x-amd64-linux")
    made = cluster(pool(), machine("dear"), pods(1, on="dear", cpu="500m"), busy, pods(4, on="busy", cpu="1"))
    assert moves(decide(made)) == [("Underutilized", ("dear",), 1)]
    rests = Options(buying_rests={"default": "it failed"})
    assert moves(decide(made, rests)) == []
    fails = dataclasses.replace(rests, buying_fails=frozenset({"default"}))
    assert moves(decide(made, fails)) == [("Underutilized", ("busy",), 0)]


# --- emptiness beside the others


def test_an_empty_node_is_used_where_its_like_would_be_bought() -> None:
    """A large node's pod goes to the small empty node, which stays; nothing is bought, and nothing bought beside it."""
    made = decide(cluster(pool(), machine("empty", SMALL), machine("a"), pods(1, on="a")))
    (move,) = made.moves
    assert (move.reason, move.nodes, move.replacements) == ("Underutilized", ("a",), ())
    assert (move.destinations, move.savings) == (("empty",), 434_359_738)
    assert kept(made) == {"empty": words.DESTINATION}


def test_so_is_one_for_drift_and_the_other_empty_nodes_go() -> None:
    """Of two that would do one stays; a dearer one, one that is not ready and a tainted one never do."""
    busy = ({"key": "example.com/busy", "effect": "NoSchedule"},)
    small = [machine("e-1", SMALL), machine("e-2", SMALL), machine("a-dear"), machine("a-sick", SMALL, ready=False)]
    small.append(machine("a-tainted", SMALL, taints=busy))
    made = decide(cluster(pool(), *small, machine("a", SMALL), pods(1, on="a"), facts=drifted("a")))
    drift = next(move for move in made.moves if move.reason == names.DRIFTED_REASON)
    assert (drift.nodes, drift.replacements) == (("a",), ())
    (stays,) = drift.destinations
    assert stays in {"e-1", "e-2"}
    gone = {name for move in made.moves if move.reason == names.EMPTY for name in move.nodes}
    assert gone == {"e-1", "e-2", "a-dear", "a-sick", "a-tainted"} - {stays}


def test_a_budget_goes_to_the_move_that_spares_a_purchase() -> None:
    """With a budget of one the large node goes to the small empty one: removed first, its like would be bought again."""
    one = pool(disruption={"budgets": [{"nodes": "1"}]})
    made = decide(cluster(one, machine("empty", SMALL), machine("a"), pods(1, on="a")))
    assert moves(made) == [("Underutilized", ("a",), 0)]
    assert kept(made) == {"empty": words.DESTINATION}
    both = decide(cluster(one, machine("empty", SMALL), machine("other", SMALL), machine("a"), pods(1, on="a")))
    assert moves(both) == [("Empty", ("empty",), 0)]
    assert kept(both) == {"a": words.BUDGET, "other": words.BUDGET}


def test_many_empty_nodes_are_one_move_a_pool() -> None:
    """However many may yet be of use to others."""
    made = decide(cluster(pool(), *(machine(f"n-{at:02}", SMALL) for at in range(25))))
    assert [len(move.nodes) for move in made.moves] == [25]


# --- node limits


def limited(limit: int, mode: str = "Hard", **more: Any) -> Json:
    return pool(limits={"nodes": limit}, disruption={"nodeLimitMode": mode, **more})


def test_at_a_hard_limit_nothing_is_replaced_and_deletions_go_on() -> None:
    """The empty node goes; the one that is too large stays, and says why; the room says it for the event."""
    made = decide(cluster(limited(2), machine("empty"), full("a")))
    assert moves(made) == [("Empty", ("empty",), 0)]
    alone = decide(cluster(limited(1), machine("a"), pods(1, on="a")))
    assert alone.moves == ()
    assert kept(alone) == {"a": words.NODE_LIMIT}
    assert alone.kept[0].message == "No allowed disruptions for disruption reason Underutilized due to node hard limit"
    assert alone.room[names.UNDERUTILIZED, "default"].limited
    drift = decide(cluster(limited(1, consolidateAfter="Never"), full("a"), facts=drifted("a")))
    assert kept(drift) == {"a": words.NODE_LIMIT}
    assert drift.kept[0].message == "No allowed disruptions for disruption reason Drifted due to node hard limit"


def test_a_limit_keeps_only_whom_a_cheaper_machine_would_hold() -> None:
    """A node that nothing is gained from stays for that, at a limit as elsewhere."""
    made = decide(cluster(limited(2), machine("dear"), tied("dear"), machine("fine", SMALL), tied("fine")))
    assert (made.moves, kept(made)) == ((), {"dear": words.NODE_LIMIT, "fine": words.IN_USE})
    apart = decide(cluster(limited(2), machine("dear"), tied("dear")))
    assert moves(apart) == [("Underutilized", ("dear",), 1)]


def test_whom_the_last_place_is_not_for_the_limit_keeps() -> None:
    """The node goes that saves most; of the others it is said that the limit is in the way, not that they are well used."""
    nodes = [each for at in "abc" for each in (*machine(at), *tied(at))]
    made = decide(cluster(limited(4), nodes))
    assert [(reason, len(own), bought) for reason, own, bought in moves(made)] == [("Underutilized", 1, 1)]
    assert list(kept(made).values()) == [words.NODE_LIMIT] * 2


def test_a_limit_is_no_reason_where_a_budget_is() -> None:
    """What the budget forbids anyway waits for the budget."""
    of = limited(1, budgets=[{"nodes": "0"}])
    assert kept(decide(cluster(of, machine("a"), pods(1, on="a")))) == {"a": words.BUDGET}
    of = limited(4, budgets=[{"nodes": "1"}])
    made = decide(cluster(of, [each for at in "abc" for each in (*machine(at), *tied(at))]))
    assert len(made.moves) == 1
    assert list(kept(made).values()) == [words.BUDGET] * 2


@pytest.mark.parametrize(("limit", "going"), [(2, 0), (3, 0), (4, 1), (100, 1)])
def test_a_hard_limit_and_no_budget_bounds_what_comes(limit: int, going: int) -> None:
    """One node may be disturbed at a time, and needs three machines in its place: it goes where the limit has room for them."""
    disruption = {**STILL["disruption"], "budgets": [{"nodes": "10%"}]}
    of = pool(types=("c-8x-amd64-linux",), limits={"nodes": limit}, disruption=disruption)
    made = decide(cluster(of, full("a"), facts=drifted("a")))
    assert moves(made) == [("Drifted", ("a",), 3)] * going
    assert [(each.reason, each.waits) for each in made.kept] == [(words.NODE_LIMIT, False)] * (1 - going)


def test_at_a_hard_limit_drift_that_needs_no_machine_goes_on() -> None:
    """The pods fit on what is there: nothing is bought first."""
    of = limited(2, consolidateAfter="Never")
    made = decide(cluster(of, machine("a"), pods(2, on="a"), machine("b"), pods(2, on="b"), facts=drifted("a")))
    assert moves(made) == [("Drifted", ("a",), 0)]


def test_a_soft_limit_lets_replacements_come_first() -> None:
    """At the limit, and beyond it."""
    for limit in (2, 1):
        of = limited(limit, "Soft", consolidateAfter="Never")
        made = decide(cluster(of, full("a"), full("b"), facts=drifted("a")))
        assert moves(made) == [("Drifted", ("a",), 1)]
    too_large = decide(cluster(limited(1, "Soft"), machine("a"), pods(1, on="a")))
    assert moves(too_large) == [("Underutilized", ("a",), 1)]


def test_hard_and_soft_limits_work_side_by_side() -> None:
    """Two pools at their limits with a drifted node each: the one is replaced, the other waits and says for what."""
    hard = pool("hard", limits={"nodes": 1}, **STILL)
    soft = pool("soft", limits={"nodes": 1}, disruption={"nodeLimitMode": "Soft", **STILL["disruption"]})
    made = decide(cluster(hard, soft, full("a", of="hard"), full("b", of="soft"), facts=drifted("a", "b")))
    assert moves(made) == [("Drifted", ("b",), 1)]
    assert kept(made) == {"a": words.NODE_LIMIT}


def test_a_soft_limit_holds_when_the_old_nodes_are_gone() -> None:
    """A node that needs three machines in its place goes only where the limit leaves two more."""
    for limit, going in ((1, []), (2, []), (3, [("Drifted", ("a",), 3)])):
        soft = {**STILL["disruption"], "nodeLimitMode": "Soft"}
        of = pool(types=("c-8x-amd64-linux",), limits={"nodes": limit}, disruption=soft)
        made = decide(cluster(of, full("a"), facts=drifted("a")))
        assert moves(made) == going
        assert kept(made) == ({} if going else {"a": words.NO_PLACE})


def test_a_hard_limit_holds_while_old_and_new_nodes_are_there() -> None:
    """A node that needs three machines in its place goes only where the limit leaves three more: it is still there then."""
    for limit in (1, 2, 3, 4):
        of = pool(types=("c-8x-amd64-linux",), limits={"nodes": limit}, **STILL)
        made = decide(cluster(of, full("a"), facts=drifted("a")))
        assert moves(made) == ([("Drifted", ("a",), 3)] if limit == 4 else [])
        assert kept(made) == ({} if limit == 4 else {"a": words.NODE_LIMIT})


def test_a_soft_limit_holds_for_what_other_pools_nodes_need() -> None:
    """Nothing of the pool goes for it, so that it counts as every other purchase."""
    for limit, going in ((1, []), (2, [("Drifted", ("a",), 1)])):
        # The pool that is to take the pods sells what they need; their own does not any more.
        old = pool("old", types=("c-1x-amd64-linux",), **STILL)
        of = limited(limit, "Soft", consolidateAfter="Never")
        made = decide(cluster(old, of, full("a", of="old"), full("b"), facts=drifted("a")))
        assert moves(made) == going
        assert kept(made).get("a", "") == ("" if going else words.NO_PLACE)


def test_a_soft_limit_holds_for_other_pools_nodes() -> None:
    """Their machines would stay beyond it for good: they are bought where there is room, or not at all."""
    liked = pool("liked", limits={"nodes": "1"}, weight=10, disruption={"nodeLimitMode": "Soft", **STILL["disruption"]})
    nodes = (full("a"), full("b", of="liked"))
    made = decide(cluster(pool(**STILL), liked, *nodes, facts=drifted("a")))
    assert [each.planned.pool.name for move in made.moves for each in move.replacements] == ["default"]
    nowhere = decide(cluster(pool(limits={"nodes": "1"}, **STILL), liked, *nodes, facts=drifted("a")))
    assert moves(nowhere) == []
    both = decide(cluster(pool(**STILL), liked, *nodes, facts=drifted("a", "b")))
    assert [each.planned.pool.name for move in both.moves for each in move.replacements] == ["default", "liked"]


def test_a_soft_limit_is_passed_while_another_move_passes_it() -> None:
    """What is being replaced counts for nothing: moves that run together do not hold each other up."""
    of = limited(2, "Soft", **STILL["disruption"])
    coming = {names.REPLACES_ANNOTATION: "a"}
    nodes = (full("a"), full("b"), machine("new", annotations=coming, conditions=("Launched",)))
    made = decide(cluster(of, *nodes, facts={"a": Facts(acting=True), **drifted("b")}))
    assert moves(made) == [("Drifted", ("b",), 1)]


@pytest.mark.parametrize("budget", ["0", "10%", "100%"])
def test_a_hard_limit_of_another_pool_is_all_that_bounds_what_comes_there(budget: str) -> None:
    """Nothing of that pool is disturbed, so that its budgets do not count; nodes go for as many machines as its limit leaves."""
    old = pool("old", types=(LARGE,))
    nodes = [each for at in "abc" for each in (*machine(at, of="old"), *tied(at, cpu=1))]
    for limit, coming in ((100, 3), (2, 2), (0, 0)):
        of = pool(types=(SMALL,), weight=10, limits={"nodes": limit}, disruption={"budgets": [{"nodes": budget}]})
        made = decide(cluster(old, of, nodes))
        assert sum(count for _, _, count in moves(made)) == coming
        assert sum(len(names) for _, names, _ in moves(made)) == coming
        assert {str(each.planned.pool) for move in made.moves for each in move.replacements} <= {"default"}


def test_below_a_hard_limit_as_many_are_replaced_as_may_come() -> None:
    """min(budget, limit − count): with one place left one node is replaced."""
    of = limited(3, consolidateAfter="Never")
    made = decide(cluster(of, full("a", age=9.0), full("b", age=99.0), facts=drifted("a", "b")))
    assert moves(made) == [("Drifted", ("b",), 1)]
    assert made.room[names.DRIFTED_REASON, "default"].replace == 1


# --- situations


def test_pods_of_a_node_that_is_being_disrupted_keep_their_place() -> None:
    """What is moved next leaves the room that they will need: the free node is theirs."""
    nodes = [machine("going"), pods(10, on="going"), machine("free"), pods(4, on="free"), full("last")]
    acting = {"going": Facts(acting=True)}
    made: Situation = cluster(pool(), *nodes, facts=acting)
    assert len(made.demands) == 10
    assert "going" not in {view.name for view in made.snapshot.nodes}
    found = decide(made)
    assert kept(found)["going"] == words.LEAVING
    assert all("free" not in move.nodes for move in found.moves)


def test_a_machine_whose_end_has_begun_counts_for_nothing() -> None:
    """InstanceTerminating: neither a candidate nor in any budget's count."""
    made = cluster(pool(), machine("a", conditions=("Initialized", "InstanceTerminating")), machine("b"))
    assert [node.name for node in made.nodes] == ["b"]


def test_budgets_count_managed_initialised_nodes_alone() -> None:
    """Not a node without a claim, nor one that is starting, nor one that the cloud is ending: half of two is one."""
    half = pool(disruption={"budgets": [{"nodes": "50%"}]})
    strangers = [machine("pet")[1:], machine("new", conditions=("Launched", "Registered"))]
    strangers.append(machine("ending", conditions=("Initialized", "InstanceTerminating")))
    count = counts(cluster(half, machine("a"), machine("b"), *strangers), reason=names.EMPTY)["default"]
    assert (count.nodes, count.disrupting, count.allowed.nodes) == (2, 0, 1)


def test_a_node_without_a_claim_takes_pods_and_never_goes() -> None:
    """Neither when it is empty nor when it has drifted: it is not ours."""
    pet = machine("pet")[1:]
    made = decide(cluster(pool(), pet, machine("a"), pods(1, on="a"), facts=drifted("pet")))
    (move,) = made.moves
    assert (move.nodes, move.replacements, move.destinations) == (("a",), (), ("pet",))
    assert kept(made) == {"pet": words.UNMANAGED}


@pytest.mark.parametrize("order", [1, -1])
def test_equal_input_gives_an_equal_decision(order: int) -> None:
    """Whatever the order in which objects come."""
    nodes = [full("a", age=50.0), machine("b"), [*machine("c"), *pods(2, on="c")], [*machine("d"), *pods(3, on="d")]]
    assert decide(cluster(pool(), *nodes[::order], facts=drifted("a"))) == decide(
        cluster(pool(), *nodes, facts=drifted("a"))
    )


def test_a_search_that_runs_out_of_steps_says_so() -> None:
    """What it found until then is still good."""
    nodes = [each for at in range(6) for each in (machine(f"n-{at}"), pods(2, on=f"n-{at}"))]
    made = decide(cluster(pool(), *nodes), Options(search=SearchOptions(budget=1)))
    assert not made.complete


def test_a_decision_that_is_stopped_ends_at_once() -> None:
    """Drift too asks whether somebody needs the processor more; what is decided until then is nobody's."""
    asked: list[None] = []

    def stop() -> bool:
        asked.append(None)
        return True

    nodes = [full(f"n-{at}") for at in range(3)]
    made = decide(cluster(pool(**STILL), *nodes, facts=drifted("n-0", "n-1")), Options(search=SearchOptions(stop=stop)))
    assert (made.moves, made.complete, len(asked)) == ((), False, 1)


def test_nodes_without_a_price_go_when_empty_unless_only_priced_ones_may() -> None:
    """A controller must not keep an empty machine for ever; a plan must not say what it cannot know."""
    made = cluster(pool(), machine("a", "no-such-type"))
    assert [move.savings for move in decide(made).moves] == [None]
    assert kept(decide(made, Options(priced=True))) == {"a": words.PRICE_UNKNOWN}
