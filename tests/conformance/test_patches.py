"""Laws of patches: merge, strategic merge, JSON patch, and their preconditions."""

from typing import Any

from growth.api.kinds import Json
from growth.kube.api import PatchType
from growth.kube.errors import BadRequest, Conflict, Invalid, NotFound, ServerError, UnsupportedMediaType
from tests.conformance.kinds import CONFIG_MAP, DEPLOYMENT, NODE, POD
from tests.conformance.world import FREE, World, name_of, refused, revision_of, uid_of


async def merged(world: World, item: Json, patch: Json, **options: Any) -> Json:
    return await world.api.patch(CONFIG_MAP, name_of(item), patch, namespace=world.namespace, **options)


async def strategic_pod(world: World, item: Json, patch: Json) -> Json:
    return await world.api.patch(POD, name_of(item), patch, namespace=world.namespace, patch_type=PatchType.STRATEGIC)


async def json_patched(world: World, item: Json, *operations: Json) -> Json:
    return await world.api.patch(
        CONFIG_MAP, name_of(item), operations, namespace=world.namespace, patch_type=PatchType.JSON
    )


def deployment(name: str, **template: object) -> Json:
    labels = {"app": name}
    spec = {"containers": [{"name": "main", "image": "img"}, {"name": "side", "image": "img"}], **template}
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


async def test_a_merge_patch_changes_what_it_names(world: World) -> None:
    """Keys in a merge patch are set, others stay."""
    made = await world.config_map(data={"a": "1", "b": "2"})
    assert (await merged(world, made, {"data": {"b": "3", "c": "4"}}))["data"] == {"a": "1", "b": "3", "c": "4"}


async def test_null_in_a_merge_patch_deletes(world: World) -> None:
    """A null removes the key; removing what is not there is no error."""
    made = await world.config_map(data={"a": "1", "b": "2"}, labels={"x": "y"})
    changed = await merged(world, made, {"data": {"b": None, "nothing": None}, "metadata": {"labels": None}})
    assert changed["data"] == {"a": "1"}
    assert "labels" not in changed["metadata"]


async def test_the_last_key_takes_its_map_along(world: World) -> None:
    """A map of a built-in kind from which a patch removes the last key is left out."""
    made = await world.config_map(data={"a": "1"})
    assert "data" not in await merged(world, made, {"data": {"a": None}})


async def test_a_merge_patch_replaces_lists(world: World) -> None:
    """A list in a merge patch replaces the whole list."""
    made = await world.config_map(finalizers=["growth.dev/a", "growth.dev/b"])
    changed = await merged(world, made, {"metadata": {"finalizers": ["growth.dev/c"]}})
    assert changed["metadata"]["finalizers"] == ["growth.dev/c"]


async def test_a_merge_patch_that_changes_nothing_keeps_the_revision(world: World) -> None:
    """A patch without effect makes no new revision."""
    made = await world.config_map()
    assert revision_of(await merged(world, made, {"data": {"a": "1"}})) == revision_of(made)


async def test_a_patch_with_the_current_revision_passes(world: World) -> None:
    """A patch whose precondition holds is applied."""
    made = await world.config_map()
    changed = await merged(world, made, {"data": {"a": "2"}}, revision=revision_of(made), uid=uid_of(made))
    assert changed["data"] == {"a": "2"}


async def test_a_patch_with_a_stale_revision_conflicts(world: World) -> None:
    """A patch whose revision is not the current one is a Conflict and changes nothing."""
    made = await world.config_map()
    newer = await merged(world, made, {"data": {"a": "2"}})
    await refused(Conflict, merged(world, made, {"data": {"a": "3"}}, revision=revision_of(made)), reason="Conflict")
    assert await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace) == newer


async def test_a_patch_for_another_uid_conflicts(world: World) -> None:
    """A patch whose uid is not the object's is a Conflict: the object is another one than was meant."""
    made = await world.config_map()
    await refused(Conflict, merged(world, made, {"data": {"a": "3"}}, uid="another"), reason="Conflict")


async def test_a_patch_for_another_uid_conflicts_whatever_else_is_wrong(world: World) -> None:
    """The wrong object comes before wrong content."""
    made = await world.config_map()
    patch = {"metadata": {"labels": {"x": "not ok"}}}
    await refused(Conflict, merged(world, made, patch, uid="another"), reason="Conflict")


