"""Calls of one cloud's API with one token: deadlines, repeats, the account's budget, the gate and the journal.

What may be repeated is said here and nowhere else:

- GET, HEAD, PUT and DELETE, because a repeat of them changes nothing more. POST only where the caller says that a repeat
  is harmless, e.g. because the name that it asks for can be given only once.
- A request of which nothing left this process, whatever it is: sending it is no repeat.
- One that was refused because of its token, where there is another token by now: nothing was done.

It is repeated when no whole answer came, or when the dialect calls the refusal transient, after a wait that grows and is
jittered, or that the cloud asked for. A repeated DELETE may find that the first did it: `not found` then is good news.
Cancelling a call ends it at once; what was sent stays sent.
"""

import asyncio
import dataclasses
import datetime as dt
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from growth.api.decoding import decode
from growth.kube.api import ALWAYS_OPEN, Gate
from growth.kube.backoff import Backoff, BackoffSettings
from growth.ports import Clock, NothingSent, Random, Response, Transport, TransportError
from growth.providers.http.budget import RateBudget, RateHeaders, Spent
from growth.providers.http.dates import retry_after
from growth.providers.http.errors import BudgetSpent, CallError, NotSent, Problem, Refused, Unanswered
from growth.providers.http.journal import Entry, Journal
from growth.providers.http.secret import Secret

T = TypeVar("T")

READS: Final = frozenset({"GET", "HEAD"})
IDEMPOTENT: Final = READS | {"PUT", "DELETE"}
TRANSIENT: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
TOO_MANY: Final = 429
# Somebody on the way waited in vain: it says nothing of what became of the request.
TIMED_OUT: Final = 408
# Because of who asks.
OF_THE_TOKEN: Final = frozenset({401, 403})
# Of a text that a cloud or something in between wrote.
LONGEST_MESSAGE: Final = 500
# A call is not begun with less left of its time: its answer could not be waited for.
LEAST_SECONDS: Final = 0.5
STEADY: Final = RateHeaders()
BACKOFF: Final = BackoffSettings(base_seconds=0.5, cap_seconds=15.0)


def transient_by_status(refused: Refused) -> bool:
    """Where a cloud's codes say nothing better."""
    return refused.status in TRANSIENT


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What is this vendor's alone. `problem` reads the vendor's error out of a body, None where it is not the vendor's."""

    name: str
    problem: Callable[[bytes], Problem | None]
    transient: Callable[[Refused], bool] = transient_by_status
    rate_headers: RateHeaders = STEADY
    request_id_header: str = "x-correlation-id"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """`deadline` is of a call with all its attempts and waits, `attempt` of one exchange."""

    deadline_seconds: float = 60.0
    attempt_seconds: float = 30.0
    attempts: int = 5
    backoff: BackoffSettings = BACKOFF
    user_agent: str = "growth"


DEFAULT: Final = ClientSettings()


@dataclasses.dataclass(slots=True)
class _Call:
    """One call through its attempts. `unsure` once any of them may have taken effect."""

    method: str
    path: str
    url: str
    body: bytes | None
    repeatable: bool
    until: float
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    token: str = ""
    """As the last attempt had it."""
    attempts: int = 0
    unsure: bool = False

    @property
    def writes(self) -> bool:
        return self.method not in READS

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def __repr__(self) -> str:
        return str(self)


