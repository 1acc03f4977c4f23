"""Our definitions on a real API server, as people meet them with kubectl. What it accepts and refuses is conformance."""

import json

import pytest

from growth.api.crds import DEFINITIONS, all_crds
from growth.api.karpenter import NODE_POOL
from tests.bad_objects import BAD_CHANGES, BAD_OBJECTS
from tests.cluster.servers import Server
from tests.good_objects import GOOD_OBJECTS, NODE_POOLS
from tools.controlplane.plane import Plane


@pytest.fixture(scope="module")
def server(apiserver: Plane) -> Server:
    """Definitions applied with kubectl, as a person would, and established."""
    server = Server(apiserver)
    server.install(all_crds())
    for definition in DEFINITIONS:
        server.kubectl_until("explain", str(definition.kind))
    return server


def test_every_definition_is_established(server: Server) -> None:
    """All of them, with no conflict of names and nothing that the server finds unstructural."""
    listed = server.items("crd")
    assert {crd["metadata"]["name"] for crd in listed} == {str(definition.kind) for definition in DEFINITIONS}
    for crd in listed:
        conditions = {each["type"]: each["status"] for each in crd["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_enough_is_tried() -> None:
    """At least twelve documented NodePools, and at least sixty bad objects with names of their own."""
    assert len(NODE_POOLS) >= 12
    names = [bad.name for bad in BAD_OBJECTS] + [bad.name for bad in BAD_CHANGES]
    assert len(set(names)) == len(names)
    assert len(BAD_OBJECTS) >= 60


def test_nodepools_are_karpenters_and_gpool_is_ours(server: Server) -> None:
    """The word that people have in their fingers still means what it meant."""
    for good in GOOD_OBJECTS:
        if good.name in ("KWOK guide", "growth pool of three types"):
            server.kubectl("apply", "-f", "-", stdin=json.dumps(good.object))
    try:
        assert server.kubectl("get", "nodepools", "-o", "name").split() == ["nodepool.karpenter.sh/example"]
        assert server.kubectl("get", "nodepool", "-o", "name").split() == ["nodepool.karpenter.sh/example"]
        assert server.kubectl("get", "gpool", "-o", "name").split() == ["nodepool.growth.dev/example"]
        header, row = server.kubectl("get", "nodepools").splitlines()
        assert header.split() == ["NAME", "NODECLASS", "NODES", "READY", "AGE"]
        assert row.split()[:2] == ["example", "default"]
        header, row = server.kubectl("get", "gpool").splitlines()
        assert header.split() == ["NAME", "NODES", "LIMIT", "AFTER", "OPTIMISE", "READY", "AGE"]
        assert row.split()[:3] == ["example", "10m", "WhenEmpty"]
        everything = server.kubectl("get", "karpenter,growth", "-o", "name").split()
        assert {"nodepool.karpenter.sh/example", "nodepool.growth.dev/example"} <= set(everything)
    finally:
        server.kubectl("delete", "nodepools,gpool", "--all")


def test_a_static_pool_can_be_scaled(server: Server) -> None:
    """`kubectl scale` sets `spec.replicas` through the scale subresource."""
    server.kubectl("apply", "-f", "-", stdin=json.dumps(NODE_POOLS["static capacity"]))
    try:
        server.kubectl("scale", "nodepool/example", "--replicas=3")
        stored = server.run(lambda api: api.get(NODE_POOL, "example"))
        assert stored.spec.replicas == 3
    finally:
        server.kubectl("delete", "nodepool", "example")


def test_status_is_a_part_of_its_own(server: Server) -> None:
    """Every kind but the Decision, which has no status, takes status through its subresource and only there."""
    listed = server.items("crd")
    without = [
        crd["metadata"]["name"] for crd in listed if "status" not in crd["spec"]["versions"][0].get("subresources", {})
    ]
    assert without == ["decisions.growth.dev"]


def test_kubectl_explains_our_fields(server: Server) -> None:
    """A person finds a sentence beside each field."""
    text = server.kubectl("explain", "gpool.spec.serverTypes")
    for word in ("max", "-required-", "At most this many machines of the type."):
        assert word in text
