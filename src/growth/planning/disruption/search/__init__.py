"""Consolidation: fewer or cheaper machines for the same pods.

ground         a situation compiled once; nodes taken out and pods put elsewhere, and back again
nodes          the overlays
sight, guide   which nodes are dear for the room that they give
shop           what could be bought instead
prices         what may be bought instead: Karpenter's rules of price
allowance      how many may go
resting        which pods were moved a moment ago
asked          the question of a search, by which its answer is found again
course         a decision as it grows
exchanging     nodes that are replaced
departing      whom kube-scheduler would leave without a place if nodes went
believing      steps that buy more or are taken back until it would leave nobody
turns          who leaves before whom, and counts where it is until then
orders         in which orders they may come back
besides        machines for those who would have none
forgone        what node limits keep that would be replaced without them
consolidating  the search
hindered       what is in the way where it found nothing, for whoever explains
replacing      machines for the pods of nodes that go in any case
"""

from growth.planning.disruption.search.consolidating import consolidate
from growth.planning.disruption.search.hindered import told_apart
from growth.planning.disruption.search.options import Found, SearchOptions
from growth.planning.disruption.search.replacing import replaced

__all__ = ["Found", "SearchOptions", "consolidate", "replaced", "told_apart"]
