"""Laws of custom resources: what a schema refuses, fills in and drops. Every kind here is made up."""

from typing import Any

import pytest

from growth.api.kinds import Json
from growth.kube.api import PatchType
from growth.kube.errors import BadRequest, Conflict, Invalid, NotFound
from tests.conformance.kinds import CRD
from tests.conformance.world import World, invented, name_of, refused, revision_of


def schema(*required: str, **properties: Json) -> Json:
    """An object with these properties."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


INTEGER: Json = {"type": "integer"}
STRING: Json = {"type": "string"}

STRICT = invented(
    schema(
        "size",
        size={"type": "integer", "minimum": 1, "maximum": 10},
        step={"type": "integer", "multipleOf": 5},
        share={"type": "number", "minimum": 0, "exclusiveMinimum": True},
        colour={"type": "string", "enum": ["red", "green"]},
        code={"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4},
        when={"type": "string", "format": "date-time"},
        on={"type": "boolean"},
        parts={"type": "array", "items": schema("name", name=STRING, weight=INTEGER), "minItems": 1, "maxItems": 2},
        marks={"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}, "maxProperties": 2},
        portion={"x-kubernetes-int-or-string": True},
        choice={
            "type": "object",
            "properties": {"a": STRING, "b": STRING},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        maybe={"type": "string", "nullable": True},
    )
)
FILLED = invented(
    schema(
        replicas={"type": "integer", "default": 3},
        mode={"type": "string", "default": "fast"},
        nested={"type": "object", "default": {}, "properties": {"depth": {"type": "integer", "default": 1}}},
        plain={"type": "object", "properties": {"depth": {"type": "integer", "default": 1}}},
        parts={"type": "array", "items": schema(weight={"type": "integer", "default": 7})},
        maybe={"type": "string", "nullable": True, "default": "x"},
    )
)
PRUNED = invented(
    schema(
        known=STRING,
        inner=schema(known=STRING),
        parts={"type": "array", "items": schema(known=STRING)},
        free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        typed={
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"inner": schema(known=STRING)},
        },
        marks={"type": "object", "additionalProperties": STRING},
    )
)
KEYED = invented(
    schema(
        parts={
            "type": "array",
            "items": schema("name", name=STRING, port=INTEGER),
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        tags={"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
    )
)
LOOSENED = invented(schema(code=STRING, size=INTEGER))
RULED = invented(
    {
        **schema(
            min=INTEGER,
            max=INTEGER,
            name={
                **STRING,
                "maxLength": 20,
                "x-kubernetes-validations": [
                    {"rule": "self == oldSelf", "message": "name stands"},
                    {
                        "rule": "!self.startsWith('x')",
                        "messageExpression": "'no ' + self",
                        "reason": "FieldValueForbidden",
                    },
                ],
            },
            parts={
                "type": "array",
                "maxItems": 5,
                "items": {
                    **schema(low=INTEGER, high=INTEGER),
                    "x-kubernetes-validations": [{"rule": "self.low <= self.high", "message": "low above high"}],
                },
            },
            memory={
                **STRING,
                "maxLength": 20,
                "x-kubernetes-validations": [{"rule": "isQuantity(self)", "message": "must be a quantity"}],
            },
        ),
        "x-kubernetes-validations": [
            {"rule": "!has(self.min) || !has(self.max) || self.min <= self.max", "message": "min above max"},
            {"rule": "!has(self.max) || self.max < 100", "message": "max too great", "fieldPath": ".max"},
            {"rule": "!has(oldSelf.min) || has(self.min)", "message": "min cannot go"},
        ],
    },
    root={
        "x-kubernetes-validations": [
            {"rule": "size(self.metadata.name) < 40", "message": "the name is too long for its children"}
        ]
    },
    subresources={"status": {}},
    status=schema(count={"type": "integer", "minimum": 0}),
)


async def make(world: World, definition: Json, **spec: Any) -> Json:
    kind = await world.kind(definition)
    return await world.make(kind, spec)


async def patch(world: World, definition: Json, item: Json, **spec: Any) -> Json:
    kind = await world.kind(definition)
    return await world.api.patch(kind, name_of(item), {"spec": spec}, namespace=world.namespace)


async def test_what_the_schema_allows_is_kept(world: World) -> None:
    """A good object comes back as it was sent."""
    spec: Json = {
        "size": 3,
        "step": 15,
        "share": 0.5,
        "colour": "red",
        "code": "abc",
        "when": "2026-01-02T03:04:05Z",
        "on": False,
        "parts": [{"name": "a", "weight": 0}],
        "marks": {"a": "b"},
        "portion": "10%",
        "choice": {"a": ""},
        "maybe": None,
    }
    assert (await make(world, STRICT, **spec))["spec"] == spec


@pytest.mark.parametrize(
    ("bad", "field", "says"),
    [
        ({"size": None}, "spec.size", "Required value"),
        ({"size": "three"}, "spec.size", "must be of type integer"),
        ({"size": 0}, "spec.size", "greater than or equal to 1"),
        ({"size": 11}, "spec.size", "less than or equal to 10"),
        ({"size": 2.5}, "spec.size", "must be of type integer"),
        ({"step": 7}, "spec.step", "should be a multiple of 5"),
        ({"share": 0}, "spec.share", "should be greater than 0"),
        ({"colour": "blue"}, "spec.colour", 'supported values: "red", "green"'),
        ({"code": "ABC"}, "spec.code", "should match '^[a-z]+$'"),
        ({"code": "a"}, "spec.code", "at least 2 chars long"),
        ({"code": "abcde"}, "spec.code", "may not be more than 4"),
        ({"when": "yesterday"}, "spec.when", "date-time"),
        ({"on": "yes"}, "spec.on", "must be of type boolean"),
        ({"parts": []}, "spec.parts", "at least 1 items"),
        ({"parts": [{"name": "a"}] * 3}, "spec.parts", "must have at most 2 items"),
        ({"parts": [{"name": "a"}, {"weight": 1}]}, "spec.parts[1].name", "Required value"),
        ({"parts": {}}, "spec.parts", "must be of type array"),
        ({"marks": {"a": 1}}, "spec.marks.a", "must be of type string"),
        ({"marks": {"a": "long"}}, "spec.marks.a", "may not be more than 3"),
        ({"marks": {"a": "", "b": "", "c": ""}}, "spec.marks", "must have at most 2 items"),
        ({"portion": True}, "spec.portion", "must be of type integer,string"),
    ],
)
async def test_a_schema_refuses(world: World, bad: Json, field: str, says: str) -> None:
    """Each rule of a schema refuses what breaks it, names the field's path and says what would be right."""
    await refused(Invalid, make(world, STRICT, **{"size": 1, **bad}), field=field, says=says, reason="Invalid")


