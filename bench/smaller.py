"""Makes a scenario on which two planners differ as small as it still differs: objects go first, then single fields."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from growth.api.kinds import Json

Objects = tuple[Json, ...]
# Asked at once, because the peer has a start to pay; a smaller batch would also throw fewer answers away.
BATCH: Final = 60
# What is no part of the difference, but of a cluster that works: without it another difference would be found.
KEPT: Final = frozenset({"Namespace", "PersistentVolume", "PersistentVolumeClaim", "StorageClass"})
# What objects cannot be without, wherever it stands.
NEEDED: Final = frozenset({"apiVersion", "kind", "name", "namespace", "uid", "metadata", "status", "containers"})
NEEDED_IN_POOLS: Final = frozenset({"template", "nodeClassRef", "requirements", "spec"})
# Parts that make sense only whole.
WHOLE: Final = frozenset(
    {"key", "operator", "values", "effect", "topologyKey", "maxSkew", "whenUnsatisfiable", "labelSelector", "weight"}
    | {"podAffinityTerm", "preference", "hostPort", "containerPort", "claimName", "selector", "image"}
    | {"resources", "requests", "csi", "provisioner", "volumeBindingMode", "storageClassName"}
    | {"matchExpressions", "matchLabels", "nodeSelectorTerms", "nodeName", "volumeName", "accessModes"}
)
# Lists that mean something else, or nothing, when they are empty.
FILLED: Final = frozenset({"matchExpressions", "nodeSelectorTerms"})
CLOSED: Final = frozenset({"nodeClassRef", "resources", "status", "values", "csi", "accessModes", "matchLabels"})


def shrunk(objects: Objects, differs: Callable[[Sequence[Objects]], list[bool]], *, rounds: int = 200) -> Objects:
    """The smallest that was found within so many rounds for which `differs` (asked about many at once) stays true."""
    for _ in range(rounds):
        candidates = list(_smaller(objects))
        for at in range(0, len(candidates), BATCH):
            batch = candidates[at : at + BATCH]
            still = [each for each, yes in zip(batch, differs(batch), strict=True) if yes]
            if still:
                objects = min(still, key=_size)
                break
        else:
            break
    return objects


def _size(objects: Objects) -> int:
    return len(str(objects))


def _smaller(objects: Objects) -> Iterator[Objects]:
    for parts in (2, 4, 8):
        step = max(1, len(objects) // parts)
        if step > 1:
            for at in range(0, len(objects), step):
                gone = objects[at : at + step]
                yield objects[:at] + tuple(each for each in gone if each["kind"] in KEPT) + objects[at + step :]
    yield from (objects[:at] + objects[at + 1 :] for at in range(len(objects)) if objects[at]["kind"] not in KEPT)
    for kind in _kinds(objects):
        yield from _without_fields(objects, kind)


def _kinds(objects: Objects) -> list[list[int]]:
    """Indices of objects that are changed together: pods of one kind have one spec."""
    found: dict[str, list[int]] = {}
    for at, each in enumerate(objects):
        name = each["metadata"]["name"]
        title = name.rpartition("-")[0] if each["kind"] == "Pod" and name.startswith("kind-") else name
        found.setdefault(f"{each['kind']}/{title}", []).append(at)
    return list(found.values())


def _without_fields(objects: Objects, together: list[int]) -> Iterator[Objects]:
    first = objects[together[0]]
    if first["kind"] in KEPT:
        return
    needed = NEEDED | (NEEDED_IN_POOLS if first["kind"] == "NodePool" else frozenset({"spec"}))
    if first["kind"] == "Node":
        needed |= {"labels", *first["metadata"]["labels"]}
    for path in _paths(first, needed):
        changed = list(objects)
        for at in together:
            changed[at] = _without(objects[at], path)
        yield tuple(changed)


def _paths(value: Any, needed: frozenset[str], *, inside: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """What could be left out, the larger parts first."""
    parts = dict(enumerate(value)) if isinstance(value, list) else value if isinstance(value, dict) else {}
    last = inside[-1] if inside else ""
    if last != "containers" and (last not in FILLED or len(parts) > 1):
        yield from ((*inside, key) for key in parts if key not in needed | WHOLE | {"nodeClassRef"})
    for key, inner in parts.items():
        if key not in CLOSED:
            yield from _paths(inner, needed, inside=(*inside, key))


def _without(value: Any, path: tuple[Any, ...]) -> Any:
    key, *rest = path
    if not rest:
        if isinstance(value, list):
            return value[:key] + value[key + 1 :]
        return {name: inner for name, inner in value.items() if name != key}
    if isinstance(value, list):
        return [_without(inner, tuple(rest)) if at == key else inner for at, inner in enumerate(value)]
    return {name: _without(inner, tuple(rest)) if name == key else inner for name, inner in value.items()}
