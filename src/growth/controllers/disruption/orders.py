"""A replacement as it is ordered. Pure."""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence

import msgspec

from growth.api import moves as intents
from growth.api.instance_types import InstanceType
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
    sold: Sequence[InstanceType],
    replaces: Sequence[NodeClaim],
    intent: intents.Intent,
    now: dt.datetime,
    bought_for: Mapping[str, str],
) -> Order:
    """`sold` is what the cloud sells, at its own prices. `bought_for` is the annotation that says for which pods it is bought."""
    view = market.views[replacement.planned.pool]
    listed = set(replacement.types)
    own = {kind.name: [each.price for each in kind.offerings] for kind in sold if kind.name in listed}
    order = Order(
        name=name,
        pool=pool,
        view=view,
        planned=replacement.planned,
        pods=replacement.planned.pods,
        types=replacement.types,
        max_price=replacement.max_price,
        repriced=any(
            own.get(kind.name) != [each.price for each in kind.offerings]
            for kind in view.instance_types
            if kind.name in listed
        ),
        replaces=tuple(claim.metadata.name for claim in replaces),
        annotations={**intents.annotation(intent), **replacing.giving_up(replaces, now), **bought_for},
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
