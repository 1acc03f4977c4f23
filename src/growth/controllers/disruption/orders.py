"""A replacement as it is ordered. Pure."""

import dataclasses
import datetime as dt
from collections.abc import Sequence

import msgspec

from growth.api import moves as intents
from growth.api.karpenter import NodeClaim, NodePool
from growth.cluster import replacing
from growth.controllers.disruption.moving import Market
from growth.controllers.provisioning.claims import BODY_BYTES, Order, body, claim
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
) -> Order:
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
        annotations={**intents.annotation(intent), **replacing.giving_up(replaces, now)},
    )
    return _short(order, currency=market.currency)


def _short(order: Order, *, currency: str) -> Order:
    """With as many of its types, cheapest first, as keep the claim small; all where `minValues` asks for many."""
    if any(need.min_values for need in order.planned.requirements.values()):
        return order
    size = len(msgspec.json.encode(body(claim(order, currency=currency))))
    types = list(order.types)
    while size > BODY_BYTES and len(types) > 1:
        size -= len(types.pop()) + 3  # its quotes and comma
    return dataclasses.replace(order, types=tuple(types))
