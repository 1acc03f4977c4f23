"""From files, folders and standard input to single objects, each with the place where it stands.

JSON and YAML, several documents in a file, Lists of anything. Lists in JSON are not built up as Python objects: each item
stays bytes until somebody knows its type, so that a list of 20,000 pods costs little more than its structs.
"""

import dataclasses
import json
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar, cast

import msgspec
import yaml

from growth.api.decoding import convert, decode
from growth.api.kinds import Json
from growth.cli.errors import UsageError

T = TypeVar("T")

STDIN: Final = ("-", "/dev/stdin")
SUFFIXES: Final = (".yaml", ".yml", ".json")

_AT: Final = re.compile(r" - at `\$\.?(?P<field>.*)`$")


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where an object stands: counted from 1."""

    file: str
    document: int
    item: int | None = None

    def __str__(self) -> str:
        inside = f", item {self.item}" if self.item is not None else ""
        return f"{self.file}: document {self.document}{inside}"


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


class _Name(msgspec.Struct, rename="camel"):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""


class _Named(msgspec.Struct):
    metadata: _Name | None = None


class _List(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    items: list[msgspec.Raw] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """One object. `body` is JSON bytes, or what a YAML reader made."""

    place: Place
    api_version: str
    kind: str
    body: msgspec.Raw | Json

    def read(self, kind: type[T]) -> T:
        """The object as a struct; `UsageError` names the field that does not fit."""
        try:
            if isinstance(self.body, dict):
                return convert(self.body, kind)
            return decode(cast("bytes", self.body), kind)
        except msgspec.ValidationError as error:
            raise self.refusal(*_field_and_reason(error)) from error

    def as_json(self) -> Json:
        """The object as plain values, a copy of one's own."""
        if isinstance(self.body, dict):
            copied: Json = json.loads(json.dumps(self.body))
            return copied
        decoded: Json = msgspec.json.decode(self.body)
        return decoded

    def refusal(self, field: str, reason: str) -> UsageError:
        """What is wrong with the object, with its place and name."""
        where = f"{field}: " if field else ""
        return UsageError(f"{self.place} ({self.title}): {where}{reason}")

    @property
    def title(self) -> str:
        """Kind and name, for people."""
        try:
            found = (
                convert(self.body, _Named)
                if isinstance(self.body, dict)
                else msgspec.json.decode(self.body, type=_Named)
            )
        except msgspec.ValidationError:
            return self.kind
        meta = found.metadata or _Name()
        name = meta.name or meta.generate_name or "without a name"
        return f"{self.kind} {meta.namespace}/{name}" if meta.namespace else f"{self.kind} {name}"


def _field_and_reason(error: msgspec.ValidationError) -> tuple[str, str]:
    text = str(error)
    match = _AT.search(text)
    reason = text[: match.start()] if match else text
    return (match["field"] if match else ""), reason[:1].lower() + reason[1:].replace("`", "")


def documents(sources: Iterable[str]) -> Iterator[Document]:
    """Every object in the sources: files, folders with all that is below them, or `-` (also `/dev/stdin`) for standard input."""
    for source in sources:
        if source in STDIN:
            yield from split(sys.stdin.buffer.read(), "standard input")
            continue
        path = pathlib.Path(source)
        for file in _files(path):
            try:
                body = file.read_bytes()
            except OSError as error:
                raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from error
            yield from split(body, str(file))


def _files(path: pathlib.Path) -> list[pathlib.Path]:
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder")
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())
    if not found:
        raise UsageError(f"{path}: the folder holds no file that ends in {', '.join(SUFFIXES)}")
    return found


def split(body: bytes, file: str) -> Iterator[Document]:
    """Every object in a text, JSON or YAML."""
    start = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if not start:
        return
    if start in {b"{", b"["}:
        whole = _json(body, file)
        if whole is not None:
            yield from whole
            return
    for number, document in enumerate(yaml_documents(body, file), start=1):
        if document is not None:
            yield from _objects(document, Place(file, number))


