"""Pods from the templates of their owners, and which pods these count as theirs."""

from typing import Any

from growth.api.kinds import Json, Kind
from growth.api.pods import Pod


def owner_uids(item: Any) -> list[str]:
    """The uid of the object's controller, for an index."""
    return [owner.uid for owner in item.metadata.owner_references if owner.controller]


def active_for(pod: Pod) -> list[str]:
    """The same of a pod that its controller counts: neither done nor on its way out."""
    counts = pod.status.phase not in {"Succeeded", "Failed"} and pod.metadata.deletion_timestamp is None
    return owner_uids(pod) if counts else []


def ready_for(pod: Pod) -> list[str]:
    """The same of a pod that is counted and is ready."""
    return active_for(pod) if is_ready(pod) else []


def is_ready(pod: Pod) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)


def pod_of(owner: Json, kind: Kind[Any]) -> Json:
    """A pod of the raw owner's template. Raw: what our structs do not read of a template belongs to its pods all the same."""
    meta, template = owner["metadata"], owner["spec"]["template"]
    reference = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {**(template.get("metadata") or {}), "generateName": f"{meta['name']}-", "ownerReferences": [reference]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
