"""What the server does after a CRD was written: serves its kind, or ends it with all its objects."""

from growth.kube.memory import deletion
from growth.kube.memory.cluster import Cluster
from growth.kube.memory.custom import definitions
from growth.kube.memory.resources import Resource


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
    served = definitions.resources_of(stored.object)
    spec = stored.object["spec"]
    status = definitions.established(stored.object, cluster.now())
    cluster.catalogue.withdraw(spec["group"], spec["names"]["plural"])
    for resource in served:
        cluster.catalogue.serve(resource)
    if status != stored.object.get("status"):
        new = {**stored.object, "metadata": dict(stored.object["metadata"]), "status": status}
        cluster.put(kind, ("", name), new)


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
