"""Which empty nodes go, decided on plain values."""

import pytest

from growth.api import names
from growth.api.karpenter import NodePool
from growth.planning.disruption import words
from tests.unit.planning.disrupting import decided, node, pdb, pod, pool, reasons


def test_empty_nodes_go_and_used_ones_do_not() -> None:
    """What holds only DaemonSets', static, finished, going and worthless pods is empty."""
    worthless = {names.POD_DELETION_COST_ANNOTATION: "-2147483647"}
    made = decided(
        node("bare"),
        node("daemons", pods=[pod(owner="DaemonSet"), pod(owner="Node")]),
        node("done", pods=[pod(phase="Succeeded"), pod(deleting=5)]),
        node("worthless", pods=[pod(annotations=worthless)]),
        node("used", pods=[pod()]),
        node("stateful", pods=[pod(owner="StatefulSet", deleting=5)]),
    )
    (move,) = made.moves
    assert move.reason == names.EMPTY
    assert move.pools == ("default",)
    assert move.nodes == ("bare", "daemons", "done", "worthless")
    assert move.replacements == ()
    assert move.savings == 4000
    assert move.evictions == 1


@pytest.mark.parametrize(
    ("disruption", "room"),
    [({"consolidationPolicy": policy}, 1) for policy in ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")],
)
def test_every_policy_removes_empty_nodes(disruption: dict[str, str], room: int) -> None:
    """Emptiness needs no policy beyond the weakest."""
    assert len(decided(node("a"), pools=(pool(disruption=disruption),)).moves) == room


def test_each_reason_to_stay_is_named() -> None:
    """The first rule that keeps an empty node is the reason; waiting for quiet or a pod is a matter of time."""
    made = decided(
        node("a", protected=True),
        node("b", paused=True),
        node("c", nominated=True),
        node("d", quiet_seconds=-1.0),
        node("e", pool="gone"),
        node("f", pods=[pod(owner="DaemonSet", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})]),
        node("g", holds_buffer=True),
    )
    assert made.moves == ()
    assert reasons(made) == {
        "a": (words.DO_NOT_DISRUPT, "the node has the annotation karpenter.sh/do-not-disrupt"),
        "b": (words.PAUSED, "the node is paused"),
        "c": (words.NOMINATED, "the node is nominated for a pending pod"),
        "d": (words.CONSOLIDATE_AFTER, "a pod came or went less than 0s ago"),
        "e": (words.POOL_NOT_FOUND, "NodePool gone does not exist"),
        "f": (words.DO_NOT_DISRUPT, "pod default/p has the annotation karpenter.sh/do-not-disrupt"),
        "g": (words.BUFFER, "the node holds capacity of a CapacityBuffer"),
    }
    assert [each.node for each in made.kept if each.waits] == ["c", "d"]
    assert [each.node for each in made.kept if each.disabled] == ["g"]


@pytest.mark.parametrize(
    ("of", "word", "message"),
    [
        (
            pool(disruption={"consolidateAfter": "Never"}),
            words.DISABLED,
            "NodePool default has consolidation disabled",
        ),
        (pool(replicas=3), words.STATIC, "NodePool default is static: it keeps its number of nodes"),
        (pool(annotations={names.PAUSED_ANNOTATION: ""}), words.PAUSED, "NodePool default is paused"),
        (
            pool(disruption={"consolidateAfter": "soon"}),
            words.MALFORMED,
            "NodePool default: consolidateAfter 'soon' is not a duration: write numbers with units, such as 30s, 10m or 1h30m, or Never",
        ),
    ],
)
def test_reasons_of_the_pool(of: NodePool, word: str, message: str) -> None:
    """Never, static, paused and an unreadable duration keep every empty node of the pool."""
    assert reasons(decided(node("a"), pools=(of,))) == {"a": (word, message)}


def test_what_protects_a_pod_keeps_an_empty_node() -> None:
    """Its pods need no other place, and may not be asked to leave: a budget that allows no eviction, or an annotation."""
    free = {names.POD_DELETION_COST_ANNOTATION: str(-(1 << 31))}
    nodes = [
        node("a", pods=[pod("a", owner="DaemonSet")]),
        node("b", pods=[pod("b", annotations=free)]),
        node("c", pods=[pod("c", annotations={**free, names.DO_NOT_DISRUPT_ANNOTATION: "true"})]),
    ]
    made = decided(*nodes, budgets=tuple(pdb(name, app=name) for name in "ab"))
    assert made.moves == ()
    assert {name: told[0] for name, told in reasons(made).items()} == {
        "a": words.POD_BUDGET,
        "b": words.POD_BUDGET,
        "c": words.DO_NOT_DISRUPT,
    }
    allowed = decided(*nodes[:2], budgets=tuple(pdb(name, app=name, allowed=1) for name in "ab"))
    assert [move.nodes for move in allowed.moves] == [("a", "b")]


def test_a_paused_cluster_keeps_everything() -> None:
    """The pause of the whole cluster comes before every other rule."""
    assert reasons(decided(node("a", protected=True), paused=True)) == {"a": (words.PAUSED, "the cluster is paused")}


def test_budgets_count_every_node_and_what_is_under_way() -> None:
    """A tenth of twenty is two; one that leaves and one that is not ready use both up."""
    ten = pool(disruption={"budgets": [{"nodes": "10%"}], "consolidationPolicy": "WhenEmpty"})
    used = [node(f"used-{number:02}", pods=[pod()]) for number in range(17)]
    free = decided(*used, node("a"), node("b"), node("c"), pools=(ten,))
    assert [move.nodes for move in free.moves] == [("a", "b")]
    assert reasons(free)["c"] == (words.BUDGET, "the budget of NodePool default for reason Empty is used up")
    full = decided(*used, node("a"), node("b", leaving=True), node("c", pods=[pod()], ready=False), pools=(ten,))
    assert full.moves == ()
    assert reasons(full)["a"] == (
        words.BUDGET,
        "the budget of NodePool default for reason Empty allows 2 at a time, 2 of them disrupted or not ready already",
    )


def test_the_dearest_goes_first_and_ties_go_by_name() -> None:
    """A node whose price is not known is not taken for dear, and what it saves is not known either."""
    three = pool(disruption={"budgets": [{"nodes": "3"}]})
    nodes = [node("d", price=5), node("c", price=None), node("b", price=5), node("a", price=9)]
    (move,) = decided(*nodes, pools=(three,)).moves
    assert (move.nodes, move.savings) == (("a", "b", "d"), 19)
    (move,) = decided(*nodes).moves
    assert (move.nodes, move.savings) == (("a", "b", "d", "c"), None)


def test_equal_input_gives_an_equal_decision() -> None:
    """Whatever the order in which nodes are given."""
    nodes = [node(name, price=price) for name, price in (("a", 1), ("b", 2), ("c", 1), ("d", None))]
    two = pool(disruption={"budgets": [{"nodes": "2"}]})
    assert decided(*nodes, pools=(two,)) == decided(*reversed(nodes), pools=(two,))
