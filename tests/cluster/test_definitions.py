"""Our definitions on a real API server: what it serves, accepts, fills in and refuses."""

import json
from typing import Any

import pytest

from growth.api.crds import DEFINITIONS, all_crds
from growth.api.decoding import convert
from growth.api.karpenter import NODE_POOL
from growth.api.kinds import Json, Kind
from growth.kube.errors import Invalid
from growth.kube.http import HttpApi
from tests.bad_objects import BAD_CHANGES, BAD_OBJECTS, BadChange, BadObject
from tests.cluster.servers import Server
from tests.good_objects import GOOD_OBJECTS, NODE_POOLS, GoodObject
from tools.controlplane.plane import Plane


@pytest.fixture(scope="module")
def server(apiserver: Plane) -> Server:
    """Definitions applied with kubectl, as a person would, and established."""
    server = Server(apiserver)
    server.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": all_crds()}))
    server.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
    return server


def namespace_of(document: Json) -> str:
    return str(document["metadata"].get("namespace", ""))


async def created(api: HttpApi, kind: Kind[Any], document: Json) -> Json:
    """The object as stored; it is deleted again, so that every test finds the name free."""
    namespace = namespace_of(document)
    stored = await api.create(kind.raw, document, namespace=namespace)
    await api.delete(kind.raw, stored["metadata"]["name"], namespace=namespace)
    return stored


def contains(stored: Any, sent: Any) -> bool:
    """Whether everything that was sent is stored; the server may have added to it."""
    if isinstance(sent, dict):
        return isinstance(stored, dict) and all(key in stored and contains(stored[key], sent[key]) for key in sent)
    if isinstance(sent, list):
        return len(stored) == len(sent) and all(map(contains, stored, sent))
    return bool(stored == sent)


def test_every_definition_is_established(server: Server) -> None:
    """All of them, with no conflict of names and nothing that the server finds unstructural."""
    listed = json.loads(server.kubectl("get", "crd", "-o", "json"))["items"]
    assert {crd["metadata"]["name"] for crd in listed} == {str(definition.kind) for definition in DEFINITIONS}
    for crd in listed:
        conditions = {each["type"]: each["status"] for each in crd["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("good", GOOD_OBJECTS, ids=lambda good: good.name)
def test_good_objects_are_accepted(server: Server, good: GoodObject) -> None:
    """Accepted, stored without loss, and read into the struct."""
    stored = server.run(lambda api: created(api, good.kind, good.object))
    assert contains(stored, good.object)
    assert convert(stored, good.kind.type).spec == convert(good.object, good.kind.type).spec


@pytest.mark.parametrize("bad", BAD_OBJECTS, ids=lambda bad: bad.name)
def test_bad_objects_are_refused(server: Server, bad: BadObject) -> None:
    """Refused, and the message names the field that is at fault."""
    with pytest.raises(Invalid) as refusal:
        server.run(lambda api: created(api, bad.kind, bad.object))
    assert f"{bad.field}: " in refusal.value.message
    assert bad.field in [cause["field"] for cause in refusal.value.details["causes"]]


@pytest.mark.parametrize("bad", BAD_CHANGES, ids=lambda bad: bad.name)
def test_bad_changes_are_refused(server: Server, bad: BadChange) -> None:
    """What is fixed once cannot be changed, and the message names it."""

    async def changed(api: HttpApi) -> None:
        stored = await api.create(bad.kind.raw, bad.before)
        name = stored["metadata"]["name"]
        try:
            revision = {"resourceVersion": stored["metadata"]["resourceVersion"]}
            await api.update(bad.kind.raw, name, {**bad.after, "metadata": {**bad.after["metadata"], **revision}})
        finally:
            await api.delete(bad.kind.raw, name)

    with pytest.raises(Invalid) as refusal:
        server.run(changed)
    assert bad.field in [cause["field"] for cause in refusal.value.details["causes"]]


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
        assert header.split() == ["NAME", "NODES", "LIMIT", "OPTIMISE", "READY", "AGE"]
        assert row.split()[:2] == ["example", "WhenEmpty"]
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
    listed = json.loads(server.kubectl("get", "crd", "-o", "json"))["items"]
    without = [
        crd["metadata"]["name"] for crd in listed if "status" not in crd["spec"]["versions"][0].get("subresources", {})
    ]
    assert without == ["decisions.growth.dev"]


def test_kubectl_explains_our_fields(server: Server) -> None:
    """A person finds a sentence beside each field."""
    text = server.kubectl("explain", "gpool.spec.serverTypes")
    for word in ("max", "-required-", "At most this many machines of the type."):
        assert word in text
