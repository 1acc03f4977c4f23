"""What goes wrong on purpose, by rates."""

import dataclasses
from typing import Final

from growth.sim.clouds import frame
from growth.sim.clouds.frame import CallFaults, Trouble


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Faults(CallFaults):
    """Of writes: busy and late_tags. Of new machines: the others."""

    busy: float = 0.0
    """400 «Linode busy.», nothing done."""
    unavailable: float = 0.0
    """400 for want of capacity although there is stock."""
    partial: float = 0.0
    """A pool is scaled and its new node never comes: only its count says so."""
    late_id: float = 0.0
    """A new node has no instance for half a minute more."""
    stuck: float = 0.0
    """A new node never gets an instance."""
    late_tags: float = 0.0
    """Lists show an instance's new tags half a minute later than the instance itself."""


GOOD: Final = Faults()
NAMES: Final = tuple(field.name.replace("_", "-") for field in dataclasses.fields(Faults))
LATE_SECONDS: Final = 30.0
# In the vendor's words.
REFUSALS: Final = {
    Trouble.STRANGER: (401, "Invalid Token"),
    Trouble.SPENT: (429, "Too many requests"),
    Trouble.READONLY: (401, "Your OAuth token is not authorized to use this endpoint."),
    Trouble.NOWHERE: (404, "Not found"),
    Trouble.METHOD: (405, "Method Not Allowed"),
    Trouble.LIMITED: (429, "Too many requests"),
    Trouble.BROKEN: (500, "Internal Server Error"),
    Trouble.DOWN: (503, "Service Unavailable"),
    Trouble.DISTURBED: (400, "Linode busy."),
}


def parse_faults(text: str) -> Faults:
    """`NAME=RATE,…`. `ValueError` says what is wrong."""
    return Faults(**frame.parse_rates(text, NAMES))


def parse_stock(text: str) -> dict[tuple[str, str], int]:
    """`TYPE@REGION=N,…`, a `*` in either place for all. `ValueError` says what is wrong."""
    return frame.parse_stock(text, example="TYPE@REGION=NUMBER, such as g6-standard-2@us-east=2")
