"""What a law is given: an API, a namespace of its own, names that nobody else has, and a few builders.

A law is an async function; `conftest` opens its world, runs it and closes the world again. A law never says which
backend it runs on: where two backends must be told apart there is no law.
"""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from growth.api.kinds import Json, Kind
from growth.kube.api import Api, EventType, WatchEvent
from growth.kube.errors import ApiError, Invalid, NotFound, TooManyRequests
from tests.conformance.kinds import CONFIG_MAP, CRD, NAMESPACE, POD

E = TypeVar("E", bound=ApiError)
T = TypeVar("T")

# Long enough for a loaded machine; nobody waits so long unless something is broken.
PATIENCE_SECONDS = 120.0


class Backend:
    """One implementation of the contract: how to open it, and how to make it forget its history.

    `shared` says that many laws meet on one server. Kinds are then invented once, and all that are declared together:
    an API server lets the first object of a new kind wait for two seconds.
    """

    def __init__(
        self,
        *,
        connect: Callable[[], AbstractAsyncContextManager[Any]],
        compact: Callable[[Any], Awaitable[None]],
        shared: bool,
    ) -> None:
        self.connect = connect
        self.compact = compact
        self._shared = shared
        self._kinds: dict[str, Kind[Json]] = {}

    async def kind(self, api: Api, definition: Json) -> Kind[Json]:
        name = name_of(definition)
        if name not in self._kinds:
            wanted = list(DECLARED) if self._shared else [definition]
            missing = [each for each in wanted if name_of(each) not in self._kinds]
            for each in missing:
                await api.create(CRD, each)
            for each in missing:
                self._kinds[name_of(each)] = await served(api, each)
        return self._kinds[name]


# What has been declared so far in this process.
DECLARED: list[Json] = []


def invented(spec: Json | None = None, **options: Any) -> Json:
    """Declares a kind that the tests make up: `spec` is the schema of its `spec`. A law gets it with `World.kind`."""
    return declare(crd(f"w{len(DECLARED)}{uuid.uuid4().hex[:8]}s", spec, **options))


def declare(definition: Json) -> Json:
    """Lets laws ask for the kind of this definition."""
    DECLARED.append(definition)
    return definition


async def eventually(
    look: Callable[[], Awaitable[T]], holds: Callable[[T], bool], *, patience_seconds: float = PATIENCE_SECONDS
) -> T:
    """What `look` shows once it holds. For what servers do in their own time.

    One that got a definition anew makes its storage, and says so by 429: then there is nothing to be seen yet.
    """
    async with asyncio.timeout(patience_seconds):
        while True:
            with contextlib.suppress(TooManyRequests):
                seen = await look()
                if holds(seen):
                    return seen
            await asyncio.sleep(0.02)


async def found(call: Awaitable[T]) -> T | None:
    """What was found, or None."""
    try:
        return await call
    except NotFound:
        return None


async def served(api: Api, definition: Json) -> Kind[Json]:
    """Waits until the CRD's kind answers.

    It is asked for the whole list: for a part of one a server reads its database, and its cache may not be filled then.
    """
    kind = kind_of(definition)
    await eventually(lambda: found(api.list(kind)), lambda page: page is not None)
    return kind


