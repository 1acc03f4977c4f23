"""What the server serves: one `Resource` a kind and version, and the `Catalogue` in which calls look it up.

A `Strategy` holds what a kind adds to the rules that all kinds share: defaults, admission, validation, and what an
update may touch. Strategies change the object that they are given in place: it is the caller's own copy, apart from
top-level fields that are the very same as in the old object, which nobody may change.
"""

import dataclasses
import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Protocol

from growth.api.kinds import Json
from growth.kube.memory import known
from growth.kube.memory.fields import FieldError
from growth.kube.memory.names import subdomain_faults

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Generation(enum.Enum):
    """What raises `metadata.generation`."""

    NONE = "the kind has none"
    SPEC = "a change of the spec"
    SPEC_OR_ANNOTATIONS = "a change of the spec or of the annotations, as with Deployments"
    CONTENT = "a change outside metadata"
    CONTENT_BUT_STATUS = "a change outside metadata and status"


class Lookup(Protocol):
    """What admission may ask of the rest of the cluster."""

    def now(self) -> str:
        """The time as objects carry it."""

    def find(self, group: str, plural: str, name: str, *, namespace: str = "") -> Json | None:
        """The stored object or None; not to be changed."""

    def every(self, group: str, plural: str, *, namespace: str = "") -> Iterable[Json]:
        """The stored objects in name order; not to be changed."""


class Strategy:
    """The rules of a kind without special ones: no status apart, no defaults, anything goes."""

    status = False
    unconditional_update = True
    create_on_update = False
    generation = Generation.NONE
    finishes_at_once = True  # DELETE answers with a Status and not with the object
    field_selectors: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # beyond metadata.name and metadata.namespace

    def selectable_fields(self) -> Mapping[str, tuple[str, ...]]:
        """Which field selectors there are beyond name and namespace, and where they lead."""
        return self.field_selectors

    def prune(self, new: Json, old: Json | None, *, kind: str) -> list[str]:
        """Drops what the kind does not have and gives the paths of it."""
        return known.conform(kind, new, old)

    def default(self, new: Json, old: Json | None) -> None:
        """Fills in what the manifest left out. What is the very same object in `old` has it all and is left alone."""

    def admit(self, new: Json, *, cluster: Lookup) -> None:
        """Changes or refuses a new object by what else is in the cluster."""

    def prepare_create(self, new: Json) -> None:
        """Drops what a creator may not set."""

    def identify(self, new: Json) -> None:
        """Fills in what depends on a new object's uid and creation time."""

    def prepare_update(self, new: Json, old: Json) -> None:
        """Puts back what an update of the object itself may not touch: the status, where it is kept apart."""
        if self.status:
            keep_field(new, old, "status")

    def prepare_status(self, new: Json, old: Json) -> None:
        """Puts back what an update of the status may not touch."""
        for field in list(new):
            if field not in {"metadata", "status"} and field not in old:
                del new[field]
        for field, value in old.items():
            if field not in {"metadata", "status"}:
                new[field] = value

    def validate(self, new: Json) -> Iterator[FieldError]:
        """What is wrong with the object taken by itself."""
        yield from ()

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        """What is wrong with the change."""
        yield from self.validate(new) if new != old else ()

    def validate_status(self, new: Json, old: Json) -> Iterator[FieldError]:
        """What is wrong with the change of the status."""
        yield from ()

    def name_faults(self, name: str) -> list[str]:
        """What is wrong with an object's name."""
        return subdomain_faults(name)

    def keeps_deleted(self, stored: Json) -> bool:
        """Whether something of the kind itself, like a namespace's finalizers, keeps a deleted object."""
        return False

    def mark_deleted(self, new: Json) -> None:
        """What else changes when an object gets its deletionTimestamp."""

    def grace_seconds(self, stored: Json, asked: int | None) -> int | None:
        """How long a deletion waits for the object's keeper; None where the kind knows no grace."""
        return None


def unchanged(new: Json, old: Json | None, field: str) -> bool:
    """Whether a top-level field is the very object that is stored already."""
    return old is not None and field in old and new.get(field) is old[field]


def keep_field(new: Json, old: Json, field: str) -> None:
    """Puts the old value of a top-level field, or its absence, into the new object."""
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


@dataclasses.dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a kind with a scale subresource keeps replicas and selector, as field paths."""

    spec: tuple[str, ...] = ("spec", "replicas")
    status: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ()  # a string in the status; empty: spec.selector as a LabelSelector


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: a JSON path into the object, as CustomResourceDefinitions write it."""

    name: str
    type: str
    path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Resource:
    """One kind in one version. `storage` is the version in which objects are kept; others differ in apiVersion only."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    strategy: Strategy
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    scale: ScalePaths | None = None
    columns: tuple[Column, ...] = ()
    storage: str = ""
    custom: bool = False
    schema: Json | None = None  # of a custom kind, for clients that ask

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage_api_version(self) -> str:
        version = self.storage or self.version
        return f"{self.group}/{version}" if self.group else version

    @property
    def id(self) -> tuple[str, str]:
        """What all versions of a kind share."""
        return (self.group, self.plural)

    def __str__(self) -> str:
        """As the server names it in messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


class Catalogue:
    """All that is served, in the order of discovery: built-in kinds first, custom ones as they were established."""

    def __init__(self, builtin: Iterable[Resource]) -> None:
        self._served: dict[tuple[str, str, str], Resource] = {}
        self._kinds: dict[tuple[str, str], Resource] = {}
        for resource in builtin:
            self.serve(resource)

    def serve(self, resource: Resource) -> None:
        """Adds a resource, or replaces the one that stands at its place."""
        self._served[resource.group, resource.version, resource.plural] = resource
        self._kinds[resource.group, resource.kind] = resource

    def withdraw(self, group: str, plural: str) -> None:
        """Stops serving all versions of a custom kind."""
        for key in [key for key in self._served if (key[0], key[2]) == (group, plural)]:
            gone = self._served.pop(key)
            self._kinds.pop((group, gone.kind), None)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._served.get((group, version, plural))

    def of_kind(self, group: str, kind: str) -> Resource | None:
        """Some version of the kind, for owner references."""
        return self._kinds.get((group, kind))

    def any_version(self, group: str, plural: str) -> Resource | None:
        """Some version of the resource."""
        return next((one for one in self._served.values() if one.id == (group, plural)), None)

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._served.values()))
