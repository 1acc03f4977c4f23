"""/healthz, /readyz and /metrics on one port.

/healthz answers while the event loop turns, which is what a restart would cure. /readyz answers 503 and names what is
not synced, one line each. /metrics is what the given function says, in the format that the scraper asks for.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from aiohttp import web

# How long a scrape or probe that is under way may still take when the process ends.
SHUTDOWN_SECONDS: Final = 1.0


@contextlib.asynccontextmanager
async def serving(
    host: str,
    port: int,
    *,
    unready: Callable[[], Sequence[str]],
    metrics: Callable[[str], Awaitable[tuple[bytes, str]]],
) -> AsyncIterator[int]:
    """Serves inside the block; the port that was taken. OSError where it cannot be had. An empty host is all of them.

    `metrics` is given the Accept header and returns the body and its content type.
    """
    runner = web.AppRunner(
        application(unready=unready, metrics=metrics), access_log=None, shutdown_timeout=SHUTDOWN_SECONDS
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host or None, port).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def application(
    *, unready: Callable[[], Sequence[str]], metrics: Callable[[str], Awaitable[tuple[bytes, str]]]
) -> web.Application:
    """The routes alone, for whoever serves them."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        problems = unready()
        if problems:
            return web.Response(status=503, text="".join(f"{problem}\n" for problem in problems))
        return web.Response(text="ok\n")

    async def scrape(request: web.Request) -> web.Response:
        body, content_type = await metrics(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", scrape)])
    return app
