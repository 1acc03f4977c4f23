"""Laws of creating, reading and replacing objects: names, revisions, uids, conflicts."""

from growth.api.kinds import Kind
from growth.kube.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound, ServerError
from tests.conformance.kinds import CONFIG_MAP, LEASE, NAMESPACE, NODE
from tests.conformance.world import World, name_of, refused, revision_of, uid_of


async def test_the_server_gives_identity(world: World) -> None:
    """What was created carries a uid, a time of creation, a revision and its namespace."""
    made = await world.config_map()
    metadata = made["metadata"]
    assert len(metadata["uid"]) == 36
    assert metadata["creationTimestamp"].endswith("Z")
    assert int(metadata["resourceVersion"]) > 0
    assert metadata["namespace"] == world.namespace
    assert (made["apiVersion"], made["kind"]) == ("v1", "ConfigMap")


async def test_what_was_created_can_be_read(world: World) -> None:
    """Reading gives exactly what creation answered."""
    made = await world.config_map(labels={"x": "y"})
    assert await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace) == made


async def test_a_name_is_taken_once(world: World) -> None:
    """A second object of the same kind, namespace and name is refused as AlreadyExists, naming it."""
    made = await world.config_map()
    error = await refused(AlreadyExists, world.config_map(name=name_of(made)), reason="AlreadyExists")
    assert error.code == 409
    assert error.details["name"] == name_of(made)


async def test_a_name_is_free_in_another_namespace(world: World) -> None:
    """Names are unique within a namespace only."""
    made = await world.config_map()
    other = world.name("law")
    await world.api.create(NAMESPACE, {"metadata": {"name": other}})
    second = await world.api.create(CONFIG_MAP, {"metadata": {"name": name_of(made)}}, namespace=other)
    assert uid_of(second) != uid_of(made)


async def test_generated_names_are_the_prefix_and_something_random(world: World) -> None:
    """`generateName` gives names that start with it, five characters longer, all different."""
    names = {name_of(await world.config_map(name="", generateName="gen-")) for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("gen-") and len(name) == len("gen-") + 5 for name in names)


async def test_a_given_name_beats_a_generated_one(world: World) -> None:
    """With both `name` and `generateName`, the name stands and the prefix is kept as it was sent."""
    made = await world.config_map(name="given", generateName="gen-")
    assert name_of(made) == "given"
    assert made["metadata"]["generateName"] == "gen-"


async def test_a_name_is_required(world: World) -> None:
    """An object with neither name nor generateName is refused, naming `metadata.name`."""
    await refused(Invalid, world.config_map(name=""), field="metadata.name")


async def test_a_new_object_may_not_bring_a_revision(world: World) -> None:
    """An object to be created that carries a resourceVersion is refused (with a 500, of all codes)."""
    await refused(ServerError, world.config_map(resourceVersion="5"))


async def test_identity_sent_by_the_client_is_replaced(world: World) -> None:
    """uid and creationTimestamp are the server's: what a client sends at creation is ignored."""
    made = await world.config_map(uid="mine", creationTimestamp="2001-01-01T00:00:00Z")
    assert made["metadata"]["uid"] != "mine"
    assert not made["metadata"]["creationTimestamp"].startswith("2001")


async def test_the_namespace_must_exist(world: World) -> None:
    """Creating in a namespace that does not exist is NotFound, and the error names the namespace."""
    call = world.api.create(CONFIG_MAP, {"metadata": {"name": "x"}}, namespace="no-such-namespace")
    error = await refused(NotFound, call)
    assert error.details["name"] == "no-such-namespace"


async def test_the_body_must_agree_with_the_namespace_of_the_path(world: World) -> None:
    """A body that names another namespace than the request is refused."""
    await refused(BadRequest, world.config_map(namespace="elsewhere"))


async def test_the_body_must_be_of_the_kind_of_the_path(world: World) -> None:
    """A body of another kind than the path is refused."""
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}
    await refused(BadRequest, world.api.create(CONFIG_MAP, body, namespace=world.namespace))


async def test_names_are_lower_case_dns_names(world: World) -> None:
    """A name with capitals or underscores is refused, naming `metadata.name`."""
    await refused(Invalid, world.config_map(name="Not_A_Name"), field="metadata.name", reason="Invalid")


async def test_names_have_at_most_253_characters(world: World) -> None:
    """253 characters are accepted and 254 are not."""
    await world.config_map(name="a" * 253)
    await refused(Invalid, world.config_map(name="a" * 254), field="metadata.name")


async def test_namespaces_are_dns_labels(world: World) -> None:
    """A namespace's name has at most 63 characters and no dots."""
    for name in ("a" * 64, "with.dot"):
        await refused(Invalid, world.api.create(NAMESPACE, {"metadata": {"name": name}}), field="metadata.name")


async def test_label_values_are_checked(world: World) -> None:
    """A label's value with a space, or longer than 63 characters, is refused, naming `metadata.labels`."""
    for value in ("not ok", "a" * 64):
        await refused(Invalid, world.config_map(labels={"x": value}), field="metadata.labels")


async def test_label_keys_are_checked(world: World) -> None:
    """A label's key is a name with at most one prefix, a DNS name before the slash."""
    for key in ("a/b/c", "-x", "UPPER_case!/x", ""):
        await refused(Invalid, world.config_map(labels={key: "x"}), field="metadata.labels")


async def test_annotation_keys_are_checked(world: World) -> None:
    """An annotation's key follows the rule of label keys, whatever its value."""
    await world.config_map(annotations={"growth.dev/ok": "any value: {}\n"})
    await refused(Invalid, world.config_map(annotations={"not ok": "x"}), field="metadata.annotations")


