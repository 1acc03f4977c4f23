"""Volumes and claims in use outlive their deletion: their protecting finalizer goes when nobody uses them any more.

On a real cluster the controller-manager does it. A claim is in use while a pod that is not finished names it; a volume
while it is bound.
"""

from typing import Final

from growth.api.kinds import Json
from growth.kube.memory import writes
from growth.kube.memory.cluster import Cluster, Place

CLAIMS: Final = ("", "persistentvolumeclaims")
VOLUMES: Final = ("", "persistentvolumes")
FINALIZERS: Final = {CLAIMS: "kubernetes.io/pvc-protection", VOLUMES: "kubernetes.io/pv-protection"}


def settle(cluster: Cluster) -> None:
    """Lets go of everything that waits to be deleted and is not in use."""
    for place in list(cluster.guarded):
        which, key = place
        stored = cluster.store.get(which, key)
        if stored is None or FINALIZERS[which] not in (stored.object["metadata"].get("finalizers") or ()):
            del cluster.guarded[place]
        elif not _in_use(cluster, place, stored.object):
            del cluster.guarded[place]
            resource = cluster.catalogue.any_version(*which)
            assert resource is not None
            metadata = dict(stored.object["metadata"])
            metadata["finalizers"] = [one for one in metadata["finalizers"] if one != FINALIZERS[which]]
            writes.change(cluster, resource, stored, {**stored.object, "metadata": metadata})


def _in_use(cluster: Cluster, place: Place, stored: Json) -> bool:
    which, (namespace, name) = place
    if which == VOLUMES:
        return bool((stored.get("status") or {}).get("phase") == "Bound")
    for pod in cluster.every("", "pods", namespace=namespace):
        if (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
            continue
        for volume in pod["spec"].get("volumes") or ():
            if (volume.get("persistentVolumeClaim") or {}).get("claimName") == name:
                return True
    return False
