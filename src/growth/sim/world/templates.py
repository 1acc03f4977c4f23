"""Pods from the templates of their owners."""

from typing import Any

from growth.api.kinds import Json, Kind


def owner_uids(item: Any) -> list[str]:
    """The uid of the object's controller, for an index."""
    return [owner.uid for owner in item.metadata.owner_references if owner.controller]


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
