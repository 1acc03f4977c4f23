"""Whether a consolidation that has waited is still worth it, at the prices of now. Pure."""

from collections.abc import Iterator

from growth.api.instance_types import InstanceType, Offering
from growth.cluster.snapshot import PoolView
from growth.planning.disruption import balanced
from growth.planning.disruption.model import Move, Replacement, Situation
from growth.planning.disruption.search.ground import moving
from growth.planning.disruption.search.options import SearchOptions
from growth.planning.disruption.search.resting import Resting
from growth.planning.offerings import option_labels


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
