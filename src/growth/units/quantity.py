"""Kubernetes quantities: `1500m`, `1.5Gi`, `12e6`, read exactly and printed as the API server prints them.

What the server does, tried on 1.36.3 and held by `tests/cluster/test_quantities.py`:

- A quantity remembers the style that it was written in (`M`, `Mi` or `e6`) and keeps to it when printed: the largest
  suffix with a whole number before it. `1024Mi` is printed `1Gi`, `1000m` is `1`, `1500m` stays.
- The server does not touch a short text whose exponent is already a multiple of three, so `1.500`, `+1` and `01Mi` come
  back as they were written. `text` is what it prints.
- Parts finer than a billionth are rounded up, away from zero; a binary quantity is capped at 2^63-1.
- In the resource lists of pods, nodes, volumes and limit ranges, parts finer than a thousandth are rounded up when the
  object is written: `rounded_up(-3)`.
- A binary quantity below 1024, or with a fraction of a byte, is printed in the decimal style: `0.5Ki` is `512`.
- An empty number counts as zero (`k`, `+`, `.`).

One deliberate difference: the server prints decimal values above 999E without a suffix and so loses them (`10000E`
becomes `10`). We print them with an exponent (`10e21`) and lose nothing.
"""

import dataclasses
import enum
import functools
import re
from typing import Final

from growth.units.errors import QuantityError, shown

# The largest number that Kubernetes calculates with (a signed 64-bit integer), in whatever unit it is counted.
LARGEST: Final = 2**63 - 1

# The finest part that a quantity can hold: 10^-9.
NANO: Final = -9

# The server sets no limit to a quantity's length; ours keeps an absurd text from costing time. No real one is longer.
LONGEST_TEXT: Final = 1000

_SHAPE: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<suffix>[eEinumkKMGTP]*[+-]?[0-9]*)", re.ASCII
)
_EXPONENT: Final = re.compile(r"[eE](?P<power>[+-]?[0-9]+)", re.ASCII)

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_BINARY_SUFFIX: Final = {0: "", **{power: suffix for suffix, power in _BINARY.items()}}

# Beyond this many digits the server calculates with big numbers, and then prints afresh instead of repeating the text.
_SHORT_DECIMAL_DIGITS: Final = 18
_SHORT_BINARY_DIGITS: Final = 14


class Style(enum.Enum):
    """How a quantity is printed."""

    DECIMAL = "decimal"  # 12M
    BINARY = "binary"  # 12Mi
    EXPONENT = "exponent"  # 12e6


@dataclasses.dataclass(frozen=True, slots=True)
class Quantity:
    """`mantissa` × 10^`exponent`, exact; made by `parse` and `of`, which keep the mantissa free of trailing zeros.

    Two quantities are equal when their values are; style and text do not count.
    """

    mantissa: int
    exponent: int
    style: Style = dataclasses.field(compare=False)
    text: str = dataclasses.field(compare=False)

    @classmethod
    def of(cls, value: int, *, exponent: int = 0, style: Style = Style.DECIMAL) -> "Quantity":
        """`value` × 10^`exponent`, with the text in which the server would print it."""
        mantissa, exponent = _normal(value, exponent)
        if exponent < NANO:
            mantissa, exponent = _normal(_divided(mantissa, places=NANO - exponent), NANO)
        return cls(mantissa, exponent, style, _printed(mantissa, exponent, style))

    @classmethod
    def parse(cls, text: str | float) -> "Quantity":
        """Accepts what the server accepts, numbers of a JSON or YAML document included; else `QuantityError`."""
        if isinstance(text, bool) or not isinstance(text, str | int | float):
            raise QuantityError(f"{shown(text)} is not a quantity: write a number such as 500m, 2 or 1.5Gi")
        return _parsed(text.strip() if isinstance(text, str) else str(text))

    def rounded_up(self, exponent: int) -> "Quantity":
        """The same where it is no finer than 10^`exponent`, else the next larger multiple of it, printed afresh."""
        if self.exponent >= exponent:
            return self
        multiple = _divided(self.mantissa, places=exponent - self.exponent)
        return Quantity.of(multiple, exponent=exponent, style=self.style)

    def scaled(self, exponent: int = 0) -> int:
        """The value counted in units of 10^`exponent`, rounded away from zero, and at most `LARGEST` in magnitude."""
        shift = self.exponent - exponent
        if shift < 0:
            counted = _divided(self.mantissa, places=-shift)
        elif shift <= 19:
            counted = self.mantissa * 10**shift
        else:  # 10^20 is beyond the largest already; a hostile exponent must not cost time
            counted = LARGEST if self.mantissa > 0 else -LARGEST
        return max(-LARGEST, min(LARGEST, counted))

    def __str__(self) -> str:
        return self.text


