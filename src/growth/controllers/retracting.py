"""Takes a nomination back that came to nothing: its node is open, others have the room, and the pod still waits for it.

kube-scheduler forgets a name when it tries the pod and finds no place. But a name that is written while it tries the pod, or
after that, stays: the pod is tried again only when something changes that may help it, or five minutes later, and until then
nobody plans for it, as for all who wait for pods of lower priority to leave. A name without a pod that leaves is a name in
vain, whoever wrote it.
"""

from typing import Final

from growth.api import names
from growth.api.nodes import Node
from growth.api.requests import requests_of
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import is_done, is_placeless, key_of
from growth.controllers.environment import Environment
from growth.controllers.nominating import write_name
from growth.controllers.reconciler import Reconciler
from growth.kube.store import Change, Deleted, Key
from growth.telemetry.logs import logger
from growth.units.resources import add, amounts, fits, subtract

_log = logger("provisioner")

# How often a pod that has a name is looked at.
LOOK_SECONDS: Final = 2.0
# kube-scheduler may be behind: where there is room, or no such node, the name stands for so long after that was seen.
PATIENCE_SECONDS: Final = 30.0


class Retracting:
    """Works pod by pod until cancelled."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._since: dict[Key, tuple[str, float]] = {}  # which node a pod names that could have had it since then
        self._reconciler: Reconciler[Key] = Reconciler("pod.nomination", self._act, random=env.random, workers=4)
        env.state.pods.subscribe(self._on_pod)

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed."""
        for informer in (self._env.state.pods, self._env.state.nodes):
            await informer.wait_synced()
        await self._reconciler.run()

    def _on_pod(self, news: Change[CachedPod]) -> None:
        if not isinstance(news, Deleted) and _is_promised(news.new):
            self._reconciler.add_after(news.key, LOOK_SECONDS)

    async def _act(self, key: Key) -> float | None:
        pod = self._env.state.pods.store.get(key[1], key[0])
        if pod is None or not _is_promised(pod):
            self._since.pop(key, None)
            return None
        node = self._env.state.nodes.store.get(pod.nominated_node_name)
        if node is not None and (names.INITIALIZED_LABEL not in node.metadata.labels or self._makes_room(pod)):
            return LOOK_SECONDS  # a node that is closed or none of ours, or one that is being emptied for the pod
        if (node is None or self._has_room(pod, node)) and not self._has_lasted(key, pod.nominated_node_name):
            return LOOK_SECONDS
        if not await write_name(self._env, pod, None):
            return None if self._env.planned.refused else LOOK_SECONDS
        self._since.pop(key, None)
        _log.info("a nomination came to nothing", Pod=key_of(pod), Node=pod.nominated_node_name)
        return None

    def _makes_room(self, pod: CachedPod) -> bool:
        return any(each.deleting is not None and _priority(each) < _priority(pod) for each in self._there(pod))

    def _has_room(self, pod: CachedPod, node: Node) -> bool:
        taken = add(*(requests_of(each.shape.spec) for each in self._there(pod)))
        return fits(requests_of(pod.shape.spec), subtract(amounts(node.status.allocatable), taken))

    def _there(self, pod: CachedPod) -> list[CachedPod]:
        return [each for each in self._env.state.pods.store.find("node", pod.nominated_node_name) if not is_done(each)]

    def _has_lasted(self, key: Key, node: str) -> bool:
        now = self._env.clock.monotonic()
        known, since = self._since.get(key, (node, now))
        self._since[key] = (node, since if known == node else now)
        return known == node and now - since >= PATIENCE_SECONDS


def _is_promised(pod: CachedPod) -> bool:
    return bool(pod.nominated_node_name) and is_placeless(pod)


def _priority(pod: CachedPod) -> int:
    return pod.shape.spec.priority or 0
