"""The objects, one revision counter over all of them, and the history from which watches resume.

Objects are plain dicts that nobody changes after they were put: a write puts a new dict, which may share unchanged
parts with the old. Each collection (one for all versions of a kind) keeps its own history, at most `ring` changes.
"""

import bisect
import collections
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.memory import failures

Key = tuple[str, str]  # namespace (empty for cluster-scoped kinds) and name

RING: Final = 20_000  # changes kept per collection; a watcher that lags more has to list again
FIRST_REVISION: Final = 1


class Stored:
    """One object as of one revision. `decoded` caches the struct that a reader asked for last."""

    __slots__ = ("decoded", "object", "revision")

    def __init__(self, stored: Json, revision: int) -> None:
        self.object = stored
        self.revision = revision
        self.decoded: tuple[Any, Any] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One write. A removal's `stored` is the last state with the revision of the removal."""

    revision: int
    type: str  # ADDED, MODIFIED, DELETED
    key: Key
    stored: Stored
    previous: Stored | None


class Watch:
    """A reader's place in a collection's history: changes wait in `pending` until they are taken.

    `wake` is called after something was added or the watch was closed; the reader sets it.
    """

    __slots__ = ("_matches", "_namespace", "closed", "pending", "revision", "wake")

    def __init__(self, *, namespace: str, matches: Callable[[Json], bool] | None, revision: int) -> None:
        self._namespace = namespace
        self._matches = matches
        self.pending: collections.deque[tuple[str, Stored | None]] = collections.deque()
        self.revision = revision  # everything up to here was offered, or is not asked for
        self.closed = False
        self.wake: Callable[[], None] | None = None

    def offer(self, change: Change) -> None:
        """Takes a change that concerns the reader; one that enters or leaves the selection is an addition or removal."""
        if change.revision <= self.revision:
            return  # asked to start later
        self.revision = change.revision
        if self._namespace and change.key[0] != self._namespace:
            return
        kind = change.type
        stored = change.stored
        if self._matches is not None:
            now = kind != "DELETED" and self._matches(stored.object)
            before = change.previous is not None and self._matches(change.previous.object)
            if now:
                kind = "MODIFIED" if before else "ADDED"
            elif before:
                assert change.previous is not None
                kind = "DELETED"
                stored = change.stored if change.type == "DELETED" else restamp(change.previous, change.revision)
            else:
                return
        self.pending.append((kind, stored))
        if self.wake is not None:
            self.wake()

    def close(self) -> None:
        self.closed = True
        if self.wake is not None:
            self.wake()


def restamp(stored: Stored, revision: int) -> Stored:
    """The same object with another resourceVersion."""
    metadata = {**stored.object["metadata"], "resourceVersion": str(revision)}
    return Stored({**stored.object, "metadata": metadata}, revision)


class Collection:
    """All objects of a kind, in key order, with the history of their changes."""

    def __init__(self) -> None:
        self.objects: dict[Key, Stored] = {}
        self.history: collections.deque[Change] = collections.deque()
        self.floor = FIRST_REVISION  # history is whole after this revision
        self.watches: list[Watch] = []
        self._order: list[Key] = []

    def keys(self, namespace: str = "") -> list[Key]:
        """The keys in order; not to be changed."""
        if not namespace:
            return self._order
        low = bisect.bisect_left(self._order, (namespace, ""))
        high = bisect.bisect_left(self._order, (namespace + "\0", ""))
        return self._order[low:high]

    def put(self, key: Key, stored: Stored) -> None:
        if key not in self.objects:
            bisect.insort(self._order, key)
        self.objects[key] = stored

    def remove(self, key: Key) -> None:
        del self.objects[key]
        del self._order[bisect.bisect_left(self._order, key)]

    def as_of(self, revision: int) -> dict[Key, Stored]:
        """The objects as they were: later changes undone one by one."""
        then = dict(self.objects)
        for change in reversed(self.history):
            if change.revision <= revision:
                break
            if change.previous is None:
                then.pop(change.key, None)
            else:
                then[change.key] = change.previous
        return then

    def after(self, revision: int) -> Iterator[Change]:
        """The changes after a revision that is not below the floor."""
        missed: list[Change] = []
        for change in reversed(self.history):
            if change.revision <= revision:
                break
            missed.append(change)
        return reversed(missed)


