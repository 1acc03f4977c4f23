"""Laws of CustomResourceDefinitions: how a kind comes, changes and goes."""

import pytest

from growth.api.kinds import Json
from growth.kube.api import PatchType
from growth.kube.errors import AlreadyExists, Invalid, NotFound
from tests.conformance.kinds import CRD
from tests.conformance.world import World, crd, eventually, found, kind_of, name_of, refused, served, uid_of


def plural(world: World) -> str:
    return world.name("z").replace("-", "") + "s"


def conditions(item: Json) -> dict[str, str]:
    return {each["type"]: each["status"] for each in item.get("status", {}).get("conditions") or ()}


async def establish(world: World, definition: Json) -> Json:
    """The definition as it is once it is established."""
    await world.api.create(CRD, definition)
    return await eventually(
        lambda: world.api.get(CRD, name_of(definition)),
        lambda item: conditions(item).get("Established") == "True",
    )


async def test_a_definition_is_accepted_and_established(world: World) -> None:
    """A good definition gets NamesAccepted and Established, its names and its stored version in the status."""
    definition = crd(plural(world))
    item = await establish(world, definition)
    assert conditions(item)["NamesAccepted"] == "True"
    assert item["status"]["acceptedNames"]["kind"] == definition["spec"]["names"]["kind"]
    assert item["status"]["storedVersions"] == ["v1"]


async def test_an_established_kind_is_served(world: World) -> None:
    """Before its definition a kind is NotFound; after, it lists as empty and takes objects."""
    definition = crd(plural(world))
    kind = kind_of(definition)
    await refused(NotFound, world.api.list(kind))
    await world.api.create(CRD, definition)
    await served(world.api, definition)
    assert (await world.api.list(kind)).items == ()
    made = await world.make(kind, {"a": 1})
    assert (made["apiVersion"], made["kind"]) == (kind.api_version, kind.kind)


async def test_names_are_filled_in(world: World) -> None:
    """singular and listKind follow from the kind, and conversion is None."""
    definition = crd(plural(world))
    for name in ("singular", "listKind"):
        del definition["spec"]["names"][name]
    made = await world.api.create(CRD, definition)
    kind = definition["spec"]["names"]["kind"]
    assert made["spec"]["names"]["singular"] == kind.lower()
    assert made["spec"]["names"]["listKind"] == f"{kind}List"
    assert made["spec"]["conversion"] == {"strategy": "None"}


async def test_a_cluster_scoped_kind_has_no_namespace(world: World) -> None:
    """Objects of a cluster-scoped kind are created and read without a namespace, and carry none."""
    definition = crd(plural(world), scope="Cluster")
    await world.api.create(CRD, definition)
    kind = await served(world.api, definition)
    made = await world.make(kind, {"a": 1})
    assert "namespace" not in made["metadata"]
    assert await world.api.get(kind, name_of(made)) == made


async def test_a_definition_is_named_after_its_kind(world: World) -> None:
    """A definition whose name is not `<plural>.<group>` is refused, naming `metadata.name`."""
    definition = crd(plural(world))
    definition["metadata"]["name"] = f"other.{definition['spec']['group']}"
    await refused(Invalid, world.api.create(CRD, definition), field="metadata.name")


async def test_a_group_has_a_dot(world: World) -> None:
    """A group without a dot is refused, naming `spec.group`."""
    await refused(Invalid, world.api.create(CRD, crd(plural(world), group="growth")), field="spec.group")


# With one version the server speaks of its schema as that of all versions.
SPEC = "spec.validation.openAPIV3Schema.properties[spec]"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"properties": {"a": {"type": "string"}}}, f"{SPEC}.type"),
        ({"type": "object", "properties": {"a": {}}}, f"{SPEC}.properties[a].type"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, f"{SPEC}.properties[a].items"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, f"{SPEC}.properties[a].type"),
        (
            {"type": "object", "properties": {"a": {"type": "string", "default": 1}}},
            f"{SPEC}.properties[a].default",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
            f"{SPEC}.properties[a].pattern",
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
            },
            f"{SPEC}.properties[a].uniqueItems",
        ),
        (
            {"type": "object", "x-kubernetes-validations": [{"rule": "self.nothing == 1"}]},
            f"{SPEC}.x-kubernetes-validations[0].rule",
        ),
        (
            {"type": "object", "x-kubernetes-validations": [{"rule": "1 +"}]},
            f"{SPEC}.x-kubernetes-validations[0].rule",
        ),
    ],
)
async def test_a_schema_must_be_sound(world: World, spec: Json, field: str) -> None:
    """A schema without types, with a wrong default, a broken pattern or a rule that does not compile is refused."""
    await refused(Invalid, world.api.create(CRD, crd(plural(world), spec)), field=field)


