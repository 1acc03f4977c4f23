"""Fields that our structs lack survive read, change and patch on a real server, for each kind that Growth writes.

Core kinds have such fields already (a taint's `timeAdded`, a condition's `lastHeartbeatTime`, an owner's
`blockOwnerDeletion`). For custom resources every object of every definition, inside lists too, gets one property more,
as a newer release might have it.
"""

import asyncio
import copy
import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from growth.api import edits
from growth.api.buffers import CAPACITY_BUFFER
from growth.api.coordination import LEASE
from growth.api.core import CONFIG_MAP
from growth.api.crds import all_crds
from growth.api.decoding import convert
from growth.api.events import EVENT
from growth.api.growthpools import GROWTH_POOL, NODE_REMOVAL_REQUEST, NODE_REQUEST
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Json, Kind
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.api.nodeclasses import HETZNER_NODE_CLASS, KWOK_NODE_CLASS
from growth.api.nodes import NODE
from growth.api.overlays import NODE_OVERLAY
from growth.api.pods import POD
from growth.kube.changes import change
from growth.kube.errors import NotFound, TooManyRequests
from growth.kube.http import HttpApi
from tests.cluster.servers import PATIENCE_SECONDS, Server
from tests.good_objects import GOOD_OBJECTS
from tools.controlplane.plane import Plane

