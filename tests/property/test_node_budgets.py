"""Budgets that anybody may have written: a number or a clear refusal, and never a crash."""

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from growth.api.karpenter import Budget
from growth.planning.budgets import BudgetError, active, allowance

_NOW = dt.datetime(2030, 1, 7, 12, 0, tzinfo=dt.UTC)

FIELD = st.one_of(
    st.sampled_from(
        ("*", "?", "0", "1", "5", "*/2", "*/15", "1-5", "10-20/3", "MON", "sun-tue", "1,2,3", "L", "7", "60")
    ),
    st.text(alphabet="0123456789*/,-?LW#MONSUa ", max_size=6),
)
SCHEDULES = st.one_of(st.lists(FIELD, min_size=4, max_size=6).map(" ".join), st.text(max_size=30))
DURATIONS = st.one_of(st.sampled_from(("1h", "30m", "24h", "1h30m", "8760h", "0m")), st.text(max_size=8))
MOMENTS = st.integers(0, 3_000_000_000).map(lambda seconds: _NOW + dt.timedelta(seconds=seconds))


def answer(budget: Budget, now: dt.datetime) -> bool | str:
    try:
        return active(budget, now)
    except BudgetError as error:
        return str(error)


@given(schedule=SCHEDULES, duration=DURATIONS, now=MOMENTS)
def test_a_schedule_is_read_or_refused(schedule: str, duration: str, now: dt.datetime) -> None:
    """Whatever stands there, the answer is yes, no, or a sentence that names what is wrong."""
    found = answer(Budget(nodes="1", schedule=schedule, duration=duration), now)
    assert isinstance(found, bool) or "schedule" in found or "duration" in found


@given(
    texts=st.lists(st.one_of(st.integers(0, 50).map(str), st.integers(0, 100).map("{}%".format)), max_size=5),
    nodes=st.integers(0, 500),
)
def test_more_budgets_never_allow_more(texts: list[str], nodes: int) -> None:
    """Each budget can only lower what is allowed, and a percentage never allows more than there are."""
    least: int | None = None
    for count in range(1, len(texts) + 1):
        found = allowance([Budget(nodes=text) for text in texts[:count]], nodes=nodes, reason="Empty", now=_NOW).nodes
        assert found is not None
        assert least is None or found <= least
        assert not texts[count - 1].endswith("%") or found <= nodes
        least = found
