"""What would give a pod a place: proposals are applied to the scene and planned with; only what helps is told.

A proposal that takes away one obstacle may meet the next: it is followed a few steps, in the same pool. Work is bounded by
the number of plans.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from growth.api import names
from growth.api.growthpools import UNMET, GrowthPool
from growth.api.kinds import Json
from growth.api.pools import PoolRef
from growth.api.requests import requests_of
from growth.api.volumes import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from growth.cluster.node_requests import server_type
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import PoolView
from growth.cluster.wanting import key_of
from growth.planning.explaining import loosening, widening
from growth.planning.explaining.applying import CannotApply, applied
from growth.planning.explaining.remedies import Change, Remedy, wait_until
from growth.planning.explaining.scene import Scene
from growth.planning.plan import Filter, Reason
from growth.planning.requirements import Requirement, Requirements, gather, parse
from growth.planning.taints import tolerates
from growth.planning.volumes import VolumeError, needs_of
from growth.units.errors import QuantityError
from growth.units.resources import add, amounts, subtract

# So many obstacles in a row are taken away for one remedy, so many remedies are told, and so many plans are made.
DEPTH: Final = 4
TOLD: Final = 3
PLANS: Final = 60
FEW_PLANS: Final = 10
MANY_PODS: Final = 3000  # above which a plan takes a second

_MIN_VALUES: Final = re.compile(r"minValues of (\S+): (\d+) left")
_MISSING_CLAIM: Final = re.compile(r"persistent volume claim (\S+)/(\S+) does not exist")
_MISSING_CLASS: Final = re.compile(r"storage class (\S+) of claim")
_UNBOUND: Final = re.compile(r"persistent volume claim (\S+)/(\S+) is unbound and no storage class")


class Mending:
    """Remedies for one pod, or for several that must all have a place."""

    def __init__(self, scene: Scene, pods: Sequence[CachedPod]) -> None:
        self._scene = scene
        self._keys = tuple(key_of(pod) for pod in pods)
        self._plans = PLANS if len(scene.demands) <= MANY_PODS else FEW_PLANS

    def remedies(self) -> tuple[Remedy, ...]:
        """Those that help, the least change first."""
        found: list[Remedy] = []
        first = self._next(self._scene)
        if first is None:
            return ()
        pod, reasons = first
        for reason in reasons:
            for proposal in proposals(self._scene, pod, reason):
                helps = self._followed(self._scene, proposal, reason, DEPTH)
                if helps is not None and all(helps.text != each.text for each in found):
                    found.append(helps)
            if len(found) >= TOLD:
                break
        return tuple(sorted(found, key=lambda each: len(each.changes))[:TOLD])

    def _next(self, scene: Scene) -> tuple[CachedPod, tuple[Reason, ...]] | None:
        """The first of the pods that has no place, and why."""
        for each in scene.plan.unplaced:
            if each.pod in self._keys:
                return scene.pods[each.pod], each.reasons
        return None

    def _followed(self, scene: Scene, proposal: Remedy, reason: Reason, depth: int) -> Remedy | None:
        if self._plans <= 0:
            return None
        try:
            after = applied(scene, proposal.changes)
        except (CannotApply, KeyError, IndexError, ValueError):
            return None
        self._plans -= 1
        unplaced = self._next(after)
        if unplaced is None:
            return proposal
        pod, reasons = unplaced
        same = next((each for each in reasons if each.pool in {reason.pool, None}), None)
        if same is None and reason.pool is None:
            same = next(iter(reasons), None)
        if depth <= 1 or same is None or same == reason:
            return None
        for further in proposals(after, pod, same):
            found = self._followed(after, further, same, depth - 1)
            if found is not None:
                return proposal.then(found)
        return None


def proposals(scene: Scene, pod: CachedPod, reason: Reason) -> Iterator[Remedy]:
    """What might take away the obstacle, what is nearest to it first."""
    ref, shape = reason.pool, pod.shape
    if ref is None:
        yield from _of_the_pod(scene, pod, reason)
        return
    view = scene.views[ref]
    match reason.filter:
        case Filter.POOL:
            yield from of_the_pool(scene, pod, ref)
        case Filter.TAINTS:
            yield from loosening.to_tolerate(pod, view.taints)
            yield from _untainted(ref, view, pod)
        case Filter.REQUIREMENTS:
            yield from _of_labels(scene, pod, ref)
        case Filter.VOLUMES:
            yield from _of_places(scene, pod, ref)
            yield from widening.to_allow_types(scene, ref, shape)
        case Filter.RESOURCES:
            yield from widening.to_allow_types(scene, ref, shape)
            yield from _smaller(scene, pod, ref)
        case Filter.PORTS:
            yield from loosening.to_free_ports(pod)
        case Filter.MIN_VALUES:
            yield from _lower_min_values(scene, ref, reason.message)
        case Filter.LIMITS:
            yield from widening.to_raise(scene, ref)
        case Filter.UNAVAILABLE:
            yield from _of_stock(scene, pod, ref)
        case Filter.IN_VAIN:
            yield widening.to_try_again(ref)
        case Filter.TOPOLOGY:
            yield from _more_zones(scene, ref)
            yield from loosening.to_loosen_rules(pod)
            yield from _others_rules(scene, pod)
        case _:
            return


# -- where the pod itself is the reason ---------------------------------------------------------------------------


def _of_the_pod(scene: Scene, pod: CachedPod, reason: Reason) -> Iterator[Remedy]:
    if reason.filter is Filter.POOL:
        yield from widening.to_create_pool(scene, pod.shape)
    elif reason.filter is Filter.UNSUPPORTED:
        yield from loosening.to_simplify(pod)
    elif reason.filter is Filter.VOLUMES:
        yield from _of_claims(scene, pod, reason.message)


def _of_claims(scene: Scene, pod: CachedPod, message: str) -> Iterator[Remedy]:
    missing = _MISSING_CLAIM.search(message)
    if missing is not None:
        yield _new_claim(scene, missing[1], missing[2])
    nameless = _MISSING_CLASS.search(message) or _UNBOUND.search(message)
    if nameless is not None:
        name = nameless[1] if nameless.re is _MISSING_CLASS else "standard"
        yield _new_class(scene, name, default=nameless.re is _UNBOUND)
    if "ReadWriteOncePod" in message:
        yield from _free_claim(scene, pod)


def _new_claim(scene: Scene, namespace: str, name: str) -> Remedy:
    classes = scene.objects.storage_classes
    default = [
        each for each in classes if each.metadata.annotations.get(names.DEFAULT_STORAGE_CLASS_ANNOTATION) == "true"
    ]
    chosen = (default or list(classes))[:1]
    spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if chosen:
        spec["storageClassName"] = chosen[0].metadata.name
    kind = PERSISTENT_VOLUME_CLAIM
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    change = Change(
        verb="create", api_version=kind.api_version, kind=kind.kind, name=name, namespace=namespace, body=body
    )
    return Remedy(text=f"create the persistent volume claim {namespace}/{name}", changes=(change,))


def _new_class(scene: Scene, name: str, *, default: bool) -> Remedy:
    kind = STORAGE_CLASS
    provisioner = next((each.provisioner for each in scene.objects.storage_classes), "") or _DRIVERS.get(
        scene.catalogue.cloud, "example.com/csi"
    )
    meta: Json = {"name": name}
    if default:
        meta["annotations"] = {names.DEFAULT_STORAGE_CLASS_ANNOTATION: "true"}
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": meta,
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    change = Change(verb="create", api_version=kind.api_version, kind=kind.kind, name=name, body=body)
    return Remedy(text=f"create the storage class {name}, bound when its first pod is placed", changes=(change,))


_DRIVERS: Final = {"hetzner": "csi.hetzner.cloud", "linode": "linodebs.csi.linode.com"}


def _free_claim(scene: Scene, pod: CachedPod) -> Iterator[Remedy]:
    """To end who holds a claim that is for a single pod."""
    own = {each.persistent_volume_claim.claim_name for each in pod.shape.spec.volumes if each.persistent_volume_claim}
    for other in scene.objects.pods:
        if other.uid == pod.uid and other.name == pod.name:
            continue
        theirs = {
            each.persistent_volume_claim.claim_name for each in other.shape.spec.volumes if each.persistent_volume_claim
        }
        if other.namespace == pod.namespace and own & theirs:
            change = Change(verb="delete", api_version="v1", kind="Pod", name=other.name, namespace=other.namespace)
            held = min(own & theirs)
            yield Remedy(text=f"end pod {key_of(other)}, which holds the claim {held}", changes=(change,))


# -- where a pool is ----------------------------------------------------------------------------------------------


def of_the_pool(scene: Scene, pod: CachedPod | None, ref: PoolRef) -> Iterator[Remedy]:
    """What might let a pool buy that may not now, for the pod where there is one."""
    pool = scene.pools[ref]
    meta = pool.metadata
    if meta.annotations.get(names.PAUSED_ANNOTATION, "false") != "false":
        yield widening.to_resume(ref)
        return
    uses = widening.class_of(pool)
    if uses is not None and uses not in scene.objects.node_classes:
        yield from widening.to_create_class(uses)
    if uses is not None:
        yield from widening.to_use_class(scene, ref, uses)
    try:
        amounts(pool.spec.limits if not isinstance(pool, GrowthPool) else {})
    except QuantityError:
        yield Remedy(
            text=f"write the limits of NodePool {ref} anew: they cannot be read",
            changes=(widening.change_pool(ref, {"spec": {"limits": None}}),),
        )
    if isinstance(pool, GrowthPool):
        yield from widening.to_allow_types(scene, ref, pod.shape if pod is not None else widening.ANY_POD)
    elif pod is not None and (pool.spec.replicas is not None or meta.deletion_timestamp is not None):
        yield from widening.to_create_pool(scene, pod.shape, like=ref)


def _untainted(ref: PoolRef, view: PoolView, pod: CachedPod) -> Iterator[Remedy]:
    kept = [each for each in view.taints if tolerates(pod.shape.spec.tolerations, each)]
    listed: list[Json] = [
        {"key": each.key, "effect": each.effect, **({"value": each.value} if each.value else {})} for each in kept
    ]
    inner: Json = {"taints": listed}
    body = {"spec": {"template": inner if ref.group == names.GROWTH else {"spec": inner}}}
    yield Remedy(text=f"take the taint off NodePool {ref}", changes=(widening.change_pool(ref, body),))


def _of_labels(scene: Scene, pod: CachedPod, ref: PoolRef) -> Iterator[Remedy]:
    asked = widening.asked_of(pod.shape)
    named = asked.get(names.POOL_LABEL) or asked.get(names.NODE_POOL_LABEL)
    if named is not None and not any(named.allows(each.name) for each in scene.pools):
        yield from widening.to_create_pool(scene, pod.shape)
    by_name = ref.group == names.GROWTH and ref.name != names.DEFAULT_POOL
    if by_name and names.POOL_LABEL not in asked:
        yield loosening.to_select(pod, names.POOL_LABEL, ref.name)
        return
    for key, requirement in _apart(scene, ref, asked):
        yield from widening.to_admit(scene, ref, key, requirement)
        yield from loosening.to_stop_asking(pod, key)


def _apart(scene: Scene, ref: PoolRef, asked: Requirements) -> list[tuple[str, Requirement]]:
    """What the pod asks for, those labels first that the pool cannot give."""
    view = scene.views[ref]
    own = gather([*((each.key, parse(each)) for each in view.requirements)])

    def agrees(key: str, requirement: Requirement) -> bool:
        if key in view.labels:
            return requirement.allows(view.labels[key])
        values = [
            value
            for kind in view.instance_types
            for offering in kind.offerings
            for value in widening.labels_of(kind, offering).get(key, ())
            if key not in own or own[key].allows(value)
        ]
        return any(requirement.allows(value) for value in values) or (not values and requirement.tolerates_absence)

    return sorted(asked.items(), key=lambda each: (agrees(*each), each[0]))


def _of_places(scene: Scene, pod: CachedPod, ref: PoolRef) -> Iterator[Remedy]:
    """Where the pod's volumes can be reached from."""
    try:
        places = needs_of(pod.shape, scene.snapshot.volumes).places
    except VolumeError:
        return
    for place in places:
        for key, requirement in place.items():
            yield from widening.to_admit(scene, ref, key, requirement)