@pytest.mark.parametrize("choice", [{}, {"a": "", "b": ""}])
async def test_a_choice_must_be_made(world: World, choice: Json) -> None:
    """`oneOf` refuses none and both; the field stands in the words only."""
    call = make(world, STRICT, size=1, choice=choice)
    await refused(Invalid, call, says='"spec.choice" must validate one and only one schema (oneOf)')


async def test_all_faults_are_named_together(world: World) -> None:
    """An object with several faults is refused once, with a cause for each."""
    error = await refused(Invalid, make(world, STRICT, size=0, colour="blue", code="A"))
    assert {"spec.size", "spec.colour", "spec.code"} <= {cause["field"] for cause in error.details["causes"]}


async def test_a_refusal_names_the_object(world: World) -> None:
    """The error's details carry the kind, the group and the name."""
    kind = await world.kind(STRICT)
    error = await refused(Invalid, world.make(kind, {"size": 0}, name="wrong"))
    assert (error.details["name"], error.details["kind"], error.details["group"]) == ("wrong", kind.kind, kind.group)


async def test_an_int_or_string_takes_both(world: World) -> None:
    """A field that is int-or-string keeps what it was given."""
    for value in (5, "50%"):
        assert (await make(world, STRICT, size=1, portion=value))["spec"]["portion"] == value


async def test_a_patch_obeys_the_schema(world: World) -> None:
    """What a patch makes is checked like what is created, and nothing changes when it is refused."""
    made = await make(world, STRICT, size=1)
    await refused(Invalid, patch(world, STRICT, made, size=99), field="spec.size")
    kind = await world.kind(STRICT)
    assert await world.api.get(kind, name_of(made), namespace=world.namespace) == made


async def test_an_old_fault_does_not_hold_up_other_changes(world: World) -> None:
    """A value that broke a rule before and is not touched is let pass: rules may become stricter over time."""
    kind = await world.kind(LOOSENED)
    made = await world.make(kind, {"code": "TOO-LONG", "size": 1})
    await tighten(world, LOOSENED)
    changed = await world.api.patch(kind, name_of(made), {"spec": {"size": 2}}, namespace=world.namespace)
    assert changed["spec"] == {"code": "TOO-LONG", "size": 2}
    call = world.api.patch(kind, name_of(made), {"spec": {"code": "OTHER-LONG"}}, namespace=world.namespace)
    await refused(Invalid, call, field="spec.code")


