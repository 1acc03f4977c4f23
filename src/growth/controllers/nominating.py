"""Tells kube-scheduler which machine a pod was planned for, where it would not fill the machines so by itself.

It spreads pods where a plan packs them. A pod whose status names a node (`nominatedNodeName`) is tried there first, and until
then that room is kept from all pods of no higher priority. A pod that is tried while its node is still closed loses its
nomination, and every Node that opens makes kube-scheduler try all pods that wait. So the names are written just before a Node
opens, and Nodes that come together open together, when the names of all of them are written.

It is a hint and nothing more. Only this process remembers who was planned for what: after a restart, and wherever a write
fails, pods are bound as kube-scheduler likes, and who is left over is planned for again.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from growth.api.pods import POD
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import is_placeless, key_of
from growth.controllers.environment import Environment
from growth.kube.errors import ConfigError, Forbidden, GateClosed, KubeError
from growth.telemetry.logs import logger

_log = logger("provisioner")

# Pods that are told at the same time.
PARALLEL: Final = 32
# A Node waits at most so long for the names of others.
TOGETHER_SECONDS: Final = 0.5


class Nominating:
    """Writes the nominations that `Environment.planned` remembers."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._telling = 0
        self._told = asyncio.Event()

    async def tell(self, claim: str, node: str) -> None:
        """The pods that were planned for the claim, as far as they still wait, are nominated for its Node, which may open then."""
        waiting = [pod for pod in self._env.planned.take(claim) if self._waits(pod)]
        if not waiting:
            return
        self._telling += 1
        self._told.clear()
        try:
            told = await self._tell_all(waiting, node)
        finally:
            self._telling -= 1
            if not self._telling:
                self._told.set()
        _log.info("nominated pods for their node", NodeClaim=claim, Node=node, pods=told)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TOGETHER_SECONDS):
                await self._told.wait()

    async def _tell_all(self, waiting: Sequence[CachedPod], node: str) -> int:
        """How many of them are told."""
        left = iter(waiting)
        told = 0

        async def work() -> None:
            nonlocal told
            for pod in left:
                told += await write_name(self._env, pod, node)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(PARALLEL, len(waiting))):
                group.create_task(work())
        return told

    def _waits(self, pod: CachedPod) -> bool:
        now = self._env.state.pods.store.get(pod.name, pod.namespace)
        return now is not None and now.uid == pod.uid and is_placeless(now) and not now.nominated_node_name


async def write_name(env: Environment, pod: CachedPod, node: str | None) -> bool:
    """Whether the pod was told the node, or that it has none; where not, kube-scheduler finds it a place as any other."""
    status = {"status": {"nominatedNodeName": node}}
    # A name is taken back only from the pod that was looked at: kube-scheduler may have given it another.
    revision = pod.revision if node is None else ""
    try:
        await env.api.patch(
            POD, pod.name, status, namespace=pod.namespace, subresource="status", uid=pod.uid, revision=revision
        )
    except (GateClosed, ConfigError):
        raise
    except Forbidden as error:
        if not env.planned.refused:
            _log.error("pods cannot be nominated: allow it, or set nominatePods to false", error=str(error))
        env.planned.refused = True
        return False
    except KubeError as error:
        _log.warning("a nomination could not be written", Pod=key_of(pod), Node=node or "", error=str(error))
        return False
    return True
