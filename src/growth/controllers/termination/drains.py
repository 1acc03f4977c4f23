"""Empties Nodes that go: marks them, asks or makes their pods leave, and waits for pods and volumes.

What the cache says suffices to evict; that a Node is empty is believed only of a fresh list, and not before the scheduler
must have seen the taint.
"""

import dataclasses
import datetime as dt
from typing import Final

from growth.api import names
from growth.api.conditions import find
from growth.api.events import NORMAL, WARNING, regarding
from growth.api.karpenter import NodeClaim
from growth.api.meta import ObjectReference
from growth.api.nodes import NODE, Node
from growth.api.pods import POD
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import key_of
from growth.controllers import tainting
from growth.controllers.environment import Environment
from growth.controllers.fresh import pods_on
from growth.controllers.termination.evictions import Eviction, Evictions
from growth.controllers.unreadable import tell_unreadable
from growth.kube.errors import Conflict, NotFound
from growth.planning import occupants
from growth.planning.draining import DrainStep, drain_step, forced
from growth.telemetry.logs import logger
from growth.units import print_time

_log = logger("node.termination")

# So long after the taint the scheduler may still bind a pod to the Node, because it has not seen it.
LEAST_DRAIN_SECONDS: Final = 5.0
# A Node that cannot be drained is told about at once after that time, and then so often.
TELL_SECONDS: Final = 120.0

# Why pods of a Node are evicted whose claim nobody disrupted: people or their programs deleted it.
FORCEFUL: Final = "Forceful Termination"


@dataclasses.dataclass(slots=True)
class _Draining:
    """What is remembered of a Node while it is drained; monotonic seconds. A restart begins anew, which is safe."""

    uid: str
    since: float
    told: float


@dataclasses.dataclass(frozen=True, slots=True)
class Drained:
    """How far it is: `again` is in how many seconds to look again, None when nothing is left to wait for.

    `waits` is one of the reasons of conditions: Draining, AwaitingVolumeDetachment, TerminationGracePeriodElapsed, or
    empty.
    """

    again: float | None
    waits: str = ""


