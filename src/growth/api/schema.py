"""What an API server is to check of a field, written beside the field.

A `Schema` stands in a field's `Annotated[...]`; `growth.api.crds` turns it into the CustomResourceDefinition. Decoding
ignores it on purpose: the server guards what is written, while we must be able to read whatever is stored, also objects
that are older or newer than our rules.
"""

import dataclasses
from typing import Any, Final

from growth.api.kinds import Json

UNSET: Final = object()


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule. `message` says what is wrong and what to do; `field` is where, as a path below the annotated place."""

    rule: str
    message: str
    field: str = ""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """Checks and defaults of one field or, as the class variable `schema`, of a whole struct.

    Several in one `Annotated` are merged: rules add up, of the rest the last that was given counts. `required` says
    otherwise than «a field without a default is required». `unread` are properties that the server is to keep although
    our struct has no such field.
    """

    description: str = ""
    _: dataclasses.KW_ONLY
    default: Any = UNSET
    required: bool | None = None
    enum: tuple[str, ...] = ()
    pattern: str = ""
    format: str = ""
    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    max_properties: int | None = None
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""
    rules: tuple[Rule, ...] = ()
    unread: Json = dataclasses.field(default_factory=dict)
    items: "Schema | None" = None
    """Of a list's items or a map's values, where their type cannot carry it."""
