"""Host ports are taken once a node."""

import pytest

from growth.api.pods import Container, ContainerPort, PodSpec
from growth.api.requests import host_ports_of, ports_conflict
from tests.unit.planning.builders import container, node, plan, pod, pods, pool


def port(number: int = 80, *, ip: str = "", protocol: str = "TCP", inside: int = 80) -> ContainerPort:
    return ContainerPort(container_port=inside, host_port=number, host_ip=ip, protocol=protocol)


def spec(*ports: ContainerPort, network: bool = False) -> PodSpec:
    return PodSpec(containers=(Container(ports=ports),), host_network=network)


def test_pods_with_one_host_port_need_a_machine_each() -> None:
    """Two pods that bind the same port do not share a node."""
    assert plan(pool(), pods(3, ports=[8080], cpu="100m")).sizes == [1, 1, 1]


def test_pods_with_different_ports_share() -> None:
    """Other ports are no conflict."""
    made = plan(pool(), pod("x", ports=[80], cpu="100m"), pod("y", ports=[81], cpu="100m"))
    assert made.sizes == [2]


def test_a_port_in_use_on_a_node_keeps_others_away() -> None:
    """Ports of bound pods count."""
    made = plan(node("one", pod("there", ports=[8080])), node("two"), pool(), pod(ports=[8080]))
    assert made.where() == "two"


def test_each_node_takes_one_of_them() -> None:
    """Existing nodes are filled with one pod a port each before machines are bought."""
    made = plan(node("one"), node("two"), pool(), pods(3, ports=[8080]))
    assert (made.on("one"), made.on("two"), made.sizes) == (["pod-00"], ["pod-01"], [1])


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (port(), port(), True),
        (port(), port(81), False),
        (port(), port(protocol="UDP"), False),
        (port(ip="10.0.0.1"), port(ip="10.0.0.2"), False),
        (port(ip="10.0.0.1"), port(ip="10.0.0.1"), True),
        (port(ip="10.0.0.1"), port(), True),
        (port(ip="0.0.0.0"), port(ip="10.0.0.1"), True),
        (port(0), port(0), False),
    ],
)
def test_ports_conflict_by_number_protocol_and_address(
    one: ContainerPort, other: ContainerPort, *, conflict: bool
) -> None:
    """Same number and protocol conflict, unless each binds an address of its own."""
    assert ports_conflict(host_ports_of(spec(one)), host_ports_of(spec(other))) is conflict


def test_on_the_host_network_every_port_is_a_host_port() -> None:
    """A pod on the host network binds its container ports on the node."""
    assert host_ports_of(spec(port(0, inside=443), network=True)) == {("", 443, "TCP")}


def test_sidecars_hold_ports_and_other_init_containers_do_not() -> None:
    """Only containers that stay bind a port for the pod's life."""
    stays = pod(containers=[container()], init=[container(ports=[90], always=True), container(ports=[91])])
    assert {number for _, number, _ in host_ports_of(stays.spec)} == {90}
