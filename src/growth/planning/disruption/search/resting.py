"""Which pods were moved a moment ago, and so stay where they are: nobody is sent in a circle.

Moves that only remove nodes make a cluster smaller every time and cannot go in a circle, unless machines are bought in
between. So pods that were moved recently keep out of moves that buy, and a machine that is younger than they are, which
somebody bought for them, is not touched at all.
"""

import datetime as dt

from growth.cluster.shapes import CachedPod
from growth.planning.disruption.model import OwnedNode, Situation


class Resting:
    """The memory of moves, by the UID of a pod's owner or its own. Whoever sees a workload change forgets its entry."""

    def __init__(self, situation: Situation, settling: dt.timedelta) -> None:
        since = situation.now - settling
        self._since = since
        self._owners = {uid for uid, at in situation.moved.items() if at > since}

    def any_pod(self, node: OwnedNode) -> bool:
        """Whether some pod of the node was moved there a moment ago."""
        return bool(self._owners) and any(self._recent(pod) for pod in node.pods)

    def node(self, node: OwnedNode) -> bool:
        """Whether the node is as young as pods on it that were moved."""
        return node.created is not None and node.created > self._since and self.any_pod(node)

    def _recent(self, pod: CachedPod) -> bool:
        uid = pod.owner.uid if pod.owner is not None else pod.uid
        # A pod that has been there for longer was not moved: only others of its owner were.
        return uid in self._owners and (pod.created is None or pod.created > self._since)