def _smaller(scene: Scene, pod: CachedPod, ref: PoolRef) -> Iterator[Remedy]:
    """To fit on the largest machine of the pool."""
    view = scene.views[ref]
    daemons = add(*(requests_of(each.spec) for each in scene.snapshot.daemons))
    needed = requests_of(pod.shape.spec)
    rooms = [subtract(kind.allocatable, daemons) for kind in view.instance_types]
    rooms.sort(key=lambda room: max(amount / max(1, room.get(name, 0)) for name, amount in needed.items()))
    for room in rooms[: widening.TYPES]:
        yield from loosening.to_shrink(pod, {name: room.get(name, 0) for name in needed})


def _lower_min_values(scene: Scene, ref: PoolRef, message: str) -> Iterator[Remedy]:
    found = _MIN_VALUES.search(message)
    pool = scene.pools[ref]
    if found is None or isinstance(pool, GrowthPool):
        return
    key, left = found[1], int(found[2])
    listed: list[Json] = []
    for each in pool.spec.template.spec.requirements:
        said: Json = {"key": each.key, "operator": each.operator}
        if each.values:
            said["values"] = list(each.values)
        if each.min_values is not None and (each.key != key or left > 0):
            said["minValues"] = left if each.key == key else each.min_values
        listed.append(said)
    change = widening.change_pool(ref, {"spec": {"template": {"spec": {"requirements": listed}}}})
    told = (
        f"lower minValues of {key} in NodePool {ref} to {left}"
        if left
        else f"drop minValues of {key} in NodePool {ref}"
    )
    yield Remedy(text=told, changes=(change,))


