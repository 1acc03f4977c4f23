"""What is there, or on its way, is filled before anything is bought."""

import pytest

from growth.api import names
from tests.unit.planning.builders import ZONE, expression, node, on_nodes, plan, pod, pods, pool, spread, taint


def test_a_node_with_room_is_used() -> None:
    """No machine is bought for a pod that a node can take."""
    assert plan(node("one"), pool(), pod()).where() == "one"


def test_a_node_without_room_is_not() -> None:
    """A pod that no node can take gets a machine."""
    assert len(plan(node("one", cpu="500m"), pool(), pod()).claims) == 1


def test_what_runs_on_a_node_takes_room() -> None:
    """Pods that are bound count against the node."""
    assert plan(node("one", pod("there", cpu="3500m")), pool(), pod()).on("one") == []


def test_nodes_fill_up_one_after_the_other() -> None:
    """First fit: the first node by name takes all it can."""
    made = plan(node("b"), node("a"), pool(), pods(6))
    assert (len(made.on("a")), len(made.on("b"))) == (4, 2)


def test_initialised_nodes_come_before_those_on_their_way() -> None:
    """A node that is ready is filled before one that is still coming up."""
    made = plan(node("a", initialized=False), node("b"), pool(), pod())
    assert made.where() == "b"


def test_a_machine_on_its_way_is_used_before_another_is_bought() -> None:
    """In-flight capacity counts."""
    assert plan(node("a", initialized=False), pool(), pod()).where() == "a"


def test_every_resource_counts() -> None:
    """A node with cores but no memory takes nothing."""
    assert plan(node("one", memory="512Mi"), pool(), pod()).on("one") == []


def test_the_number_of_pods_counts() -> None:
    """A node that may hold one pod more takes one."""
    made = plan(node("one", room={"pods": "1"}), pool(), pods(2))
    assert len(made.on("one")) == 1


def test_an_overfull_node_takes_nothing() -> None:
    """A node that holds more than it has left is not filled further."""
    assert plan(node("one", pod("there", cpu="6")), pool(), pod()).on("one") == []


def test_a_pod_that_asks_for_nothing_fits_where_there_is_a_place() -> None:
    """Without requests only the number of pods counts, even on a node that is overfull otherwise."""
    made = plan(node("one", pod("there", cpu="6")), pool(), pod(cpu="", memory=""))
    assert made.where() == "one"


def test_labels_choose_among_nodes() -> None:
    """A pod's zone decides which node it can use."""
    assert plan(node("one", zone="a"), node("two", zone="b"), pool(), pod(selector={ZONE: "b"})).where() == "two"


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ("8",), "big"),
        ("NotIn", ("4",), "big"),
        ("Exists", (), "big"),
        ("DoesNotExist", (), "bare"),
        ("Gt", ("4",), "big"),
        ("Lt", ("8",), "mid"),
    ],
)
def test_every_operator_chooses_among_nodes(operator: str, values: tuple[str, ...], expected: str) -> None:
    """Node affinity reads the labels that a node has; absence satisfies NotIn and DoesNotExist alone."""
    nodes = [
        node("big", labels={"size": "8"}),
        node("mid", labels={"size": "4"}),
        node("word", labels={"size": "x"}, cpu="100m"),
    ]
    bare = node("bare") if operator == "DoesNotExist" else node("zzz", cpu="100m")
    made = plan(*nodes, bare, pool(), pod(affinity=on_nodes([expression("size", operator, *values)])))
    assert made.where() == expected


def test_a_label_that_must_exist_and_differ_must_exist() -> None:
    """Exists and NotIn on one label together need the label."""
    both = on_nodes([expression("team", "Exists"), expression("team", "NotIn", "red")])
    made = plan(
        node("bare"), node("red", labels={"team": "red"}), node("zap", labels={"team": "blue"}), pod(affinity=both)
    )
    assert made.where() == "zap"


def test_old_label_names_on_nodes_are_read() -> None:
    """A node that has only the beta label of its zone is in that zone."""
    old = node("old", zone="", labels={"failure-domain.beta.kubernetes.io/zone": "b"})
    assert plan(old, pool(), pod(selector={ZONE: "b"})).where() == "old"


def test_nodes_of_no_pool_are_used_too() -> None:
    """Nodes that nobody manages have room all the same."""
    assert plan(node("static"), pod()).where() == "static"


def test_pods_on_nodes_count_for_spread() -> None:
    """A spread begins with what is there."""
    there = node("one", pod("x", labels={"app": "w"}), cpu="1", zone="a")
    made = plan(there, pool(), pod(labels={"app": "w"}, spread=[spread(app="w")]))
    assert made.claim.zone in {"b", "c"}


def test_existing_nodes_do_not_count_as_bought() -> None:
    """A plan that buys nothing costs nothing."""
    assert plan(node("one"), pool(), pod()).plan.hourly == 0


def test_extended_resources_of_nodes_count() -> None:
    """A device on an existing node is used before a machine is bought for it."""
    gpu = node("gpu", room={"example.com/gpu": "1"})
    made = plan(node("a"), gpu, pool(), pod(extended={"example.com/gpu": "1"}))
    assert made.where() == "gpu"


def test_a_node_being_disrupted_is_not_filled() -> None:
    """The taint of disruption keeps pods away from nodes that are going."""
    going = node("a", taints=[taint(names.DISRUPTED_TAINT)])
    assert plan(going, pool(), pod()).on("a") == []
