"""The CEL rules of a schema (`x-kubernetes-validations`).

Values are handed to CEL as the API server does: names that CEL cannot write are escaped (`foo-bar` is
`foo__dash__bar`, `in` is `__in__`), date-times and durations become CEL's own types, and an integer in a field of type
number becomes a double. When a CRD is created its rules are parsed and the fields of `self` looked up; types are not
checked further and there is no cost budget, for which the real server refuses some CRDs. The functions of URLs, IP
addresses and formats are not offered.
"""

import dataclasses
import datetime as dt
import re
from collections.abc import Iterator
from typing import Any, Final

import cel

from growth.api.kinds import Json
from growth.kube.memory.custom.library import FUNCTIONS
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


class Scope:
    """What the rules of one value see, in CEL's terms. Handing a value to CEL costs far more than a rule: once for all."""

    __slots__ = ("_contexts", "_functions", "_old", "_value", "has_old")

    def __init__(self, value: Any, old: Any, *, has_old: bool, functions: bool) -> None:
        self._value = value
        self._old = old
        self.has_old = has_old
        self._functions = functions
        self._contexts: dict[bool, cel.Context] = {}

    def context(self, *, optional_old: bool) -> cel.Context:
        """The variables `self` and `oldSelf`, the latter an optional value for rules that can do without it."""
        found = self._contexts.get(optional_old)
        if found is None:
            variables = {"self": self._value}
            if optional_old:
                variables["oldSelf"] = cel.OptionalValue.of(self._old) if self.has_old else cel.OptionalValue.none()
            elif self.has_old:
                variables["oldSelf"] = self._old
            found = cel.Context(variables=variables, functions=FUNCTIONS if self._functions else None)
            self._contexts[optional_old] = found
        return found


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

    def errors(self, scope: "Scope", *, shown: Any, path: str) -> Iterator[FieldError]:
        """What the rule has to say of the value in `scope`; `shown` is the value as the object has it."""
        if self.transition and not scope.has_old and not self.optional_old:
            return
        context = scope.context(optional_old=self.optional_old)
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
        functions=any(name in FUNCTIONS or "." in name for name in used) or "sets" in program.variables(),
    )


_LITERAL: Final = re.compile(r"""r?('([^'\\\\]|\\\\.)*'|"([^"\\\\]|\\\\.)*")""")
_SELECTED: Final = re.compile(r"(?<![\w.])(?:self|oldSelf)((?:\.[A-Za-z_]\w*)+)(\s*\()?")
_EVERYWHERE: Final = frozenset({"apiVersion", "kind", "metadata"})


def unknown_field(text: str, schema: Json, *, root: bool) -> str:
    """The first field of `self` in a rule that the schema does not declare, or nothing."""
    for path, call in _SELECTED.findall(_LITERAL.sub("''", text)):
        names: list[str] = path[1:].split(".")
        if call:
            names.pop()
        level = schema
        for index, name in enumerate(names):
            properties = level.get("properties")
            if root and index == 0 and name in _EVERYWHERE:
                break
            if (
                level.get("type") != "object"
                or level.get("additionalProperties")
                or "x-kubernetes-int-or-string" in level
            ):
                break
            known = {escaped(key): inner for key, inner in (properties or {}).items()}
            if name not in known:
                return name
            level = known[name]
    return ""


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
