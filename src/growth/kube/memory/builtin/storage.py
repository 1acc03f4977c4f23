"""Volumes, claims, storage classes, and which node has which driver."""

from collections.abc import Iterator
from typing import Final

from growth.api.kinds import Json
from growth.kube.memory.builtin import shapes
from growth.kube.memory.builtin.podspec import canonical
from growth.kube.memory.fields import FieldError, forbidden_value, invalid_value, not_supported, required
from growth.kube.memory.names import subdomain_faults
from growth.kube.memory.resources import Lookup, Resource, Strategy, unchanged

DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_NOT_SOURCES: Final = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


def _protect(new: Json, finalizer: str) -> None:
    metadata = new["metadata"]
    finalizers = metadata.get("finalizers") or []
    if finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]


class ClaimStrategy(Strategy):
    status = True
    finishes_at_once = False

    def prepare_create(self, new: Json) -> None:
        new["status"] = {"phase": "Pending"}
        _protect(new, "kubernetes.io/pvc-protection")

    def default(self, new: Json, old: Json | None) -> None:
        if not unchanged(new, old, "status"):
            canonical((new.get("status") or {}).get("capacity"))
        if unchanged(new, old, "spec"):
            return
        shapes.read(new, shapes.Claim, "PersistentVolumeClaim")
        spec = new["spec"] = dict(new.get("spec") or {})
        spec.setdefault("volumeMode", "Filesystem")
        canonical((spec.get("resources") or {}).get("requests"))

    def admit(self, new: Json, *, cluster: Lookup) -> None:
        """A claim without a class gets the default one, where there is one: the newest, then by name."""
        if new["spec"].get("storageClassName") is not None:
            return
        marked = [
            one["metadata"]
            for one in cluster.every("storage.k8s.io", "storageclasses")
            if (one["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
        ]
        if marked:
            newest = max(one["creationTimestamp"] for one in marked)
            new["spec"]["storageClassName"] = next(one["name"] for one in marked if one["creationTimestamp"] == newest)

    def validate(self, new: Json) -> Iterator[FieldError]:
        spec = new["spec"]
        if not spec.get("accessModes"):
            yield required("spec.accessModes", "at least 1 access mode is required")
        for mode in spec.get("accessModes") or ():
            if mode not in _MODES:
                yield not_supported("spec.accessModes", mode, _MODES)
        if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
            yield required("spec.resources[storage]")

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        if new["spec"] == old["spec"]:
            return
        yield from self.validate(new)
        free = (
            {"resources", "volumeName", "volumeAttributesClassName"}
            if not old["spec"].get("volumeName")
            else {
                "resources",
                "volumeAttributesClassName",
            }
        )
        if _without(new["spec"], free) != _without(old["spec"], free):
            text = (
                "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
                "claims"
            )
            yield forbidden_value("spec", text)


def _without(spec: Json, names: set[str]) -> Json:
    return {key: value for key, value in spec.items() if key not in names}


class VolumeStrategy(Strategy):
    status = True
    finishes_at_once = False

    def prepare_create(self, new: Json) -> None:
        new["status"] = {"phase": "Pending"}
        _protect(new, "kubernetes.io/pv-protection")

    def identify(self, new: Json) -> None:
        new["status"]["lastPhaseTransitionTime"] = new["metadata"]["creationTimestamp"]

    def default(self, new: Json, old: Json | None) -> None:
        if unchanged(new, old, "spec"):
            return
        shapes.read(new, shapes.Volume, "PersistentVolume")
        spec = new["spec"] = dict(new.get("spec") or {})
        spec.setdefault("volumeMode", "Filesystem")
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        canonical(spec.get("capacity"))
        if spec.get("hostPath") is not None:
            spec["hostPath"].setdefault("type", "")

    def validate(self, new: Json) -> Iterator[FieldError]:
        spec = new["spec"]
        if not spec.get("accessModes"):
            yield required("spec.accessModes")
        if not spec.get("capacity"):
            yield required("spec.capacity")
        sources = [name for name in spec if name not in _NOT_SOURCES]
        if not sources:
            yield required("spec", "must specify a volume type")
        for name in sources[1:]:
            yield forbidden_value(f"spec.{name}", "may not specify more than 1 volume type")


class StorageClassStrategy(Strategy):
    def default(self, new: Json, old: Json | None) -> None:
        shapes.read(new, shapes.StorageClass, "StorageClass")
        new.setdefault("reclaimPolicy", "Delete")
        new.setdefault("volumeBindingMode", "Immediate")

    def validate(self, new: Json) -> Iterator[FieldError]:
        if not new.get("provisioner"):
            yield required("provisioner")
        options = ("Immediate", "WaitForFirstConsumer")
        if new["volumeBindingMode"] not in options:
            yield not_supported("volumeBindingMode", new["volumeBindingMode"], options)
        policies = ("Delete", "Retain")
        if new["reclaimPolicy"] not in policies:
            yield not_supported("reclaimPolicy", new["reclaimPolicy"], policies)

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        yield from self.validate(new)
        for field in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
            if new.get(field) != old.get(field):
                yield invalid_value(field, new.get(field), "field is immutable")


class CsiNodeStrategy(Strategy):
    unconditional_update = False

    def default(self, new: Json, old: Json | None) -> None:
        if unchanged(new, old, "spec"):
            return
        shapes.read(new, shapes.CsiNode, "CSINode")
        spec = new["spec"] = dict(new.get("spec") or {})
        spec.setdefault("drivers", None)
        for driver in spec["drivers"] or ():
            driver.setdefault("topologyKeys", None)

    def validate(self, new: Json) -> Iterator[FieldError]:
        for index, driver in enumerate(new["spec"]["drivers"] or ()):
            for name in ("name", "nodeID"):
                if not driver.get(name):
                    yield required(f"spec.drivers[{index}].{name}")


class AttachmentStrategy(Strategy):
    status = True
    unconditional_update = False

    def prepare_create(self, new: Json) -> None:
        new["status"] = {"attached": False}

    def default(self, new: Json, old: Json | None) -> None:
        shapes.read(new, shapes.Attachment, "VolumeAttachment")

    def validate(self, new: Json) -> Iterator[FieldError]:
        spec = new.get("spec") or {}
        if not spec.get("attacher"):
            yield required("spec.attacher")
        source = spec.get("source") or {}
        if bool(source.get("persistentVolumeName")) == bool(source.get("inlineVolumeSpec")):
            text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
            yield required("spec.source", text)
        name = spec.get("nodeName", "")
        for fault in subdomain_faults(name):
            yield invalid_value("spec.nodeName", name, fault)

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        if new.get("spec") != old.get("spec"):
            yield invalid_value("spec", new.get("spec"), "field is immutable")


_GROUP: Final = "storage.k8s.io"

RESOURCES = (
    Resource(
        "",
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        True,
        ClaimStrategy(),
        "persistentvolumeclaim",
        ("pvc",),
    ),
    Resource("", "v1", "PersistentVolume", "persistentvolumes", False, VolumeStrategy(), "persistentvolume", ("pv",)),
    Resource(_GROUP, "v1", "StorageClass", "storageclasses", False, StorageClassStrategy(), "storageclass", ("sc",)),
    Resource(_GROUP, "v1", "CSINode", "csinodes", False, CsiNodeStrategy(), "csinode"),
    Resource(_GROUP, "v1", "VolumeAttachment", "volumeattachments", False, AttachmentStrategy(), "volumeattachment"),
)
