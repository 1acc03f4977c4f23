"""The fields of built-in kinds: their names, types and protobuf numbers, from `fields.txt`.

`tools/fieldnumbers.py` writes that file: one message a line, each field as `number=name:type`, where `s i b d y` are
text, integers, truth, numbers and bytes, `*` is a list of, `%` a map from text to, and `~` a member whose fields stand
in JSON beside those of its holder.
"""

import functools
import importlib.resources
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.memory.fields import Undecodable

Fields = dict[int, tuple[str, str]]

_SCALARS: Final[dict[str, tuple[type, ...]]] = {
    "s": (str,),
    "i": (int,),
    "b": (bool,),
    "d": (int, float),
    "y": (str,),
    "Time": (str,),
    "MicroTime": (str,),
    "Quantity": (str, int, float),
    "IntOrString": (int, str),
    "FieldsV1": (dict,),
}
_NAMES: Final = {"s": "string", "i": "integer", "b": "boolean", "d": "number", "y": "base64 string"}
# Truths that the server leaves out when they are false.
_OMITTED_WHEN_FALSE: Final = frozenset({"unschedulable", "hostNetwork", "hostPID", "hostIPC"})


@functools.cache
def messages() -> dict[str, Fields]:
    """The fields of each message by their number."""
    text = importlib.resources.files("growth.kube.memory").joinpath("fields.txt").read_text(encoding="utf-8")
    found: dict[str, Fields] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(": ")
        fields: Fields = {}
        for part in rest.split():
            number, _, field = part.partition("=")
            label, _, kind = field.partition(":")
            fields[int(number)] = (label, kind)
        found[name] = fields
    return found


@functools.cache
def types_of(message: str) -> dict[str, str]:
    """The type of each JSON field of a message, with what is inlined."""
    found: dict[str, str] = {}
    for label, kind in messages()[message].values():
        if kind.startswith("~"):
            found.update(types_of(kind[1:]))
        else:
            found[label] = kind
    return found


def conform(kind: str, new: Json, old: Json | None) -> list[str]:
    """Drops, in place, nulls, empty lists and maps, and fields that the kind does not have; gives the paths of the latter.

    `Undecodable` where a field has the wrong type. Metadata, and what is the very same as in `old`, is not looked at.
    """
    dropped: list[str] = []
    if kind not in messages():
        return dropped
    types = types_of(kind)
    for field in list(new):
        if field in {"apiVersion", "kind", "metadata"} or (old is not None and new[field] is old.get(field)):
            continue
        if field not in types:
            del new[field]
            dropped.append(field)
        elif new[field] is None or (new[field] in ([], {}) and types[field][0] in "*%"):
            del new[field]
        else:
            _conform(types[field], new[field], field, kind, dropped)
    return dropped


def _conform(kind: str, value: Any, path: str, root: str, dropped: list[str]) -> None:
    code = kind[0]
    if code == "*":
        if not isinstance(value, list):
            raise _mismatch(root, path, "array", value)
        for index, item in enumerate(value):
            _conform(kind[1:], item, f"{path}[{index}]", root, dropped)
    elif code == "%":
        if not isinstance(value, dict):
            raise _mismatch(root, path, "map", value)
        for name, item in value.items():
            if item is None and kind == "%s":
                value[name] = ""  # Go's zero
            else:
                _conform(kind[1:], item, f"{path}.{name}", root, dropped)
    elif kind in _SCALARS:
        expected = _SCALARS[kind]
        if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
            whole = isinstance(value, float) and value.is_integer() and kind == "i"
            if not whole:
                raise _mismatch(root, path, _NAMES.get(kind, kind), value)
    elif kind not in messages():
        return
    elif not isinstance(value, dict):
        raise _mismatch(root, path, kind, value)
    else:
        _conform_members(kind, value, path, root, dropped)


def _conform_members(kind: str, value: Json, path: str, root: str, dropped: list[str]) -> None:
    types = types_of(kind)
    for name in list(value):
        item = value[name]
        inner = types.get(name)
        if inner is None:
            if not (kind == "ObjectMeta" or name in {"apiVersion", "kind"}):
                dropped.append(f"{path}.{name}")
                del value[name]
        elif item is None or (item in ([], {}) and inner[0] in "*%") or (item is False and name in _OMITTED_WHEN_FALSE):
            del value[name]
        else:
            _conform(inner, item, f"{path}.{name}", root, dropped)


def _mismatch(root: str, path: str, expected: str, value: Any) -> Undecodable:
    given = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
    shown = given.get(type(value), "null")
    return Undecodable(
        f'{root} in version "v1" cannot be handled as a {root}: json: cannot unmarshal {shown} into field {path} of '
        f"type {expected}"
    )
