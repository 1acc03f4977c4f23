"""Access for looking on: everything may be read, and only Decisions written.

The controllers that run with `--observe` write nothing else by themselves; this is the lock on the door.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import msgspec

from growth.api.decisions import DECISION
from growth.api.kinds import Json, Kind
from growth.kube.api import Api, Page, PatchType, WatchEvent
from growth.kube.errors import Forbidden

T = TypeVar("T")


class ObservingApi:
    """`Api` on another one. Every write but of Decisions is `Forbidden`, and nothing is sent."""

    def __init__(self, api: Api) -> None:
        self._api = api

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
        _check(kind, "create")
        return await self._api.create(kind, body, namespace=namespace)

    async def update(
        self, kind: Kind[T], name: str, body: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> T:
        _check(kind, "update")
        return await self._api.update(kind, name, body, namespace=namespace, subresource=subresource)

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
        _check(kind, "patch")
        return await self._api.patch(
            kind,
            name,
            patch,
            namespace=namespace,
            subresource=subresource,
            patch_type=patch_type,
            revision=revision,
            uid=uid,
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
        _check(kind, "delete")
        await self._api.delete(
            kind,
            name,
            namespace=namespace,
            uid=uid,
            revision=revision,
            grace_seconds=grace_seconds,
            propagation=propagation,
        )

    async def evict(self, name: str, *, namespace: str, uid: str = "", grace_seconds: int | None = None) -> None:  # noqa: ARG002 - the contract's signature
        raise Forbidden(f"Growth only observes: pod {namespace}/{name} is not evicted")

    async def bind(self, name: str, *, namespace: str, node: str, uid: str = "") -> None:  # noqa: ARG002 - the contract's signature
        raise Forbidden(f"Growth only observes: pod {namespace}/{name} is not bound")


def _check(kind: Kind[Any], verb: str) -> None:
    if (kind.group, kind.plural) != (DECISION.group, DECISION.plural):
        raise Forbidden(f"Growth only observes: it does not {verb} {kind}")
