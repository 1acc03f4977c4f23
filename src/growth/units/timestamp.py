"""RFC 3339 times as Kubernetes writes them: whole seconds (`Time`) or microseconds (`MicroTime`), in UTC."""

import datetime as dt
import re
from typing import Final

from growth.units.errors import TimestampError, shown

_SHAPE: Final = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)T(?P<time>\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d+))?(?P<zone>Z|[+-]\d\d:\d\d)", re.ASCII
)


def parse_time(text: str) -> dt.datetime:
    """The moment, in UTC. Parts finer than a microsecond are cut off, any offset is taken; else `TimestampError`."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise TimestampError(f"{shown(text)} is not a time: write it as 2026-11-15T16:57:00Z")
    microseconds = (match["fraction"] or "")[:6].ljust(6, "0")
    zone = "+00:00" if match["zone"] == "Z" else match["zone"]
    try:
        moment = dt.datetime.fromisoformat(f"{match['date']}T{match['time']}.{microseconds}{zone}")
        return moment.astimezone(dt.UTC)
    except (ValueError, OverflowError) as error:
        raise TimestampError(f"{shown(text)} is not a time: {error}") from None


def print_time(moment: dt.datetime) -> str:
    """As `metav1.Time`: UTC, whole seconds, the rest cut off. The moment must have a zone."""
    return f"{_utc(moment):%Y-%m-%dT%H:%M:%S}Z".rjust(20, "0")


def print_micro_time(moment: dt.datetime) -> str:
    """As `metav1.MicroTime`: UTC, always six digits of fraction. The moment must have a zone."""
    return f"{_utc(moment):%Y-%m-%dT%H:%M:%S.%f}Z".rjust(27, "0")


def _utc(moment: dt.datetime) -> dt.datetime:
    if moment.tzinfo is None:
        raise TimestampError(f"{moment.isoformat()} has no zone: times in Growth are in UTC and say so")
    return moment.astimezone(dt.UTC)
