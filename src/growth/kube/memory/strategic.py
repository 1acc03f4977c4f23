"""Strategic merge patch: lists that have a merge key are merged item by item, the rest as in a merge patch.

`MERGE_KEYS` says which lists of which kind merge, by which key; an empty key is a list of plain values. A list that is
not named is replaced whole, as the tolerations of a pod and the taints of a node are. Directives: `$patch: delete` and
`replace`, `$retainKeys`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`, as kubectl sends them.
"""

from collections.abc import Mapping
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.errors import BadRequest, ServerError

Path = tuple[str, ...]
MergeKeys = Mapping[Path, str]

_METADATA: Final[dict[Path, str]] = {("metadata", "ownerReferences"): "uid", ("metadata", "finalizers"): ""}
_CONTAINER: Final[dict[Path, str]] = {
    ("ports",): "containerPort",
    ("env",): "name",
    ("volumeMounts",): "mountPath",
    ("volumeDevices",): "devicePath",
}
_POD_SPEC: Final[dict[Path, str]] = {
    ("volumes",): "name",
    ("containers",): "name",
    ("initContainers",): "name",
    ("ephemeralContainers",): "name",
    ("imagePullSecrets",): "name",
    ("hostAliases",): "ip",
    ("topologySpreadConstraints",): "topologyKey",
    ("schedulingGates",): "name",
    ("resourceClaims",): "name",
}
for _part in ("containers", "initContainers", "ephemeralContainers"):
    _POD_SPEC.update({(_part, *path): key for path, key in _CONTAINER.items()})
_CONDITIONS: Final[dict[Path, str]] = {("status", "conditions"): "type"}


def _under(prefix: Path, keys: MergeKeys) -> dict[Path, str]:
    return {(*prefix, *path): key for path, key in keys.items()}


_TEMPLATE: Final = {**_under(("spec", "template"), _METADATA), **_under(("spec", "template", "spec"), _POD_SPEC)}

MERGE_KEYS: Final[Mapping[str, MergeKeys]] = {
    "Pod": {**_under(("spec",), _POD_SPEC), **_CONDITIONS, ("status", "podIPs"): "ip"},
    "Node": {**_CONDITIONS, ("status", "addresses"): "type", ("spec", "podCIDRs"): ""},
    "Namespace": _CONDITIONS,
    "PersistentVolumeClaim": _CONDITIONS,
    "PodDisruptionBudget": _CONDITIONS,
    "Service": {("spec", "ports"): "port", **_CONDITIONS},
    "ServiceAccount": {("secrets",): "name", ("imagePullSecrets",): "name"},
    "CSINode": {("spec", "drivers"): "name"},
    "Job": {**_TEMPLATE, **_CONDITIONS},
    "CronJob": _under(("spec", "jobTemplate"), _TEMPLATE),
    **{kind: {**_TEMPLATE, **_CONDITIONS} for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")},
}

_DELETE_PRIMITIVE: Final = "$deleteFromPrimitiveList/"
_SET_ORDER: Final = "$setElementOrder/"


def merge(kind: str, old: Json, patch: Json) -> Json:
    """The object with the patch applied; shares unchanged parts with the old one."""
    return _merge_map(old, patch, (), {**_METADATA, **MERGE_KEYS.get(kind, {})})


def _merge_map(old: Json, patch: Json, path: Path, keys: MergeKeys) -> Json:
    _check_directives(patch)
    directive = patch.get("$patch")
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    if directive == "delete":
        return {}
    result = dict(old)
    retained = patch.get("$retainKeys")
    if retained is not None:
        result = {name: value for name, value in result.items() if name in retained}
    orders = {name.removeprefix(_SET_ORDER): value for name, value in patch.items() if name.startswith(_SET_ORDER)}
    for name, value in patch.items():
        if name.startswith(_DELETE_PRIMITIVE):
            field = name.removeprefix(_DELETE_PRIMITIVE)
            result[field] = [one for one in result.get(field) or () if one not in value]
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        place = (*path, name)
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            there = result.get(name)
            if value.get("$patch") == "delete":
                result.pop(name, None)
            elif value.get("$patch") == "replace" and not isinstance(there, dict):
                continue  # servers replace only what is there
            else:
                result[name] = _merge_map(there if isinstance(there, dict) else {}, value, place, keys)
        elif isinstance(value, list) and place in keys:
            there = result.get(name)
            before = there if isinstance(there, list) else []
            result[name] = _merge_list(before, value, orders.get(name), place, keys)
        else:
            result[name] = value
    for name, order in orders.items():
        place = (*path, name)
        if name not in patch and place in keys and isinstance(result.get(name), list):
            result[name] = _merge_list(result[name], [], order, place, keys)
    return result


def _check_directives(patch: Json) -> None:
    """Refuses directives that are none, before anything is merged."""
    for name, value in patch.items():
        if name == "$patch" and value not in ("merge", "replace", "delete"):
            raise BadRequest(f"unknown $patch directive: {value!r}")
        lists = name == "$retainKeys" or name.startswith((_DELETE_PRIMITIVE, _SET_ORDER))
        if lists and not isinstance(value, list):
            raise BadRequest(f"the directive {name} needs a list")


def _identity(item: Any, key: str) -> Any:
    if not key:
        if isinstance(item, dict | list):
            raise BadRequest("a list of plain values is patched with plain values")
        return item
    if not isinstance(item, dict) or key not in item:
        shown = " ".join(f"{name}:{value}" for name, value in item.items()) if isinstance(item, dict) else item
        raise ServerError(f"map: map[{shown}] does not contain declared merge key: {key}", reason="InternalError")
    if isinstance(item[key], dict | list):
        raise BadRequest(f"the merge key {key} is a plain value")
    return item[key]


def _merge_list(old: list[Any], patch: list[Any], order: list[Any] | None, path: Path, keys: MergeKeys) -> list[Any]:
    key = keys[path]
    changes: list[Any] = []
    for item in patch:
        if isinstance(item, dict):
            _check_directives(item)
        if isinstance(item, dict) and item.get("$patch") == "replace":
            return [one for one in patch if not (isinstance(one, dict) and one.get("$patch") == "replace")]
        changes.append(item)
    before = [_identity(item, key) for item in old]
    merged: dict[Any, Any] = dict(zip(before, old, strict=True))
    wanted: list[Any] = [_identity(item, key) for item in order] if order is not None else []
    for item in changes:
        identity = _identity(item, key)
        if isinstance(item, dict):
            if item.get("$patch") == "delete":
                merged.pop(identity, None)
                continue
            there = merged.get(identity)
            merged[identity] = _merge_map(there if isinstance(there, dict) else {}, item, path, keys)
        else:
            merged[identity] = item
        if order is None:
            wanted.append(identity)
    ordered = _in_order(before, [identity for identity in wanted if identity in merged], merged)
    return [merged[identity] for identity in ordered]


def _in_order(before: list[Any], wanted: list[Any], merged: Mapping[Any, Any]) -> list[Any]:
    """The patch's order, with the server's other items where they stood; what the server did not know comes first."""
    others = [identity for identity in merged if identity not in wanted]
    places = {identity: index for index, identity in enumerate(before)}
    result: list[Any] = []
    left, right = list(dict.fromkeys(wanted)), others
    while left and right:
        if places.get(left[0], -1) < places.get(right[0], -1):
            result.append(left.pop(0))
        else:
            result.append(right.pop(0))
    return [*result, *left, *right]
