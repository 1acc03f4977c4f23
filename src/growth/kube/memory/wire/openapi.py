"""As much OpenAPI as kubectl needs: which kinds can be patched with field validation, and the schemas of custom kinds.

Built-in kinds are named without their fields, so `kubectl explain` knows the custom ones only; kubectl has the built-in
types compiled in for everything else.
"""

from typing import Any

from growth.api.kinds import Json
from growth.kube.memory.resources import Catalogue, Resource

_METADATA = {"type": "object", "description": "Standard object's metadata."}


def index(catalogue: Catalogue) -> Json:
    """Where the document of each group and version is."""
    paths: dict[str, Any] = {}
    for resource in catalogue:
        prefix = _prefix(resource)
        paths[prefix] = {"serverRelativeURL": f"/openapi/v3/{prefix}"}
    return {"paths": paths}


def _prefix(resource: Resource) -> str:
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def document(catalogue: Catalogue, prefix: str) -> Json | None:
    """The document of one group and version; None where there is none."""
    found = [resource for resource in catalogue if _prefix(resource) == prefix]
    if not found:
        return None
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for resource in found:
        gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        where = "namespaces/{namespace}/" if resource.namespaced else ""
        name = _schema_name(resource)
        paths[f"/{prefix}/{where}{resource.plural}/{{name}}"] = {
            "get": {
                "responses": {
                    "200": {
                        "description": "OK",
                        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}},
                    }
                },
                "x-kubernetes-action": "get",
                "x-kubernetes-group-version-kind": gvk,
            },
            "patch": {
                "parameters": [
                    {"name": query, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
                    for query in ("fieldManager", "fieldValidation")
                ],
                "responses": {"200": {"description": "OK"}},
                "x-kubernetes-action": "patch",
                "x-kubernetes-group-version-kind": gvk,
            },
        }
        schemas[name] = _schema(resource, gvk)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _schema_name(resource: Resource) -> str:
    reversed_group = ".".join(reversed(resource.group.split("."))) if resource.group else "io.k8s.api.core"
    return f"{reversed_group}.{resource.version}.{resource.kind}"


def _schema(resource: Resource, gvk: Json) -> Json:
    written = dict(resource.schema or {"type": "object"})
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        **(written.get("properties") or {}),
        "metadata": _METADATA,
    }
    return {**written, "properties": properties, "x-kubernetes-group-version-kind": [gvk]}
