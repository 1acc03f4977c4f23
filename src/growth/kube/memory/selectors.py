"""Label and field selectors in the server's syntax, parsed into predicates.

Label selectors: `a=b`, `a==b`, `a!=b`, `a in (x,y)`, `a notin (x)`, `a`, `!a`, joined by commas. Field selectors:
`path=value`, `path==value`, `path!=value`, with backslashes before `,`, `=` and backslash; which paths exist is the
kind's to say.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from growth.api import meta
from growth.api.decoding import convert
from growth.api.kinds import Json
from growth.kube.errors import BadRequest

Predicate = Callable[[Json], bool]
LabelTest = Callable[[Mapping[str, str]], bool]

_TOKEN: Final = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_SYMBOLS: Final = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise BadRequest(f"unable to parse requirement: unexpected character in {text!r}")
        found.append(match[1])
        position = match.end()
    return found


def parse_labels(text: str) -> LabelTest | None:
    """The test of an object's labels, or None where everything matches."""
    tokens = _tokens(text)
    tests: list[LabelTest] = []
    position = 0

    def peek() -> str:
        return tokens[position] if position < len(tokens) else ""

    def take() -> str:
        nonlocal position
        word = peek()
        position += 1
        return word

    while position < len(tokens):
        word = take()
        if word == "!":
            tests.append(_missing(_key(take())))
        else:
            key = _key(word)
            operator = peek()
            if operator in {"", ","}:
                tests.append(_present(key))
            elif operator in {"=", "==", "!="}:
                take()
                value = "" if peek() in {"", ","} else take()
                if value in _SYMBOLS:
                    raise BadRequest(f"unable to parse requirement: found '{value}', expected: identifier")
                tests.append(_in(key, (value,)) if operator != "!=" else _not_in(key, (value,)))
            elif operator in {"in", "notin"}:
                take()
                values = _values(take, peek)
                tests.append(_in(key, values) if operator == "in" else _not_in(key, values))
            elif operator in {"<", ">"}:
                take()
                tests.append(_compare(key, operator, take()))
            else:
                raise BadRequest(
                    f"unable to parse requirement: found '{operator}', expected: in, notin, =, ==, !=, gt, lt"
                )
        separator = take()
        if separator not in {"", ","}:
            raise BadRequest(f"found '{separator}', expected: ',' or 'end of string'")
        if separator == "," and position >= len(tokens):
            raise BadRequest("found '', expected: identifier after ','")
    return _all(tests)


def _key(word: str) -> str:
    if not word or word in _SYMBOLS:
        raise BadRequest(f"unable to parse requirement: found '{word}', expected: !, identifier, or 'end of string'")
    return word


def _values(take: Callable[[], str], peek: Callable[[], str]) -> tuple[str, ...]:
    opening = take()
    if opening != "(":
        raise BadRequest(f"unable to parse requirement: found '{opening}' expected: '('")
    values: list[str] = []
    expect_value = True
    while True:
        word = take()
        if word == "":
            raise BadRequest("unable to parse requirement: found '', expected: ',' or ')'")
        if word == ")":
            if expect_value:
                values.append("")
            return tuple(values)
        if word == ",":
            if expect_value:
                values.append("")
            expect_value = True
            if peek() == ")":
                continue
        elif word in _SYMBOLS:
            raise BadRequest(f"unable to parse requirement: found '{word}', expected: ',', ')' or identifier")
        else:
            values.append(word)
            expect_value = False


def _present(key: str) -> LabelTest:
    return lambda labels: key in labels


def _missing(key: str) -> LabelTest:
    return lambda labels: key not in labels


def _in(key: str, values: Iterable[str]) -> LabelTest:
    allowed = frozenset(values)
    return lambda labels: key in labels and labels[key] in allowed


def _not_in(key: str, values: Iterable[str]) -> LabelTest:
    denied = frozenset(values)
    return lambda labels: key not in labels or labels[key] not in denied


def _compare(key: str, operator: str, bound: str) -> LabelTest:
    try:
        limit = int(bound)
    except ValueError:
        raise BadRequest(
            f'unable to parse requirement: values[0][{key}]: Invalid value: "{bound}": '
            "for 'Gt', 'Lt' operators, the value must be an integer"
        ) from None

    def test(labels: Mapping[str, str]) -> bool:
        try:
            value = int(labels[key])
        except (KeyError, ValueError):
            return False
        return value < limit if operator == "<" else value > limit

    return test


def _all(tests: list[LabelTest]) -> LabelTest | None:
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda labels: all(test(labels) for test in tests)


def label_selector(selector: Json | None) -> LabelTest:
    """A LabelSelector object, as workloads and budgets carry it: None matches nothing, an empty one everything."""
    if selector is None:
        return lambda _labels: False
    tests: list[LabelTest] = [_in(key, (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression["key"], expression.get("values") or ()
        match expression["operator"]:
            case "In":
                tests.append(_in(key, values))
            case "NotIn":
                tests.append(_not_in(key, values))
            case "Exists":
                tests.append(_present(key))
            case "DoesNotExist":
                tests.append(_missing(key))
    return _all(tests) or (lambda _labels: True)


def selector_text(selector: Json | None) -> str:
    """A LabelSelector object as the string that a Scale carries."""
    return "" if selector is None else meta.selector_text(convert(selector, meta.LabelSelector))


def parse_fields(text: str) -> list[tuple[str, bool, str]]:
    """The terms of a field selector: path, whether equality is asked for, value."""
    terms: list[tuple[str, bool, str]] = []
    for term in _split(text):
        if not term:
            continue
        match = re.match(r"((?:\\.|[^\\=!])*)(!=|==|=)(.*)$", term, re.DOTALL)
        if match is None:
            raise BadRequest(f'invalid selector: "{text}"; can\'t understand "{term}"')
        terms.append((match[1], match[2] != "!=", re.sub(r"\\(.)", r"\1", match[3])))
    return terms


def _split(text: str) -> list[str]:
    parts = [""]
    escaped = False
    for character in text:
        if escaped:
            parts[-1] += "\\" + character
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            parts.append("")
        else:
            parts[-1] += character
    return parts


def value_at(stored: Json, path: tuple[str, ...]) -> str:
    """The value that a field selector compares: absent is empty, truth is `true` or `false`."""
    value: Any = stored
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def fields_predicate(terms: list[tuple[tuple[str, ...], bool, str]]) -> Predicate | None:
    """The test of an object's fields, or None where everything matches."""
    if not terms:
        return None
    return lambda stored: all((value_at(stored, path) == value) == equal for path, equal, value in terms)