def _of_stock(scene: Scene, pod: CachedPod, ref: PoolRef) -> Iterator[Remedy]:
    yield from widening.to_allow_types(scene, ref, pod.shape)
    if ref.group != names.GROWTH:
        return
    for request in scene.objects.node_requests:
        until = request.status.unmet_until
        if request.status.phase == UNMET and request.spec.pool == ref.name and until is not None and until > scene.now:
            yield wait_until(until, f"{server_type(request)} is asked for again")
    pool = scene.pools[ref]
    assert isinstance(pool, GrowthPool)
    for each in pool.status.server_types:
        if each.unmet_until is not None and each.unmet_until > scene.now:
            yield wait_until(each.unmet_until, f"{each.name} is asked for again")
    for offering in pool.status.unmet_offerings:
        if offering.until > scene.now:
            yield wait_until(offering.until, f"{offering.type} in {offering.location} is asked for again")


def _more_zones(scene: Scene, ref: PoolRef) -> Iterator[Remedy]:
    """To buy in zones where the pool does not buy now."""
    view = scene.views[ref]
    own = gather([(each.key, parse(each)) for each in view.requirements])
    limit = own.get(names.ZONE_LABEL)
    if limit is None:
        return
    zones = {each.zone for kind in scene.catalogue.types for each in kind.offerings if each.available}
    for zone in sorted(zone for zone in zones if not limit.allows(zone)):
        yield from widening.to_admit(scene, ref, names.ZONE_LABEL, Requirement(False, frozenset({zone})))


def _others_rules(scene: Scene, pod: CachedPod) -> Iterator[Remedy]:
    """The anti-affinity of pods that are there already and keep this one away, where they are few."""
    keeping = [
        other
        for other in scene.objects.pods
        if other.node_name
        and other.shape.spec.affinity is not None
        and other.shape.spec.affinity.pod_anti_affinity is not None
        and other.shape.spec.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
        and key_of(other) != key_of(pod)
    ]
    if not 0 < len(keeping) <= TOLD * 2:
        return
    changes: list[Change] = []
    for other in keeping:
        path = ("spec", "affinity", "podAntiAffinity", loosening.REQUIRED)
        operation = {"op": "remove", "path": "/".join(("", *path))}
        changes.append(loosening.edit_pod(other, operation))
    shown = ", ".join(sorted(key_of(each) for each in keeping))
    yield Remedy(text=f"drop the required anti-affinity of {shown}", changes=tuple(changes))
