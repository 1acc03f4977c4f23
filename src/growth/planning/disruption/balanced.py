"""The policy `Balanced`: a move must save a share of its pool's cost that is worth the share of its pods that it moves.

Karpenter's rule: (savings ÷ pool cost) ÷ (disruption ÷ pool disruption) must be at least a half, for each pool with the
policy from which the move takes nodes. The savings of a move across pools belong to each as its nodes' prices do.
Disruption is one a node and what the evictions of its pods cost. Nodes without a known price count for nothing.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from growth.planning.disruption.candidates import disruption_cost
from growth.planning.disruption.model import OwnedNode, Situation

POLICY: Final = "Balanced"
# A move may take twice the share of the disruption that it gives back of the cost.
TOLERANCE: Final = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Total:
    """What all nodes of a pool cost an hour, and what disturbing all of them would cost, in parts of `occupants.ONE`."""

    cost: int = 0
    disruption: int = 0


def totals(situation: Situation) -> Mapping[str, Total]:
    """Of every pool that has nodes which stay and whose price is known."""
    return _sums(node for node in situation.nodes if not node.leaving)


def why_not(
    nodes: Sequence[OwnedNode], savings: int, situation: Situation, *, whole: Mapping[str, Total] | None = None
) -> str:
    """Why the policy of a pool does not allow these nodes to go for such savings; empty where none objects.

    `whole` are the `totals` of the situation, where they are known already.
    """
    whole = totals(situation) if whole is None else whole
    parts = _sums(nodes)
    price = sum(part.cost for part in parts.values())
    for name, part in sorted(parts.items()):
        pool = situation.pools.get(name)
        if pool is None or pool.spec.disruption.consolidation_policy != POLICY:
            continue
        total = whole.get(name, part)
        # All sides are multiplied out: no rounding decides.
        if savings <= 0 or TOLERANCE * savings * part.cost * total.disruption < total.cost * part.disruption * price:
            saved = 100 * savings * part.cost / (total.cost * price) if total.cost and price else 0.0
            disturbed = 100 * part.disruption / total.disruption
            return (
                f"it would save {saved:.1f} % of what NodePool {name} costs and disturb {disturbed:.1f} % of it,"
                f" more than {TOLERANCE} times as much (consolidationPolicy {POLICY})"
            )
    return ""


def _sums(nodes: Iterable[OwnedNode]) -> dict[str, Total]:
    found: dict[str, Total] = {}
    for node in nodes:
        if node.price is not None:
            total = found.get(node.pool, Total())
            found[node.pool] = Total(total.cost + node.price, total.disruption + disruption_cost(node))
    return found
