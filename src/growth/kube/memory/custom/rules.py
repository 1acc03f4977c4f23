"""The CEL rules of a schema (`x-kubernetes-validations`).

Values are handed to CEL as the API server does: names that CEL cannot write are escaped (`foo-bar` is
`foo__dash__bar`, `in` is `__in__`), date-times and durations become CEL's own types, and an integer in a field of type
number becomes a double. Rules are parsed but not type-checked when the CRD is created, and there is no cost budget:
both refuse CRDs on the real server only. Quantity, URL and IP functions are not offered.
"""

import dataclasses
import datetime as dt
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import cel
from cel.stdlib import STDLIB_FUNCTIONS

from growth.api.kinds import Json
from growth.kube.memory.fields import FieldError, quoted
from growth.units.duration import Duration
from growth.units.timestamp import parse_time

_REASONS: Final = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}
_RESERVED: Final = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    }
)
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED: Final = re.compile(r"__|[./-]")


def escaped(name: str) -> str:
    """A property's name as a rule writes it."""
    if name in _RESERVED:
        return f"__{name}__"
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)


def _is_sorted(items: list[Any]) -> bool:
    return all(left <= right for left, right in itertools.pairwise(items))


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in re.finditer(pattern, text)]
    return found if limit < 0 else found[:limit]


def _index_of(where: Any, what: Any, offset: int = 0) -> int:
    if isinstance(where, str):
        return where.find(what, offset)
    return where.index(what) if what in where else -1


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **STDLIB_FUNCTIONS,
    "isSorted": _is_sorted,
    "find": _find,
    "findAll": _find_all,
    "indexOf": _index_of,
}


class RuleError(ValueError):
    """A rule that cannot be parsed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """One compiled rule; `field` is relative to the value that carries it."""

    text: str
    program: cel.Program
    message: str
    message_program: cel.Program | None
    reason: str
    field: str
    transition: bool
    optional_old: bool
    functions: bool  # whether it calls what CEL's core does not have

    def errors(self, value: Any, old: Any, *, has_old: bool, shown: Any, path: str) -> Iterator[FieldError]:
        """What the rule has to say; `value` and `old` are already in CEL's terms."""
        if self.transition and not has_old and not self.optional_old:
            return
        variables: dict[str, Any] = {"self": value}
        if self.optional_old:
            variables["oldSelf"] = cel.OptionalValue.of(old) if has_old else cel.OptionalValue.none()
        elif self.transition:
            variables["oldSelf"] = old
        context = cel.Context(variables=variables, functions=_FUNCTIONS) if self.functions else variables
        try:
            holds = self.program.execute(context)
        except Exception as error:  # noqa: BLE001  whatever the rule does wrong is the object's refusal
            text = f"{_reported(error)} evaluating rule: {self.message or self.text}"
            value_text = "object" if isinstance(shown, dict) else "array" if isinstance(shown, list) else shown
            yield FieldError(path, "FieldValueInvalid", f"Invalid value: {quoted(value_text)}: {text}")
            return
        if holds is True:
            return
        yield self._failure(context, shown, path + self.field)

    def _failure(self, context: Any, shown: Any, place: str) -> FieldError:
        message = self.message
        if self.message_program is not None:
            try:
                made = self.message_program.execute(context)
            except Exception:  # noqa: BLE001  the plain message stands in
                made = ""
            if isinstance(made, str) and made.strip() and "\n" not in made:
                message = made
        message = message or f"failed rule: {self.text}"
        label = _REASONS[self.reason]
        plain = self.reason in {"FieldValueForbidden", "FieldValueRequired"} or isinstance(shown, dict | list)
        return FieldError(
            place, self.reason, f"{label}: {message}" if plain else f"{label}: {quoted(shown)}: {message}"
        )


def _reported(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"no such key: {error.args[0]}"
    return str(error).partition("\n")[0]


def compiled(written: Json) -> Rule:
    """A rule as a schema writes it; `RuleError` where CEL cannot parse it."""
    text = str(written.get("rule") or "")
    try:
        program = cel.compile(text)
        expression = written.get("messageExpression")
        message_program = cel.compile(expression) if expression else None
    except ValueError as error:
        raise RuleError(str(error)) from error
    used = {*program.functions(), *(message_program.functions() if message_program is not None else ())}
    return Rule(
        text=text.strip(),
        program=program,
        message=str(written.get("message") or "").strip(),
        message_program=message_program,
        reason=str(written.get("reason") or "FieldValueInvalid"),
        field=str(written.get("fieldPath") or ""),
        transition="oldSelf" in program.variables(),
        optional_old=bool(written.get("optionalOldSelf")),
        functions=any(name in _FUNCTIONS or "." in name for name in used) or "sets" in program.variables(),
    )


def as_time(text: str) -> dt.datetime | str:
    """A date-time in CEL's terms; what is none stays text."""
    try:
        return parse_time(text)
    except ValueError:
        return text


def as_duration(text: str) -> dt.timedelta | str:
    """A duration in CEL's terms; what is none stays text."""
    try:
        return Duration.parse(text).timedelta
    except ValueError:
        return text
