"""What would let a node go: proposals are applied to the scene and decided with; only what helps is told.

Often several things keep a node, one behind the other: a proposal that takes away the first is followed a few steps.
"""

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from growth.api import names
from growth.api.growthpools import CONTINUOUS, GrowthPool
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, Budget, NodePool
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.policy import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from growth.api.pools import PoolRef
from growth.api.requests import requests_of
from growth.api.zones import zone_of
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import NODES
from growth.cluster.wanting import key_of
from growth.planning import occupants
from growth.planning.budgets import BudgetError, active, size_of
from growth.planning.disruption import words
from growth.planning.disruption.model import Kept, OwnedNode
from growth.planning.explaining import loosening, widening
from growth.planning.explaining.applying import BUFFER, CannotApply, applied, vacated, without_node
from growth.planning.explaining.facts import last_event
from growth.planning.explaining.mending import proposals as for_pods
from growth.planning.explaining.remedies import Change, Remedy, patch, wait_until
from growth.planning.explaining.scene import Scene
from growth.planning.explaining.verdicts import verdicts
from growth.planning.pod_budgets import PodBudgets
from growth.units import DurationError, parse_or_never
from growth.units.resources import add, amount_of, lacking, subtract

DEPTH: Final = 4
TOLD: Final = 3
DECISIONS: Final = 30
FEW_DECISIONS: Final = 6
MANY_NODES: Final = 300  # above which a decision takes a second
# So many types are tried where a cheaper one might do.
TYPES: Final = 4
_SECOND: Final = dt.timedelta(seconds=1)

Why = Callable[[Scene], Kept | None]


class Releasing:
    """Remedies for one node. `why` says what keeps it in a scene, None where nothing does."""

    def __init__(self, scene: Scene, node: str, why: Why) -> None:
        self._scene = scene
        self._node = node
        self._why = why
        self._decisions = DECISIONS if len(scene.nodes) <= MANY_NODES else FEW_DECISIONS

    def remedies(self) -> tuple[Remedy, ...]:
        """Those that help, the least change first."""
        first = self._why(self._scene)
        if first is None:
            return ()
        found: list[Remedy] = []
        for proposal in proposals(self._scene, first):
            helps = self._followed(self._scene, proposal, first, DEPTH)
            if helps is not None and all(helps.text != each.text for each in found):
                found.append(helps)
            if len(found) >= TOLD:
                break
        return tuple(sorted(found, key=lambda each: len(each.changes)))

    def _followed(self, scene: Scene, proposal: Remedy, kept: Kept, depth: int) -> Remedy | None:
        if self._decisions <= 0:
            return None
        try:
            after = applied(scene, proposal.changes)
        except (CannotApply, KeyError, IndexError, ValueError):
            return None
        self._decisions -= 1
        if self._node not in after.nodes:
            return proposal
        still = self._why(after)
        if still is None:
            return proposal
        if depth <= 1 or (still.reason, still.message) == (kept.reason, kept.message):
            return None
        for further in proposals(after, still):
            found = self._followed(after, further, still, depth - 1)
            if found is not None:
                return proposal.then(found)
        return None


def proposals(scene: Scene, kept: Kept) -> Iterator[Remedy]:
    """What might take away what keeps the node."""
    name = kept.node
    match kept.reason:
        case words.PAUSED:
            yield from _resumed(scene, kept)
        case words.DO_NOT_DISRUPT:
            yield from _unprotected(scene, kept)
        case words.POD_BUDGET:
            yield from _more_evictions(scene, name)
        case words.DISABLED | words.MALFORMED:
            yield from _enabled(scene, kept)
        case words.STATIC:
            yield from _fewer_replicas(scene, kept)
        case words.GROWTH_POOL:
            yield from _continuous(scene, kept)
        case words.MINIMUM:
            yield from _lower_minimum(scene, kept)
        case words.CONSOLIDATE_AFTER:
            yield from _quiet(scene, kept)
        case words.BUDGET:
            yield from _wider_budgets(scene, kept)
        case words.NODE_LIMIT:
            yield from _higher_limit(scene, kept)
        case words.BUFFER:
            yield from _smaller_buffers(scene, name)
        case words.BALANCED | words.TOO_LITTLE:
            yield from _other_policy(kept)
        case words.IN_USE | words.NO_PLACE:
            yield from _places(scene, kept)
            yield from _cheaper(scene, kept)
        case words.POOL_NOT_FOUND | words.UNMANAGED:
            yield _by_hand(scene, name)
        case _:
            return


