"""Evictions, one pod at a time and as often as it takes: a budget that says no now may say yes in a moment.

Each attempt looks at the pod afresh and names its uid, so that a successor of the same name is never hit.
"""

import asyncio
import dataclasses
from typing import Final

from growth.api import names
from growth.api.events import NORMAL, WARNING, regarding
from growth.api.meta import ObjectReference
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.controllers.environment import Environment
from growth.controllers.termination.metrics import EVICTION_REQUESTS, PODS_DRAINED
from growth.kube.backoff import BackoffSettings
from growth.kube.errors import ApiError, ConfigError, Conflict, GateClosed, KubeError, NotFound, TooManyRequests
from growth.kube.queue import WorkQueue
from growth.planning import occupants
from growth.telemetry.logs import logger

_log = logger("eviction-queue")

RETRY: Final = BackoffSettings(base_seconds=0.1, cap_seconds=10.0, jitter=0.2)
WORKERS: Final = 50

# How the eviction API begins its refusal of a pod with several budgets: it is a 500, and no budget will ever allow it.
_SEVERAL_BUDGETS: Final = "This pod has more than one PodDisruptionBudget"


@dataclasses.dataclass(frozen=True, slots=True)
class Eviction:
    """One pod that is to leave its node, and why, in Karpenter's words."""

    namespace: str
    name: str
    uid: str
    node: str
    reason: str

    @property
    def about(self) -> ObjectReference:
        return ObjectReference(
            api_version=POD.api_version, kind=POD.kind, namespace=self.namespace, name=self.name, uid=self.uid
        )


class Evictions:
    """`add` is idempotent: a pod that is already being evicted keeps its place and its back-off."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._queue: WorkQueue[Eviction] = WorkQueue(env.random, retry=RETRY)
        self._held: dict[str, None] = {}

    def add(self, eviction: Eviction) -> None:
        if eviction.uid not in self._held:
            self._held[eviction.uid] = None
            self._queue.add(eviction)

    def __len__(self) -> int:
        return len(self._held)

    async def run(self) -> None:
        """Evicts until cancelled, or until the gate is closed."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work(), name="eviction-queue")

    async def _work(self) -> None:
        while True:
            eviction = await self._queue.get()
            try:
                if await self._evicted(eviction):
                    self._queue.forget(eviction)
                    self._held.pop(eviction.uid, None)
                else:
                    self._queue.retry(eviction)
            except (GateClosed, ConfigError):
                raise
            except KubeError as error:
                again = self._queue.retry(eviction)
                _log.warning(
                    "will try again", Pod=f"{eviction.namespace}/{eviction.name}", error=str(error), again=again
                )
            except Exception:  # noqa: BLE001 - an odd pod must not keep the others from leaving
                again = self._queue.retry(eviction)
                _log.exception("a bug in us; this pod waits", Pod=f"{eviction.namespace}/{eviction.name}", again=again)
            finally:
                self._queue.done(eviction)

    async def _evicted(self, eviction: Eviction) -> bool:
        """Whether nothing is left to do for the pod."""
        env = self._env
        try:
            pod = await env.api.get(POD, eviction.name, namespace=eviction.namespace)
        except NotFound:
            return True
        if pod.metadata.uid != eviction.uid or not occupants.evictable(env.state.shapes.keep(pod), env.clock.now()):
            return True
        try:
            await env.api.evict(eviction.name, namespace=eviction.namespace, uid=eviction.uid)
        except (NotFound, Conflict) as error:  # it is gone, or another has its name
            env.metrics.add(EVICTION_REQUESTS, code=str(error.code))
            return True
        except ApiError as error:
            env.metrics.add(EVICTION_REQUESTS, code=str(error.code))
            if isinstance(error, TooManyRequests):
                self._tell_node(eviction, "evicting pod violates a PDB")
                return False
            if error.message.startswith(_SEVERAL_BUDGETS):
                self._tell_node(eviction, "eviction does not support multiple PDBs")
                return False
            raise
        env.metrics.add(EVICTION_REQUESTS, code="200")
        env.metrics.add(PODS_DRAINED, reason=eviction.reason)
        env.events.event(eviction.about, names.EVICTED, f"Evicted pod: {eviction.reason}", type=NORMAL)
        return True

    def _tell_node(self, eviction: Eviction, why: str) -> None:
        node = self._env.state.nodes.store.get(eviction.node)
        if node is not None:
            message = f"Failed to drain node, {why}, Pod={eviction.namespace}/{eviction.name}"
            self._env.events.event(regarding(NODE, node.metadata), names.FAILED_DRAINING, message, type=WARNING)