async def test_annotations_have_a_limit_together(world: World) -> None:
    """All annotations of an object hold at most 256 KiB."""
    await refused(Invalid, world.config_map(annotations={"a": "x" * (256 * 1024)}), field="metadata.annotations")


async def test_a_missing_object_is_named(world: World) -> None:
    """NotFound says which object of which kind is missing."""
    error = await refused(NotFound, world.api.get(CONFIG_MAP, "nobody", namespace=world.namespace), reason="NotFound")
    assert error.code == 404
    assert (error.details["name"], error.details["kind"]) == ("nobody", "configmaps")


async def test_a_kind_that_is_not_served_is_not_found(world: World) -> None:
    """A group or a resource that nobody registered is NotFound, and no object is named."""
    nobody = Kind("nobody.growth.test", "v1", "Nothing", "nothings", True, dict)
    error = await refused(NotFound, world.api.list(nobody, namespace=world.namespace))
    assert "name" not in error.details


async def test_there_is_one_revision_for_all_kinds(world: World) -> None:
    """Each write, of whatever kind, gets a greater revision than the write before it."""
    first = await world.config_map()
    lease = await world.api.create(LEASE, {"metadata": {"name": "l"}, "spec": {}}, namespace=world.namespace)
    node = await world.api.create(NODE, {"metadata": {"name": world.name("node")}})
    last = await world.config_map()
    revisions = [int(revision_of(item)) for item in (first, lease, node, last)]
    assert revisions == sorted(set(revisions))


async def test_a_list_is_at_least_as_new_as_its_items(world: World) -> None:
    """A list's revision is no smaller than that of any object in it."""
    made = await world.config_map()
    listed = await world.api.list(CONFIG_MAP, namespace=world.namespace)
    assert int(listed.revision) >= int(revision_of(made))


async def test_a_replacement_with_the_current_revision_passes(world: World) -> None:
    """An update with the revision that was read replaces the object and gives it a new revision."""
    made = await world.config_map()
    changed = await world.api.update(CONFIG_MAP, name_of(made), {**made, "data": {"b": "2"}}, namespace=world.namespace)
    assert changed["data"] == {"b": "2"}
    assert int(revision_of(changed)) > int(revision_of(made))
    assert uid_of(changed) == uid_of(made)


async def test_a_replacement_with_a_stale_revision_conflicts(world: World) -> None:
    """An update with an older revision is a Conflict and changes nothing."""
    made = await world.config_map()
    newer = await world.api.patch(CONFIG_MAP, name_of(made), {"data": {"b": "2"}}, namespace=world.namespace)
    stale = world.api.update(CONFIG_MAP, name_of(made), {**made, "data": {}}, namespace=world.namespace)
    error = await refused(Conflict, stale, reason="Conflict")
    assert error.details["name"] == name_of(made)
    assert await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace) == newer


async def test_a_replacement_without_a_revision_is_unconditional(world: World) -> None:
    """For core kinds an update without resourceVersion replaces whatever is there."""
    made = await world.config_map()
    body = {"metadata": {"name": name_of(made)}, "data": {"c": "3"}}
    changed = await world.api.update(
        CONFIG_MAP, name_of(made), {"apiVersion": "v1", "kind": "ConfigMap", **body}, namespace=world.namespace
    )
    assert changed["data"] == {"c": "3"}
    assert uid_of(changed) == uid_of(made)


async def test_a_replacement_that_changes_nothing_keeps_the_revision(world: World) -> None:
    """Writing back what is there is answered well and makes no new revision."""
    made = await world.config_map()
    again = await world.api.update(CONFIG_MAP, name_of(made), made, namespace=world.namespace)
    assert revision_of(again) == revision_of(made)


async def test_a_replacement_needs_the_object(world: World) -> None:
    """An update of a missing object is NotFound."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nobody"}}
    await refused(NotFound, world.api.update(CONFIG_MAP, "nobody", body, namespace=world.namespace))


async def test_a_replacement_must_carry_the_name_of_the_path(world: World) -> None:
    """A body whose name is not the path's is refused."""
    made = await world.config_map()
    body = {**made, "metadata": {**made["metadata"], "name": "other"}}
    await refused(BadRequest, world.api.update(CONFIG_MAP, name_of(made), body, namespace=world.namespace))


async def test_a_replacement_for_another_uid_conflicts(world: World) -> None:
    """A body that carries another uid means another object: Conflict."""
    made = await world.config_map()
    body = {**made, "metadata": {"name": name_of(made), "uid": "another"}}
    await refused(Conflict, world.api.update(CONFIG_MAP, name_of(made), body, namespace=world.namespace))


async def test_the_time_of_creation_stays(world: World) -> None:
    """A replacement cannot change creationTimestamp."""
    made = await world.config_map()
    body = {**made, "metadata": {**made["metadata"], "creationTimestamp": "2001-01-01T00:00:00Z"}, "data": {"z": "1"}}
    changed = await world.api.update(CONFIG_MAP, name_of(made), body, namespace=world.namespace)
    assert changed["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]


async def test_a_recreated_object_is_another_one(world: World) -> None:
    """The same name after a deletion has another uid and a greater revision."""
    made = await world.config_map()
    await world.api.delete(CONFIG_MAP, name_of(made), namespace=world.namespace)
    again = await world.config_map(name=name_of(made))
    assert uid_of(again) != uid_of(made)
    assert int(revision_of(again)) > int(revision_of(made))