async def test_a_patch_of_an_invented_kind_for_another_uid_conflicts(world: World) -> None:
    """Custom resources keep the same law."""
    kind = await world.kind(FREE)
    made = await world.make(kind, {"a": 1})
    call = world.api.patch(kind, name_of(made), {"spec": {"a": 2}}, namespace=world.namespace, uid="another")
    await refused(Conflict, call, reason="Conflict")


async def test_a_patch_needs_the_object(world: World) -> None:
    """A patch of a missing object is NotFound, also with preconditions."""
    missing: Json = {"metadata": {"name": "nobody"}}
    await refused(NotFound, merged(world, missing, {"data": {}}))
    await refused(NotFound, merged(world, missing, {"data": {}}, uid="u", revision="1"))


async def test_a_patch_cannot_rename(world: World) -> None:
    """A patch that changes `metadata.name` is refused."""
    made = await world.config_map()
    await refused(BadRequest, merged(world, made, {"metadata": {"name": "other"}}))


async def test_a_patch_is_checked_like_an_update(world: World) -> None:
    """A patch whose result breaks a rule is refused, naming the field."""
    made = await world.config_map()
    await refused(Invalid, merged(world, made, {"metadata": {"labels": {"x": "not ok"}}}), field="metadata.labels")


async def test_a_patch_must_be_a_map(world: World) -> None:
    """A merge patch that is a list is refused."""
    made = await world.config_map()
    call = world.api.patch(CONFIG_MAP, name_of(made), ({"data": {}},), namespace=world.namespace)
    await refused(BadRequest, call)


async def test_an_immutable_map_keeps_its_data(world: World) -> None:
    """A ConfigMap marked immutable refuses other data, and cannot become mutable again."""
    made = await merged(world, await world.config_map(), {"immutable": True})
    await refused(Invalid, merged(world, made, {"data": {"a": "2"}}), field="data")
    await refused(Invalid, merged(world, made, {"immutable": None}), field="immutable")


async def test_a_json_patch_runs_its_operations_in_order(world: World) -> None:
    """add, replace, remove, copy and move act one after the other."""
    made = await world.config_map(data={"a": "1", "b": "2"})
    changed = await json_patched(
        world,
        made,
        {"op": "add", "path": "/data/c", "value": "3"},
        {"op": "replace", "path": "/data/a", "value": "x"},
        {"op": "copy", "from": "/data/a", "path": "/data/d"},
        {"op": "move", "from": "/data/c", "path": "/data/e"},
        {"op": "remove", "path": "/data/b"},
    )
    assert changed["data"] == {"a": "x", "d": "x", "e": "3"}


async def test_a_json_patch_addresses_odd_keys(world: World) -> None:
    """`~1` is a slash and `~0` a tilde in a JSON pointer."""
    made = await world.config_map(annotations={"growth.dev/a": "1"})
    changed = await json_patched(
        world, made, {"op": "replace", "path": "/metadata/annotations/growth.dev~1a", "value": "2"}
    )
    assert changed["metadata"]["annotations"] == {"growth.dev/a": "2"}


async def test_a_json_patch_appends_to_lists(world: World) -> None:
    """The index `-` means the end of the list, a number the place before which to insert."""
    made = await world.config_map(finalizers=["growth.dev/b"])
    changed = await json_patched(
        world,
        made,
        {"op": "add", "path": "/metadata/finalizers/-", "value": "growth.dev/c"},
        {"op": "add", "path": "/metadata/finalizers/0", "value": "growth.dev/a"},
    )
    assert changed["metadata"]["finalizers"] == ["growth.dev/a", "growth.dev/b", "growth.dev/c"]


async def test_a_json_patch_whose_test_fails_changes_nothing(world: World) -> None:
    """A `test` operation that does not hold refuses the whole patch as Invalid."""
    made = await world.config_map()
    call = json_patched(
        world,
        made,
        {"op": "replace", "path": "/data/a", "value": "9"},
        {"op": "test", "path": "/metadata/uid", "value": "another"},
    )
    await refused(Invalid, call)
    assert await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace) == made


async def test_a_json_patch_whose_test_holds_passes(world: World) -> None:
    """A `test` operation that holds lets the others act."""
    made = await world.config_map()
    changed = await json_patched(
        world,
        made,
        {"op": "test", "path": "/metadata/resourceVersion", "value": revision_of(made)},
        {"op": "replace", "path": "/data/a", "value": "9"},
    )
    assert changed["data"] == {"a": "9"}


