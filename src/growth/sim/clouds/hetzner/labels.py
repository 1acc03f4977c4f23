"""Labels and the selectors on them, by Hetzner's rules."""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from growth.sim.clouds.hetzner.wire import invalid

LONGEST: Final = 63
LONGEST_PREFIX: Final = 253
RESERVED: Final = "hetzner.cloud"

_WORD: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_PREFIX: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")

Labels = Mapping[str, str]


def checked(value: Any) -> dict[str, str]:
    """The labels of a request, or a refusal that names the key."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid("labels", "must be an object")
    for key, text in value.items():
        if not isinstance(text, str):
            raise invalid("labels", f"the value of {key} must be a string")
        if RESERVED in key:
            raise invalid("labels", f"the key {key} is reserved")
        if not _is_key(key):
            raise invalid("labels", f"the key {key} is invalid")
        if text and not _is_word(text):
            raise invalid("labels", f"the value {text} of {key} is invalid")
    return dict(value)


def _is_word(text: str) -> bool:
    return len(text) <= LONGEST and _WORD.fullmatch(text) is not None


def _is_key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    if slash and not (prefix and len(prefix) <= LONGEST_PREFIX and _PREFIX.fullmatch(prefix)):
        return False
    return _is_word(name)


@dataclasses.dataclass(frozen=True, slots=True)
class Selector:
    """Every part must hold."""

    parts: Sequence[Callable[[Labels], bool]]

    def selects(self, labels: Labels) -> bool:
        return all(part(labels) for part in self.parts)


EVERYTHING: Final = Selector(())


def selector(text: str) -> Selector:
    """`k`, `!k`, `k=v`, `k==v`, `k!=v`, `k in (a,b)`, `k notin (a,b)`, joined by commas. Missing keys are not equal."""
    if not text.strip():
        return EVERYTHING
    # A comma inside brackets joins values, not parts.
    return Selector([_part(piece.strip()) for piece in re.split(r",(?![^()]*\))", text)])


def _part(text: str) -> Callable[[Labels], bool]:
    if listed := re.fullmatch(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)", text):
        key, word = listed[1], listed[2]
        values = {value.strip() for value in listed[3].split(",")}
        _check(text, key, *values)
        if word == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if compared := re.fullmatch(r"([^\s!=]+)\s*(==|=|!=)\s*(\S*)", text):
        key, value = compared[1], compared[3]
        _check(text, key, value)
        if compared[2] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if text.startswith("!"):
        missing = text[1:].strip()
        _check(text, missing)
        return lambda labels: missing not in labels
    _check(text, text)
    return lambda labels: text in labels


def _check(part: str, key: str, *values: str) -> None:
    if not _is_key(key) or any(value and not _is_word(value) for value in values):
        raise invalid("label_selector", f"cannot be read: {part}")
