"""A scenario of simulated machines, told in another cloud's words: the same pools and pods on that vendor's machines.

What asks for simulated machines of a size asks for the vendor's types of that size; zones become locations, every machine
is on demand, and pools that were another provider's are again another's. What is the cluster's own stays as it is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from growth.api import names
from growth.api.kinds import Json
from growth.api.nodeclasses import HETZNER_NODE_CLASS, KWOK_NODE_CLASS
from growth.providers.catalogues import hetzner
from growth.sim.scenario.model import Scenario

PROVIDERS: Final = ("kwok", "hetzner")
_TYPE: Final = re.compile(r"[a-z]-(\d+)x-(amd64|arm64)-[a-z]+", re.IGNORECASE)
_OFFERING: Final = re.compile(r"kwok-([a-z]-\d+x-(?:amd64|arm64)-[a-z]+)", re.IGNORECASE)
# The cheapest line of each architecture: a machine of a size becomes the smallest of it that is as large.
_LINES: Final = {"amd64": ("cx23", "cx33", "cx43", "cx53"), "arm64": ("cax11", "cax21", "cax31", "cax41")}
_CORES: Final = {kind.name: kind.capacity["cpu"] // 1000 for kind in hetzner.catalogue().types}
_COMPARED: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "Gt": lambda number, bound: number > bound,
    "Lt": lambda number, bound: number < bound,
    "Gte": lambda number, bound: number >= bound,
    "Lte": lambda number, bound: number <= bound,
}


def told_for(provider: str, scenario: Scenario) -> Scenario:
    """The scenario on machines of that provider: kwok as it is, or hetzner."""
    if provider == "kwok":
        return scenario
    plain = msgspec.to_builtins(scenario)
    told = {**plain, **{part: _told(plain.get(part) or []) for part in ("objects", "workloads", "events")}}
    settings = {"provider": "hetzner", "kwokCatalogue": "hetzner", **(plain.get("settings") or {})}
    return msgspec.convert({**told, "settings": settings}, Scenario)


def _told(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_told(each) for each in value]
    if isinstance(value, str):
        return _word(value)
    if not isinstance(value, dict):
        return value
    if "key" in value and "operator" in value and isinstance(value.get("values", []), list):
        return _requirement(value)
    if set(value) >= {"group", "kind", "name"} or set(value) >= {"apiVersion", "kind"}:
        value = _of_another_class(value)
    return {key: _label(key, inner) for key, inner in value.items()}


def _label(key: str, value: Any) -> Any:
    if key == names.CAPACITY_TYPE_LABEL:
        return names.ON_DEMAND
    return _told(value)


def _of_another_class(body: Json) -> Json:
    """Their classes become ours and ours theirs."""
    other = {
        KWOK_NODE_CLASS.kind: HETZNER_NODE_CLASS,
        HETZNER_NODE_CLASS.kind: KWOK_NODE_CLASS,
    }.get(body["kind"])
    if other is None:
        return body
    if "group" in body:
        return {**body, "group": other.group, "kind": other.kind}
    return {**body, "apiVersion": other.api_version, "kind": other.kind}


def _requirement(body: Json) -> Json:
    key, operator, values = body["key"], body["operator"], body.get("values") or []
    rest = {name: inner for name, inner in body.items() if name not in {"key", "operator", "values"}}
    match key:
        case names.KWOK_INSTANCE_CPU_LABEL if operator in {"In", "NotIn", *_COMPARED}:
            return {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": _of_size(operator, values), **rest}
        case names.KWOK_INSTANCE_FAMILY_LABEL:
            return {"key": names.INSTANCE_TYPE_LABEL, "operator": "Exists", **rest}
        case names.CAPACITY_TYPE_LABEL if operator == "In":
            return {"key": key, "operator": operator, "values": [names.ON_DEMAND], **rest}
        case _:
            told = {"values": list(dict.fromkeys(map(_word, values)))} if "values" in body else {}
            return {"key": key, "operator": operator, **told, **rest}


def _of_size(operator: str, values: Sequence[str]) -> list[str]:
    match operator:
        case "In":
            found = [name for name, cores in _CORES.items() if str(cores) in values]
        case "NotIn":
            found = [name for name, cores in _CORES.items() if str(cores) not in values]
        case _:
            holds = _COMPARED[operator]
            found = [name for name, cores in _CORES.items() if holds(cores, int(values[0]))]
    return sorted(found)


def _word(text: str) -> str:
    if (offering := _OFFERING.fullmatch(text)) is not None:
        return f"{hetzner.CLOUD}-{_word(offering[1])}"
    if (kind := _TYPE.fullmatch(text)) is not None:
        line = _LINES[kind[2].lower()]
        return next((name for name in line if _CORES[name] >= int(kind[1])), line[-1])
    if text.startswith("test-zone-"):
        return hetzner.LOCATIONS[(ord(text[-1]) - ord("a")) % len(hetzner.LOCATIONS)]
    return text