def _json(body: bytes, file: str) -> list[Document] | None:
    """The objects of a JSON text; None where YAML in its flow style, or several texts in a row, may be meant."""
    body = body.removeprefix(b"\xef\xbb\xbf")
    place = Place(file, 1)
    try:
        if body.lstrip()[:1] == b"[":
            listed = msgspec.json.decode(body, type=list[msgspec.Raw])
            return [
                each
                for index, item in enumerate(listed, start=1)
                for each in _raw(item, dataclasses.replace(place, item=index))
            ]
        return list(_raw(msgspec.Raw(body), place))
    except msgspec.ValidationError as error:
        raise UsageError(f"{place}: {' '.join(_field_and_reason(error)).strip()}") from error
    except msgspec.DecodeError as error:
        several = _several(body, file)
        if several is None and file.endswith(".json"):
            raise UsageError(f"{file}: is not JSON: {error}") from error
        return several


def _several(body: bytes, file: str) -> list[Document] | None:
    """JSON texts one after the other, as `jq` prints them."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    decoder = json.JSONDecoder()
    found: list[Document] = []
    position, number = 0, 0
    while True:
        while position < len(text) and text[position].isspace():
            position += 1
        if position == len(text):
            return found
        try:
            value, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError:
            return None
        number += 1
        found.extend(_objects(value, Place(file, number)))


def _raw(body: msgspec.Raw, place: Place) -> Iterator[Document]:
    """One object, or the items of a List, still as bytes."""
    head = msgspec.json.decode(body, type=_Head)
    if not _is_list(head.kind):
        yield _document(place, head.api_version, head.kind, body)
        return
    whole = msgspec.json.decode(body, type=_List)
    if whole.items is None:
        return
    for index, item in enumerate(whole.items, start=1):
        below = Place(place.file, place.document, index)
        try:
            inner = msgspec.json.decode(item, type=_Head)
        except msgspec.ValidationError as error:
            raise UsageError(f"{below}: {' '.join(_field_and_reason(error)).strip()}") from error
        if _is_list(inner.kind):
            yield from _raw(item, below)
            continue
        yield _document(below, inner.api_version or _item_version(head), inner.kind or _item_kind(head), item)


def _objects(value: Any, place: Place) -> Iterator[Document]:
    """The same for plain values."""
    if isinstance(value, list):
        for index, item in enumerate(value, start=1):
            yield from _objects(item, Place(place.file, place.document, index))
        return
    if not isinstance(value, dict):
        raise UsageError(f"{place}: is no object: a manifest has apiVersion, kind and metadata")
    head = _Head(str(value.get("apiVersion") or ""), str(value.get("kind") or ""))
    if not _is_list(head.kind):
        yield _document(place, head.api_version, head.kind, value)
        return
    for index, item in enumerate(value.get("items") or [], start=1):
        below = Place(place.file, place.document, index)
        if not isinstance(item, dict):
            raise UsageError(f"{below}: is no object: a manifest has apiVersion, kind and metadata")
        filled = {"apiVersion": _item_version(head), "kind": _item_kind(head), **item}
        yield from _objects(filled, below)


def _document(place: Place, api_version: str, kind: str, body: msgspec.Raw | Json) -> Document:
    if not kind:
        raise UsageError(f"{place}: kind is missing: a manifest has apiVersion, kind and metadata")
    if not api_version:
        raise UsageError(f"{place} ({kind}): apiVersion is missing: a manifest has apiVersion, kind and metadata")
    return Document(place, api_version, kind, body)


def _is_list(kind: str) -> bool:
    return kind.endswith("List")


def _item_kind(head: _Head) -> str:
    """What the items of a PodList are; those of a plain List say it themselves."""
    return head.kind.removesuffix("List")


def _item_version(head: _Head) -> str:
    return head.api_version if head.kind != "List" else ""


class _Loader(yaml.CSafeLoader):
    """Reads scalars as Kubernetes' own reader does: times stay text, and `22:22` is no number to the base of sixty."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
    ]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?(0|[1-9][0-9_]*|0[0-7_]+|0x[0-9a-fA-F_]+)$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)


def yaml_documents(body: bytes, file: str) -> Iterator[Any]:
    """The documents of a YAML text as plain values; `UsageError` names the line."""
    try:
        yield from yaml.load_all(body, Loader=_Loader)
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: is not YAML: {_yaml_problem(error)}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: is not text: {error.reason} at byte {error.start}") from error


def _yaml_problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"{problem} at line {mark.line + 1} column {mark.column + 1}" if mark is not None else str(problem)
