"""The machine that a static pool buys, as orders for it: what it may become, and at what price at most. Pure."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from growth.api.karpenter import NodePool
from growth.api.pools import PoolRef
from growth.cluster.assemble import Picture
from growth.cluster.snapshot import PoolView
from growth.controllers.provisioning.claims import Order
from growth.controllers.provisioning.passes import types_of
from growth.planning.disruption.static import sold
from growth.planning.plan import PlannedClaim
from growth.planning.solve import Options


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A machine as it can be bought now, any number of times."""

    pool: NodePool
    view: PoolView
    planned: PlannedClaim
    types: tuple[str, ...]
    currency: str

    def order(
        self, name: str, *, replaces: tuple[str, ...] = (), annotations: Mapping[str, str] = MappingProxyType({})
    ) -> Order:
        return Order(
            name=name,
            pool=self.pool,
            view=self.view,
            planned=self.planned,
            pods=(),
            types=self.types,
            max_price=self.planned.max_price,
            replaces=replaces,
            annotations=annotations,
        )


def offered(picture: Picture, pool: NodePool, options: Options) -> Offer | str:
    """What the pool buys, or why it can buy nothing now."""
    found = sold(picture, pool, options)
    if isinstance(found, str):
        return found
    plan, snapshot = found.plan, found.snapshot
    (types,) = types_of(plan, snapshot, {pool.metadata.name: pool})
    views = {each.ref: each for each in snapshot.pools}
    return Offer(
        pool=pool,
        view=views[PoolRef.karpenter(pool.metadata.name)],
        planned=plan.claims[0],
        types=types,
        currency=snapshot.currency,
    )
