"""The annotation `growth.dev/reserved` of a pool: claims that somebody is about to create.

A JSON object: name of the claim → `{"at": time, "instanceType": name, "capacity": {…}}`. A claim that exists counts by
itself, so a name counts here only until then. The caps of the whole cluster are reserved in the same words, with `price`.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from growth.api.meta import ResourceList, Struct

# A name that was reserved so long ago and does not exist was given up; whoever reserved it creates it much sooner or not.
RELEASE: Final = dt.timedelta(seconds=60)

# The name and its time as whoever reserved it wrote them: a name that is reserved again is another.
ReservedName: TypeAlias = tuple[str, dt.datetime | None]


class ReservationError(ValueError):
    """The annotation cannot be read: how much is reserved is unknown, which is not nothing."""


class Reservation(Struct, frozen=True):
    """One machine about to be asked for, at most as large as `capacity` and as dear as `price`.

    `instance_type` is the one that is expected; without `capacity` its own counts. `price` is billionths an hour.
    `replaces` names the claims that go for it.
    """

    at: dt.datetime | None = None
    instance_type: str = ""
    capacity: ResourceList = {}
    price: int | None = None
    replaces: tuple[str, ...] = ()


def parse(text: str) -> dict[str, Reservation]:
    """By the name of the claim; an empty annotation reserves nothing."""
    if not text:
        return {}
    try:
        found = msgspec.json.decode(text, type=dict[str, Reservation])
    except msgspec.MsgspecError as error:
        raise ReservationError(f"cannot be read ({error}): remove it if nobody is about to buy machines") from error
    for name, reservation in found.items():
        if reservation.at is None or reservation.at.tzinfo is None:
            raise ReservationError(
                f"does not say when {name} was reserved: remove it if nobody is about to buy machines"
            )
    return found


def live(reserved: Mapping[str, Reservation], now: dt.datetime) -> dict[str, Reservation]:
    """Without the names that were given up."""
    return {name: each for name, each in reserved.items() if each.at is not None and now - each.at <= RELEASE}


def printed(reserved: Mapping[str, Reservation]) -> str:
    """The annotation's text, names sorted; empty for nothing."""
    return msgspec.json.encode(dict(reserved), order="sorted").decode() if reserved else ""
