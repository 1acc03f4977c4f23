"""What can be wrong with one field of an object, worded as the real server words it."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any


class Undecodable(Exception):
    """An object that cannot be read as what it should be. A request's body is then a bad one, a patch an invalid one."""


@dataclasses.dataclass(frozen=True, slots=True)
class FieldError:
    """One field that breaks a rule; `reason` is the cause's reason in the Status, `detail` the text after the path."""

    field: str
    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.field}: {self.detail}"


def quoted(value: Any) -> str:
    """The value as it is shown in a message: strings in quotes, numbers and truth bare, the rest as JSON."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None:
        return "null"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def invalid_value(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {quoted(value)}: {detail}")


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(field, "FieldValueRequired", "Required value" + (f": {detail}" if detail else ""))


def forbidden_value(field: str, detail: str) -> FieldError:
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {detail}")


def not_supported(field: str, value: Any, supported: Sequence[str]) -> FieldError:
    options = ", ".join(json.dumps(option, ensure_ascii=False) for option in supported)
    return FieldError(
        field, "FieldValueNotSupported", f"Unsupported value: {quoted(value)}: supported values: {options}"
    )


def not_found(field: str, value: Any) -> FieldError:
    return FieldError(field, "FieldValueNotFound", f"Not found: {quoted(value)}")


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(field, "FieldValueDuplicate", f"Duplicate value: {quoted(value)}")


def too_long(field: str, limit: int) -> FieldError:
    return FieldError(field, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def too_many(field: str, count: int, limit: int) -> FieldError:
    return FieldError(field, "FieldValueTooMany", f"Too many: {count}: must have at most {limit} items")
