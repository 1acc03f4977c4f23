"""The annotation `growth.dev/reserved` of a pool: claims that somebody is about to create.

A JSON object: name of the claim → `{"at": time, "instanceType": name}`. A claim that exists counts by itself, so a name
counts here only until then.
"""

import datetime as dt
from collections.abc import Mapping

import msgspec

from growth.api.meta import Struct


class ReservationError(ValueError):
    """The annotation cannot be read: how much is reserved is unknown, which is not nothing."""


class Reservation(Struct, frozen=True):
    """One machine about to be asked for. `instance_type` is the largest of those that its claim will list."""

    at: dt.datetime | None = None
    instance_type: str = ""


def parse(text: str) -> dict[str, Reservation]:
    """By the name of the claim; an empty annotation reserves nothing."""
    if not text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, Reservation])
    except msgspec.MsgspecError as error:
        raise ReservationError(f"cannot be read ({error}): remove it if nobody is about to buy machines") from error


def printed(reserved: Mapping[str, Reservation]) -> str:
    """The annotation's text, names sorted; empty for nothing."""
    return msgspec.json.encode(dict(reserved), order="sorted").decode() if reserved else ""
