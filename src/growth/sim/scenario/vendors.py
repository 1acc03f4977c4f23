"""A scenario of simulated machines, told in another cloud's words: the same pools and pods on that vendor's machines.

What asks for simulated machines of a size asks for the vendor's types of that size; zones become locations, every machine
is on demand, and pools that were another provider's are again another's. What is the cluster's own stays as it is.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from growth.api import names
from growth.api.instance_types import Catalogue
from growth.api.kinds import Json, Kind
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.api.nodeclasses import HETZNER_NODE_CLASS, KWOK_NODE_CLASS
from growth.providers.catalogues import hetzner, linode
from growth.sim.scenario.model import Scenario
from growth.sim.world import linode_types

PROVIDERS: Final = ("kwok", "hetzner", "linode", "linode-enterprise", "linode-instances")
_TYPE: Final = re.compile(r"[a-z]-(\d+)x-(amd64|arm64)-[a-z]+", re.IGNORECASE)
_OFFERING: Final = re.compile(r"kwok-([a-z]-\d+x-(?:amd64|arm64)-[a-z]+)", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Vendor:
    """`lines` are the cheapest of each architecture: a machine of a size becomes the smallest that is as large."""

    cloud: str
    node_class: Kind[Any]
    catalogue: Catalogue
    places: Sequence[str]
    lines: Mapping[str, Sequence[str]]
    settings: Json

    @property
    def cores(self) -> Mapping[str, int]:
        return {kind.name: kind.capacity["cpu"] // 1000 for kind in self.catalogue.types}


_LINODE_REGION: Final = "us-east"
_LINODE_LINE: Final = tuple(f"g6-standard-{size}" for size in (2, 4, 6, 8, 16, 20, 24, 32))


def _linode(**where: str) -> _Vendor:
    """One region, one architecture: what asks for another gets this one. `where` machines are bought is a setting."""
    return _Vendor(
        cloud=linode.CLOUD,
        node_class=LINODE_NODE_CLASS,
        catalogue=linode_types.catalogue(),
        places=(_LINODE_REGION,),
        lines={"amd64": _LINODE_LINE, "arm64": _LINODE_LINE},
        settings={"provider": "linode", "kwokCatalogue": "linode", **where},
    )


_VENDORS: Final = {
    "hetzner": _Vendor(
        cloud=hetzner.CLOUD,
        node_class=HETZNER_NODE_CLASS,
        catalogue=hetzner.catalogue(),
        places=hetzner.LOCATIONS,
        lines={"amd64": ("cx23", "cx33", "cx43", "cx53"), "arm64": ("cax11", "cax21", "cax31", "cax41")},
        settings={"provider": "hetzner", "kwokCatalogue": "hetzner"},
    ),
    "linode": _linode(linodeCluster="standard"),
    "linode-enterprise": _linode(linodeCluster="enterprise"),
    "linode-instances": _linode(linodeRegion=_LINODE_REGION),
}
_COMPARED: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "Gt": lambda number, bound: number > bound,
    "Lt": lambda number, bound: number < bound,
    "Gte": lambda number, bound: number >= bound,
    "Lte": lambda number, bound: number <= bound,
}


def told_for(provider: str, scenario: Scenario) -> Scenario:
    """The scenario on machines of that provider, one of `PROVIDERS`: kwok as it is."""
    if provider == "kwok":
        return scenario
    vendor, plain = _VENDORS[provider], msgspec.to_builtins(scenario)
    told = {**plain, **{part: _told(plain.get(part) or [], vendor) for part in ("objects", "workloads", "events")}}
    settings = {**vendor.settings, **(plain.get("settings") or {})}
    return msgspec.convert({**told, "settings": settings}, Scenario)


def _told(value: Any, vendor: _Vendor) -> Any:
    if isinstance(value, list | tuple):
        return [_told(each, vendor) for each in value]
    if isinstance(value, str):
        return _word(value, vendor)
    if not isinstance(value, dict):
        return value
    if "key" in value and "operator" in value and isinstance(value.get("values", []), list):
        return _requirement(value, vendor)
    if set(value) >= {"group", "kind", "name"} or set(value) >= {"apiVersion", "kind"}:
        value = _of_another_class(value, vendor)
    return {key: _label(key, inner, vendor) for key, inner in value.items()}


def _label(key: str, value: Any, vendor: _Vendor) -> Any:
    if key == names.CAPACITY_TYPE_LABEL:
        return names.ON_DEMAND
    if key == names.ARCH_LABEL and vendor.cloud == linode.CLOUD:
        return "amd64"
    return _told(value, vendor)


def _of_another_class(body: Json, vendor: _Vendor) -> Json:
    """Their classes become ours and ours theirs."""
    other = {
        KWOK_NODE_CLASS.kind: vendor.node_class,
        HETZNER_NODE_CLASS.kind: KWOK_NODE_CLASS,
    }.get(body["kind"])
    if other is None:
        return body
    if "group" in body:
        return {**body, "group": other.group, "kind": other.kind}
    return {**body, "apiVersion": other.api_version, "kind": other.kind}


def _requirement(body: Json, vendor: _Vendor) -> Json:
    key, operator, values = body["key"], body["operator"], body.get("values") or []
    rest = {name: inner for name, inner in body.items() if name not in {"key", "operator", "values"}}
    match key:
        case names.KWOK_INSTANCE_CPU_LABEL if operator in {"In", "NotIn", *_COMPARED}:
            return {
                "key": names.INSTANCE_TYPE_LABEL,
                "operator": "In",
                "values": _of_size(operator, values, vendor),
                **rest,
            }
        case names.ARCH_LABEL if vendor.cloud == linode.CLOUD:
            return {"key": key, "operator": "In", "values": ["amd64"], **rest}
        case names.KWOK_INSTANCE_FAMILY_LABEL:
            return {"key": names.INSTANCE_TYPE_LABEL, "operator": "Exists", **rest}
        case names.CAPACITY_TYPE_LABEL if operator == "In":
            return {"key": key, "operator": operator, "values": [names.ON_DEMAND], **rest}
        case _:
            told = {"values": list(dict.fromkeys(_word(each, vendor) for each in values))} if "values" in body else {}
            return {"key": key, "operator": operator, **told, **rest}


def _of_size(operator: str, values: Sequence[str], vendor: _Vendor) -> list[str]:
    match operator:
        case "In":
            found = [name for name, cores in vendor.cores.items() if str(cores) in values]
        case "NotIn":
            found = [name for name, cores in vendor.cores.items() if str(cores) not in values]
        case _:
            holds = _COMPARED[operator]
            found = [name for name, cores in vendor.cores.items() if holds(cores, int(values[0]))]
    return sorted(found)


def _word(text: str, vendor: _Vendor) -> str:
    if (offering := _OFFERING.fullmatch(text)) is not None:
        return f"{vendor.cloud}-{_word(offering[1], vendor)}"
    if (kind := _TYPE.fullmatch(text)) is not None:
        line = vendor.lines[kind[2].lower()]
        return next((name for name in line if vendor.cores[name] >= int(kind[1])), line[-1])
    if text.startswith("test-zone-"):
        return vendor.places[(ord(text[-1]) - ord("a")) % len(vendor.places)]
    return text
