"""Edits of raw objects, for `growth.kube.changes`: each changes the draft that it is given and touches nothing else.

A raw object holds fields that our structs lack. An edit finds the entry that it means, changes the keys that it knows, and
leaves all other keys and entries as they were. Doing an edit twice is doing it once.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from growth.api.kinds import Json
from growth.units import print_time


def set_labels(draft: Json, labels: Mapping[str, str | None]) -> None:
    """Sets labels, and removes those whose value is None."""
    _set_texts(draft, "labels", labels)


def set_annotations(draft: Json, annotations: Mapping[str, str | None]) -> None:
    """Sets annotations, and removes those whose value is None."""
    _set_texts(draft, "annotations", annotations)


def add_finalizer(draft: Json, finalizer: str) -> None:
    finalizers = _metadata(draft).get("finalizers") or []
    if finalizer not in finalizers:
        _metadata(draft)["finalizers"] = [*finalizers, finalizer]


def remove_finalizer(draft: Json, finalizer: str) -> None:
    finalizers = _metadata(draft).get("finalizers") or []
    if finalizer in finalizers:
        _put_list(_metadata(draft), "finalizers", [each for each in finalizers if each != finalizer])


def add_owner(draft: Json, owner: Json) -> None:
    """Adds an owner reference, or changes the one with the same uid. Keys that `owner` lacks stay as they were."""
    owners = _metadata(draft).get("ownerReferences") or []
    _metadata(draft)["ownerReferences"] = _with_entry(owners, owner, keys=("uid",))


def remove_owner(draft: Json, uid: str) -> None:
    owners = _metadata(draft).get("ownerReferences") or []
    if any(owner.get("uid") == uid for owner in owners):
        _put_list(_metadata(draft), "ownerReferences", [owner for owner in owners if owner.get("uid") != uid])


def add_taint(draft: Json, *, key: str, effect: str, value: str = "") -> None:
    """Puts a taint on a Node, or gives the one of that key and effect this value. Its `timeAdded` stays."""
    spec = draft.setdefault("spec", {})
    taint: Json = {"key": key, "effect": effect}
    taints = spec.get("taints") or []
    if value:
        taint["value"] = value
    else:
        same = ({"key": each.get("key"), "effect": each.get("effect")} == taint for each in taints)
        taints = [
            {name: part for name, part in each.items() if name != "value"} if matches else each
            for each, matches in zip(taints, same, strict=True)
        ]
    spec["taints"] = _with_entry(taints, taint, keys=("key", "effect"))


def remove_taint(draft: Json, *, key: str, effect: str = "") -> None:
    """Takes a taint from a Node; without `effect`, whatever its effect."""
    spec = draft.get("spec") or {}
    taints = spec.get("taints") or []
    kept = [each for each in taints if each.get("key") != key or (effect and each.get("effect") != effect)]
    if len(kept) != len(taints):
        _put_list(spec, "taints", kept)


def set_condition(
    draft: Json,
    type_: str,
    *,
    status: str,
    now: dt.datetime,
    reason: str = "",
    message: str = "",
    observed: bool = True,
) -> None:
    """Sets one condition in `status`. `lastTransitionTime` moves only when `status` does. Without a reason, its type.

    With `observed` the condition says which generation of the object was looked at, as custom resources do; the
    conditions of Nodes have no such field.
    """
    conditions = draft.setdefault("status", {}).get("conditions") or []
    before: Json = next((each for each in conditions if each.get("type") == type_), {})
    condition: Json = {"type": type_, "status": status, "reason": reason or type_, "message": message}
    if before.get("status") != status or not before.get("lastTransitionTime"):
        condition["lastTransitionTime"] = print_time(now)
    if before and not message and "message" not in before:
        del condition["message"]  # servers of core kinds drop an empty one: writing it again would never end
    generation = _metadata(draft).get("generation")
    if observed and generation:
        condition["observedGeneration"] = generation
    draft["status"]["conditions"] = _with_entry(conditions, condition, keys=("type",))


def remove_condition(draft: Json, type_: str) -> None:
    status = draft.get("status") or {}
    conditions = status.get("conditions") or []
    if any(each.get("type") == type_ for each in conditions):
        _put_list(status, "conditions", [each for each in conditions if each.get("type") != type_])


def _metadata(draft: Json) -> Json:
    metadata: Json = draft.setdefault("metadata", {})
    return metadata


def _set_texts(draft: Json, field: str, wanted: Mapping[str, str | None]) -> None:
    before: Json = _metadata(draft).get(field) or {}
    texts = {key: text for key, text in {**before, **wanted}.items() if text is not None}
    if texts != before:
        _metadata(draft)[field] = texts


def _with_entry(entries: list[Json], entry: Json, *, keys: tuple[str, ...]) -> list[Json]:
    """The entries with `entry` laid over the one that has the same keys, or added at the end."""

    def identity(of: Json) -> tuple[Any, ...]:
        return tuple(of.get(key) for key in keys)

    if any(identity(each) == identity(entry) for each in entries):
        return [{**each, **entry} if identity(each) == identity(entry) else each for each in entries]
    return [*entries, entry]


def _put_list(parent: Json, field: str, entries: list[Any]) -> None:
    """An empty list and none are the same to servers; none leaves no trace in the object."""
    if entries:
        parent[field] = entries
    else:
        del parent[field]
