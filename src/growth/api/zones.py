"""Two names of one zone: Hetzner sells by location, `fsn1`, and its cloud controller manager labels Nodes with the datacenter,
`fsn1-dc14`.

Both mean the same place, but kube-scheduler compares the texts. Whoever asks where something is compares `zone_of`; whoever
asks whether a pod may be bound compares the texts.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Protocol, TypeVar

import msgspec

from growth.api import names

_DATACENTER: Final = re.compile(r"([a-z]{3,4}[0-9]?)-dc[0-9]+")
# The datacenter that each location sells in: the name that the vendor's controller writes there.
DATACENTERS: Final[Mapping[str, str]] = {
    "fsn1": "fsn1-dc14",
    "nbg1": "nbg1-dc3",
    "hel1": "hel1-dc2",
    "ash": "ash-dc1",
    "hil": "hil-dc1",
    "sin": "sin-dc1",
}


class _Asked(Protocol):
    """A requirement of a pool, a claim or a pod."""

    @property
    def key(self) -> str: ...

    @property
    def operator(self) -> str: ...

    @property
    def values(self) -> tuple[str, ...]: ...


A = TypeVar("A", bound=_Asked)


def zone_of(name: str) -> str:
    """The zone as catalogues call it, by any of its names."""
    found = _DATACENTER.fullmatch(name)
    return found[1] if found is not None else name


def is_zone(key: str) -> bool:
    return names.NORMALISED_LABELS.get(key, key) == names.ZONE_LABEL


def named_zones(asked: Iterable[_Asked]) -> list[str]:
    """The names of zones that requirements list."""
    return [name for each in asked if is_zone(each.key) and each.operator == "In" for name in each.values]


def in_catalogue_names(asked: Iterable[A]) -> list[A]:
    """The requirements with each zone called as catalogues call it."""
    return [_with(each, [zone_of(value) for value in each.values]) if is_zone(each.key) else each for each in asked]


def in_all_names(asked: Iterable[A], known: Mapping[str, Iterable[str]]) -> list[A]:
    """The requirements with each zone by all its names; `known` are those of a zone beside the catalogue's."""
    return [
        _with(each, [name for value in each.values for name in (value, zone_of(value), *known.get(zone_of(value), ()))])
        if is_zone(each.key)
        else each
        for each in asked
    ]


def _with(asked: A, values: Iterable[str]) -> A:
    once = tuple(dict.fromkeys(values))
    return asked if once == asked.values else msgspec.structs.replace(asked, values=once)  # type: ignore[type-var]
