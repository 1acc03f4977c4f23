"""Lists in pages as of one revision, and the predicates of their selectors."""

import base64
import dataclasses
from typing import Final

import msgspec

from growth.kube.errors import BadRequest
from growth.kube.memory import failures
from growth.kube.memory.cluster import Cluster
from growth.kube.memory.resources import Resource
from growth.kube.memory.selectors import Predicate, fields_predicate, parse_fields, parse_labels
from growth.kube.memory.store import Key, Stored

_NAME: Final = ("metadata", "name")
_NAMESPACE: Final = ("metadata", "namespace")


@dataclasses.dataclass(frozen=True, slots=True)
class Listing:
    """One page; `next` is empty on the last one and `remaining` then None, as it is where a selector filters."""

    items: list[Stored]
    revision: int
    next: str = ""
    remaining: int | None = None


class _Token(msgspec.Struct, frozen=True):
    v: str
    revision: int
    namespace: str
    name: str


def selection(resource: Resource, *, labels: str = "", fields: str = "") -> Predicate | None:
    """The test of both selectors, or None where everything matches."""
    label_test = parse_labels(labels) if labels else None
    field_test = fields_predicate(_paths(resource, fields)) if fields else None
    if label_test is None:
        return field_test
    test = label_test
    empty: dict[str, str] = {}
    if field_test is None:
        return lambda stored: test(stored["metadata"].get("labels") or empty)
    also = field_test
    return lambda stored: test(stored["metadata"].get("labels") or empty) and also(stored)


def _paths(resource: Resource, fields: str) -> list[tuple[tuple[str, ...], bool, str]]:
    known = resource.strategy.selectable_fields()
    terms: list[tuple[tuple[str, ...], bool, str]] = []
    for label, equal, value in parse_fields(fields):
        if label == "metadata.name":
            path: tuple[str, ...] = _NAME
        elif label == "metadata.namespace" and resource.namespaced:
            path = _NAMESPACE
        elif label in known:
            path = known[label]
        elif known or resource.custom:
            raise BadRequest(f"field label not supported: {label}")
        else:
            raise BadRequest(f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"')
        terms.append((path, equal, value))
    return terms


def parse_revision(text: str) -> int | None:
    """A resourceVersion of a request; None where none was given."""
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise BadRequest(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        ) from None


def page_of(
    cluster: Cluster,
    resource: Resource,
    *,
    namespace: str = "",
    matches: Predicate | None = None,
    limit: int = 0,
    page: str = "",
    revision: str = "",
    exact: bool = False,
) -> Listing:
    """One page of a list. `exact` asks for the state at `revision` and not merely for one that is no older."""
    collection = cluster.store.collection(resource.id)
    current = cluster.store.revision
    after: Key | None = None
    asked = parse_revision(revision)
    if page:
        if asked:
            raise BadRequest("specifying resource version is not allowed when using continue")
        token = _token(page)
        at = token.revision
        after = (token.namespace, token.name)
        if at < collection.floor:
            raise failures.too_old_page()
    else:
        at = asked if asked and exact else current
        if asked and asked > current:
            raise failures.too_new(asked, current)
        if at < collection.floor:
            raise failures.too_old_watch(at, collection.floor)
    if at == current:
        objects = collection.objects
        keys = collection.keys(namespace)
    else:
        objects = collection.as_of(at)
        keys = sorted(key for key in objects if not namespace or key[0] == namespace)
    if after is not None:
        keys = [key for key in keys if key > after]
    items: list[Stored] = []
    for position, key in enumerate(keys):
        stored = objects[key]
        if matches is not None and not matches(stored.object):
            continue
        if limit and len(items) == limit:
            remaining = len(keys) - position if matches is None else None
            last = items[-1].object["metadata"]
            return Listing(items, at, _next(at, last.get("namespace", ""), last["name"]), remaining)
        items.append(stored)
    return Listing(items, at)


def _next(revision: int, namespace: str, name: str) -> str:
    token = msgspec.json.encode(_Token("meta.k8s.io/v1", revision, namespace, name))
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


def _token(text: str) -> _Token:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(raw, type=_Token)
    except (ValueError, msgspec.DecodeError) as error:
        raise BadRequest(f"invalid continue token: continue key is not valid: {error}") from error