def _node_change(name: str, body: Json) -> Change:
    return patch(NODE.api_version, NODE.kind, name, body)


def _claim_change(name: str, body: Json) -> Change:
    return patch(NODE_CLAIM.api_version, NODE_CLAIM.kind, name, body)


def _pool_of(scene: Scene, kept: Kept) -> tuple[PoolRef, NodePool | GrowthPool | None]:
    ref = PoolRef.parse(kept.pool)
    return ref, scene.pools.get(ref)


def _owned(scene: Scene, name: str) -> OwnedNode | None:
    return next((each for each in scene.situation.nodes if each.name == name), None)


# -- marks that people put ----------------------------------------------------------------------------------------


def _off(scene: Scene, name: str, annotation: str) -> Remedy | None:
    """The annotation off the node and its claim, as far as they have it; None where neither has."""
    body: Json = {"metadata": {"annotations": {annotation: None}}}
    changes = []
    if annotation in scene.nodes[name].metadata.annotations:
        changes.append(_node_change(name, body))
    claim = scene.picture.counted[name].machine.claim
    if claim is not None and annotation in claim.metadata.annotations:
        changes.append(_claim_change(claim.metadata.name, body))
    return Remedy(text=f"take the annotation {annotation} off node {name}", changes=tuple(changes)) if changes else None


def _resumed(scene: Scene, kept: Kept) -> Iterator[Remedy]:
    off = _off(scene, kept.node, names.PAUSED_ANNOTATION)
    if off is not None:
        yield off
    ref, pool = _pool_of(scene, kept)
    if pool is not None and names.PAUSED_ANNOTATION in pool.metadata.annotations:
        yield widening.to_resume(ref)


def _unprotected(scene: Scene, kept: Kept) -> Iterator[Remedy]:
    annotation = names.DO_NOT_DISRUPT_ANNOTATION
    off = _off(scene, kept.node, annotation)
    if off is not None:
        yield off
        return
    held = [pod for pod in scene.pods_on.get(kept.node, ()) if occupants.active(pod)]
    held = [pod for pod in held if occupants.protection(pod, scene.now).holds]
    ends = [occupants.protection(pod, scene.now).until for pod in held]
    times = [each for each in ends if each is not None]
    if held and len(times) == len(held):
        yield wait_until(max(times), "the protection ends")
    if held:
        body: Json = {"metadata": {"annotations": {annotation: None}}}
        shown = ", ".join(key_of(pod) for pod in held[:TOLD]) + (" …" if len(held) > TOLD else "")
        yield Remedy(
            text=f"take the annotation {annotation} off {shown}",
            changes=tuple(loosening.change_pod(pod, body) for pod in held),
        )


def _more_evictions(scene: Scene, name: str) -> Iterator[Remedy]:
    """Every budget that refuses one of the node's pods is raised so that it allows one eviction more."""
    budgets = PodBudgets(scene.disruption_budgets)
    changes: list[Change] = []
    told: list[str] = []
    seen: set[tuple[str, str]] = set()
    for pod in scene.pods_on.get(name, ()):
        if not occupants.evictable(pod, scene.now) or not occupants.refusal(pod, budgets):
            continue
        matching = budgets.of(pod)
        for each in matching[1:]:
            key = (each.metadata.namespace, each.metadata.name)
            if key not in seen:
                seen.add(key)
                changes.append(_budget_change("delete", each))
                told.append(f"delete PodDisruptionBudget {key[0]}/{key[1]}: a pod may have one only")
        first = matching[0]
        key = (first.metadata.namespace, first.metadata.name)
        if key in seen or (len(matching) > 1 and first.status.disruptions_allowed > 0):
            continue
        seen.add(key)
        spec, shown = _allowing(first)
        if spec:
            changes.append(_budget_change("patch", first, {"spec": spec}))
            told.append(f"set {shown} of PodDisruptionBudget {key[0]}/{key[1]}")
    if changes:
        yield Remedy(text=" and ".join(told), changes=tuple(changes))


