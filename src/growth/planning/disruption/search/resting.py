"""Which pods were moved a moment ago, and which machines were bought for them: nobody is sent in a circle.

Every move makes a cluster cheaper, so a circle needs a purchase of what was given up before. Therefore a machine that is
younger than the move of pods on it, which somebody bought for them, is not touched for a while, and moves that buy for pods
that were moved recently must save a real part.
"""

import datetime as dt
from typing import Final

from growth.cluster.shapes import CachedPod
from growth.planning.disruption.model import OwnedNode, Situation

# So long a machine that is bought for a move takes at most before its pods come.
COMING_UP: Final = dt.timedelta(minutes=2)
# Servers write whole seconds.
_SECOND: Final = dt.timedelta(seconds=1)


class Resting:
    """The memory of moves, by the UID of a pod's owner or its own. Whoever sees a workload change forgets its entry.

    `moved` are those of a moment ago.
    """

    def __init__(self, situation: Situation, settling: dt.timedelta) -> None:
        since = situation.now - settling
        self.moved = {uid: at for uid, at in situation.moved.items() if at > since}

    def any_pod(self, node: OwnedNode) -> bool:
        """Whether some pod of the node was moved there a moment ago."""
        return bool(self.moved) and any(self._arrived(pod) is not None for pod in node.pods)

    def node(self, node: OwnedNode) -> bool:
        """Whether the node was bought for pods on it that were moved: it is no older than their move."""
        if not self.moved or node.created is None:
            return False
        arrivals = [self._arrived(pod) for pod in node.pods]
        # What is bought for a move is there before it: so long a machine may take to come up.
        return any(at is not None and node.created > at - COMING_UP for at in arrivals)

    def _arrived(self, pod: CachedPod) -> dt.datetime | None:
        """When the pod was moved. One that is older than the last move of its owner's was not: only others were."""
        at = self.moved.get(pod.owner.uid if pod.owner is not None else pod.uid)
        return at if at is not None and (pod.created is None or pod.created > at - _SECOND) else None
