"""What a refusal of Linode's means. The vendor has no codes: status and words tell, and words that nobody knows blame the request.

| Meaning   | How it is told                                                     | What is done                                   |
|-----------|--------------------------------------------------------------------|------------------------------------------------|
| GONE      | 404                                                                | it is not there                                |
| CAPACITY  | 400 with a word of capacity, stock, a plan not sold, or about type | the offering is left out for a while           |
|           | 403 with words of a plan that is not to be had in the region       |                                                |
| FULL      | 400 about a pool's count                                           | the next type; else that pool waits            |
| QUOTA     | 400 with a limit of the account or the cluster                     | nobody buys for a minute                       |
| TRANSIENT | 408, 409, 429, 5xx, 400 «Linode busy.», anything by a proxy        | tried again                                    |
| CONFIG    | 400 about a field of the class, whatever its words; any other 400  | the claim ends; the class hears of its fields  |
| FATAL     | 401, any other 403                                                 | people must give another token                 |
"""

import enum
import re
from typing import Final

from growth.providers.http import Refused


class Meaning(enum.Enum):
    GONE = "gone"
    CAPACITY = "capacity"
    FULL = "full"
    QUOTA = "quota"
    TRANSIENT = "transient"
    CONFIG = "config"
    FATAL = "fatal"


_CAPACITY: Final = re.compile(r"(?i)capacity|out of stock|sold out|no hosts? available")
# The vendor says it with 403, as if it were a matter of rights.
_NOT_SOLD: Final = re.compile(r"(?i)\b(?:plan|type)\b.*(?:\bnot\b.*\bavailable\b|\bunavailable\b)")
_QUOTA: Final = re.compile(r"(?i)\blimit\b")
_BUSY: Final = re.compile(r"(?i)\bbusy\b")
_TRANSIENT: Final = frozenset({408, 409, 425, 429})
_FATAL: Final = frozenset({401, 403})
_FORBIDDEN: Final = 403

# Fields of a purchase that are as its class says, and so the same for every claim of it; a part of one comes after a dot.
_OF_CLASS: Final = frozenset(
    {
        "authorized_keys",
        "authorized_users",
        "disk_encryption",
        "firewall_id",
        "image",
        "k8s_version",
        "metadata",
        "placement_group",
        "swap_size",
        "tags",
        "update_strategy",
    }
)

OF_TOKENS: Final = (
    "Linode does not accept the token; make another with the rights to read and write Linodes and Kubernetes, and give"
    " it to Growth"
)


def meaning(error: Refused) -> Meaning:
    if not error.code or error.status in _TRANSIENT or error.status >= 500 or _BUSY.search(error.message):
        return Meaning.TRANSIENT
    if error.status in _FATAL:
        not_sold = error.status == _FORBIDDEN and _NOT_SOLD.search(error.message)
        return Meaning.CAPACITY if not_sold else Meaning.FATAL
    if error.status == 404:
        return Meaning.GONE
    if is_of_class(error):
        return Meaning.CONFIG
    if _CAPACITY.search(error.message) or _NOT_SOLD.search(error.message):
        return Meaning.CAPACITY
    if _QUOTA.search(error.message):
        return Meaning.QUOTA
    if error.code == "type":
        return Meaning.CAPACITY
    return Meaning.FULL if error.code == "count" else Meaning.CONFIG


def is_of_class(error: Refused) -> bool:
    """Whether the refused field is the class' own: then no other claim of the class fares better."""
    return error.code.partition(".")[0] in _OF_CLASS


def in_words(error: Refused) -> str:
    """For people: the vendor's own words and the field; of tokens ours before them."""
    if meaning(error) is Meaning.FATAL:
        return f"{OF_TOKENS}; Linode says: {error.message}" if error.message else OF_TOKENS
    field = f" (in {error.code})" if error.code not in {"", "api"} else ""
    return f"{error.message or 'no reason was given'}{field}"
