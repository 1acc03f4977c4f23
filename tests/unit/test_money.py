"""Money: exact, in one currency, and readable."""

import decimal
from fractions import Fraction

import pytest

from growth.units.errors import MoneyError
from growth.units.money import Money, monthly, print_hourly, print_monthly, total


def euro(amount: str | float | decimal.Decimal) -> Money:
    return Money.parse(amount, "EUR")


@pytest.mark.parametrize(
    ("amount", "exact"),
    [
        ("0.0060000000000000", "0.006"),
        ("41.2", "41.2"),
        (0.0075, "0.0075"),
        (3, "3"),
        (decimal.Decimal("0.1"), "0.1"),
        ("0.0000000005", "0"),
        ("0.0000000015", "0.000000002"),
        ("-1.50", "-1.5"),
    ],
)
def test_a_price_is_read_to_the_billionth(amount: str | float | decimal.Decimal, exact: str) -> None:
    """What clouds send is kept exactly; what is finer goes to the nearest billionth, half to even."""
    assert euro(amount).exact == exact


@pytest.mark.parametrize(
    ("amount", "printed"),
    [
        ("41.2", "€41.20"),
        ("0.0088", "€0.0088"),
        ("0.006", "€0.006"),
        ("0.5", "€0.50"),
        ("0", "€0.00"),
        ("0.00001", "<€0.0001"),
        ("1234567.891", "€1,234,567.89"),
        ("-3.455", "-€3.46"),
        ("0.99999", "€1.00"),
    ],
)
def test_a_price_is_printed_for_people(amount: str, printed: str) -> None:
    """Two decimals, up to four below one; nothing that costs looks free."""
    assert str(euro(amount)) == printed


def test_other_currencies_show_their_letters_where_no_sign_is_known() -> None:
    """Every currency can be printed."""
    assert str(Money.parse("1.2", "USD")) == "$1.20"
    assert str(Money.parse("1.2", "CHF")) == "CHF 1.20"
    assert print_hourly(euro("41.2")) == "€41.20/h"
    assert print_monthly(euro("30076")) == "€30,076.00/month"


def test_a_month_is_730_hours_unless_the_cloud_bills_fewer() -> None:
    """As Hetzner and Linode do, whose hours are no whole number; less than nothing is rounded alike."""
    assert monthly(euro("0.01")) == euro("7.3")
    assert monthly(euro("0.01"), hours=624) == euro("6.24")
    assert monthly(euro("0.018"), hours=Fraction(2000, 3)) == euro("12")
    assert monthly(euro("0.0001"), hours=Fraction(2000, 3)) == euro("0.066666667")
    assert monthly(-euro("0.0001"), hours=Fraction(2000, 3)) == -euro("0.066666667")


def test_currencies_never_mix() -> None:
    """A sum or comparison of two currencies is an error, not a number."""
    dollar = Money.parse(1, "USD")
    for attempt in (lambda: euro(1) + dollar, lambda: euro(1) - dollar, lambda: euro(1) < dollar):
        with pytest.raises(MoneyError, match=r"€1.00 and \$1.00 are not in one currency"):
            attempt()
    assert euro(1) != dollar


@pytest.mark.parametrize(
    ("amount", "currency"), [("free", "EUR"), ("NaN", "EUR"), ("1e10", "EUR"), ("", "EUR"), (True, "EUR"), ("1", "eur")]
)
def test_what_is_no_price_is_refused(amount: str, currency: str) -> None:
    """A missing or broken price is an error and never zero."""
    with pytest.raises(MoneyError, match="is not a"):
        Money.parse(amount, currency)


def test_prices_add_up() -> None:
    """Sums, differences, multiples and parts."""
    assert total([euro("0.1")] * 3, currency="EUR") == euro("0.3")
    assert total([], currency="EUR") == Money.zero("EUR")
    assert 3 * euro("0.1") - euro("0.3") == Money.zero("EUR")
    assert -euro(1) == euro(-1)
    assert max(euro(1), euro(2)) == euro(2)
    assert euro(2) >= euro(2) > euro(1)
    assert euro(1) <= euro(1)
