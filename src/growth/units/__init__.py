"""Quantities, durations, times and money, exact.

The bottom layer: may import nothing of Growth. `quantity` reads and prints Kubernetes quantities, `resources` calculates
with amounts by resource name, `duration` and `timestamp` speak Go's and RFC 3339's dialects as the API server does,
`money` counts prices. Promises: integers only, no rounding that is not named in a docstring, and bad input is a
`UnitError` that says what was given and how a right one looks.
"""

from growth.units.duration import NEVER, Duration, parse_or_never, print_or_never
from growth.units.errors import DurationError, MoneyError, QuantityError, TimestampError, UnitError
from growth.units.money import HOURS_PER_MONTH, Money, monthly, print_hourly, print_monthly
from growth.units.quantity import Quantity, Style, milli_cpu, print_bytes, print_count, print_milli_cpu, whole
from growth.units.timestamp import parse_time, print_micro_time, print_time

__all__ = [
    "HOURS_PER_MONTH",
    "NEVER",
    "Duration",
    "DurationError",
    "Money",
    "MoneyError",
    "Quantity",
    "QuantityError",
    "Style",
    "TimestampError",
    "UnitError",
    "milli_cpu",
    "monthly",
    "parse_or_never",
    "parse_time",
    "print_bytes",
    "print_count",
    "print_hourly",
    "print_micro_time",
    "print_milli_cpu",
    "print_monthly",
    "print_or_never",
    "print_time",
    "whole",
]
