"""Whether a consolidation that has waited is still worth it, at the prices of now and for the pods of now. Pure."""

from collections.abc import Iterator
from typing import Final

from growth.api.instance_types import InstanceType, Offering
from growth.cluster.snapshot import PoolView
from growth.cluster.wanting import key_of
from growth.planning.disruption import balanced
from growth.planning.disruption.candidates import in_order
from growth.planning.disruption.model import Move, Replacement, Situation
from growth.planning.disruption.room import rooms
from growth.planning.disruption.search import SearchOptions, consolidate
from growth.planning.disruption.search.ground import moving
from growth.planning.disruption.search.resting import Resting
from growth.planning.offerings import option_labels

# What would be bought instead must cost so many percent less, or the move is made as it was decided.
LESS_PERCENT: Final = 3


def changed_offers(move: Move, situation: Situation) -> Iterator[str]:
    """Types that a replacement lists and that are not sold any more where and as it asks for them, for what they were."""
    views = {view.ref: view for view in situation.snapshot.pools}
    for each in move.replacements:
        view = views.get(each.planned.pool)
        if view is None or view.problem:
            yield f"nothing can be bought in NodePool {each.planned.pool}: {view.problem if view else 'it is gone'}"
            continue
        sold = _sold(each, view)
        missing = [name for name in each.types if name not in sold]
        if missing:
            yield f"{missing[0]} is not sold any more for that price"


def too_little(move: Move, situation: Situation, options: SearchOptions) -> str:
    """Why the move would not be decided for what it saves now; empty where it would. All that it buys is for sale."""
    views = {view.ref: view for view in situation.snapshot.pools}
    nodes = [node for node in situation.nodes if node.name in move.nodes]
    paid = sum(node.price or 0 for node in nodes)
    spent = sum(min(_sold(each, views[each.planned.pool]).values()) for each in move.replacements)
    evictions = sum(len(moving(node, situation)) for node in nodes)
    moved = Resting(situation, options.settling)
    again = bool(move.replacements) and any(map(moved.any_pod, nodes))
    against = options.too_little(nodes, spent, evictions, buys=bool(move.replacements))
    if not against and again and not options.pays_again(nodes, spent):
        against = "its pods were moved a moment ago, and it saves little"
    if against:
        return f"at the prices of now {against}"
    return balanced.why_not(nodes, paid - spent, situation)


def too_much(move: Move, situation: Situation, options: SearchOptions) -> str:
    """Why less would be bought by now for its nodes; empty where that is not so, or none of its pods has left meanwhile."""
    nodes = [node for node in situation.nodes if node.name in move.nodes]
    left = {key_of(pod) for node in nodes for pod in moving(node, situation)}
    gone = sum(key not in left for each in move.replacements for key in each.planned.pods)
    if not gone:
        return ""
    found = consolidate(situation, in_order(nodes), rooms(situation, reason=move.reason), options)
    if {name for each in found.moves for name in each.nodes} != set(move.nodes):
        return ""
    spent = sum(each.planned.price for each in move.replacements)
    enough = sum(each.planned.price for again in found.moves for each in again.replacements)
    if enough * 100 > spent * (100 - LESS_PERCENT):
        return ""
    return f"{gone} of their pods left meanwhile, and for the others less would be bought"


def _sold(each: Replacement, view: PoolView) -> dict[str, int]:
    """The types that the replacement lists, as far as they are for sale as it may be bought, and what each costs at least."""
    found: dict[str, int] = {}
    for kind in view.instance_types:
        if kind.name in each.types:
            prices = [
                offering.price
                for offering in kind.offerings
                if offering.available and offering.price is not None and offering.price <= each.max_price
                if _asked_for(each, kind, offering)
            ]
            found |= {kind.name: min(prices)} if prices else {}
    return found


def _asked_for(each: Replacement, kind: InstanceType, offering: Offering) -> bool:
    """Whether the claim's requirements allow what the cloud says of the offering: its zone, its terms and the rest."""
    labels = option_labels(kind, offering)
    return all(any(map(need.allows, labels[key])) for key, need in each.planned.requirements.items() if labels.get(key))
