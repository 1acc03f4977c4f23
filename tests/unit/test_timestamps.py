"""Times as Kubernetes writes them."""

import datetime as dt

import pytest

from growth.units.errors import TimestampError
from growth.units.timestamp import parse_time, print_micro_time, print_time

MOMENT = dt.datetime(2026, 11, 15, 16, 57, 0, 123456, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-15T16:57:00Z", MOMENT.replace(microsecond=0)),
        ("2026-11-15T16:57:00.123456Z", MOMENT),
        ("2026-11-15T16:57:00.123456789Z", MOMENT),
        ("2026-11-15T16:57:00.1Z", MOMENT.replace(microsecond=100_000)),
        ("2026-11-15T18:27:00.123456+01:30", MOMENT),
    ],
)
def test_a_time_is_read_into_utc(text: str, moment: dt.datetime) -> None:
    """Any offset, any fraction; what is finer than a microsecond is cut off."""
    assert parse_time(text) == moment
    assert parse_time(text).tzinfo is dt.UTC


def test_a_time_is_printed_as_the_server_prints_it() -> None:
    """`Time` in whole seconds, `MicroTime` with six digits, both in UTC and with four digits of year."""
    elsewhere = MOMENT.astimezone(dt.timezone(dt.timedelta(hours=-8)))
    assert print_time(elsewhere) == "2026-11-15T16:57:00Z"
    assert print_micro_time(elsewhere) == "2026-11-15T16:57:00.123456Z"
    assert print_micro_time(MOMENT.replace(microsecond=0)) == "2026-11-15T16:57:00.000000Z"
    assert print_time(dt.datetime(1, 1, 1, tzinfo=dt.UTC)) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-15",
        "2026-11-15T16:57:00",
        "2026-11-15 16:57:00Z",
        "2026-13-15T16:57:00Z",
        "0001-01-01T00:00:00+01:00",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    """The message shows how a right one looks or which part is wrong."""
    with pytest.raises(TimestampError, match="is not a time: "):
        parse_time(text)


def test_a_time_without_a_zone_is_refused() -> None:
    """A naive moment is a mistake of ours, found at once."""
    with pytest.raises(TimestampError, match="has no zone"):
        print_time(MOMENT.replace(tzinfo=None))
