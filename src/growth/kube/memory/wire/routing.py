"""One request in, one answer out: paths, queries, bodies and media types of the Kubernetes API, without any I/O."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from growth.api.kinds import Json
from growth.kube.errors import ApiError, BadRequest, NotFound, UnsupportedMediaType, to_status
from growth.kube.memory import failures
from growth.kube.memory.deletion import DeleteOptions, options_from
from growth.kube.memory.reads import Listing
from growth.kube.memory.resources import Resource
from growth.kube.memory.server import MemoryServer
from growth.kube.memory.store import Stored, Watch
from growth.kube.memory.wire import discovery, openapi, protobuf, tables

Query = Mapping[str, str]

LONGEST_WATCH_SECONDS: Final = 1800.0  # where the client names no time of its own
_AGGREGATED: Final = "as=APIGroupDiscoveryList"
_YES: Final = frozenset({"1", "true", "True", "TRUE"})


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer: JSON, or text where the body is a string."""

    status: int
    body: Any
    content_type: str = "application/json"


@dataclasses.dataclass(frozen=True, slots=True)
class Streaming:
    """A watch that goes on: the caller takes its events, shows each with `line`, and ends it with `end`."""

    watch: Watch
    timeout_seconds: float
    bookmarks: bool
    line: Callable[[str, Stored | None], bytes]
    end: Callable[[], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """What routing looks at; header names are in lower case."""

    method: str
    path: str
    query: Query
    headers: Mapping[str, str]
    body: bytes
    user: str = ""

    def json(self) -> Any:
        """The body, which is JSON, or protobuf of a kind that we can read."""
        kind = self.headers.get("content-type", "application/json").partition(";")[0].strip()
        if kind == protobuf.MEDIA_TYPE:
            return protobuf.decode(self.body)
        if kind not in {"application/json", ""} and not kind.endswith("+json"):
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: application/json, "
                "application/vnd.kubernetes.protobuf"
            )
        try:
            return msgspec.json.decode(self.body)
        except msgspec.DecodeError as error:
            raise BadRequest(f"the body of the request is no JSON: {error}") from error

    def whole(self) -> Json:
        """The body, which must be an object."""
        body = self.json()
        if not isinstance(body, dict):
            raise BadRequest("the body of the request is no object")
        return body

    def number(self, name: str) -> int:
        """A number of the query, 0 where there is none."""
        text = self.query.get(name) or "0"
        try:
            return int(text)
        except ValueError:
            raise BadRequest(f"{name}: {text!r} is no number") from None

    @property
    def accept(self) -> str:
        return self.headers.get("accept", "")


def handle(server: MemoryServer, request: Request) -> Answer | Streaming:
    """The answer to a request; refusals are answers too."""
    try:
        return _route(server, request)
    except ApiError as error:
        return Answer(error.code, to_status(error))


