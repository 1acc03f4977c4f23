"""The fake over HTTP on loopback, without TLS. The API is below /v1, as the vendor's; what only a fake has is below /fake.

GET  /fake/machines                      every server with its user data, which the API never shows
GET  /fake/ledger                        what was bought, from when to when, and what it costs so far
GET  /fake/calls                         the last requests and how they ended
PUT  /fake/stock   {"cx33@fsn1": 2}      how many can be bought from now on; null: as many as anybody wants
PUT  /fake/faults  {"late-failure": 0.1} all rates; what is not named is 0
PUT  /fake/token   {"readonly": true}    whether the token may only read
POST /fake/spend   {"calls": 3000}       somebody else uses the account's calls
"""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
from aiohttp import web

from growth.api.kinds import Json
from growth.sim.clouds.hetzner.fake import HetznerFake
from growth.sim.clouds.hetzner.faults import Dropped, parse_faults, parse_stock
from growth.sim.clouds.hetzner.wire import text_time
from growth.sim.ports import Request

LOOPBACK: Final = "127.0.0.1"
CONTROL: Final = "/fake/"


@contextlib.asynccontextmanager
async def serving(fake: HetznerFake, *, port: int = 0) -> AsyncIterator[str]:
    """Serves while the block runs; gives the address of the API, with /v1. Port 0 takes any free one."""
    application = web.Application()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.startswith(CONTROL):
            return await _controlled(fake, request)
        return await _answer(fake, request)

    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, LOOPBACK, port)
        await site.start()
        host, bound = runner.addresses[0][:2]
        yield f"http://{host}:{bound}/v1"
    finally:
        await runner.cleanup()


async def _answer(fake: HetznerFake, request: web.Request) -> web.StreamResponse:
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


async def _controlled(fake: HetznerFake, request: web.Request) -> web.StreamResponse:
    body: Json = msgspec.json.decode(await request.read() or b"{}", type=dict[str, Any])
    match request.method, request.path.removeprefix(CONTROL):
        case "GET", "machines":
            return _json({"machines": machines(fake)})
        case "GET", "ledger":
            return _json(ledger(fake))
        case "GET", "calls":
            return _json({"calls": [msgspec.to_builtins(each) for each in fake.calls]})
        case "PUT", "stock":
            try:
                for place, number in body.items():
                    ((kind, location),) = parse_stock(f"{place}=0")
                    fake.market.stock(kind, location, number)
            except ValueError as error:
                return _json({"error": str(error)}, status=422)
            return _json({})
        case "PUT", "faults":
            try:
                fake.faults = parse_faults(",".join(f"{name}={rate}" for name, rate in body.items()))
            except ValueError as error:
                return _json({"error": str(error)}, status=422)
            return _json({})
        case "PUT", "token":
            fake.readonly = bool(body.get("readonly"))
            return _json({})
        case "POST", "spend":
            fake.spend(int(body.get("calls", 0)))
            return _json({})
        case _:
            return _json({"error": "there is no such thing here"}, status=404)


def machines(fake: HetznerFake) -> list[Json]:
    """What a machine knows of itself."""
    return [
        {
            "id": server.id,
            "name": server.name,
            "serverType": server.type.name,
            "location": server.location,
            "status": server.status,
            "runningSince": text_time(server.running_since),
            "cores": server.type.cores,
            "memoryGB": server.type.memory_gb,
            "diskGB": server.type.disk_gb,
            "architecture": server.type.architecture,
            "addresses": [*server.networks.values(), *([server.ipv4] if server.ipv4 else [])],
            "labels": dict(server.labels),
            "userData": server.user_data,
        }
        for server in fake.machines()
    ]


def ledger(fake: HetznerFake) -> Json:
    """The purchases and their sum."""
    books, now = fake.ledger, fake.project.now
    return {
        "purchases": [
            {
                "server": each.server,
                "name": each.name,
                "serverType": each.type,
                "location": each.location,
                "bought": text_time(each.bought),
                "ended": text_time(each.ended),
                "hours": each.hours(now),
                "cost": f"{each.cost(now):.4f}",
            }
            for each in books.purchases
        ],
        "standing": len(books.standing),
        "hours": books.hours(now),
        "cost": f"{books.cost(now):.4f}",
    }


def _json(body: Json, *, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")
