"""Provider IDs of clouds that number their machines: a scheme and the number. Pure."""

from typing import Final

# So many always fit into 64 bits, which is what vendors count with.
_DIGITS: Final = 18


def number_of(provider_id: str, *, scheme: str) -> int | None:
    """The machine's number; None where the ID is of another scheme, or no number follows it."""
    digits = provider_id.removeprefix(scheme) if provider_id.startswith(scheme) else ""
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS else None
