"""From objects to a situation: whose each node is, what protects it, what it costs, and who is on the way out."""

import datetime as dt

import pytest

from growth.api import names
from growth.cluster.snapshot import NODES
from growth.planning.disruption import words
from growth.planning.disruption.model import OwnedNode, Situation
from growth.planning.disruption.room import counts
from growth.planning.disruption.situating import Facts
from tests import manifests
from tests.unit.planning.clusters import LARGE, cluster, machine, pods, pool
from tests.unit.planning.disrupting import NOW

DISRUPTED = {"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}


def only(made: Situation) -> OwnedNode:
    (node,) = made.nodes
    return node


def others(made: Situation) -> dict[str, str]:
    return {each.node: each.reason for each in made.others}


def test_a_node_is_known_with_its_claim_its_pods_and_its_price() -> None:
    """Everything that a decision asks is in one place."""
    found = only(cluster(pool(), machine("a", age=3600.0, terminationGracePeriod="1h"), pods(2, on="a")))
    assert (found.name, found.claim, found.pool, found.instance_type) == ("a", "a", "default", LARGE)
    assert (found.capacity_type, found.price, found.ends) == ("on-demand", 434_359_738, True)
    assert found.created == NOW - dt.timedelta(hours=1)
    assert [pod.name for pod in found.pods] == ["a-0", "a-1"]
    assert found.ready
    assert not any((found.leaving, found.protected, found.paused, found.drifted, found.nominated))


@pytest.mark.parametrize("on", [0, 1])
@pytest.mark.parametrize(
    ("annotation", "value", "field"),
    [
        (names.DO_NOT_DISRUPT_ANNOTATION, "true", "protected"),
        (names.DO_NOT_DISRUPT_ANNOTATION, "10m", ""),  # a time is for pods
        (names.PAUSED_ANNOTATION, "", "paused"),
        (names.PAUSED_ANNOTATION, "false", ""),
    ],
)
def test_marks_on_the_node_and_on_its_claim_count_alike(on: int, annotation: str, value: str, field: str) -> None:
    """People write them where they find the object."""
    made = machine("a")
    made[on]["metadata"]["annotations"] = {annotation: value}
    found = only(cluster(pool(), made))
    assert {name for name in ("protected", "paused") if getattr(found, name)} == ({field} - {""})


def test_nodes_that_are_not_ours_are_named_apart() -> None:
    """Without a claim, without a pool, of a growth pool, not initialised, in doubt: no move touches any of them."""
    by_hand = machine("by-hand")
    growth = machine("growth")
    for each in (*by_hand, *growth):
        del each["metadata"]["labels"][names.NODE_POOL_LABEL]
    for each in growth:
        each["metadata"]["labels"][names.POOL_LABEL] = "default"
    made = cluster(
        pool(),
        machine("ours"),
        machine("young", conditions=("Launched", "Registered")),
        manifests.node("foreign"),
        by_hand,
        growth,
        machine("odd"),
        manifests.node("twin"),
        machine("elsewhere"),
        facts={
            "odd": Facts(doubt="two Nodes are of one machine"),
            "twin": Facts(doubt="two Nodes are of one machine"),
            "elsewhere": Facts(foreign="another provider serves its node class"),
        },
    )
    assert [node.name for node in made.nodes] == ["ours"]
    assert others(made) == {
        "young": words.NOT_INITIALIZED,
        "foreign": words.UNMANAGED,
        "by-hand": words.UNMANAGED,
        "growth": words.GROWTH_POOL,
        "odd": words.DOUBTFUL,
        "twin": words.DOUBTFUL,
        "elsewhere": words.UNMANAGED,
    }


def test_no_move_counts_on_room_in_doubt() -> None:
    """Two Nodes of one machine have its room once at most; what runs on them is there all the same."""
    unclear = {name: Facts(doubt="two Nodes are of one machine") for name in ("odd", "twin")}
    made = cluster(pool(), machine("ours"), machine("odd"), pods(2, on="odd"), manifests.node("twin"), facts=unclear)
    views = {view.name: view for view in made.snapshot.nodes}
    assert {name: view.initialized for name, view in views.items()} == {"ours": True, "odd": False, "twin": False}
    assert sum(number for _, number in views["odd"].pods) == 2


@pytest.mark.parametrize("how", ["well", "claim goes", "goes", "twin goes", "twin is marked", "twin is not ready"])
def test_a_machine_in_doubt_counts_once_in_the_budgets_of_its_pool(how: str) -> None:
    """And as disrupted where its claim or any of its Nodes is: nobody knows which of them stays."""
    claim, node = machine("odd")
    twin = machine("twin", taints=(DISRUPTED,) if how == "twin is marked" else (), ready=how != "twin is not ready")[1]
    twin["spec"]["providerID"] = node["spec"]["providerID"]
    going = {"claim goes": claim, "goes": node, "twin goes": twin}.get(how)
    if going is not None:
        going["metadata"] |= {"deletionTimestamp": "2030-01-07T11:00:00Z", "finalizers": [names.TERMINATION_FINALIZER]}
    unclear = {name: Facts(doubt="two Nodes are of one machine") for name in ("odd", "twin")}
    made = cluster(pool(), machine("ours"), claim, node, twin, facts=unclear)
    count = counts(made, reason=names.EMPTY)["default"]
    assert (count.nodes, count.disrupting) == (2, 0 if how == "well" else 1)


@pytest.mark.parametrize(
    ("conditions", "counted"),
    [
        (("Launched", "Registered", "Initialized"), 2),
        (("Launched", "Registered"), 1),
        (("Launched", "Registered", "Initialized", "InstanceTerminating"), 1),
    ],
)
def test_budgets_count_a_node_whose_claim_was_initialised(conditions: tuple[str, ...], counted: int) -> None:
    """A Node that came anew has yet to be marked; the machine was up, and is a node of its pool until the cloud ends it."""
    claim, node = machine("anew", conditions=conditions)
    node["metadata"]["labels"][names.INITIALIZED_LABEL] = "false"
    claim["metadata"] |= {"deletionTimestamp": "2030-01-07T11:00:00Z", "finalizers": [names.TERMINATION_FINALIZER]}
    count = counts(cluster(pool(), machine("ours"), claim, node), reason=names.EMPTY)["default"]
    assert (count.nodes, count.disrupting) == (counted, counted - 1)


def test_a_claim_whose_machine_is_still_to_come_is_no_node() -> None:
    """It counts against limits, and nobody asks whether it may go."""
    made = cluster(pool(limits={"nodes": 3}), machine("a")[0])
    assert (made.nodes, made.others) == ((), ())
    assert made.snapshot.pools[0].used[NODES] == 1


def test_what_is_tainted_or_deleted_leaves() -> None:
    """Whoever put the taint there; and pods of what is deleted want a place."""
    gone = machine("gone")
    gone[0]["metadata"] |= {"deletionTimestamp": "2030-01-07T11:00:00Z", "finalizers": [names.TERMINATION_FINALIZER]}
    made = cluster(pool(), machine("marked", taints=(DISRUPTED,)), gone, pods(2, on="gone"))
    assert {node.name: node.leaving for node in made.nodes} == {"marked": True, "gone": True}
    assert len(made.demands) == 2


def test_drift_is_as_the_condition_says_unless_somebody_knows_better() -> None:
    """A condition without a reason counts; what the facts say counts more."""
    marked = machine("a", conditions=("Initialized", "Drifted"))
    assert only(cluster(pool(), marked)).drifted == "Drifted"
    marked[0]["status"]["conditions"][1]["reason"] = "ImageDrifted"
    assert only(cluster(pool(), marked)).drifted == "ImageDrifted"
    assert only(cluster(pool(), marked, facts={"a": Facts(drifted="")})).drifted == ""
    marked[0]["status"]["conditions"][1]["status"] = "False"
    assert only(cluster(pool(), marked)).drifted == ""


@pytest.mark.parametrize(("mode", "most"), [("Hard", 1), ("Soft", 2)])
def test_a_soft_limit_lets_a_pool_keep_what_it_has(mode: str, most: int) -> None:
    """What goes makes room for what comes in its place, even above the limit; a Hard one stays as it is written."""
    of = pool(limits={"nodes": 1, "cpu": "64"}, disruption={"nodeLimitMode": mode})
    (view,) = cluster(of, machine("a"), machine("b")).snapshot.pools
    assert (view.limits[NODES], view.used[NODES], "cpu" in view.limits) == (most, 2, True)


def test_overlays_change_what_a_node_costs() -> None:
    """What it is worth to its owner is what counts."""
    dear = manifests.overlay("dear", manifests.need(names.INSTANCE_TYPE_LABEL, "In", LARGE), price="0.5")
    assert only(cluster(pool(), machine("a"), dear)).price == 500_000_000
