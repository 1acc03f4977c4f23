"""What DaemonSets take of machines before any pod does."""

from tests.unit.planning.builders import (
    ARCH,
    MEDIUM,
    container,
    expression,
    kind,
    node,
    on_nodes,
    plan,
    pod,
    pods,
    pool,
    taint,
    tolerate,
)


def test_a_new_machine_keeps_room_for_its_daemonsets() -> None:
    """A pod goes on a type only if the DaemonSets of that type fit beside it."""
    made = plan(pool(), pod(cpu="2"), daemons=[pod("agent", cpu="100m")])
    assert made.claim.instance_type == "medium"


def test_requests_of_a_claim_include_daemonsets() -> None:
    """What a claim asks of the cloud is its pods and its DaemonSets."""
    made = plan(pool(), pod(cpu="1"), daemons=[pod("agent", cpu="100m", memory="64Mi")])
    assert made.claim.requests == {"cpu": 1100, "memory": (1024 + 64) << 20, "pods": 2}


def test_a_daemonset_that_does_not_tolerate_the_pool_costs_nothing_there() -> None:
    """DaemonSets kept out by the pool's taints are not counted."""
    tainted = pool(taints=[taint()])
    made = plan(tainted, pod(cpu="2", tolerations=[tolerate("dedicated")]), daemons=[pod("agent", cpu="100m")])
    assert made.claim.instance_type == "small"


def test_startup_taints_do_not_keep_daemonsets_away() -> None:
    """Startup taints go away before pods come, and then the DaemonSets come too."""
    made = plan(pool(startup=[taint("starting")]), pod(cpu="2"), daemons=[pod("agent", cpu="100m")])
    assert made.claim.instance_type == "medium"


def test_a_daemonset_counts_only_on_types_that_it_selects() -> None:
    """The overhead is worked out type by type."""
    made = plan(
        pool("default", kind("arm", 2, arch="arm64", price=1), kind("amd", 2, price=2)),
        pod(cpu="2"),
        daemons=[pod("agent", cpu="100m", selector={ARCH: "arm64"})],
    )
    assert made.claim.instance_type == "amd"


def test_a_daemonset_with_alternatives_counts_where_any_of_them_holds() -> None:
    """Of a DaemonSet's OR terms one is enough."""
    agent = pod("agent", cpu="100m", affinity=on_nodes([expression(ARCH, "In", "s390x")], [expression(ARCH, "Exists")]))
    assert plan(pool(), pod(cpu="2"), daemons=[agent]).claim.instance_type == "medium"


def test_preferences_of_daemonsets_are_ignored() -> None:
    """A DaemonSet pod runs where it may, not where it would like to."""
    agent = pod("agent", cpu="100m", affinity=on_nodes(prefer=[(1, expression(ARCH, "In", "s390x"))]))
    assert plan(pool(), pod(cpu="2"), daemons=[agent]).claim.instance_type == "medium"


def test_host_ports_of_daemonsets_are_taken_on_new_machines() -> None:
    """A pod with the host port of a DaemonSet fits on no new machine of the pool."""
    made = plan(pool(), pod(ports=[9100]), daemons=[pod("agent", cpu="100m", ports=[9100])])
    assert made.unplaced == ["pod"]


def test_an_existing_node_keeps_room_for_daemonsets_that_have_not_come_yet() -> None:
    """A node that is still coming up owes its DaemonSets their room."""
    made = plan(node("one", cpu="2"), pool(), pod(cpu="2"), daemons=[pod("agent", cpu="100m")])
    assert made.on("one") == []


def test_daemonsets_that_are_there_are_not_counted_twice() -> None:
    """What DaemonSet pods hold already is not kept for them again."""
    there = node("one", cpu="2", daemons={"cpu": "100m", "memory": "1Gi", "pods": "1"})
    made = plan(there, pool(), pod(cpu="1900m"), daemons=[pod("agent", cpu="100m")])
    assert made.on("one") == ["pod"]


def test_daemonsets_take_their_share_of_the_number_of_pods() -> None:
    """A type for three pods holds two beside a DaemonSet."""
    tiny = kind("tiny", 4, pods=3)
    made = plan(pool("default", tiny), pods(4, cpu="100m"), daemons=[pod("agent", cpu="100m")])
    assert made.sizes == [2, 2]


def test_several_daemonsets_add_up() -> None:
    """All DaemonSets of a type are kept room for together."""
    agents = [pod(f"agent-{at}", containers=[container("1", "64Mi")]) for at in range(3)]
    assert plan(pool("default", MEDIUM), pods(2, cpu="1"), daemons=agents).sizes == [1, 1]


def test_host_ports_of_daemonsets_are_taken_type_by_type() -> None:
    """A DaemonSet for one architecture leaves its port free on the other."""
    agent = pod("agent", cpu="100m", ports=[9100], selector={ARCH: "amd64"})
    made = plan(pool("default", MEDIUM, kind("arm", arch="arm64", price=9)), pod(ports=[9100]), daemons=[agent])
    assert made.claim.instance_types == ("arm",)
