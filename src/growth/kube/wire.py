"""From the server's bytes to our values: lists, watch lines, Status objects. No I/O.

Bodies are decoded straight into the kind's struct, so that fields which nobody reads are skipped, not built.
"""

import contextlib
import functools
import gc
from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from growth.api import meta
from growth.api.kinds import Json, Kind
from growth.kube.api import EventType, Page, WatchEvent
from growth.kube.errors import ApiError, NotFound, OutcomeUnknown, ServerError, from_status

T = TypeVar("T")

# Below this a collection costs less than the switch is worth.
_COLLECTOR_PAUSES_ABOVE_BYTES: Final = 1 << 20


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, Generic[T]):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: tuple[T, ...] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


@functools.cache
def _object_decoder(kind: Kind[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind.type)


@functools.cache
def _list_decoder(kind: Kind[Any]) -> msgspec.json.Decoder[_List[Any]]:
    return msgspec.json.Decoder(_List[kind.type])  # type: ignore[name-defined]


_EVENT_DECODER: Final = msgspec.json.Decoder(_Event)
_META_DECODER: Final = msgspec.json.Decoder(meta.Object)


@contextlib.contextmanager
def _collector_paused(size: int) -> Iterator[None]:
    """The cyclic collector walks everything that a long list builds, again and again, and finds nothing to free."""
    if size < _COLLECTOR_PAUSES_ABOVE_BYTES or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def decode_object(kind: Kind[T], body: bytes) -> T:
    """One object. `OutcomeUnknown` when the body is not one: the server took the call and we cannot tell what it did."""
    try:
        decoded: T = _object_decoder(kind).decode(body)
    except msgspec.DecodeError as error:
        raise OutcomeUnknown(f"the answer about {kind} cannot be read: {error}") from error
    return decoded


def decode_list(kind: Kind[T], body: bytes) -> Page[T]:
    try:
        with _collector_paused(len(body)):
            decoded = _list_decoder(kind).decode(body)
    except msgspec.DecodeError as error:
        raise OutcomeUnknown(f"the list of {kind} cannot be read: {error}") from error
    return Page(items=decoded.items or (), revision=decoded.metadata.resource_version, next=decoded.metadata.continue_)


def decode_event(kind: Kind[T], line: bytes) -> WatchEvent[T]:
    """One line of a watch. The server reports what ends a watch in a line too: that is raised."""
    try:
        event = _EVENT_DECODER.decode(line)
        if event.type == "ERROR":
            status = msgspec.json.decode(event.object, type=dict[str, Any])
            raise from_status(status, code=int(status.get("code") or 500))
        if event.type == EventType.BOOKMARK:
            return _bookmark(kind, event.object)
        changed = _object_decoder(kind).decode(event.object)
        return WatchEvent(type=EventType(event.type), object=changed, revision=revision_of(changed))
    except (msgspec.DecodeError, ValueError) as error:
        raise OutcomeUnknown(f"a line of the watch on {kind} cannot be read: {error}") from error


def _bookmark(kind: Kind[T], body: msgspec.Raw) -> WatchEvent[T]:
    # A bookmark's object is a shell whose lists are null, which the kind's own struct would rightly refuse.
    if kind.type is dict:
        changed = _object_decoder(kind).decode(body)
        return WatchEvent(type=EventType.BOOKMARK, object=changed, revision=revision_of(changed))
    shell = _META_DECODER.decode(body)
    return WatchEvent(type=EventType.BOOKMARK, object=cast("T", shell), revision=shell.metadata.resource_version)


def revision_of(item: Any) -> str:
    """The resourceVersion of an object, typed or raw."""
    if isinstance(item, dict):
        return str(item.get("metadata", {}).get("resourceVersion") or "")
    return str(item.metadata.resource_version)


class Lines:
    """Cuts chunks of any size into lines. Only the newline byte ends one: JSON text may hold U+0085, U+2028 and the like.

    Nothing bounds a line but memory: one object may take 1.5 MB and more.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes, without their newline; empty ones are left out."""
        head, newline, rest = chunk.partition(b"\n")
        if not newline:
            self._parts.append(chunk)
            return
        self._parts.append(head)
        first = b"".join(self._parts)
        self._parts.clear()
        *whole, tail = rest.split(b"\n")
        if tail:
            self._parts.append(tail)
        for line in (first, *whole):
            if line:
                yield line

    @property
    def unfinished(self) -> bool:
        """Whether the stream stopped inside a line."""
        return any(self._parts)


def decode_refusal(*, code: int, headers: Any, body: bytes, path: str) -> ApiError:
    """The error that a refusing answer means.

    Only a Status is the API server's word on an object. Anything else comes from something in between (a load
    balancer's 404 must not be read as «this object is gone») and is a `ServerError` with the code that was sent; but the
    API server itself answers a path that it does not serve in plain text, and is known by the header it puts on everything.
    """
    retry_after = _retry_after(headers)
    try:
        status = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        status = {}
    if status.get("kind") == "Status":
        return from_status(status, code=code, retry_after_seconds=retry_after)
    if code == 404 and "X-Kubernetes-Pf-Flowschema-Uid" in headers:
        return NotFound(f"the server does not serve {path}", code=code, reason="NotFound")
    return ServerError(
        f"{path} was answered {code} by something that is no Kubernetes API server: a proxy, or a wrong address",
        code=code,
        reason="InternalError",
        retry_after_seconds=retry_after,
    )


def _retry_after(headers: Any) -> float | None:
    """Seconds, as API servers send them; the header's other form, a date, is left to the caller's own back-off."""
    value = str(headers.get("Retry-After") or "")
    return float(value) if value.isascii() and value.isdigit() else None


def encode_created(kind: Kind[Any], body: msgspec.Struct | Any) -> bytes:
    """An object to be created; apiVersion and kind are the kind's where the body names none."""
    document: Json = msgspec.to_builtins(body) if isinstance(body, msgspec.Struct) else dict(body)
    document.setdefault("apiVersion", kind.api_version)
    document.setdefault("kind", kind.kind)
    return msgspec.json.encode(document)