class Client:
    """One account of one cloud. `budget` and `journal` may be shared with other clients of the same token."""

    def __init__(
        self,
        dialect: Dialect,
        *,
        endpoint: str,
        token: Secret,
        transport: Transport,
        clock: Clock,
        random: Random,
        gate: Gate = ALWAYS_OPEN,
        settings: ClientSettings = DEFAULT,
        budget: RateBudget | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._dialect = dialect
        self._endpoint = endpoint.rstrip("/")
        self._token = token
        self._transport = transport
        self._clock = clock
        self._random = random
        self._gate = gate
        self._settings = settings
        self.budget = budget if budget is not None else RateBudget(clock, dialect.rate_headers)
        self.journal = journal if journal is not None else Journal()

    async def call(
        self,
        method: str,
        path: str,
        answer: type[T],
        *,
        query: Sequence[tuple[str, str]] = (),
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
        deadline_seconds: float | None = None,
    ) -> T:
        """The answer's body as `answer` (unknown fields are skipped, a null reads as missing; empty reads as `{}`).

        `path` is below the endpoint, begins with a slash and holds no secret, as `query` and `headers`. `repeatable`
        overrides what the method says. Raises `CallError`, or `GateClosed` where a write may not go out.
        """
        settings = self._settings
        call = _Call(
            method=method,
            path=path,
            url=f"{self._endpoint}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else ""),
            body=None if body is None else msgspec.json.encode(body),
            repeatable=method in IDEMPOTENT if repeatable is None else repeatable,
            until=self._clock.monotonic() + (deadline_seconds or settings.deadline_seconds),
            headers=headers or {},
        )
        backoff = Backoff(self._random, settings.backoff)
        while True:
            try:
                response = await self._attempt(call)
                return self._read(call, response, answer)
            except CallError as error:
                wait = self._wait_before_next(call, error, backoff)
                if wait is None:
                    raise self._final(call, error) from error.__cause__
            await asyncio.sleep(wait)

    def exchanges(self) -> int:
        """How often people exchanged the token, by now."""
        return self._token.exchanges()

    # -- one attempt ----------------------------------------------------------------------------------------------

    async def _attempt(self, call: _Call) -> Response:
        if call.writes:
            self._gate.check()  # before the wait, so that a closed gate costs nobody a turn
        try:
            turn = await self.budget.take(until=call.until - LEAST_SECONDS)
        except Spent as spent:
            raise BudgetSpent(
                self._clean(f"{call}: the account has no calls left for {spent.seconds:.0f} s"),
                retry_after_seconds=spent.seconds,
                attempts=call.attempts,
            ) from None
        try:
            response = await self._exchange(call)
            self.budget.heard(turn, response.headers)
        finally:
            self.budget.ended()
        if response.status < 300:
            return response
        raise self._refusal(call, response)

    async def _exchange(self, call: _Call) -> Response:
        if call.writes:
            self._gate.check()
        call.attempts += 1
        call.token = self._token.reveal()
        began, at = self._clock.monotonic(), self._clock.now()

        def note(outcome: str, response: Response | None = None) -> None:
            self._note(call, at=at, seconds=self._clock.monotonic() - began, outcome=outcome, response=response)

        try:
            response = await self._transport.request(
                call.method,
                call.url,
                headers=self._headers(call),
                body=call.body,
                timeout_seconds=max(min(self._settings.attempt_seconds, call.until - began), LEAST_SECONDS),
            )
        except NothingSent as error:
            note("unsent")
            raise NotSent(self._clean(f"{call}: {error}"), attempts=call.attempts) from None
        except TransportError as error:
            call.unsure = call.unsure or call.writes
            note("lost")
            raise Unanswered(self._clean(f"{call}: {error}"), attempts=call.attempts) from None
        except asyncio.CancelledError:
            note("cancelled")
            raise
        note(str(response.status), response)
        return response

    def _headers(self, call: _Call) -> Mapping[str, str]:
        headers = {
            **call.headers,
            "Accept": "application/json",
            "Authorization": f"Bearer {call.token}",
            "User-Agent": self._settings.user_agent,
        }
        return headers if call.body is None else {**headers, "Content-Type": "application/json"}

    def _refusal(self, call: _Call, response: Response) -> Refused:
        if response.status >= 500 or response.status == TIMED_OUT:
            call.unsure = call.unsure or call.writes
        problem = self._problem(response)
        asked = retry_after(response.headers, self._clock.now())
        if response.status == TOO_MANY:
            if asked is None:
                asked = self.budget.reset_seconds(response.headers)
            self.budget.refused(seconds=asked if asked is not None else self._settings.backoff.base_seconds)
        return Refused(
            self._clean(str(call)),
            status=response.status,
            problem=problem,
            retry_after_seconds=asked,
            request_id=self._request_id(response),
            attempts=call.attempts,
            unsure=call.unsure,
        )

    def _problem(self, response: Response) -> Problem:
        try:
            problem = self._dialect.problem(response.body)
        except (msgspec.DecodeError, ValueError, TypeError, KeyError):
            problem = None
        if problem is None:
            return Problem(code="", message=f"by something that does not speak as {self._dialect.name} does")
        return Problem(
            code=self._clean(problem.code),
            message=self._clean(problem.message),
            details=self._token.hide_within(problem.details),
        )

    def _read(self, call: _Call, response: Response, answer: type[T]) -> T:
        try:
            return decode(response.body or b"{}", answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            call.unsure = call.unsure or call.writes
            # The place that does not fit, not the text that stands there.
            raise Unanswered(
                self._clean(f"{call}: the answer cannot be read: {error}"), attempts=call.attempts
            ) from None

    # -- after one ------------------------------------------------------------------------------------------------

    def _wait_before_next(self, call: _Call, error: CallError, backoff: Backoff) -> float | None:
        """Seconds until the call is tried again; None where it is not."""
        if isinstance(error, BudgetSpent) or call.attempts >= self._settings.attempts:
            return None
        asked = 0.0
        if isinstance(error, Refused):
            if error.status in OF_THE_TOKEN and self._token.renewed(call.token):
                return 0.0
            if not call.repeatable or not self._dialect.transient(error):
                return None
            asked = error.retry_after_seconds or 0.0
        elif not isinstance(error, NotSent) and not call.repeatable:
            return None
        wait = max(backoff.next(), asked)
        return wait if self._clock.monotonic() + wait < call.until - LEAST_SECONDS else None

    def _final(self, call: _Call, error: CallError) -> CallError:
        """What the caller is told: an earlier attempt may have done what the last one did not."""
        if isinstance(error, NotSent) and call.unsure:
            return Unanswered(f"{error}; an earlier attempt was sent", attempts=call.attempts)
        return error

    def _note(self, call: _Call, *, at: dt.datetime, seconds: float, outcome: str, response: Response | None) -> None:
        code, request_id = "", ""
        if response is not None:
            request_id = self._request_id(response)
            if response.status >= 300:
                code = self._problem(response).code
        self.journal.add(
            Entry(
                at=at,
                method=call.method,
                path=self._clean(call.url.removeprefix(self._endpoint)),
                attempt=call.attempts,
                outcome=outcome,
                code=code,
                seconds=seconds,
                remaining=self.budget.statistics().remaining,
                request_id=request_id,
            )
        )

    def _request_id(self, response: Response) -> str:
        return self._clean(response.headers.get(self._dialect.request_id_header, ""))[:100]

    def _clean(self, text: str) -> str:
        return self._token.hide_in(text[:LONGEST_MESSAGE])
