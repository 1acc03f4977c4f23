"""Durations in Go's syntax, as the API server and Karpenter read and print them: `1h30m`, `720h`, `100ms`, `Never`.

Go counts nanoseconds in a signed 64-bit integer, about 292 years either way. It prints hours, minutes and seconds
(`90m` becomes `1h30m0s`) and, below a second, the largest unit that leaves a number before the point (`1.5ms`).
"""

import dataclasses
import datetime as dt
import re
from typing import Final

from growth.units.errors import DurationError, shown

_NANOSECONDS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter; Go takes both
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60 * 1_000_000_000,
    "h": 3_600 * 1_000_000_000,
}
_PART: Final = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>[^0-9.]*)", re.ASCII)
_EXAMPLE: Final = "write numbers with units, such as 30s, 10m or 1h30m"

NEVER: Final = "Never"
_LARGEST: Final = 2**63 - 1


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time in whole nanoseconds; may be negative."""

    nanoseconds: int

    @classmethod
    def parse(cls, text: str) -> "Duration":
        """Accepts exactly what Go's `time.ParseDuration` accepts, with its rounding; else `DurationError`."""
        if not isinstance(text, str):
            raise DurationError(f"{shown(text)} is not a duration: {_EXAMPLE}")
        negative, unsigned = text.startswith("-"), text[1:] if text[:1] in {"-", "+"} else text
        if unsigned == "0":
            return cls(0)
        if not unsigned:
            raise DurationError(f"{shown(text)} is not a duration: {_EXAMPLE}")
        total, position = 0, 0
        while position < len(unsigned):
            match = _PART.match(unsigned, position)
            if match is None or not (match["whole"] or match["fraction"]):
                raise DurationError(f"{shown(text)} is not a duration: {_EXAMPLE}")
            total += _nanoseconds(text, whole=match["whole"], fraction=match["fraction"] or "", unit=match["unit"])
            position = match.end()
        if total > _LARGEST + negative:
            raise DurationError(f"{shown(text)} is too long: a duration ends at 2562047h47m16s, about 292 years")
        return cls(-total if negative else total)

    @classmethod
    def of(cls, *, hours: int = 0, minutes: int = 0, seconds: float = 0, nanoseconds: int = 0) -> "Duration":
        """The sum of the parts; a fraction of a second is rounded to the nearest nanosecond."""
        return cls((hours * 3600 + minutes * 60) * 1_000_000_000 + round(seconds * 1_000_000_000) + nanoseconds)

    @property
    def seconds(self) -> float:
        return self.nanoseconds / 1_000_000_000

    @property
    def timedelta(self) -> dt.timedelta:
        """Rounded down to the microsecond, which is the finest that Python's type holds."""
        return dt.timedelta(microseconds=self.nanoseconds // 1_000)

    def __str__(self) -> str:
        """As Go prints it."""
        sign, left = "-" if self.nanoseconds < 0 else "", abs(self.nanoseconds)
        if left == 0:
            return "0s"
        if left < 1_000:
            return f"{sign}{left}ns"
        if left < 1_000_000:
            return f"{sign}{_decimal(left, unit=1_000)}\u00b5s"
        if left < 1_000_000_000:
            return f"{sign}{_decimal(left, unit=1_000_000)}ms"
        minutes, rest = divmod(left, 60 * 1_000_000_000)
        hours, minutes = divmod(minutes, 60)
        parts = [f"{hours}h"] if hours else []
        parts += [f"{minutes}m"] if hours or minutes else []
        return sign + "".join(parts) + f"{_decimal(rest, unit=1_000_000_000)}s"


def parse_or_never(text: str) -> Duration | None:
    """Karpenter's `expireAfter` and `consolidateAfter`: None is `Never`."""
    if text == NEVER:
        return None
    try:
        return Duration.parse(text)
    except DurationError as error:
        raise DurationError(f"{error}, or {NEVER}") from None


def print_or_never(duration: Duration | None) -> str:
    """The inverse of `parse_or_never`."""
    return NEVER if duration is None else str(duration)


def _nanoseconds(text: str, *, whole: str, fraction: str, unit: str) -> int:
    """One part. The fraction is multiplied in floating point and cut off, because Go does so."""
    if not unit:
        raise DurationError(f"{shown(text)} is not a duration: a number lacks its unit; {_EXAMPLE}")
    if unit not in _NANOSECONDS:
        raise DurationError(f"{shown(text)} is not a duration: the unit {shown(unit)} is none of ns us ms s m h")
    size = _NANOSECONDS[unit]
    if len(whole.lstrip("0")) > 19:
        raise DurationError(f"{shown(text)} is too long: a duration ends at 2562047h47m16s, about 292 years")
    total = int(whole.lstrip("0") or "0") * size
    digits, scale = 0, 1.0
    for digit in fraction:
        grown = digits * 10 + int(digit)
        if grown > 2**63:  # Go drops what its integer cannot hold; 2^63 itself it still takes
            break
        digits, scale = grown, scale * 10
    return total + int(float(digits) * (float(size) / scale))


def _decimal(value: int, *, unit: int) -> str:
    """`value` in units, without trailing zeros: 1500 of 1000 is `1.5`."""
    whole, part = divmod(value, unit)
    places = len(str(unit)) - 1
    return f"{whole}.{part:0{places}}".rstrip("0").rstrip(".")
