"""The steady cluster of the benchmarks is one that could exist."""

import collections
from collections.abc import Iterator

import pytest

from bench import settled
from growth.api.kinds import Json

NODES = 90


@pytest.fixture(scope="module")
def objects() -> list[Json]:
    return settled.steady(NODES, pods_per_node=15, shapes=60, pending=50)


def of_kind(objects: list[Json], kind: str) -> Iterator[Json]:
    return (raw for raw in objects if raw["kind"] == kind)


def bound(objects: list[Json]) -> list[Json]:
    return [pod for pod in of_kind(objects, "Pod") if "nodeName" in pod["spec"]]


def cpu_of(pod: Json) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m"))


def memory_of(pod: Json) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["memory"].removesuffix("Mi"))


def test_it_has_what_was_asked_for(objects: list[Json]) -> None:
    """So many nodes with a claim each, so many bound and pending pods."""
    assert len(list(of_kind(objects, "Node"))) == NODES
    assert {claim["status"]["nodeName"] for claim in of_kind(objects, "NodeClaim")} == {
        node["metadata"]["name"] for node in of_kind(objects, "Node")
    }
    assert len(bound(objects)) == NODES * 15
    assert len(list(of_kind(objects, "Pod"))) == NODES * 15 + 50


def test_no_node_holds_more_than_it_has(objects: list[Json]) -> None:
    """Requests of bound pods stay within allocatable cpu and memory."""
    cpu: collections.Counter[str] = collections.Counter()
    memory: collections.Counter[str] = collections.Counter()
    for pod in bound(objects):
        cpu[pod["spec"]["nodeName"]] += cpu_of(pod)
        memory[pod["spec"]["nodeName"]] += memory_of(pod)
    assert max(cpu.values()) <= 7900
    assert max(memory.values()) <= 32 * 1024 - 10


def test_its_rules_hold(objects: list[Json]) -> None:
    """A third of the shapes has a rule; no zone and no node breaks one."""
    zone_of = {
        n["metadata"]["name"]: n["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in of_kind(objects, "Node")
    }
    ruled = set()
    zones: dict[str, collections.Counter[str]] = collections.defaultdict(
        lambda: collections.Counter(dict.fromkeys(settled.ZONES, 0))
    )
    nodes: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for pod in bound(objects):
        app, node = pod["metadata"]["labels"]["app"], pod["spec"]["nodeName"]
        zones[app][zone_of[node]] += 1
        nodes[app][node] += 1
        if pod["spec"].keys() & {"affinity", "topologySpreadConstraints"}:
            ruled.add(app)
    assert len(ruled) == len(zones) / 3 == 20
    assert all(max(counts.values()) - min(counts.values()) <= 1 for counts in zones.values())
    assert all(max(counts.values()) == 1 for counts in nodes.values())


def test_a_tenth_of_the_pending_fits_no_node(objects: list[Json]) -> None:
    """They ask for more than any node has left, and less than a whole machine."""
    used: collections.Counter[str] = collections.Counter()
    for pod in bound(objects):
        used[pod["spec"]["nodeName"]] += cpu_of(pod)
    large = [pod for pod in of_kind(objects, "Pod") if pod["metadata"]["name"].startswith("large-")]
    assert len(large) == 5
    assert all(7900 - min(used.values()) < cpu_of(pod) < 7900 for pod in large)


def test_too_full_a_cluster_is_refused() -> None:
    """More pods of a shape than nodes cannot be placed apart."""
    with pytest.raises(ValueError, match="no node takes another pod of app-000"):
        settled.steady(3, pods_per_node=4, shapes=2)
