"""From a struct to a structural schema, as CustomResourceDefinitions want it: everything in place, no references, no
«or null».

The struct's types give the shape, its `Schema` annotations the rest. A field without a default is required.
"""

import copy
import datetime as dt
import types
import typing
from typing import Any, Final, Union

import msgspec

from growth.api.kinds import Json
from growth.api.meta import ObjectMeta, Struct
from growth.api.schema import UNSET, Schema

# As Kubernetes' own CRDs check a quantity; the units that it leaves out are none.
QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

_SCALARS: Final[dict[Any, Json]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    dt.datetime: {"type": "string", "format": "date-time"},
}

_KEYWORDS: Final = {
    "description": "description",
    "pattern": "pattern",
    "format": "format",
    "minimum": "minimum",
    "maximum": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "max_properties": "maxProperties",
    "list_type": "x-kubernetes-list-type",
    "map_type": "x-kubernetes-map-type",
}


def root_schema(struct: type[Struct]) -> Json:
    """The schema of a whole object; `metadata` is the server's own business."""
    schema = _struct(struct)
    properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, **schema["properties"]}
    return {**schema, "properties": properties}


def _struct(struct: type[Struct]) -> Json:
    own: Schema = getattr(struct, "schema", None) or Schema()
    hints = typing.get_type_hints(struct, include_extras=True)
    properties: Json = {}
    required = []
    for field in msgspec.structs.fields(struct):
        marks = _marks(hints[field.name])
        properties[field.encode_name] = _type(hints[field.name])
        wanted = [mark.required for mark in marks if mark.required is not None]
        if wanted[-1] if wanted else field.required:
            required.append(field.encode_name)
    out: Json = {"type": "object", "properties": {**properties, **copy.deepcopy(own.unread)}}
    if required:
        out["required"] = required
    _apply(out, own)
    if "description" not in out and struct.__doc__ and struct.__doc__ != Struct.__doc__:
        out["description"] = " ".join(struct.__doc__.split())
    return out


def _marks(hint: Any) -> list[Schema]:
    return [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Schema)]


def _type(hint: Any) -> Json:
    marks = _marks(hint)
    if marks:
        out = _type(typing.get_args(hint)[0])
        for mark in marks:
            _apply(out, mark)
        return out
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is ObjectMeta:
        return {"type": "object"}
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    if origin in (Union, types.UnionType):
        return _union([argument for argument in arguments if argument is not type(None)])
    if origin is tuple:
        return {"type": "array", "items": _type(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(arguments[1])}
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _struct(hint)
    message = f"no structural schema for {hint!r}"
    raise TypeError(message)


def _union(options: list[Any]) -> Json:
    if len(options) == 1:
        return _type(options[0])
    either: Json = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    if set(options) == {str, int, float}:
        return {**either, "pattern": QUANTITY}
    if set(options) == {str, int}:
        return either
    message = f"no structural schema for a choice of {options!r}"
    raise TypeError(message)


def _apply(out: Json, schema: Schema) -> None:
    """Lays `schema` over what is there: rules add up, of the rest the later counts."""
    for attribute, keyword in _KEYWORDS.items():
        value = getattr(schema, attribute)
        if value not in ("", None):
            out[keyword] = value
    if schema.enum:
        out["enum"] = list(schema.enum)
    if schema.list_map_keys:
        out["x-kubernetes-list-map-keys"] = list(schema.list_map_keys)
    if schema.default is not UNSET:
        out["default"] = copy.deepcopy(schema.default)
    if schema.items is not None:
        _apply(out["items" if out["type"] == "array" else "additionalProperties"], schema.items)
    if schema.rules:
        rules = out.setdefault("x-kubernetes-validations", [])
        for rule in schema.rules:
            rules.append({"rule": rule.rule, "message": rule.message})
            if rule.field:
                rules[-1]["fieldPath"] = rule.field
