"""Rules of volumes: where they can be reached from, how many a node attaches, and who may use them at the same time."""

from collections.abc import Iterator

from growth.api.pods import Pod
from growth.api.volumes import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, StorageClass
from growth.sim.predicates.hosts import Host, Scene
from growth.sim.predicates.on_one_node import term_matches

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
ALONE = "ReadWriteOncePod"


def of_volumes(pod: Pod, host: Host, scene: Scene) -> Iterator[str]:
    """Every one of these rules that the pod breaks on the host."""
    for name, spec in used(pod, scene):
        if spec is None:
            yield f"volumes: claim {name} does not exist, is lost or is being deleted"
        else:
            made = (pod.metadata.namespace, name) in scene.claims
            yield from _reached(name, spec, host, scene, made=made)
    yield from _limits(pod, host, scene)
    yield from _alone(pod, scene)


def used(pod: Pod, scene: Scene) -> Iterator[tuple[str, PersistentVolumeClaimSpec | None]]:
    """The claims behind the pod's volumes. One of a pod's own is taken to be made from its template.

    None stands for a claim with which no pod can start.
    """
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
            claim = scene.claims.get((pod.metadata.namespace, name))
            yield name, claim.spec if claim is not None and _alive(claim) else None
        elif volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
            own = f"{pod.metadata.name}-{volume.name}"
            made = scene.claims.get((pod.metadata.namespace, own))
            yield own, made.spec if made is not None else volume.ephemeral.volume_claim_template.spec


def _alive(claim: PersistentVolumeClaim) -> bool:
    return claim.metadata.deletion_timestamp is None and claim.status.phase != "Lost"


def _class(spec: PersistentVolumeClaimSpec, scene: Scene) -> StorageClass | None:
    if spec.storage_class_name is not None:
        return scene.classes.get(spec.storage_class_name)
    defaults = [each for each in scene.classes.values() if each.metadata.annotations.get(DEFAULT_CLASS) == "true"]
    return min(defaults, key=lambda each: each.metadata.name, default=None)


def _reached(name: str, spec: PersistentVolumeClaimSpec, host: Host, scene: Scene, *, made: bool) -> Iterator[str]:
    if spec.volume_name:
        volume = scene.volumes.get(spec.volume_name)
        if volume is None:
            yield f"volumes: {spec.volume_name} of claim {name} does not exist"
        elif not reachable(volume, host):
            yield f"volumes: {spec.volume_name} cannot be reached from the node"
        return
    kind = _class(spec, scene)
    if kind is None:
        yield f"volumes: claim {name} has no class that could bind it"
    elif kind.volume_binding_mode != "WaitForFirstConsumer":
        if made:  # one that is still to be made is bound before the pod is looked at
            yield f"volumes: claim {name} is not bound, and its class binds at once"
    elif kind.provisioner == NO_PROVISIONER:
        yield f"volumes: claim {name} waits for a volume that somebody makes by hand"
    elif kind.allowed_topologies and not any(
        all(host.labels.get(each.key) in each.values for each in term.match_label_expressions)
        for term in kind.allowed_topologies
    ):
        yield f"volumes: class {kind.metadata.name} makes no volumes for this node"


def reachable(volume: PersistentVolume, host: Host) -> bool:
    """Whether the volume's node affinity and its labels of zone and region admit the node."""
    required = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    if required is not None and not any(term_matches(term, host) for term in required.node_selector_terms):
        return False
    if not any(key in host.labels for key in ZONES):
        return True
    return all(
        host.labels.get(key) in volume.metadata.labels[key].split("__")
        for key in ZONES
        if key in volume.metadata.labels
    )


def attachments(pod: Pod, scene: Scene) -> set[tuple[str, str]]:
    """(CSI driver, volume) of everything that must be attached for the pod."""
    found = set()
    for name, spec in used(pod, scene):
        if spec is None:
            continue
        if spec.volume_name:
            volume = scene.volumes.get(spec.volume_name)
            if volume is not None and volume.spec.csi is not None:
                found.add((volume.spec.csi.driver, volume.spec.csi.volume_handle or volume.metadata.name))
            continue
        kind = _class(spec, scene)
        if kind is not None:
            found.add((kind.provisioner, f"{pod.metadata.namespace}/{name}"))
    return found


def _limits(pod: Pod, host: Host, scene: Scene) -> Iterator[str]:
    new = attachments(pod, scene)
    if not new:
        return
    held = {(driver, handle) for driver, handles in host.attached.items() for handle in handles}
    for each in host.pods:
        held |= attachments(each, scene)
    for driver, limit in host.volume_limits.items():
        adds = any(one == driver for one, _ in new - held)
        count = sum(one == driver for one, _ in new | held)
        if adds and count > limit:
            yield f"volumes: {count} of {driver} would be attached, {limit} can be"


def _alone(pod: Pod, scene: Scene) -> Iterator[str]:
    """A ReadWriteOncePod claim is used by one pod at a time, wherever the other is."""
    for name, spec in used(pod, scene):
        if spec is None or ALONE not in spec.access_modes:
            continue
        for each in scene.hosts:
            for other in each.pods:
                same = other.metadata.namespace == pod.metadata.namespace
                if same and any(taken == name for taken, _ in used(other, scene)):
                    yield f"volumes: claim {name} is in use by {other.metadata.name} and admits one pod"
