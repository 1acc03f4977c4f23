"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902): pure, sharing what did not change with the old object."""

import copy
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.errors import BadRequest, Invalid

_MISSING: Final = object()


def merge(old: Any, patch: Any) -> Any:
    """The object with the merge patch applied: null deletes, lists are replaced whole."""
    if not isinstance(patch, dict):
        return patch
    result: Json = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge(result.get(key), value)
        else:
            result[key] = value
    return result


def apply_operations(old: Json, operations: Any) -> Json:
    """The object with a JSON patch applied, all of it or (an error) none."""
    if not isinstance(operations, list):
        raise BadRequest("a JSON patch is a list of operations")
    document: Any = copy.deepcopy(old)
    for operation in operations:
        document = _apply(document, operation)
    if not isinstance(document, dict):
        raise _refused("the patched document is no object")
    return document


def _refused(why: str) -> Invalid:
    return Invalid(f"the server rejected our request due to an error in our request: {why}")


def _apply(document: Any, operation: Any) -> Any:
    if not isinstance(operation, dict) or "op" not in operation or "path" not in operation:
        raise BadRequest("an operation of a JSON patch needs op and path")
    if operation["op"] in ("move", "copy") and "from" not in operation:
        raise BadRequest(f"the operation {operation['op']} of a JSON patch needs from")
    name, path = operation["op"], _pointer(operation["path"])
    match name:
        case "add":
            return _add(document, path, operation.get("value"))
        case "remove":
            return _remove(document, path)[0]
        case "replace":
            if not path:
                return operation.get("value")
            parent = _look(document, path[:-1])
            if isinstance(parent, list):
                parent[_index(path[-1], len(parent) - 1)] = operation.get("value")
            elif isinstance(parent, dict):
                parent[path[-1]] = operation.get("value")  # a missing key is set: API servers are lenient here
            else:
                raise _refused(f"replace operation does not apply: doc is missing path: {operation['path']}")
            return document
        case "test":
            found = _look(document, path)
            wanted = operation.get("value")
            if found is _MISSING:
                found = None
            if found != wanted or isinstance(found, bool) != isinstance(wanted, bool):
                raise _refused(f"testing value {operation['path']} failed")
            return document
        case "move":
            document, value = _remove(document, _pointer(operation["from"]))
            return _add(document, path, value)
        case "copy":
            value = _look(document, _pointer(operation["from"]))
            if value is _MISSING:
                raise _refused(f"copy operation does not apply: doc is missing from path: {operation['from']}")
            return _add(document, path, copy.deepcopy(value))
        case _:
            raise BadRequest(f"unknown operation of a JSON patch: {name!r}")


def _pointer(text: Any) -> list[str]:
    if text == "":
        return []
    if not isinstance(text, str) or not text.startswith("/"):
        raise BadRequest(f"a path of a JSON patch starts with a slash: {text!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _index(part: str, last: int) -> int:
    try:
        index = int(part)
    except ValueError:
        raise _refused(f"{part!r} is no index of a list") from None
    if index < 0:
        index += last + 1
    if not 0 <= index <= last:
        raise _refused(f"index {part} is out of bounds")
    return index


def _look(document: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(document, dict):
            document = document.get(part, _MISSING)
        elif isinstance(document, list):
            document = document[_index(part, len(document) - 1)]
        else:
            return _MISSING
        if document is _MISSING:
            return _MISSING
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _look(document, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list):
        parent.insert(len(parent) if path[-1] == "-" else _index(path[-1], len(parent)), value)
    else:
        raise _refused(f"add operation does not apply: doc is missing path: /{'/'.join(path)}")
    return document


def _remove(document: Any, path: list[str]) -> tuple[Any, Any]:
    if not path:
        return None, document
    parent = _look(document, path[:-1])
    if isinstance(parent, dict) and path[-1] in parent:
        return document, parent.pop(path[-1])
    if isinstance(parent, list):
        return document, parent.pop(_index(path[-1], len(parent) - 1))
    raise _refused(f"remove operation does not apply: doc is missing path: /{'/'.join(path)}")
