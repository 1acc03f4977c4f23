"""Consolidation: fewer or cheaper machines for the same pods.

ground         a situation compiled once; nodes taken out and pods put elsewhere, and back again
nodes          the overlays
sight, guide   which nodes are dear for the room that they give
shop           what could be bought instead
prices         what may be bought instead: Karpenter's rules of price
allowance      how many may go
resting        which pods were moved a moment ago
believing      whether kube-scheduler would find a place for everybody
consolidating  the search
replacing      machines for the pods of nodes that go in any case
"""

from collections.abc import Mapping, Sequence

from growth.planning.disruption.model import OwnedNode, Room, Situation
from growth.planning.disruption.search.consolidating import Consolidation
from growth.planning.disruption.search.options import Found, SearchOptions
from growth.planning.disruption.search.replacing import replaced

__all__ = ["Found", "SearchOptions", "consolidate", "replaced"]


def consolidate(
    situation: Situation,
    candidates: Sequence[OwnedNode],
    rooms: Mapping[str, Room],
    options: SearchOptions = SearchOptions(),  # noqa: B008 - frozen
    *,
    spare: Sequence[OwnedNode] = (),
) -> Found:
    """Which of the candidates go and what comes instead. Pure; equal input gives an equal answer.

    `spare` are nodes that go for another reason and are no longer in the situation's snapshot: one of them stays
    (`Found.needed`) where otherwise as much would be bought.
    """
    return Consolidation(situation, candidates, rooms, options, spare=spare).found()