class Drains:
    """All Nodes that are being drained."""

    def __init__(self, env: Environment, evictions: Evictions) -> None:
        self._env = env
        self._evictions = evictions
        self._draining: dict[str, _Draining] = {}

    def forget(self, node: str) -> None:
        self._draining.pop(node, None)

    async def step(self, node: Node, claim: NodeClaim | None, *, deadline: dt.datetime | None) -> Drained:
        """Does what can be done now towards an empty Node."""
        env = self._env
        name = node.metadata.name
        await self.close(node)
        memory = self._remember(node)
        step = drain_step(env.state.pods.store.find("node", name), now=env.clock.now(), deadline=deadline)
        if not step.drained:
            await self._act(node, claim, step, deadline)
            self._tell(node, memory, step)
            return Drained(env.settings.drain_retry, names.DRAINING)
        left = memory.since + LEAST_DRAIN_SECONDS - env.clock.monotonic()
        if left > 0:
            return Drained(left)
        pods = await pods_on(env, name)
        step = drain_step(pods, now=env.clock.now(), deadline=deadline)
        if not step.drained:
            await self._act(node, claim, step, deadline)
            return Drained(env.settings.drain_retry, names.DRAINING)
        return self._volumes(node, pods, deadline)

    async def close(self, node: Node) -> None:
        """From now on no pod comes there."""
        if not tainting.marked(node):
            await tainting.mark(self._env.api, node)
            _log.info("tainted node", Node=node.metadata.name, **{"taint.Key": names.DISRUPTED_TAINT})

    def _remember(self, node: Node) -> _Draining:
        now = self._env.clock.monotonic()
        memory = self._draining.get(node.metadata.name)
        if memory is None or memory.uid != node.metadata.uid:
            memory = _Draining(node.metadata.uid, now, now + LEAST_DRAIN_SECONDS - TELL_SECONDS)
            self._draining[node.metadata.name] = memory
        return memory

    async def _act(self, node: Node, claim: NodeClaim | None, step: DrainStep, deadline: dt.datetime | None) -> None:
        for pod in step.evict:
            self._evictions.add(Eviction(pod.namespace, pod.name, pod.uid, node.metadata.name, _reason(claim)))
        for pod in step.protected:
            until = occupants.protection(pod, self._env.clock.now()).until
            if until is not None:
                message = f"The {names.DO_NOT_DISRUPT_ANNOTATION} grace period will elapse at {print_time(until)}"
                self._env.events.event(_about(pod), names.DO_NOT_DISRUPT_UNTIL, message, type=NORMAL)
        for pod in step.evict:
            fault = occupants.protection(pod, self._env.clock.now()).fault
            if fault:
                tell_unreadable(self._env, pod, fault)
        if deadline is not None:
            for each in step.force:
                await self._force(each.pod, deadline)

    async def _force(self, pod: CachedPod, deadline: dt.datetime) -> None:
        try:
            fresh = await self._env.api.get(POD, pod.name, namespace=pod.namespace)
            if fresh.metadata.uid != pod.uid:
                return
            # A clock that was ahead may have been put right while we asked.
            due = forced(pod, now=self._env.clock.now(), deadline=deadline)
            if due is None:
                return
            grace = due.grace_seconds
            await self._env.api.delete(POD, pod.name, namespace=pod.namespace, uid=pod.uid, grace_seconds=grace)
        except (NotFound, Conflict):  # gone, or replaced by another of its name
            return
        own = pod.shape.spec.termination_grace_period_seconds
        message = (
            f"Deleting the pod to accommodate the terminationTime {print_time(deadline)} of the node. The pod was granted"
            f" {grace} seconds of grace-period of its {own} terminationGracePeriodSeconds. This bypasses the PDB of the"
            " pod and the do-not-disrupt annotation."
        )
        self._env.events.event(_about(pod), names.DISRUPTED, message, type=NORMAL)
        _log.info("deleting pod", Pod=key_of(pod), grace_seconds=grace, deadline=print_time(deadline))

    def _tell(self, node: Node, memory: _Draining, step: DrainStep) -> None:
        now = self._env.clock.monotonic()
        if now - memory.told < TELL_SECONDS:
            return
        memory.told = now
        example = ""
        if step.protected:
            example = f" (the annotation {names.DO_NOT_DISRUPT_ANNOTATION} protects {key_of(step.protected[0])})"
        message = f"Failed to drain node, {len(step.waiting)} pods are waiting to be evicted{example}"
        self._env.events.event(regarding(NODE, node.metadata), names.FAILED_DRAINING, message, type=WARNING)

    def _volumes(self, node: Node, pods: list[CachedPod], deadline: dt.datetime | None) -> Drained:
        """Volumes of pods that stay on the Node to its end are not waited for."""
        env = self._env
        if not (env.state.attachments.synced and env.state.volume_claims.synced):
            return Drained(env.settings.drain_retry, names.AWAITING_VOLUME_DETACHMENT)
        now = env.clock.now()
        kept = {volume for pod in pods if not occupants.drainable(pod, now) for volume in self._volumes_of(pod)}
        pending = sorted(
            each.metadata.name
            for each in env.state.attachments.store.find("node", node.metadata.name)
            if each.spec.source.persistent_volume_name and each.spec.source.persistent_volume_name not in kept
        )
        if not pending:
            return Drained(None)
        if deadline is not None and now >= deadline:
            return Drained(None, names.TERMINATION_GRACE_PERIOD_ELAPSED)
        shown = ", ".join(pending[:5]) + (f" and {len(pending) - 5} others" if len(pending) > 5 else "")
        env.events.event(
            regarding(NODE, node.metadata),
            names.AWAITING_VOLUME_DETACHMENT,
            f"Waiting for volumes to be detached: {shown}",
            type=NORMAL,
        )
        return Drained(env.settings.drain_retry, names.AWAITING_VOLUME_DETACHMENT)

    def _volumes_of(self, pod: CachedPod) -> list[str]:
        found = []
        for volume in pod.shape.spec.volumes:
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
            elif volume.ephemeral is not None:
                name = f"{pod.name}-{volume.name}"
            else:
                continue
            held = self._env.state.volume_claims.store.get(name, pod.namespace)
            if held is not None and held.spec.volume_name:
                found.append(held.spec.volume_name)
        return found


def _reason(claim: NodeClaim | None) -> str:
    told = find(claim.status.conditions, names.DISRUPTION_REASON) if claim is not None else None
    return told.reason if told is not None and told.status == "True" else FORCEFUL


def _about(pod: CachedPod) -> ObjectReference:
    return ObjectReference(
        api_version=POD.api_version, kind=POD.kind, namespace=pod.namespace, name=pod.name, uid=pod.uid
    )
