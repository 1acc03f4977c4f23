"""Whose turn it is where more nodes of a pool have drifted than one decision tries: each try is a plan of its own.

One half of the tries is for the oldest, whatever came of them before. The other half goes round: each decision goes on where
the last one ended, so that nobody waits for ever behind nodes whose pods have no place.
"""

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from growth.planning.disruption.model import Age, Kept, OwnedNode, Turn

# So many drifted nodes of a pool are tried before it waits for the next decision, and so many of them are the oldest.
TRIES: Final = 20
OLDEST: Final = TRIES // 2
_LONG_AGO: Final = dt.datetime.min.replace(tzinfo=dt.UTC)


def age(node: OwnedNode) -> Age:
    """The oldest first; ties go by name."""
    return (node.created or _LONG_AGO, node.name)


def in_turn(nodes: Sequence[OwnedNode], turn: Turn) -> list[OwnedNode]:
    """Drifted nodes of a pool, the oldest first, in the order in which they are tried."""
    if len(nodes) <= TRIES or turn.last is None:
        return list(nodes)
    round_of = nodes[OLDEST:]
    next_ones = [node for node in round_of if age(node) > turn.last]
    return [*nodes[:OLDEST], *next_ones, *round_of[: len(round_of) - len(next_ones)]]


def next_turn(
    nodes: Sequence[OwnedNode], turn: Turn, *, in_vain: Collection[str], said: Mapping[str, Kept]
) -> Turn | None:
    """How the next decision goes on, when of these nodes some were tried `in_vain` and this was `said` of them.

    One that was tried and may go is the first of the next round too, if it is still there. None where all can be tried.
    """
    if len(nodes) <= TRIES:
        return None
    kept = {
        node.name: each
        for node in nodes
        if (each := said[node.name] if node.name in in_vain else turn.kept.get(node.name)) is not None
    }
    oldest = {node.name for node in nodes[:OLDEST]}
    passed = [node for node in in_turn(nodes, turn) if node.name in in_vain and node.name not in oldest]
    return Turn(last=age(passed[-1]) if passed else turn.last, kept=kept)
