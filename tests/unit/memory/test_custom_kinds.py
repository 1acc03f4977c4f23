"""Custom kinds beyond the laws of conformance: rules in CEL, versions, formats, and how a kind ends."""

from typing import Any

import pytest

from growth.api.kinds import Json
from growth.kube.errors import BadRequest, Invalid, MethodNotAllowed, NotFound
from growth.kube.memory.custom.formats import is_sound
from growth.kube.memory.custom.schema import Schema, anchored
from growth.kube.memory.custom.validation import errors
from growth.kube.memory.resources import Resource
from growth.kube.memory.server import MemoryServer
from tests.unit.memory.builders import new_server


def definition(spec: Json, *, versions: tuple[str, ...] = ("v1",), served: tuple[str, ...] = ()) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "metadata": {"name": "things.unit.test"},
        "spec": {
            "group": "unit.test",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {"name": name, "served": name in (served or versions), "storage": name == versions[0], "schema": schema}
                for name in versions
            ],
        },
    }


def define(server: MemoryServer, spec: Json, **options: Any) -> Resource:
    resource = server.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    server.create(resource, definition(spec, **options))
    return server.resource("unit.test", "v1", "things")


def thing(spec: Json, *, version: str = "v1", **metadata: Any) -> Json:
    return {"apiVersion": f"unit.test/{version}", "kind": "Thing", "metadata": {"name": "t", **metadata}, "spec": spec}


def ruled(properties: Json, *rules: Json) -> Json:
    return {"type": "object", "properties": properties, "x-kubernetes-validations": list(rules)}


def complaints(schema: Json, value: Any, *old: Any) -> list[str]:
    """What is wrong with a spec, as field and text."""
    root = Schema({"type": "object", "properties": {"spec": schema}}, root=True)
    before = ({"spec": old[0]},) if old else ()
    return [str(one) for one in errors(root, {"spec": value}, *before)]


TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "integer"}


def test_names_that_cel_cannot_write_are_escaped() -> None:
    """Dashes, dots, slashes and CEL's own words are reached by their escaped names."""
    properties = {"foo-bar": NUMBER, "a.b": NUMBER, "in": NUMBER, "x/y": NUMBER}
    rule = "self.foo__dash__bar + self.a__dot__b + self.__in__ + self.x__slash__y == 10"
    assert complaints(ruled(properties, {"rule": rule}), {"foo-bar": 1, "a.b": 2, "in": 3, "x/y": 4}) == []
    assert complaints(ruled(properties, {"rule": rule}), {"foo-bar": 1, "a.b": 2, "in": 3, "x/y": 5}) != []


def test_values_have_the_types_that_their_schema_says() -> None:
    """Times and durations compare as such, and a whole number in a field of type number is a double."""
    schema = ruled(
        {
            "until": {"type": "string", "format": "date-time"},
            "every": {"type": "string", "format": "duration"},
            "share": {"type": "number"},
        },
        {"rule": "self.until > timestamp('2026-01-01T00:00:00Z')", "message": "too early"},
        {"rule": "self.every >= duration('1m')", "message": "too often"},
        {"rule": "self.share + 0.5 < 2.0", "message": "too much"},
    )
    assert complaints(schema, {"until": "2026-06-01T00:00:00Z", "every": "90s", "share": 1}) == []
    wrong = complaints(schema, {"until": "2025-06-01T00:00:00Z", "every": "30s", "share": 2})
    assert [text.rpartition(": ")[2] for text in wrong] == ["too early", "too often", "too much"]


def test_quantities_compare_by_amount() -> None:
    """Equal amounts are equal however they are written, and quantities can be added and compared."""
    for rule in (
        "quantity(self.a) == quantity('1024Mi')",
        "quantity(self.a).isGreaterThan(quantity('500M'))",
        "quantity(self.a).isLessThan(quantity('2Gi'))",
        "quantity(self.a).compareTo(quantity('1Gi')) == 0",
        "quantity(self.a).add(quantity('1Gi')) == quantity('2Gi')",
        "quantity(self.a).sub(quantity('1Gi')).sign() == 0",
        "quantity('1500m').isInteger() == false && quantity('2').asInteger() == 2",
        "isQuantity(self.a) && !isQuantity('lots')",
    ):
        assert complaints(ruled({"a": TEXT}, {"rule": rule}), {"a": "1Gi"}) == [], rule


