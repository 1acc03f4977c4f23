"""What a pod's volumes ask of a node: a place they can be reached from, and room for their attachments."""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping

from growth.api import names
from growth.api.pods import Volume
from growth.api.volumes import PersistentVolume, PersistentVolumeClaimSpec, StorageClass
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import VolumesView
from growth.planning.requirements import Requirement, from_expressions, gather, key_of, one_of

# A pod with many volumes of many alternatives multiplies out; real ones have one or two.
MAX_ALTERNATIVES = 64
IMMEDIATE = "Immediate"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
# Labels of a volume that say where it can be reached from, several values joined by two underscores.
PLACE_LABELS = (names.ZONE_LABEL, names.REGION_LABEL)


class VolumeError(ValueError):
    """The pod's volumes keep it from running anywhere; the message says which and why."""


@dataclasses.dataclass(frozen=True, slots=True)
class VolumeNeeds:
    """`places`: one of these must hold (empty: anywhere). `attach`: CSI driver → volumes known by name.

    `fresh`: CSI driver → how many volumes each pod brings that are its own (generic ephemeral ones).
    """

    places: tuple[Mapping[str, Requirement], ...] = ()
    attach: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    fresh: Mapping[str, int] = dataclasses.field(default_factory=dict)
    alone: frozenset[tuple[str, str]] = frozenset()  # ReadWriteOncePod claims


NO_VOLUMES = VolumeNeeds()


def needs_of(shape: PodShape, view: VolumesView) -> VolumeNeeds:
    """The needs of every pod of the shape; `VolumeError` where a claim is missing, lost or cannot be bound."""
    places: list[tuple[Mapping[str, Requirement], ...]] = []
    attach: dict[str, set[str]] = {}
    fresh: dict[str, int] = {}
    alone: set[tuple[str, str]] = set()
    for volume in shape.spec.volumes:
        found = _claim(shape.namespace, volume, view)
        if found is None:
            continue
        name, spec = found
        if "ReadWriteOncePod" in spec.access_modes and name:
            alone.add((shape.namespace, name))
        driver, handle, terms = _placed(shape.namespace, name, spec, view)
        if terms:
            places.append(terms)
        if driver and name:
            attach.setdefault(driver, set()).add(handle)
        elif driver:
            fresh[driver] = fresh.get(driver, 0) + 1
    if not places and not attach and not fresh and not alone:
        return NO_VOLUMES
    return VolumeNeeds(
        places=_alternatives(places),
        attach={driver: frozenset(handles) for driver, handles in attach.items()},
        fresh=fresh,
        alone=frozenset(alone),
    )


def _claim(namespace: str, volume: Volume, view: VolumesView) -> tuple[str, PersistentVolumeClaimSpec] | None:
    """The claim behind a volume; one of a pod's own that is not made yet has no name."""
    if volume.persistent_volume_claim is not None:
        name = volume.persistent_volume_claim.claim_name
        claim = view.claims.get((namespace, name))
        if claim is None:
            raise VolumeError(f"persistent volume claim {namespace}/{name} does not exist")
        if claim.metadata.deletion_timestamp is not None:
            raise VolumeError(f"persistent volume claim {namespace}/{name} is being deleted")
        if claim.status.phase == "Lost":
            raise VolumeError(f"persistent volume claim {namespace}/{name} has lost its volume")
        return name, claim.spec
    if volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
        return "", volume.ephemeral.volume_claim_template.spec
    return None


