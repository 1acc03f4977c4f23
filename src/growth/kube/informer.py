"""A cache that follows the server: list once, watch from there, and never lose a deletion.

    list (paged) ──► watch ──► event, bookmark … ──► closed or broken ──► watch from the last revision
                       ▲                                   │
                       └── list again, compare ◄── 410 Gone ┘   what the list lacks was deleted: told as `Deleted`

An informer runs unchanged on every `Api`. Subscribers are called in order, each change once, while the store already
shows the new state. An exception of a subscriber or of the transform ends `run`: a cache that half of its readers missed
is worse than a restart.
"""

import asyncio
import contextlib
import dataclasses
import enum
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Final, Generic, NoReturn, TypeVar

from growth.api.kinds import Kind
from growth.kube.api import Api, EventType, WatchEvent
from growth.kube.backoff import DEFAULT_BACKOFF, Backoff, BackoffSettings
from growth.kube.errors import ConfigError, Gone, KubeError, NotFound, TooManyRequests
from growth.kube.store import Added, Change, Deleted, Entry, Index, Key, Store, identity
from growth.ports import Clock, Random

T = TypeVar("T")
S = TypeVar("S")

# A watch that lived this long was healthy, whether or not there was anything to tell: its end is a first failure.
HEALTHY_SECONDS: Final = 10.0
# A burst that is already buffered would otherwise be applied without a turn for anybody else, the lease included.
EVENTS_AT_A_STRETCH: Final = 256


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InformerSettings:
    page_size: int = 500
    # Each watch asks for one to two times this, so that a thousand watches do not end together.
    watch_seconds: float = 300.0
    # Servers send a bookmark about once a minute; two and a half missed ones mean that the stream is dead.
    stall_seconds: float = 150.0
    # How long a broken watch may stay broken before what the store says is called stale.
    stale_seconds: float = 30.0
    # How often a kind that the server does not serve is asked for again.
    missing_seconds: float = 30.0
    backoff: BackoffSettings = DEFAULT_BACKOFF


DEFAULT_SETTINGS: Final = InformerSettings()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of the kind are followed; selectors in the server's syntax, empty for all."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""


EVERYTHING: Final = Selection()


class Why(enum.StrEnum):
    """Why a store cannot be relied on."""

    NEVER_LISTED = "NeverListed"
    HISTORY_GONE = "HistoryGone"
    DISCONNECTED = "Disconnected"


@dataclasses.dataclass(frozen=True, slots=True)
class Unsynced:
    """One store that cannot be relied on: since when (monotonic seconds), after how many failures, the last of them."""

    kind: str
    why: Why
    since: float
    failures: int
    error: str

    def __str__(self) -> str:
        cause = f": {self.error}" if self.error else ""
        return f"{self.kind} {self.why} since {self.since:.0f} s, {self.failures} failures{cause}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InformerStatistics:
    """Counts since the start; `watches` are those that the server opened. Deletions found by a relist are counted among the deletions too."""

    objects: int = 0
    lists: int = 0
    watches: int = 0
    events: int = 0
    bookmarks: int = 0
    gone: int = 0
    stalls: int = 0
    failures: int = 0
    deletions: int = 0
    deletions_by_relist: int = 0

    @property
    def relists(self) -> int:
        return max(0, self.lists - 1)

    @property
    def reconnects(self) -> int:
        return max(0, self.watches - 1)


