"""Creation and change of objects: the rules that all kinds share.

Both end in `Cluster.put` (or in a removal, when the last finalizer of a deleted object went). A write that changes
nothing does not happen: no revision is spent and no watch hears of it.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.errors import BadRequest, ServerError
from growth.kube.memory import deletion, failures, names
from growth.kube.memory.cluster import Cluster, check_shape
from growth.kube.memory.fields import FieldError, Undecodable, invalid_value, quoted
from growth.kube.memory.resources import Generation, Resource
from growth.kube.memory.store import Key, Stored

GENERATE_ATTEMPTS: Final = 8  # as many as the real server makes before it gives up on generateName
_SYSTEM_METADATA: Final = ("selfLink", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds")


def check_type(body: Json, resource: Resource) -> None:
    """Fills in or checks apiVersion and kind."""
    if resource.custom and not body.get("kind"):
        raise BadRequest(f"Object 'Kind' is missing in {quoted(quoted(body))}")
    kind = body.get("kind") or resource.kind
    version = body.get("apiVersion") or resource.api_version
    if kind != resource.kind and resource.custom:
        named = dataclasses.replace(resource, kind=kind)
        name = (body.get("metadata") or {}).get("name", "")
        raise failures.invalid(named, name, [invalid_value("kind", kind, f"must be {resource.kind}")])
    if kind != resource.kind:
        raise Undecodable(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: the kind of the object and of the '
            "path differ"
        )
    if version != resource.api_version:
        text = (
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
        )
        raise BadRequest(text) if resource.custom else Undecodable(text)
    body["kind"] = kind
    body["apiVersion"] = resource.storage_api_version


def settle_namespace(metadata: Json, resource: Resource, namespace: str) -> None:
    """The namespace of the path counts; an object that names another one is refused."""
    given = metadata.get("namespace") or ""
    if not resource.namespaced:
        metadata.pop("namespace", None)
    elif given and given != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    else:
        metadata["namespace"] = namespace


def prune(resource: Resource, new: Json, old: Json | None, *, strict: bool) -> None:
    """Drops unknown fields, or refuses them where the caller is strict."""
    dropped = resource.strategy.prune(new, old, kind=resource.kind)
    if dropped and strict:
        listed = ", ".join(f'unknown field "{path}"' for path in dropped)
        raise BadRequest(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
            f"strict decoding error: {listed}"
        )


def create(cluster: Cluster, resource: Resource, body: Json, *, namespace: str, strict: bool = False) -> Stored:
    """Stores a new object. `body` is the caller's own copy and becomes the stored object."""
    check_shape(body, resource)
    check_type(body, resource)
    prune(resource, body, None, strict=strict)
    strategy = resource.strategy
    metadata = body["metadata"]
    settle_namespace(metadata, resource, namespace)
    for field in _SYSTEM_METADATA:
        metadata.pop(field, None)
    if metadata.get("resourceVersion"):
        raise ServerError("resourceVersion should not be set on objects to be created", reason="InternalError")
    generated = not metadata.get("name") and bool(metadata.get("generateName"))
    if generated:
        metadata["name"] = _free_name(cluster, resource, metadata["generateName"], namespace)
    strategy.prepare_create(body)
    strategy.default(body, None)
    if resource.namespaced:
        _check_namespace(cluster, resource, metadata.get("name", ""), namespace)
    strategy.admit(body, cluster=cluster)
    wrong = [
        *names.name_errors(metadata, strategy.name_faults),
        *names.metadata_errors(metadata, None, custom=resource.custom),
    ]
    wrong += strategy.validate(body)
    if wrong:
        raise failures.invalid(resource, metadata.get("name", ""), wrong)
    key = (metadata.get("namespace", ""), metadata["name"])
    if cluster.store.get(resource.id, key) is not None:
        raise failures.already_exists(resource, key[1])
    metadata["uid"] = cluster.random.uuid()
    metadata["creationTimestamp"] = cluster.now()
    if strategy.generation is Generation.NONE:
        metadata.pop("generation", None)
    else:
        metadata["generation"] = 1
    strategy.identify(body)
    _drop_empty(metadata)
    return cluster.put(resource, key, body)


def _free_name(cluster: Cluster, resource: Resource, base: str, namespace: str) -> str:
    name = cluster.suffix(base)
    for _ in range(GENERATE_ATTEMPTS - 1):
        if cluster.store.get(resource.id, (namespace if resource.namespaced else "", name)) is None:
            break
        name = cluster.suffix(base)
    return name