def test_lists_and_texts_have_their_functions() -> None:
    """Sorting, searching, sets and case, as the API server offers them."""
    schema = {"l": {"type": "array", "items": NUMBER}, "s": TEXT}
    for rule in (
        "self.l.isSorted()",
        "self.l.sum() == 6 && self.l.min() == 1 && self.l.max() == 3",
        "self.l.indexOf(2) == 1 && self.l.indexOf(9) == -1",
        "self.s.lowerAscii() == 'cax11'",
        "self.s.find('[0-9]+') == '11' && self.s.findAll('[A-Z]').size() == 3",
        "self.s.split('X').size() == 2",
        "self.l.exists_one(x, x == 2) && self.l.all(x, x > 0)",
    ):
        assert complaints(ruled(schema, {"rule": rule}), {"l": [1, 2, 3], "s": "CAX11"}) == [], rule


def test_a_transition_rule_needs_an_old_value() -> None:
    """Rules about oldSelf are asleep at creation, unless they say that they can do without."""
    fixed = {"rule": "self == oldSelf", "message": "is fixed"}
    schema = {"type": "object", "properties": {"a": {**TEXT, "x-kubernetes-validations": [fixed]}}}
    assert complaints(schema, {"a": "x"}) == []
    assert complaints(schema, {"a": "x"}, {}) == []
    assert complaints(schema, {"a": "y"}, {"a": "x"}) == ['spec.a: Invalid value: "y": is fixed']
    first = {"rule": "oldSelf.hasValue() || self == 'start'", "message": "must begin", "optionalOldSelf": True}
    schema["properties"] = {"a": {**TEXT, "x-kubernetes-validations": [first]}}
    assert complaints(schema, {"a": "x"}) == ['spec.a: Invalid value: "x": must begin']
    assert complaints(schema, {"a": "y"}, {"a": "start"}) == []


def test_a_message_may_be_computed() -> None:
    """messageExpression makes the text; where it fails the plain message stands."""
    rule = {"rule": "self < 3", "message": "plain", "messageExpression": "'got ' + string(self)"}
    assert complaints({**NUMBER, "x-kubernetes-validations": [rule]}, 5) == ["spec: Invalid value: 5: got 5"]
    broken = {**rule, "messageExpression": "'got ' + string(1 / 0)"}
    assert complaints({**NUMBER, "x-kubernetes-validations": [broken]}, 5) == ["spec: Invalid value: 5: plain"]


def test_a_rule_may_name_field_and_reason() -> None:
    """fieldPath and reason say where and what kind of mistake it is."""
    rule = {"rule": "has(self.k)", "message": "name k", "fieldPath": ".k", "reason": "FieldValueRequired"}
    assert complaints(ruled({"k": TEXT}, rule), {}) == ["spec.k: Required value: name k"]


def test_a_rule_that_fails_is_a_refusal_and_no_crash() -> None:
    """What goes wrong inside a rule is told with the rule."""
    (told,) = complaints(ruled({"k": TEXT}, {"rule": "self.k == 'a'"}), {})
    assert told == "spec: Invalid value: \"object\": no such key: k evaluating rule: self.k == 'a'"


def test_what_did_not_change_is_not_judged_again() -> None:
    """An old value that a stricter schema forbids may stay while other fields change; touched, it must be right."""
    schema = {"type": "object", "properties": {"size": {**NUMBER, "maximum": 5}, "note": TEXT}}
    assert complaints(schema, {"size": 9, "note": "new"}, {"size": 9, "note": "old"}) == []
    assert complaints(schema, {"size": 8, "note": "old"}, {"size": 9, "note": "old"}) != []
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "properties": {"name": TEXT, "size": {**NUMBER, "maximum": 5}}},
    }
    old = [{"name": "a", "size": 9}, {"name": "b", "size": 1}]
    assert complaints(keyed, [{"name": "b", "size": 2}, {"name": "a", "size": 9}], old) == []


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [("^a$", "a", True), ("^a$", "a\n", False), (r"^\$$", "$", True), ("^[$]+$", "$$", True), ("a|b$", "xb", True)],
)
def test_the_end_of_a_pattern_is_the_end_of_the_text(pattern: str, text: str, matches: bool) -> None:  # noqa: FBT001
    """As in Go: a newline at the end is not forgiven, and an escaped or bracketed dollar is a dollar."""
    schema = Schema({**TEXT, "pattern": pattern})
    assert schema.pattern is not None
    assert bool(schema.pattern.search(text)) is matches
    assert anchored("plain") == "plain"


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2026-01-01T00:00:00Z", "yesterday"),
        ("date", "2026-01-31", "2026-13-01"),
        ("duration", "1h30m", "5 parsecs"),
        ("ipv4", "10.0.0.1", "10.0.0"),
        ("ipv6", "fd00::1", "fd00::g"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("byte", "YWJj", "%%%"),
    ],
)
def test_formats_are_checked(name: str, good: str, bad: str) -> None:
    """Known formats judge; unknown ones let everything pass."""
    assert is_sound(name, good)
    assert not is_sound(name, bad)
    assert is_sound("of-our-own", bad)


