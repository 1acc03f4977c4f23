"""How many calls an account may make: a number in a window, and one of its own for each sort of call."""

import dataclasses
import datetime as dt
import math
from typing import Final

MINUTE: Final = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class Rate:
    calls: int
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Lists are pages; purchases are new instances."""

    lists: Rate = Rate(200, MINUTE)
    purchases: Rate = Rate(20, 15.0)
    others: Rate = Rate(1600, MINUTE)


class Window:
    """Whole again at once when it ends; the next begins with the next call."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._left = rate.calls
        self._ends: dt.datetime | None = None

    def spend(self, now: dt.datetime, *, calls: int = 1) -> bool:
        if self._ends is None or now >= self._ends:
            self._left, self._ends = self._rate.calls, now + dt.timedelta(seconds=self._rate.seconds)
        if self._left < 1:
            return False
        self._left = max(self._left - calls, 0)
        return True

    def headers(self, now: dt.datetime) -> dict[str, str]:
        return {
            "x-ratelimit-limit": str(self._rate.calls),
            "x-ratelimit-remaining": str(self._left),
            "x-ratelimit-reset": str(math.ceil((self._ends or now).timestamp())),
        }

    def retry_after(self, now: dt.datetime) -> int:
        """Seconds, for a call that was refused."""
        wait = max(((self._ends or now) - now).total_seconds(), 0.0) if self._left < 1 else 0.0
        return max(math.ceil(wait), 1)