class Store:
    """Collections by (group, plural)."""

    def __init__(self, *, ring: int = RING) -> None:
        self.revision = FIRST_REVISION
        self._ring = ring
        self._compacted = FIRST_REVISION
        self._collections: dict[tuple[str, str], Collection] = {}
        self.followers: list[Callable[[tuple[str, str], Change], None]] = []
        self._untold: collections.deque[tuple[tuple[str, str], Change]] = collections.deque()
        self._telling = False

    def collection(self, which: tuple[str, str]) -> Collection:
        found = self._collections.get(which)
        if found is None:
            found = self._collections[which] = Collection()
            found.floor = self._compacted
        return found

    @property
    def collections(self) -> dict[tuple[str, str], Collection]:
        return self._collections

    def get(self, which: tuple[str, str], key: Key) -> Stored | None:
        found = self._collections.get(which)
        return None if found is None else found.objects.get(key)

    def put(self, which: tuple[str, str], key: Key, new: Json) -> Stored:
        """Stores the object under the next revision, which it writes into `new`'s metadata, and tells the watches."""
        collection = self.collection(which)
        previous = collection.objects.get(key)
        self.revision += 1
        new["metadata"]["resourceVersion"] = str(self.revision)
        stored = Stored(new, self.revision)
        collection.put(key, stored)
        kind = "ADDED" if previous is None else "MODIFIED"
        self._tell(which, collection, Change(self.revision, kind, key, stored, previous))
        return stored

    def remove(self, which: tuple[str, str], key: Key, last: Json | None = None) -> Stored:
        """Removes the object; `last` is its final state where the removing write changed it."""
        collection = self.collection(which)
        previous = collection.objects[key]
        self.revision += 1
        final = restamp(previous if last is None else Stored(last, self.revision), self.revision)
        collection.remove(key)
        self._tell(which, collection, Change(self.revision, "DELETED", key, final, previous))
        return final

    def _tell(self, which: tuple[str, str], collection: Collection, change: Change) -> None:
        """A follower may write in its turn: whoever watches hears of that after what led to it, in the order of revisions."""
        history = collection.history
        history.append(change)
        if len(history) > self._ring:
            collection.floor = history.popleft().revision
        self._untold.append((which, change))
        if self._telling:
            return
        self._telling = True
        try:
            while self._untold:
                which, change = self._untold.popleft()
                for follower in self.followers:
                    follower(which, change)
                for watch in tuple(self.collection(which).watches):
                    watch.offer(change)
        finally:
            self._telling = False

    def watch(
        self,
        which: tuple[str, str],
        *,
        revision: int | None,
        namespace: str = "",
        matches: Callable[[Json], bool] | None = None,
    ) -> Watch:
        """A watch of what follows `revision`; without one, the state now comes first as additions."""
        collection = self.collection(which)
        if revision is not None and revision < collection.floor:
            raise failures.too_old_watch(revision, collection.floor)
        watch = Watch(namespace=namespace, matches=matches, revision=self.revision if revision is None else revision)
        if revision is None:
            for key in collection.keys(namespace):
                stored = collection.objects[key]
                if matches is None or matches(stored.object):
                    watch.pending.append(("ADDED", stored))
        else:
            for change in collection.after(revision):
                watch.offer(change)
        collection.watches.append(watch)
        return watch

    def unwatch(self, which: tuple[str, str], watch: Watch) -> None:
        """Ends a watch; ending it twice is no error."""
        watches = self.collection(which).watches
        if watch in watches:
            watches.remove(watch)

    def compact(self) -> None:
        """Forgets all history: watches and pages of an earlier revision get 410."""
        self._compacted = self.revision
        for collection in self._collections.values():
            collection.history.clear()
            collection.floor = self.revision
