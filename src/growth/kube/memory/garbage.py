"""What the controller-manager does of itself on a real cluster: it collects what lost its owners and empties
terminating namespaces.

Here it happens at the end of the request that caused it, in the order in which the causes arose: nothing is random and
nothing waits. Deletion is in the background (an owner goes first, its dependents follow).
"""

from growth.api.kinds import Json
from growth.kube.memory import deletion
from growth.kube.memory.cluster import Cluster, Place
from growth.kube.memory.resources import Resource


def settle(cluster: Cluster) -> None:
    """Looks at everything that was left to look at, until nothing is."""
    while cluster.orphans or cluster.emptying:
        while cluster.orphans:
            _collect(cluster, cluster.orphans.popleft())
        if cluster.emptying:
            namespace = next(iter(cluster.emptying))
            del cluster.emptying[namespace]
            empty(cluster, namespace)


def _collect(cluster: Cluster, place: Place) -> None:
    which, key = place
    stored = cluster.store.get(which, key)
    resource = cluster.catalogue.any_version(*which)
    if stored is None or resource is None:
        return
    metadata = stored.object["metadata"]
    if metadata.get("deletionTimestamp"):
        return
    owners = metadata.get("ownerReferences") or []
    there = [owner for owner in owners if _exists(cluster, resource, key[0], owner)]
    if len(there) == len(owners):
        return
    if there:
        changed = {**metadata, "ownerReferences": there}
        cluster.put(resource, key, {**stored.object, "metadata": changed})
        return
    deletion.delete(cluster, resource, key, deletion.DeleteOptions(uid=metadata["uid"]))


def _exists(cluster: Cluster, dependent: Resource, namespace: str, owner: Json) -> bool:
    """Whether the owner is there, or cannot be told to be absent."""
    group = owner["apiVersion"].rpartition("/")[0]
    kind = cluster.catalogue.of_kind(group, owner["kind"])
    if kind is None:
        return True  # a kind that the server does not know: never collected
    if kind.namespaced and not dependent.namespaced:
        return True  # a cluster-scoped object cannot have such an owner; it is left alone
    found = cluster.store.get(kind.id, (namespace if kind.namespaced else "", owner["name"]))
    return found is not None and found.object["metadata"]["uid"] == owner["uid"]


def empty(cluster: Cluster, namespace: str) -> None:
    """Deletes everything in a terminating namespace, and the namespace itself when nothing is left in it."""
    kind = cluster.catalogue.find("", "v1", "namespaces")
    assert kind is not None
    home = cluster.store.get(kind.id, ("", namespace))
    if home is None or not home.object["metadata"].get("deletionTimestamp"):
        return
    left = False
    seen: set[tuple[str, str]] = set()
    for resource in cluster.catalogue:
        if not resource.namespaced or resource.id in seen:
            continue
        seen.add(resource.id)
        collection = cluster.store.collection(resource.id)
        for key in list(collection.keys(namespace)):
            stored = collection.objects.get(key)
            if stored is not None and not stored.object["metadata"].get("deletionTimestamp"):
                deletion.delete(cluster, resource, key, deletion.DeleteOptions())
        left = left or bool(collection.keys(namespace))
    cluster.emptying.pop(namespace, None)
    if left:
        return
    new = {**home.object, "spec": {**home.object.get("spec", {})}}
    new["spec"].pop("finalizers", None)
    if new["metadata"].get("finalizers"):
        cluster.put(kind, ("", namespace), {**new, "metadata": dict(new["metadata"])})
    else:
        cluster.remove(kind, ("", namespace), new)
