"""The server over HTTP on loopback, so that `kubectl` and `HttpApi` work on it. No TLS and no authentication: the bearer
token, where one is sent, is the user's name.
"""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import msgspec
from aiohttp import web

from growth.kube.memory.api import stream
from growth.kube.memory.server import MemoryServer
from growth.kube.memory.wire.routing import Answer, Request, Streaming, handle

LOOPBACK: Final = "127.0.0.1"
LARGEST_BODY: Final = 3 * 1024 * 1024  # bytes; the real server's limit for a request


@contextlib.asynccontextmanager
async def serving(server: MemoryServer, *, port: int = 0) -> AsyncIterator[str]:
    """Serves while the block runs; gives the URL. Port 0 takes any free one."""
    application = web.Application(client_max_size=LARGEST_BODY)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await _answer(server, request)

    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, LOOPBACK, port)
        await site.start()
        host, bound = runner.addresses[0][:2]
        yield f"http://{host}:{bound}"
    finally:
        server.cut_watches()
        await runner.cleanup()


async def _answer(server: MemoryServer, request: web.Request) -> web.StreamResponse:
    headers = {name.lower(): value for name, value in request.headers.items()}
    token = headers.get("authorization", "").removeprefix("Bearer ").strip()
    result = handle(
        server,
        Request(
            method=request.method,
            path=request.path,
            query=dict(request.query),
            headers=headers,
            body=await request.read(),
            user=token or "anonymous",
        ),
    )
    if isinstance(result, Answer):
        return _whole(result)
    return await _streamed(request, result)


def _whole(answer: Answer) -> web.Response:
    body = answer.body.encode() if isinstance(answer.body, str) else msgspec.json.encode(answer.body)
    headers = {"Content-Type": answer.content_type, "Cache-Control": "no-cache, private"}
    if isinstance(answer.body, dict) and answer.status == 429:
        wait = (answer.body.get("details") or {}).get("retryAfterSeconds")
        if wait is not None:
            headers["Retry-After"] = str(wait)
    return web.Response(status=answer.status, body=body, headers=headers)


async def _streamed(request: web.Request, streaming: Streaming) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    try:
        await response.prepare(request)
        events = stream(streaming.watch, timeout_seconds=streaming.timeout_seconds, bookmarks=streaming.bookmarks)
        async for event, stored in events:
            await response.write(streaming.line(event, stored))
        await response.write_eof()
    except ConnectionError:
        pass  # the client went away
    finally:
        streaming.end()
    return response


def kubeconfig(url: str, *, user: str = "admin") -> str:
    """A kubeconfig for the server, as text (JSON, which is YAML too)."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "growth", "cluster": {"server": url}}],
        "users": [{"name": user, "user": {"token": user}}],
        "contexts": [{"name": "growth", "context": {"cluster": "growth", "user": user}}],
        "current-context": "growth",
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def write_kubeconfig(path: Path, url: str, *, user: str = "admin") -> None:
    """Writes the kubeconfig, readable by its owner only."""
    path.touch(mode=0o600, exist_ok=True)
    path.write_text(kubeconfig(url, user=user), encoding="utf-8")
