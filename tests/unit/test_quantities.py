"""Quantities: the spellings that people write, and what the API server makes of them."""

import pytest

from growth.units.errors import QuantityError
from growth.units.quantity import (
    LARGEST,
    Quantity,
    Style,
    milli_cpu,
    print_bytes,
    print_count,
    print_milli_cpu,
    whole,
)


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("1.5", 1500),
        ("1", 1000),
        ("100m", 100),
        ("1500000u", 1500),
        ("0.0001", 1),
        ("1n", 1),
        ("1k", 1_000_000),
        ("2e-3", 2),
        ("-250m", -250),
        ("0", 0),
        (2, 2000),
        (0.25, 250),
    ],
)
def test_cpu_is_counted_in_thousandths_rounded_up(text: str | float, milli: int) -> None:
    """A finer part of a core than a thousandth counts as a whole thousandth."""
    assert milli_cpu(text) == milli


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1Ki", 1024),
        ("1.5Gi", 3 * 2**29),
        ("1Mi", 2**20),
        ("3Ti", 3 * 2**40),
        ("5Pi", 5 * 2**50),
        ("7Ei", 7 * 2**60),
        ("128974848", 128_974_848),
        ("129e6", 129_000_000),
        ("129M", 129_000_000),
        ("128974848000m", 128_974_848),
        ("100m", 1),
        ("1T", 10**12),
        ("1P", 10**15),
        ("1E", 10**18),
        ("+5", 5),
        (".5k", 500),
        ("5.", 5),
    ],
)
def test_everything_else_is_counted_whole_rounded_up(text: str, value: int) -> None:
    """Bytes and counts are exact integers; a fraction counts as one more."""
    assert whole(text) == value


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5", "500m"),
        ("1000", "1k"),
        ("1500m", "1500m"),
        ("1000Mi", "1000Mi"),
        ("1e3", "1e3"),
        ("1000e3", "1e6"),
        ("10e3", "10e3"),
        ("1e4", "10e3"),
        ("0.5Ki", "512"),
        ("0.0001Ki", "102400u"),
        ("1.00001Ki", "1024010240u"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("8Ei", "9223372036854775807"),
        ("100Ei", "9223372036854775807"),
        ("-9Ei", "-9223372036854775807"),
        ("0Mi", "0"),
        ("-0", "0"),
        ("k", "0"),
        ("999E", "999E"),
        ("1000000000000000000000e-3", "1e18"),
    ],
)
def test_a_quantity_keeps_its_style_and_takes_the_largest_suffix(written: str, printed: str) -> None:
    """Printed as the server prints: the style stays, the suffix is the largest that leaves a whole number."""
    assert str(Quantity.parse(written)) == printed


@pytest.mark.parametrize("text", ["1.500", "+1", "01Mi", "1.", "12.345k", "1E3", "+1Gi"])
def test_the_server_repeats_a_short_text_that_it_need_not_change(text: str) -> None:
    """A text that the server does not touch is not touched by us either."""
    assert str(Quantity.parse(text)) == text


def test_a_value_that_the_server_would_lose_is_printed_with_an_exponent() -> None:
    """Above 999E the server drops the suffix and so the value; we keep it."""
    assert str(Quantity.parse("10000E")) == "10e21"
    assert Quantity.parse("10e21") == Quantity.parse("10000E")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "such as 500m, 2 or 1.5Gi"),
        ("1.5Gb", "such as"),
        ("1gi", "such as"),
        ("1KI", "such as"),
        ("1mi", "suffix 'mi'"),
        ("1K", "suffix 'K'"),
        ("1e", "suffix 'e'"),
        ("1e+", "suffix 'e+'"),
        ("1.2.3", "such as"),
        ("--1", "suffix '-1'"),
        ("1 Gi", "such as"),
        ("١", "such as"),
        ("Ei", "no digit"),
        ("0x10", "such as"),
        ("1e99999999999999999999", "suffix"),
        ("1" * 1001, "longer than 1000"),
        (True, "such as"),
        (float("nan"), "such as"),
    ],
)
def test_what_is_no_quantity_is_refused_with_the_reason(text: str | float, hint: str) -> None:
    """The message names the text and how a right one looks."""
    with pytest.raises(QuantityError, match=r"is not a quantity") as caught:
        Quantity.parse(text)
    assert hint in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["1e30", "1e2147483647", "10000E", "9223372036854775808"])
def test_a_value_beyond_64_bits_counts_as_the_largest(text: str) -> None:
    """No integer of ours is larger than Kubernetes calculates with, and a hostile exponent costs nothing."""
    assert whole(text) == LARGEST
    assert milli_cpu(text) == LARGEST
    assert whole(f"-{text}") == -LARGEST


@pytest.mark.parametrize("text", ["1e-10", "1e-2147483648", "123456789012345678901e-2147483000"])
def test_a_value_too_fine_to_hold_is_one_billionth(text: str) -> None:
    """Who asks for a little gets at least that."""
    assert Quantity.parse(text) == Quantity.of(1, exponent=-9)


@pytest.mark.parametrize(
    ("written", "stored"), [("1.234560", "1235m"), ("100u", "1m"), ("1n", "1m"), ("1.500", "1.500"), ("-1u", "-1m")]
)
def test_a_resource_amount_is_rounded_up_to_a_thousandth(written: str, stored: str) -> None:
    """What is no finer stays as it was written."""
    assert str(Quantity.parse(written).rounded_up(-3)) == stored


def test_surrounding_space_is_ignored() -> None:
    """The server trims what stands around a quantity."""
    assert str(Quantity.parse(" 1Gi\n")) == "1Gi"


def test_amounts_are_printed_in_the_style_of_their_resource() -> None:
    """Cores in decimal, bytes in binary, counts in decimal."""
    assert [print_milli_cpu(amount) for amount in (1500, 2000, 1, 0)] == ["1500m", "2", "1m", "0"]
    assert [print_bytes(amount) for amount in (2**30, 3 * 2**29, 1023, 1025)] == ["1Gi", "1536Mi", "1023", "1025"]
    assert [print_count(amount) for amount in (110, 5000, 0)] == ["110", "5k", "0"]


def test_equality_is_that_of_values() -> None:
    """How a value is written does not matter to whether it is the same."""
    assert Quantity.parse("1Gi") == Quantity.parse("1073741824") == Quantity.of(2**30, style=Style.BINARY)
    assert hash(Quantity.parse("1000m")) == hash(Quantity.parse("1"))
    assert Quantity.parse("1G") != Quantity.parse("1Gi")