async def test_a_json_patch_cannot_remove_what_is_not_there(world: World) -> None:
    """Removing a missing path refuses the patch as Invalid."""
    made = await world.config_map()
    await refused(Invalid, json_patched(world, made, {"op": "remove", "path": "/data/nothing"}))


async def test_a_json_patch_replaces_a_missing_key_by_adding_it(world: World) -> None:
    """`replace` on a key that a map lacks sets it: API servers do not follow RFC 6902 here."""
    made = await world.config_map(data={"a": "1"})
    changed = await json_patched(world, made, {"op": "replace", "path": "/data/b", "value": "2"})
    assert changed["data"] == {"a": "1", "b": "2"}


async def test_a_strategic_patch_merges_containers_by_name(world: World) -> None:
    """A container in a strategic patch changes the container of that name and leaves the others."""
    made = await world.api.create(DEPLOYMENT, deployment(world.name("d")), namespace=world.namespace)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "new"}]}}}}
    changed = await world.api.patch(
        DEPLOYMENT, name_of(made), patch, namespace=world.namespace, patch_type=PatchType.STRATEGIC
    )
    containers = changed["spec"]["template"]["spec"]["containers"]
    assert sorted((container["name"], container["image"]) for container in containers) == [
        ("main", "img"),
        ("side", "new"),
    ]


async def test_a_strategic_patch_adds_items_with_a_new_key(world: World) -> None:
    """An item whose key is not in the list is added to it."""
    made = await world.api.create(DEPLOYMENT, deployment(world.name("d")), namespace=world.namespace)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "third", "image": "img"}]}}}}
    changed = await world.api.patch(
        DEPLOYMENT, name_of(made), patch, namespace=world.namespace, patch_type=PatchType.STRATEGIC
    )
    names = {container["name"] for container in changed["spec"]["template"]["spec"]["containers"]}
    assert names == {"main", "side", "third"}


async def test_a_strategic_patch_can_delete_an_item(world: World) -> None:
    """`$patch: delete` removes the item with that key."""
    made = await world.api.create(DEPLOYMENT, deployment(world.name("d")), namespace=world.namespace)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "side", "$patch": "delete"}]}}}}
    changed = await world.api.patch(
        DEPLOYMENT, name_of(made), patch, namespace=world.namespace, patch_type=PatchType.STRATEGIC
    )
    assert [container["name"] for container in changed["spec"]["template"]["spec"]["containers"]] == ["main"]


async def test_a_strategic_patch_can_replace_a_list(world: World) -> None:
    """`$patch: replace` in a list makes the rest of it the whole list."""
    made = await world.api.create(DEPLOYMENT, deployment(world.name("d")), namespace=world.namespace)
    patch = {"spec": {"template": {"spec": {"containers": [{"$patch": "replace"}, {"name": "only", "image": "img"}]}}}}
    changed = await world.api.patch(
        DEPLOYMENT, name_of(made), patch, namespace=world.namespace, patch_type=PatchType.STRATEGIC
    )
    assert [container["name"] for container in changed["spec"]["template"]["spec"]["containers"]] == ["only"]


async def test_a_strategic_patch_can_replace_a_map(world: World) -> None:
    """`$patch: replace` in a map makes the rest of it the whole map."""
    made = await world.pod(labels={"a": "1", "b": "2"})
    changed = await strategic_pod(world, made, {"metadata": {"labels": {"$patch": "replace", "c": "3"}}})
    assert changed["metadata"]["labels"] == {"c": "3"}


async def test_a_map_that_is_not_there_cannot_be_replaced(world: World) -> None:
    """`$patch: replace` for a map that the object lacks sets nothing."""
    made = await world.pod()
    changed = await strategic_pod(world, made, {"metadata": {"labels": {"$patch": "replace", "c": "3"}}})
    assert "labels" not in changed["metadata"]


async def test_null_in_a_strategic_patch_deletes(world: World) -> None:
    """A null removes the key, as in a merge patch."""
    made = await world.pod(labels={"a": "1", "b": "2"})
    changed = await strategic_pod(world, made, {"metadata": {"labels": {"a": None}}})
    assert changed["metadata"]["labels"] == {"b": "2"}