class World:
    """One law's own corner of a cluster. `api` may be used inside `open` only."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.api: Api
        self.namespace = self.name("law")

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with self._backend.connect() as api:
            self.api = api
            await api.create(NAMESPACE, {"metadata": {"name": self.namespace}})
            yield

    def name(self, stem: str = "thing") -> str:
        """A name that no other law has, in this run or an earlier one on the same server."""
        return f"{stem}-{uuid.uuid4().hex[:8]}"

    async def compact(self) -> None:
        """Makes the server forget every revision but the newest."""
        await self._backend.compact(self.api)

    async def document(self, path: str, **options: Any) -> Json:
        """A GET of any path; only laws about HTTP itself may ask for it."""
        document: Json = await self.api.document(path, **options)  # type: ignore[attr-defined]
        return document

    async def config_map(self, **metadata: Any) -> Json:
        metadata.setdefault("name", self.name("map"))
        data = metadata.pop("data", {"a": "1"})
        return await self.api.create(CONFIG_MAP, {"metadata": metadata, "data": data}, namespace=self.namespace)

    async def pod(self, *, spec: Json | None = None, **metadata: Any) -> Json:
        """A pod with one container; `spec` is laid over it."""
        metadata.setdefault("name", self.name("pod"))
        body = {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "img"}], **(spec or {})}}
        return await self.api.create(POD, body, namespace=self.namespace)

    async def kind(self, definition: Json) -> Kind[Json]:
        """An invented kind, established and served."""
        return await self._backend.kind(self.api, definition)

    async def make(self, kind: Kind[Json], spec: Json | None = None, **metadata: Any) -> Json:
        """An object of an invented kind."""
        metadata.setdefault("name", self.name(kind.kind.lower()))
        body: Json = {"metadata": metadata}
        if spec is not None:
            body["spec"] = spec
        return await self.api.create(kind, body, namespace=self.namespace if kind.namespaced else "")

    async def events(
        self, kind: Kind[Json], until: Callable[[WatchEvent[Json]], bool], *, revision: str, **options: Any
    ) -> list[WatchEvent[Json]]:
        """The changes after `revision`, up to the first for which `until` holds. Bookmarks are left out."""
        options.setdefault("namespace", self.namespace if kind.namespaced else "")
        seen: list[WatchEvent[Json]] = []
        async with asyncio.timeout(PATIENCE_SECONDS), self.api.watch(kind, revision=revision, **options) as stream:
            async for event in stream:
                if event.type is EventType.BOOKMARK:
                    continue
                seen.append(event)
                if until(event):
                    return seen
        raise AssertionError(f"the watch ended; seen: {[(event.type, name_of(event.object)) for event in seen]}")

    async def until_refused(self, kind: Kind[Json], spec: Json) -> None:
        """Waits until a changed CRD refuses such an object: servers take a moment to read a definition again."""

        async def accepted() -> bool:
            try:
                await self.make(kind, spec)
            except Invalid:
                return False
            return True

        await eventually(accepted, lambda answer: not answer)

    async def gone(self, kind: Kind[Json], item: Json, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Waits until the object is no longer there."""
        namespace = item["metadata"].get("namespace", "")
        await eventually(
            lambda: found(self.api.get(kind, name_of(item), namespace=namespace)),
            lambda there: there is None or uid_of(there) != uid_of(item),
            patience_seconds=patience_seconds,
        )


def name_of(item: Json) -> str:
    return str(item["metadata"]["name"])


def revision_of(item: Json) -> str:
    return str(item["metadata"]["resourceVersion"])


def uid_of(item: Json) -> str:
    return str(item["metadata"]["uid"])


def crd(
    plural: str,
    spec: Json | None = None,
    *,
    scope: str = "Namespaced",
    group: str = "laws.growth.test",
    subresources: Json | None = None,
    columns: list[Json] | None = None,
    root: Json | None = None,
    status: Json | None = None,
    names: Json | None = None,
) -> Json:
    """A CustomResourceDefinition. `spec` and `status` are schemas; `root` is laid over the schema of the whole object."""
    kind = plural.capitalize()
    properties: Json = {"spec": spec or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    properties["status"] = status or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: Json = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties, **(root or {})}},
    }
    if subresources is not None:
        version["subresources"] = subresources
    if columns is not None:
        version["additionalPrinterColumns"] = columns
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {
                "plural": plural,
                "singular": plural[:-1],
                "kind": kind,
                "listKind": f"{kind}List",
                **(names or {}),
            },
            "versions": [version],
        },
    }


def kind_of(body: Json) -> Kind[Json]:
    """Where the objects of a CRD live."""
    spec = body["spec"]
    return Kind(
        spec["group"],
        spec["versions"][0]["name"],
        spec["names"]["kind"],
        spec["names"]["plural"],
        spec["scope"] == "Namespaced",
        dict,
    )


async def refused(error: type[E], call: Awaitable[Any], *, reason: str = "", field: str = "", says: str = "") -> E:
    """The call is refused with this very class of error, naming the field in its causes."""
    try:
        answer = await call
    except ApiError as refusal:
        caught = refusal
    else:
        raise AssertionError(f"accepted, and answered {answer}")
    assert isinstance(caught, error), f"{type(caught).__name__}: {caught.message}"
    assert type(caught) is error, f"{type(caught).__name__}: {caught.message}"
    assert not reason or caught.reason == reason, f"{caught.reason}: {caught.message}"
    if field:
        named = [cause.get("field") for cause in caught.details.get("causes") or []]
        assert field in named, f"{named}: {caught.message}"
        assert field in caught.message, caught.message
    assert says in caught.message, caught.message
    return caught


# A namespaced kind without rules, for laws that need any kind that is not built in.
FREE = invented()
