"""The definitions are structural, complete and agree with the structs that they are made from."""

import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Union

import msgspec
import pytest

from growth.api.crds import DEFINITIONS, Definition, all_crds, crd
from growth.api.crds.structural import root_schema
from growth.api.decoding import convert
from growth.api.karpenter import NODE_POOL
from growth.api.kinds import Json
from growth.api.meta import Struct
from growth.api.schema import UNSET, Schema


def by_name(definition: Definition) -> str:
    return str(definition.kind)


def schema_of(definition: Definition) -> Json:
    (version,) = crd(definition)["spec"]["versions"]
    schema: Json = version["schema"]["openAPIV3Schema"]
    return schema


def nodes(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every schema inside a schema, with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


@pytest.mark.parametrize("definition", DEFINITIONS, ids=by_name)
def test_schemas_are_structural(definition: Definition) -> None:
    """Each place says its type, nothing refers elsewhere, and nothing may be null."""
    for path, schema in nodes(schema_of(definition)):
        assert {"$ref", "title", "oneOf", "allOf", "nullable"}.isdisjoint(schema), path
        assert ("type" in schema) != ("x-kubernetes-int-or-string" in schema), path
        assert ("anyOf" in schema) == ("x-kubernetes-int-or-string" in schema), path


@pytest.mark.parametrize("definition", DEFINITIONS, ids=by_name)
def test_every_field_of_a_spec_says_what_it_is(definition: Definition) -> None:
    """`kubectl explain` has a sentence for each field that a person may write."""
    silent = [
        path
        for path, schema in nodes(schema_of(definition)["properties"]["spec"])
        if path and not path.endswith(("[]", "{}")) and "description" not in schema and "timeAdded" not in path
    ]
    assert silent == []


@pytest.mark.parametrize("definition", DEFINITIONS, ids=by_name)
def test_rules_point_at_fields_that_exist(definition: Definition) -> None:
    """A rule's `fieldPath` is a property of the place where the rule stands, and its message says something."""
    for path, schema in nodes(schema_of(definition)):
        for rule in schema.get("x-kubernetes-validations", ()):
            assert len(rule["message"].split()) > 2, path
            if "fieldPath" in rule:
                assert rule["fieldPath"].removeprefix(".") in schema["properties"], path


@pytest.mark.parametrize("definition", DEFINITIONS, ids=by_name)
def test_columns_point_at_fields_that_exist(definition: Definition) -> None:
    """No column of `kubectl get` stays empty because of a typing error."""
    fields = {path for path, _ in nodes(schema_of(definition))}
    for column in definition.columns:
        path = column.path.replace("[*]", "[]").replace("[-1]", "[]")
        if ".metadata." in path:
            continue
        if "[?(" in path:
            head, _, tail = path.partition("[?(")
            path = f"{head}[]{tail.partition(')]')[2]}"
        known = path in fields or f"{path.rpartition('.')[0]}{{}}" in fields
        assert known, column


def defaulted(hint: Any) -> Iterator[tuple[type[Struct], str, Any, Any]]:
    """Every field with a server's default below a type: struct, field, that default, the struct's own."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = typing.get_type_hints(hint, include_extras=True)
        for field in msgspec.structs.fields(hint):
            for mark in getattr(hints[field.name], "__metadata__", ()):
                if isinstance(mark, Schema) and mark.default is not UNSET:
                    yield hint, field.name, convert(mark.default, typing.get_args(hints[field.name])[0]), field.default
            yield from defaulted(hints[field.name])
    elif typing.get_origin(hint) in (Union, types.UnionType, tuple, dict, Annotated):
        for argument in typing.get_args(hint):
            yield from defaulted(argument)


def test_servers_and_structs_have_the_same_defaults() -> None:
    """An object from a file means what it means after a server has filled in its defaults."""
    seen = [found for definition in DEFINITIONS for found in defaulted(definition.kind.type)]
    assert len(seen) > 10
    assert [found for found in seen if found[2] != found[3]] == []


def test_short_names_and_plurals_do_not_collide() -> None:
    """Each word that `kubectl get` takes means one kind; ours never is Karpenter's `nodepools`."""
    words: list[str] = []
    for definition in all_crds():
        names = definition["spec"]["names"]
        words += [names["plural"], names["singular"], *names.get("shortNames", ())]
    assert len(words) == len(set(words))


def test_karpenters_pools_and_claims_have_no_short_name() -> None:
    """Karpenter gives them none, and one of ours could hide somebody else's."""
    short = {by_name(definition): definition.short_names for definition in DEFINITIONS}
    assert short["nodepools.karpenter.sh"] == short["nodeclaims.karpenter.sh"] == ()


# The columns that Karpenter's users see, and those they see with `-o wide`, as facts.
COLUMNS = {
    "nodepools.karpenter.sh": ("NodeClass Nodes Ready Age", "Weight CPU Memory"),
    "nodeclaims.karpenter.sh": ("Type Capacity Zone Node Ready Age", "ImageID ID NodePool NodeClass Drifted"),
    "nodeoverlays.karpenter.sh": ("Ready Age", "Weight"),
    "capacitybuffers.autoscaling.x-k8s.io": (
        "Strategy PodTemplate Replicas ConditionsType ConditionsStatus ConditionsReason Age",
        "",
    ),
}


@pytest.mark.parametrize("definition", [each for each in DEFINITIONS if by_name(each) in COLUMNS], ids=by_name)
def test_karpenters_kinds_have_karpenters_columns(definition: Definition) -> None:
    """`kubectl get` prints the same table as before."""
    shown = " ".join(column.name for column in definition.columns if not column.wide)
    wide = " ".join(column.name for column in definition.columns if column.wide)
    assert (shown, wide) == COLUMNS[by_name(definition)]


def test_each_call_gives_a_fresh_copy() -> None:
    """Whoever changes what they got changes nothing for others."""
    first = all_crds()
    first[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].clear()
    first[0]["spec"]["names"]["categories"].append("x")
    assert all_crds() != first
    assert all_crds() == all_crds()


def test_annotations_add_up() -> None:
    """Of several annotations the later wins, and rules of all of them stand; an optional field is not nullable."""

    class Sample(Struct, frozen=True):
        wanted: Annotated[str, Schema("first", pattern="a"), Schema("second", max_length=3)]
        number: Annotated[int | None, Schema(minimum=1)] = None
        either: int | str = 0
        amounts: dict[str, str | int | float] = {}  # noqa: RUF012  # copied for each struct by msgspec

    assert root_schema(Sample) == {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "wanted": {"type": "string", "description": "second", "pattern": "a", "maxLength": 3},
            "number": {"type": "integer", "minimum": 1},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
            "amounts": {
                "type": "object",
                "additionalProperties": {
                    "anyOf": [{"type": "integer"}, {"type": "string"}],
                    "x-kubernetes-int-or-string": True,
                    "pattern": root_schema(Sample)["properties"]["amounts"]["additionalProperties"]["pattern"],
                },
            },
        },
        "required": ["wanted"],
    }


def test_a_type_without_a_schema_is_an_error() -> None:
    """What cannot be said structurally is told when the definitions are made, not by a server later."""

    class Sample(Struct, frozen=True):
        odd: set[str]

    with pytest.raises(TypeError, match="no structural schema"):
        root_schema(Sample)


def test_the_mode_of_a_node_limit_is_hard_or_soft_and_hard_where_nothing_is_said() -> None:
    """`spec.disruption.nodeLimitMode` of a NodePool: two words, with a default."""
    (pools,) = (each for each in DEFINITIONS if each.kind == NODE_POOL)
    mode = schema_of(pools)["properties"]["spec"]["properties"]["disruption"]["properties"]["nodeLimitMode"]
    assert (mode["enum"], mode["default"]) == (["Hard", "Soft"], "Hard")