NOW = dt.datetime(2026, 11, 15, 17, tzinfo=dt.UTC)
LATER = "addedLater"
CRD: Kind[Json] = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False, type=dict
)
OWNER: Json = {"apiVersion": "v1", "kind": "Node", "name": "owner", "uid": "1", "blockOwnerDeletion": True}
CONDITION: Json = {
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def widened(schema: Json) -> Json:
    """The schema with one property more in every object that lists its properties."""
    out = {**schema}
    if "properties" in schema:
        out["properties"] = {name: widened(inner) for name, inner in schema["properties"].items()}
        out["properties"][LATER] = {"type": "string"}
    if "items" in schema:
        out["items"] = widened(schema["items"])
    return out


def planted(value: Any, schema: Json) -> Any:
    """The value with that property set wherever the widened schema has it."""
    if isinstance(value, list):
        return [planted(each, schema["items"]) for each in value]
    if isinstance(value, dict) and "properties" in schema:
        kept = {name: planted(inner, schema["properties"][name]) for name, inner in value.items()}
        return {**kept, LATER: "kept"}
    return value


def places(value: Any, path: str = "") -> Iterator[str]:
    """Where the planted property stands."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == LATER:
                yield path
            yield from places(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, f"{path}[{index}]")


class WidenedServer(Server):
    """A server whose definitions know one property more than our structs; `schemas` are theirs."""

    def __init__(self, plane: Plane) -> None:
        super().__init__(plane)
        self.schemas: dict[str, Json] = {}

    async def define(self, api: HttpApi) -> None:
        for crd in all_crds():
            version = crd["spec"]["versions"][0]
            schema = version["schema"]["openAPIV3Schema"]
            schema["properties"] = {
                name: inner if name in ("apiVersion", "kind", "metadata") else widened(inner)
                for name, inner in schema["properties"].items()
            }
            self.schemas[crd["metadata"]["name"]] = schema
            await api.create(CRD, crd)
        for crd in all_crds():
            spec = crd["spec"]
            kind = Kind(spec["group"], spec["versions"][0]["name"], "", spec["names"]["plural"], False, dict)
            await served(api, kind)


async def served(api: HttpApi, kind: Kind[Json]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await api.list(kind, limit=1)
            except (NotFound, TooManyRequests):  # not yet, or in this moment
                await asyncio.sleep(0.05)
            else:
                return


@pytest.fixture(scope="module")
def server(apiserver: Plane) -> WidenedServer:
    server = WidenedServer(apiserver)
    server.run(server.define)
    return server


def lasting(document: Json) -> Json:
    """The document without what every write changes."""
    volatile = ("resourceVersion", "managedFields", "generation")
    return {**document, "metadata": {key: v for key, v in document["metadata"].items() if key not in volatile}}


async def check(
    api: HttpApi,
    kind: Kind[Any],
    name: str,
    edit: Callable[[Json], None],
    *,
    namespace: str = "",
    subresource: str = "",
) -> Json:
    """The law: after a change the object is the raw object with the edit, in every field. Gives it."""
    before = await api.get(kind.raw, name, namespace=namespace)
    wanted = copy.deepcopy(before)
    edit(wanted)
    assert lasting(wanted) != lasting(before)
    await change(api, kind, name, edit, namespace=namespace, subresource=subresource)
    after = await api.get(kind.raw, name, namespace=namespace)
    assert lasting(after) == lasting(wanted)
    return after


def marked(draft: Json) -> None:
    """What Growth may do to any object's metadata, lists included."""
    edits.set_labels(draft, {"growth.dev/test": "a"})
    edits.set_annotations(draft, {"growth.dev/test": "b"})
    edits.add_finalizer(draft, "growth.dev/test")
    edits.add_owner(draft, {**OWNER, "uid": "2", "blockOwnerDeletion": False})


def unready(draft: Json) -> None:
    edits.set_condition(draft, "Ready", status="False", reason="Testing", message="a test", now=NOW)
    edits.set_condition(draft, "Another", status="Unknown", now=NOW)


def story(draft: Json) -> None:
    draft["status"]["phase"] = "Pending"
    draft["status"]["events"].append({"at": "2026-01-01T00:00:01Z", "name": "second"})


def counted(draft: Json) -> None:
    unready(draft)
    draft["status"]["serverTypes"].append({"name": "cax21", "ready": 1})


CONDITIONED: Json = {"conditions": [CONDITION]}
STORY: Json = {"events": [{"at": "2026-01-01T00:00:00Z", "name": "first"}]}

# The richest good object of each custom kind that Growth writes, a status for it, and what Growth does to that status.
CUSTOM: list[tuple[Kind[Any], str, Json, Callable[[Json], None]]] = [
    (NODE_POOL, "every field of the reference", CONDITIONED, unready),
    (NODE_CLAIM, "claim", {**CONDITIONED, "capacity": {"cpu": "1"}}, unready),
    (NODE_OVERLAY, "overlay with price and devices", CONDITIONED, unready),
    (CAPACITY_BUFFER, "buffer beside a workload", {**CONDITIONED, "podTemplateRef": {"name": "a"}}, unready),
    (
        GROWTH_POOL,
        "growth pool with every field",
        {**CONDITIONED, "serverTypes": [{"name": "cax11", "ready": 1}]},
        counted,
    ),
    (NODE_REQUEST, "node request", STORY, story),
    (NODE_REMOVAL_REQUEST, "node removal request", STORY, story),
    (HETZNER_NODE_CLASS, "Hetzner class", CONDITIONED, unready),
    (LINODE_NODE_CLASS, "Linode class", {**CONDITIONED, "linodeImages": [{"id": "a"}]}, unready),
    (KWOK_NODE_CLASS, "KWOK class", CONDITIONED, unready),
]


@pytest.mark.parametrize(("kind", "name", "status", "edit"), CUSTOM, ids=[str(row[0]) for row in CUSTOM])
def test_custom_resources_keep_what_a_newer_definition_added(
    server: WidenedServer, kind: Kind[Any], name: str, status: Json, edit: Callable[[Json], None]
) -> None:
    """Metadata and status are changed, lists replaced; every property that we do not know stays, in list entries too."""
    schema = server.schemas[str(kind)]
    (good,) = (good.object for good in GOOD_OBJECTS if good.kind == kind and good.name == name)
    body = {**good, "metadata": {**good["metadata"], "ownerReferences": [OWNER]}}
    body["spec"] = planted(good["spec"], schema["properties"]["spec"])
    with_status = {"status": planted(status, schema["properties"]["status"])}
    namespace = good["metadata"].get("namespace", "")

    async def law(api: HttpApi) -> None:
        await api.create(kind.raw, body, namespace=namespace)
        await api.patch(kind.raw, "example", with_status, namespace=namespace, subresource="status")
        before = await api.get(kind.raw, "example", namespace=namespace)
        expected = {*places({"spec": body["spec"]}), *places(with_status)}
        assert expected <= set(places(before))
        assert any("[" in place for place in expected)
        assert set(places(msgspec.to_builtins(convert(before, kind.type)))) == set()

        await check(api, kind, "example", marked, namespace=namespace)
        after = await check(api, kind, "example", edit, namespace=namespace, subresource="status")
        assert expected <= set(places(after))
        assert after["metadata"]["ownerReferences"][0] == OWNER

    server.run(law)


def test_a_list_of_a_spec_keeps_what_a_newer_definition_added(server: WidenedServer) -> None:
    """A taint more in a pool's template: the other taints and requirements keep their unknown properties."""
    schema = server.schemas[str(NODE_POOL)]["properties"]["spec"]
    (good,) = (good.object for good in GOOD_OBJECTS if good.name == "soft taints")
    body = {**good, "metadata": {"name": "listed"}, "spec": planted(good["spec"], schema)}

    def edit(draft: Json) -> None:
        draft["spec"]["template"]["spec"]["taints"].append({"key": "new", "effect": "NoSchedule"})

    async def law(api: HttpApi) -> None:
        await api.create(NODE_POOL.raw, body)
        after = await check(api, NODE_POOL, "listed", edit)
        taints = after["spec"]["template"]["spec"]["taints"]
        assert [taint.get(LATER) for taint in taints] == ["kept", "kept", None]
        assert taints[1]["timeAdded"] == "2026-01-01T00:00:00Z"

    server.run(law)


def test_nodes_keep_times_and_owners(server: WidenedServer) -> None:
    """A taint's `timeAdded`, a condition's `lastHeartbeatTime`, an owner's `blockOwnerDeletion`, and fields beside them."""
    body: Json = {
        "metadata": {"name": "n", "ownerReferences": [OWNER]},
        "spec": {
            "podCIDR": "10.0.0.0/24",
            "podCIDRs": ["10.0.0.0/24"],
            "taints": [{"key": "a", "effect": "NoExecute", "value": "b", "timeAdded": "2026-01-01T00:00:00Z"}],
        },
        "status": {
            "conditions": [{**CONDITION, "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
            "images": [{"names": ["img"], "sizeBytes": 1}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        },
    }

    def edit(draft: Json) -> None:
        marked(draft)
        edits.add_taint(draft, key="karpenter.sh/disrupted", effect="NoSchedule")

    def status(draft: Json) -> None:
        edits.set_condition(draft, "Ready", status="False", reason="Testing", message="a test", now=NOW, observed=False)

    async def law(api: HttpApi) -> None:
        created = await api.create(NODE.raw, body)
        known = msgspec.to_builtins(convert(created, NODE.type))
        assert "timeAdded" not in known["spec"]["taints"][0]
        assert "lastHeartbeatTime" not in known["status"]["conditions"][0]
        await check(api, NODE, "n", edit)
        after = await check(api, NODE, "n", status, subresource="status")
        assert after["spec"]["taints"][0] == body["spec"]["taints"][0]
        assert after["status"]["conditions"][0]["lastHeartbeatTime"] == "2026-01-01T00:00:00Z"
        assert after["metadata"]["ownerReferences"][0] == OWNER

    server.run(law)


def test_pods_keep_what_no_autoscaler_reads(server: WidenedServer) -> None:
    """Environment, probes and a condition's `lastProbeTime` are not ours, and stay."""
    container = {"name": "a", "image": "img", "env": [{"name": "A", "value": "B"}], "command": ["run"]}
    body: Json = {"metadata": {"name": "p", "ownerReferences": [OWNER]}, "spec": {"containers": [container]}}
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": "2026-01-01T00:00:00Z"}

    def status(draft: Json) -> None:
        edits.set_condition(
            draft, "PodScheduled", status="False", reason="Unschedulable", message="a test", now=NOW, observed=False
        )

    async def law(api: HttpApi) -> None:
        await api.create(POD.raw, body, namespace="default")
        await api.patch(
            POD.raw, "p", {"status": {"conditions": [condition]}}, namespace="default", subresource="status"
        )
        await check(api, POD, "p", marked, namespace="default")
        after = await check(api, POD, "p", status, namespace="default", subresource="status")
        assert after["spec"]["containers"][0]["env"] == container["env"]
        assert after["status"]["conditions"][0]["lastProbeTime"] == condition["lastProbeTime"]

    server.run(law)


def _renew(draft: Json) -> None:
    draft["spec"]["renewTime"] = "2026-11-15T17:00:00.000000Z"


def _count(draft: Json) -> None:
    draft["count"] = 2


def _fill(draft: Json) -> None:
    draft["data"]["state"] = "running"


REFERENCE: Json = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "default"}


@pytest.mark.parametrize(
    ("kind", "body", "edit"),
    [
        (LEASE, {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}, _renew),
        (CONFIG_MAP, {"data": {"a": "b"}, "binaryData": {"c": "ZA=="}}, _fill),
        (
            EVENT,
            {
                "involvedObject": {**REFERENCE, "fieldPath": "spec.containers{a}"},
                "related": REFERENCE,
                "reason": "Nominated",
                "type": "Normal",
                "count": 1,
                "series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"},
            },
            _count,
        ),
    ],
    ids=["leases", "configmaps", "events"],
)
def test_small_kinds_keep_all_the_rest(
    server: WidenedServer, kind: Kind[Any], body: Json, edit: Callable[[Json], None]
) -> None:
    """Leases, ConfigMaps and Events: what the edit does not name is left as it was."""
    document = {**body, "metadata": {"name": "small", "namespace": "default", "ownerReferences": [OWNER]}}

    async def law(api: HttpApi) -> None:
        await api.create(kind.raw, document, namespace="default")
        await check(api, kind, "small", marked, namespace="default")
        await check(api, kind, "small", edit, namespace="default")

    server.run(law)


def test_two_writers_of_one_list_both_succeed(server: WidenedServer) -> None:
    """Twenty taints put on one Node at once: each writer's conflict is resolved by reading afresh, and none is lost."""

    async def law(api: HttpApi) -> None:
        await api.create(NODE.raw, {"metadata": {"name": "busy"}})

        async def put(number: int) -> None:
            def edit(draft: Json) -> None:
                edits.add_taint(draft, key=f"t{number}", effect="NoSchedule")

            await change(api, NODE, "busy", edit, attempts=50)

        await asyncio.gather(*(put(number) for number in range(20)))
        node = await api.get(NODE, "busy")
        assert {taint.key for taint in node.spec.taints} >= {f"t{number}" for number in range(20)}

    server.run(law)
