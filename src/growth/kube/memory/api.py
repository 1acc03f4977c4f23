"""`growth.kube.api.Api` on a `MemoryServer`, in process.

What it returns is the caller's own: structs are frozen, raw objects are copies. Calls never wait, and every write asks
the gate first.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar, cast

import msgspec

from growth.api.decoding import convert
from growth.api.kinds import Json, Kind
from growth.api.meta import Object, ObjectMeta
from growth.kube.api import ALWAYS_OPEN, EventType, Gate, Page, PatchType, WatchEvent
from growth.kube.errors import Conflict, Invalid
from growth.kube.memory.deletion import DeleteOptions
from growth.kube.memory.resources import Resource
from growth.kube.memory.scale import scale_of, shown
from growth.kube.memory.server import MemoryServer, fresh
from growth.kube.memory.store import Stored, Watch

T = TypeVar("T")

BOOKMARK_SECONDS: Final = 60.0  # as often as the real server


class MemoryApi:
    """Access as `user`; a closed gate stops the writes."""

    def __init__(self, server: MemoryServer, *, user: str = "growth", gate: Gate = ALWAYS_OPEN) -> None:
        self._server = server
        self._user = user
        self._gate = gate

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        resource = self._resource(kind)
        return _read(kind, resource, self._server.get(resource, name, namespace=namespace))

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
        resource = self._resource(kind)
        listing = self._server.list(
            resource, namespace=namespace, labels=labels, fields=fields, limit=limit, page=page, revision=revision
        )
        items = tuple(_read(kind, resource, stored) for stored in listing.items)
        if not resource.custom:
            for item in items:  # a list of a built-in kind says once what its items are
                if isinstance(item, dict):
                    del item["kind"], item["apiVersion"]
        return Page(items=items, revision=str(listing.revision), next=listing.next)

    def watch(
        self,
        kind: Kind[T],
        *,
        revision: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        timeout_seconds: float = 300.0,
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent[T]]]:
        return self._watching(
            kind,
            revision=revision,
            namespace=namespace,
            labels=labels,
            fields=fields,
            timeout_seconds=timeout_seconds,
        )

    @contextlib.asynccontextmanager
    async def _watching(
        self, kind: Kind[T], *, revision: str, namespace: str, labels: str, fields: str, timeout_seconds: float
    ) -> AsyncIterator[AsyncIterator[WatchEvent[T]]]:
        resource = self._resource(kind)
        watch = self._server.watch(resource, revision=revision, namespace=namespace, labels=labels, fields=fields)
        try:
            yield self._events(kind, resource, watch, timeout_seconds)
        finally:
            self._server.unwatch(resource, watch)

    async def _events(
        self, kind: Kind[T], resource: Resource, watch: Watch, timeout_seconds: float
    ) -> AsyncIterator[WatchEvent[T]]:
        async for event, stored in stream(watch, timeout_seconds=timeout_seconds):
            if stored is None:
                revision = str(self._server.revision)
                yield WatchEvent(EventType.BOOKMARK, _bookmark(kind, revision), revision)
            else:
                yield WatchEvent(EventType(event), _read(kind, resource, stored), str(stored.revision))

    async def create(self, kind: Kind[T], body: msgspec.Struct | Mapping[str, Any], *, namespace: str = "") -> T:
        self._gate.check()
        resource = self._resource(kind)
        whole = fresh(body)
        if isinstance(whole, dict):  # a body read from elsewhere need not repeat what the kind says
            whole = {**whole, "apiVersion": whole.get("apiVersion") or kind.api_version}
            whole["kind"] = whole.get("kind") or kind.kind
        return _read(kind, resource, self._server.create(resource, whole, namespace=namespace, user=self._user))

    async def update(
        self, kind: Kind[T], name: str, body: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> T:
        self._gate.check()
        resource = self._resource(kind)
        stored = self._server.update(
            resource, name, body, namespace=namespace, subresource=subresource, user=self._user
        )
        return _read(kind, resource, stored, subresource)

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
        self._gate.check()
        resource = self._resource(kind)
        body = with_preconditions(patch, revision=revision, uid=uid)
        try:
            stored = self._server.patch(
                resource,
                name,
                body,
                namespace=namespace,
                subresource=subresource,
                patch_type=patch_type,
                user=self._user,
            )
        except Invalid as error:
            # As on a real server a patch's uid counts as an attempt to change it, not as a precondition.
            if uid and any(cause["field"] == "metadata.uid" for cause in error.details.get("causes", ())):
                raise Conflict(error.message, details=error.details) from error
            raise
        return _read(kind, resource, stored, subresource)

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
        self._gate.check()
        options = DeleteOptions(uid=uid, revision=revision, grace_seconds=grace_seconds, propagation=propagation)
        self._server.delete(self._resource(kind), name, namespace=namespace, options=options, user=self._user)

    async def evict(self, name: str, *, namespace: str, uid: str = "", grace_seconds: int | None = None) -> None:
        self._gate.check()
        options = DeleteOptions(uid=uid, grace_seconds=grace_seconds)
        self._server.evict(name, namespace=namespace, options=options, user=self._user)

    async def bind(self, name: str, *, namespace: str, node: str, uid: str = "") -> None:
        self._gate.check()
        self._server.bind(name, namespace=namespace, node=node, uid=uid, user=self._user)

    def _resource(self, kind: Kind[Any]) -> Resource:
        return self._server.resource(kind.group, kind.version, kind.plural)


def with_preconditions(patch: Any, *, revision: str, uid: str) -> Any:
    """The patch with the revision and uid that the object must have, where it is an object at all."""
    if not (revision or uid) or not isinstance(patch, Mapping):
        return patch
    metadata = dict(patch.get("metadata") or {})
    if revision:
        metadata["resourceVersion"] = revision
    if uid:
        metadata["uid"] = uid
    return {**patch, "metadata": metadata}


def present(resource: Resource, stored: Stored) -> Json:
    """The object in the version that was asked for; shares its parts with the store."""
    if not resource.storage or resource.storage == resource.version:
        return stored.object
    return {**stored.object, "apiVersion": resource.api_version}


def _read(kind: Kind[T], resource: Resource, stored: Stored, subresource: str = "") -> T:
    if subresource == "scale":
        return msgspec.convert(fresh(shown(scale_of(resource, stored.object))), kind.type)
    whole = present(resource, stored)
    if kind.type is dict:
        return cast(T, fresh(whole))
    cached = stored.decoded
    if cached is not None and cached[0] is kind.type and whole is stored.object:
        return cast(T, cached[1])
    decoded = convert(whole, kind.type)
    if whole is stored.object:
        stored.decoded = (kind.type, decoded)
    return decoded


def _bookmark(kind: Kind[T], revision: str) -> T:
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"resourceVersion": revision, "creationTimestamp": None},
    }
    if kind.type is dict:
        return cast(T, body)
    # A shell: the kind's own struct may rightly ask for more.
    return cast(T, Object(api_version=kind.api_version, kind=kind.kind, metadata=ObjectMeta(resource_version=revision)))


async def stream(
    watch: Watch, *, timeout_seconds: float, bookmarks: bool = True
) -> AsyncIterator[tuple[str, Stored | None]]:
    """The watch's events as they come, with a bookmark (None) every minute and at the end of the stream's time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_seconds
    next_bookmark = loop.time() + BOOKMARK_SECONDS
    while True:
        while watch.pending:
            yield watch.pending.popleft()
        if watch.closed:
            return
        now = loop.time()
        if now >= end:
            if bookmarks:
                yield "BOOKMARK", None
            return
        if now >= next_bookmark:
            next_bookmark = now + BOOKMARK_SECONDS
            if bookmarks:
                yield "BOOKMARK", None
            continue
        woken = loop.create_future()

        def wake(future: asyncio.Future[None] = woken) -> None:
            if not future.done():
                future.set_result(None)

        watch.wake = wake
        timer = loop.call_at(min(end, next_bookmark), wake)
        try:
            await woken
        finally:
            timer.cancel()
            watch.wake = None
