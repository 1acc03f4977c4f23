"""A fake's API as one function: a request comes in, an answer goes out, or the connection breaks.

Here is the order in which a call can go wrong; a vendor says what it has, what it counts, and in which words it refuses.
"""

import abc
import asyncio
import collections
import dataclasses
import datetime as dt
import email.utils
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from growth.ports import Clock, Random, Response, TransportError
from growth.providers.numbered import number_in
from growth.sim.clouds.estate import Estate
from growth.sim.clouds.frame import KEPT, Called, Dropped, Fate, Page, Refusal, Reply, Trouble
from growth.sim.clouds.ledger import Ledger
from growth.sim.ports import Answer, Request

H = TypeVar("H")
# What comes for a call that was performed and whose answer something in between did not wait for.
HALF_DONE: Final = Page(504)
# By method and by the pattern of the path below the API's base.
Routes = Mapping[tuple[str, str], H]


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """One request, taken apart. Names of headers are in lower case."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    body: bytes | None

    @classmethod
    def of(cls, request: Request) -> "Asked":
        parts = urllib.parse.urlsplit(request.url)
        headers = {name.lower(): value for name, value in request.headers.items()}
        return cls(request.method, parts.path, urllib.parse.parse_qs(parts.query), headers, request.body)

    @property
    def writes(self) -> bool:
        return self.method not in {"GET", "HEAD"}

    @property
    def token(self) -> str:
        """Empty where none is given."""
        word, _, token = self.headers.get("authorization", "").partition(" ")
        return token if word == "Bearer" else ""


class Meter(Protocol):
    """Counts calls."""

    def spend(self, now: dt.datetime) -> bool:
        """Whether the call may pass."""

    def headers(self, now: dt.datetime) -> dict[str, str]:
        """What every answer says of the calls that are left."""


class FakeApi(abc.ABC):
    """`await fake(request)` is the cloud of a `SimTransport`; `handle` is the same without waiting."""

    def __init__(self, estate: Estate[Any], *, clock: Clock, random: Random, tokens: frozenset[str]) -> None:
        """`estate` is what the API is about. `tokens` empty: any token is accepted."""
        self.readonly: bool = False
        """The token may only read from now on."""
        self.calls: collections.deque[Called] = collections.deque(maxlen=KEPT)
        self._estate = estate
        self._clock = clock
        self._random = random
        self._tokens = tokens
        self._ahead = dt.timedelta()

    # -- for those who watch and disturb --------------------------------------------------------------------------

    @property
    def now(self) -> dt.datetime:
        """The moment that it was last brought up to."""
        return self._estate.now

    def advance(self) -> None:
        """Brings it up to the clock, and as far beyond it as was skipped."""
        self._estate.advance(self._present)

    @property
    def _present(self) -> dt.datetime:
        return self._clock.now() + self._ahead

    def skip(self, seconds: float) -> None:
        """From now on its clock is so much further on: what is under way until then happens now."""
        self._ahead += dt.timedelta(seconds=seconds)
        self.advance()

    @property
    def ledger(self) -> Ledger:
        """What was bought, up to now."""
        self.advance()
        return self._estate.ledger

    @abc.abstractmethod
    def spend(self, calls: int) -> None:
        """Somebody else uses the account's calls."""

    # -- the API --------------------------------------------------------------------------------------------------

    async def __call__(self, request: Request) -> Response:
        """`TransportError` where the connection breaks."""
        try:
            answer, seconds = self.handle(request)
        except Dropped as error:
            raise TransportError(f"{request.method} {request.url}: the connection broke") from error
        if seconds:
            await asyncio.sleep(seconds)
        return answer

    def handle(self, request: Request) -> tuple[Answer, float]:
        """The answer, and how long it takes. Raises `Dropped`."""
        self.advance()
        now, asked = self.now, Asked.of(request)
        fate = self._fate(asked)
        headers = {
            "content-type": "application/json",
            "date": email.utils.format_datetime(now, usegmt=True),
            **self._marks(),
        }

        def note(status: int, code: str = "", *, done: bool = True) -> None:
            self.calls.append(Called(now, asked.method, asked.path, status, code, done))

        if fate.lost_request:
            note(0, done=False)
            raise Dropped(done=False)
        try:
            self._admit(asked, fate)
            reply = self._route(asked)
        except Refusal as refusal:
            note(0 if fate.lost_answer else refusal.status, refusal.code, done=False)
            if fate.lost_answer:
                raise Dropped(done=False) from None
            return self._answer(asked, refusal.status, refusal.body(), headers), fate.seconds
        except Page as html:
            note(html.status, done=False)
            return html.answer(), fate.seconds
        if asked.writes:
            self._estate.validate()
        if fate.lost_answer:
            note(0)
            raise Dropped(done=True)
        if fate.half_done:
            note(HALF_DONE.status)
            return HALF_DONE.answer(), fate.seconds
        note(reply.status)
        return self._answer(asked, reply.status, reply.body, headers), fate.seconds

    def _admit(self, asked: Asked, fate: Fate) -> None:
        """Raises what keeps the call from being performed, whatever it asks for."""
        if not asked.token or (self._tokens and asked.token not in self._tokens):
            raise self._refusal(Trouble.STRANGER, asked)
        if not self._meter(asked).spend(self.now):
            raise self._refusal(Trouble.SPENT, asked)
        if fate.page is not None:
            raise fate.page
        if fate.trouble is not None:
            raise self._refusal(fate.trouble, asked)
        if asked.writes and self.readonly:
            raise self._refusal(Trouble.READONLY, asked)

    def _answer(self, asked: Asked, status: int, body: Any, headers: Mapping[str, str]) -> Answer:
        limits = self._meter(asked).headers(self.now)
        return Answer(status, {**headers, **limits}, b"" if body is None else msgspec.json.encode(body))

    def _routed(self, routes: Routes[H], path: str, asked: Asked) -> tuple[H, tuple[Any, ...]]:
        """Who performs the call, and the numbers and names in its path."""
        known = False
        for (method, pattern), handler in routes.items():
            match = re.fullmatch(pattern, path)
            if match is None:
                continue
            known = True
            if method == asked.method:
                return handler, tuple(_read(each) for each in match.groups())
        raise self._refusal(Trouble.METHOD if known else Trouble.NOWHERE, asked)

    def _chance(self, rate: float) -> bool:
        return self._random.uniform(0.0, 1.0) < rate

    # -- the vendor's -----------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def _fate(self, asked: Asked) -> Fate:
        """What goes wrong with this call on purpose."""

    @abc.abstractmethod
    def _meter(self, asked: Asked) -> Meter:
        """What the call is counted by."""

    @abc.abstractmethod
    def _refusal(self, why: Trouble, asked: Asked) -> Refusal:
        """In the vendor's words."""

    @abc.abstractmethod
    def _route(self, asked: Asked) -> Reply:
        """Performs the call. Raises `Refusal`."""

    def _marks(self) -> Mapping[str, str]:
        """More headers of every answer."""
        return {}


def _read(text: str) -> int | str:
    """A number that is longer than any of a vendor's stays a text, and names nothing."""
    number = number_in(text)
    return text if number is None else number