class Informer(Generic[T, S]):
    """Follows one kind. `transform` says what is kept of each object; see `Informers` for several kinds.

    An `optional` kind may be one that the server does not serve: then there are none of it, and it is asked for again
    now and then.
    """

    def __init__(
        self,
        api: Api,
        kind: Kind[T],
        *,
        clock: Clock,
        random: Random,
        transform: Callable[[T], S],
        selection: Selection = EVERYTHING,
        indexes: Mapping[str, Index[S]] | None = None,
        settings: InformerSettings = DEFAULT_SETTINGS,
        optional: bool = False,
    ) -> None:
        self.kind = kind
        self._optional = optional
        self._missing = False
        self.store: Store[S] = Store(indexes)
        self._api = api
        self._clock = clock
        self._random = random
        self._transform = transform
        self._selection = selection
        self._settings = settings
        self._backoff = Backoff(random, settings.backoff)
        self._subscribers: list[Callable[[Change[S]], None]] = []
        self._revision = ""
        self._why: Why | None = Why.NEVER_LISTED
        self._since = clock.monotonic()
        self._error = ""
        self._contact = asyncio.Event()
        self._counts: dict[str, int] = {}

    def subscribe(self, subscriber: Callable[[Change[S]], None]) -> None:
        """`subscriber` is called with every change from now on, and first with what is there already."""
        for key, item in list(self.store.items()):
            subscriber(Added(key, item))
        self._subscribers.append(subscriber)

    @property
    def missing(self) -> bool:
        """Whether the server does not serve the kind: no definition of it is installed."""
        return self._missing

    @property
    def revision(self) -> str:
        """Up to which revision the store has followed the server; empty while it must list."""
        return self._revision

    def unsynced(self) -> Unsynced | None:
        """Why the store cannot be relied on; None when it can.

        Computed from what is known now, so it heals by itself. A short break of the watch is not yet a reason. After a
        break the store counts as synced once the watch is open again; what was missed arrives in the moments after.
        """
        why = self._why
        if why is None:
            return None
        if why is Why.DISCONNECTED and self._clock.monotonic() - self._since <= self._settings.stale_seconds:
            return None
        return Unsynced(str(self.kind), why, self._since, self._backoff.failures, self._error)

    @property
    def synced(self) -> bool:
        return self.unsynced() is None

    async def wait_synced(self) -> None:
        """Returns when the store can be relied on."""
        while not self.synced:
            await self._contact.wait()

    def statistics(self) -> InformerStatistics:
        return InformerStatistics(objects=len(self.store), **self._counts)

    async def run(self) -> NoReturn:
        """Follows the server until cancelled. Every failure of the server is waited out; `ConfigError` is raised."""
        while True:
            try:
                if not self._revision:
                    await self._list()
                await self._follow()
                continue
            except ConfigError:
                raise
            except Gone as error:
                self._count("gone")
                self._revision = ""
                self._lost(Why.HISTORY_GONE, error)
                pause = self._backoff.next()
            except NotFound as error:
                # The definition may have been removed under an open watch: only a list tells whether anything is left.
                if self._optional and not self._revision:
                    self._none()
                    await asyncio.sleep(self._settings.missing_seconds)
                    continue
                self._revision = ""
                self._lost(Why.DISCONNECTED, error)
                pause = self._backoff.next()
            except TooManyRequests as error:
                self._lost(Why.DISCONNECTED, error)
                pause = error.pause(self._backoff.next())
            except (KubeError, _Closed) as error:
                self._lost(Why.DISCONNECTED, error)
                pause = self._backoff.next()
            self._count("failures")
            await asyncio.sleep(pause)

    # Lists.

    async def _list(self) -> None:
        fresh: dict[Key, Entry[S]] = {}
        selection = self._selection
        limit, page = self._settings.page_size, ""
        while True:
            try:
                answer = await self._api.list(
                    self.kind,
                    namespace=selection.namespace,
                    labels=selection.labels,
                    fields=selection.fields,
                    limit=limit,
                    page=page,
                )
            except Gone:
                if not page:
                    raise
                # The pages' revision was compacted away while we read: ask for all in one answer.
                self._count("gone")
                fresh.clear()
                limit, page = 0, ""
                continue
            for item in answer.items:
                key, entry = self._entry(item)
                fresh[key] = entry
            page = answer.next
            if not page:
                break
        self._count("lists")
        self._missing = False
        self._revision = answer.revision
        self._tell(self.store.replace(fresh), relisted=True)
        self._found()

    def _none(self) -> None:
        self._missing = True
        self._tell(self.store.replace({}), relisted=True)
        self._found()

    def _entry(self, item: T) -> tuple[Key, Entry[S]]:
        which = identity(item)
        known = self.store.entry(which.key)
        if known is not None and known.uid == which.uid and known.revision == which.revision:
            return which.key, known
        return which.key, Entry(which.uid, which.revision, self._transform(item))

    # Watches.

    async def _follow(self) -> None:
        """One watch, to its end. Returns when the server closed it in good order; raises otherwise."""
        settings, selection = self._settings, self._selection
        timeout_seconds = settings.watch_seconds * (1.0 + self._random.uniform(0.0, 1.0))
        heard = False
        async with contextlib.AsyncExitStack() as stack:
            began = self._clock.monotonic()
            try:
                async with asyncio.timeout(settings.stall_seconds) as stall:
                    events = await stack.enter_async_context(
                        self._api.watch(
                            self.kind,
                            revision=self._revision,
                            namespace=selection.namespace,
                            labels=selection.labels,
                            fields=selection.fields,
                            timeout_seconds=timeout_seconds,
                        )
                    )
                    self._count("watches")
                    self._found()
                    try:
                        heard = await self._hear(events, stall)
                    finally:
                        if self._clock.monotonic() - began >= HEALTHY_SECONDS:
                            self._backoff.reset()
            except TimeoutError:
                if not stall.expired():
                    raise
                self._count("stalls")
                raise _Closed(f"nothing was heard for {settings.stall_seconds:.0f} s") from None
        if not heard and self._clock.monotonic() - began < 1.0:
            raise _Closed("the server closed the watch at once")

    async def _hear(self, events: AsyncIterator[WatchEvent[T]], stall: asyncio.Timeout) -> bool:
        """Applies events until the stream ends; whether there were any."""
        loop = asyncio.get_running_loop()
        heard = 0
        pushed = loop.time()
        async for event in events:
            now = loop.time()
            if now - pushed >= 1.0:  # a timer moved for every event would cost more than the event
                stall.reschedule(now + self._settings.stall_seconds)
                pushed = now
            if not heard:
                self._backoff.reset()
            heard += 1
            self._apply(event)
            if heard % EVENTS_AT_A_STRETCH == 0:
                await asyncio.sleep(0)
        return heard > 0

    def _apply(self, event: WatchEvent[T]) -> None:
        if event.type is EventType.BOOKMARK:
            self._count("bookmarks")
            self._revision = event.revision
            return
        self._count("events")
        key, entry = self._entry(event.object)
        news = self.store.drop if event.type is EventType.DELETED else self.store.put
        self._revision = event.revision
        self._tell(news(key, entry), relisted=False)

    # News.

    def _tell(self, changes: Iterable[Change[S]], *, relisted: bool) -> None:
        for change in changes:
            if isinstance(change, Deleted):
                self._count("deletions")
                if relisted:
                    self._count("deletions_by_relist")
            for subscriber in self._subscribers:
                subscriber(change)

    def _found(self) -> None:
        self._why = None
        self._error = ""
        self._contact.set()
        self._contact.clear()

    def _lost(self, why: Why, error: Exception) -> None:
        self._error = f"{type(error).__name__}: {error}"
        if self._why is None or (why is Why.HISTORY_GONE and self._why is Why.DISCONNECTED):
            self._why = why
            self._since = self._clock.monotonic()

    def _count(self, what: str) -> None:
        self._counts[what] = self._counts.get(what, 0) + 1