def _budget_change(verb: Any, budget: PodDisruptionBudget, body: Json | None = None) -> Change:
    kind, meta = POD_DISRUPTION_BUDGET, budget.metadata
    return Change(
        verb=verb,
        api_version=kind.api_version,
        kind=kind.kind,
        name=meta.name,
        namespace=meta.namespace,
        body=body or {},
    )


def _allowing(budget: PodDisruptionBudget) -> tuple[Json, str]:
    """The fields such that one pod may be evicted now, and in words; empty where no pod is healthy."""
    status = budget.status
    if status.current_healthy < 1:
        return {}, ""
    if budget.spec.max_unavailable is not None:
        number = status.expected_pods - status.current_healthy + 1
        return {"maxUnavailable": number}, f"maxUnavailable to {number}"
    number = status.current_healthy - 1
    return {"minAvailable": number}, f"minAvailable to {number}"


# -- what the pool says -------------------------------------------------------------------------------------------


def _set(ref: PoolRef, field: str, value: str) -> Remedy:
    """A field of the pool's spec."""
    change = widening.change_pool(ref, {"spec": {field: value}})
    return Remedy(text=f"set {field} of NodePool {ref} to {value}", changes=(change,))


def _set_disruption(ref: PoolRef, field: str, value: str) -> Remedy:
    """A field of the pool's spec.disruption."""
    change = widening.change_pool(ref, {"spec": {"disruption": {field: value}}})
    return Remedy(text=f"set {field} of NodePool {ref} to {value}", changes=(change,))


def _enabled(scene: Scene, kept: Kept) -> Iterator[Remedy]:
    ref, pool = _pool_of(scene, kept)
    if isinstance(pool, GrowthPool):
        yield _set(ref, "scaleDownAfter", "10m")
        return
    if pool is None:
        return
    disruption = pool.spec.disruption
    try:
        never = parse_or_never(disruption.consolidate_after) is None
    except DurationError:
        never = True
    if never:
        yield _set_disruption(ref, "consolidateAfter", "0s")
    else:
        yield _set_disruption(ref, "consolidationPolicy", "WhenEmptyOrUnderutilized")


def _other_policy(kept: Kept) -> Iterator[Remedy]:
    if kept.reason == words.BALANCED:
        yield _set_disruption(PoolRef.parse(kept.pool), "consolidationPolicy", "WhenEmptyOrUnderutilized")


def _fewer_replicas(scene: Scene, kept: Kept) -> Iterator[Remedy]:
    ref, pool = _pool_of(scene, kept)
    if not isinstance(pool, NodePool) or not pool.spec.replicas:
        return
    own = sum(each.machine.pool == ref for each in scene.picture.counted.values())
    for fewer in range(1, pool.spec.replicas + 1):
        number = min(own, pool.spec.replicas) - fewer
        if number < 0:
            return
        change = patch(NODE_POOL.api_version, NODE_POOL.kind, ref.name, {"spec": {"replicas": number}})
        if kept.node in applied(scene, [change]).surplus:
            text = f"lower the replicas of NodePool {ref} by {pool.spec.replicas - number}, to {number}"
            yield Remedy(text=text, changes=(change,))
            return


def _continuous(scene: Scene, kept: Kept) -> Iterator[Remedy]:
    ref, pool = _pool_of(scene, kept)
    if isinstance(pool, GrowthPool) and pool.spec.optimise != CONTINUOUS:
        yield _set(ref, "optimise", CONTINUOUS)


def _lower_minimum(scene: Scene, kept: Kept) -> Iterator[Remedy]:
    ref, pool = _pool_of(scene, kept)
    kind = scene.picture.counted[kept.node].machine.labels.get(names.INSTANCE_TYPE_LABEL, "").lower()
    if not isinstance(pool, GrowthPool):
        return
    for fewer in (1, 2, math.inf):
        types = [
            msgspec.structs.replace(each, min=int(max(0, each.min - fewer))) if each.name.lower() == kind else each
            for each in pool.spec.server_types
        ]
        listed: list[Json] = msgspec.to_builtins(types)
        least = next((each.min for each in types if each.name.lower() == kind), 0)
        yield Remedy(
            text=f"lower min of server type {kind} of NodePool {ref} to {least}",
            changes=(widening.change_pool(ref, {"spec": {"serverTypes": listed}}),),
        )
        if least == 0:
            return


