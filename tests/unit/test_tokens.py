"""The ears that every test has for tokens of clouds."""

import datetime as dt
from collections.abc import Callable

import pytest

from growth.api.clouds import CloudUnavailable, CreateError
from growth.providers.http import Entry, Journal, KeptSecret, Problem, Refused, Secret
from tests.tokens import Ears, listen

TOKEN = "wQfFvJ3kpXcY8sLrT2nBzH6mDgA9eUxK"
HALF = TOKEN[:16]


def entry(path: str) -> Entry:
    return Entry(at=dt.datetime(2030, 1, 1, tzinfo=dt.UTC), method="GET", path=path, attempt=1, outcome="200")


@pytest.mark.parametrize(
    "tell",
    [
        lambda text: CloudUnavailable(f"no answer to {text}"),
        lambda text: CreateError(f"refused: {text}"),
        lambda text: Refused("GET /servers", status=401, problem=Problem(code="unauthorized", message=text)),
        lambda text: Refused("GET /", status=401, problem=Problem(code="x", details={"fields": [text]})),
        lambda text: Journal().add(entry(f"/servers?name={text}")),
    ],
)
def test_half_a_token_is_heard(tell: Callable[[str], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is told; and nothing else is."""
    ears = Ears()
    listen(ears, monkeypatch)
    ears.learn(TOKEN)
    tell(f"{TOKEN[:4]}…")
    ears.look()
    assert not ears.found
    tell(HALF)
    ears.look()
    assert ears.found


def test_every_token_that_is_made_is_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that it was exchanged for."""
    ears = Ears()
    listen(ears, monkeypatch)
    ears.hear(HALF)
    Secret(TOKEN)
    KeptSecret(TOKEN, read=lambda: TOKEN[::-1]).renewed(TOKEN)
    ears.look()
    assert not ears.found, "nobody knew of a token then"
    ears.hear(HALF, HALF[::-1])
    ears.look()
    assert len(ears.found) == 2
