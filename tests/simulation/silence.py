"""Nodes and pods of tests about rooms, and a server whose watch of one kind falls silent."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from growth.api import names
from growth.api.kinds import Kind
from growth.kube.api import Api
from growth.kube.memory import MemoryApi

PROTECTED = {"metadata": {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}}


class Deaf:
    """An API that from some moment on hears nothing more of one kind: its watch is open, and silent."""

    def __init__(self, api: MemoryApi, kind: str = "Pod") -> None:
        self._api = api
        self._kind = kind
        self.deaf = False
        self.lists: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def list(self, kind: Kind[Any], **more: Any) -> Any:
        if self.deaf and kind.kind == "Pod":
            self.lists.append(more.get("fields", ""))
        return await self._api.list(kind, **more)

    @contextlib.asynccontextmanager
    async def watch(self, kind: Kind[Any], **more: Any) -> AsyncIterator[AsyncIterator[Any]]:
        async with self._api.watch(kind, **more) as events:
            yield events if kind.kind != self._kind else self._heard(events)

    async def _heard(self, events: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for event in events:
            if not self.deaf:
                yield event


def deafened(kind: str = "Pod") -> tuple[list[Deaf], Any]:
    holder: list[Deaf] = []

    def api(real: MemoryApi) -> Api:
        holder.append(Deaf(real, kind))
        return holder[0]

    return holder, api


def asks(cpu: str) -> list[dict[str, Any]]:
    return [{"name": "main", "image": "example", "resources": {"requests": {"cpu": cpu}}}]
