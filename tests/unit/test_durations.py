"""Durations: Go's syntax, Go's print, Karpenter's Never."""

import datetime as dt

import pytest

from growth.units.duration import Duration, parse_or_never, print_or_never
from growth.units.errors import DurationError


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1h30m", "1h30m0s"),
        ("720h", "720h0m0s"),
        ("0s", "0s"),
        ("0", "0s"),
        ("-0", "0s"),
        ("100ms", "100ms"),
        ("1.5h", "1h30m0s"),
        ("90s", "1m30s"),
        ("1500us", "1.5ms"),
        ("1500\u00b5s", "1.5ms"),
        ("1500\u03bcs", "1.5ms"),
        ("1500ns", "1.5\u00b5s"),
        ("1ns", "1ns"),
        ("-1.5s", "-1.5s"),
        ("+5m", "5m0s"),
        (".5m", "30s"),
        ("1.s", "1s"),
        ("1h1h", "2h0m0s"),
        ("0.3333333333333333333h", "20m0s"),
        ("2562047h47m16.854775807s", "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
    ],
)
def test_a_duration_is_read_and_printed_as_go_does(text: str, printed: str) -> None:
    """The same text, the same value, the same print as in Go."""
    assert str(Duration.parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "such as 30s, 10m or 1h30m"),
        ("-", "such as"),
        ("5", "lacks its unit"),
        ("1h30", "lacks its unit"),
        ("1d", "unit 'd' is none of ns us ms s m h"),
        ("1 h", "unit ' h'"),
        ("1H", "unit 'H'"),
        ("5min", "unit 'min'"),
        (".s", "such as"),
        ("h", "such as"),
        ("1e3s", "unit 'e'"),
        ("1h-1m", "unit 'h-'"),
        ("2562048h", "too long"),
        ("9223372036854775808ns", "too long"),
        ("123456789012345678901h", "too long"),
        ("Never", "such as"),
        ("\u0661s", "such as"),
    ],
)
def test_what_go_refuses_is_refused_with_the_reason(text: str, hint: str) -> None:
    """The message names the text and how a right one looks."""
    with pytest.raises(DurationError) as caught:
        Duration.parse(text)
    assert repr(text) in str(caught.value)
    assert hint in str(caught.value)


def test_never_is_no_duration_but_may_stand_for_one() -> None:
    """Karpenter's nillable durations: `Never` is None, anything else a duration, and the error offers both."""
    assert parse_or_never("Never") is None
    assert parse_or_never("30s") == Duration.of(seconds=30)
    assert print_or_never(None) == "Never"
    assert print_or_never(Duration.of(hours=720)) == "720h0m0s"
    with pytest.raises(DurationError, match="or Never"):
        parse_or_never("never")


def test_a_duration_is_given_in_pythons_types() -> None:
    """Seconds for deadlines, a timedelta for moments."""
    duration = Duration.parse("1h0m0.25s")
    assert duration.seconds == 3600.25
    assert duration.timedelta == dt.timedelta(hours=1, milliseconds=250)
    assert Duration.of(hours=1, minutes=1, seconds=0.25, nanoseconds=7).nanoseconds == 3_660_250_000_007
    assert Duration.parse("59m") < Duration.parse("1h")