def _quiet(scene: Scene, kept: Kept) -> Iterator[Remedy]:
    ref, pool = _pool_of(scene, kept)
    claim = scene.picture.counted[kept.node].machine.claim
    if pool is None or claim is None:
        return
    text = pool.spec.scale_down_after if isinstance(pool, GrowthPool) else pool.spec.disruption.consolidate_after
    after = parse_or_never(text)
    last = last_event(claim, scene.pods_on.get(kept.node, ()))
    if after is not None and last is not None:
        until = (last + after.timedelta).replace(microsecond=0)
        if until < last + after.timedelta:
            until += _SECOND
        yield wait_until(until, f"it has been quiet for {after}")
    if isinstance(pool, GrowthPool):
        yield _set(ref, "scaleDownAfter", "0s")
    else:
        yield _set_disruption(ref, "consolidateAfter", "0s")


def _wider_budgets(scene: Scene, kept: Kept) -> Iterator[Remedy]:
    """Every budget that counts now for as many more nodes as it takes, at last for all."""
    ref, pool = _pool_of(scene, kept)
    if pool is None:
        return
    total = sum(each.pool == kept.pool for each in scene.situation.nodes)
    taken = sum(each.pool == kept.pool and (each.leaving or not each.ready) for each in scene.situation.nodes)
    for number in sorted({taken + 1, taken + 2, taken + 4, total}):
        budgets: list[Budget] = []
        for each in pool.spec.disruption.budgets:
            try:
                running, size = active(each, scene.now), size_of(each.nodes, total)
            except BudgetError:
                continue  # one that cannot be read allows nothing: it goes
            small = running and size < number
            budgets.append(msgspec.structs.replace(each, nodes=str(number)) if small else each)
        listed: list[Json] = [
            {"nodes": each.nodes, **msgspec.to_builtins(each)} for each in budgets
        ]  # the default is written out too
        change = widening.change_pool(ref, {"spec": {"disruption": {"budgets": listed}}})
        yield Remedy(text=f"let the budgets of NodePool {ref} allow {number} at a time", changes=(change,))


def _higher_limit(scene: Scene, kept: Kept) -> Iterator[Remedy]:
    ref, pool = _pool_of(scene, kept)
    if isinstance(pool, GrowthPool):
        yield from _higher_bounds(scene, kept, pool)
        return
    if pool is None or NODES not in pool.spec.limits:
        return
    now = amount_of(NODES, pool.spec.limits[NODES])
    used = scene.views[ref].used.get(NODES, 0)
    for more in (1, 2, 4):
        number = max(now, used) + more
        yield widening.to_raise_nodes(ref, now, number)
    yield _set_disruption(ref, "nodeLimitMode", "Soft")


def _higher_bounds(scene: Scene, kept: Kept, pool: GrowthPool) -> Iterator[Remedy]:
    """One machine more of each type, over all types, or both."""
    ref, most = PoolRef.parse(kept.pool), pool.spec.limits.nodes
    types: list[Json] = msgspec.to_builtins(
        [msgspec.structs.replace(each, max=each.max + 1) for each in pool.spec.server_types]
    )
    of_types: Json = {"serverTypes": types}
    more = f"raise max of each server type of NodePool {ref} by 1"
    if most is not None:
        number = max(most, scene.views[ref].used.get(NODES, 0)) + 1
        limits: Json = {"limits": {"nodes": number}}
        told = f"raise limits.nodes of NodePool {ref} by {number - most}, to {number}"
        yield Remedy(text=told, changes=(widening.change_pool(ref, {"spec": limits}),))
        both = {**of_types, **limits}
        yield Remedy(
            text=f"{told}, and max of each server type by 1", changes=(widening.change_pool(ref, {"spec": both}),)
        )
    yield Remedy(text=more, changes=(widening.change_pool(ref, {"spec": of_types}),))


