"""The string and number formats of a schema that the server checks; others say nothing and are ignored."""

import ipaddress
import re
from collections.abc import Callable
from typing import Final

from growth.units.duration import Duration
from growth.units.timestamp import parse_time

INTEGER_BOUNDS: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}

_UUID: Final = re.compile(r"(?i)^[0-9A-F]{8}-?[0-9A-F]{4}-?[0-9A-F]{4}-?[0-9A-F]{4}-?[0-9A-F]{12}\Z")
_BYTE: Final = re.compile(r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z")
_DATE: Final = re.compile(r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])\Z", re.ASCII)


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


_CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "date-time": _parses(parse_time),
    "date": lambda text: _DATE.match(text) is not None,
    "duration": _parses(Duration.parse),
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "cidr": _parses(lambda text: ipaddress.ip_network(text, strict=False)),
    "uuid": lambda text: _UUID.match(text) is not None,
    "byte": lambda text: _BYTE.match(text) is not None,
}


def is_sound(name: str, text: str) -> bool:
    """Whether the text has the format; an unknown format fits anything."""
    check = _CHECKS.get(name)
    return check is None or check(text)
