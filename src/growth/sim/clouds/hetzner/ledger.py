"""What was bought and what it costs: a second witness that shares nothing with the project's own books.

It is told of a purchase and of a machine's end, and of nothing else. Hours are billed from the first second of each.
"""

import dataclasses
import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """One machine. `ended` is None while it is billed; prices are net, of everything that the machine has."""

    server: int
    name: str
    type: str
    location: str
    labels: Mapping[str, str]
    bought: dt.datetime
    hourly: Decimal
    monthly: Decimal
    ended: dt.datetime | None = None

    def hours(self, now: dt.datetime) -> int:
        """Started hours so far; at least one."""
        seconds = ((self.ended or now) - self.bought).total_seconds()
        return max(1, math.ceil(seconds / 3600))

    def cost(self, now: dt.datetime) -> Decimal:
        """What is owed so far. No calendar month costs more than the monthly price."""
        end = self.ended or now
        total, begin = Decimal(0), self.bought
        while True:
            following = (begin.replace(day=1) + dt.timedelta(days=32)).replace(day=1, hour=0, minute=0, second=0)
            following = following.replace(microsecond=0)
            last = end <= following
            part = (min(end, following) - begin).total_seconds()
            hours = max(1 if begin == self.bought else 0, math.ceil(part / 3600))
            total += min(hours * self.hourly, self.monthly)
            if last:
                return total
            begin = following


class Ledger:
    """In the order of purchase."""

    def __init__(self) -> None:
        self._purchases: dict[int, Purchase] = {}

    def bought(self, purchase: Purchase) -> None:
        if purchase.server in self._purchases:
            raise ValueError(f"server {purchase.server} was bought before")
        self._purchases[purchase.server] = purchase

    def repriced(self, server: int, *, hourly: Decimal, monthly: Decimal) -> None:
        """It has more or less than when it was bought (backups); the whole time counts at the new price."""
        self._purchases[server] = dataclasses.replace(self._purchases[server], hourly=hourly, monthly=monthly)

    def ended(self, server: int, at: dt.datetime) -> None:
        self._purchases[server] = dataclasses.replace(self._purchases[server], ended=at)

    @property
    def purchases(self) -> Sequence[Purchase]:
        return tuple(self._purchases.values())

    @property
    def standing(self) -> Sequence[Purchase]:
        """What is billed now."""
        return tuple(each for each in self._purchases.values() if each.ended is None)

    def hours(self, now: dt.datetime) -> int:
        return sum(each.hours(now) for each in self._purchases.values())

    def cost(self, now: dt.datetime) -> Decimal:
        return sum((each.cost(now) for each in self._purchases.values()), Decimal(0))
