"""Laws of deletion: preconditions, finalizers, namespaces."""

from growth.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from tests.conformance.kinds import CONFIG_MAP, NAMESPACE
from tests.conformance.world import FREE, World, name_of, refused, revision_of, uid_of


async def test_a_deleted_object_is_gone(world: World) -> None:
    """Without finalizers a deleted object is gone at once."""
    made = await world.config_map()
    await world.api.delete(CONFIG_MAP, name_of(made), namespace=world.namespace)
    await refused(NotFound, world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace))


async def test_a_missing_object_cannot_be_deleted(world: World) -> None:
    """Deleting what is not there is NotFound."""
    await refused(NotFound, world.api.delete(CONFIG_MAP, "nobody", namespace=world.namespace))


async def test_a_deletion_meant_for_another_uid_conflicts(world: World) -> None:
    """A uid precondition that does not hold is a Conflict, and the object stays."""
    made = await world.config_map()
    await refused(
        Conflict,
        world.api.delete(CONFIG_MAP, name_of(made), namespace=world.namespace, uid="another"),
        reason="Conflict",
    )
    assert await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace) == made


async def test_a_deletion_with_a_stale_revision_conflicts(world: World) -> None:
    """A revision precondition that does not hold is a Conflict, and the object stays."""
    made = await world.config_map()
    await world.api.patch(CONFIG_MAP, name_of(made), {"data": {"b": "1"}}, namespace=world.namespace)
    call = world.api.delete(CONFIG_MAP, name_of(made), namespace=world.namespace, revision=revision_of(made))
    await refused(Conflict, call)
    await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace)


async def test_a_deletion_whose_preconditions_hold_passes(world: World) -> None:
    """With the right uid and revision the object goes."""
    made = await world.config_map()
    await world.api.delete(
        CONFIG_MAP, name_of(made), namespace=world.namespace, uid=uid_of(made), revision=revision_of(made)
    )
    await refused(NotFound, world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace))


async def test_a_finalizer_keeps_the_object(world: World) -> None:
    """A deletion marks an object that has finalizers, with a time and a grace of 0, and leaves it."""
    made = await world.config_map(finalizers=["growth.dev/a"])
    await world.api.delete(CONFIG_MAP, name_of(made), namespace=world.namespace)
    found = await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace)
    assert found["metadata"]["deletionTimestamp"].endswith("Z")
    assert found["metadata"]["deletionGracePeriodSeconds"] == 0
    assert found["metadata"]["finalizers"] == ["growth.dev/a"]


async def test_a_second_deletion_changes_nothing(world: World) -> None:
    """Deleting an object that is being deleted is answered well and changes nothing."""
    made = await world.config_map(finalizers=["growth.dev/a"])
    await world.api.delete(CONFIG_MAP, name_of(made), namespace=world.namespace)
    first = await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace)
    await world.api.delete(CONFIG_MAP, name_of(made), namespace=world.namespace)
    assert await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace) == first


async def test_the_last_finalizer_takes_the_object_along(world: World) -> None:
    """The object stays while one finalizer is left and is gone with the last."""
    made = await world.config_map(finalizers=["growth.dev/a", "growth.dev/b"])
    await world.api.delete(CONFIG_MAP, name_of(made), namespace=world.namespace)
    one = {"metadata": {"finalizers": ["growth.dev/b"]}}
    left = await world.api.patch(CONFIG_MAP, name_of(made), one, namespace=world.namespace)
    assert left["metadata"]["finalizers"] == ["growth.dev/b"]
    none = {"metadata": {"finalizers": None}}
    await world.api.patch(CONFIG_MAP, name_of(made), none, namespace=world.namespace)
    await refused(NotFound, world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace))


async def test_removing_finalizers_from_a_living_object_keeps_it(world: World) -> None:
    """Without a deletion the last finalizer goes alone."""
    made = await world.config_map(finalizers=["growth.dev/a"])
    left = await world.api.patch(CONFIG_MAP, name_of(made), {"metadata": {"finalizers": []}}, namespace=world.namespace)
    assert "finalizers" not in left["metadata"]
    await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace)


async def test_no_new_finalizers_while_deleting(world: World) -> None:
    """A finalizer added to an object that is being deleted is refused, naming the field."""
    made = await world.config_map(finalizers=["growth.dev/a"])
    await world.api.delete(CONFIG_MAP, name_of(made), namespace=world.namespace)
    more = {"metadata": {"finalizers": ["growth.dev/a", "growth.dev/b"]}}
    call = world.api.patch(CONFIG_MAP, name_of(made), more, namespace=world.namespace)
    await refused(Invalid, call, field="metadata.finalizers")


async def test_an_object_being_deleted_can_be_changed(world: World) -> None:
    """Labels and data of an object that is being deleted can still be patched; its deletion time stays."""
    made = await world.config_map(finalizers=["growth.dev/a"])
    await world.api.delete(CONFIG_MAP, name_of(made), namespace=world.namespace)
    marked = await world.api.get(CONFIG_MAP, name_of(made), namespace=world.namespace)
    patch = {"metadata": {"labels": {"x": "y"}, "deletionTimestamp": None}, "data": {"n": "1"}}
    changed = await world.api.patch(CONFIG_MAP, name_of(made), patch, namespace=world.namespace)
    assert changed["metadata"]["labels"] == {"x": "y"}
    assert changed["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]


async def test_the_name_of_an_object_being_deleted_is_taken(world: World) -> None:
    """While finalizers keep an object its name cannot be used again."""
    made = await world.config_map(finalizers=["growth.dev/a"])
    await world.api.delete(CONFIG_MAP, name_of(made), namespace=world.namespace)
    await refused(AlreadyExists, world.config_map(name=name_of(made)))


async def test_nobody_creates_an_object_in_deletion(world: World) -> None:
    """deletionTimestamp sent at creation is ignored."""
    made = await world.config_map(deletionTimestamp="2001-01-01T00:00:00Z", deletionGracePeriodSeconds=5)
    assert "deletionTimestamp" not in made["metadata"]


async def test_finalizers_are_qualified_names(world: World) -> None:
    """A finalizer of an invented kind that is no qualified name is refused."""
    kind = await world.kind(FREE)
    await refused(Invalid, world.make(kind, finalizers=["not ok"]), field="metadata.finalizers")


async def test_marking_for_deletion_is_a_new_generation(world: World) -> None:
    """Where a kind counts generations, the mark of deletion counts as one."""
    kind = await world.kind(FREE)
    made = await world.make(kind, {}, finalizers=["growth.dev/a"])
    await world.api.delete(kind, name_of(made), namespace=world.namespace)
    assert (await world.api.get(kind, name_of(made), namespace=world.namespace))["metadata"]["generation"] == 2


async def test_the_last_namespaces_stand(world: World) -> None:
    """`default` and `kube-system` exist, and may not be deleted."""
    for name in ("default", "kube-system"):
        await world.api.get(NAMESPACE, name)
        await refused(Forbidden, world.api.delete(NAMESPACE, name))


async def test_a_namespace_carries_its_name_as_a_label(world: World) -> None:
    """The server labels every namespace with its own name, and shows it as Active."""
    found = await world.api.get(NAMESPACE, world.namespace)
    assert found["metadata"]["labels"]["kubernetes.io/metadata.name"] == world.namespace
    assert found["status"]["phase"] == "Active"
    assert found["spec"]["finalizers"] == ["kubernetes"]
