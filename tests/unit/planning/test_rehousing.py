"""Machines for the pods of nodes that go in any case."""

from growth.api import names
from growth.api.policy import PodDisruptionBudget
from growth.planning.disruption.search import replaced
from tests.unit.planning.builders import HOST, LARGE, MEDIUM, SMALL, far, kind, offering, pod, pods, term
from tests.unit.planning.disrupting import pdb
from tests.unit.planning.searching import owned, situation


def test_free_room_is_used_first() -> None:
    """Where the pods fit on nodes that are there nothing is bought."""
    old, other = owned("a", *pods(1, "x")), owned("b", *pods(1, "y"))
    move = replaced(situation(old, other), [old])
    assert move is not None
    assert (move.nodes, move.replacements, move.destinations) == (("a",), (), ("b",))
    assert (move.reason, move.evictions) == (names.DRIFTED_REASON, 1)


def test_there_is_no_rule_of_price() -> None:
    """A drifted node is replaced even by what is dearer, and by as many machines as it takes."""
    dear = kind("dear", 2, "8Gi", price=2.0)
    old = owned("a", *pods(4, "x"), of=MEDIUM)
    move = replaced(situation(old, sold=(dear,)), [old])
    assert move is not None
    assert [each.planned.instance_type for each in move.replacements] == ["dear", "dear"]
    assert move.savings is not None
    assert move.savings < 0


def test_savings_are_unknown_where_a_price_is() -> None:
    """Unknown is not zero."""
    old = owned("a", *pods(1, "x"), price=None)
    move = replaced(situation(old), [old])
    assert move is not None
    assert move.savings is None


def test_what_fits_nowhere_cannot_be_rehoused() -> None:
    """No machine holds the pod: nothing is proposed."""
    old = owned("a", pod("x", cpu="9"), of=LARGE)
    assert replaced(situation(old, sold=(SMALL,)), [old]) is None


def test_pods_that_nobody_can_evict_are_not_waited_for() -> None:
    """A budget that never allows an eviction: nobody knows when the pod will want another place."""
    old = owned("a", *pods(1, "x", labels={"app": "x"}))
    never: PodDisruptionBudget = pdb("never", app="x", maxUnavailable=0)
    freely = replaced(situation(old), [old])
    held = replaced(situation(old, disruption_budgets=(never,)), [old])
    assert freely is not None
    assert held is not None
    assert (len(freely.replacements), len(held.replacements)) == (1, 0)


def test_pods_get_machines_of_their_own_where_kube_scheduler_would_crowd_them_out() -> None:
    """The free room suffices only in our order of things."""
    six = kind("six", 6, "24Gi", price=2.0)
    old = owned("a", *pods(2, "s"), pod("big", cpu="3"), of=six)
    others = (owned("b", *pods(1, "y")), owned("c", *pods(1, "z", cpu="2")))
    move = replaced(situation(old, *others, sold=(MEDIUM, six)), [old])
    assert move is not None
    assert sum(len(each.planned.pods) for each in move.replacements) == 3


def test_several_nodes_are_rehoused_together() -> None:
    """Rules among their pods hold between what is bought."""
    apart = {"affinity": far(term(HOST, app="x")), "labels": {"app": "x"}}
    nodes = [owned(f"n{at}", *pods(1, f"p{at}", **apart)) for at in range(3)]
    move = replaced(situation(*nodes), nodes)
    assert move is not None
    assert len(move.replacements) == 3


def test_pods_of_a_node_that_goes_may_come_where_others_came_a_moment_ago() -> None:
    """`consolidateAfter` spares nodes from moves that could wait, and nothing that goes in any case waits for it."""
    old, busy = owned("a", *pods(1, "x")), owned("b", *pods(1, "y"), quiet_seconds=10)
    move = replaced(situation(old, busy, disruption={"consolidateAfter": "1m"}), [old])
    assert move is not None
    assert (move.replacements, move.destinations) == ((), ("b",))


def test_reserved_capacity_that_is_used_up_is_replaced_on_other_terms() -> None:
    """With a place left in the reservation that is taken; without one nobody waits for it."""
    for places, terms in ((1, names.RESERVED), (0, names.ON_DEMAND)):
        reserved = offering("a", 0.0, names.RESERVED, reservation="r1", places=places)
        paid = kind("paid", 4, "16Gi", offerings=[reserved, offering("a", 0.4)])
        old = owned("a", *pods(4, "x"), of=paid, terms=names.RESERVED)
        move = replaced(situation(old, sold=(paid,)), [old])
        assert move is not None
        assert [each.planned.capacity_type for each in move.replacements] == [terms]
