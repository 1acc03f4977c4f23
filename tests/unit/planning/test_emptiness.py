"""Which empty nodes go, decided on plain values."""

import datetime as dt
from typing import Any

import msgspec

from growth.api import names
from growth.api.karpenter import NodePool
from growth.planning.emptiness import EmptinessPlan, OwnedNode, plan_emptiness
from tests import manifests
from tests.unit.planning.test_draining import NOW, pod

DAY = 86_400.0


def pool(name: str = "default", *, annotations: dict[str, str] | None = None, **spec: Any) -> NodePool:
    raw = manifests.node_pool(name)
    raw["metadata"]["annotations"] = annotations or {}
    raw["spec"] = {**raw["spec"], "disruption": {"budgets": [{"nodes": "100%"}]}, **spec}
    return msgspec.convert(raw, NodePool)


def node(name: str, **more: Any) -> OwnedNode:
    return OwnedNode(**{"name": name, "pool": "default", "quiet_seconds": DAY, **more})


def plan(*nodes: OwnedNode, of: NodePool | None = None, now: dt.datetime = NOW, paused: bool = False) -> EmptinessPlan:
    return plan_emptiness(nodes, {"default": of or pool()}, now=now, paused=paused)


def reasons(made: EmptinessPlan) -> dict[str, str]:
    return {each.node: each.reason for each in made.kept}


def test_empty_nodes_go_and_used_ones_are_not_mentioned() -> None:
    """What holds only DaemonSets', static, finished, going and worthless pods is empty."""
    worthless = {names.POD_DELETION_COST_ANNOTATION: "-2147483647"}
    made = plan(
        node("bare"),
        node("daemons", pods=[pod(owner="DaemonSet"), pod(owner="Node")]),
        node("done", pods=[pod(phase="Succeeded"), pod(deleting=5)]),
        node("worthless", pods=[pod(annotations=worthless)]),
        node("used", pods=[pod()]),
        node("stateful", pods=[pod(owner="StatefulSet", deleting=5)]),
    )
    assert made.remove == ("bare", "daemons", "done", "worthless")
    assert made.kept == ()


def test_each_reason_to_stay_is_named() -> None:
    """The first rule that keeps an empty node is the reason; only waiting for quiet or a pod is a matter of time."""
    made = plan(
        node("a", protected=True),
        node("b", paused=True),
        node("c", nominated=True),
        node("d", quiet_seconds=-1.0),
        node("e", pool="gone"),
        node("f", pods=[pod(owner="DaemonSet", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})]),
        node("g", doubt="2 Nodes and 1 NodeClaims have the provider ID x"),
    )
    assert made.remove == ()
    assert reasons(made) == {
        "a": "the node has the annotation karpenter.sh/do-not-disrupt",
        "b": "the node is paused",
        "c": "the node is nominated for a pending pod",
        "d": "a pod came or went less than 0s ago",
        "e": "NodePool gone does not exist",
        "f": "pod default/p has the annotation karpenter.sh/do-not-disrupt",
        "g": "2 Nodes and 1 NodeClaims have the provider ID x",
    }
    assert [each.node for each in made.kept if each.waits] == ["c", "d"]


def test_reasons_of_the_pool() -> None:
    """Never, static, paused and an unreadable duration keep every empty node of the pool."""
    for of, reason in (
        (pool(disruption={"consolidateAfter": "Never"}), "NodePool default has consolidation disabled"),
        (pool(replicas=3), "NodePool default is static: it keeps its number of nodes"),
        (pool(annotations={names.PAUSED_ANNOTATION: ""}), "NodePool default is paused"),
    ):
        assert reasons(plan(node("a"), of=of)) == {"a": reason}
    assert reasons(plan(node("a"), paused=True)) == {"a": "the cluster is paused"}
    (told,) = reasons(plan(node("a"), of=pool(disruption={"consolidateAfter": "soon"}))).values()
    assert told.startswith("NodePool default: consolidateAfter 'soon' is not a duration")


def test_budgets_count_every_node_and_what_is_under_way() -> None:
    """A tenth of twenty is two; one that leaves and one that is not ready use both up."""
    ten = pool(disruption={"budgets": [{"nodes": "10%"}]})
    nodes = [node(f"used-{number:02}", pods=[pod()]) for number in range(17)]
    free = plan(*nodes, node("a"), node("b"), node("c"), of=ten)
    assert free.remove == ("a", "b")
    assert reasons(free) == {"c": "the budget of NodePool default for reason Empty allows 2 at a time"}
    assert free.eligible == 3
    full = plan(*nodes, node("a"), node("b", leaving=True), node("c", pods=[pod()], ready=False), of=ten)
    assert full.remove == ()
    assert reasons(full) == {
        "a": "the budget of NodePool default for reason Empty allows 2 at a time,"
        " 2 of them disrupted or not ready already"
    }
    assert full.budgets["default"].disrupting == 2


def test_the_dearest_goes_first_and_ties_go_by_name() -> None:
    """A node whose price is not known is not taken for dear."""
    one = pool(disruption={"budgets": [{"nodes": "3"}]})
    made = plan(node("d", price=5), node("c", price=None), node("b", price=5), node("a", price=9), of=one)
    assert made.remove == ("a", "b", "d")


def test_equal_input_gives_an_equal_plan() -> None:
    """Whatever the order in which nodes are given."""
    nodes = [node(name, price=price) for name, price in (("a", 1), ("b", 2), ("c", 1), ("d", None))]
    one = pool(disruption={"budgets": [{"nodes": "2"}]})
    assert plan(*nodes, of=one) == plan(*reversed(nodes), of=one)
