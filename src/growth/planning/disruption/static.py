"""Static pools: which of their drifted machines are replaced now, and by what. Pure.

A static pool keeps `replicas` machines, as far as `limits.nodes` allows. Drifted ones are replaced within the budget: the
new machine first, where the limit leaves room or is Soft. Where a Hard limit leaves none, one is deleted, and only when
its machine is gone another is bought: one at a time, and never while the pool lacks a machine for another reason.

What it buys is what its template allows, cheapest first, with room for the cluster's DaemonSets. It is planned as for a pod
that asks for nothing and tolerates everything, so that requirements, `minValues`, overlays, stock and prices mean what they
mean everywhere.
"""

import dataclasses
import datetime as dt
from collections.abc import Sequence
from typing import Final

import msgspec

from growth.api import names
from growth.api.conditions import is_true
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.placement import Toleration
from growth.api.pods import Pod, PodSpec
from growth.api.pools import SOFT, node_limit_mode
from growth.cluster.assemble import Picture, composed
from growth.cluster.replacing import excused, replaces
from growth.cluster.shapes import CachedPod, Shapes
from growth.cluster.snapshot import Demand, Snapshot
from growth.planning.disruption.candidates import empty
from growth.planning.disruption.surplus import Standing, limit_of, most
from growth.planning.offerings import template_requirements
from growth.planning.overlays import overlaid
from growth.planning.plan import Plan
from growth.planning.requirements import RequirementError
from growth.planning.solve import Options, solve

# In no namespace, so that it is no pod of anybody's.
_KEY: Final = "/static"


def in_place(pool: NodePool) -> bool:
    """Whether drifted machines of a static pool are deleted before others are bought: its limit leaves no room beside."""
    limit = limit_of(pool)
    return (
        pool.spec.replicas is not None
        and limit is not None
        and limit <= pool.spec.replicas
        and node_limit_mode(pool) != SOFT
    )


def followed(found: Standing) -> dict[str, NodeClaim]:
    """What came for each of those that are replaced, by its name, where that is up."""
    by = {name: claim for claim in (*found.replaced, *found.staying) for name in replaces(claim)}
    return {
        claim.metadata.name: by[claim.metadata.name]
        for claim in found.replaced
        if is_true(by[claim.metadata.name].status.conditions, names.INITIALIZED)
    }


@dataclasses.dataclass(frozen=True, slots=True)
class Renewal:
    """Drifted machines to replace now: `first` are bought for before they go, `gone` goes before another is bought."""

    first: tuple[NodeClaim, ...] = ()
    gone: NodeClaim | None = None


def rank(claim: str, pods: Sequence[CachedPod], created: dt.datetime | None) -> tuple[bool, str, str]:
    """In which order drifted machines go: empty ones first, then the oldest."""
    return (not empty(pods), created.isoformat() if created else "", claim)


def renewal(pool: NodePool, found: Standing, drifted: Sequence[NodeClaim], *, budget: int | None) -> Renewal:
    """`drifted` are staying ones that may go, in order; `budget` is what the pool's budgets leave, None for any number."""
    if pool.spec.replicas is None or len(found.staying) != most(pool) or budget == 0 or not drifted:
        return Renewal()  # a pool that grows or shrinks does that first
    number = len(drifted) if budget is None else min(budget, len(drifted))
    limit = limit_of(pool)
    if limit is None:
        return Renewal(first=tuple(drifted[:number]))
    if node_limit_mode(pool) == SOFT:
        return Renewal(first=_beside(found, drifted, limit)[:number])
    room = limit - found.count
    if room > 0:
        return Renewal(first=tuple(drifted[: min(number, room)]))
    settled = all(is_true(claim.status.conditions, names.INITIALIZED) for claim in found.staying)
    if found.leaving or found.replaced or not settled or not in_place(pool):
        return Renewal()
    return Renewal(gone=drifted[0])


def _beside(found: Standing, drifted: Sequence[NodeClaim], limit: int) -> tuple[NodeClaim, ...]:
    """Those for which others may come beside a Soft limit: what goes does not count, but for one machine only.

    Where a replacement failed and is still there, the next one counts.
    """
    claims = (*found.staying, *found.replaced, *found.leaving)
    going = excused(claims)
    room = limit - (len(claims) - len(going))
    chosen: list[NodeClaim] = []
    for claim in drifted:
        free = claim.metadata.name not in going
        if free or room > 0:
            chosen.append(claim)
            room -= not free
    return tuple(chosen)


@dataclasses.dataclass(frozen=True, slots=True)
class Sold:
    """A plan with the one machine that can be bought now, any number of times, and what it was made of."""

    plan: Plan
    snapshot: Snapshot


def sold(picture: Picture, pool: NodePool, options: Options) -> Sold | str:
    """What the pool buys, or why it can buy nothing now. How many it may have is not asked here."""
    dynamic = msgspec.structs.replace(pool, spec=msgspec.structs.replace(pool.spec, replicas=None, limits={}))
    alone = dataclasses.replace(
        picture,
        pools=(dynamic,),
        growth_pools=(),
        node_requests=(),
        counted={},
        pending=(),
        held={},
        promised={},
        lost=0,
    )
    listed = composed(alone).snapshot
    (view,) = listed.pools
    if view.problem:
        return view.problem
    try:
        template_requirements(view)
    except RequirementError as error:
        return f"its requirements cannot be read: {error}"
    snapshot, _ = overlaid(listed, picture.overlays)
    anything = Pod(spec=PodSpec(tolerations=(Toleration(operator="Exists"),)))
    plan = solve(snapshot, (Demand(_KEY, Shapes().keep(anything).shape),), options)
    if not plan.claims:
        return "; ".join(reason.message for each in plan.unplaced for reason in each.reasons) or "nothing can be bought"
    return Sold(plan, snapshot)
