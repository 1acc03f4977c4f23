"""Structural schemas, compiled once into `Schema` nodes: pruning, defaulting, and how rules see a value."""

import copy
import re
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.memory.custom.rules import Rule, as_duration, as_time, compiled, escaped

ABSENT: Final = object()
_SERVERS_OWN: Final = frozenset({"apiVersion", "kind", "metadata"})


def anchored(pattern: str) -> str:
    """The pattern with `$` meaning the very end, as in Go; Python's also matches before a last newline."""
    result: list[str] = []
    in_class = False
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            result.append(pattern[position : position + 2])
            position += 2
            continue
        if character == "[" and not in_class:
            in_class = True
        elif character == "]" and in_class:
            in_class = False
        result.append(r"\Z" if character == "$" and not in_class else character)
        position += 1
    return "".join(result)


class Schema:
    """One node of a structural schema. `root` is the whole object's: its metadata is the server's affair."""

    __slots__ = (
        "additional",
        "alternatives",
        "bare_text",
        "convert",
        "default",
        "embedded",
        "enum",
        "int_or_string",
        "items",
        "keys",
        "list_type",
        "nullable",
        "pattern",
        "preserves",
        "properties",
        "required",
        "root",
        "ruled",
        "rules",
        "structured",
        "type",
        "written",
    )

    def __init__(self, written: Json, *, root: bool = False) -> None:
        self.written = written
        self.root = root
        self.type: str = written.get("type") or ""
        self.nullable = bool(written.get("nullable"))
        self.int_or_string = bool(written.get("x-kubernetes-int-or-string"))
        self.preserves = bool(written.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(written.get("x-kubernetes-embedded-resource"))
        self.list_type: str = written.get("x-kubernetes-list-type") or ""
        self.keys: tuple[str, ...] = tuple(written.get("x-kubernetes-list-map-keys") or ())
        self.default = written.get("default", ABSENT)
        self.enum: list[Any] | None = written.get("enum")
        self.required: tuple[str, ...] = tuple(written.get("required") or ())
        self.pattern = re.compile(anchored(written["pattern"])) if written.get("pattern") else None
        self.properties = {
            name: Schema(inner)
            for name, inner in (written.get("properties") or {}).items()
            if not (root and name in _SERVERS_OWN)
        }
        additional = written.get("additionalProperties")
        self.additional: Schema | bool = Schema(additional) if isinstance(additional, dict) else bool(additional)
        self.items = Schema(written["items"]) if isinstance(written.get("items"), dict) else None
        self.alternatives = {
            name: [Schema(inner) for inner in written[name]]
            for name in ("allOf", "anyOf", "oneOf")
            if written.get(name)
        }
        if isinstance(written.get("not"), dict):
            self.alternatives["not"] = [Schema(written["not"])]
        self.rules: tuple[Rule, ...] = tuple(compiled(rule) for rule in written.get("x-kubernetes-validations") or ())
        members: list[Schema] = list(self.properties.values())
        if self.items is not None:
            members.append(self.items)
        if isinstance(self.additional, Schema):
            members.append(self.additional)
        # Whether any text will do: then a list of texts needs no look at each.
        limits = {"enum", "pattern", "minLength", "maxLength", "format", "allOf", "anyOf", "oneOf", "not"}
        self.bare_text = self.type == "string" and not self.nullable and limits.isdisjoint(written)
        # Whether there is anything below to prune, to fill in or to find twice: most lists hold plain texts.
        self.structured = self.type not in {"string", "integer", "number", "boolean"} or self.int_or_string
        self.ruled: bool = bool(self.rules) or any(member.ruled for member in members)
        self.convert: bool = (
            self.type == "number"
            or written.get("format") in {"date-time", "duration"}
            or any(escaped(name) != name for name in self.properties)
            or any(member.convert for member in members)
        )

    def member(self, name: str) -> "Schema | None":
        """The schema of a member of an object, where there is one."""
        found = self.properties.get(name)
        if found is None and isinstance(self.additional, Schema):
            return self.additional
        return found

    def old_item(self, item: Any, old: Any) -> Any:
        """What an item was before, where the list says how to find it."""
        if self.list_type != "map" or not isinstance(old, list) or not isinstance(item, dict):
            return ABSENT
        key = [item.get(name) for name in self.keys]
        for one in old:
            if isinstance(one, dict) and [one.get(name) for name in self.keys] == key:
                return one
        return ABSENT

    def prune(self, value: Any, path: str = "", dropped: list[str] | None = None) -> None:
        """Removes fields that the schema does not know, in place, noting their paths."""
        if isinstance(value, dict):
            for name in list(value):
                if (self.root or self.embedded) and name in _SERVERS_OWN:
                    continue
                member = self.member(name)
                place = f"{path}.{name}" if path else name
                if member is not None:
                    member.prune(value[name], place, dropped)
                elif not (self.preserves or self.additional is True or self.int_or_string):
                    del value[name]
                    if dropped is not None:
                        dropped.append(place)
        elif isinstance(value, list) and self.items is not None and self.items.structured:
            for index, item in enumerate(value):
                self.items.prune(item, f"{path}[{index}]", dropped)

    def fill(self, value: Any) -> None:
        """Drops nulls that the schema does not allow, then fills in defaults, in place."""
        if isinstance(value, dict):
            for name, member in self.properties.items():
                there = value.get(name, ABSENT)
                if there is None and not member.nullable:
                    del value[name]
                    there = ABSENT
                if there is ABSENT and member.default is not ABSENT:
                    there = value[name] = copy.deepcopy(member.default)
                if there is not ABSENT:
                    member.fill(there)
            if isinstance(self.additional, Schema):
                self._fill_additional(value, self.additional)
        elif isinstance(value, list) and self.items is not None and self.items.structured:
            for item in value:
                self.items.fill(item)

    def _fill_additional(self, value: Json, member: "Schema") -> None:
        for name in [name for name in value if name not in self.properties]:
            if value[name] is None and not member.nullable:
                if member.default is ABSENT:
                    del value[name]
                    continue
                value[name] = copy.deepcopy(member.default)
            member.fill(value[name])

    def in_cel(self, value: Any) -> Any:
        """The value as rules see it."""
        if not self.convert:
            return value
        match value:
            case dict():
                return {
                    escaped(name) if name in self.properties else name: self._member_in_cel(name, item)
                    for name, item in value.items()
                }
            case list():
                return [self.items.in_cel(item) for item in value] if self.items is not None else value
            case bool() | None:
                return value
            case int():
                return float(value) if self.type == "number" else value
            case str():
                match self.written.get("format"):
                    case "date-time":
                        return as_time(value)
                    case "duration":
                        return as_duration(value)
        return value

    def _member_in_cel(self, name: str, item: Any) -> Any:
        member = self.member(name)
        return item if member is None else member.in_cel(item)