def test_all_versions_show_one_object() -> None:
    """Written in one version, an object is read in another with that version's name; watches see the version asked for."""
    server = new_server()
    first = define(server, {"type": "object", "properties": {"a": NUMBER}}, versions=("v1", "v2"))
    second = server.resource("unit.test", "v2", "things")
    server.create(second, thing({"a": 1}, version="v2"), namespace="default")
    assert server.get(first, "t", namespace="default").object["apiVersion"] == "unit.test/v1"
    changed = thing({"a": 2}, version="v2", resourceVersion=str(server.revision))
    server.update(second, "t", changed, namespace="default")
    assert server.get(first, "t", namespace="default").object["spec"] == {"a": 2}
    with pytest.raises(NotFound):
        server.resource("unit.test", "v3", "things")


def test_a_kind_ends_when_its_last_object_is_gone() -> None:
    """A definition waits for objects that finalizers keep, and takes no new ones meanwhile."""
    server = new_server()
    resource = define(server, {"type": "object"})
    server.create(resource, thing({}, finalizers=["growth.dev/hold"]), namespace="default")
    definitions = server.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    _, gone = server.delete(definitions, "things.unit.test")
    assert not gone
    with pytest.raises(MethodNotAllowed):
        server.create(resource, thing({}, name="late"), namespace="default")
    watch = server.watch(resource, revision=str(server.revision))
    server.patch(resource, "t", {"metadata": {"finalizers": None}}, namespace="default")
    assert watch.closed
    with pytest.raises(NotFound):
        server.get(definitions, "things.unit.test")
    with pytest.raises(NotFound):
        server.resource("unit.test", "v1", "things")


def test_declared_fields_can_be_selected() -> None:
    """A custom kind is selected by the fields that its definition declares, and by no others."""
    server = new_server()
    body = definition({"type": "object", "properties": {"colour": TEXT, "size": NUMBER}})
    body["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": ".spec.colour"}]
    server.create(server.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions"), body)
    resource = server.resource("unit.test", "v1", "things")
    for name, colour in (("a", "red"), ("b", "green")):
        server.create(resource, thing({"colour": colour}, name=name), namespace="default")
    found = server.list(resource, fields="spec.colour!=red")
    assert [one.object["metadata"]["name"] for one in found.items] == ["b"]
    with pytest.raises(BadRequest, match=r"field label not supported: spec\.size"):
        server.list(resource, fields="spec.size=1")


def test_embedded_objects_keep_their_type_and_metadata() -> None:
    """What is declared as an embedded object has apiVersion, kind and metadata without saying so."""
    server = new_server()
    inner = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}
    resource = define(server, {"type": "object", "properties": {"template": inner}})
    template = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}, "odd": 1}
    made = server.create(resource, thing({"template": template}), namespace="default").object
    assert made["spec"]["template"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}


def test_defaults_fill_what_other_defaults_made() -> None:
    """A default object is itself filled in; defaults inside lists and maps apply to each member."""
    server = new_server()
    part = {"type": "object", "properties": {"n": {**NUMBER, "default": 7}}}
    resource = define(
        server,
        {
            "type": "object",
            "properties": {
                "nest": {**part, "default": {}},
                "list": {"type": "array", "items": part},
                "map": {"type": "object", "additionalProperties": part},
            },
        },
    )
    made = server.create(resource, thing({"list": [{}], "map": {"x": {}, "gone": None}}), namespace="default").object
    assert made["spec"] == {"list": [{"n": 7}], "map": {"x": {"n": 7}}, "nest": {"n": 7}}


def test_a_broken_definition_is_refused_naming_the_place() -> None:
    """Versions, names and schemas are checked before anything is served."""
    server = new_server()
    resource = server.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    body = definition({"type": "object"}, versions=("v1", "v2"))
    for version in body["spec"]["versions"]:
        version["storage"] = True
    with pytest.raises(Invalid, match="exactly one version marked as storage version"):
        server.create(resource, body)
    with pytest.raises(NotFound):
        server.resource("unit.test", "v1", "things")