class _Closed(Exception):
    """A watch ended in a way that calls for a pause before the next."""


def unchanged(item: T) -> T:
    """The transform that keeps objects as they are."""
    return item


class Informers:
    """Several kinds followed together, with one answer to «can the cache be relied on?»."""

    def __init__(
        self, api: Api, *, clock: Clock, random: Random, settings: InformerSettings = DEFAULT_SETTINGS
    ) -> None:
        self._api = api
        self._clock = clock
        self._random = random
        self._settings = settings
        self._informers: list[Informer[Any, Any]] = []

    def watch(
        self,
        kind: Kind[T],
        *,
        selection: Selection = EVERYTHING,
        indexes: Mapping[str, Index[T]] | None = None,
        optional: bool = False,
    ) -> Informer[T, T]:
        """Follows a kind; call it before `run`."""
        return self.watch_as(kind, unchanged, selection=selection, indexes=indexes, optional=optional)

    def watch_as(
        self,
        kind: Kind[T],
        transform: Callable[[T], S],
        *,
        selection: Selection = EVERYTHING,
        indexes: Mapping[str, Index[S]] | None = None,
        optional: bool = False,
    ) -> Informer[T, S]:
        """Follows a kind and keeps of each object what `transform` makes of it; call it before `run`."""
        informer = Informer(
            self._api,
            kind,
            clock=self._clock,
            random=self._random,
            transform=transform,
            selection=selection,
            indexes=indexes,
            settings=self._settings,
            optional=optional,
        )
        self._informers.append(informer)
        return informer

    async def run(self) -> None:
        """Follows all of them until cancelled, or until one of them raises."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run(), name=f"informer {informer.kind}")

    @property
    def synced(self) -> bool:
        return not self.unsynced()

    def unsynced(self) -> tuple[Unsynced, ...]:
        """What cannot be relied on and why; empty when everything can."""
        states = (informer.unsynced() for informer in self._informers)
        return tuple(state for state in states if state is not None)

    async def wait_synced(self) -> None:
        """Returns when every store can be relied on."""
        while not self.synced:
            for informer in self._informers:
                await informer.wait_synced()

    def statistics(self) -> dict[str, InformerStatistics]:
        """By kind; of two informers of one kind the later shows."""
        return {str(informer.kind): informer.statistics() for informer in self._informers}
