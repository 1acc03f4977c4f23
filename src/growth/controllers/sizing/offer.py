"""The machine that a static pool buys, as orders for it: what it may become, and at what price at most. Pure."""

import dataclasses

from growth.api.karpenter import NodePool
from growth.api.pools import PoolRef
from growth.cluster.assemble import Picture
from growth.cluster.snapshot import PoolView
from growth.controllers.provisioning.claims import Order
from growth.controllers.provisioning.passes import Bounds, bounds_of
from growth.planning.disruption.static import sold
from growth.planning.plan import PlannedClaim
from growth.planning.solve import Options


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
    """What the pool buys, or why it can buy nothing now."""
    found = sold(picture, pool, options)
    if isinstance(found, str):
        return found
    plan, snapshot = found.plan, found.snapshot
    (bounds,) = bounds_of(plan, found.listed, snapshot, {pool.metadata.name: pool}, percent=options.flexibility)
    views = {each.ref: each for each in snapshot.pools}
    return Offer(
        pool=pool,
        view=views[PoolRef.karpenter(pool.metadata.name)],
        planned=plan.claims[0],
        bounds=bounds,
        currency=snapshot.currency,
        percent=options.flexibility,
    )