def _parsed(text: str) -> Quantity:
    if len(text) > LONGEST_TEXT:
        raise QuantityError(f"{shown(text)} is not a quantity: it is longer than {LONGEST_TEXT} characters")
    match = _SHAPE.fullmatch(text)
    if match is None or not text:
        raise QuantityError(f"{shown(text)} is not a quantity: write a number and a suffix, such as 500m, 2 or 1.5Gi")
    sign, whole, fraction, suffix = match["sign"], match["whole"], match["fraction"] or "", match["suffix"]
    if suffix in _BINARY:
        return _binary(text, sign, whole, fraction, power=_BINARY[suffix])
    exponent, style = _decimal_exponent(text, suffix)
    digits = (whole.lstrip("0") or "0") + fraction
    short = len(digits) <= _SHORT_DECIMAL_DIGITS and exponent - len(fraction) >= NANO
    if not short:
        _must_have_digits(text, whole + fraction)
    value = Quantity.of(int(f"{sign}{digits}"), exponent=exponent - len(fraction), style=style)
    kept = short and (exponent - len(fraction)) % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return dataclasses.replace(value, text=text) if kept else value


def _binary(text: str, sign: str, whole: str, fraction: str, *, power: int) -> Quantity:
    digits = whole.lstrip("0") or "0"
    short = not fraction and len(digits) <= _SHORT_BINARY_DIGITS - 3 * power
    if not short:
        _must_have_digits(text, whole + fraction)
    # Exact: a binary multiple of a decimal fraction is a decimal fraction of the same length.
    value = Quantity.of(int(digits + fraction) * 1024**power, exponent=-len(fraction), style=Style.BINARY)
    if value.scaled() >= LARGEST:
        value = Quantity.of(LARGEST, style=Style.BINARY)
    style = Style.DECIMAL if value.exponent < 0 and abs(value.mantissa) < 10**-value.exponent else Style.BINARY
    value = Quantity.of(value.mantissa * (-1 if sign == "-" else 1), exponent=value.exponent, style=style)
    # The server repeats a short text unless the number is a multiple of eight; then it might want a larger suffix.
    return dataclasses.replace(value, text=text) if short and int(digits) % 8 else value


def _decimal_exponent(text: str, suffix: str) -> tuple[int, Style]:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], Style.DECIMAL
    match = _EXPONENT.fullmatch(suffix)
    if match is None or not -(2**63) <= int(match["power"]) < 2**63:
        raise QuantityError(
            f"{shown(text)} is not a quantity: the suffix {shown(suffix)} is none of "
            "n u m k M G T P E, Ki Mi Gi Ti Pi Ei, e<number>"
        )
    return (int(match["power"]) + 2**31) % 2**32 - 2**31, Style.EXPONENT  # the server keeps 32 bits of it


def _must_have_digits(text: str, digits: str) -> None:
    """Without a digit the server reads zero, but only where it takes its short way."""
    if not digits:
        raise QuantityError(f"{shown(text)} is not a quantity: there is no digit before the suffix")


def _normal(mantissa: int, exponent: int) -> tuple[int, int]:
    """The same value with a mantissa that does not end in zero."""
    if mantissa == 0:
        return 0, 0
    while mantissa % 10 == 0:
        mantissa //= 10
        exponent += 1
    return mantissa, exponent


def _divided(mantissa: int, *, places: int) -> int:
    """By 10^`places`, rounded away from zero: who asks for a little gets at least that."""
    # As many places as the mantissa has bits make less than one already; a hostile exponent must not cost time.
    divisor: int = 10 ** min(places, mantissa.bit_length())
    quotient = -(-abs(mantissa) // divisor)
    return quotient if mantissa >= 0 else -quotient


def _printed(mantissa: int, exponent: int, style: Style) -> str:
    if mantissa == 0:
        return "0"
    if style is Style.BINARY and exponent >= 0:
        value = mantissa * 10**exponent
        if abs(value) >= 1024:
            power = 0
            while value % 1024 == 0 and power < 6:
                value //= 1024
                power += 1
            return f"{value}{_BINARY_SUFFIX[power]}"
    whole_thousands = exponent - exponent % 3
    number = mantissa * 10 ** (exponent - whole_thousands)
    if style is not Style.EXPONENT and whole_thousands in _DECIMAL_SUFFIX:
        return f"{number}{_DECIMAL_SUFFIX[whole_thousands]}"
    return f"{number}e{whole_thousands}" if whole_thousands else str(number)


def milli_cpu(quantity: str | float) -> int:
    """Thousandths of a core, rounded up: `milli_cpu("1.5") == 1500`."""
    return _counted(quantity, -3) if isinstance(quantity, str) else Quantity.parse(quantity).scaled(-3)


def whole(quantity: str | float) -> int:
    """Bytes, pods, devices: the value in its base unit, rounded up to a whole number."""
    return _counted(quantity, 0) if isinstance(quantity, str) else Quantity.parse(quantity).scaled()


@functools.lru_cache(maxsize=65_536)  # a cluster repeats a few hundred spellings over all its pods
def _counted(text: str, exponent: int) -> int:
    return Quantity.parse(text).scaled(exponent)


def print_milli_cpu(amount: int) -> str:
    """`1500m`, `2`."""
    return Quantity.of(amount, exponent=-3).text


def print_bytes(amount: int) -> str:
    """`1536Mi`, `1Gi`; below 1024 a plain number."""
    return Quantity.of(amount, style=Style.BINARY).text


def print_count(amount: int) -> str:
    """`110`, `5k`."""
    return Quantity.of(amount).text