def _smaller_buffers(scene: Scene, name: str) -> Iterator[Remedy]:
    """Buffers that keep room here keep less of it."""
    here = {key for filled in scene.plan.filled if filled.name == name for key in filled.pods}
    virtual = [each.key for each in scene.buffered if each.key in here]
    changes: list[Change] = []
    told: list[str] = []
    for buffer in sorted({key.rpartition("#")[0] for key in virtual}):
        namespace, _, rest = buffer.partition("/")
        named = rest.removeprefix("capacitybuffer:")
        whole = sum(each.key.rpartition("#")[0] == buffer for each in scene.buffered)
        left = whole - sum(key.rpartition("#")[0] == buffer for key in virtual)
        changes.append(
            patch(f"{names.AUTOSCALING}/v1beta1", BUFFER, named, {"spec": {"replicas": left}}, namespace=namespace)
        )
        told.append(f"lower the replicas of CapacityBuffer {namespace}/{named} to {left}")
    if changes:
        yield Remedy(text=" and ".join(told), changes=tuple(changes))


# -- places for its pods ------------------------------------------------------------------------------------------


def _movers(scene: Scene, name: str) -> list[CachedPod]:
    return [pod for pod in scene.pods_on.get(name, ()) if occupants.reschedulable(pod)]


def _places(scene: Scene, kept: Kept) -> Iterator[Remedy]:
    """What would give its pods a place without it: as if they were pending, and as if they were a little smaller."""
    gone = without_node(scene, kept.node)
    own = {key_of(pod) for pod in _movers(scene, kept.node)}
    for after in (vacated(scene, kept.node), gone):
        unplaced = next((each for each in after.plan.unplaced if each.pod in own), None)
        for reason in unplaced.reasons[:TOLD] if unplaced is not None else ():
            assert unplaced is not None
            yield from for_pods(after, after.pods[unplaced.pod], reason)
    # Those that would be bought for, though there is nearly room for them.
    bought = [key for claim in gone.plan.claims for key in claim.pods if key in own]
    if not 0 < len(bought) <= TOLD:
        return
    changes: list[Remedy] = []
    for key in bought:
        pod = scene.pods[key]
        nearest = next((each for each in verdicts(gone.snapshot, pod.shape) if each.lacking), None)
        if nearest is None:
            return
        most = subtract(requests_of(pod.shape.spec), nearest.lacking)
        changes += list(loosening.to_shrink(pod, most))[:1]
    if changes:
        first, *rest = changes
        for other in rest:
            first = first.then(other)
        yield first


def _cheaper(scene: Scene, kept: Kept) -> Iterator[Remedy]:
    """To let the pool buy a machine that holds the node's pods and costs less."""
    ref, pool = _pool_of(scene, kept)
    node = _owned(scene, kept.node)
    if pool is None or node is None or node.price is None or node.view is None:
        return
    daemons: Sequence[Any] = scene.snapshot.daemons
    needed = add(
        *(requests_of(pod.shape.spec) for pod in _movers(scene, kept.node)),
        *(requests_of(each.spec) for each in daemons),
    )
    found = []
    for kind in scene.catalogue.types:
        if kind.owned or lacking(needed, kind.allocatable):
            continue
        own = kind.labels_of_today
        if any(key in own and node.view.labels.get(key, own[key][0]) not in own[key] for key in widening.MAKES):
            continue
        for offering in kind.offerings:
            if offering.price is not None and offering.available and offering.price < node.price:
                same = offering.zone == zone_of(node.view.labels.get(names.ZONE_LABEL, ""))
                terms = offering.capacity_type == node.capacity_type
                found.append((not terms, offering.price, not same, kind.name, kind, offering))
    tried: set[str] = set()
    for *_, kind, offering in sorted(found, key=lambda each: each[:4]):
        if kind.name in tried or len(tried) >= TYPES:
            continue
        tried.add(kind.name)
        remedy = widening.to_allow(scene, ref, kind, offering)
        if remedy is not None:
            yield remedy


def _by_hand(scene: Scene, name: str) -> Remedy:
    claim = scene.picture.counted[name].machine.claim
    told = (
        f"delete node {name} by hand: it is drained, and its machine goes with it"
        if claim is not None
        else f"drain node {name} and delete it by hand, and its machine where it was made"
    )
    change = Change(verb="delete", api_version=NODE.api_version, kind=NODE.kind, name=name)
    return Remedy(text=told, changes=(change,))
