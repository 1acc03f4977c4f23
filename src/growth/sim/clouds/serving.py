"""A fake over HTTP on loopback, without TLS. The vendor's API is at its own paths; what only a fake has is below /fake."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from growth.api.kinds import Json
from growth.ports import Response
from growth.sim.clouds.frame import Dropped
from growth.sim.ports import Request

LOOPBACK: Final = "127.0.0.1"
CONTROL: Final = "/fake/"

Call = Callable[[Request], Awaitable[Response]]
# Method, path below /fake and body; the status and the body of the answer. `ValueError` says what is wrong with the body.
Control = Callable[[str, str, Json], tuple[int, Json]]

NOTHING_THERE: Final = (404, {"error": "there is no such thing here"})


@contextlib.asynccontextmanager
async def serving(call: Call, control: Control, *, base: str, port: int = 0) -> AsyncIterator[str]:
    """Serves while the block runs; gives the address of the API, with its `base`. Port 0 takes any free one."""
    application = web.Application()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.startswith(CONTROL):
            return await _controlled(control, request)
        return await _answer(call, request)

    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, LOOPBACK, port)
        await site.start()
        host, bound = runner.addresses[0][:2]
        yield f"http://{host}:{bound}{base}"
    finally:
        await runner.cleanup()


async def _answer(call: Call, request: web.Request) -> web.StreamResponse:
    asked = Request(
        request.method,
        str(request.rel_url),
        dict(request.headers),
        await request.read() if request.can_read_body else None,
    )
    try:
        answer = await call(asked)
    except Exception as error:
        if not isinstance(error.__cause__, Dropped):
            raise
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)
    return web.Response(status=answer.status, headers=dict(answer.headers), body=answer.body)


async def _controlled(control: Control, request: web.Request) -> web.StreamResponse:
    body: Json = msgspec.json.decode(await request.read() or b"{}", type=dict[str, Any])
    try:
        status, told = control(request.method, request.path.removeprefix(CONTROL), body)
    except ValueError as error:
        status, told = 422, {"error": str(error)}
    return web.Response(status=status, body=msgspec.json.encode(told), content_type="application/json")
