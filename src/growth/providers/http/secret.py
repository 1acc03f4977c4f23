"""A token that cannot be printed by accident, and that is cut out of whatever others print of it."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from growth.telemetry.redaction import HIDDEN, redacted_text

# A run of so many characters of a token in a text is no coincidence. Clouds quote halves of tokens in their errors.
_RUN: Final = 8


class Secret:
    """`reveal()` is for the one header that needs it. Equal texts are equal secrets."""

    __slots__ = ("_exchanges", "_runs", "_text")

    def __init__(self, text: str) -> None:
        self._text = _checked(text)
        self._runs = _runs(self._text)
        self._exchanges = 0

    def reveal(self) -> str:
        return self._text

    def renewed(self, since: str) -> bool:
        """Asked when the cloud refuses what was revealed: whether `reveal` gives another by now."""
        return since != self._text

    def exchanges(self) -> int:
        """Asked after a refusal: how often `reveal` came to give another, by now."""
        self.renewed(self._text)
        return self._exchanges

    def hide_in(self, text: str) -> str:
        """The text without the token, without any longer part of it, and without what else looks like a secret."""
        marked = bytearray(len(text))
        for run in self._runs:
            at = text.find(run)
            while at >= 0:
                marked[at : at + len(run)] = b"\1" * len(run)
                at = text.find(run, at + 1)
        if any(marked):
            parts: list[str] = []
            hiding = False
            for char, hidden in zip(text, marked, strict=True):
                if not hidden:
                    parts.append(char)
                elif not hiding:
                    parts.append(HIDDEN)
                hiding = bool(hidden)
            text = "".join(parts)
        return redacted_text(text)

    def hide_within(self, value: Any) -> Any:
        """The same for every text in a decoded JSON value, keys included."""
        if isinstance(value, str):
            return self.hide_in(value)
        if isinstance(value, Mapping):
            return {self.hide_in(str(key)): self.hide_within(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide_within(inner) for inner in value]
        return value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written anywhere")


class KeptSecret(Secret):
    """One that people exchange where it is kept. It is read again when the cloud refuses it; `read` gives None where that
    cannot be done, and what is no token is left alone. Whatever it was before stays hidden too.
    """

    __slots__ = ("_read",)

    def __init__(self, text: str, *, read: Callable[[], str | None]) -> None:
        super().__init__(text)
        self._read = read

    def renewed(self, since: str) -> bool:
        if not super().renewed(since):
            with contextlib.suppress(ValueError):
                text = _checked(self._read() or "")
                if text != self._text:
                    self._text = text
                    self._runs |= _runs(text)
                    self._exchanges += 1
        return super().renewed(since)


def _checked(text: str) -> str:
    stripped = text.strip()
    if not stripped or not stripped.isascii() or any(not char.isprintable() or char == " " for char in stripped):
        raise ValueError("a token is printable ASCII without spaces, and not empty")
    return stripped


def _runs(text: str) -> frozenset[str]:
    return frozenset(text[at : at + _RUN] for at in range(len(text) - _RUN + 1)) or frozenset({text})
