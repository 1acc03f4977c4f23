"""CustomResourceDefinitions: what is checked of them, and the resources that they make.

Checked: names, group, scope, versions, and that each schema is structural (types given, rules that parse). Not checked:
the types inside rules, and their cost.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.memory.custom import outlines, validation
from growth.kube.memory.custom.rules import RuleError, compiled, unknown_field
from growth.kube.memory.custom.schema import Schema
from growth.kube.memory.custom.strategy import CustomStrategy
from growth.kube.memory.fields import FieldError, forbidden_value, invalid_value, not_supported, required
from growth.kube.memory.names import label_1035_faults, subdomain_faults
from growth.kube.memory.resources import Column, Generation, Resource, ScalePaths, Strategy

GROUP: Final = "apiextensions.k8s.io"
APPROVED: Final = "api-approved.kubernetes.io"

_AGE: Final = Column("Age", "date", ".metadata.creationTimestamp")
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_VERSION: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)


class DefinitionStrategy(Strategy):
    status = True
    generation = Generation.SPEC
    unconditional_update = False

    def prepare_create(self, new: Json) -> None:
        outlines.check(new)
        stored = [one["name"] for one in (new.get("spec") or {}).get("versions") or () if one.get("storage")]
        names = {"plural": "", "kind": ""}
        new["status"] = {"conditions": None, "acceptedNames": names, "storedVersions": stored}

    def default(self, new: Json, old: Json | None) -> None:
        outlines.check(new)
        spec = new.get("spec")
        if spec is None:
            return
        spec.setdefault("conversion", {"strategy": "None"})
        names = spec.get("names")
        if isinstance(names, dict) and names.get("kind"):
            names.setdefault("singular", str(names["kind"]).lower())
            names.setdefault("listKind", f"{names['kind']}List")
        for version in spec.get("versions") or ():
            columns = version.get("additionalPrinterColumns")
            if not columns:
                version.pop("additionalPrinterColumns", None)

    def validate(self, new: Json) -> Iterator[FieldError]:
        yield from _definition_errors(new)

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        if new["spec"] == old["spec"]:
            return
        yield from _definition_errors(new)
        for field in ("group", "scope"):
            if new["spec"].get(field) != old["spec"].get(field):
                yield invalid_value(f"spec.{field}", new["spec"].get(field), "field is immutable")
        for field in ("plural", "kind"):
            before, after = old["spec"]["names"].get(field), (new["spec"].get("names") or {}).get(field)
            if before != after:
                yield invalid_value(f"spec.names.{field}", after, "field is immutable")

    def keeps_deleted(self, stored: Json) -> bool:
        return True  # until its objects are gone


def _definition_errors(new: Json) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    names = spec.get("names") or {}
    group = spec.get("group") or ""
    wanted = f"{names.get('plural', '')}.{group}"
    if new["metadata"].get("name") != wanted:
        text = 'must be spec.names.plural+"."+spec.group'
        yield invalid_value("metadata.name", new["metadata"].get("name", ""), text)
    if not group:
        yield required("spec.group")
    elif subdomain_faults(group):
        yield from (invalid_value("spec.group", group, fault) for fault in subdomain_faults(group))
    elif "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")
    if group.endswith((".k8s.io", ".kubernetes.io")) and APPROVED not in (new["metadata"].get("annotations") or {}):
        text = (
            'protected groups must have approval annotation "api-approved.kubernetes.io", '
            "see https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield required(f"metadata.annotations[{APPROVED}]", text)
    if spec.get("scope") not in {"Cluster", "Namespaced"}:
        if not spec.get("scope"):
            yield required("spec.scope")
        yield not_supported("spec.scope", spec.get("scope") or "", ("Cluster", "Namespaced"))
    for field in ("plural", "singular", "kind", "listKind"):
        name = names.get(field) or ""
        if not name:
            yield required(f"spec.names.{field}")
        else:
            checked = name.lower() if field in {"kind", "listKind"} else name
            yield from (invalid_value(f"spec.names.{field}", name, fault) for fault in label_1035_faults(checked))
    yield from _version_errors(spec)


def _version_errors(spec: Json) -> Iterator[FieldError]:
    versions = spec.get("versions") or []
    if not versions:
        yield required("spec.versions", "must have at least one version")
    seen: list[str] = []
    for index, version in enumerate(versions):
        place = f"spec.versions[{index}]"
        name = version.get("name") or ""
        if not _VERSION.fullmatch(name):
            yield invalid_value(f"{place}.name", name, label_1035_faults(name)[0])
        if name in seen:
            yield invalid_value("spec.versions", name, "must contain unique version names")
        seen.append(name)
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        root = "spec.validation.openAPIV3Schema" if len(versions) == 1 else f"{place}.schema.openAPIV3Schema"
        if schema is None:
            yield required(f"{place}.schema.openAPIV3Schema", "schemas are required")
        else:
            wrong = list(schema_errors(schema, root, root=True))
            yield from wrong or default_errors(schema, root)
        for number, column in enumerate(version.get("additionalPrinterColumns") or ()):
            where = f"{place}.additionalPrinterColumns[{number}]"
            for field in ("name", "type", "jsonPath"):
                if not column.get(field):
                    yield required(f"{where}.{field}")
    if versions and sum(1 for version in versions if version.get("storage")) != 1:
        listed = [version.get("name") for version in versions if version.get("storage")]
        yield invalid_value("spec.versions", listed, "must have exactly one version marked as storage version")


def schema_errors(schema: Any, path: str, *, root: bool = False) -> Iterator[FieldError]:
    """What keeps a schema from being structural."""
    if not isinstance(schema, dict):
        yield invalid_value(path, schema, "must be an object")
        return
    kind = schema.get("type") or ""
    open_ended = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if root and kind != "object":
        yield (
            required(f"{path}.type", "must not be empty at the root")
            if not kind
            else invalid_value(f"{path}.type", kind, "must be object at the root")
        )
    elif not kind and not open_ended:
        yield required(f"{path}.type", "must not be empty for specified object fields")
    elif kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if schema.get("properties") and schema.get("additionalProperties"):
        yield forbidden_value(
            f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive"
        )
    if kind == "array" and "items" not in schema:
        yield required(f"{path}.items", "must be specified")
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get("x-kubernetes-list-map-keys"):
        yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_value(f"{path}.uniqueItems", text)
    if schema.get("pattern"):
        try:
            re.compile(schema["pattern"])
        except re.error as error:
            yield invalid_value(f"{path}.pattern", schema["pattern"], f"must be a valid regular expression: {error}")
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        place = f"{path}.x-kubernetes-validations[{index}].rule"
        if not str(rule.get("rule") or "").strip():
            yield required(place, "rule is not specified")
            continue
        try:
            compiled(rule)
        except RuleError as error:
            yield invalid_value(place, rule["rule"], f"compilation failed: {error}")
            continue
        unknown = unknown_field(rule["rule"], schema, root=root)
        if unknown:
            yield invalid_value(place, rule["rule"], f"compilation failed: undefined field '{unknown}'")
    for name, inner in (schema.get("properties") or {}).items():
        if not (root and name == "metadata"):
            yield from schema_errors(inner, f"{path}.properties[{name}]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from schema_errors(schema["additionalProperties"], f"{path}.additionalProperties")
    if isinstance(schema.get("items"), dict):
        yield from schema_errors(schema["items"], f"{path}.items")


def default_errors(schema: Json, path: str) -> Iterator[FieldError]:
    """Defaults that break the very schema that they stand in; the schema itself is sound."""
    if "default" in schema:
        for wrong in validation.errors(Schema(schema), schema["default"]):
            yield FieldError(f"{path}.default", wrong.reason, wrong.detail)
    for name, inner in (schema.get("properties") or {}).items():
        yield from default_errors(inner, f"{path}.properties[{name}]")
    for name in ("additionalProperties", "items"):
        if isinstance(schema.get(name), dict):
            yield from default_errors(schema[name], f"{path}.{name}")


def resources_of(definition: Json) -> list[Resource]:
    """The served versions of a custom kind."""
    spec = definition["spec"]
    names = spec["names"]
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    served: list[Resource] = []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        subresources = version.get("subresources") or {}
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        strategy = CustomStrategy(
            None if schema is None else Schema(schema, root=True),
            status="status" in subresources,
            definition=definition["metadata"]["name"],
            scale=_scale(subresources.get("scale")),
            selectable=[_path(one["jsonPath"]) for one in version.get("selectableFields") or ()],
        )
        served.append(
            Resource(
                spec["group"],
                version["name"],
                names["kind"],
                names["plural"],
                spec["scope"] == "Namespaced",
                strategy,
                names.get("singular", ""),
                tuple(names.get("shortNames") or ()),
                tuple(names.get("categories") or ()),
                scale=_scale(subresources.get("scale")),
                columns=_columns(version.get("additionalPrinterColumns")),
                storage=storage,
                custom=True,
                schema=schema,
            )
        )
    return served


def _path(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(".") if part)


def _scale(written: Json | None) -> ScalePaths | None:
    if written is None:
        return None
    return ScalePaths(
        spec=_path(written["specReplicasPath"]),
        status=_path(written["statusReplicasPath"]),
        selector=_path(written.get("labelSelectorPath") or ""),
    )


def _columns(written: list[Json] | None) -> tuple[Column, ...]:
    if not written:
        return (_AGE,)
    return tuple(
        Column(
            one["name"],
            one["type"],
            one["jsonPath"],
            one.get("format", ""),
            one.get("description", ""),
            one.get("priority", 0),
        )
        for one in written
    )


def conflict_of(definition: Json, others: Iterable[Json]) -> str:
    """What keeps a definition's names from being accepted: another one of its group that has them, or nothing."""
    spec = definition["spec"]
    mine = _names_of(spec["names"])
    for other in others:
        if other["metadata"]["name"] == definition["metadata"]["name"] or other["spec"]["group"] != spec["group"]:
            continue
        taken = _names_of((other.get("status") or {}).get("acceptedNames") or {})
        for name in mine:
            if name in taken:
                return f'"{name}" is already in use'
    return ""


