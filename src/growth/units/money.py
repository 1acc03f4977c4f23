"""Prices, exact: integers of a billionth of the currency.

Why integers and not `Decimal`: plans add and compare prices in their innermost loops, where an int is several times
cheaper, and equal sums must be equal in whatever order they were added. Why a billionth: clouds quote an hour with four
decimals, value-added tax makes six or seven of them, and a monthly price divided by its hours needs a few more; what
finer rounding would add is below a cent over a hundred thousand machine-years.

Which month: an estimate for a month uses 730 hours, as the clouds' own calculators do. Where a cloud bills a month at most
its monthly price (Hetzner's is that of 624 hours, Linode's of 666 and two thirds), `monthly` takes so many hours.
"""

import dataclasses
import decimal
import fractions
from collections.abc import Iterable
from typing import Final

from growth.units.errors import MoneyError, shown

NANO: Final = 1_000_000_000

HOURS_PER_MONTH: Final = 730  # 8760 h / 12

Hours = int | fractions.Fraction

_SYMBOLS: Final = {"EUR": "€", "USD": "$", "GBP": "£"}


@dataclasses.dataclass(frozen=True, slots=True)
class Money:
    """`nano` billionths of `currency` (ISO 4217). Sums and comparisons of two currencies are a `MoneyError`."""

    nano: int
    currency: str

    @classmethod
    def parse(cls, amount: str | float | decimal.Decimal, currency: str) -> "Money":
        """From a cloud's price list: text or number, rounded to the nearest billionth (half to even)."""
        try:
            if isinstance(amount, bool):
                raise TypeError
            value = decimal.Decimal(str(amount).strip())
        except (decimal.InvalidOperation, TypeError):
            raise MoneyError(f"{shown(amount)} is not an amount of money: write a number such as 0.0088") from None
        if not value.is_finite() or abs(value) >= NANO:
            raise MoneyError(f"{shown(amount)} is not an amount of money: it must be finite and below a billion")
        if len(currency) != 3 or not (currency.isascii() and currency.isalpha() and currency.isupper()):
            raise MoneyError(f"{shown(currency)} is not a currency: write its three letters, such as EUR")
        return cls(int((value * NANO).to_integral_value(decimal.ROUND_HALF_EVEN)), currency)

    @classmethod
    def zero(cls, currency: str) -> "Money":
        return cls(0, currency)

    @property
    def exact(self) -> str:
        """The exact amount for JSON and objects, without trailing zeros: `0.0088`, `41.2`, `3`."""
        whole, part = divmod(abs(self.nano), NANO)
        text = f"{whole}.{part:09}".rstrip("0").rstrip(".")
        return f"-{text}" if self.nano < 0 else text

    def __add__(self, other: "Money") -> "Money":
        return Money(self.nano + self._same(other).nano, self.currency)

    def __sub__(self, other: "Money") -> "Money":
        return Money(self.nano - self._same(other).nano, self.currency)

    def __neg__(self) -> "Money":
        return Money(-self.nano, self.currency)

    def __mul__(self, times: int) -> "Money":
        return Money(self.nano * times, self.currency)

    __rmul__ = __mul__

    def divided(self, parts: int) -> "Money":
        """One of `parts` equal parts, rounded to the nearest billionth (half to even)."""
        quotient, rest = divmod(self.nano, parts)
        up = 2 * rest > parts or (2 * rest == parts and quotient % 2 == 1)
        return Money(quotient + up, self.currency)

    def __lt__(self, other: "Money") -> bool:
        return self.nano < self._same(other).nano

    def __le__(self, other: "Money") -> bool:
        return self.nano <= self._same(other).nano

    def __gt__(self, other: "Money") -> bool:
        return self.nano > self._same(other).nano

    def __ge__(self, other: "Money") -> bool:
        return self.nano >= self._same(other).nano

    def __str__(self) -> str:
        """For people: two decimals, up to four where they say something below one: `€41.20`, `€0.0088`."""
        sign, left = "-" if self.nano < 0 else "", abs(self.nano)
        mark = _SYMBOLS.get(self.currency, f"{self.currency} ")
        places = 2 if left >= NANO else 4
        unit = NANO // 10**places
        rounded = Money(left, self.currency).divided(unit).nano
        if rounded == 0 and left > 0:
            return f"{sign}<{mark}0.0001"
        whole, part = divmod(rounded, 10**places)
        digits = f"{part:0{places}}"
        return f"{sign}{mark}{whole:,}.{digits[:2]}{digits[2:].rstrip('0')}"

    def _same(self, other: "Money") -> "Money":
        if other.currency != self.currency:
            raise MoneyError(f"{self} and {other} are not in one currency: Growth does not convert")
        return other


def total(amounts: Iterable[Money], *, currency: str) -> Money:
    """The sum; `currency` is that of an empty one."""
    result = Money.zero(currency)
    for amount in amounts:
        result += amount
    return result


def monthly(hourly: Money, *, hours: Hours = HOURS_PER_MONTH) -> Money:
    """The estimate for a month of which so many hours are billed, rounded to the nearest billionth (half to even)."""
    return Money(round(hourly.nano * hours), hourly.currency)


def print_hourly(amount: Money) -> str:
    """`€41.20/h`."""
    return f"{amount}/h"


def print_monthly(amount: Money) -> str:
    """`€30,076.00/month`, whose hours `monthly` was given."""
    return f"{amount}/month"
