"""`HttpApi`: the contract of `growth.kube.api` on a real API server, over aiohttp.

One call is one request. What may repeat is said here and nowhere else: a read that was answered 401 is sent once more
with fresh credentials, and aiohttp sends a read again when a kept connection turns out to be closed. A write goes out
once. The gate is asked at the very moment at which a write's first byte would leave, after every wait, and again before
its body leaves: a machine that is suspended in between must not complete the request when it wakes.

Errors keep apart what the caller must treat apart: `Unreachable` when nothing was sent, `OutcomeUnknown` when something
was and no whole answer came back.
"""

import asyncio
import contextlib
import dataclasses
import os
import urllib.parse
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any, Final, TypeVar

import aiohttp
import msgspec
import yarl

from growth.api.kinds import Json, Kind
from growth.kube import wire
from growth.kube.access import Access
from growth.kube.api import ALWAYS_OPEN, Gate, Page, PatchType, WatchEvent
from growth.kube.credentials import Identity
from growth.kube.errors import Conflict, GateClosed, Invalid, KubeError, OutcomeUnknown, Unreachable, Untrusted
from growth.kube.throttle import TokenBucket
from growth.ports import Clock

T = TypeVar("T")

JSON: Final = "application/json"
DEADLINE_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 10.0
# The server ends a watch at the time that we asked for; one that it has not ended so much later is dead.
WATCH_GRACE_SECONDS: Final = 15.0
# Below the server's 90 s and what load balancers usually allow, so that we close idle connections before they do.
KEEP_ALIVE_SECONDS: Final = 30.0
READ_BUFFER_BYTES: Final = 1 << 18

READS: Final = frozenset({"GET"})


@dataclasses.dataclass(slots=True)
class _Call:
    """One request on its way: enough to say afterwards whether anything left this process."""

    method: str
    path: str
    gate: Gate
    sent: bool = False
    stopped: GateClosed | None = None
    """Why its body did not leave, and with it nothing that a server could act on."""

    @property
    def writes(self) -> bool:
        return self.method not in READS

    def leaves(self) -> None:
        """The first byte is about to go out."""
        if self.writes:
            if self.sent:  # aiohttp would repeat PUT and DELETE on a connection that broke
                raise OutcomeUnknown(f"{self}: the connection broke before the answer came")
            self.gate.check()
        self.sent = True

    def goes_on(self) -> None:
        """Its body, or more of it, is about to go out; aiohttp sends the head together with the first of it."""
        if self.writes:
            try:
                self.gate.check()
            except GateClosed as closed:
                self.stopped = closed
                raise

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


