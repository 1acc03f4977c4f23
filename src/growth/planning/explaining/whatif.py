"""The same cluster with something changed: what would be bought, what it would cost, and who would not fit.

Changes are functions from a scene to a scene. Both sides are played in the same way, so that a difference is the change's:
pods that wait are bound by the model of kube-scheduler, for the rest a plan is made, what it buys comes up, and so on until
nothing more is bought. Where there is not room for all, it is the scheduler's queue that decides who gets it, not a plan.
In which order the pods of a node that goes come again nobody can foretell: several are played, and what most of them lead to
is told.
"""

import collections
import dataclasses
import datetime as dt
import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

import msgspec

from growth.api import names
from growth.api.growthpools import GrowthPool
from growth.api.instance_types import Catalogue, InstanceType
from growth.api.meta import ObjectMeta, OwnerReference, Struct
from growth.api.pods import Pod, PodTemplateSpec
from growth.api.pools import PoolRef
from growth.cluster.assemble import Objects
from growth.cluster.shapes import CachedPod, Shapes
from growth.cluster.wanting import is_done, is_mirror, key_of, of_daemon_set
from growth.planning import occupants
from growth.planning.explaining.applying import (
    PLANNED,
    CannotApply,
    applied,
    closed,
    leaving,
    with_machines,
    with_pods,
    without_node,
)
from growth.planning.explaining.reaching import Reachable, reachable
from growth.planning.explaining.scene import Scene
from growth.planning.explaining.widening import change_pool
from growth.planning.plan import PlannedClaim, Unplaced
from growth.planning.pod_budgets import PodBudgets
from growth.planning.rehearsal import Stage

