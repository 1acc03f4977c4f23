"""What goes wrong on purpose, by rates."""

import dataclasses
from typing import Final

from growth.sim.clouds import frame
from growth.sim.clouds.frame import SLOW_SECONDS, Chance, Page
from growth.sim.clouds.linode.wire import Refusal


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Rates from 0 to 1. Of every call: the first seven. Of writes: busy. Of new machines: the last four."""

    rate_limit: float = 0.0
    """429 although the account has calls left."""
    server_error: float = 0.0
    """500 or 503, nothing done."""
    bad_gateway: float = 0.0
    """502 or 504 with an HTML page by something in between, nothing done."""
    half_done: float = 0.0
    """The call is performed and answered 504."""
    lost_request: float = 0.0
    """The connection breaks before the call is performed."""
    lost_answer: float = 0.0
    """The call is performed, and the connection breaks."""
    slow: float = 0.0
    """The answer takes 20 seconds."""
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


GOOD: Final = Faults()
NAMES: Final = tuple(field.name.replace("_", "-") for field in dataclasses.fields(Faults))
LATE_SECONDS: Final = 30.0


@dataclasses.dataclass(frozen=True, slots=True)
class Draw:
    """What happens to one call. All are drawn for every call, in one order: changing a rate shifts no other."""

    refusal: Refusal | None
    page: Page | None
    half_done: bool
    lost_request: bool
    lost_answer: bool
    seconds: float


def draw(faults: Faults, chance: Chance, *, write: bool) -> Draw:
    """For the next call."""
    limited, broken, gateway = chance(faults.rate_limit), chance(faults.server_error), chance(faults.bad_gateway)
    half, lost_request = chance(faults.half_done), chance(faults.lost_request)
    lost_answer, slow, busy = chance(faults.lost_answer), chance(faults.slow), chance(faults.busy)
    first, second = chance(0.5), chance(0.5)
    refusal: Refusal | None = None
    if limited:
        refusal = Refusal(429, "Too many requests")
    elif broken:
        refusal = Refusal(500, "Internal Server Error") if first else Refusal(503, "Service Unavailable")
    elif busy and write:
        refusal = Refusal(400, "Linode busy.")
    return Draw(
        refusal=refusal,
        page=Page(502 if second else 504) if gateway else None,
        half_done=half,
        lost_request=lost_request,
        lost_answer=lost_answer,
        seconds=SLOW_SECONDS if slow else 0.0,
    )


def parse_faults(text: str) -> Faults:
    """`NAME=RATE,…`. `ValueError` says what is wrong."""
    return Faults(**frame.parse_rates(text, NAMES))


def parse_stock(text: str) -> dict[tuple[str, str], int]:
    """`TYPE@REGION=N,…`, a `*` in either place for all. `ValueError` says what is wrong."""
    return frame.parse_stock(text, example="TYPE@REGION=NUMBER, such as g6-standard-2@us-east=2")