async def _leaves(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
    call: _Call = context.trace_request_ctx
    call.leaves()


async def _goes_on(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
    call: _Call = context.trace_request_ctx
    call.goes_on()


class HttpApi:
    """Access to a real server. Made by `connect`; the session lives as long as its `async with` block."""

    def __init__(
        self,
        access: Access,
        session: aiohttp.ClientSession,
        *,
        clock: Clock,
        gate: Gate,
        limit: TokenBucket,
        deadline_seconds: float,
    ) -> None:
        self._access = access
        self._session = session
        self._clock = clock
        self._gate = gate
        self._limit = limit
        self._deadline_seconds = deadline_seconds
        self._identity: Identity | None = None
        self._tls: Any = True

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(
        cls,
        access: Access,
        *,
        clock: Clock,
        user_agent: str,
        gate: Gate = ALWAYS_OPEN,
        qps: float = 200.0,
        burst: int = 300,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> AsyncIterator["HttpApi"]:
        """A client of the server. Credentials are loaded at once (`ConfigError`); nothing is sent yet."""
        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(_leaves)
        trace.on_request_chunk_sent.append(_goes_on)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS),
            headers={"User-Agent": user_agent},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            trace_configs=[trace],
            read_bufsize=READ_BUFFER_BYTES,
        )
        async with session:
            api = cls(
                access,
                session,
                clock=clock,
                gate=gate,
                limit=TokenBucket(clock, qps=qps, burst=burst),
                deadline_seconds=deadline_seconds,
            )
            await api._authorization()
            yield api
        await asyncio.sleep(0)  # lets aborted transports close before the loop may end

    # -- the contract ---------------------------------------------------------------------------------------------

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        return wire.decode_object(kind, await self._call("GET", _path(kind, name, namespace)))

    async def list(
        self,
        kind: Kind[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        page: str = "",
        revision: str = "",
    ) -> Page[T]:
        query = {
            "labelSelector": labels,
            "fieldSelector": fields,
            "limit": str(limit) if limit else "",
            "continue": page,
            "resourceVersion": revision,
        }
        return wire.decode_list(kind, await self._call("GET", _collection(kind, namespace), query=query))

    @contextlib.asynccontextmanager
    async def watch(
        self,
        kind: Kind[T],
        *,
        revision: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        timeout_seconds: float = 300.0,
    ) -> AsyncIterator[AsyncIterator[WatchEvent[T]]]:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": revision,
            "labelSelector": labels,
            "fieldSelector": fields,
            "timeoutSeconds": str(max(1, round(timeout_seconds))),
        }
        call = _Call("GET", _collection(kind, namespace), self._gate)
        async with contextlib.AsyncExitStack() as stack:
            # The opening alone is translated: what the reader of the events raises is the reader's.
            async with self._errors(call), asyncio.timeout(self._deadline_seconds):
                response = await stack.enter_async_context(self._open(call, query=query))
            stack.callback(_hang_up, response)
            dies_at = asyncio.get_running_loop().time() + timeout_seconds + WATCH_GRACE_SECONDS
            yield await stack.enter_async_context(
                contextlib.aclosing(self._events(kind, call, response, dies_at=dies_at))
            )

    async def create(self, kind: Kind[T], body: msgspec.Struct | Mapping[str, Any], *, namespace: str = "") -> T:
        answer = await self._call("POST", _collection(kind, namespace, one=True), body=wire.encode_created(kind, body))
        return wire.decode_object(kind, answer)

    async def update(
        self, kind: Kind[T], name: str, body: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> T:
        path = _path(kind, name, namespace, subresource)
        return wire.decode_object(kind, await self._call("PUT", path, body=msgspec.json.encode(body)))

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        patch: Mapping[str, Any] | tuple[Json, ...],
        *,
        namespace: str = "",
        subresource: str = "",
        patch_type: PatchType = PatchType.MERGE,
        revision: str = "",
        uid: str = "",
    ) -> T:
        if revision or uid:
            if not isinstance(patch, Mapping):
                raise ValueError("a JSON patch states its preconditions as test operations")
            held = {key: value for key, value in (("resourceVersion", revision), ("uid", uid)) if value}
            patch = {**patch, "metadata": {**(patch.get("metadata") or {}), **held}}
        path = _path(kind, name, namespace, subresource)
        try:
            answer = await self._call("PATCH", path, body=msgspec.json.encode(patch), content_type=patch_type.value)
        except Invalid as error:
            # Servers treat a patch's uid as an attempt to change it, not as a precondition.
            if uid and any(cause.get("field") == "metadata.uid" for cause in error.details.get("causes") or ()):
                raise Conflict(
                    f"{kind} {name!r} is another object now: its uid is not {uid}", details={"name": name}
                ) from error
            raise
        return wire.decode_object(kind, answer)

    async def delete(
        self,
        kind: Kind[T],
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        revision: str = "",
        grace_seconds: int | None = None,
        propagation: str = "Background",
    ) -> None:
        options = _delete_options(uid=uid, revision=revision, grace_seconds=grace_seconds)
        options["propagationPolicy"] = propagation
        await self._call("DELETE", _path(kind, name, namespace), body=msgspec.json.encode(options))

    async def evict(self, name: str, *, namespace: str, uid: str = "", grace_seconds: int | None = None) -> None:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": _delete_options(uid=uid, revision="", grace_seconds=grace_seconds),
        }
        await self._call("POST", _path(_PODS, name, namespace, "eviction"), body=msgspec.json.encode(body))

    async def bind(self, name: str, *, namespace: str, node: str, uid: str = "") -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, **({"uid": uid} if uid else {})},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._call("POST", _path(_PODS, name, namespace, "binding"), body=msgspec.json.encode(body))

    # -- beyond the contract --------------------------------------------------------------------------------------

    async def document(self, path: str, *, accept: str = JSON, query: Mapping[str, str] | None = None) -> Json:
        """Any JSON document that the server has: `/version`, discovery, a Table."""
        return msgspec.json.decode(await self._call("GET", path, query=query or {}, accept=accept), type=dict[str, Any])

    # -- one request ----------------------------------------------------------------------------------------------

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        call = _Call(method, path, self._gate)
        async with (
            self._errors(call),
            asyncio.timeout(self._deadline_seconds),
            self._open(call, query=query or {}, body=body, content_type=content_type, accept=accept) as answer,
        ):
            return await answer.read()

    @contextlib.asynccontextmanager
    async def _open(
        self,
        call: _Call,
        *,
        query: Mapping[str, str],
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer, its head read and found good."""
        url = yarl.URL(f"{self._access.server}{call.path}", encoded=True)
        filled = {key: value for key, value in query.items() if value}
        again = not call.writes
        while True:
            if call.writes:
                self._gate.check()  # before the wait, so that a closed gate costs nobody a turn
            await self._limit.take()
            headers = [("Accept", accept), *self._access.impersonation]
            if body is not None:
                headers.append(("Content-Type", content_type))
            if authorization := await self._authorization():
                headers.append(("Authorization", authorization))
            async with self._session.request(
                call.method,
                url.update_query(filled) if filled else url,
                data=body,
                headers=headers,
                ssl=self._tls,
                server_hostname=self._access.tls_server_name or None,
                proxy=self._access.proxy or None,
                allow_redirects=False,
                trace_request_ctx=call,
            ) as response:
                if response.status < 300:
                    yield response
                    return
                refusal = wire.decode_refusal(
                    code=response.status, headers=response.headers, body=await response.read(), path=call.path
                )
            if response.status == 401:
                self._access.credentials.forget()
                if again:
                    again = False
                    continue
            raise refusal

    async def _authorization(self) -> str:
        identity = await self._access.credentials.current(self._clock.now())
        if identity is not self._identity:
            if self._identity is None or identity.certificate != self._identity.certificate:
                self._tls = self._access.tls(identity)
            self._identity = identity
        return identity.authorization

    @contextlib.asynccontextmanager
    async def _errors(self, call: _Call) -> AsyncIterator[None]:
        """Turns what aiohttp and the deadline raise into our tree. Nothing of it carries headers, hence no token."""
        try:
            yield
        except KubeError:
            raise
        except aiohttp.ClientConnectorCertificateError as error:
            raise Untrusted(
                f"{self._access.server} shows a certificate that {self._access.ca_origin} did not sign: "
                f"{_certificate_problem(error)}"
            ) from error
        except aiohttp.ClientSSLError as error:
            raise Unreachable(
                f"{self._access.server}: no TLS connection could be made, checked against {self._access.ca_origin}: "
                f"{error.os_error}"
            ) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if call.stopped is not None:
                raise call.stopped from None
            problem = _problem(error)
            if call.sent:
                raise OutcomeUnknown(f"{call} was sent and no whole answer came: {problem}") from error
            raise Unreachable(f"{self._access.server} cannot be reached: {problem}") from error

    async def _events(
        self, kind: Kind[T], call: _Call, response: aiohttp.ClientResponse, *, dies_at: float
    ) -> AsyncGenerator[WatchEvent[T], None]:
        lines = wire.Lines()
        while True:
            async with self._errors(call), asyncio.timeout_at(dies_at):
                chunk = await response.content.readany()
            if not chunk:
                break
            for line in lines.feed(chunk):
                yield wire.decode_event(kind, line)
        if lines.unfinished:
            raise OutcomeUnknown(f"{call}: the watch ended inside an event")


_PODS: Final[Kind[Json]] = Kind("", "v1", "Pod", "pods", True, dict)


def _delete_options(*, uid: str, revision: str, grace_seconds: int | None) -> Json:
    options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if preconditions := {key: value for key, value in (("uid", uid), ("resourceVersion", revision)) if value}:
        options["preconditions"] = preconditions
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return options


def _path(kind: Kind[Any], name: str, namespace: str, subresource: str = "") -> str:
    """One object's path. An empty name would address the collection, an empty namespace another resource."""
    if not name:
        raise ValueError(f"a name is needed for one of {kind}")
    if kind.namespaced and not namespace:
        raise ValueError(f"a namespace is needed for one of {kind}")
    return kind.path(_quoted(name), namespace=_quoted(namespace), subresource=subresource)


def _collection(kind: Kind[Any], namespace: str, *, one: bool = False) -> str:
    if one and kind.namespaced and not namespace:
        raise ValueError(f"a namespace is needed for one of {kind}")
    return kind.path(namespace=_quoted(namespace))


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """Ends a stream that was left early at once: a polite end of TLS would wait for the server to stop talking."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


def _quoted(part: str) -> str:
    return urllib.parse.quote(part, safe="")


def _problem(error: BaseException) -> str:
    """What went wrong in a few words; aiohttp's own texts repeat the address, the operating system's do not."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name is not known"
    if isinstance(
        error, aiohttp.ClientHttpProxyError
    ):  # its text has the proxy's address, and that may hold a password
        return f"its proxy answered {error.status}"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return "its proxy does not answer"
    if isinstance(error, aiohttp.ClientConnectorError):
        return os.strerror(error.os_error.errno).lower() if error.os_error.errno else str(error.os_error)
    if isinstance(error, TimeoutError):
        return "the time allowed for the call is over"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed"
    return str(error) or type(error).__name__


def _certificate_problem(error: aiohttp.ClientConnectorCertificateError) -> str:
    problem = error.certificate_error
    return str(getattr(problem, "verify_message", "") or problem)
