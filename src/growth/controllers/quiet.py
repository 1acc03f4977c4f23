"""How long no pod has come to a node or left it. Kept in memory: writing it down would be a write for every pod.

After a restart nothing is known of before, so a node has been quiet for no longer than we have been watching, unless
somebody who watched before us has written it down.
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
        self._recalled: dict[str, float] = {}  # since when a node was quiet before we began
        env.state.pods.subscribe(self._on_pod)
        env.state.nodes.subscribe(self._on_node)

    def seconds(self, node: str) -> float:
        began = self._recalled.get(node, self._began)
        return self._clock.monotonic() - max(began, self._last.get(node, began))

    def recall(self, node: str, seconds: float) -> None:
        """It was quiet for so long already, as others saw it; what we have seen ourselves counts all the same."""
        since = self._clock.monotonic() - max(0.0, seconds)
        if since < self._began:
            self._recalled[node] = since

    def _on_pod(self, change: Change[CachedPod]) -> None:
        pod = change.old if isinstance(change, Deleted) else change.new
        if not pod.node_name or not counts(pod):
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
            self._recalled.pop(change.key[1], None)


def counts(pod: CachedPod) -> bool:
    """Whether it comes and goes by itself, and not with its node."""
    return not of_daemon_set(pod) and not is_mirror(pod)
