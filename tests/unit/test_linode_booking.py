"""What one process keeps in mind of pools of LKE: what has been missing for how long, and what was asked for lately."""

import datetime as dt

import pytest

from growth.providers.linode.booking import MOST_MISSING, Asked, Overdue


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> dt.datetime:
        return dt.datetime(2030, 1, 7, 8, tzinfo=dt.UTC) + dt.timedelta(seconds=self.time)

    def monotonic(self) -> float:
        return self.time

    def boot_time(self) -> float:
        return self.monotonic()


def test_what_nobody_looked_at_for_long_begins_to_be_missing_anew() -> None:
    """What was missing an hour ago and is again now need not have been missing between; what is gone takes no room."""
    clock = Watch()
    overdue: Overdue[str] = Overdue(clock, forget_seconds=120)
    assert overdue.seen("a", 1) == (0,)
    clock.time = 100
    assert overdue.seen("a", 1) == (100,)
    clock.time = 200
    assert overdue.seen("a", 1) == (200,)
    clock.time = 321
    assert overdue.seen("b", 1) == (0,)
    assert len(overdue) == 1
    assert overdue.seen("a", 1) == (0,)


def test_a_count_beyond_all_reason_takes_no_room() -> None:
    """No pool has as many nodes: what is missing of it is looked at up to a bound."""
    clock = Watch()
    overdue: Overdue[str] = Overdue(clock, forget_seconds=120)
    overdue.seen("a", 10**9)
    clock.time = 60
    assert overdue.seen("a", 10**9) == (60,) * MOST_MISSING


@pytest.mark.parametrize(("rises", "lost"), [((0,), 1), ((0, 200), 0), ((0, 200, 250), 0)])
def test_only_what_is_missing_beyond_all_that_was_asked_for_lately_is_lost(rises: tuple[int, ...], lost: int) -> None:
    """One is missing at the end, whichever: where others were asked for lately it may be one of them."""
    clock = Watch()
    asked: Asked[str] = Asked(clock, seconds=300)
    for count, at in enumerate(rises, start=1):
        clock.time = at
        asked.seen("pool", count)
    clock.time = 310
    assert asked.lost("pool", missing=1, late=1) == lost


def test_what_is_lost_stays_so_until_less_is_missing() -> None:
    """Whatever is asked for after it."""
    clock = Watch()
    asked: Asked[str] = Asked(clock, seconds=300)
    asked.seen("pool", 1)
    clock.time = 300
    assert asked.lost("pool", missing=1, late=1) == 1
    asked.seen("pool", 2)
    assert asked.lost("pool", missing=2, late=1) == 1
    assert asked.lost("pool", missing=1, late=1) == 1
    assert asked.lost("pool", missing=0, late=0) == 0
    assert asked.lost("pool", missing=1, late=0) == 0
