"""A server that answers exactly the bytes it is told, and remembers what it was asked.

For what a real API server cannot be made to do: break off in the middle, answer nonsense, say nothing.
"""

import asyncio
import contextlib
import dataclasses
import datetime as dt
from collections.abc import AsyncIterator, Callable

from growth.kube import access
from growth.kube.api import ALWAYS_OPEN, Gate
from growth.kube.http import HttpApi


@dataclasses.dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Script = Callable[[Request, asyncio.StreamWriter], None]


@dataclasses.dataclass
class Stub:
    """`script` writes the answer, and may close the connection instead."""

    script: Script
    url: str = ""
    seen: list[Request] = dataclasses.field(default_factory=list)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Stub"]:
        writers: list[asyncio.StreamWriter] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writers.append(writer)
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while not writer.is_closing():
                    request = await _read(reader)
                    self.seen.append(request)
                    self.script(request, writer)
                    await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield self
            for writer in writers:
                writer.close()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body)


def answer(code: int, body: bytes, *, headers: dict[str, str] | None = None) -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {code} X", f"Content-Length: {len(body)}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def always(code: int, body: bytes, *, headers: dict[str, str] | None = None) -> Script:
    def script(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(code, body, headers=headers))

    return script


def hang_up(_: Request, writer: asyncio.StreamWriter) -> None:
    """Takes the request and closes the connection without a word."""
    writer.close()


def say_nothing(_: Request, writer: asyncio.StreamWriter) -> None:
    """Takes the request and keeps the connection open."""


class FixedClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

    def now(self) -> dt.datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def boot_time(self) -> float:
        return self.monotonic()

    def advance(self, seconds: float) -> None:
        self.time += dt.timedelta(seconds=seconds)


@contextlib.asynccontextmanager
async def client(
    stub: Stub,
    *,
    token: str = "",
    gate: Gate = ALWAYS_OPEN,
    qps: float = 1000.0,
    burst: int = 1000,
    deadline_seconds: float = 10.0,
    found: access.Access | None = None,
    clock: FixedClock | None = None,
) -> AsyncIterator[HttpApi]:
    """A client of the stub."""
    async with HttpApi.connect(
        found or access.direct(stub.url, token=token),
        clock=clock or FixedClock(),
        user_agent="growth/test",
        gate=gate,
        qps=qps,
        burst=burst,
        deadline_seconds=deadline_seconds,
    ) as api:
        yield api
