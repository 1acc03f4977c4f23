"""Laws of units that hold for every value."""

import datetime as dt
import fractions
import string

from hypothesis import given
from hypothesis import strategies as st

from growth.units import resources
from growth.units.duration import Duration
from growth.units.errors import DurationError, QuantityError
from growth.units.money import Money
from growth.units.quantity import LARGEST, Quantity, Style, milli_cpu, print_bytes, print_count, print_milli_cpu, whole
from growth.units.timestamp import parse_time, print_micro_time, print_time

SUFFIXES = {
    "n": fractions.Fraction(1, 10**9),
    "u": fractions.Fraction(1, 10**6),
    "m": fractions.Fraction(1, 1000),
    "": fractions.Fraction(1),
    **{suffix: fractions.Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": fractions.Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)},
}

numbers = st.from_regex(r"[+-]?([0-9]{1,20}\.?[0-9]{0,12}|\.[0-9]{1,12})", fullmatch=True, alphabet=string.printable)
suffixes = st.one_of(
    st.sampled_from(sorted(SUFFIXES)),
    st.builds("{}{}".format, st.sampled_from("eE"), st.integers(min_value=-15, max_value=24)),
)
quantities = st.builds("{}{}".format, numbers, suffixes)
amounts = st.integers(min_value=-LARGEST, max_value=LARGEST)
vectors = st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), amounts)


def exact(text: str) -> fractions.Fraction:
    """The value by another way than ours: the number as a fraction times the suffix as a fraction."""
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        number = text.removesuffix(suffix)
        if suffix and number != text and number[-1] in "0123456789.":
            return fractions.Fraction(number.removesuffix(".")) * SUFFIXES[suffix]
    mantissa, _, power = text.lower().partition("e")
    return fractions.Fraction(mantissa.removesuffix(".")) * fractions.Fraction(10) ** int(power or 0)


def away_from_zero(value: fractions.Fraction) -> int:
    quotient = -(-abs(value.numerator) // value.denominator)
    return quotient if value >= 0 else -quotient


@given(quantities)
def test_the_value_is_exact_up_to_a_billionth_and_the_cap(text: str) -> None:
    """Integers agree with a calculation in fractions, rounded away from zero and capped."""
    held = fractions.Fraction(away_from_zero(exact(text) * 10**9), 10**9)
    if text.endswith("i"):
        held = max(fractions.Fraction(-LARGEST), min(fractions.Fraction(LARGEST), held))
    assert milli_cpu(text) == max(-LARGEST, min(LARGEST, away_from_zero(held * 1000)))
    assert whole(text) == max(-LARGEST, min(LARGEST, away_from_zero(held)))


@given(quantities)
def test_printing_keeps_the_value_and_settles(text: str) -> None:
    """What is printed reads as the same value and prints as itself."""
    quantity = Quantity.parse(text)
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@given(quantities)
def test_a_quantity_made_afresh_prints_no_fraction_and_no_smaller_suffix_than_needed(text: str) -> None:
    """The canonical print has no fraction, and its number ends in 000 only where no larger suffix exists."""
    quantity = Quantity.parse(text)
    printed = Quantity.of(quantity.mantissa, exponent=quantity.exponent, style=quantity.style).text
    number = printed.lstrip("-").rstrip("numkKMGTPEi") if "e" not in printed else printed.lstrip("-").partition("e")[0]
    assert number.isdigit()
    if printed[-1:] not in {"i", "E"} and quantity.style is not Style.BINARY:
        assert number == "0" or not number.endswith("000")


@given(amounts)
def test_amounts_survive_printing(amount: int) -> None:
    """Print and read are inverse for every amount."""
    assert milli_cpu(print_milli_cpu(amount)) == amount
    assert whole(print_bytes(amount)) == amount
    assert whole(print_count(amount)) == amount


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing but the right errors comes out of bad texts."""
    try:
        assert Quantity.parse(Quantity.parse(text).text) == Quantity.parse(text)
    except QuantityError as error:
        assert "is not a quantity" in str(error)  # noqa: PT017  both ways out are right
    try:
        assert Duration.parse(str(Duration.parse(text))) == Duration.parse(text)
    except DurationError as error:
        assert " is not a duration: " in str(error) or " is too long: " in str(error)  # noqa: PT017  both ways out are right


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_durations_survive_printing(nanoseconds: int) -> None:
    """Print and read are inverse over Go's whole range."""
    assert Duration.parse(str(Duration(nanoseconds))).nanoseconds == nanoseconds


@given(st.integers(min_value=-(10**17), max_value=10**17), st.integers(min_value=1, max_value=10**6))
def test_money_survives_printing_and_parts_are_nearest(nano: int, parts: int) -> None:
    """The exact text reads as the same amount; a part is within half a billionth of the true one."""
    money = Money(nano, "EUR")
    assert Money.parse(money.exact, "EUR") == money
    assert 2 * abs(money.divided(parts).nano * parts - nano) <= parts


@given(st.datetimes(timezones=st.just(dt.UTC)))
def test_times_survive_printing(moment: dt.datetime) -> None:
    """`MicroTime` keeps the microsecond, `Time` the second."""
    assert parse_time(print_micro_time(moment)) == moment
    assert parse_time(print_time(moment)) == moment.replace(microsecond=0)


@given(vectors, vectors)
def test_amounts_by_name_keep_the_laws_of_sums(one: dict[str, int], other: dict[str, int]) -> None:
    """Sums commute, a difference undoes a sum, a sum of positive amounts fits only where each part does."""
    together = resources.add(one, other)
    assert together == resources.add(other, one)
    back = resources.subtract(together, other)
    assert {name: back[name] for name in one} == one
    assert all(back[name] == 0 for name in back if name not in one)
    top = resources.largest(one, other)
    assert resources.fits(one, top)
    assert resources.fits(other, top)
    short = resources.lacking(one, other)
    assert resources.fits(resources.subtract(one, short), other)