def _placed(
    namespace: str, name: str, spec: PersistentVolumeClaimSpec, view: VolumesView
) -> tuple[str, str, tuple[Mapping[str, Requirement], ...]]:
    """(CSI driver, what is attached, alternatives of where)."""
    if spec.volume_name:
        volume = view.volumes.get(spec.volume_name)
        if volume is None:
            raise VolumeError(f"persistent volume {spec.volume_name} of claim {namespace}/{name} does not exist")
        return *_attached(volume), _reachable(volume)
    storage = _class(spec, view)
    if storage is None:
        if spec.storage_class_name:
            raise VolumeError(f"storage class {spec.storage_class_name} of claim {namespace}/{name} does not exist")
        if name:
            raise VolumeError(f"persistent volume claim {namespace}/{name} is unbound and no storage class can bind it")
        return "", "", ()
    if storage.provisioner == NO_PROVISIONER:
        raise VolumeError(
            f"persistent volume claim {namespace}/{name} waits for a volume made by hand: its storage class"
            f" {storage.metadata.name} has no provisioner"
        )
    if name and storage.volume_binding_mode == IMMEDIATE:
        raise VolumeError(
            f"persistent volume claim {namespace}/{name} is not bound yet, and its class binds before pods are placed"
        )
    terms = tuple(
        gather((each.key, one_of(*each.values)) for each in term.match_label_expressions)
        for term in storage.allowed_topologies
    )
    return storage.provisioner, f"{namespace}/{name}", terms


def _class(spec: PersistentVolumeClaimSpec, view: VolumesView) -> StorageClass | None:
    if spec.storage_class_name is not None:
        return view.classes.get(spec.storage_class_name)
    defaults = [
        each
        for each in view.classes.values()
        if each.metadata.annotations.get(names.DEFAULT_STORAGE_CLASS_ANNOTATION) == "true"
    ]
    return min(defaults, key=lambda each: each.metadata.name) if defaults else None


def _attached(volume: PersistentVolume) -> tuple[str, str]:
    if volume.spec.csi is None:
        return "", ""
    return volume.spec.csi.driver, volume.spec.csi.volume_handle or volume.metadata.name


def _reachable(volume: PersistentVolume) -> tuple[Mapping[str, Requirement], ...]:
    """The alternatives of the volume's node affinity, each with what its labels of zone and region say."""
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity else None
    terms = [from_expressions(term.match_expressions) for term in required.node_selector_terms] if required else []
    labelled = gather(
        (key, one_of(*value.split("__")))
        for key, value in volume.metadata.labels.items()
        if key_of(key) in PLACE_LABELS and value
    )
    if not labelled:
        return tuple(terms)
    return tuple(gather([*term.items(), *labelled.items()]) for term in terms or [{}])


def _alternatives(places: Iterable[tuple[Mapping[str, Requirement], ...]]) -> tuple[Mapping[str, Requirement], ...]:
    """One of each volume's terms at once, multiplied out."""
    many = [_joined(terms) for terms in places]
    if not many:
        return ()
    combined = [
        gather(pair for term in combination for pair in term.items())
        for combination in itertools.islice(itertools.product(*many), MAX_ALTERNATIVES)
    ]
    return tuple(_joined(combined))


def _joined(terms: Iterable[Mapping[str, Requirement]]) -> list[Mapping[str, Requirement]]:
    """The same places in fewer terms: «zone a, or zone b» is «zone a or b», which leaves the cloud the choice."""
    found: list[Mapping[str, Requirement]] = []
    for term in terms:
        wider, at = term, 0
        while at < len(found):
            both = _either(found[at], wider)
            if both is None:
                at += 1
            else:  # what it is now may be joined with those that were passed over
                del found[at]
                wider, at = both, 0
        found.append(wider)
    return found


def _either(one: Mapping[str, Requirement], other: Mapping[str, Requirement]) -> Mapping[str, Requirement] | None:
    """The term that says «one or the other»; None where no single term does: they must differ in one list of values."""
    if one.keys() != other.keys():
        return None
    apart = [key for key in one if one[key] != other[key]]
    if not apart:
        return one
    key = apart[0]
    if len(apart) > 1 or not (_plain(one[key]) and _plain(other[key])):
        return None
    return {**one, key: one_of(*one[key].values, *other[key].values)}


def _plain(requirement: Requirement) -> bool:
    return not requirement.complement and requirement.at_least is None and requirement.at_most is None
