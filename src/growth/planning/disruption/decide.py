"""All of disruption in Karpenter's order: first the empty nodes, then the drifted, then those that are not needed.

Unlike there, a method that acts does not end the decision: the next may act too, on nodes that the ones before it left
alone and with the room that they left. Equal input gives an equal decision.
"""

import dataclasses
from collections.abc import Sequence

from growth.api import names
from growth.planning import occupants
from growth.planning.disruption import words
from growth.planning.disruption.candidates import empty, why_kept
from growth.planning.disruption.model import Decided, Kept, Move, OwnedNode, Room, Situation
from growth.planning.disruption.room import rooms


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to decide."""


def decide(situation: Situation, options: Options = Options()) -> Decided:  # noqa: ARG001, B008 - frozen
    """What goes now, and why the rest stays."""
    return _Decision(situation).run()


class _Decision:
    """One decision, method by method: each takes nodes away and leaves the others with a reason."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._moves: list[Move] = []
        self._kept: dict[str, Kept] = {each.node: each for each in situation.others}
        self._room: dict[tuple[str, str], Room] = {}

    def run(self) -> Decided:
        self._empty()
        return Decided(
            moves=tuple(self._moves),
            kept=tuple(self._kept[name] for name in sorted(self._kept)),
            room=self._room,
        )

    def _rooms(self, reason: str) -> dict[str, Room]:
        found = dict(rooms(self._situation, reason=reason))
        self._room.update({(reason, pool): room for pool, room in found.items()})
        return found

    def _empty(self) -> None:
        """All empty nodes that may go, the dearest first; one move a pool."""
        room = self._rooms(names.EMPTY)
        left = {pool: each.delete for pool, each in room.items()}
        going: dict[str, list[OwnedNode]] = {}
        for node in sorted(self._situation.nodes, key=_dearest_first):
            if node.leaving or not empty(node.pods):
                continue
            stays = why_kept(node, self._situation, reason=names.EMPTY)
            if stays is None and left[node.pool] == 0:
                told = room[node.pool].blocked or f"the budget of NodePool {node.pool} for reason Empty is used up"
                stays = Kept(node.name, node.pool, words.BUDGET, told)
            if stays is not None:
                self._kept[node.name] = stays
                continue
            allowed = left[node.pool]
            left[node.pool] = None if allowed is None else allowed - 1
            going.setdefault(node.pool, []).append(node)
        for pool in sorted(going):
            self._moves.append(removal(going[pool], reason=names.EMPTY))


def removal(nodes: Sequence[OwnedNode], *, reason: str) -> Move:
    """Nodes of one pool that go without anything in their place."""
    prices = [node.price for node in nodes]
    return Move(
        reason=reason,
        nodes=tuple(node.name for node in nodes),
        pools=tuple(dict.fromkeys(node.pool for node in nodes)),
        savings=None if None in prices else sum(price or 0 for price in prices),
        evictions=sum(occupants.reschedulable(pod) for node in nodes for pod in node.pods),
    )


def _dearest_first(node: OwnedNode) -> tuple[bool, int, str]:
    return (node.price is None, -(node.price or 0), node.name)