def _check_namespace(cluster: Cluster, resource: Resource, name: str, namespace: str) -> None:
    home = cluster.find("", "namespaces", namespace)
    if home is None:
        found = cluster.catalogue.find("", "v1", "namespaces")
        assert found is not None
        raise failures.not_found(found, namespace)
    if home["metadata"].get("deletionTimestamp"):
        raise failures.forbidden(
            resource,
            name,
            f"unable to create new content in namespace {namespace} because it is being terminated",
            [
                {
                    "reason": "NamespaceTerminating",
                    "message": f"namespace {namespace} is being terminated",
                    "field": "metadata.namespace",
                }
            ],
        )


def _drop_empty(metadata: Json) -> None:
    """Empty maps and lists are not kept, as the server's own encoding leaves them out."""
    for field in ("labels", "annotations", "finalizers", "ownerReferences", "generateName", "namespace"):
        if field in metadata and not metadata[field]:
            del metadata[field]


def change(
    cluster: Cluster,
    resource: Resource,
    stored: Stored,
    new: Json,
    *,
    subresource: str = "",
    replaces: bool = False,
    strict: bool = False,
) -> Stored:
    """Stores the changed object. `new` and its metadata are the caller's own dicts; deeper parts may be shared.

    `replaces` is a PUT: a kind that does not allow it refuses one without resourceVersion, and a uid is a precondition.
    """
    old = stored.object
    strategy = resource.strategy
    check_shape(new, resource)
    check_type(new, resource)
    prune(resource, new, old, strict=strict)
    metadata, was = new["metadata"], old["metadata"]
    name = was["name"]
    if metadata.get("name") != name:
        raise BadRequest(
            f"the name of the object ({metadata.get('name', '')}) does not match the name on the URL ({name})"
        )
    settle_namespace(metadata, resource, was.get("namespace", ""))
    revision = metadata.get("resourceVersion")
    if replaces and metadata.get("uid") and metadata["uid"] != was["uid"]:
        raise failures.conflict(
            resource,
            name,
            f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {was['uid']}",
        )
    if revision and revision != was["resourceVersion"]:
        raise failures.modified(resource, name)
    if replaces and not revision and not strategy.unconditional_update:
        wrong = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        named = dataclasses.replace(resource, kind=resource.plural)  # the server's own slip
        raise failures.invalid(named, name, [wrong])
    _restore_metadata(metadata, was)
    if subresource == "status":
        strategy.prepare_status(new, old)
        metadata = new["metadata"]
    else:
        strategy.prepare_update(new, old)
    strategy.default(new, old)
    _drop_empty(metadata)
    metadata["resourceVersion"] = was["resourceVersion"]
    if new == old:
        return stored
    wrong_fields = list(_errors(resource, new, old, subresource))
    if wrong_fields:
        raise failures.invalid(resource, name, wrong_fields)
    if strategy.generation is not Generation.NONE and _content_changed(strategy.generation, new, old):
        metadata["generation"] = was.get("generation", 0) + 1
    key: Key = (was.get("namespace", ""), name)
    if deletion.is_finished(resource, new):
        # What was changed together with the last finalizer is answered but never stored: watches see the last state.
        return Stored(new, cluster.remove(resource, key).revision)
    return cluster.put(resource, key, new)


def _errors(resource: Resource, new: Json, old: Json, subresource: str) -> Iterator[FieldError]:
    yield from names.metadata_errors(new["metadata"], old["metadata"], custom=resource.custom)
    if subresource == "status":
        yield from resource.strategy.validate_status(new, old)
    else:
        yield from resource.strategy.validate_update(new, old)


def _restore_metadata(metadata: Json, was: Json) -> None:
    """Puts back what no update may change; a uid or deletionTimestamp that differs is refused later."""
    metadata.pop("managedFields", None)
    metadata.pop("selfLink", None)
    for field in ("creationTimestamp", "generation"):
        if field in was:
            metadata[field] = was[field]
        else:
            metadata.pop(field, None)
    if not metadata.get("uid"):
        metadata["uid"] = was["uid"]
    if "generateName" in was:
        metadata["generateName"] = was["generateName"]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if field in was:
            metadata[field] = was[field]
        elif metadata.get(field, 0) is None:
            del metadata[field]


def _content_changed(rule: Generation, new: Json, old: Json) -> bool:
    if rule in {Generation.SPEC, Generation.SPEC_OR_ANNOTATIONS}:
        noted = rule is Generation.SPEC_OR_ANNOTATIONS and (
            new["metadata"].get("annotations") != old["metadata"].get("annotations")
        )
        return noted or bool(new.get("spec") != old.get("spec"))
    left_out = {"metadata", "apiVersion", "kind"}
    if rule is Generation.CONTENT_BUT_STATUS:
        left_out.add("status")
    return _without(new, left_out) != _without(old, left_out)


def _without(whole: Json, fields: set[str]) -> dict[str, Any]:
    return {key: value for key, value in whole.items() if key not in fields}
