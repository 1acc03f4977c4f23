"""Ages as kubectl shows them: `47s`, `3m44s`, `5d`."""

import datetime as dt

from growth.units.timestamp import parse_time


def age(stamp: str | None, now: dt.datetime) -> str:
    """How long ago a time of an object is."""
    if not stamp:
        return "<unknown>"
    return lapse(now - parse_time(stamp))


def lapse(span: dt.timedelta) -> str:
    """A span in at most two units, the coarser the longer it is."""
    seconds = int(span.total_seconds())
    if seconds < -1:
        return "<invalid>"
    minutes, hours = seconds // 60, seconds // 3600
    days = hours // 24
    if seconds < 120:
        return f"{max(0, seconds)}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
