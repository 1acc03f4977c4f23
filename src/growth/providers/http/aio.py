"""`ports.Transport` over aiohttp. One request is one exchange: nothing is repeated, redirected or remembered."""

import asyncio
import contextlib
import os
import urllib.parse
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any, Final

import aiohttp
import msgspec
import yarl

from growth.kube.api import ALWAYS_OPEN, Gate
from growth.kube.errors import GateClosed
from growth.kube.proxies import is_this_machine, proxy_of
from growth.ports import NothingSent, Response, TransportError
from growth.providers.http.client import READS

CONNECT_SECONDS: Final = 10.0
KEEP_ALIVE_SECONDS: Final = 30.0
# Clouds throttle bursts; more connections than that only queue there.
CONNECTIONS: Final = 32
# The longest list that a cloud sends in a page takes a hundredth of it.
LARGEST_ANSWER: Final = 32 * 1024 * 1024


class EndpointError(ValueError):
    """The address of a cloud's API cannot be used; the message says why."""


class Answer(msgspec.Struct, frozen=True):
    """A `growth.ports.Response`."""

    status: int
    headers: dict[str, str]
    body: bytes


def check_endpoint(url: str) -> str:
    """The address without a slash at its end. A token goes to it, hence TLS, unless the address is this machine's."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise EndpointError(f"{url!r} is no address of an API: write https://HOST/PATH")
    if parts.username or parts.password:
        raise EndpointError("the address of an API holds no user and no password; the token is given apart from it")
    if parts.scheme == "http" and not is_this_machine(parts.hostname):
        raise EndpointError(
            f"{url!r} would carry the token in the clear: write https://, or http:// on this machine only"
        )
    return url.rstrip("/")


class AioTransport:
    """Made by `open`; its connections live as long as the block.

    A gate is asked when a write's first byte would leave, after the wait for a connection, and before its body leaves.
    """

    def __init__(self, session: aiohttp.ClientSession, *, gate: Gate, environ: Mapping[str, str]) -> None:
        self._session = session
        self._gate = gate
        self._environ = environ

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, *, gate: Gate = ALWAYS_OPEN, environ: Mapping[str, str] = os.environ
    ) -> AsyncIterator["AioTransport"]:
        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(_leaves)
        trace.on_request_chunk_sent.append(_goes_on)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS, keepalive_timeout=KEEP_ALIVE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            trace_configs=[trace],
        )
        async with session:
            yield cls(session, gate=gate, environ=environ)
        await asyncio.sleep(0)  # lets aborted connections close before the loop may end

    def behind(self, gate: Gate) -> "AioTransport":
        """The same connections, for writes that ask this gate."""
        return AioTransport(self._session, gate=gate, environ=self._environ)

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, timeout_seconds: float
    ) -> Response:
        sending = _Sending(self._gate, writes=method not in READS)
        try:
            async with (
                asyncio.timeout(timeout_seconds),
                self._session.request(
                    method,
                    yarl.URL(url, encoded=True),
                    headers=headers,
                    data=body,
                    proxy=proxy_of(url, self._environ) or None,
                    allow_redirects=False,  # the token belongs to this address and to no other
                    trace_request_ctx=sending,
                ) as response,
            ):
                answer = await _whole(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if sending.stopped is not None:
                raise sending.stopped from None
            kind = TransportError if sending.sent else NothingSent
            raise kind(_problem(error)) from error
        return answer


class _Sending:
    """aiohttp repeats some requests by itself when a kept connection turns out to be closed; a write must not be."""

    def __init__(self, gate: Gate, *, writes: bool) -> None:
        self._gate = gate
        self._writes = writes
        self.sent = False
        self.stopped: GateClosed | None = None

    def leaves(self) -> None:
        if self._writes:
            if self.sent:
                raise TransportError("the connection broke before the answer came")
            self._gate.check()
        self.sent = True

    def goes_on(self) -> None:
        """aiohttp sends the head together with the first of the body: until now nothing has left."""
        if self._writes:
            try:
                self._gate.check()
            except GateClosed as closed:
                self.stopped = closed
                raise


async def _leaves(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
    sending: _Sending = context.trace_request_ctx
    sending.leaves()


async def _goes_on(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
    sending: _Sending = context.trace_request_ctx
    sending.goes_on()


async def _whole(response: aiohttp.ClientResponse) -> Answer:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > LARGEST_ANSWER:
            response.close()
            raise TransportError(f"the answer is longer than {LARGEST_ANSWER >> 20} MiB")
        chunks.append(chunk)
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status, headers, b"".join(chunks))


def _problem(error: BaseException) -> str:
    """In a few words; aiohttp's own may hold a proxy's address and so its password."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name is not known"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"its proxy answered {error.status}"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return "its proxy does not answer"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return os.strerror(error.os_error.errno).lower() if error.os_error.errno else str(error.os_error)
    if isinstance(error, TimeoutError):
        return "no answer in the time allowed"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed"
    return type(error).__name__
