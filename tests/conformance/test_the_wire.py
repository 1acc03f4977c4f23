"""Laws of what only HTTP clients see: discovery documents and Tables. `kubectl` lives on them."""

from growth.api.kinds import Json
from growth.kube.errors import NotFound
from tests.conformance.kinds import NODE, POD
from tests.conformance.world import World, eventually, found, invented, name_of, refused

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
STRING: Json = {"type": "string"}
LISTED = invented(
    {"type": "object", "properties": {"size": {"type": "integer"}, "note": STRING}},
    columns=[
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Note", "type": "string", "jsonPath": ".spec.note", "priority": 1, "description": "a remark"},
        {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
    names={"shortNames": ["lst"], "categories": ["growth-laws"]},
    subresources={"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
)
BARE = invented({"type": "object", "properties": {"size": {"type": "integer"}}})


def columns(table: Json) -> list[str]:
    assert (table["apiVersion"], table["kind"]) == ("meta.k8s.io/v1", "Table")
    return [column["name"] for column in table["columnDefinitions"]]


async def test_the_server_says_its_version(wire: World) -> None:
    """`/version` gives the release."""
    version = await wire.document("/version")
    assert version["major"] == "1"
    assert version["gitVersion"].startswith("v1.")


async def test_the_core_group_lists_its_resources(wire: World) -> None:
    """`/api/v1` names each resource with its kind, scope, verbs and short names, and its subresources."""
    document = await wire.document("/api/v1")
    assert document["kind"] == "APIResourceList"
    resources = {each["name"]: each for each in document["resources"]}
    assert resources["pods"]["kind"] == "Pod"
    assert resources["pods"]["namespaced"] is True
    assert "po" in resources["pods"]["shortNames"]
    assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(resources["pods"]["verbs"])
    assert resources["nodes"]["namespaced"] is False
    assert {"pods/eviction", "pods/binding", "pods/status", "nodes/status"} <= set(resources)


async def test_the_server_lists_its_groups(wire: World) -> None:
    """`/api` has the core version; `/apis` has every other group with its preferred version."""
    assert "v1" in (await wire.document("/api"))["versions"]
    groups = {group["name"]: group for group in (await wire.document("/apis"))["groups"]}
    assert groups["apps"]["preferredVersion"]["groupVersion"] == "apps/v1"
    assert {"policy", "coordination.k8s.io", "apiextensions.k8s.io"} <= set(groups)


async def test_an_invented_group_is_discovered(wire: World) -> None:
    """A served definition's group, version, short names, categories and subresources are discovered."""
    kind = await wire.kind(LISTED)

    async def groups() -> set[str]:
        return {group["name"] for group in (await wire.document("/apis"))["groups"]}

    async def resources() -> dict[str, Json]:
        document = await found(wire.document(f"/apis/{kind.api_version}"))
        return {each["name"]: each for each in document["resources"]} if document else {}

    # A kind is served before it is published.
    await eventually(groups, lambda names: kind.group in names)
    published = await eventually(resources, lambda names: kind.plural in names)
    told = published[kind.plural]
    assert (told["kind"], told["namespaced"]) == (kind.kind, True)
    assert (told["shortNames"], told["categories"]) == (["lst"], ["growth-laws"])
    assert {f"{kind.plural}/status", f"{kind.plural}/scale"} <= set(published)


async def test_a_group_that_is_not_there_is_not_found(wire: World) -> None:
    """Discovery of an unknown group is NotFound."""
    await refused(NotFound, wire.document("/apis/nobody.growth.test/v1"))


async def test_pods_are_shown_as_a_table(wire: World) -> None:
    """A list asked for as a Table has the columns that people know, and a row for each object."""
    made = await wire.pod()
    path = POD.path(namespace=wire.namespace)
    table = await wire.document(path, accept=TABLE)
    assert columns(table)[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    (row,) = table["rows"]
    assert row["cells"][:3] == [name_of(made), "0/1", "Pending"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert name_of(row["object"]) == name_of(made)


async def test_one_object_is_shown_as_a_table(wire: World) -> None:
    """A single object asked for as a Table is a Table of one row."""
    name = wire.name("node")
    await wire.api.create(NODE, {"metadata": {"name": name}})
    table = await wire.document(NODE.path(name), accept=TABLE)
    assert columns(table)[:5] == ["Name", "Status", "Roles", "Age", "Version"]
    (row,) = table["rows"]
    assert row["cells"][:3] == [name, "Unknown", "<none>"]


async def test_an_invented_kind_has_its_own_columns(wire: World) -> None:
    """A definition's printer columns follow the name; their priority and description come along."""
    kind = await wire.kind(LISTED)
    made = await wire.make(kind, {"size": 4, "note": "hm"})
    table = await wire.document(kind.path(namespace=wire.namespace), accept=TABLE)
    assert columns(table) == ["Name", "Size", "Note", "Since"]
    assert [column["priority"] for column in table["columnDefinitions"]] == [0, 0, 1, 0]
    assert table["columnDefinitions"][2]["description"] == "a remark"
    (row,) = table["rows"]
    assert row["cells"][:3] == [name_of(made), 4, "hm"]


async def test_a_missing_value_is_an_empty_cell(wire: World) -> None:
    """A printer column whose path finds nothing is null."""
    kind = await wire.kind(LISTED)
    await wire.make(kind, {})
    table = await wire.document(kind.path(namespace=wire.namespace), accept=TABLE)
    (row,) = table["rows"]
    assert row["cells"][1] is None


async def test_without_columns_there_is_the_age(wire: World) -> None:
    """A definition without printer columns is shown with name and age."""
    kind = await wire.kind(BARE)
    table = await wire.document(kind.path(namespace=wire.namespace), accept=TABLE)
    assert columns(table) == ["Name", "Age"]
    assert table["rows"] == []


async def test_a_table_can_carry_whole_objects(wire: World) -> None:
    """`includeObject=Object` puts the object itself beside its row."""
    kind = await wire.kind(LISTED)
    await wire.make(kind, {"size": 4})
    path = kind.path(namespace=wire.namespace)
    table = await wire.document(path, accept=TABLE, query={"includeObject": "Object"})
    assert table["rows"][0]["object"]["spec"] == {"size": 4}


async def test_a_scale_can_be_read(wire: World) -> None:
    """GET of the scale subresource shows replicas at the definition's paths."""
    kind = await wire.kind(LISTED)
    made = await wire.make(kind, {"size": 4})
    scale = await wire.document(kind.path(name_of(made), namespace=wire.namespace, subresource="scale"))
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 4})


async def test_a_status_can_be_read(wire: World) -> None:
    """GET of the status subresource gives the whole object."""
    kind = await wire.kind(LISTED)
    made = await wire.make(kind, {"size": 4})
    assert await wire.document(kind.path(name_of(made), namespace=wire.namespace, subresource="status")) == made


async def test_list_items_of_core_kinds_do_not_repeat_their_kind(wire: World) -> None:
    """A list says its kind once; items of built-in kinds carry none, custom resources do."""
    await wire.config_map()
    path = f"/api/v1/namespaces/{wire.namespace}/configmaps"
    listed = await wire.document(path)
    assert listed["kind"] == "ConfigMapList"
    assert "kind" not in listed["items"][0]
    kind = await wire.kind(LISTED)
    await wire.make(kind, {"size": 4})
    custom = await wire.document(kind.path(namespace=wire.namespace))
    assert custom["kind"] == f"{kind.kind}List"
    assert custom["items"][0]["kind"] == kind.kind


async def test_a_limited_list_says_how_much_is_left(wire: World) -> None:
    """A page of a list without selectors carries the number of objects after it."""
    for _ in range(3):
        await wire.config_map()
    path = f"/api/v1/namespaces/{wire.namespace}/configmaps"
    listed = await wire.document(path, query={"limit": "1"})
    assert listed["metadata"]["remainingItemCount"] == 2
