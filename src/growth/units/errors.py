"""What is said when a number cannot be read.

    UnitError (a ValueError)
    ├── QuantityError    not a Kubernetes quantity
    ├── DurationError    not a duration in Go's syntax
    ├── TimestampError   not an RFC 3339 time
    └── MoneyError       not an amount of money, or two currencies in one sum

Each message names the text that was given and shows how a right one looks; where it stood is for the caller to add.
"""


class UnitError(ValueError):
    """A text or value that is no such number."""


class QuantityError(UnitError):
    """Not a Kubernetes quantity."""


class DurationError(UnitError):
    """Not a duration in Go's syntax."""


class TimestampError(UnitError):
    """Not an RFC 3339 time."""


class MoneyError(UnitError):
    """Not an amount of money, or two currencies in one sum."""


def shown(text: object) -> str:
    """The given text for a message: quoted, and cut where it is long."""
    quoted = repr(text)
    return quoted if len(quoted) <= 60 else f"{quoted[:40]}… ({len(quoted) - 2} characters)"
