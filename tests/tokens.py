"""Listens to what a test makes the product tell (log lines, events, errors, journals of calls), for tokens of clouds in it."""

from typing import Any

import pytest

from growth.api.clouds import CloudError
from growth.kube.events import Recorder
from growth.providers.http.errors import CallError, Refused
from growth.providers.http.journal import Entry, Journal
from growth.providers.http.secret import KeptSecret, Secret

# A part of a token is told too: vendors quote halves.
RUN = 8
# Shorter texts, and the word for a fake that takes any token, are no secrets.
LEAST = 16
NO_SECRET = frozenset({"of-no-account"})
# So many texts are looked through at a time.
MANY = 2000


class Ears:
    """Hears only once a token was made: most tests have none."""

    def __init__(self) -> None:
        self._tokens: set[str] = set()
        self._heard: list[str] = []
        self.found: list[str] = []

    def learn(self, text: str) -> None:
        token = text.strip()
        if len(token) >= LEAST and token not in NO_SECRET:
            self._tokens.add(token)

    def hear(self, *told: object) -> None:
        if self._tokens:
            self._heard.extend(map(str, told))
            if len(self._heard) > MANY:
                self.look()

    def look(self) -> None:
        """Whether a part of any token is in what was heard since the last time."""
        told, self._heard = "\n".join(self._heard), []
        parts = {token[at : at + RUN] for token in self._tokens for at in range(len(token) - RUN + 1)}
        seen = [part for part in parts if part in told]
        if seen:
            self.found += [line[:500] for line in told.splitlines() if any(part in line for part in seen)]


def listen(ears: Ears, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts ears where texts leave the product. Log lines are given to them by whoever sets up logging."""
    made, renewed, added = Secret.__init__, KeptSecret.renewed, Journal.add
    called, refused, evented = CallError.__init__, Refused.__init__, Recorder.event

    def make(self: Secret, text: str) -> None:
        made(self, text)
        ears.learn(text)

    def renew(self: KeptSecret, since: str) -> bool:
        changed = renewed(self, since)
        ears.learn(self.reveal())
        return changed

    def add(self: Journal, entry: Entry) -> None:
        ears.hear(entry)
        added(self, entry)

    def call(self: CallError, message: str, **more: Any) -> None:
        ears.hear(message)
        called(self, message, **more)

    def refuse(self: Refused, what: str, **more: Any) -> None:
        ears.hear(what, more)
        refused(self, what, **more)

    def fail(self: CloudError, *told: Any) -> None:
        ears.hear(*told)
        Exception.__init__(self, *told)

    def event(self: Recorder, about: Any, reason: str, message: str, **more: Any) -> None:
        ears.hear(message)
        evented(self, about, reason, message, **more)

    monkeypatch.setattr(Secret, "__init__", make)
    monkeypatch.setattr(KeptSecret, "renewed", renew)
    monkeypatch.setattr(Journal, "add", add)
    monkeypatch.setattr(CallError, "__init__", call)
    monkeypatch.setattr(Refused, "__init__", refuse)
    monkeypatch.setattr(CloudError, "__init__", fail)
    monkeypatch.setattr(Recorder, "event", event)
