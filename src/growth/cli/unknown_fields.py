"""Which fields a CustomResourceDefinition in a cluster has that ours lacks.

Applying ours over such a definition would make the API server drop those fields from every object of the kind, so
`growth crds` leaves the kind out.
"""

from collections.abc import Iterator
from typing import Any

_PRESERVE = "x-kubernetes-preserve-unknown-fields"


def unknown_fields(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Paths such as `spec.template.spec.taints[].value`, with the version in front where it is not the only one.

    A version that ours lacks is named as `version v1beta1`. A place where ours keeps whatever it is given lacks nothing;
    one where only theirs does is named with `.*`.
    """
    known = {version["name"]: version for version in ours["spec"]["versions"]}
    found: list[str] = []
    versions = theirs["spec"]["versions"]
    for version in versions:
        name = version["name"]
        if name not in known:
            found.append(f"version {name}")
            continue
        prefix = f"{name}: " if len(versions) > 1 else ""
        found += [prefix + path for path in _lacking(_schema(version), _schema(known[name]), "", root=True)]
    return found


def _schema(version: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema


def _lacking(theirs: dict[str, Any], ours: dict[str, Any], path: str, *, root: bool = False) -> Iterator[str]:
    if ours.get(_PRESERVE):
        return
    if theirs.get(_PRESERVE):
        yield f"{path}.*".lstrip(".")
        return
    properties = ours.get("properties") or {}
    additional = ours.get("additionalProperties")
    for name, inner in (theirs.get("properties") or {}).items():
        if root and name in {"apiVersion", "kind", "metadata"}:
            continue  # every object has them, whether the schema says so or not
        below = f"{path}.{name}".lstrip(".")
        if name in properties:
            yield from _lacking(inner, properties[name], below)
        elif isinstance(additional, dict):
            yield from _lacking(inner, additional, below)
        elif additional is not True:
            yield below
    values = theirs.get("additionalProperties")
    if values and not (additional or properties):
        yield f"{path}.*".lstrip(".")
    elif isinstance(values, dict) and isinstance(additional, dict):
        yield from _lacking(values, additional, f"{path}.*".lstrip("."))
    if isinstance(theirs.get("items"), dict):
        yield from _lacking(theirs["items"], ours.get("items") or {}, f"{path}[]")
