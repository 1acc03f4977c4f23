"""Core."""

from growth.api.kinds import Json
from growth.kube.memory.names import label_faults
from growth.kube.memory.resources import Generation, Resource, Strategy


class NamespaceStrategy(Strategy):
    status = True

    def prepare_create(self, new: Json) -> None:
        new["status"] = {"phase": "Active"}
        spec = new["spec"] = dict(new.get("spec") or {})
        spec["finalizers"] = ["kubernetes"]
        metadata = new["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata.get("name", "")}

    def name_faults(self, name: str) -> list[str]:
        return label_faults(name)

    def keeps_deleted(self, stored: Json) -> bool:
        return bool((stored.get("spec") or {}).get("finalizers"))

    def mark_deleted(self, new: Json) -> None:
        new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}


class StatusStrategy(Strategy):
    status = True


class CarefulStrategy(Strategy):
    unconditional_update = False


class BudgetStrategy(Strategy):
    status = True
    generation = Generation.SPEC
    unconditional_update = False


PLAIN = Strategy()

RESOURCES = (
    Resource("", "v1", "Namespace", "namespaces", False, NamespaceStrategy(), "namespace", ("ns",)),
    Resource("", "v1", "ConfigMap", "configmaps", True, PLAIN, "configmap", ("cm",)),
    Resource("", "v1", "Secret", "secrets", True, PLAIN, "secret"),
    Resource("", "v1", "Service", "services", True, StatusStrategy(), "service", ("svc",), ("all",)),
    Resource("", "v1", "ServiceAccount", "serviceaccounts", True, PLAIN, "serviceaccount", ("sa",)),
    Resource("", "v1", "Event", "events", True, PLAIN, "event", ("ev",)),
    Resource(
        "",
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        True,
        StatusStrategy(),
        "persistentvolumeclaim",
        ("pvc",),
    ),
    Resource("", "v1", "PersistentVolume", "persistentvolumes", False, StatusStrategy(), "persistentvolume", ("pv",)),
    Resource("coordination.k8s.io", "v1", "Lease", "leases", True, CarefulStrategy(), "lease"),
    Resource(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        True,
        BudgetStrategy(),
        "poddisruptionbudget",
        ("pdb",),
    ),
    Resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", False, PLAIN, "storageclass", ("sc",)),
    Resource("storage.k8s.io", "v1", "CSINode", "csinodes", False, CarefulStrategy(), "csinode"),
    Resource(
        "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", False, CarefulStrategy(), "volumeattachment"
    ),
    Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False, PLAIN, "priorityclass", ("pc",)),
    Resource(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        False,
        CarefulStrategy(),
        "customresourcedefinition",
        ("crd", "crds"),
    ),
)
