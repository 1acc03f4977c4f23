"""What goes wrong on purpose, by rates, and the stock that is told at the start."""

import dataclasses
from collections.abc import Callable
from typing import Final

from growth.sim.clouds.hetzner.wire import Refusal

Chance = Callable[[float], bool]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Rates from 0 to 1. Of every call: the first seven. Of writes: conflict. Of new servers: the last five."""

    rate_limit: float = 0.0
    """429 although the project has calls left."""
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
    conflict: float = 0.0
    """409: something else has changed it meanwhile; nothing done."""
    unavailable: float = 0.0
    """412 resource_unavailable although there is stock."""
    placement: float = 0.0
    """422 placement_error although there is room."""
    late_failure: float = 0.0
    """An action of a new server fails while it runs; the server stays and is billed."""
    stuck: float = 0.0
    """The actions of a new server never end, until it is deleted."""
    vanish: float = 0.0
    """A new server is gone a few minutes after it came up."""


GOOD: Final = Faults()
NAMES: Final = tuple(field.name.replace("_", "-") for field in dataclasses.fields(Faults))
SLOW_SECONDS: Final = 20.0


class Dropped(Exception):
    """The connection breaks and no answer comes. `done`: the call was performed."""

    def __init__(self, *, done: bool) -> None:
        super().__init__("the connection breaks")
        self.done = done


class Page(Exception):
    """An answer that is not the API's."""

    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status = status


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
    lost_answer, slow, conflict = chance(faults.lost_answer), chance(faults.slow), chance(faults.conflict)
    first, second = chance(0.5), chance(0.5)
    refusal: Refusal | None = None
    if limited:
        refusal = Refusal(429, "rate_limit_exceeded", "limit of requests per hour reached")
    elif broken:
        refusal = (
            Refusal(500, "server_error", "internal server error")
            if first
            else Refusal(503, "service_error", "a service is not available")
        )
    elif conflict and write:
        refusal = Refusal(409, "conflict", "the resource has changed during the request, please retry")
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
    rates: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, rate = part.partition("=")
        if name not in NAMES:
            raise ValueError(f"{name!r} is no fault: {', '.join(NAMES)}")
        try:
            value = float(rate)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            raise ValueError(f"the rate of {name} is a number from 0 to 1, not {rate!r}")
        rates[name.replace("-", "_")] = value
    return Faults(**rates)


def parse_stock(text: str) -> dict[tuple[str, str], int]:
    """`TYPE@LOCATION=N,…`, a `*` in either place for all. `ValueError` says what is wrong."""
    stock: dict[tuple[str, str], int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        place, equals, number = part.partition("=")
        kind, at, location = place.partition("@")
        if not (equals and at and kind and location and number.isascii() and number.isdigit()):
            raise ValueError(f"{part!r} is no stock: write TYPE@LOCATION=NUMBER, such as cx33@fsn1=2")
        stock[kind.lower(), location.lower()] = int(number)
    return stock
