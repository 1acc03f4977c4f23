"""Disruption budgets of pools: counts, percentages, reasons and schedules."""

import datetime as dt
from typing import Any

import pytest

from growth.api.karpenter import Budget
from growth.planning.budgets import BudgetError, active, allowance

MONDAY = dt.datetime(2030, 1, 7, 12, 0, tzinfo=dt.UTC)


def allowed(*budgets: Budget, nodes: int = 10, reason: str = "Empty", now: dt.datetime = MONDAY) -> int | None:
    return allowance(budgets, nodes=nodes, reason=reason, now=now).nodes


@pytest.mark.parametrize(
    ("text", "nodes", "size"),
    [
        *(("0", 10, 0), ("5", 10, 5), ("20", 10, 20)),
        *(("0%", 10, 0), ("10%", 10, 1), ("10%", 11, 2), ("5%", 1, 1), ("100%", 7, 7), ("33%", 10, 4), ("10%", 0, 0)),
    ],
)
def test_counts_and_percentages(text: str, nodes: int, size: int) -> None:
    """A percentage is of the pool's nodes and rounds up; a count is itself."""
    assert allowed(Budget(nodes=text), nodes=nodes) == size


def test_the_smallest_active_budget_of_the_reason_counts() -> None:
    """Budgets for other reasons do not bind; without any that does there is no bound."""
    assert allowed(Budget(nodes="5"), Budget(nodes="2"), Budget(nodes="3")) == 2
    assert allowed(Budget(nodes="5"), Budget(nodes="0", reasons=("Drifted",))) == 5
    assert allowed(Budget(nodes="5"), Budget(nodes="0", reasons=("Drifted", "Empty"))) == 0
    assert allowed(Budget(nodes="5", reasons=("Drifted",))) is None
    assert allowed() is None


def test_what_is_taken_is_subtracted_and_never_below_zero() -> None:
    """Nodes that are disrupted or not ready use the budget up."""
    found = allowance((Budget(nodes="3"),), nodes=10, reason="Empty", now=MONDAY)
    assert [found.less(taken) for taken in (0, 2, 3, 9)] == [3, 1, 0, 0]
    assert allowance((), nodes=10, reason="Empty", now=MONDAY).less(9) is None


@pytest.mark.parametrize(
    ("schedule", "duration", "at", "holds"),
    [
        ("0 9 * * *", "8h", "12:00:00", True),
        ("0 9 * * *", "8h", "09:00:00", True),
        ("0 9 * * *", "8h", "08:59:59", False),
        ("0 9 * * *", "8h", "16:59:59", True),
        ("0 9 * * *", "8h", "17:00:00", False),
        ("0 9 * * 1-5", "8h", "12:00:00", True),
        ("0 9 * * mon-fri", "8h", "12:00:00", True),
        ("0 9 * * SAT,SUN", "8h", "12:00:00", False),
        ("0 9 * * 0", "8h", "12:00:00", False),
        ("@daily", "12h1m", "12:00:30", True),
        ("@daily", "12h", "12:00:00", False),
        ("@hourly", "10m", "12:09:59", True),
        ("@hourly", "10m", "12:10:00", False),
        ("@weekly", "24h", "12:00:00", False),
        ("@weekly", "37h", "12:00:00", True),
        ("*/15 * * * *", "5m", "12:16:00", True),
        ("*/15 * * * *", "5m", "12:21:00", False),
        ("0 0 7 1 *", "24h", "12:00:00", True),
        ("0 0 ? * ?", "24h", "12:00:00", True),
        ("0 12 8 * 1", "1h", "12:30:00", True),
        ("0 12 */2 * 0", "1h", "12:30:00", True),
    ],
)
def test_schedules(schedule: str, duration: str, at: str, holds: bool) -> None:  # noqa: FBT001 - a table
    """Active from each hit for its duration, in UTC. 7 January 2030 is a Monday; two day fields are alternatives."""
    now = dt.datetime.fromisoformat(f"2030-01-07T{at}+00:00")
    assert active(Budget(nodes="0", schedule=schedule, duration=duration), now) is holds


def test_a_schedule_is_in_utc_wherever_the_clock_is() -> None:
    """Nine o'clock in UTC is eleven in Helsinki."""
    there = dt.timezone(dt.timedelta(hours=2))
    budget = Budget(nodes="0", schedule="0 9 * * *", duration="1h")
    assert active(budget, dt.datetime(2030, 1, 7, 11, 30, tzinfo=there))
    assert not active(budget, dt.datetime(2030, 1, 7, 9, 30, tzinfo=there))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"schedule": "0 25 * * *", "duration": "1h"}, "Bad hour"),
        ({"schedule": "0 9 * *", "duration": "1h"}, "has 4 fields"),
        ({"schedule": "0 9 * * 7", "duration": "1h"}, "day of week 7 does not exist"),
        ({"schedule": "0 9 L * *", "duration": "1h"}, "is not understood"),
        ({"schedule": "0 9 * * 1#2", "duration": "1h"}, "is not understood"),
        ({"schedule": "TZ=Europe/Berlin 0 9 * * *", "duration": "1h"}, "has 6 fields"),
        ({"schedule": "@every 1h", "duration": "1h"}, "has 2 fields"),
        ({"schedule": "0 9 31 2 *", "duration": "1h"}, "is no cron schedule"),
        ({"schedule": "0 9 * * *", "duration": "long"}, "duration 'long'"),
        ({"schedule": "0 9 * * *"}, "must be set together"),
        ({"nodes": "many"}, "neither a count nor a percentage"),
        ({"nodes": "9" * 5000}, "neither a count nor a percentage"),
        ({"nodes": "9" * 5000 + "%"}, "neither a count nor a percentage"),
    ],
)
def test_what_cannot_be_read_fails_closed(fields: dict[str, Any], message: str) -> None:
    """Nothing is allowed, whatever reasons the budget is for, and the fault names it."""
    budget = Budget(**{"nodes": "5", "reasons": ("Drifted",), **fields})
    found = allowance((Budget(nodes="100%"), budget), nodes=10, reason="Empty", now=MONDAY)
    assert found.nodes == 0
    (fault,) = found.faults
    assert fault.startswith("spec.disruption.budgets[1]: ")
    assert message in fault


def test_an_unreadable_schedule_is_an_error_of_its_own() -> None:
    """Whoever asks about one budget hears why."""
    with pytest.raises(BudgetError, match="Bad minute"):
        active(Budget(nodes="1", schedule="61 * * * *", duration="1h"), MONDAY)
