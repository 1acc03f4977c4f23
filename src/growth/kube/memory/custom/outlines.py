"""The outline of a CustomResourceDefinition: which types its fields have, so that the rest may trust what it finds."""

from typing import Any

import msgspec

from growth.api.kinds import Json
from growth.kube.memory.builtin.shapes import Flag, Int, Outline, Text, read

Number = int | float | None


class RuleOutline(Outline):
    rule: str = ""
    message: str = ""
    message_expression: str = ""
    reason: Text = None
    field_path: str = ""
    optional_old_self: Flag = None


class SchemaOutline(Outline):
    type: str = ""
    format: str = ""
    pattern: str = ""
    properties: "dict[str, SchemaOutline] | None" = None
    items: "SchemaOutline | None" = None
    additional_properties: "bool | SchemaOutline | None" = None
    all_of: "list[SchemaOutline] | None" = None
    any_of: "list[SchemaOutline] | None" = None
    one_of: "list[SchemaOutline] | None" = None
    not_: "SchemaOutline | None" = msgspec.field(default=None, name="not")
    required: list[str] | None = None
    enum: list[Any] | None = None
    nullable: Flag = None
    unique_items: Flag = None
    minimum: Number = None
    maximum: Number = None
    exclusive_minimum: Flag = None
    exclusive_maximum: Flag = None
    multiple_of: Number = None
    min_length: Int = None
    max_length: Int = None
    min_items: Int = None
    max_items: Int = None
    min_properties: Int = None
    max_properties: Int = None
    int_or_string: Flag = msgspec.field(default=None, name="x-kubernetes-int-or-string")
    preserves: Flag = msgspec.field(default=None, name="x-kubernetes-preserve-unknown-fields")
    embedded: Flag = msgspec.field(default=None, name="x-kubernetes-embedded-resource")
    list_type: Text = msgspec.field(default=None, name="x-kubernetes-list-type")
    list_keys: list[str] | None = msgspec.field(default=None, name="x-kubernetes-list-map-keys")
    rules: list[RuleOutline] | None = msgspec.field(default=None, name="x-kubernetes-validations")


class ValidationOutline(Outline):
    open_api: SchemaOutline | None = msgspec.field(default=None, name="openAPIV3Schema")


class ColumnOutline(Outline):
    name: str = ""
    type: str = ""
    json_path: str = ""
    format: str = ""
    description: str = ""
    priority: int = 0


class ScaleOutline(Outline):
    spec_replicas_path: str = ""
    status_replicas_path: str = ""
    label_selector_path: Text = None


class SubresourcesOutline(Outline):
    status: Json | None = None
    scale: ScaleOutline | None = None


class SelectableOutline(Outline):
    json_path: str = ""


class VersionOutline(Outline):
    name: str = ""
    served: bool = False
    storage: bool = False
    schema: ValidationOutline | None = None
    subresources: SubresourcesOutline | None = None
    additional_printer_columns: list[ColumnOutline] | None = None
    selectable_fields: list[SelectableOutline] | None = None


class NamesOutline(Outline):
    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: list[str] | None = None
    categories: list[str] | None = None


class SpecOutline(Outline):
    group: str = ""
    scope: str = ""
    names: NamesOutline | None = None
    versions: list[VersionOutline] | None = None


class DefinitionOutline(Outline):
    spec: SpecOutline | None = None
    status: Json | None = None


def check(new: Json) -> None:
    """`Undecodable` where a field has the wrong type."""
    read(new, DefinitionOutline, "CustomResourceDefinition")
