"""A fake over HTTP on loopback, without TLS. The vendor's API is at its own paths; what only a fake has is below /fake.

GET  /fake/machines                      every machine with its user data, which the API never shows
GET  /fake/ledger                        what was bought, from when to when, and what it costs so far
GET  /fake/calls                         the last requests and how they ended
PUT  /fake/stock   {"TYPE@PLACE": 2}     how many can be bought from now on; null: as many as anybody wants
PUT  /fake/faults  {"lost-answer": 0.1}  all rates; what is not named is 0
PUT  /fake/token   {"readonly": true}    whether the token may only read
POST /fake/spend   {"calls": 200}        somebody else uses the account's calls
POST /fake/clock   {"seconds": 60}       its clock goes on by so much at once, and what was under way happens; who uses it has
                                         another clock, which does not
"""

import abc
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any, Final, Generic, TypeVar

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from growth.api.kinds import Json
from growth.sim.clouds.api import FakeApi
from growth.sim.clouds.frame import Dropped
from growth.sim.clouds.ledger import Purchase
from growth.sim.ports import Request

F = TypeVar("F", bound=FakeApi)

LOOPBACK: Final = "127.0.0.1"
CONTROL: Final = "/fake/"
# A month at a time.
LONGEST_SKIP: Final = 31 * 24 * 3600


class _Malformed(logging.Filter):
    """What is no HTTP is answered with 400: whoever sent it hears of it, and nobody else needs to."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


_log = logging.getLogger(__name__)
_log.addFilter(_Malformed())


class Control(abc.ABC, Generic[F]):
    """What only a fake has, below /fake; a vendor says it in its own words."""

    def __init__(self, fake: F) -> None:
        self.fake: Final = fake

    def answer(self, method: str, path: str, body: Json) -> tuple[int, Json]:
        """Status and body, for a path below /fake. `ValueError` says what is wrong with the body."""
        match method, path:
            case "GET", "machines":
                return 200, {"machines": self.machines()}
            case "GET", "ledger":
                return 200, self._ledger()
            case "GET", "calls":
                return 200, {"calls": [msgspec.to_builtins(each) for each in self.fake.calls]}
            case "PUT", "stock":
                numbers = {place: None if number is None else _number(place, number) for place, number in body.items()}
                for place, number in numbers.items():
                    self.stock(place, number)
            case "PUT", "faults":
                self.faults(",".join(f"{name}={rate}" for name, rate in body.items()))
            case "PUT", "token":
                readonly = body.get("readonly", False)
                if readonly is not True and readonly is not False:
                    raise ValueError(f"readonly is true or false, not {readonly!r}")
                self.fake.readonly = readonly
            case "POST", "spend":
                self.fake.spend(_number("calls", body.get("calls", 0)))
            case "POST", "clock":
                self.fake.skip(_seconds(body.get("seconds", 0)))
                return 200, {"now": self.fake.now.isoformat()}
            case _:
                return 404, {"error": "there is no such thing here"}
        return 200, {}

    def _ledger(self) -> Json:
        books, now = self.fake.ledger, self.fake.now
        return {
            "purchases": [
                {**self.purchase(each), "hours": each.hours(now), "cost": f"{each.cost(now):.4f}"}
                for each in books.purchases
            ],
            "standing": len(books.standing),
            "hours": books.hours(now),
            "cost": f"{books.cost(now):.4f}",
        }

    @abc.abstractmethod
    def machines(self) -> list[Json]:
        """What machines know of themselves."""

    @abc.abstractmethod
    def purchase(self, each: Purchase) -> Json:
        """What was bought, where, and from when to when."""

    @abc.abstractmethod
    def stock(self, place: str, number: int | None) -> None:
        """Of `TYPE@PLACE`."""

    @abc.abstractmethod
    def faults(self, text: str) -> None:
        """From now on, `NAME=RATE,…`."""


def _number(what: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{what} is a whole number of 0 or more, not {value!r}")
    return value


def _seconds(value: Any) -> int:
    seconds = _number("seconds", value)
    if seconds > LONGEST_SKIP:
        raise ValueError(f"seconds is at most {LONGEST_SKIP}, not {seconds}: skip several times")
    return seconds


@contextlib.asynccontextmanager
async def serving(control: Control[F], *, base: str, port: int = 0) -> AsyncIterator[str]:
    """Serves while the block runs; gives the address of the API, with its `base`. Port 0 takes any free one."""
    application = web.Application()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.startswith(CONTROL):
            return await _controlled(control, request)
        return await _answer(control.fake, request)

    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None, logger=_log, shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, LOOPBACK, port)
        await site.start()
        host, bound = runner.addresses[0][:2]
        yield f"http://{host}:{bound}{base}"
    finally:
        await runner.cleanup()


async def _answer(fake: FakeApi, request: web.Request) -> web.StreamResponse:
    asked = Request(
        request.method,
        str(request.rel_url),
        dict(request.headers),
        await request.read() if request.can_read_body else None,
    )
    try:
        answer = await fake(asked)
    except Exception as error:
        if not isinstance(error.__cause__, Dropped):
            raise
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)
    return web.Response(status=answer.status, headers=dict(answer.headers), body=answer.body)


async def _controlled(control: Control[F], request: web.Request) -> web.StreamResponse:
    raw = await request.read() or b"{}"
    try:
        body: Json = msgspec.json.decode(raw, type=dict[str, Any])
        status, told = control.answer(request.method, request.path.removeprefix(CONTROL), body)
    except (msgspec.DecodeError, RecursionError) as error:
        status, told = 422, {"error": f"the body is no object of JSON: {error}"}
    except ValueError as error:
        status, told = 422, {"error": str(error)}
    return web.Response(status=status, body=msgspec.json.encode(told), content_type="application/json")
