r"""The JSON paths of printer columns: `.spec.x`, `['a.b']`, `.a\.b`, `[0]`, `[*]`, `[?(@.type=="Ready")]`."""

import functools
import re
from collections.abc import Callable
from typing import Any, Final

Step = Callable[[Any], list[Any]]

_FILTER: Final = re.compile(r"\?\(\s*@\.([\w.\-/]+)\s*(==|!=)\s*['\"]?([^'\"]*)['\"]?\s*\)")


def first(whole: Any, path: str) -> Any:
    """The first value at the path, or None."""
    values = [whole]
    for step in _steps(path):
        values = [found for value in values for found in step(value)]
    return values[0] if values else None


@functools.lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[Step, ...]:
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    steps: list[Step] = []
    position = 0
    while position < len(text):
        if text[position] == "[":
            end = _closing(text, position)
            steps.append(_bracket(text[position + 1 : end]))
            position = end + 1
        else:
            position += text[position] == "."
            name = ""
            while position < len(text) and text[position] not in ".[":
                position += text[position] == "\\"
                name += text[position : position + 1]
                position += 1
            if name:
                steps.append(_field(name))
    return tuple(steps)


def _closing(text: str, start: int) -> int:
    depth = 0
    for position in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return len(text)


def _field(name: str) -> Step:
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _bracket(inside: str) -> Step:
    if inside == "*":
        return lambda value: list(value.values()) if isinstance(value, dict) else list(value or ())
    if inside[:1] in "'\"":
        return _field(inside[1:-1])
    condition = _FILTER.fullmatch(inside)
    if condition is not None:
        path, operator, wanted = condition[1], condition[2], condition[3]
        return lambda value: [
            item
            for item in (value if isinstance(value, list) else ())
            if (_text(first(item, f".{path}")) == wanted) == (operator == "==")
        ]
    try:
        index = int(inside)
    except ValueError:
        return lambda _value: []
    return lambda value: value[index : index + 1 or None] if isinstance(value, list) else []


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