async def test_a_version_is_stored_exactly_once(world: World) -> None:
    """A definition without a stored version, or with two, is refused, naming `spec.versions`."""
    for flags in ((False,), (True, True)):
        definition = crd(plural(world))
        (version,) = definition["spec"]["versions"]
        definition["spec"]["versions"] = [
            {**version, "name": f"v{number}", "storage": storage} for number, storage in enumerate(flags, start=1)
        ]
        await refused(Invalid, world.api.create(CRD, definition), field="spec.versions")


async def test_a_scope_stands(world: World) -> None:
    """A definition's scope cannot change once it is established."""
    definition = crd(plural(world))
    await establish(world, definition)
    call = world.api.patch(CRD, name_of(definition), {"spec": {"scope": "Cluster"}})
    await refused(Invalid, call, field="spec.scope")


async def test_a_kind_belongs_to_one_definition(world: World) -> None:
    """A second definition with the same kind in the group is created, but its names are not accepted."""
    first = crd(plural(world))
    await establish(world, first)
    second = crd(plural(world), names={"kind": first["spec"]["names"]["kind"]})
    await world.api.create(CRD, second)
    judged = await eventually(
        lambda: world.api.get(CRD, name_of(second)), lambda item: "NamesAccepted" in conditions(item)
    )
    assert conditions(judged)["NamesAccepted"] == "False"
    assert conditions(judged).get("Established") != "True"


async def test_a_definition_exists_once(world: World) -> None:
    """The same definition again is AlreadyExists."""
    definition = crd(plural(world))
    await world.api.create(CRD, definition)
    await refused(AlreadyExists, world.api.create(CRD, definition))


async def test_a_removed_definition_takes_its_objects_along(world: World) -> None:
    """After its definition is gone a kind is not served, and one of the same name begins empty."""
    definition = crd(plural(world))
    await world.api.create(CRD, definition)
    kind = await served(world.api, definition)
    await world.make(kind, {"a": 1}, name="old")
    made = await world.api.get(CRD, name_of(definition))
    await world.api.delete(CRD, name_of(definition))
    await world.gone(CRD, made)
    await eventually(lambda: found(world.api.list(kind)), lambda page: page is None)
    await world.api.create(CRD, definition)
    await served(world.api, definition)
    # The server may still exchange its storage of the old kind for the new one's.
    page = await eventually(
        lambda: found(world.api.list(kind, namespace=world.namespace)), lambda page: page is not None
    )
    assert page is not None
    assert page.items == ()


async def test_a_new_default_shows_in_old_objects(world: World) -> None:
    """A default that a definition gains later is filled in when older objects are read."""
    definition = crd(plural(world), {"type": "object", "properties": {"a": {"type": "integer"}}})
    await world.api.create(CRD, definition)
    kind = await served(world.api, definition)
    made = await world.make(kind, {})
    assert made["spec"] == {}
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/default"
    await world.api.patch(
        CRD, name_of(definition), ({"op": "add", "path": path, "value": 5},), patch_type=PatchType.JSON
    )
    await eventually(
        lambda: world.api.get(kind, name_of(made), namespace=world.namespace), lambda item: item["spec"] == {"a": 5}
    )


async def test_a_version_that_is_not_served_is_not_found(world: World) -> None:
    """Objects are reached through served versions only."""
    definition = crd(plural(world))
    (version,) = definition["spec"]["versions"]
    definition["spec"]["versions"] = [version, {**version, "name": "v2", "storage": False, "served": False}]
    await world.api.create(CRD, definition)
    kind = await served(world.api, definition)
    hidden = type(kind)(kind.group, "v2", kind.kind, kind.plural, kind.namespaced, dict)
    await refused(NotFound, world.api.list(hidden))


async def test_both_served_versions_show_the_same_objects(world: World) -> None:
    """Without a conversion the same object is read through each version, with that version's apiVersion."""
    definition = crd(plural(world))
    (version,) = definition["spec"]["versions"]
    definition["spec"]["versions"] = [version, {**version, "name": "v2", "storage": False}]
    await world.api.create(CRD, definition)
    kind = await served(world.api, definition)
    made = await world.make(kind, {"a": 1})
    newer = type(kind)(kind.group, "v2", kind.kind, kind.plural, kind.namespaced, dict)
    item = await world.api.get(newer, name_of(made), namespace=world.namespace)
    assert item["apiVersion"] == f"{kind.group}/v2"
    assert uid_of(item) == uid_of(made)
