"""From a picture of the cluster to a `Situation`: which machines are ours, what they hold and cost, who is on the way out.

What only somebody who watches can know (how long a node has been quiet, who is nominated, what is being disrupted) comes
as `Facts`. Pods of a node that is being disrupted count as pods without a place, and the node as gone: whatever is
decided next leaves them theirs.
"""

import collections
import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.conditions import find, is_true
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.meta import Condition, ObjectMeta
from growth.api.placement import NO_SCHEDULE
from growth.api.policy import PodDisruptionBudget
from growth.api.pools import HARD, node_limit_mode
from growth.cluster.assemble import Picture, composed
from growth.cluster.counting import Counted
from growth.cluster.machines import Machine
from growth.cluster.replacing import excused, given_up, replaces
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import NODES, Demand, NodeView, PoolView
from growth.cluster.wanting import is_done, key_of, movable
from growth.planning.disruption import words
from growth.planning.disruption.continuous import minima
from growth.planning.disruption.continuous import moved as moved_pools
from growth.planning.disruption.model import Aside, Kept, OwnedNode, Situation
from growth.planning.occupants import DISRUPTED
from growth.planning.overlays import overlaid


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a watcher knows of a node.

    `acting`: it is being disrupted by us, and its pods are to go elsewhere. `doubt` says why it must not be touched
    whatever else is known of it, such as two claims for one machine; `foreign` whose it is where it is not ours.
    `drifted` None: as the claim's condition says. `paid_until`: an empty node stays until shortly before then.
    """

    quiet_seconds: float = 0.0
    nominated: bool = False
    holds_buffer: bool = False
    acting: bool = False
    doubt: str = ""
    foreign: str = ""
    drifted: str | None = None
    paid_until: dt.datetime | None = None


UNKNOWN: Final = Facts()
# Why nodes are no candidates that are nodes of their pool all the same.
_COUNTING: Final = frozenset({words.DOUBTFUL, words.NOT_INITIALIZED})


def situated(
    picture: Picture,
    *,
    facts: Mapping[str, Facts],
    pods: Mapping[str, Sequence[CachedPod]],
    disruption_budgets: Sequence[PodDisruptionBudget] = (),
    moved: Mapping[str, dt.datetime] | None = None,
    buffered: Sequence[Demand] = (),
    paused: bool = False,
) -> Situation:
    """`facts` and `pods` are by the node's name; a node without facts has been quiet for no time at all.

    `buffered` are the pods that CapacityBuffers stand for: they have no place as others have none, and want room.
    """
    assembled = composed(picture)
    snapshot, _ = overlaid(assembled.snapshot, picture.overlays)
    doubtful = {name for name, each in facts.items() if each.doubt}
    views = {view.name: _not_relied_on(view) if view.name in doubtful else view for view in snapshot.nodes}
    pools = {pool.metadata.name: pool for pool in picture.pools} | moved_pools(picture.growth_pools)
    claims = [each.machine.claim for each in picture.counted.values() if each.machine.claim is not None]
    # A claim whose machine is still to come is no node yet.
    there = {name: each for name, each in sorted(picture.counted.items()) if each.machine.node is not None}
    known = {name: facts.get(name, UNKNOWN) for name in there}
    others = {name: stays for name, each in there.items() if (stays := _not_ours(each.machine, known[name], pools))}
    ours = {name: each for name, each in there.items() if name not in others}
    acting = [name for name in ours if known[name].acting and views.pop(name, None) is not None]
    closing = [name for name, each in there.items() if name in acting or each.view is None]
    moving = [Demand(key_of(pod), pod.shape) for name in acting for pod in pods.get(name, ()) if _seeks(pod)]
    return Situation(
        snapshot=dataclasses.replace(
            snapshot,
            nodes=tuple(views.values()),
            pools=tuple(_for_moves(view, pools, claims) for view in snapshot.pools),
        ),
        nodes=tuple(
            _owned(each, views.get(name), known[name], pods.get(name, ()), picture.now) for name, each in ours.items()
        ),
        pools=pools,
        now=picture.now,
        # Who preempts is of more importance than whom it found running, and is tried first.
        demands=(*assembled.preempting, *assembled.demands, *moving, *buffered),
        buffered=frozenset(each.key for each in buffered),
        disruption_budgets=tuple(disruption_budgets),
        moved=moved or {},
        paused=paused,
        others=tuple(others.values()),
        aside=tuple(_aside(there, others, known)),
        minima=minima(picture.growth_pools),
        closing=tuple(_closing(there[name].machine, pods.get(name, ())) for name in closing),
        ending=frozenset(key_of(pod) for name in closing for pod in pods.get(name, ())),
    )


def _closing(machine: Machine, pods: Sequence[CachedPod]) -> NodeView:
    """A node on its way out, as kube-scheduler sees it until it is gone: nobody may come, and whoever runs there counts."""
    there = collections.Counter(pod.shape for pod in pods if not is_done(pod) and pod.deleting is None)
    return NodeView(
        name=machine.name,
        labels=machine.labels,
        taints=(*machine.taints, DISRUPTED),
        pods=tuple(there.items()),
        pool=machine.pool,
    )


def _not_relied_on(view: NodeView) -> NodeView:
    """A node in doubt: its pods are there, but no move counts on its room any more than on that of a machine to come.

    Two Nodes of one machine have its room once at most, and nobody knows which of them stays.
    """
    return dataclasses.replace(view, initialized=False)


def _for_moves(view: PoolView, pools: Mapping[str, NodePool], claims: Sequence[NodeClaim]) -> PoolView:
    """A pool as moves see it: a Soft limit counts nothing that is being replaced, and lets a pool keep what it has.

    What a move itself takes away is given back by the search. No move tries what came in vain before its time.
    """
    if view.in_vain:
        in_vain = {sort: dataclasses.replace(each, probe=each.rested) for sort, each in view.in_vain.items()}
        view = dataclasses.replace(view, in_vain=in_vain)
    pool = pools.get(str(view.ref))
    if pool is None or NODES not in view.limits or node_limit_mode(pool) == HARD:
        return view
    used = view.used.get(NODES, 0)
    own = [claim for claim in claims if claim.metadata.labels.get(names.NODE_POOL_LABEL) == view.ref.name]
    most = used + max(0, view.limits[NODES] - used + len(excused(own)))
    return dataclasses.replace(view, limits={**view.limits, NODES: most})


def _not_ours(machine: Machine, known: Facts, pools: Mapping[str, NodePool]) -> Kept | None:
    """Why a node is no candidate; None where it is ours. Whether it counts for a budget `_aside` says."""
    pool = machine.pool
    named = "" if pool is None else str(pool)

    def kept(reason: str, message: str, *, waits: bool = False, disabled: bool = False) -> Kept:
        return Kept(machine.name, named, reason, message, waits, disabled)

    if known.foreign:
        return kept(words.UNMANAGED, known.foreign, disabled=True)
    if known.doubt:
        return kept(words.DOUBTFUL, known.doubt)
    if machine.claim is None:
        return kept(words.UNMANAGED, "no NodeClaim is of this machine: it is not ours", disabled=True)
    if pool is None:
        return kept(words.UNMANAGED, f"NodeClaim {machine.claim.metadata.name} belongs to no NodePool", disabled=True)
    if pool.group != names.KARPENTER and named not in pools:
        return kept(words.GROWTH_POOL, f"NodePool {pool} removes its nodes by rules of its own", disabled=True)
    if not machine.initialized:
        return kept(words.NOT_INITIALIZED, "the machine is not initialised yet", waits=True)
    if is_true(machine.claim.status.conditions, names.INSTANCE_TERMINATING):
        return kept(words.LEAVING, "the cloud is ending its machine", waits=True)
    going = _tainted(machine, names.SCALE_DOWN_TAINT) and not _tainted(machine, names.DISRUPTED_TAINT)
    if going and not _drift(machine):  # one that has drifted need not wait for its time
        return kept(words.GROWTH_POOL, f"NodePool {pool} scales it down: it is empty", waits=True)
    return None


def _aside(there: Mapping[str, Counted], others: Mapping[str, Kept], known: Mapping[str, Facts]) -> Iterator[Aside]:
    """What budgets count of nodes that are no candidates: such as are in doubt, or came anew and are not marked yet, where
    their claim says that the machine was initialised.

    A machine of several Nodes counts once. It is disrupted where one of them is: nobody knows which of them stays.
    """
    counting = {name: there[name].machine for name, each in others.items() if each.reason in _COUNTING}
    disrupted = {
        _identity(each) for name, each in counting.items() if _leaves(each, known[name]) or not _is_ready(each)
    }
    for name, machine in counting.items():
        told = _conditions(machine)
        if is_true(told, names.INITIALIZED) and not is_true(told, names.INSTANCE_TERMINATING):
            yield Aside(others[name].pool, _identity(machine) in disrupted)


def _identity(machine: Machine) -> str:
    """What the Nodes of one machine share."""
    return (machine.node.spec.provider_id if machine.node is not None else "") or machine.name


def _is_ready(machine: Machine) -> bool:
    return machine.node is not None and machine.node.is_ready


def _owned(
    counted: Counted, view: NodeView | None, known: Facts, pods: Sequence[CachedPod], now: dt.datetime
) -> OwnedNode:
    machine = counted.machine
    node, claim, pool = machine.node, machine.claim, machine.pool
    assert node is not None
    assert claim is not None
    assert pool is not None
    return OwnedNode(
        name=machine.name,
        pool=str(pool),
        claim=claim.metadata.name,
        view=view,
        pods=pods,
        quiet_seconds=known.quiet_seconds,
        price=None if view is None else view.price,
        created=claim.metadata.creation_timestamp,
        replaces=bool(replaces(claim)),
        given_up=given_up(claim, now),
        drifted=_drift(machine) if known.drifted is None else known.drifted,
        ready=node.is_ready,
        leaving=_leaves(machine, known),
        nominated=known.nominated,
        protected=any(_annotated(each.metadata, names.DO_NOT_DISRUPT_ANNOTATION, "true") for each in (node, claim)),
        paused=any(
            each.metadata.annotations.get(names.PAUSED_ANNOTATION, "false") != "false" for each in (node, claim)
        ),
        holds_buffer=known.holds_buffer,
        ends=claim.spec.termination_grace_period is not None,
        paid_until=known.paid_until,
    )


def _leaves(machine: Machine, known: Facts) -> bool:
    """Whether it is being deleted, or somebody is disrupting it."""
    return known.acting or _tainted(machine, names.DISRUPTED_TAINT) or machine.leaving


def _tainted(machine: Machine, key: str) -> bool:
    taints = machine.node.spec.taints if machine.node is not None else ()
    return any(each.key == key and each.effect == NO_SCHEDULE for each in taints)


def _annotated(meta: ObjectMeta, key: str, value: str) -> bool:
    return meta.annotations.get(key) == value


def _conditions(machine: Machine) -> tuple[Condition, ...]:
    return machine.claim.status.conditions if machine.claim is not None else ()


def _drift(machine: Machine) -> str:
    """What the claim's condition says; a condition without a reason is one all the same."""
    found = find(_conditions(machine), names.DRIFTED)
    if found is None or found.status != "True":
        return ""
    return found.reason or names.DRIFTED


def _seeks(pod: CachedPod) -> bool:
    return not is_done(pod) and movable(pod)
