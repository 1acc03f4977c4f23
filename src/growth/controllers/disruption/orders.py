"""A replacement as it is ordered. Pure."""

import datetime as dt
from collections.abc import Mapping, Sequence

from growth.api import moves as intents
from growth.api.karpenter import NodeClaim, NodePool
from growth.cluster import replacing
from growth.controllers.disruption.moving import Market
from growth.controllers.provisioning.claims import Order, shortened
from growth.planning.disruption.model import Replacement


def ordered(
    replacement: Replacement,
    *,
    name: str,
    pool: NodePool,
    market: Market,
    replaces: Sequence[NodeClaim],
    intent: intents.Intent,
    now: dt.datetime,
    bought_for: Mapping[str, str],
) -> Order:
    """`bought_for` is the annotation that says for which pods it is bought."""
    view = market.views[replacement.planned.pool]
    order = Order(
        name=name,
        pool=pool,
        view=view,
        planned=replacement.planned,
        pods=replacement.planned.pods,
        types=replacement.types,
        max_price=replacement.max_price,
        replaces=tuple(claim.metadata.name for claim in replaces),
        annotations={**intents.annotation(intent), **replacing.giving_up(replaces, now), **bought_for},
    )
    return shortened(order, currency=market.currency)
