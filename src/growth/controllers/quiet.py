"""How long no pod has come to a node or left it. Kept in memory: writing it down would be a write for every pod.

After a restart nothing is known of before, so a node has been quiet for no longer than we have been watching.
"""

from growth.api.nodes import Node
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import is_mirror, of_daemon_set
from growth.controllers.environment import Environment
from growth.kube.store import Added, Change, Changed, Deleted
from growth.planning import occupants


class Quiet:
    """Follows pods from its construction on. Pods of DaemonSets and static pods come and go with their node: not counted."""

    def __init__(self, env: Environment) -> None:
        self._clock = env.clock
        self._began = env.clock.monotonic()
        self._last: dict[str, float] = {}
        env.state.pods.subscribe(self._on_pod)
        env.state.nodes.subscribe(self._on_node)

    def seconds(self, node: str) -> float:
        return self._clock.monotonic() - max(self._began, self._last.get(node, self._began))

    def _on_pod(self, change: Change[CachedPod]) -> None:
        pod = change.old if isinstance(change, Deleted) else change.new
        if not pod.node_name or of_daemon_set(pod) or is_mirror(pod):
            return
        now = self._clock.monotonic()
        if isinstance(change, Added):
            at = now
            if pod.scheduled_since is not None:  # it may have been there for long before we came
                at -= max(0.0, (self._clock.now() - pod.scheduled_since).total_seconds())
        elif isinstance(change, Changed):
            old = change.old
            came = not old.node_name
            left = occupants.active(old) and not occupants.active(pod)
            if not came and not left:
                return
            at = now
        else:
            if not occupants.active(pod):
                return  # its leaving was seen when it began
            at = now
        self._last[pod.node_name] = max(at, self._last.get(pod.node_name, at))

    def _on_node(self, change: Change[Node]) -> None:
        if isinstance(change, Deleted):
            self._last.pop(change.key[1], None)
