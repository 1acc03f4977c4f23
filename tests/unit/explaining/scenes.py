"""Scenes from manifests, and remedies applied to the manifests: by rules of their own, so that nothing proves itself."""

import copy
import dataclasses
import datetime as dt
import json
from collections.abc import Callable, Iterable
from typing import Any

from growth.api.instance_types import Catalogue
from growth.api.kinds import Json
from growth.cli.manifests.collection import Collection
from growth.cli.manifests.documents import Document, Place
from growth.planning.explaining.scene import Scene
from growth.providers.catalogues import builtin
from tests.unit.planning.disrupting import NOW

Objects = list[Json]


def flat(*objects: Json | list[Json]) -> Objects:
    return [copy.deepcopy(each) for item in objects for each in (item if isinstance(item, list) else [item])]


def scene(
    objects: Iterable[Json], *, catalogue: Catalogue | None = None, cloud: str = "kwok", now: dt.datetime = NOW
) -> Scene:
    """As the command makes it from files."""
    collection = Collection()
    for number, each in enumerate(objects, start=1):
        collection.add(Document(Place("test.yaml", number), each["apiVersion"], each["kind"], copy.deepcopy(each)))
    collected = collection.finished()
    return Scene(
        objects=collected.objects,
        catalogue=catalogue or builtin(cloud),
        now=now,
        overlays=collected.overlays,
        disruption_budgets=collected.disruption_budgets,
        buffered=collected.buffered,
    )


def applied(objects: Objects, remedy: Json, *, now: dt.datetime = NOW) -> tuple[Objects, dt.datetime]:
    """The manifests after the changes of a remedy in JSON, and the time."""
    result = copy.deepcopy(objects)
    for change in json.loads(json.dumps(remedy))["changes"]:
        if change["verb"] == "wait":
            assert change["until"], "nobody knows when"
            now = max(now, dt.datetime.fromisoformat(change["until"]))
            continue
        if change["verb"] == "create":
            result.append(change["object"])
            # What a controller would write anew at once.
            for each in result:
                if "NodeClass" in change["kind"] and each["kind"] == "NodePool":
                    each.pop("status", None)
            continue
        at = next(at for at, each in enumerate(result) if _is(each, change))
        if change["verb"] == "delete":
            del result[at]
        elif change["type"] == "merge":
            result[at] = merged(result[at], change["patch"])
            if change["kind"] in {"NodePool", "PodDisruptionBudget"}:
                result[at].pop("status", None)
        else:
            for operation in change["patch"]:
                operate(result[at], operation)
    return result, now


def _is(item: Json, change: Json) -> bool:
    meta = item["metadata"]
    return (item["apiVersion"], item["kind"], meta["name"], meta.get("namespace", "")) == (
        change["apiVersion"],
        change["kind"],
        change["name"],
        change.get("namespace", ""),
    )


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def operate(target: Any, operation: Json) -> None:
    """RFC 6902, as far as remedies use it; a `replace` or `remove` of what is not there is an error."""
    *above, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    for part in above:
        target = target[int(part)] if isinstance(target, list) else target[part]
    at: Any = int(last) if isinstance(target, list) else last
    if operation["op"] == "remove":
        del target[at]
    elif operation["op"] == "add" and isinstance(target, list):
        target.insert(at, operation["value"])
    else:
        assert operation["op"] == "add" or at in target or isinstance(target, list)
        target[at] = operation["value"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A cluster with a known cause. `words` must all stand in the first sentence; `helps` in the best remedy."""

    title: str
    objects: Objects
    about: str
    cause: str
    words: tuple[str, ...]
    helps: tuple[str, ...] = ()
    catalogue: Callable[[], Catalogue] | None = None
    cloud: str = "kwok"

    def scene(self, objects: Objects | None = None, now: dt.datetime = NOW) -> Scene:
        made = self.catalogue() if self.catalogue is not None else None
        return scene(self.objects if objects is None else objects, catalogue=made, cloud=self.cloud, now=now)
