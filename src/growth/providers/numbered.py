"""Numbers by which clouds call what they have, and provider IDs made of them: a scheme and the number. Pure."""

from typing import Final

# So many always fit into 64 bits, which is what vendors count with.
_DIGITS: Final = 18


def number_of(provider_id: str, *, scheme: str) -> int | None:
    """The machine's number; None where the ID is of another scheme, or no number follows it."""
    return number_in(provider_id.removeprefix(scheme)) if provider_id.startswith(scheme) else None


def number_in(text: str) -> int | None:
    """None where the text is no number, or longer than any that a vendor gives."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None
