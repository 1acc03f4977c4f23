"""What an error code of Hetzner's means for whoever asked. No I/O.

The code counts, not the HTTP status; the same codes come at once, or later in an action that fails.

| class     | codes                                                                              | reaction                        |
|-----------|------------------------------------------------------------------------------------|---------------------------------|
| CAPACITY  | resource_unavailable, placement_error, no_space_left_in_location, maintenance,     | the offering is short; the next |
|           | invalid_input about a type that the location does not have                         |                                 |
| QUOTA     | resource_limit_exceeded and its kin                                                | stop, everywhere, for a while   |
| TRANSIENT | rate_limit_exceeded, conflict, locked, timeout, bad_gateway, …; anything unknown   | again later; no offering is     |
|           |                                                                                    | blamed                          |
| TAKEN     | uniqueness_error                                                                   | adopt what is ours              |
| CONFIG    | other invalid_input, not_found, invalid_server_type, no_subnet_available, …        | the class or the claim is wrong |
| FATAL     | unauthorized, forbidden, token_readonly                                            | the token will not do           |
"""

import enum
import re
from collections.abc import Mapping
from typing import Any, Final

from growth.providers.http import Refused


class Meaning(enum.Enum):
    CAPACITY = "capacity"
    QUOTA = "quota"
    TRANSIENT = "transient"
    TAKEN = "taken"
    CONFIG = "config"
    FATAL = "fatal"


_MEANINGS: Final = {
    **dict.fromkeys(
        (
            "resource_unavailable",
            "placement_error",
            "no_space_left_in_location",
            "maintenance",
            "server_type_unavailable",
        ),
        Meaning.CAPACITY,
    ),
    **dict.fromkeys(
        ("resource_limit_exceeded", "limit_exceeded", "dedicated_core_limit_exceeded", "core_limit_exceeded"),
        Meaning.QUOTA,
    ),
    **dict.fromkeys(
        (
            "rate_limit_exceeded",
            "conflict",
            "locked",
            "timeout",
            "bad_gateway",
            "service_error",
            "server_error",
            "unknown_error",
            "action_failed",
            "unavailable",
        ),
        Meaning.TRANSIENT,
    ),
    "uniqueness_error": Meaning.TAKEN,
    **dict.fromkeys(
        (
            "invalid_input",
            "json_error",
            "not_found",
            "invalid_server_type",
            "unsupported_error",
            "protected",
            "deprecated_api_endpoint",
            "image_not_found",
            "server_type_not_found",
            "network_not_found",
            "firewall_not_found",
            "ssh_key_not_found",
            "no_subnet_available",
            "ip_not_available",
            "networks_overlap",
        ),
        Meaning.CONFIG,
    ),
    **dict.fromkeys(("unauthorized", "forbidden", "token_readonly"), Meaning.FATAL),
}
# «unsupported location for server type», in whatever order.
_NOT_SOLD_THERE: Final = re.compile(r"(?is)(?=.*\b(?:location|datacenter)\b)(?=.*server[ _]?type)(?=.*\bunsupported\b)")
# Of a network without a free address, instead of its own code.
_NO_ADDRESS: Final = re.compile(r"(?i)\bno subnet or ip\b")
# Of a full placement group.
_GROUP_CODES: Final = frozenset({"placement_error", "service_error"})

# Of what the vendor says of single fields.
LONGEST_REASON: Final = 300

_OF_TOKENS: Final = {
    "unauthorized": "Hetzner does not know the token; make another in the project and give it to Growth",
    "forbidden": "the token may not do this: make one with the rights Read & Write",
    "token_readonly": "the token may only read: make one with the rights Read & Write",
}


def meaning(code: str, message: str = "") -> Meaning:
    """A code that is not known blames nobody: it is tried again."""
    if code == "invalid_input" and _NOT_SOLD_THERE.match(message):
        return Meaning.CAPACITY
    if code == "service_error" and _NO_ADDRESS.search(message):
        return Meaning.CONFIG
    return _MEANINGS.get(code, Meaning.TRANSIENT)


def may_be_of_group(error: Refused) -> bool:
    """Whether a placement group that is full or gone may be the cause. Each such code has others: whoever hears it counts."""
    return error.code in _GROUP_CODES or meaning(error.code, error.message) is Meaning.CONFIG


def told(error: Refused) -> str:
    """A refusal for people."""
    return in_words(error.code, error.message, error.details)


def in_words(code: str, message: str, details: Mapping[str, Any] | None = None) -> str:
    """For people: the vendor's own words with their code; of tokens ours, because the vendor's may quote the token."""
    if code in _OF_TOKENS:
        return _OF_TOKENS[code]
    said = ": ".join(filter(None, (message, _of_fields(details or {}))))
    return f"{said} ({code})" if said else code or "no reason was given"


def _of_fields(details: Mapping[str, Any]) -> str:
    """What is wrong with single fields; of one field without its name, which the message has."""
    fields = details.get("fields")
    told_of: dict[str, str] = {}
    for field in fields if isinstance(fields, list) else []:
        messages = field.get("messages") if isinstance(field, dict) else None
        texts = [each for each in messages if isinstance(each, str)] if isinstance(messages, list) else []
        if texts:
            told_of[str(field.get("name", ""))] = ", ".join(texts)
    if len(told_of) == 1:
        return next(iter(told_of.values()))[:LONGEST_REASON]
    return "; ".join(f"{name}: {text}" for name, text in told_of.items())[:LONGEST_REASON]
