"""What every fake of a cloud has: how calls go wrong, what was called, and the words by which people set both."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Final

from growth.sim.ports import Answer

Chance = Callable[[float], bool]

SLOW_SECONDS: Final = 20.0
# Of the calls that a fake remembers.
KEPT: Final = 10_000


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
