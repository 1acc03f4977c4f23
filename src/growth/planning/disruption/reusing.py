"""Nothing is bought beside a node of the kind that goes: an empty node takes the place of a replacement like it.

Emptiness comes first and knows nothing of what the others will need. Where a move then asks for a machine, and an empty
node that was to go is one of its types, where it is wanted, and costs no more, that node stays and takes the pods.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from growth.api import names
from growth.cluster.snapshot import PoolView
from growth.planning import occupants
from growth.planning.disruption.model import Move, OwnedNode, Replacement, Situation
from growth.planning.taints import leaving_soon


def reused(moves: Sequence[Move], situation: Situation) -> tuple[tuple[Move, ...], frozenset[str]]:
    """The moves with as few purchases as that allows, and the empty nodes that stay for it.

    `situation` is the one before any move. A move that loses all its nodes is gone.
    """
    if not any(move.replacements for move in moves):
        return tuple(moves), frozenset()
    owned = {node.name: node for node in situation.nodes}
    pools = {str(view.ref): view for view in situation.snapshot.pools}
    free = sorted(
        (owned[name] for move in moves if move.reason == names.EMPTY for name in move.nodes if _usable(owned[name])),
        key=lambda node: (node.price or 0, node.name),
    )
    spared: set[str] = set()
    changed = []
    for move in moves:
        bought: list[Replacement] = []
        taken: list[OwnedNode] = []
        for replacement in move.replacements:
            found = next(
                (node for node in free if node.name not in spared and _does_for(node, replacement, pools)), None
            )
            if found is None:
                bought.append(replacement)
            else:
                spared.add(found.name)
                taken.append(found)
        changed.append(_instead(move, bought, taken))
    return tuple(_without(changed, spared, owned)), frozenset(spared)


def _usable(node: OwnedNode) -> bool:
    """Whether pods may be sent there at all; pods that are free to lose would be in the way."""
    if node.view is None or node.price is None or not node.ready or node.drifted:
        return False
    return not any(occupants.reschedulable(pod) for pod in node.pods)


def _does_for(node: OwnedNode, replacement: Replacement, pools: Mapping[str, PoolView]) -> bool:
    """Whether the node is what would be bought: of its types, as its pods need it, with room, and not dearer."""
    planned, view = replacement.planned, node.view
    assert view is not None
    pool = pools.get(node.pool)
    if pool is None or planned.pool != pool.ref or node.instance_type not in replacement.types:
        return False
    if node.price is None or node.price > planned.price:
        return False
    labels = view.labels
    if not set(itertools.filterfalse(leaving_soon, view.taints)) <= set(pool.taints):
        return False
    if any(not requirement.meets(labels.get(key)) for key, requirement in planned.requirements.items()):
        return False
    return all(view.allocatable.get(name, 0) >= asked for name, asked in planned.requests.items())


def _instead(move: Move, bought: Sequence[Replacement], taken: Sequence[OwnedNode]) -> Move:
    if not taken:
        return move
    spent = sum(each.planned.price for each in move.replacements) - sum(each.planned.price for each in bought)
    return dataclasses.replace(
        move,
        replacements=tuple(bought),
        savings=None if move.savings is None else move.savings + spent,
        destinations=tuple(sorted({*move.destinations, *(node.name for node in taken)})),
    )


def _without(moves: Sequence[Move], spared: set[str], owned: Mapping[str, OwnedNode]) -> list[Move]:
    """Emptiness without the nodes that stay."""
    found = []
    for move in moves:
        left = tuple(name for name in move.nodes if name not in spared)
        if len(left) == len(move.nodes):
            found.append(move)
        elif left:
            prices = [owned[name].price for name in left]
            saved = None if None in prices else sum(price or 0 for price in prices)
            found.append(dataclasses.replace(move, nodes=left, savings=saved))
    return found