_HASH_LABEL = "pod-template-hash"
# So often is bought and bound; the last rounds buy nothing as a rule.
ROUNDS = 6
# So many orders of successors are played; of many pods that wait only one, since each takes its time.
ORDERS = 7
MANY_PODS = 3000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two clusters. `hourly` is what its nodes and the machines that it would buy cost, in billionths, without
    the nodes in `unpriced`. `reach` None: nobody asked what could be saved.
    """

    nodes: int
    hourly: int
    claims: tuple[PlannedClaim, ...]
    unplaced: tuple[Unplaced, ...]
    unpriced: tuple[str, ...]
    reach: Reachable | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class WhatIf:
    """Before and after. `unfit` are the pods that have no place afterwards and had one before, `lost` those that nobody
    makes again when their node goes, `gone` the nodes that the change takes away. `held` are pods that cannot be evicted
    as things are, and why: the drain would wait for them.
    """

    before: Side
    after: Side
    unfit: tuple[Unplaced, ...]
    lost: tuple[str, ...]
    gone: tuple[str, ...]
    currency: str
    held: tuple[tuple[str, str], ...] = ()

    @property
    def difference(self) -> int:
        """What an hour costs more, in billionths."""
        return self.after.hourly - self.before.hourly


@dataclasses.dataclass(frozen=True, kw_only=True)
class Changed:
    """A scene after a change. `gone` are nodes that it takes away, from `origin`; `lost` pods that nobody makes again."""

    scene: Scene
    gone: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    origin: Scene | None = None

    def then(self, other: "Changed") -> "Changed":
        """After another change of this scene."""
        return Changed(
            scene=other.scene,
            gone=(*self.gone, *other.gone),
            lost=(*self.lost, *other.lost),
            origin=self.origin or other.origin,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Played:
    """How a scene ends: with what was bought standing in it. `waiting` had no place as long as nodes that go were there."""

    scene: Scene
    bought: tuple[PlannedClaim, ...]
    waiting: frozenset[str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Course:
    """What decides how a scene ends and does not stand in it.

    `coming`: the order in which the machines of a plan come up, each with pods on it before the next is there; None: all at
    the same moment. `spread_by_default` False: kube-scheduler's profile has no default spread, as clusters may set it.
    Plans are made as ever.
    """

    coming: Callable[[Sequence[PlannedClaim]], Sequence[PlannedClaim]] | None = None
    spread_by_default: bool = True

    def parts(self, claims: Sequence[PlannedClaim]) -> Sequence[Sequence[PlannedClaim]]:
        """The machines in the parts in which they come up; one, if without a machine, at least."""
        if self.coming is None or not claims:
            return [claims]
        return [[each] for each in self.coming(claims)]


USUAL = Course()


def compared(before: Scene, after: Changed, *, consolidate: bool = False) -> WhatIf:
    """Both sides; with `consolidate` also what could be saved on each."""
    old, new = played(Changed(scene=before)), likely(after)
    sides = _side(old, consolidate=consolidate), _side(new, consolidate=consolidate)
    known = {each.pod for each in sides[0].unplaced}
    return WhatIf(
        before=sides[0],
        after=sides[1],
        unfit=tuple(each for each in sides[1].unplaced if each.pod not in known),
        lost=after.lost,
        gone=tuple(sorted(after.gone)),
        currency=before.snapshot.currency,
        held=tuple(_held(before, after.gone, new.waiting)),
    )


def likely(changed: Changed) -> Played:
    """What most orders of the successors lead to; of equally many the first."""
    found: dict[object, list[Played]] = {}
    for each in orders(changed, 1 if len(changed.scene.demands) > MANY_PODS else ORDERS):
        end = played(each)
        pods = collections.Counter(end.scene.pods[left.pod].shape for left in end.scene.plan.unplaced)
        machines = collections.Counter((str(one.pool), one.instance_type, one.zone) for one in end.bought)
        found.setdefault((frozenset(pods.items()), frozenset(machines.items())), []).append(end)
    return max(found.values(), key=len)[0]


def orders(changed: Changed, number: int) -> Iterator[Changed]:
    """The change, and the same with the successors of the pods on nodes that go made in other orders."""
    yield changed
    origin = changed.origin
    moving = {key_of(pod) for name in changed.gone for pod in (origin.pods_on.get(name, ()) if origin else ())}
    pods = changed.scene.objects.pods
    own = [at for at, pod in enumerate(pods) if key_of(pod) in moving]
    if len({pods[at].shape for at in own}) < 2:
        return  # they are alike
    for turn in range(1, number):

        def place(at: int, turn: int = turn) -> bytes:
            return hashlib.sha256(f"{turn} {key_of(pods[at])}".encode()).digest()

        after = list(pods)
        for late, at in enumerate(sorted(own, key=place)):
            created = changed.scene.now + dt.timedelta(milliseconds=late)
            after[at] = msgspec.structs.replace(pods[at], created=created)
        yield dataclasses.replace(changed, scene=with_pods(changed.scene, after))


def played(changed: Changed, *, since: int = 0, course: Course = USUAL) -> Played:
    """What comes of a scene. Nodes that go count against limits until they are gone: what those do not allow at first is
    bought afterwards. `since` is how many machines of a plan stand in it already.
    """
    if changed.gone and changed.origin is not None:
        # A node that drains is there to those who count nodes, as a spread does.
        draining = with_pods(closed(changed.origin, changed.gone), changed.scene.objects.pods)
        pods = _bound(draining, course).objects.pods
        scene = with_pods(changed.scene, pods)
        first = with_pods(leaving(changed.origin, changed.gone), pods)
    else:
        scene = first = _bound(changed.scene, course)
    plan, waiting = first.plan, frozenset(first.unplaced)
    bought: list[PlannedClaim] = []
    for number in range(ROUNDS):
        if not plan.claims and (number or first is scene):
            break
        for part in course.parts(plan.claims):
            scene = _bound(with_machines(scene, part, since=since + len(bought)), course)
            bought += part
        plan = scene.plan
    return Played(scene=scene, bought=tuple(bought), waiting=waiting)


def _held(scene: Scene, nodes: Sequence[str], waiting: Collection[str]) -> Iterator[tuple[str, str]]:
    """The pods on the nodes that no eviction is granted for: now, or after others of their budget that find no place."""
    budgets = PodBudgets(scene.disruption_budgets)
    moving = [pod for name in nodes for pod in scene.pods_on.get(name, ())]
    for pod in moving:
        if occupants.active(pod) and occupants.protection(pod, scene.now).holds:
            yield key_of(pod), f"it has the annotation {names.DO_NOT_DISRUPT_ANNOTATION}"
            continue
        if not occupants.evictable(pod, scene.now):
            continue
        told = occupants.refusal(pod, budgets)
        if told:
            yield key_of(pod), told
            continue
        for budget in budgets.of(pod):
            own = [each for each in moving if budget in budgets.of(each)]
            stuck = sum(key_of(each) in waiting for each in own)
            allowed = budget.status.disruptions_allowed
            if stuck >= allowed and len(own) > allowed:
                name = f"{budget.metadata.namespace}/{budget.metadata.name}"
                yield key_of(pod), f"PodDisruptionBudget {name} allows {allowed}, and {stuck} would find no place"


def _side(found: Played, *, consolidate: bool) -> Side:
    nodes = found.scene.snapshot.nodes
    return Side(
        nodes=len(nodes) - len(found.bought),
        hourly=sum(node.price or 0 for node in nodes),
        claims=_with_pods(found),
        unplaced=found.scene.plan.unplaced,
        unpriced=tuple(sorted(node.name for node in nodes if node.price is None)),
        reach=reachable(found.scene) if consolidate else None,
    )


def _with_pods(found: Played) -> tuple[PlannedClaim, ...]:
    """What was bought, with the pods that are there in the end."""
    return tuple(
        dataclasses.replace(
            claim, pods=tuple(sorted(key_of(pod) for pod in found.scene.pods_on.get(f"{PLANNED}{number}", ())))
        )
        for number, claim in enumerate(found.bought)
    )


# -- nodes --------------------------------------------------------------------------------------------------------


def removed(scene: Scene, nodes: Collection[str]) -> Changed:
    """The nodes drained and gone; the pods that nobody makes again are lost. `CannotApply` for unknown nodes."""
    if not nodes:
        return Changed(scene=scene)
    lost = tuple(key_of(pod) for name in nodes for pod in scene.pods_on.get(name, ()) if _is_lost(pod))
    origin = with_pods(scene, [pod for pod in scene.objects.pods if key_of(pod) not in lost])
    after = origin
    for name in nodes:
        after = without_node(after, name)
    return Changed(scene=after, gone=tuple(nodes), lost=lost, origin=origin)


def _bound(scene: Scene, course: Course) -> Scene:
    """Pods that wait and find room on nodes that are there are bound before anything that is bought comes up."""
    waiting = [each for each in scene.assembled.demands if not scene.pods[each.key].node_name]
    if not waiting:
        return scene
    order = Stage(scene.snapshot, waiting, spread_by_default=course.spread_by_default).rehearse(()).order
    there = {pod: node for pod, node in order if isinstance(node, str) and node in scene.nodes}
    return with_pods(
        scene,
        [
            msgspec.structs.replace(pod, node_name=there[key_of(pod)]) if key_of(pod) in there else pod
            for pod in scene.objects.pods
        ],
    )


def _is_lost(pod: CachedPod) -> bool:
    return pod.owner is None and not is_done(pod) and not is_mirror(pod) and not of_daemon_set(pod)


def limited(scene: Scene, ref: PoolRef, nodes: int) -> Changed:
    """Another limit of nodes; what is too many then goes, in the order in which a pool gives up its machines."""
    pool = scene.pools.get(ref)
    if pool is None:
        raise CannotApply(f"NodePool {ref} is not there")
    value: int | str = nodes if isinstance(pool, GrowthPool) else str(nodes)
    after = applied(scene, [change_pool(ref, {"spec": {"limits": {"nodes": value}}})])
    return removed(after, [name for name in after.too_many(after.pools[ref]) if name in after.nodes])


# -- what is sold -------------------------------------------------------------------------------------------------


def priced(catalogue: Catalogue, kind: str, price: int) -> Catalogue:
    """Every offering of the type at another price an hour, in billionths. `KeyError` where it is not sold."""

    def other(each: InstanceType) -> InstanceType:
        offerings = tuple(
            dataclasses.replace(offering, price=price if offering.price is not None else None)
            for offering in each.offerings
        )
        return dataclasses.replace(each, offerings=offerings)

    return _with_type(catalogue, kind, other)


def without_type(catalogue: Catalogue, kind: str) -> Catalogue:
    """The type sold out. Machines of it that are there stay."""

    def none(each: InstanceType) -> InstanceType:
        offerings = tuple(dataclasses.replace(offering, available=False) for offering in each.offerings)
        return dataclasses.replace(each, offerings=offerings)

    return _with_type(catalogue, kind, none)


def _with_type(catalogue: Catalogue, kind: str, change: Callable[[InstanceType], InstanceType]) -> Catalogue:
    if all(each.name.lower() != kind.lower() for each in catalogue.types):
        raise KeyError(kind)
    types = tuple(change(each) if each.name.lower() == kind.lower() else each for each in catalogue.types)
    return dataclasses.replace(catalogue, types=types)


# -- pods ---------------------------------------------------------------------------------------------------------


def deployed(scene: Scene, namespace: str, name: str) -> list[CachedPod]:
    """The pods of a Deployment that run or wait, by the names that it gives to its ReplicaSets."""
    found = []
    for pod in scene.objects.pods:
        if pod.namespace != namespace or pod.owner is None or is_done(pod) or pod.deleting is not None:
            continue
        suffix = f"-{pod.shape.labels.get(_HASH_LABEL, '')}"
        by_set = pod.owner.kind == "ReplicaSet" and pod.owner.name == f"{name}{suffix if len(suffix) > 1 else ''}"
        if by_set or (pod.owner.kind == "Deployment" and pod.owner.name == name):
            found.append(pod)
    return found


def scaled(scene: Scene, namespace: str, name: str, replicas: int, template: PodTemplateSpec | None) -> Scene:
    """The Deployment with another number of pods. More are like its newest ones, or of the template where it has none;
    fewer are those that a ReplicaSet gives up first. `KeyError` where neither is known.
    """
    there = deployed(scene, namespace, name)
    if len(there) >= replicas:
        going = {key_of(pod) for pod in sorted(there, key=_first_to_go)[: len(there) - replicas]}
        return with_pods(scene, [pod for pod in scene.objects.pods if key_of(pod) not in going])
    taken = set(scene.pods)
    if there:
        like = max(there, key=lambda pod: (pod.created is not None, pod.created, pod.name))
        shape, owner = like.shape, like.owner
    elif template is not None:
        meta = ObjectMeta(namespace=namespace, labels=template.metadata.labels)
        shape = Shapes().shape(Pod(metadata=meta, spec=template.spec))
        owner = OwnerReference(api_version="apps/v1", kind="Deployment", name=name, uid=name, controller=True)
    else:
        raise KeyError(name)
    more: list[CachedPod] = []
    number = 0
    while len(there) + len(more) < replicas:
        made = f"{name}-{number}"
        number += 1
        if f"{namespace}/{made}" not in taken:
            more.append(CachedPod(made, f"{namespace}/{made}", "", shape, owner=owner, phase="Pending"))
    return with_pods(scene, [*scene.objects.pods, *more])


def _first_to_go(pod: CachedPod) -> tuple[bool, bool, float, str]:
    """Without a node first, then not ready, then the youngest: as a ReplicaSet ranks them."""
    born = pod.created.timestamp() if pod.created is not None else 0.0
    return (bool(pod.node_name), pod.ready, -born, pod.name)


# -- everything else ----------------------------------------------------------------------------------------------

S = TypeVar("S", bound=Struct)


def joined(scene: Scene, added: Scene) -> Scene:
    """With the objects of another one; of two with one name the added one counts."""
    base, more = scene.objects, added.objects
    pods = {key_of(pod): pod for pod in (*base.pods, *more.pods)}
    objects = Objects(
        pods=tuple(pods.values()),
        nodes=_both(base.nodes, more.nodes),
        claims=_both(base.claims, more.claims),
        pools=_both(base.pools, more.pools),
        growth_pools=_both(base.growth_pools, more.growth_pools),
        node_requests=_both(base.node_requests, more.node_requests),
        node_classes={**base.node_classes, **more.node_classes},
        daemon_sets=_both(base.daemon_sets, more.daemon_sets),
        namespaces=_both(base.namespaces, more.namespaces),
        volume_claims=_both(base.volume_claims, more.volume_claims),
        volumes=_both(base.volumes, more.volumes),
        storage_classes=_both(base.storage_classes, more.storage_classes),
        csi_nodes=_both(base.csi_nodes, more.csi_nodes),
        attachments=_both(base.attachments, more.attachments),
    )
    return dataclasses.replace(
        scene,
        objects=objects,
        overlays=_both(scene.overlays, added.overlays),
        disruption_budgets=_both(scene.disruption_budgets, added.disruption_budgets),
        buffered=(*scene.buffered, *added.buffered),
    )


def _both(one: Sequence[S], other: Sequence[S]) -> tuple[S, ...]:
    def key(item: Struct) -> tuple[str, str]:
        meta: ObjectMeta = item.metadata  # type: ignore[attr-defined]  # every kind has it
        return meta.namespace, meta.name

    return tuple({key(each): each for each in (*one, *other)}.values())
