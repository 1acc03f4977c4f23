"""What a watch has told so far: objects by key, with indexes, and the changes that each piece of news makes.

No I/O: news comes in, changes come out, so that every rule about lost deletions can be tried with plain values.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

S = TypeVar("S")

Key: TypeAlias = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""

Index: TypeAlias = Callable[[S], Iterable[str]]
"""The values under which an object is to be found."""


class Identity(msgspec.Struct, frozen=True, gc=False):
    """Which object it is (`key`), which incarnation of it (`uid`) and which state of that (`revision`)."""

    key: Key
    uid: str
    revision: str


def identity(item: Any) -> Identity:
    """Read from a struct's or a raw object's metadata."""
    if isinstance(item, Mapping):
        meta = item["metadata"]
        key = (meta.get("namespace", ""), meta.get("name", ""))
        return Identity(key, meta.get("uid", ""), meta.get("resourceVersion", ""))
    meta = item.metadata
    return Identity((meta.namespace, meta.name), meta.uid, meta.resource_version)


@dataclasses.dataclass(frozen=True, slots=True)
class Added(Generic[S]):
    key: Key
    new: S


@dataclasses.dataclass(frozen=True, slots=True)
class Changed(Generic[S]):
    key: Key
    old: S
    new: S


@dataclasses.dataclass(frozen=True, slots=True)
class Deleted(Generic[S]):
    """`old` is the object's last state if `final`; otherwise the last that was seen before the deletion was missed."""

    key: Key
    old: S
    final: bool


Change: TypeAlias = Added[S] | Changed[S] | Deleted[S]


class Entry(msgspec.Struct, Generic[S], frozen=True, gc=False):
    uid: str
    revision: str
    object: S


class Store(Generic[S]):
    """Objects by key, in the order of their first appearance; the same for every index.

    An object that was deleted and made again under its name is two objects: its deletion is a change of its own.
    """

    def __init__(self, indexes: Mapping[str, Index[S]] | None = None) -> None:
        self._entries: dict[Key, Entry[S]] = {}
        self._index_functions = dict(indexes or {})
        self._indexes: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in self._index_functions}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[S]:
        return (entry.object for entry in self._entries.values())

    def get(self, name: str, namespace: str = "") -> S | None:
        entry = self._entries.get((namespace, name))
        return None if entry is None else entry.object

    def entry(self, key: Key) -> Entry[S] | None:
        """With the object's uid and revision."""
        return self._entries.get(key)

    def items(self) -> Iterator[tuple[Key, S]]:
        return ((key, entry.object) for key, entry in self._entries.items())

    def find(self, index: str, value: str) -> tuple[S, ...]:
        """The objects that the index has under this value."""
        keys = self._indexes[index].get(value, {})
        entries = self._entries
        return tuple([entries[key].object for key in keys])

    def count(self, index: str, value: str) -> int:
        """How many objects the index has under this value, without a look at them."""
        return len(self._indexes[index].get(value, ()))

    def values_of(self, index: str) -> tuple[str, ...]:
        """Every value under which the index has an object."""
        return tuple(self._indexes[index])

    def put(self, key: Key, entry: Entry[S]) -> Sequence[Change[S]]:
        """News that the object is now so."""
        old = self._entries.get(key)
        if old is None:
            self._insert(key, entry)
            return (Added(key, entry.object),)
        if old.uid != entry.uid:
            self._remove(key)
            self._insert(key, entry)
            return (Deleted(key, old.object, final=False), Added(key, entry.object))
        if old.revision == entry.revision:
            return ()
        self._unindex(key, old.object)
        self._insert(key, entry)
        return (Changed(key, old.object, entry.object),)

    def drop(self, key: Key, last: Entry[S]) -> Sequence[Change[S]]:
        """News that the object is gone, and its last state."""
        old = self._entries.get(key)
        if old is None:
            return ()
        self._remove(key)
        if old.uid != last.uid:
            # The news is of an incarnation that we never saw; ours must have gone before it.
            return (Deleted(key, old.object, final=False),)
        return (Deleted(key, last.object, final=True),)

    def replace(self, fresh: Mapping[Key, Entry[S]]) -> Sequence[Change[S]]:
        """News that exactly these objects exist. What is missing was deleted unseen: deletions come first."""
        changes: list[Change[S]] = []
        for key in [key for key in self._entries if key not in fresh]:
            changes.append(Deleted(key, self._entries[key].object, final=False))
            self._remove(key)
        for key, entry in fresh.items():
            changes += self.put(key, entry)
        return changes

    def _insert(self, key: Key, entry: Entry[S]) -> None:
        self._entries[key] = entry
        for name, function in self._index_functions.items():
            for value in function(entry.object):
                self._indexes[name].setdefault(value, {})[key] = None

    def _remove(self, key: Key) -> None:
        self._unindex(key, self._entries.pop(key).object)

    def _unindex(self, key: Key, item: S) -> None:
        for name, function in self._index_functions.items():
            index = self._indexes[name]
            for value in function(item):
                keys = index.get(value)
                if keys is not None:
                    keys.pop(key, None)
                    if not keys:
                        del index[value]

    def validate(self) -> None:
        """Raises AssertionError unless every index says exactly what its function says of the objects."""
        for name, function in self._index_functions.items():
            expected: dict[str, set[Key]] = {}
            for key, entry in self._entries.items():
                for value in function(entry.object):
                    expected.setdefault(value, set()).add(key)
            actual = {value: set(keys) for value, keys in self._indexes[name].items()}
            assert actual == expected, f"index {name} differs from its objects"