async def tighten(world: World, definition: Json) -> None:
    """Makes `code` of the definition at most four characters long, and waits until that is in force."""
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/code/maxLength"
    operations = ({"op": "add", "path": path, "value": 4},)
    await world.api.patch(CRD, name_of(definition), operations, patch_type=PatchType.JSON)
    kind = await world.kind(definition)
    await world.until_refused(kind, {"code": "TOO-LONG"})


async def test_defaults_are_filled_in(world: World) -> None:
    """Missing fields get their defaults, at every depth that exists; an absent parent stays absent."""
    made = await make(world, FILLED, parts=[{}, {"weight": 1}])
    assert made["spec"] == {
        "replicas": 3,
        "mode": "fast",
        "nested": {"depth": 1},
        "parts": [{"weight": 7}, {"weight": 1}],
        "maybe": "x",
    }


async def test_given_values_beat_defaults(world: World) -> None:
    """Zero and the empty string are values; a null is one only where the schema allows nulls."""
    spec = (await make(world, FILLED, replicas=0, mode="", nested={"depth": 0}, plain={}, maybe=None))["spec"]
    assert spec["replicas"] == 0
    assert spec["mode"] == ""
    assert spec["nested"] == {"depth": 0}
    assert spec["plain"] == {"depth": 1}
    assert spec["maybe"] is None


async def test_a_null_where_none_is_allowed_means_the_default(world: World) -> None:
    """A null for a field that is not nullable and has a default is dropped, and the default filled in."""
    assert (await make(world, FILLED, replicas=None))["spec"]["replicas"] == 3


async def test_removing_a_field_brings_its_default_back(world: World) -> None:
    """A patch that deletes a field with a default sets it to the default."""
    made = await make(world, FILLED, replicas=9)
    assert (await patch(world, FILLED, made, replicas=None))["spec"]["replicas"] == 3


async def test_unknown_fields_are_dropped(world: World) -> None:
    """What the schema does not name is pruned, inside maps and lists too; typed maps keep any key."""
    spec: Json = {
        "known": "a",
        "other": 1,
        "inner": {"known": "b", "other": 2},
        "parts": [{"known": "c", "other": 3}],
        "marks": {"any": "d"},
    }
    made = await make(world, PRUNED, **spec)
    assert made["spec"] == {
        "known": "a",
        "inner": {"known": "b"},
        "parts": [{"known": "c"}],
        "marks": {"any": "d"},
    }


async def test_unknown_fields_are_kept_where_the_schema_says_so(world: World) -> None:
    """`x-kubernetes-preserve-unknown-fields` keeps everything below it, except inside properties that are typed again."""
    spec: Json = {"free": {"a": {"b": [1]}}, "typed": {"x": 1, "inner": {"known": "k", "other": 1}}}
    assert (await make(world, PRUNED, **spec))["spec"] == {
        "free": {"a": {"b": [1]}},
        "typed": {"x": 1, "inner": {"known": "k"}},
    }


async def test_fields_beside_spec_are_dropped(world: World) -> None:
    """Unknown fields at the top of an object are pruned; metadata is the server's own."""
    kind = await world.kind(PRUNED)
    body = {"metadata": {"name": "x", "annotations": {"a": "b"}, "odd": 1}, "spec": {}, "odd": {"a": 1}}
    made = await world.api.create(kind, body, namespace=world.namespace)
    assert set(made) == {"apiVersion", "kind", "metadata", "spec"}
    assert "odd" not in made["metadata"]


async def test_a_map_list_has_each_key_once(world: World) -> None:
    """Two items with the same key in a list of type map are refused, naming the second."""
    parts = [{"name": "a", "port": 1}, {"name": "b"}, {"name": "a", "port": 2}]
    await refused(Invalid, make(world, KEYED, parts=parts), field="spec.parts[2]", says="Duplicate value")


async def test_a_set_has_each_value_once(world: World) -> None:
    """A value twice in a list of type set is refused, naming the second."""
    await refused(Invalid, make(world, KEYED, tags=["a", "b", "a"]), field="spec.tags[2]", says="Duplicate value")


async def test_a_rule_refuses_with_its_message(world: World) -> None:
    """A CEL rule that does not hold refuses the object with the author's words, naming where the rule stands."""
    await refused(Invalid, make(world, RULED, min=5, max=1), field="spec", says="min above max")


async def test_a_rule_may_name_another_field(world: World) -> None:
    """A rule's `fieldPath` is the path that the refusal names."""
    await refused(Invalid, make(world, RULED, max=100), field="spec.max", says="max too great")


async def test_a_rule_in_a_list_names_the_item(world: World) -> None:
    """A rule on items is applied to each, and the refusal names the index."""
    parts = [{"low": 1, "high": 2}, {"low": 3, "high": 2}]
    await refused(Invalid, make(world, RULED, parts=parts), field="spec.parts[1]", says="low above high")


