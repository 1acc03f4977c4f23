"""What goes wrong on purpose, by rates, and the stock that is told at the start."""

import dataclasses
from typing import Final

from growth.sim.clouds import frame
from growth.sim.clouds.frame import CallFaults, Trouble


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Faults(CallFaults):
    """Of writes: conflict. Of new servers: the others."""

    conflict: float = 0.0
    """409: something else has changed it meanwhile; nothing done."""
    unavailable: float = 0.0
    """412 resource_unavailable although there is stock."""
    placement: float = 0.0
    """422 placement_error although there is room."""
    late_failure: float = 0.0
    """An action of a new server fails while it runs; the server stays and is billed."""
    late_refusal: float = 0.0
    """The same, and what was ordered is blamed for it."""
    stuck: float = 0.0
    """The actions of a new server never end, until it is deleted."""
    vanish: float = 0.0
    """A new server is gone a few minutes after it came up."""


GOOD: Final = Faults()
NAMES: Final = tuple(field.name.replace("_", "-") for field in dataclasses.fields(Faults))
# In the vendor's words.
REFUSALS: Final = {
    Trouble.STRANGER: (401, "unauthorized", "unable to authenticate"),
    Trouble.READONLY: (403, "token_readonly", "the token is only allowed to perform GET requests"),
    Trouble.NOWHERE: (404, "not_found", "no such resource"),
    Trouble.METHOD: (405, "method_not_allowed", "method not allowed"),
    Trouble.LIMITED: (429, "rate_limit_exceeded", "limit of requests per hour reached"),
    Trouble.BROKEN: (500, "server_error", "internal server error"),
    Trouble.DOWN: (503, "service_error", "a service is not available"),
    Trouble.DISTURBED: (409, "conflict", "the resource has changed during the request, please retry"),
}


def parse_faults(text: str) -> Faults:
    """`NAME=RATE,…`. `ValueError` says what is wrong."""
    return Faults(**frame.parse_rates(text, NAMES))


def parse_stock(text: str) -> dict[tuple[str, str], int]:
    """`TYPE@LOCATION=N,…`, a `*` in either place for all. `ValueError` says what is wrong."""
    return frame.parse_stock(text, example="TYPE@LOCATION=NUMBER, such as cx33@fsn1=2")
