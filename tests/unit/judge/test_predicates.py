"""The slow rules of kube-scheduler, one by one. The cluster tests hold them to the real one."""

import msgspec
import pytest

from growth.api.meta import LabelSelector, ObjectMeta
from growth.api.nodes import Node, NodeSpec, NodeStatus
from growth.api.placement import Taint
from growth.api.pods import Pod, PodSchedulingGate, PodSpec, ResourceRequirements
from growth.sim.predicates import Host, Scene, refusals, requests
from growth.sim.predicates.on_one_node import holds, whole_number
from growth.units.resources import amounts
from tests.unit.planning.builders import (
    HOST,
    ZONE,
    claim,
    container,
    csi_node,
    expression,
    far,
    near,
    on_nodes,
    pod,
    spread,
    storage_class,
    taint,
    term,
    tolerate,
    volume,
)

WEB = {"app": "web"}


def host(name: str = "one", *pods: Pod, cpu: str = "4", zone: str = "a", **more: object) -> Host:
    labels = {HOST: name, **({ZONE: zone} if zone else {})}
    room = amounts({"cpu": cpu, "memory": "16Gi", "pods": 10})
    return Host(name=name, labels=labels, allocatable=room, pods=list(pods), **more)  # type: ignore[arg-type]


def rules(asked: Pod, *hosts: Host, **objects: object) -> set[str]:
    """The names of the rules that keep the pod from the first host."""
    scene = Scene(hosts=list(hosts), **objects)  # type: ignore[arg-type]
    return {refusal.partition(":")[0] for refusal in refusals(asked, hosts[0], scene)}


def test_a_plain_pod_runs_anywhere() -> None:
    """Nothing speaks against a pod that fits."""
    assert rules(pod(), host()) == set()


def test_a_gated_pod_runs_nowhere() -> None:
    """Scheduling gates keep a pod from every node."""
    gated = pod(spec=msgspec.structs.replace(pod().spec, scheduling_gates=(PodSchedulingGate(name="wait"),)))
    assert rules(gated, host()) == {"gates"}


def test_a_pod_for_another_node_is_refused() -> None:
    """A pod that names its node runs there only."""
    named = pod(spec=msgspec.structs.replace(pod().spec, node_name="two"))
    assert rules(named, host("one")) == {"name"}


def test_a_cordoned_node_takes_those_who_tolerate_it() -> None:
    """A cordon is a taint to those who tolerate everything."""
    assert rules(pod(), host(unschedulable=True)) == {"taints"}
    assert rules(pod(tolerations=[tolerate()]), host(unschedulable=True)) == set()


@pytest.mark.parametrize(("effect", "wrong"), [("NoSchedule", True), ("NoExecute", True), ("PreferNoSchedule", False)])
def test_taints_forbid_by_effect(effect: str, *, wrong: bool) -> None:
    """NoSchedule and NoExecute forbid, PreferNoSchedule does not."""
    assert bool(rules(pod(), host(taints=(Taint(key="k", effect=effect),)))) is wrong


def test_room_counts_what_runs() -> None:
    """Requests of bound pods are taken."""
    assert rules(pod(cpu="2"), host("one", pod("there", cpu="3"))) == {"room"}


def test_a_request_of_nothing_fits_an_overfull_node() -> None:
    """What is not asked for is not lacking."""
    assert rules(pod(cpu="", memory=""), host("one", pod("there", cpu="9"))) == set()


def test_pods_are_counted() -> None:
    """A node has room for so many pods."""
    crowd = [pod(f"p{at}", cpu="1m", memory="1Mi") for at in range(10)]
    assert rules(pod(cpu="1m", memory="1Mi"), host("one", *crowd)) == {"room"}


def test_uncounted_pods_take_room_and_ports_and_nothing_else() -> None:
    """DaemonSet pods are seen by no rule about other pods."""
    agent = pod("agent", cpu="3", labels=WEB, ports=[80])
    busy = host()
    busy.uncounted.append(agent)
    assert rules(pod(cpu="2"), busy) == {"room"}
    assert rules(pod(cpu="1", ports=[80]), busy) == {"ports"}
    assert rules(pod(cpu="1", affinity=far(term(app="web"))), busy) == set()


@pytest.mark.parametrize(
    ("text", "number"),
    [("5", 5), ("-5", -5), ("+5", 5), ("1_0", None), (" 5", None), ("", None), ("-", None), ("9" * 19, None)],
)
def test_numbers_are_read_as_go_reads_them(text: str, number: int | None) -> None:
    """A sign and digits within 64 bits."""
    assert whole_number(text) == number


@pytest.mark.parametrize(
    ("operator", "values", "value", "holding"),
    [
        ("In", ("a",), "a", True),
        ("In", ("a",), None, False),
        ("NotIn", ("a",), None, True),
        ("NotIn", ("a",), "a", False),
        ("Exists", (), "", True),
        ("DoesNotExist", (), None, True),
        ("Gt", ("3",), "4", True),
        ("Gt", ("3",), "3", False),
        ("Lt", ("3",), "2", True),
        ("Lt", ("3",), "x", False),
        ("Gt", ("x",), "4", False),
        ("Gte", ("3",), "4", False),
    ],
)
def test_expressions_hold_as_node_selectors_do(
    operator: str, values: tuple[str, ...], value: str | None, *, holding: bool
) -> None:
    """Each operator of node affinity, and none that pods do not have."""
    labels = {} if value is None else {"k": value}
    assert holds(expression("k", operator, *values), labels) is holding