async def test_a_rule_can_compute_its_message(world: World) -> None:
    """`messageExpression` gives the words, and `reason` the kind of the cause."""
    error = await refused(Invalid, make(world, RULED, name="xyz"), field="spec.name", says="no xyz")
    assert error.details["causes"][0]["reason"] == "FieldValueForbidden"


async def test_a_transition_rule_holds_from_the_second_write_on(world: World) -> None:
    """A rule that speaks of oldSelf does not hinder creation, and refuses a change that breaks it."""
    made = await make(world, RULED, name="first")
    await refused(Invalid, patch(world, RULED, made, name="second"), field="spec.name", says="name stands")
    assert (await patch(world, RULED, made, name="first", min=1))["spec"]["min"] == 1


async def test_a_transition_rule_can_keep_a_field(world: World) -> None:
    """A rule on the parent can forbid that a field goes."""
    made = await make(world, RULED, min=1)
    await refused(Invalid, patch(world, RULED, made, min=None), field="spec", says="min cannot go")


async def test_a_rule_on_the_root_sees_the_name(world: World) -> None:
    """A rule on the whole object may speak of metadata.name."""
    kind = await world.kind(RULED)
    await refused(Invalid, world.make(kind, {}, name="a" * 40), says="too long for its children")


async def test_rules_know_quantities(world: World) -> None:
    """The rule language has the cluster's own functions, such as isQuantity."""
    await make(world, RULED, memory="1Gi")
    await refused(Invalid, make(world, RULED, memory="lots"), field="spec.memory", says="must be a quantity")


async def test_rules_do_not_judge_what_breaks_the_schema(world: World) -> None:
    """With a type error there is no word of the rules that would have read the value."""
    error = await refused(Invalid, make(world, RULED, min="five", max=1), field="spec.min")
    assert "min above max" not in error.message


async def test_the_status_write_is_not_held_up_by_the_spec(world: World) -> None:
    """A status that is right can be written; a wrong one is refused, naming its field."""
    kind = await world.kind(RULED)
    made = await world.make(kind, {"min": 1})
    good = await world.api.patch(
        kind, name_of(made), {"status": {"count": 1}}, namespace=world.namespace, subresource="status"
    )
    assert good["status"] == {"count": 1}
    call = world.api.patch(
        kind, name_of(made), {"status": {"count": -1}}, namespace=world.namespace, subresource="status"
    )
    await refused(Invalid, call, field="status.count")


async def test_an_update_of_an_invented_kind_needs_the_revision(world: World) -> None:
    """Custom resources are never replaced unconditionally: without resourceVersion the update is refused."""
    kind = await world.kind(STRICT)
    made = await world.make(kind, {"size": 1})
    bare = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name_of(made)}, "spec": {"size": 2}}
    call = world.api.update(kind, name_of(made), bare, namespace=world.namespace)
    await refused(Invalid, call, field="metadata.resourceVersion")
    whole = {**bare, "metadata": {"name": name_of(made), "resourceVersion": revision_of(made)}}
    assert (await world.api.update(kind, name_of(made), whole, namespace=world.namespace))["spec"] == {"size": 2}
    await refused(Conflict, world.api.update(kind, name_of(made), whole, namespace=world.namespace))


async def test_an_object_of_another_version_is_refused(world: World) -> None:
    """A body whose apiVersion is not the path's is a BadRequest."""
    kind = await world.kind(STRICT)
    body = {"apiVersion": f"{kind.group}/v2", "kind": kind.kind, "metadata": {"name": "x"}, "spec": {"size": 1}}
    await refused(BadRequest, world.api.create(kind, body, namespace=world.namespace))


async def test_a_missing_object_of_an_invented_kind_is_named(world: World) -> None:
    """NotFound carries the name, the group and the plural."""
    kind = await world.kind(STRICT)
    error = await refused(NotFound, world.api.get(kind, "nobody", namespace=world.namespace))
    assert (error.details["name"], error.details["group"], error.details["kind"]) == ("nobody", kind.group, kind.plural)


async def test_names_of_custom_resources_are_checked(world: World) -> None:
    """A custom resource's name is a DNS name too."""
    kind = await world.kind(STRICT)
    await refused(Invalid, world.make(kind, {"size": 1}, name="Not_A_Name"), field="metadata.name")


async def test_labels_of_custom_resources_are_checked(world: World) -> None:
    """A custom resource's labels follow the usual rules."""
    kind = await world.kind(STRICT)
    await refused(Invalid, world.make(kind, {"size": 1}, labels={"a": "not ok"}), field="metadata.labels")
