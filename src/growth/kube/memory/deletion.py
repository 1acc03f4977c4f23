"""Deletion: preconditions, finalizers, and the grace of pods.

An object with finalizers, or a pod with grace left, stays with a deletionTimestamp. It goes when its last finalizer is
removed and its grace is 0. Nothing here waits: a pod's kubelet ends its grace by deleting it with grace 0.
"""

import dataclasses
import datetime as dt

from growth.api.kinds import Json
from growth.kube.errors import BadRequest, Conflict
from growth.kube.memory import failures
from growth.kube.memory.cluster import Cluster, timestamp
from growth.kube.memory.fields import not_supported
from growth.kube.memory.resources import Resource
from growth.kube.memory.store import Key, Stored


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteOptions:
    """What a deletion may ask for; `propagation` is empty, Background or Orphan."""

    uid: str = ""
    revision: str = ""
    grace_seconds: int | None = None
    propagation: str = ""


def options_from(body: Json) -> DeleteOptions:
    """The options of a DeleteOptions object; what this server cannot do is refused."""
    if body.get("dryRun"):
        raise BadRequest("dry-run is not supported by this server: leave dryRun out")
    propagation = body.get("propagationPolicy") or ""
    if body.get("orphanDependents"):
        propagation = "Orphan"
    preconditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds")
    if not isinstance(preconditions, dict) or not isinstance(grace, int | None):
        raise BadRequest("DeleteOptions: preconditions are an object and gracePeriodSeconds is a whole number")
    return DeleteOptions(
        uid=preconditions.get("uid") or "",
        revision=preconditions.get("resourceVersion") or "",
        grace_seconds=grace,
        propagation=propagation,
    )


def check_options(resource: Resource, options: DeleteOptions) -> None:
    """Refuses options that are wrong or that this server cannot do."""
    if options.propagation == "Foreground":
        raise BadRequest("foreground deletion is not supported by this server: use Background or Orphan")
    if options.propagation not in {"", "Background", "Orphan"}:
        wrong = not_supported("propagationPolicy", options.propagation, ("Foreground", "Background", "Orphan", "nil"))
        raise failures.invalid(dataclasses.replace(resource, kind="DeleteOptions", group="meta.k8s.io"), "", [wrong])


def check_preconditions(resource: Resource, stored: Json, options: DeleteOptions) -> None:
    """Refuses when the object is not the one, or not in the state, that was meant."""
    metadata = stored["metadata"]
    name = metadata["name"]
    if options.uid and options.uid != metadata["uid"]:
        text = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
    elif options.revision and options.revision != metadata["resourceVersion"]:
        text = (
            f"the ResourceVersion in the precondition ({options.revision}) does not match the ResourceVersion in "
            f"record ({metadata['resourceVersion']}). The object might have been modified"
        )
    else:
        return
    details = {"name": name, "kind": resource.kind}
    if resource.group:
        details["group"] = resource.group
    shown = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    raise Conflict(f'Operation cannot be fulfilled on {shown} "{name}": {text}', details=details)


def is_finished(resource: Resource, new: Json) -> bool:
    """Whether nothing keeps a deleted object any more."""
    metadata = new["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if resource.id == ("", "namespaces"):
        return not (new.get("spec") or {}).get("finalizers")
    return not metadata.get("deletionGracePeriodSeconds")


def delete(cluster: Cluster, resource: Resource, key: Key, options: DeleteOptions) -> tuple[Stored, bool]:
    """The object's last state and whether it is gone."""
    stored = cluster.store.get(resource.id, key)
    if stored is None:
        raise failures.not_found(resource, key[1])
    check_options(resource, options)
    check_preconditions(resource, stored.object, options)
    if options.propagation == "Orphan":
        _let_go(cluster, stored.object["metadata"]["uid"])
    old = stored.object
    metadata = old["metadata"]
    deleting = metadata.get("deletionTimestamp")
    left = metadata.get("deletionGracePeriodSeconds", 0)
    keeps = bool(metadata.get("finalizers")) or bool(resource.strategy.keeps_deleted(old))
    if deleting:  # it may only be hurried
        grace = options.grace_seconds
        if grace is None or grace >= left:
            return (stored, False) if keeps or left else (cluster.remove(resource, key), True)
    else:
        grace = resource.strategy.grace_seconds(old, options.grace_seconds)
    seconds = grace or 0
    when = cluster.clock.now() + dt.timedelta(seconds=seconds)
    changed = {**metadata, "deletionTimestamp": timestamp(when), "deletionGracePeriodSeconds": seconds}
    if metadata.get("generation") and not deleting:
        changed["generation"] = metadata["generation"] + 1
    new = {**old, "metadata": changed}
    resource.strategy.mark_deleted(new)
    if grace is None and not keeps:
        return cluster.remove(resource, key), True
    stored = cluster.put(resource, key, new)  # a graceful kind is marked first even when its grace is 0
    if keeps or seconds:
        return stored, False
    return cluster.remove(resource, key), True


def _let_go(cluster: Cluster, uid: str) -> None:
    """Takes the owner out of its dependents, which then outlive it."""
    for which, key in list(cluster.dependents.get(uid, ())):
        dependent = cluster.store.get(which, key)
        resource = cluster.catalogue.any_version(*which)
        if dependent is None or resource is None:
            continue
        metadata = dict(dependent.object["metadata"])
        metadata["ownerReferences"] = [one for one in metadata["ownerReferences"] if one["uid"] != uid]
        if not metadata["ownerReferences"]:
            del metadata["ownerReferences"]
        cluster.put(resource, key, {**dependent.object, "metadata": metadata})
