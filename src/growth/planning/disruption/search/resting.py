"""Which pods were moved a moment ago, and which machines were bought for them: nobody is sent in a circle.

Every move makes a cluster cheaper, so a circle needs a purchase of what was given up before. Therefore a machine that the
move of pods on it has bought, or that is younger than that move, so that somebody bought it for them, is not touched for a
while, and moves that buy for pods that were moved recently must save a real part.
"""

import datetime as dt
from typing import Final

from growth.planning.disruption.model import OwnedNode, Situation

# So long a machine that is bought for a move takes at most before its pods come.
COMING_UP: Final = dt.timedelta(minutes=2)
# Servers tell in whole seconds when something was created.
_WHOLE: Final = dt.timedelta(seconds=1)


class Resting:
    """The memory of moves. Whoever sees a workload change forgets those of its pods.

    `moved` are the pods that came by a move of a moment ago, by UID, and when that was.
    """

    def __init__(self, situation: Situation, settling: dt.timedelta) -> None:
        since = situation.now - settling
        self.moved = {uid: at for uid, at in situation.moved.items() if at > since}

    def any_pod(self, node: OwnedNode) -> bool:
        """Whether some pod of the node was moved there a moment ago."""
        return bool(self.moved) and any(pod.uid in self.moved for pod in node.pods)

    def node(self, node: OwnedNode) -> bool:
        """Whether the node was bought for pods on it that were moved: by their move, or after it.

        What merely came up shortly before, for others, and took them is like any other: in a cluster that has just grown, all
        nodes are.
        """
        if not self.moved or node.created is None:
            return False
        arrivals = [self.moved.get(pod.uid) for pod in node.pods]
        # What is bought for a move is there before it: so long a machine may take to come up.
        before = COMING_UP if node.replaces else _WHOLE
        return any(at is not None and node.created > at - before for at in arrivals)
