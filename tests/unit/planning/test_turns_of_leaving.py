"""Pods leave a node one after the other: who is still there counts, and decides where the first of them go."""

from typing import Any

import pytest

from growth.api.meta import LabelSelector, ObjectMeta
from growth.api.pods import Pod
from growth.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from growth.cluster.snapshot import Demand, NodeView, Snapshot
from growth.planning.disruption.search.orders import lots, orders
from growth.planning.disruption.search.turns import Leaving, Turns
from growth.planning.rehearsal import Stage
from tests.unit.planning.builders import (
    MEDIUM,
    SHAPES,
    ZONE,
    claim,
    near,
    node,
    pod,
    pods,
    spread,
    storage,
    taint,
    term,
    volume,
)
from tests.unit.planning.searching import found, gone, owned, situation

WEB: dict[str, Any] = {"labels": {"app": "web"}}
EVEN: dict[str, Any] = {**WEB, "spread": [spread(app="web")]}


def demands(*waiting: Pod) -> list[Demand]:
    return [Demand(f"default/{each.metadata.name}", SHAPES.shape(each)) for each in waiting]


def leaving(name: str, *there: Pod, zone: str) -> NodeView:
    return node(name, *there, zone=zone, taints=[taint("leaves")], room={"cpu": "0"})


def places(waiting: list[Demand], nodes: list[NodeView], *turns: dict[str, str], **more: Any) -> dict[str, str | int]:
    stage = Stage(Snapshot(currency="EUR", namespaces={"default": {}}, nodes=tuple(nodes), **more), waiting)
    return dict(stage.rehearse((), turns=turns).order)


def budget(allowed: int, **labels: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=PodDisruptionBudgetSpec(max_unavailable=allowed, selector=LabelSelector(match_labels=labels)),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


def test_until_its_turn_comes_a_pod_counts_where_it_runs() -> None:
    """With both gone the first goes to the roomiest node; while the other still runs in that zone, it may not."""
    first, second = pod("first", **EVEN), pod("second", **EVEN)
    nodes = [node("a", zone="a"), node("b", zone="b", cpu="16"), leaving("old", second, zone="b")]
    nodes.append(leaving("older", first, zone="a"))
    at_once = places(demands(first, second), [*nodes[:2], leaving("old", zone="b"), leaving("older", zone="a")])
    assert at_once == {"default/first": "b", "default/second": "a"}
    in_turns = places(demands(first, second), nodes, {"default/first": "older"}, {"default/second": "old"})
    assert in_turns == {"default/first": "a", "default/second": "b"}


def test_who_is_told_to_leave_draws_others_until_it_has_ended() -> None:
    """Pods that end are still there to those who like to be near them, and no more to those who spread."""
    web, api = pod("web", **WEB), pod("api", affinity=near(prefer=[(50, term(app="web"))]))
    nodes = [node("a", zone="a"), node("b", zone="b", cpu="16")]
    assert places(demands(api, web), nodes)["default/api"] == "b"
    together = {"default/api": "old", "default/web": "old"}
    assert places(demands(api, web), [*nodes, leaving("old", web, api, zone="a")], together)["default/api"] == "a"


def test_a_claim_for_one_pod_alone_is_free_when_its_pod_leaves() -> None:
    """Else whoever uses one could never be rehearsed."""
    alone = pod("db", claims=["data"])
    volumes = storage(claim("data", volume="pv", modes=["ReadWriteOncePod"]), volume("pv"))
    nodes = [node("a"), leaving("old", alone, zone="a")]
    assert places(demands(alone), nodes, {"default/db": "old"}, volumes=volumes) == {"default/db": "a"}


@pytest.mark.parametrize(
    ("how", "turns"),
    [
        (Leaving.AT_ONCE, []),
        (Leaving.ALONE, [["x"], ["web-00"], ["web-01"], ["web-02"]]),
        (Leaving.AS_BUDGETS_ALLOW, [["x", "web-00"], ["web-01"], ["web-02"]]),
    ],
)
def test_whom_budgets_hold_up_leaves_after_the_others(how: Leaving, turns: list[list[str]]) -> None:
    """A budget lets so many go; each further one leaves when another is ready elsewhere."""
    there = [pod("x"), *pods(3, "web", **WEB)]
    made = situation(owned("a", *there), owned("b", pod("y")), disruption_budgets=(budget(1, app="web"),))
    found = Turns(made, gone={"a"}, evicted=demands(*there)).of(demands(*there), how)
    assert [*found] == [{f"default/{name}": "a" for name in turn} for turn in turns]


def test_no_node_goes_whose_pods_are_drawn_to_where_the_others_must_go() -> None:
    """Both pods of one app must stay in the zone; the third likes to be near them, and would take the room of one."""
    drawn = pod("api", affinity=near(prefer=[(50, term(app="web"))]))
    others = [owned("b", *pods(2, "x")), owned("c", pod("web", **WEB), pod("y"), zone="b")]
    for labels, goes in (({"app": "other"}, ["a"]), ({"app": "web"}, [])):
        bound = pods(2, "bound", selector={ZONE: "a"}, labels=labels)
        assert gone(found(owned("a", *bound, drawn), *others, candidates="a", sold=(MEDIUM,))) == goes


def test_lots_are_drawn_only_where_not_every_order_is_tried() -> None:
    """They are orders of the same pods, and the same each time."""
    few, many = demands(*pods(3, "x"), pod("y", cpu="2")), demands(*pods(9, "x"), *pods(9, "y", cpu="2"))
    assert list(lots(few, 5)) == []
    drawn = list(lots(many, 5))
    assert drawn == list(lots(many[::-1], 5))
    assert len({tuple(each.key for each in order) for order in (*drawn, *orders(many))}) == 5 + len(orders(many))
    assert all(sorted(each.key for each in order) == sorted(each.key for each in many) for order in drawn)