def _names_of(names: Json) -> list[str]:
    single = [names.get(field) for field in ("plural", "singular", "kind", "listKind")]
    return [name for name in (*single, *(names.get("shortNames") or ())) if name]


def rejected(definition: Json, conflict: str, now: str) -> Json:
    """The status of a definition whose names another one has."""
    status = definition.get("status") or {}
    conditions = [
        ("NamesAccepted", "NameConflict", conflict),
        ("Established", "NotAccepted", "not all names are accepted"),
    ]
    return {
        **status,
        "conditions": [
            {"type": kind, "status": "False", "lastTransitionTime": now, "reason": reason, "message": message}
            for kind, reason, message in conditions
        ],
    }


def established(definition: Json, now: str) -> Json:
    """The status of a definition whose names were accepted."""
    spec, status = definition["spec"], definition.get("status") or {}
    stored: list[str] = list(status.get("storedVersions") or ())
    stored += [one["name"] for one in spec["versions"] if one.get("storage") and one["name"] not in stored]
    before = {one["type"]: one for one in status.get("conditions") or ()}
    conditions = [
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ]
    return {
        "conditions": [
            before.get(kind)
            or {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
            for kind, reason, message in conditions
        ],
        "acceptedNames": dict(spec["names"]),
        "storedVersions": stored,
    }


RESOURCES = (
    Resource(
        GROUP,
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        False,
        DefinitionStrategy(),
        "customresourcedefinition",
        ("crd", "crds"),
        ("api-extensions",),
    ),
)