def test_a_term_that_says_nothing_matches_nothing() -> None:
    """An empty term of required affinity excludes every node."""
    assert rules(pod(affinity=on_nodes([])), host()) == {"labels"}


def test_spread_counts_only_domains_that_are_there() -> None:
    """With one zone in sight there is no skew; with a second, empty one there is."""
    asked = pod(labels=WEB, spread=[spread(app="web")])
    full = host("one", pod("x", labels=WEB))
    assert rules(asked, full) == set()
    assert rules(asked, full, host("two", zone="b")) == {"spread"}


def test_spread_needs_the_label() -> None:
    """A node without the label cannot be used."""
    assert rules(pod(labels=WEB, spread=[spread(app="web")]), host(zone="")) == {"spread"}


def test_min_domains_make_the_emptiest_zero() -> None:
    """Fewer domains than asked for count as an empty one."""
    asked = pod(labels=WEB, spread=[spread(app="web", at_least=3)])
    both = [host("one", pod("x", labels=WEB)), host("two", pod("y", labels=WEB), zone="b")]
    assert rules(asked, *both) == {"spread"}


def test_affinity_begins_where_nobody_is() -> None:
    """The first pod that wants its own kind is free, the next is not."""
    asked = pod(labels=WEB, affinity=near(term(app="web")))
    assert rules(asked, host()) == set()
    assert rules(asked, host(), host("two", pod("x", labels=WEB), zone="b")) == {"affinity"}


def test_anti_affinity_works_both_ways() -> None:
    """Who is there may keep others out, and who comes may keep away."""
    assert rules(pod(affinity=far(term(app="web"))), host("one", pod("x", labels=WEB))) == {"anti-affinity"}
    assert rules(pod(labels=WEB), host("one", pod("x", affinity=far(term(app="web"))))) == {"anti-affinity of x"}


def test_namespaces_are_kept_apart() -> None:
    """Without namespaces a term is about its owner's."""
    there = host("one", pod("x", labels=WEB, namespace="shop"))
    assert rules(pod(affinity=far(term(app="web"))), there) == set()
    everywhere = msgspec.structs.replace(term(app="web"), namespace_selector=LabelSelector())
    assert rules(pod(affinity=far(everywhere)), there) == {"anti-affinity"}


def test_volumes_are_reached_from_their_zones() -> None:
    """A bound volume is reached where its affinity and its labels say."""
    claims = {("default", "d"): claim("d", volume="v")}
    assert rules(pod(claims=["d"]), host(), claims=claims, volumes={"v": volume("v", "b")}) == {"volumes"}
    assert rules(pod(claims=["d"]), host(), claims=claims, volumes={"v": volume("v", labels={ZONE: "b"})}) == {
        "volumes"
    }
    assert rules(pod(claims=["d"]), host(), claims=claims, volumes={"v": volume("v", "a")}) == set()


def test_claims_that_wait_need_a_class_that_waits() -> None:
    """An unbound claim is fine only if its class makes volumes for the pod's node."""
    for kind, wrong in (
        (storage_class("c"), set()),
        (storage_class("c", "b"), {"volumes"}),
        (storage_class("c", waits=False), {"volumes"}),
        (storage_class("c", provisioner="kubernetes.io/no-provisioner"), {"volumes"}),
    ):
        assert (
            rules(pod(claims=["d"]), host(), claims={("default", "d"): claim("d", storage="c")}, classes={"c": kind})
            == wrong
        )


def test_a_node_attaches_so_many() -> None:
    """A driver's limit counts what pods on the node use and what is attached besides."""
    claims = {("default", "d"): claim("d", volume="v")}
    full = host(volume_limits={"csi.example.com": 1}, attached={"csi.example.com": frozenset({"x"})})
    assert rules(pod(claims=["d"]), full, claims=claims, volumes={"v": volume("v")}) == {"volumes"}


def test_requests_are_worked_out_as_the_server_does() -> None:
    """Pod-level requests stand for the sum; a pod-level limit only where containers ask for nothing."""
    spec = PodSpec(containers=(container("1"),), resources=ResourceRequirements(limits={"cpu": "4", "memory": "1Gi"}))
    assert requests(spec) == {"pods": 1, "cpu": 1000, "memory": 1 << 30}


def test_a_host_is_made_from_a_node() -> None:
    """What the API server says of a node and its drivers becomes a host."""
    node = Node(
        metadata=ObjectMeta(name="n", labels={"k": "v"}),
        spec=NodeSpec(unschedulable=True, taints=(taint(),)),
        status=NodeStatus(allocatable={"cpu": "2"}),
    )
    made = Host.of(node, csi_node("n", 3))
    assert (made.labels, made.allocatable, made.unschedulable) == ({"k": "v"}, {"cpu": 2000}, True)
    assert made.volume_limits == {"csi.example.com": 3}
