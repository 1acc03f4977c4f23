"""How many calls an account has left, as its own answers say, shared by all calls of one token.

Others use the same account (a cloud controller, a storage driver, people), so the number is a report and not a count of
ours: each answer corrects it, calls that are under way are taken off, and a share is left to the others. Below that share
we go no faster than the account recovers.
"""

import asyncio
import dataclasses
import math
from collections.abc import Mapping
from typing import Final

from growth.ports import Clock
from growth.providers.http.dates import http_date

# What an answer claims beyond that is not believed: we would be blind for as long.
LONGEST_WAIT_SECONDS: Final = 3600.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RateHeaders:
    """How a cloud reports its budget. Names in lower case; `reset` is in seconds since 1970.

    `steady`: the account recovers evenly and is whole at `reset`; otherwise it is whole again at once, at that moment.
    """

    limit: str = "ratelimit-limit"
    remaining: str = "ratelimit-remaining"
    reset: str = "ratelimit-reset"
    steady: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStatistics:
    """`remaining` is what the last answer said, None before the first; `waiting` are calls that wait for their turn."""

    limit: int | None
    remaining: int | None
    waiting: int
    waited_seconds: float


class Spent(Exception):
    """No call is left within the caller's patience."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{seconds:.0f} s")
        self.seconds = seconds


class RateBudget:
    """Calls wait in the order in which they came. A call that takes a turn must report with `ended`, however it ends."""

    def __init__(self, clock: Clock, headers: RateHeaders, *, spare_percent: int = 5) -> None:
        self._clock = clock
        self._headers = headers
        self._spare_percent = spare_percent
        self._limit: int | None = None
        self._remaining: int | None = None
        # What we may still send at `_as_of`; below 0 where calls wait. None: nothing is known, nothing is held back.
        self._left: float | None = None
        self._as_of = -math.inf
        self._per_second = 1.0
        self._blocked_until = -math.inf
        self._under_way = 0
        self._turn = 0
        self._heard_of_turn = -1
        self._waiting = 0
        self._waited = 0.0

    def statistics(self) -> BudgetStatistics:
        return BudgetStatistics(
            limit=self._limit, remaining=self._remaining, waiting=self._waiting, waited_seconds=self._waited
        )

    async def take(self, *, until: float) -> int:
        """Waits for this call's turn, whose number it gives. `Spent` at once where that is after `until` (monotonic)."""
        wait = self._wait_seconds()
        if wait and self._clock.monotonic() + wait > until:
            raise Spent(wait)
        if self._left is not None:
            self._left -= 1.0
        self._under_way += 1
        self._turn += 1
        turn = self._turn
        if wait:
            self._waiting += 1
            self._waited += wait
            try:
                await asyncio.sleep(wait)
            except BaseException:
                self.ended()
                raise
            finally:
                self._waiting -= 1
        return turn

    def ended(self) -> None:
        """A call that took a turn is over."""
        self._under_way -= 1

    def heard(self, turn: int, headers: Mapping[str, str]) -> None:
        """Corrects the budget by an answer to the call of that turn, which must not have `ended` yet."""
        limit, remaining = _whole(headers.get(self._headers.limit)), _whole(headers.get(self._headers.remaining))
        if limit is None or remaining is None or not limit:
            return
        now = self._clock.monotonic()
        self._recover(now)
        left = max(remaining - limit * self._spare_percent // 100, 0) - (self._under_way - 1)
        # Answers overtake each other: an older one must not give back what a newer one took.
        if turn < self._heard_of_turn and self._left is not None and left > self._left:
            return
        self._heard_of_turn = max(turn, self._heard_of_turn)
        self._limit, self._remaining = limit, remaining
        self._left, self._as_of = float(left), now
        whole_in = self._until_reset(headers)
        if self._headers.steady:
            known = whole_in is not None and whole_in > 0 and remaining < limit
            # Never so slow that a wrong clock on either side stops us.
            self._per_second = max(
                (limit - remaining) / whole_in if known and whole_in else 0.0, limit / LONGEST_WAIT_SECONDS
            )
        elif whole_in is not None:
            self._per_second = 0.0
            self._as_of = now + whole_in

    def refused(self, *, seconds: float) -> None:
        """The account said «too many»: for so long nobody calls."""
        seconds = min(seconds, LONGEST_WAIT_SECONDS)
        self._blocked_until = max(self._blocked_until, self._clock.monotonic() + seconds)

    def reset_seconds(self, headers: Mapping[str, str]) -> float | None:
        """How long until the account has a call again, as the headers of a refusal say; None where they do not."""
        whole_in = self._until_reset(headers)
        if whole_in is None:
            return None
        limit, remaining = _whole(headers.get(self._headers.limit)), _whole(headers.get(self._headers.remaining))
        if not self._headers.steady or not limit or remaining is None:
            return whole_in
        return whole_in / max(limit - remaining, 1)

    def _until_reset(self, headers: Mapping[str, str]) -> float | None:
        reset = _whole(headers.get(self._headers.reset))
        if reset is None:
            return None
        # By the server's own clock where it says its time: ours may be wrong.
        there = http_date(headers.get("date", ""))
        now = there if there is not None else self._clock.now()
        return min(max(reset - now.timestamp(), 0.0), LONGEST_WAIT_SECONDS)

    def _wait_seconds(self) -> float:
        now = self._clock.monotonic()
        self._recover(now)
        wait = max(self._blocked_until - now, 0.0)
        if self._left is None or self._left >= 1.0:
            return wait
        if self._per_second:
            return max(wait, (1.0 - self._left) / self._per_second)
        return max(wait, self._as_of - now)

    def _recover(self, now: float) -> None:
        if self._left is None or now <= self._as_of:
            return
        if self._per_second:
            self._left += (now - self._as_of) * self._per_second
            self._as_of = now
        else:
            self._left = None
        if self._left is not None and self._limit is not None:
            self._left = min(self._left, float(self._limit))


def _whole(text: str | None) -> int | None:
    """Clouds send whole numbers; some write them with a fraction."""
    head = (text or "").strip().split(".")[0]
    return int(head) if head.isascii() and head.isdigit() and len(head) <= 15 else None
