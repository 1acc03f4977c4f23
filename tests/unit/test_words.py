"""The scheduler's words: which refusals of which nodes become which message."""

from growth.sim.world.words import explain


def test_each_node_counts_for_the_first_rule_that_kube_scheduler_asks() -> None:
    """A cordon comes before taints, ports before room; of room every resource is named."""
    message = explain(
        [
            ["taints: a=:NoSchedule", "taints: the node is cordoned"],
            ["taints: a=:NoSchedule", "room: cpu needs 2, free 1"],
            ["room: cpu needs 2, free 1", "room: pods needs 1, free 0", "spread: zone would hold 2"],
            ["room: cpu needs 2, free 1", "ports: TCP 80 is taken"],
            ["anti-affinity of web-1: keeps the pod out of this zone"],
        ]
    )
    assert message == (
        "0/5 nodes are available: 1 Insufficient cpu, 1 Too many pods, "
        "1 node(s) didn't have free ports for the requested pod ports, "
        "1 node(s) didn't satisfy existing pods anti-affinity rules, "
        "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
    )


def test_a_cluster_without_nodes_says_so() -> None:
    """With no node there is nothing to count."""
    assert explain([]) == "no nodes available to schedule pods"
