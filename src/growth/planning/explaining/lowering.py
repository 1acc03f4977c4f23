"""What goes because pools have too many machines, and what is bought for the pods that lose their place by it.

Nothing is bought in advance for them: the machines drain, and the pods wait as new ones do. So the plan is made once more
with them, pool by pool, and what it costs more is taken off what the pool saves. Pods that wait and would have gone to such a
machine lose their place as well, and so does whoever has to make room for either.
"""

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence, Set

from growth.api import names
from growth.api.pools import PoolRef
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import Demand
from growth.cluster.wanting import is_done, key_of, movable
from growth.planning import occupants
from growth.planning.disruption.model import Move, Replacement
from growth.planning.plan import Plan, PlannedClaim


@dataclasses.dataclass(frozen=True, slots=True)
class Lowering:
    """One move a pool. `plan` is that of everybody without a place when all of their nodes are gone, and `unplaced` are those
    who have none then and had one before.
    """

    moves: tuple[Move, ...]
    plan: Plan
    unplaced: tuple[str, ...]


def lowered(
    going: Mapping[PoolRef, Sequence[str]],
    plan: Plan,
    *,
    planned: Callable[[Set[str], Sequence[Demand]], Plan],
    pods: Mapping[str, Sequence[CachedPod]],
    prices: Mapping[str, int | None],
) -> Lowering:
    """`planned` makes the plan without some nodes, with these pods beside those that wait. `pods` and `prices` are by node."""
    moves: list[Move] = []
    hopeless = {each.pod for each in plan.unplaced}
    gone: set[str] = set()
    moving: dict[str, Demand] = {}
    for pool, nodes in going.items():
        own = {key_of(pod): pod for name in nodes for pod in pods.get(name, ())}
        gone |= set(nodes)
        moving |= {key: Demand(key, pod.shape) for key, pod in own.items() if not is_done(pod) and movable(pod)}
        before, plan = plan, planned(gone, [*moving.values()])
        unsettled = own.keys() | {pod for filled in before.filled for pod in filled.pods}
        paid = [prices.get(name) for name in nodes]
        more = plan.hourly - before.hourly
        moves.append(
            Move(
                reason=names.OVERPROVISIONED,
                nodes=tuple(nodes),
                pools=(str(pool),),
                replacements=tuple(
                    Replacement(planned=each, types=each.instance_types, max_price=each.max_price)
                    for each in _added(before, plan, unsettled)
                ),
                savings=None if None in paid else sum(price or 0 for price in paid) - more,
                evictions=sum(map(occupants.reschedulable, own.values())),
            )
        )
    return Lowering(tuple(moves), plan, tuple(each.pod for each in plan.unplaced if each.pod not in hopeless))


def _added(before: Plan, after: Plan, pods: Set[str]) -> list[PlannedClaim]:
    """The machines for these pods that were not bought without them; who shares one with pods that wait is no reason for it."""
    known = collections.Counter(map(_sort, before.claims))
    found = []
    for claim in sorted(after.claims, key=lambda each: not pods.isdisjoint(each.pods)):
        if known[_sort(claim)]:
            known[_sort(claim)] -= 1
        elif not pods.isdisjoint(claim.pods):
            found.append(claim)
    return found


def _sort(claim: PlannedClaim) -> tuple[object, ...]:
    return claim.pool, claim.instance_type, claim.price