def _route(server: MemoryServer, request: Request) -> Answer | Streaming:
    parts = [part for part in request.path.split("/") if part]
    match parts:
        case ["version"]:
            return Answer(200, discovery.VERSION)
        case ["healthz" | "readyz" | "livez", *_]:
            return Answer(200, "ok", "text/plain")
        case ["api"]:
            if _AGGREGATED in request.accept:
                return _aggregated(server, core=True)
            return Answer(200, {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        case ["apis"]:
            if _AGGREGATED in request.accept:
                return _aggregated(server, core=False)
            return Answer(200, discovery.group_list(server.catalogue))
        case ["apis", group]:
            versions = discovery.groups(server.catalogue).get(group)
            if versions is None:
                return Answer(404, "404 page not found\n", "text/plain")
            return Answer(200, discovery.group_document(group, versions))
        case ["api", "v1"]:
            return Answer(200, discovery.resource_list(server.catalogue, "", "v1"))
        case ["apis", group, version]:
            listed = discovery.resource_list(server.catalogue, group, version)
            return Answer(404, "404 page not found\n", "text/plain") if listed is None else Answer(200, listed)
        case ["openapi", "v3"]:
            return Answer(200, openapi.index(server.catalogue))
        case ["openapi", "v3", *rest]:
            found = openapi.document(server.catalogue, "/".join(rest))
            return Answer(404, "404 page not found\n", "text/plain") if found is None else Answer(200, found)
        case ["api", "v1", *rest]:
            return _resource(server, request, "", "v1", rest)
        case ["apis", group, version, *rest]:
            return _resource(server, request, group, version, rest)
        case _:
            return Answer(404, "404 page not found\n", "text/plain")


def _aggregated(server: MemoryServer, *, core: bool) -> Answer:
    kind = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    return Answer(200, discovery.aggregated(server.catalogue, core=core), kind)


def _resource(server: MemoryServer, request: Request, group: str, version: str, parts: list[str]) -> Answer | Streaming:
    if group in {"authorization.k8s.io", "authentication.k8s.io"}:
        return _review(request, parts)
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2 and not (not group and parts[2] in {"status", "finalize"}):
        namespace, parts = parts[1], parts[2:]
    plural, name, subresource = (*parts, "", "")[:3]
    if len(parts) > 3:
        raise failures.no_resource()
    resource = server.resource(group, version, plural)
    if not resource.namespaced and namespace:
        raise failures.no_resource()
    _check_query(request)
    call = _Call(server, request, resource, namespace, name, subresource)
    if resource.namespaced and name and not namespace:
        raise failures.no_resource()
    if subresource:
        return call.on_subresource()
    return call.on_object() if name else call.on_collection()


def _check_query(request: Request) -> None:
    if request.query.get("dryRun"):
        raise BadRequest("dry-run is not supported by this server: leave dryRun out")


def _review(request: Request, parts: list[str]) -> Answer:
    """Everybody may do everything, and is who they say they are."""
    if request.method != "POST":
        raise failures.method_not_allowed()
    body = request.whole()
    match parts:
        case ["selfsubjectaccessreviews"]:
            status: Json = {"allowed": True, "reason": "this server does not authorise"}
        case ["selfsubjectrulesreviews"]:
            everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            status = {"resourceRules": [everything], "nonResourceRules": [], "incomplete": False}
        case ["selfsubjectreviews"]:
            status = {"userInfo": {"username": request.user, "groups": ["system:authenticated"]}}
        case _:
            raise failures.no_resource()
    return Answer(201, {**body, "metadata": body.get("metadata") or {}, "status": status})


@dataclasses.dataclass(frozen=True, slots=True)
class _Call:
    """One request on one resource."""

    server: MemoryServer
    request: Request
    resource: Resource
    namespace: str
    name: str
    subresource: str

    def on_collection(self) -> Answer | Streaming:
        match self.request.method:
            case "GET":
                return self._watch() if self.request.query.get("watch") in _YES else self._list()
            case "POST":
                body = self.request.json()
                stored = self.server.create(
                    self.resource, body, namespace=self.namespace, user=self.request.user, strict=self._strict
                )
                return Answer(201, self._show(stored))
            case "DELETE":
                return self._delete_all()
            case _:
                raise failures.method_not_allowed()

    def on_object(self) -> Answer:
        where = {"namespace": self.namespace}
        match self.request.method:
            case "GET":
                return Answer(200, self._show(self.server.get(self.resource, self.name, **where)))
            case "PUT":
                code = 200 if self.server.has(self.resource, self.name, **where) else 201
                stored = self.server.update(
                    self.resource,
                    self.name,
                    self.request.json(),
                    user=self.request.user,
                    strict=self._strict,
                    **where,
                )
                return Answer(code, self._show(stored))
            case "PATCH":
                return Answer(200, self._show(self._patch("")))
            case "DELETE":
                return self._delete()
            case _:
                raise failures.method_not_allowed()

    def on_subresource(self) -> Answer:
        method = self.request.method
        match self.subresource:
            case "status" | "scale":
                return self._on_status_or_scale(method)
            case "eviction" if self.resource.id == ("", "pods") and method == "POST":
                options = options_from(_object(self.request.whole().get("deleteOptions")))
                self.server.evict(self.name, namespace=self.namespace, options=options, user=self.request.user)
                return _created()
            case "binding" if self.resource.id == ("", "pods") and method == "POST":
                self.server.bind_as(self.name, self.request.whole(), self.namespace, self.request.user)
                return _created()
            case "finalize" if self.resource.id == ("", "namespaces") and method == "PUT":
                return Answer(200, self._show(self.server.get(self.resource, self.name)))
            case _:
                raise failures.no_resource()

    def _on_status_or_scale(self, method: str) -> Answer:
        self.server.check_subresource(self.resource, self.subresource)
        if method == "GET":
            stored = self.server.get(self.resource, self.name, namespace=self.namespace)
        elif method == "PUT":
            stored = self.server.update(
                self.resource,
                self.name,
                self.request.json(),
                namespace=self.namespace,
                subresource=self.subresource,
                user=self.request.user,
            )
        elif method == "PATCH":
            stored = self._patch(self.subresource)
        else:
            raise failures.method_not_allowed()
        if self.subresource == "scale":
            return Answer(200, self.server.scale_of(self.resource, stored))
        return Answer(200, self._show(stored))

    def _patch(self, subresource: str) -> Stored:
        kind = self.request.headers.get("content-type", "").partition(";")[0].strip()
        if kind == "application/apply-patch+yaml":
            body: Any = {}  # refused below, whatever it says
        else:
            body = self.request.json()
        return self.server.patch(
            self.resource,
            self.name,
            body,
            namespace=self.namespace,
            subresource=subresource,
            patch_type=kind,
            user=self.request.user,
            strict=self._strict,
        )

    def _options(self) -> DeleteOptions:
        body = self.request.whole() if self.request.body else {}
        query = self.request.query
        if "gracePeriodSeconds" in query:
            body.setdefault("gracePeriodSeconds", self.request.number("gracePeriodSeconds"))
        if "propagationPolicy" in query:
            body.setdefault("propagationPolicy", query["propagationPolicy"])
        return options_from(body)

    def _delete(self) -> Answer:
        stored, gone = self.server.delete(
            self.resource, self.name, namespace=self.namespace, options=self._options(), user=self.request.user
        )
        if not gone or not self.resource.strategy.finishes_at_once:
            return Answer(200, self._show(stored))
        details = {"name": self.name, "group": self.resource.group, "kind": self.resource.plural}
        details["uid"] = stored.object["metadata"]["uid"]
        shown = {key: value for key, value in details.items() if value}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": shown}
        return Answer(200, status)

    def _delete_all(self) -> Answer:
        if self.resource.namespaced and not self.namespace:
            raise failures.method_not_allowed()
        listing = self._page()
        options = self._options()
        for stored in listing.items:
            metadata = stored.object["metadata"]
            try:
                self.server.delete(
                    self.resource,
                    metadata["name"],
                    namespace=metadata.get("namespace", ""),
                    options=options,
                    user=self.request.user,
                )
            except NotFound:  # went with an earlier one
                continue
        return Answer(200, self._list_document(listing))

    @property
    def _strict(self) -> bool:
        return self.request.query.get("fieldValidation") == "Strict"

    def _page(self) -> Listing:
        query = self.request.query
        return self.server.list(
            self.resource,
            namespace=self.namespace,
            labels=query.get("labelSelector", ""),
            fields=query.get("fieldSelector", ""),
            limit=self.request.number("limit"),
            page=query.get("continue", ""),
            revision=query.get("resourceVersion", ""),
            exact=query.get("resourceVersionMatch") == "Exact",
        )

    def _list(self) -> Answer:
        return Answer(200, self._list_document(self._page()))

    def _list_document(self, listing: Listing) -> Json:
        metadata: Json = {"resourceVersion": str(listing.revision)}
        if listing.next:
            metadata["continue"] = listing.next
        if listing.remaining is not None:
            metadata["remainingItemCount"] = listing.remaining
        items = [self._whole(stored) for stored in listing.items]
        if self._as_table:
            now = self.server.clock.now()
            return tables.table(self.resource, items, metadata, now, include=self._include)
        if "as=PartialObjectMetadataList" in self.request.accept:
            return {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": [tables.partial(item) for item in items],
            }
        if not self.resource.custom:  # the list says once what its items are
            items = [{key: value for key, value in item.items() if key not in {"kind", "apiVersion"}} for item in items]
        return {
            "kind": f"{self.resource.kind}List",
            "apiVersion": self.resource.api_version,
            "metadata": metadata,
            "items": items,
        }

    @property
    def _as_table(self) -> bool:
        return "as=Table" in self.request.accept

    @property
    def _include(self) -> str:
        return self.request.query.get("includeObject") or "Metadata"

    def _whole(self, stored: Stored) -> Json:
        whole = stored.object
        if whole["apiVersion"] != self.resource.api_version:
            return {**whole, "apiVersion": self.resource.api_version}
        return whole

    def _show(self, stored: Stored) -> Json:
        whole = self._whole(stored)
        if self._as_table:
            metadata = {"resourceVersion": str(stored.revision)}
            return tables.table(self.resource, [whole], metadata, self.server.clock.now(), include=self._include)
        if "as=PartialObjectMetadata;" in f"{self.request.accept};":
            return tables.partial(whole)
        return whole

    def _watch(self) -> Streaming:
        query = self.request.query
        initial = query.get("sendInitialEvents") in _YES
        fields = query.get("fieldSelector", "")
        if self.name:
            fields = f"metadata.name={self.name}"
        watch = self.server.watch(
            self.resource,
            revision="" if initial else query.get("resourceVersion", ""),
            namespace=self.namespace,
            labels=query.get("labelSelector", ""),
            fields=fields,
        )
        if initial and query.get("allowWatchBookmarks") in _YES:
            watch.pending.append(("INITIAL", None))
        return Streaming(
            watch=watch,
            timeout_seconds=float(self.request.number("timeoutSeconds") or LONGEST_WATCH_SECONDS),
            bookmarks=query.get("allowWatchBookmarks") in _YES,
            line=_Lines(self).line,
            end=lambda: self.server.unwatch(self.resource, watch),
        )

    def event_object(self, stored: Stored, *, headed: bool) -> Json:
        whole = self._whole(stored)
        if self._as_table:
            metadata = {"resourceVersion": str(stored.revision)}
            now = self.server.clock.now()
            return tables.table(self.resource, [whole], metadata, now, include=self._include, headed=headed)
        if "as=PartialObjectMetadata" in self.request.accept:
            return tables.partial(whole)
        return whole

    def bookmark(self, *, initial: bool) -> Json:
        metadata: Json = {"resourceVersion": str(self.server.revision), "creationTimestamp": None}
        if initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        if self._as_table:
            return tables.table(self.resource, [], metadata, self.server.clock.now(), include="None", headed=False)
        return {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": metadata}


class _Lines:
    """The lines of one watch; only the first of a table's has its columns."""

    def __init__(self, call: _Call) -> None:
        self._call = call
        self._first = True

    def line(self, event: str, stored: Stored | None) -> bytes:
        if stored is None:
            whole = self._call.bookmark(initial=event == "INITIAL")
            event = "BOOKMARK"
        else:
            whole = self._call.event_object(stored, headed=self._first)
            self._first = False
        return msgspec.json.encode({"type": event, "object": whole}) + b"\n"


def _object(value: Any) -> Json:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest("an object is expected here")
    return value


def _created() -> Answer:
    return Answer(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
