"""What the server does after a CRD was written: serves its kind, or ends it with all its objects."""

import msgspec

from growth.kube.memory import deletion
from growth.kube.memory.cluster import Cluster
from growth.kube.memory.custom import definitions
from growth.kube.memory.resources import Resource
from growth.kube.memory.store import Stored


def settle(cluster: Cluster, name: str) -> None:
    """Brings the catalogue into line with the definition of that name."""
    kind = cluster.catalogue.find(definitions.GROUP, "v1", "customresourcedefinitions")
    assert kind is not None
    stored = cluster.store.get(kind.id, ("", name))
    if stored is None:
        return
    if stored.object["metadata"].get("deletionTimestamp"):
        _end(cluster, kind, name)
        return
    spec = stored.object["spec"]
    conflict = definitions.conflict_of(stored.object, cluster.every(*kind.id))
    if conflict:
        status = definitions.rejected(stored.object, conflict, cluster.now())
        before = (stored.object.get("status") or {}).get("conditions") or ()
        if [one.get("message") for one in before] == [one["message"] for one in status["conditions"]]:
            return
    else:
        status = definitions.established(stored.object, cluster.now())
        cluster.catalogue.withdraw(spec["group"], spec["names"]["plural"])
        for resource in definitions.resources_of(stored.object):
            cluster.catalogue.serve(resource)
            if resource.version == resource.storage:
                _read_afresh(cluster, resource)
    if status != stored.object.get("status"):
        new = {**stored.object, "metadata": dict(stored.object["metadata"]), "status": status}
        cluster.put(kind, ("", name), new)


def _read_afresh(cluster: Cluster, resource: Resource) -> None:
    """Prunes and defaults what is stored by the newest schema, as the real server does whenever it reads an object.

    No revision is spent and no watch hears of it: nothing was written.
    """
    collection = cluster.store.collection(resource.id)
    for key, stored in collection.objects.items():
        new = msgspec.json.decode(msgspec.json.encode(stored.object))
        resource.strategy.prune(new, None, kind=resource.kind)
        resource.strategy.default(new, None)
        if new != stored.object:
            collection.objects[key] = Stored(new, stored.revision)


def _end(cluster: Cluster, kind: Resource, name: str) -> None:
    stored = cluster.store.get(kind.id, ("", name))
    assert stored is not None
    spec = stored.object["spec"]
    group, plural = spec["group"], spec["names"]["plural"]
    resource = cluster.catalogue.any_version(group, plural)
    collection = cluster.store.collection((group, plural))
    if resource is not None:
        for key in list(collection.keys()):
            found = collection.objects.get(key)
            if found is not None and not found.object["metadata"].get("deletionTimestamp"):
                deletion.delete(cluster, resource, key, deletion.DeleteOptions())
    if collection.objects:
        return  # finalizers keep some; the last one to go asks again
    cluster.catalogue.withdraw(group, plural)
    for watch in tuple(collection.watches):
        watch.close()
    if not stored.object["metadata"].get("finalizers"):
        cluster.remove(kind, ("", name))
