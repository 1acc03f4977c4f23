"""The scale subresource: a Scale object made of the workload's replicas, and written back to them."""

import dataclasses
from typing import Any

from growth.api.kinds import Json
from growth.kube.errors import BadRequest
from growth.kube.memory import failures
from growth.kube.memory.fields import invalid_value
from growth.kube.memory.resources import Resource, ScalePaths
from growth.kube.memory.selectors import selector_text


def _look(whole: Json, path: tuple[str, ...]) -> Any:
    value: Any = whole
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def paths(resource: Resource) -> ScalePaths:
    """Where the kind keeps its replicas; `NotFound` for a kind that does not scale."""
    if resource.scale is None:
        raise failures.no_resource()
    return resource.scale


def shown(scale: Json) -> Json:
    """A Scale as the server sends it: zero replicas are left out."""
    return scale if scale["spec"].get("replicas") else {**scale, "spec": {}}


def scale_of(resource: Resource, stored: Json) -> Json:
    """The Scale of a workload."""
    where = paths(resource)
    metadata = stored["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = _look(stored, where.spec)
    status: Json = {"replicas": _look(stored, where.status) or 0}
    if where.selector:
        selector = _look(stored, where.selector) or ""
    elif resource.custom:
        selector = ""
    else:
        selector = selector_text(_look(stored, ("spec", "selector")))
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: metadata[field] for field in kept if field in metadata},
        "spec": {} if resource.custom and replicas is None else {"replicas": replicas or 0},
        "status": status,
    }


def scaled(resource: Resource, stored: Json, scale: Json) -> Json:
    """The workload with the replicas of a Scale, whose resourceVersion and uid it also takes as preconditions."""
    where = paths(resource)
    metadata = scale.get("metadata") or {}
    name = stored["metadata"]["name"]
    if metadata.get("name") != name:
        raise BadRequest(
            f"the name of the object ({metadata.get('name', '')}) does not match the name on the URL ({name})"
        )
    replicas = (scale.get("spec") or {}).get("replicas")
    if replicas is None and resource.custom:
        raise BadRequest(f'the spec replicas field ".{".".join(where.spec)}" cannot be empty')
    replicas = replicas or 0
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise BadRequest('Scale in version "v1" cannot be handled as a Scale: spec.replicas is no whole number')
    if replicas < 0 and not resource.custom:  # a custom kind's own rules complain of it
        wrong = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise failures.invalid(dataclasses.replace(resource, kind="Scale", group="autoscaling"), name, [wrong])
    new = dict(stored)
    level = new
    for part in where.spec[:-1]:
        level[part] = dict(level.get(part) or {})
        level = level[part]
    level[where.spec[-1]] = replicas
    new["metadata"] = {**stored["metadata"]}
    for field in ("resourceVersion", "uid"):
        if metadata.get(field):
            new["metadata"][field] = metadata[field]
    return new
