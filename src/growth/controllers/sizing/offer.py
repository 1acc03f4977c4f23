"""The machine that a static pool buys: what its template allows, cheapest first, with room for the cluster's DaemonSets.

It is planned as for a pod that asks for nothing and tolerates everything, so that requirements, `minValues`, overlays,
stock and prices mean what they mean everywhere. Pure.
"""

import dataclasses
from typing import Final

import msgspec

from growth.api.karpenter import NodePool
from growth.api.placement import Toleration
from growth.api.pods import Pod, PodSpec
from growth.api.pools import PoolRef
from growth.cluster.assemble import Picture, composed
from growth.cluster.shapes import Shapes
from growth.cluster.snapshot import Demand, PoolView
from growth.controllers.provisioning.claims import Order
from growth.controllers.provisioning.passes import Bounds, bounds_of
from growth.planning.offerings import template_requirements
from growth.planning.overlays import overlaid
from growth.planning.plan import PlannedClaim
from growth.planning.requirements import RequirementError
from growth.planning.solve import Options, solve

# In no namespace, so that it is no pod of anybody's.
_KEY: Final = "/static"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A machine as it can be bought now, any number of times."""

    pool: NodePool
    view: PoolView
    planned: PlannedClaim
    bounds: Bounds
    currency: str
    percent: int

    def order(self, name: str, *, replaces: tuple[str, ...] = ()) -> Order:
        flexible = self.planned.price * self.percent // 100
        dearest = self.bounds.dearest
        return Order(
            name=name,
            pool=self.pool,
            view=self.view,
            planned=self.planned,
            pods=(),
            types=self.bounds.types,
            max_price=dearest if self.bounds.repriced else min(flexible, dearest),
            repriced=self.bounds.repriced,
            replaces=replaces,
        )


def offered(picture: Picture, pool: NodePool, options: Options) -> Offer | str:
    """What the pool buys, or why it can buy nothing now. How many it may have is not asked here."""
    dynamic = msgspec.structs.replace(pool, spec=msgspec.structs.replace(pool.spec, replicas=None, limits={}))
    alone = dataclasses.replace(
        picture, pools=(dynamic,), growth_pools=(), node_requests=(), counted={}, pending=(), held={}, lost=0
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
    (bounds,) = bounds_of(plan, listed, snapshot, {pool.metadata.name: pool}, percent=options.flexibility)
    views = {each.ref: each for each in snapshot.pools}
    return Offer(
        pool=pool,
        view=views[PoolRef.karpenter(pool.metadata.name)],
        planned=plan.claims[0],
        bounds=bounds,
        currency=snapshot.currency,
        percent=options.flexibility,
    )
