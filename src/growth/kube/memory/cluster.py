"""What all verbs of the server stand on: the store, the catalogue, time, names, and who owns what.

Every write goes through `put` and `remove`, which keep the indexes and leave word of what the garbage collector, the
namespace controller and the CRD controller have to look at; `growth.kube.memory.server` lets those run to their end
after each request.
"""

import collections
import datetime as dt
from collections.abc import Iterable
from typing import Final

import msgspec

from growth.api.kinds import Json
from growth.kube.memory.fields import Undecodable
from growth.kube.memory.resources import Catalogue, Resource
from growth.kube.memory.store import Key, Store, Stored
from growth.ports import Clock, Random

Place = tuple[tuple[str, str], Key]  # a collection and a key in it

_GUARDED: Final = frozenset({"persistentvolumeclaims", "persistentvolumes"})
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # without vowels, so that no word is spelled by accident
_SUFFIX_LENGTH: Final = 5
_BASE_LIMIT: Final = 58


_METADATA: Final = frozenset(
    {
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    }
)


class _MetadataShape(msgspec.Struct):
    name: str = ""
    generateName: str = ""  # noqa: N815  the wire's spelling
    namespace: str = ""
    uid: str = ""
    resourceVersion: str | None = ""  # noqa: N815
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    ownerReferences: list[dict[str, str | bool]] | None = None  # noqa: N815


def check_shape(body: Json, resource: Resource) -> None:
    """Refuses an object whose metadata could not even be read."""
    metadata = body.get("metadata")
    if metadata is None:
        body["metadata"] = {}
        return
    try:
        msgspec.convert(metadata, _MetadataShape)
        for field in [field for field in metadata if field not in _METADATA]:
            del metadata[field]  # of metadata nothing unknown is kept, whatever the kind
    except msgspec.ValidationError as error:
        raise Undecodable(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: metadata: {error}'
        ) from error


class Cluster:
    """The state and its indexes. Implements `resources.Lookup`."""

    def __init__(self, *, clock: Clock, random: Random, catalogue: Catalogue, store: Store) -> None:
        self.clock = clock
        self.random = random
        self.catalogue = catalogue
        self.store = store
        self.places: dict[str, Place] = {}  # by uid
        self.dependents: dict[str, dict[Place, None]] = {}  # by the owner's uid, in order of creation
        self.orphans: collections.deque[Place] = collections.deque()  # whose owners are to be looked at
        self.emptying: dict[str, None] = {}  # terminating namespaces in which something was removed
        self.guarded: dict[Place, None] = {}  # volumes and claims that wait to be deleted
        self.definitions: collections.deque[str] = collections.deque()  # CRDs that were written or removed

    def now(self) -> str:
        """The time as objects carry it: UTC, whole seconds."""
        return timestamp(self.clock.now())

    def suffix(self, base: str) -> str:
        """A name made of `generateName` and random letters."""
        letters = "".join(self.random.choice(_SUFFIX_LETTERS) for _ in range(_SUFFIX_LENGTH))
        return base[:_BASE_LIMIT] + letters

    def find(self, group: str, plural: str, name: str, *, namespace: str = "") -> Json | None:
        stored = self.store.get((group, plural), (namespace, name))
        return None if stored is None else stored.object

    def every(self, group: str, plural: str, *, namespace: str = "") -> Iterable[Json]:
        collection = self.store.collection((group, plural))
        return [collection.objects[key].object for key in collection.keys(namespace)]

    def put(self, resource: Resource, key: Key, new: Json) -> Stored:
        """Stores the object and looks after its owners."""
        old = self.store.get(resource.id, key)
        stored = self.store.put(resource.id, key, new)
        metadata = new["metadata"]
        owners = metadata.get("ownerReferences")
        place = (resource.id, key)
        if old is None:
            self.places[metadata["uid"]] = place
        before = None if old is None else old.object["metadata"].get("ownerReferences")
        if owners is not before:
            for owner in before or ():
                self._forget(owner["uid"], place)
            for owner in owners or ():
                self.dependents.setdefault(owner["uid"], {})[place] = None
            if owners:
                self.orphans.append(place)
        if resource.plural == "customresourcedefinitions":
            self.definitions.append(key[1])
        elif resource.plural in _GUARDED and metadata.get("deletionTimestamp"):
            self.guarded[place] = None
        return stored

    def remove(self, resource: Resource, key: Key, last: Json | None = None) -> Stored:
        """Removes the object; its dependents are looked at next."""
        stored = self.store.remove(resource.id, key, last)
        metadata = stored.object["metadata"]
        self.places.pop(metadata["uid"], None)
        place = (resource.id, key)
        for owner in metadata.get("ownerReferences") or ():
            self._forget(owner["uid"], place)
        self.orphans.extend(self.dependents.get(metadata["uid"], ()))
        if key[0]:
            namespace = self.find("", "namespaces", key[0])
            if namespace is not None and namespace["metadata"].get("deletionTimestamp"):
                self.emptying[key[0]] = None
        if resource.custom:
            name = f"{resource.plural}.{resource.group}"
            definition = self.find("apiextensions.k8s.io", "customresourcedefinitions", name)
            if definition is not None and definition["metadata"].get("deletionTimestamp"):
                self.definitions.append(name)
        return stored

    def _forget(self, owner: str, place: Place) -> None:
        known = self.dependents.get(owner)
        if known is not None:
            known.pop(place, None)
            if not known:
                del self.dependents[owner]


def timestamp(moment: dt.datetime) -> str:
    """A time as Kubernetes writes it."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
