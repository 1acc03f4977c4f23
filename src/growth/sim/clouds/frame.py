"""What every fake of a cloud has: how calls go wrong, what was called, and the words by which people set both."""

import abc
import dataclasses
import datetime as dt
import enum
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from growth.api.kinds import Json
from growth.sim.ports import Answer

Chance = Callable[[float], bool]

SLOW_SECONDS: Final = 20.0
# Of the calls that a fake remembers.
KEPT: Final = 10_000
# How JSON fails to be read: it is none, its texts are no UTF-8, or it is nested without an end.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeError, RecursionError)


@dataclasses.dataclass(frozen=True, slots=True)
class Reply:
    """The call was performed. `body` None: there is none."""

    status: int
    body: Any = None


class Refusal(Exception, abc.ABC):
    """An answer with an error in it. `code` is for those who watch."""

    def __init__(self, text: str, *, status: int, code: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code

    @abc.abstractmethod
    def body(self) -> Json:
        """As the vendor writes it."""


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

    def answer(self) -> Answer:
        body = f"<html><body><h1>{self.status}</h1></body></html>".encode()
        return Answer(self.status, {"content-type": "text/html"}, body)


@dataclasses.dataclass(frozen=True, slots=True)
class Called:
    """One request as the fake saw it. `status` 0: the connection broke. `done`: it was performed."""

    at: dt.datetime
    method: str
    path: str
    status: int
    code: str = ""
    done: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CallFaults:
    """How often a call goes wrong, whatever it asks for: rates from 0 to 1. A vendor adds its own."""

    rate_limit: float = 0.0
    """429 although there are calls left."""
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


class Trouble(enum.Enum):
    """Why a call is refused before it reaches what it is about. Each vendor says it in its own words."""

    STRANGER = "stranger"
    """Its token is missing or not known."""
    SPENT = "spent"
    """No calls are left."""
    READONLY = "readonly"
    """Of writes: the token may only read."""
    NOWHERE = "nowhere"
    """There is no such path."""
    METHOD = "method"
    """The path is there for other methods."""
    # On purpose:
    LIMITED = "limited"
    BROKEN = "broken"
    DOWN = "down"
    DISTURBED = "disturbed"
    """Of writes: something else is at work on it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fate:
    """What happens to one call. All are drawn for every call, in one order: changing a rate shifts no other."""

    trouble: Trouble | None
    page: Page | None
    half_done: bool
    lost_request: bool
    lost_answer: bool
    seconds: float


def draw(faults: CallFaults, chance: Chance, *, disturbed: float) -> Fate:
    """For the next call. `disturbed` is the rate of that trouble, 0 for a call that only reads."""
    limited, broken, gateway = chance(faults.rate_limit), chance(faults.server_error), chance(faults.bad_gateway)
    half, lost_request = chance(faults.half_done), chance(faults.lost_request)
    lost_answer, slow, in_the_way = chance(faults.lost_answer), chance(faults.slow), chance(disturbed)
    first, second = chance(0.5), chance(0.5)
    trouble: Trouble | None = None
    if limited:
        trouble = Trouble.LIMITED
    elif broken:
        trouble = Trouble.BROKEN if first else Trouble.DOWN
    elif in_the_way:
        trouble = Trouble.DISTURBED
    return Fate(
        trouble=trouble,
        page=Page(502 if second else 504) if gateway else None,
        half_done=half,
        lost_request=lost_request,
        lost_answer=lost_answer,
        seconds=SLOW_SECONDS if slow else 0.0,
    )


def parse_rates(text: str, names: Sequence[str]) -> dict[str, float]:
    """`NAME=RATE,…`. `ValueError` says what is wrong."""
    rates: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, rate = part.partition("=")
        if name not in names:
            raise ValueError(f"{name!r} is no fault: {', '.join(names)}")
        try:
            value = float(rate)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            raise ValueError(f"the rate of {name} is a number from 0 to 1, not {rate!r}")
        rates[name.replace("-", "_")] = value
    return rates


def parse_stock(text: str, *, example: str) -> dict[tuple[str, str], int]:
    """`TYPE@PLACE=N,…`, a `*` in either place for all. `ValueError` says what is wrong."""
    stock: dict[tuple[str, str], int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        place, equals, number = part.partition("=")
        kind, at, location = place.partition("@")
        if not (equals and at and kind and location and number.isascii() and number.isdigit()):
            raise ValueError(f"{part!r} is no stock: write {example}")
        stock[kind.lower(), location.lower()] = int(number)
    return stock