async def test_a_strategic_patch_merges_finalizers(world: World) -> None:
    """Finalizers are a set under strategic merge: the patch adds to them."""
    made = await world.pod(finalizers=["growth.dev/a"])
    changed = await strategic_pod(world, made, {"metadata": {"finalizers": ["growth.dev/b"]}})
    assert sorted(changed["metadata"]["finalizers"]) == ["growth.dev/a", "growth.dev/b"]


async def test_a_strategic_patch_can_remove_one_finalizer(world: World) -> None:
    """`$deleteFromPrimitiveList/finalizers` removes those named and leaves the others."""
    made = await world.pod(finalizers=["growth.dev/a", "growth.dev/b"])
    changed = await strategic_pod(world, made, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["growth.dev/a"]}})
    assert changed["metadata"]["finalizers"] == ["growth.dev/b"]


async def test_a_strategic_patch_replaces_taints(world: World) -> None:
    """A Node's taints have no merge key: the patch's list is the whole list."""
    name = world.name("node")
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}]
    await world.api.create(NODE, {"metadata": {"name": name}, "spec": {"taints": taints}})
    patch = {"spec": {"taints": [{"key": "c", "value": "v", "effect": "NoExecute"}]}}
    changed = await world.api.patch(NODE, name, patch, patch_type=PatchType.STRATEGIC)
    assert [taint["key"] for taint in changed["spec"]["taints"]] == ["c"]


async def test_a_strategic_patch_merges_node_conditions_by_type(world: World) -> None:
    """A Node's conditions are merged by their type: one that is not named stays."""
    name = world.name("node")
    await world.api.create(NODE, {"metadata": {"name": name}})
    for kind, status in (("Ready", "False"), ("DiskPressure", "False"), ("Ready", "True")):
        patch = {"status": {"conditions": [{"type": kind, "status": status}]}}
        await world.api.patch(NODE, name, patch, subresource="status", patch_type=PatchType.STRATEGIC)
    found = await world.api.get(NODE, name)
    assert {c["type"]: c["status"] for c in found["status"]["conditions"]} == {"Ready": "True", "DiskPressure": "False"}


async def test_a_strategic_patch_merges_environment_by_name(world: World) -> None:
    """Inside a container, variables are merged by their name."""
    body = deployment(world.name("d"))
    body["spec"]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "2"},
    ]
    made = await world.api.create(DEPLOYMENT, body, namespace=world.namespace)
    env = [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": env}]}}}}
    changed = await world.api.patch(
        DEPLOYMENT, name_of(made), patch, namespace=world.namespace, patch_type=PatchType.STRATEGIC
    )
    variables = {item["name"]: item["value"] for item in changed["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert variables == {"A": "1", "B": "3", "C": "4"}


async def test_a_strategic_patch_with_a_stale_revision_conflicts(world: World) -> None:
    """Preconditions hold for strategic patches too."""
    made = await world.pod()
    await strategic_pod(world, made, {"metadata": {"labels": {"a": "1"}}})
    stale = {"metadata": {"resourceVersion": revision_of(made), "labels": {"a": "2"}}}
    await refused(Conflict, strategic_pod(world, made, stale))


async def test_a_strategic_patch_needs_the_merge_key(world: World) -> None:
    """An item of a merged list without its key is refused (with a 500, of all codes)."""
    made = await world.api.create(DEPLOYMENT, deployment(world.name("d")), namespace=world.namespace)
    patch = {"spec": {"template": {"spec": {"containers": [{"image": "new"}]}}}}
    call = world.api.patch(DEPLOYMENT, name_of(made), patch, namespace=world.namespace, patch_type=PatchType.STRATEGIC)
    await refused(ServerError, call)


async def test_invented_kinds_know_no_strategic_patch(world: World) -> None:
    """A strategic patch of a custom resource is refused as an unsupported media type."""
    kind = await world.kind(FREE)
    made = await world.make(kind, {"a": 1})
    call = world.api.patch(
        kind, name_of(made), {"spec": {"a": 2}}, namespace=world.namespace, patch_type=PatchType.STRATEGIC
    )
    await refused(UnsupportedMediaType, call)


async def test_what_a_kind_does_not_know_is_said_before_what_is_missing(world: World) -> None:
    """A strategic patch of a custom resource that does not exist is an unsupported media type too."""
    kind = await world.kind(FREE)
    call = world.api.patch(kind, "nobody", {}, namespace=world.namespace, patch_type=PatchType.STRATEGIC)
    await refused(UnsupportedMediaType, call)
