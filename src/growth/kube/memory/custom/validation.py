"""Validation by a structural schema, with the real server's words and its order: schema, lists, then rules.

A change is looked at only where it changed something: a value that is equal to the old one is not held to its schema
again (the server calls it ratcheting).
"""

from collections.abc import Iterator
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.memory.custom import formats
from growth.kube.memory.custom.rules import Scope
from growth.kube.memory.custom.schema import ABSENT, Schema
from growth.kube.memory.fields import (
    FieldError,
    duplicate,
    invalid_value,
    not_supported,
    required,
    too_long,
    too_many,
)

NOT_CHECKED: Final = FieldError(
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)
# What makes an object too broken to evaluate rules on.
_BLOCKING: Final = frozenset(
    {
        "FieldValueRequired",
        "FieldValueTypeInvalid",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueNotSupported",
    }
)


def errors(schema: Schema, value: Json, old: Any = ABSENT) -> Iterator[FieldError]:
    """All that is wrong with a whole object."""
    found = [*_check(schema, value, old, ""), *_list_errors(schema, value, old, "")]
    yield from found
    if not schema.ruled:
        return
    if any(one.reason in _BLOCKING for one in found):
        yield NOT_CHECKED
    else:
        yield from _rule_errors(schema, value, old, "")


def type_name(value: Any) -> str:
    """A JSON value's type in the words of JSON schema."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _check(schema: Schema, value: Any, old: Any, path: str) -> Iterator[FieldError]:
    if value is old or (old is not ABSENT and value == old):
        return
    if value is None and (schema.nullable or (not schema.type and not schema.int_or_string)):
        return
    expected = _expected(schema, value)
    if expected:
        given = type_name(value)
        text = f'Invalid value: "{given}": {path} in body must be of type {expected}: "{given}"'
        yield FieldError(path, "FieldValueTypeInvalid", text)
    if schema.enum is not None and value not in schema.enum:
        yield not_supported(path, value, [str(one) for one in schema.enum])
    if expected:
        return
    if schema.alternatives:
        yield from _alternative_errors(schema, value, path)
    match value:
        case str():
            yield from _string_errors(schema, value, path)
        case bool() | None:
            pass
        case int() | float():
            yield from _number_errors(schema, value, path)
        case list():
            yield from _array_errors(schema, value, old, path)
        case dict():
            yield from _object_errors(schema, value, old, path)


def _expected(schema: Schema, value: Any) -> str:
    """The type that the value should have had, or nothing where it has it."""
    if schema.int_or_string:
        fine = isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
        return "" if fine else "integer,string"
    match schema.type:
        case "":
            fine = True
        case "integer":
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            fine = whole and not isinstance(value, bool)
        case "number":
            fine = isinstance(value, int | float) and not isinstance(value, bool)
        case wanted:
            fine = type_name(value) == wanted
    return "" if fine else schema.type


def _string_errors(schema: Schema, value: str, path: str) -> Iterator[FieldError]:
    written = schema.written
    if "maxLength" in written and len(value) > written["maxLength"]:
        yield too_long(path, written["maxLength"])
    elif "minLength" in written and len(value) < written["minLength"]:
        text = f"{path} in body should be at least {written['minLength']} chars long"
        yield invalid_value(path, value, text)
    elif schema.pattern is not None and not schema.pattern.search(value):
        yield invalid_value(path, value, f"{path} in body should match '{written['pattern']}'")
    name = written.get("format")
    if name and not formats.is_sound(name, value):
        text = f'{path} in body must be of type {name}: "{value}"'
        yield FieldError(path, "FieldValueTypeInvalid", f'Invalid value: "{value}": {text}')


def _number_errors(schema: Schema, value: float, path: str) -> Iterator[FieldError]:
    written = schema.written
    name = written.get("format")
    if name in formats.INTEGER_BOUNDS and isinstance(value, int):
        low, high = formats.INTEGER_BOUNDS[name]
        if not low <= value <= high:
            yield invalid_value("<nil>", "", f"Checked value must be of type integer with format {name} in {path}")
    if "maximum" in written:
        limit, exclusive = written["maximum"], written.get("exclusiveMaximum")
        if value > limit or (exclusive and value == limit):
            words = "less than" if exclusive else "less than or equal to"
            yield invalid_value(path, value, f"{path} in body should be {words} {_number(limit)}")
    if "minimum" in written:
        limit, exclusive = written["minimum"], written.get("exclusiveMinimum")
        if value < limit or (exclusive and value == limit):
            words = "greater than" if exclusive else "greater than or equal to"
            yield invalid_value(path, value, f"{path} in body should be {words} {_number(limit)}")
    if "multipleOf" in written:
        ratio = value / written["multipleOf"]
        if abs(ratio - round(ratio)) > 1e-9:
            yield invalid_value(path, value, f"{path} in body should be a multiple of {_number(written['multipleOf'])}")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _array_errors(schema: Schema, value: list[Any], old: Any, path: str) -> Iterator[FieldError]:
    written = schema.written
    if "maxItems" in written and len(value) > written["maxItems"]:
        yield too_many(path, len(value), written["maxItems"])
    if "minItems" in written and len(value) < written["minItems"]:
        yield invalid_value(path, len(value), f"{path} in body should have at least {written['minItems']} items")
    if schema.items is not None:
        if schema.items.bare_text and all(type(item) is str for item in value):
            return
        for index, item in enumerate(value):
            yield from _check(schema.items, item, schema.old_item(item, old), f"{path}[{index}]")


def _object_errors(schema: Schema, value: Json, old: Any, path: str) -> Iterator[FieldError]:
    written = schema.written
    for name in schema.required:
        if name not in value:
            yield required(_join(path, name))
    before = old if isinstance(old, dict) else {}
    for name, item in value.items():
        member = schema.member(name)
        if member is not None:
            yield from _check(member, item, before.get(name, ABSENT), _join(path, name))
    if "maxProperties" in written and len(value) > written["maxProperties"]:
        yield too_many(path, len(value), written["maxProperties"])
    if "minProperties" in written and len(value) < written["minProperties"]:
        text = f"{path} in body should have at least {written['minProperties']} properties"
        yield invalid_value(path, len(value), text)


def _alternative_errors(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    """allOf, anyOf, oneOf and not; the server names no field for them, only the path in the text."""
    for name, options in schema.alternatives.items():
        results = [list(_check(option, value, ABSENT, path)) for option in options]
        matching = sum(1 for wrong in results if not wrong)
        if name == "allOf" and matching < len(options):
            yield invalid_value("<nil>", "", f'"{path}" must validate all the schemas (allOf)')
            yield from next(wrong for wrong in results if wrong)
        elif name == "anyOf" and not matching:
            yield invalid_value("<nil>", "", f'"{path}" must validate at least one schema (anyOf)')
            yield from results[0]
        elif name == "oneOf" and matching != 1:
            count = f"{matching} valid alternatives" if matching else "none valid"
            text = f'"{path}" must validate one and only one schema (oneOf). Found {count}'
            yield invalid_value("<nil>", "", text)
            yield from () if matching else results[0]
        elif name == "not" and matching:
            yield invalid_value("<nil>", "", f'"{path}" must not validate the schema (not)')


def _list_errors(schema: Schema, value: Any, old: Any, path: str) -> Iterator[FieldError]:
    """Items that are there twice, in lists that are sets or maps."""
    if value is old:
        return
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for name, item in value.items():
            member = schema.member(name)
            if member is not None:
                yield from _list_errors(member, item, before.get(name, ABSENT), _join(path, name))
    elif isinstance(value, list) and (
        schema.list_type in {"map", "set"} or (schema.items is not None and schema.items.structured)
    ):
        seen: list[Any] = []
        for index, item in enumerate(value):
            identity = _identity(schema, item)
            if identity is not ABSENT:
                if identity in seen:
                    yield duplicate(f"{path}[{index}]", identity)
                seen.append(identity)
            if schema.items is not None:
                yield from _list_errors(schema.items, item, schema.old_item(item, old), f"{path}[{index}]")


def _identity(schema: Schema, item: Any) -> Any:
    if schema.list_type == "set":
        return item
    if schema.list_type == "map" and isinstance(item, dict):
        return {name: item[name] for name in schema.keys if name in item}
    return ABSENT


def _rule_errors(schema: Schema, value: Any, old: Any, path: str) -> Iterator[FieldError]:
    if value is old or (old is not ABSENT and value == old):
        return
    if schema.rules and value is not None:
        has_old = old is not ABSENT
        before = schema.in_cel(old) if has_old else None
        functions = any(rule.functions for rule in schema.rules)
        scope = Scope(schema.in_cel(value), before, has_old=has_old, functions=functions)
        for rule in schema.rules:
            yield from rule.errors(scope, shown=value, path=path)
    if isinstance(value, dict):
        was = old if isinstance(old, dict) else {}
        for name, item in value.items():
            member = schema.member(name)
            if member is not None and member.ruled:
                yield from _rule_errors(member, item, was.get(name, ABSENT), _join(path, name))
    elif isinstance(value, list) and schema.items is not None and schema.items.ruled:
        for index, item in enumerate(value):
            yield from _rule_errors(schema.items, item, schema.old_item(item, old), f"{path}[{index}]")
