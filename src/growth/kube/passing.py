"""Access that passes everything on to another one: what stands in between says only what it does with writes."""

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import msgspec

from growth.api.kinds import Json, Kind
from growth.api.pods import POD
from growth.kube.api import Api, Page, PatchType, WatchEvent

R = TypeVar("R")
T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Write:
    """One write: the method's name and the object. A pod's eviction or binding is of kind Pod; a creation has no name."""

    verb: str
    kind: Kind[Any]
    namespace: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.kind} {self.namespace}/{self.name}"


class PassingApi:
    """`Api` on another one. Every write goes through `_write`, which a subclass may guard or note."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def _write(self, write: Write, send: Callable[[], Awaitable[R]]) -> R:  # noqa: ARG002 - for subclasses
        return await send()

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        return await self._api.get(kind, name, namespace=namespace)

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
        return await self._api.list(
            kind, namespace=namespace, labels=labels, fields=fields, limit=limit, page=page, revision=revision
        )

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
        return self._api.watch(
            kind, revision=revision, namespace=namespace, labels=labels, fields=fields, timeout_seconds=timeout_seconds
        )

    async def create(self, kind: Kind[T], body: msgspec.Struct | Mapping[str, Any], *, namespace: str = "") -> T:
        return await self._write(
            Write("create", kind, namespace), lambda: self._api.create(kind, body, namespace=namespace)
        )

    async def update(
        self, kind: Kind[T], name: str, body: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> T:
        return await self._write(
            Write("update", kind, namespace, name),
            lambda: self._api.update(kind, name, body, namespace=namespace, subresource=subresource),
        )

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
        return await self._write(
            Write("patch", kind, namespace, name),
            lambda: self._api.patch(
                kind,
                name,
                patch,
                namespace=namespace,
                subresource=subresource,
                patch_type=patch_type,
                revision=revision,
                uid=uid,
            ),
        )

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
        await self._write(
            Write("delete", kind, namespace, name),
            lambda: self._api.delete(
                kind,
                name,
                namespace=namespace,
                uid=uid,
                revision=revision,
                grace_seconds=grace_seconds,
                propagation=propagation,
            ),
        )

    async def evict(self, name: str, *, namespace: str, uid: str = "", grace_seconds: int | None = None) -> None:
        await self._write(
            Write("evict", POD, namespace, name),
            lambda: self._api.evict(name, namespace=namespace, uid=uid, grace_seconds=grace_seconds),
        )

    async def bind(self, name: str, *, namespace: str, node: str, uid: str = "") -> None:
        await self._write(
            Write("bind", POD, namespace, name),
            lambda: self._api.bind(name, namespace=namespace, node=node, uid=uid),
        )
