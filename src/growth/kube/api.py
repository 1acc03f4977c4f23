"""The one contract of access to a Kubernetes API, and the values that pass through it.

Implementations: `kube.http.HttpApi` (a real server), `kube.memory.MemoryApi` (the server in process). One conformance
suite, `tests/conformance`, holds them to the same laws.
"""

import enum
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from growth.api.kinds import Json, Kind

T = TypeVar("T")


class EventType(enum.StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """One change. A bookmark's object carries a resourceVersion and nothing else worth reading."""

    type: EventType
    object: T
    revision: str


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list, as of `revision`; `next` is empty on the last page."""

    items: tuple[T, ...]
    revision: str
    next: str = ""


class PatchType(enum.StrEnum):
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"


class Gate(Protocol):
    """Asked immediately before every write goes out."""

    def check(self) -> None:
        """Returns, or raises `GateClosed`."""


class AlwaysOpen:
    """The gate of tools that act for a person and hold no lease."""

    def check(self) -> None:
        return


ALWAYS_OPEN: Final = AlwaysOpen()


class Api(Protocol):
    """Typed access. Errors are those of `growth.kube.errors`.

    No call repeats a write by itself. Every call has a deadline; a call that outlives it raises `OutcomeUnknown`.
    `namespace` is required for one object of a namespaced kind and means all namespaces when empty in list and watch.
    """

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        """One object, as the server has it now."""

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
        """One page; `labels` and `fields` are selectors in the server's syntax; `page` is the previous page's `next`.

        `revision` is the request's resourceVersion: empty is the newest state, `"0"` whatever the server has at hand.
        """

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
        """Changes after `revision`, with bookmarks. The iterator ends when the server closes the stream.

        `Gone` (at the start or in the stream) means: list again. A broken connection raises `OutcomeUnknown` or
        `Unreachable`.
        """

    async def create(self, kind: Kind[T], body: msgspec.Struct | Mapping[str, Any], *, namespace: str = "") -> T:
        """The object as the server stored it. `metadata.generateName` works."""

    async def update(
        self, kind: Kind[T], name: str, body: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> T:
        """Replaces the whole object. For tools and tests with raw objects: Growth itself writes patches."""

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
        """The changed object. With `revision` or `uid` the server refuses (`Conflict`) when the object is another one.

        They are sent inside a merge or strategic patch's metadata; a JSON patch states its own `test` operations.
        """

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
        """Asks for deletion; finalizers may keep the object for a while."""

    async def evict(self, name: str, *, namespace: str, uid: str = "", grace_seconds: int | None = None) -> None:
        """Evicts a pod through the eviction API; `TooManyRequests` when a disruption budget forbids it."""

    async def bind(self, name: str, *, namespace: str, node: str, uid: str = "") -> None:
        """Binds a pod to a node, as a scheduler does."""
