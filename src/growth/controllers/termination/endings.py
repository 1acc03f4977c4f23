"""One claim from its deletion to its disappearance, step by step; every step can be repeated.

The machine goes only when its Node is drained, the Node's finalizer only when the machine is gone, the claim's finalizer
last: as long as there is a machine there is a claim that says so.
"""

import dataclasses
import datetime as dt
from collections.abc import Sequence
from typing import Final

from growth.api import names
from growth.api.clouds import CloudError, CloudUnavailable, MachineNotFound
from growth.api.conditions import find, is_true
from growth.api.edits import remove_finalizer, set_annotations, set_condition
from growth.api.events import WARNING, regarding
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.api.meta import LabelSelector, selector_text
from growth.api.nodes import NODE, Node
from growth.api.pools import PoolRef
from growth.controllers.environment import Environment
from growth.controllers.ownership import pool_of
from growth.controllers.tainting import NodeReplaced
from growth.controllers.termination import metrics
from growth.controllers.termination.drains import Drained, Drains
from growth.kube.changes import change
from growth.kube.errors import Conflict, NotFound
from growth.kube.whole import every
from growth.telemetry.logs import logger
from growth.units import Duration, DurationError, TimestampError, parse_time, print_time

_log = logger("nodeclaim.termination")

# How soon a claim is looked at again whose machine is being made at this moment.
LAUNCHING_SECONDS: Final = 1.0
# How soon it is asked again whether another process leads, where the server said so.
UNSURE_SECONDS: Final = 5.0
# After the cloud has accepted to take a machine down it is asked again so soon, then half as often each time.
FIRST_POLL_SECONDS: Final = 1.0


class _Replaced(Exception):
    """The claim that was meant is gone, and another has its name."""


@dataclasses.dataclass(slots=True)
class _Memory:
    """What is remembered of a claim; monotonic seconds. Losing it costs a repetition and nothing else."""

    uid: str
    deleted_at: float | None = None  # when the cloud first accepted to take the machine down
    asked_at: float | None = None  # when the cloud was last asked about the machine
    asked: int = 0  # how often, since it accepted
    requested: set[str] = dataclasses.field(default_factory=set)  # UIDs of Nodes whose deletion was asked for
    told: str = ""  # the conditions that were written last
    drained: bool = False  # all pods and volumes have left its Nodes
    elapsed: bool = False  # the deadline passed before all volumes were detached


class Endings:
    """Performs `step` for whichever claim is due."""

    def __init__(self, env: Environment, drains: Drains) -> None:
        self._env = env
        self._drains = drains
        self._memory: dict[str, _Memory] = {}

    def forget(self, claim: str) -> None:
        self._memory.pop(claim, None)

    async def step(self, claim: NodeClaim) -> float | None:
        """Does what can be done now; in how many seconds to come again, None when the claim is gone."""
        if claim.metadata.uid in self._env.launches.under_way:
            return LAUNCHING_SECONDS
        memory = self._memory.get(claim.metadata.name)
        if memory is None or memory.uid != claim.metadata.uid:
            memory = self._memory[claim.metadata.name] = _Memory(claim.metadata.uid)
        nodes = await self._nodes_of(claim)
        try:
            if not self._is_drained(claim, memory) and not self._to_drain(claim, nodes):
                nodes = await self._registered_nodes(claim) or nodes
            deadline = await self._deadline(claim, nodes)
            if not self._is_drained(claim, memory):
                waits = await self._drain(claim, nodes, memory, deadline)
                if waits is not None:
                    return waits
            again = await self._take_down(claim, memory)
            if again is not None:
                return again
            for node in nodes:
                await self.release_node(node)
            await self._release_claim(claim)
        except (_Replaced, NotFound):  # the claim is gone: whoever took its finalizer away has also told us so
            pass
        self.forget(claim.metadata.name)
        return None

    # The deadline.

    async def _deadline(self, claim: NodeClaim, nodes: Sequence[Node]) -> dt.datetime | None:
        """Until when pods may take; written down at the first look, so that a changed clock or spec does not move it."""
        text = claim.metadata.annotations.get(names.TERMINATION_TIMESTAMP_ANNOTATION)
        if text is None:
            text = await self._annotate(claim, nodes)
        if text is None:
            return None
        try:
            return parse_time(text)
        except TimestampError as error:
            message = f"Annotation {names.TERMINATION_TIMESTAMP_ANNOTATION} is ignored: {error}"
            self._tell(claim, names.FAILED_TERMINATION, message)
            return None

    async def _annotate(self, claim: NodeClaim, nodes: Sequence[Node]) -> str | None:
        period = claim.spec.termination_grace_period
        if period is None or claim.metadata.deletion_timestamp is None:
            return None
        try:
            text = print_time(claim.metadata.deletion_timestamp + Duration.parse(period).timedelta)
        except (DurationError, OverflowError) as error:
            self._tell(claim, names.FAILED_TERMINATION, f"terminationGracePeriod is ignored: {error}")
            return None

        def edit(draft: Json) -> None:
            _check(draft, claim)
            # Whoever wrote one meanwhile (repair wants a machine gone at once) was right.
            if names.TERMINATION_TIMESTAMP_ANNOTATION not in (draft["metadata"].get("annotations") or {}):
                set_annotations(draft, {names.TERMINATION_TIMESTAMP_ANNOTATION: text})

        after = await change(self._env.api, NODE_CLAIM, claim.metadata.name, edit, guarded=True)
        text = str(after["metadata"]["annotations"][names.TERMINATION_TIMESTAMP_ANNOTATION])
        _log.info("annotated nodeclaim", NodeClaim=claim.metadata.name, deadline=text)
        message = f"Pods that are still there at {text} are deleted by force"
        self._tell(claim, names.TERMINATION_GRACE_PERIOD_EXPIRING, message)
        for node in nodes:
            about = regarding(NODE, node.metadata)
            self._env.events.event(about, names.TERMINATION_GRACE_PERIOD_EXPIRING, message, type=WARNING)
        return text

    # Nodes.

    async def _nodes_of(self, claim: NodeClaim) -> Sequence[Node]:
        """The Nodes of the machine. One that the claim names and the cache lacks is asked for: the cache may be late.

        A Node of that name without a provider ID is another's, unless it says that this very claim owns it.
        """
        provider_id, name = claim.status.provider_id, claim.status.node_name
        found = list(self._env.state.nodes.store.find("provider", provider_id)) if provider_id else []
        if name and all(node.metadata.name != name for node in found):
            try:
                node = await self._env.api.get(NODE, name)
            except NotFound:
                return found
            owned = any(each.uid == claim.metadata.uid for each in node.metadata.owner_references)
            if node.spec.provider_id == provider_id != "" or (owned and not node.spec.provider_id):
                found.append(node)
        return found

    async def _registered_nodes(self, claim: NodeClaim) -> Sequence[Node]:
        """What the server says of Nodes that somebody has registered, for a claim that knows of none.

        The one who leads no more may have opened the Node to pods and come no further, and the cache may be late.
        """
        fresh = await self._env.api.get(NODE_CLAIM, claim.metadata.name)
        _check_uid(fresh, claim)
        if not fresh.status.provider_id:
            return ()
        labels = fresh.metadata.labels
        wanted: dict[str, str] = {names.REGISTERED_LABEL: "true"}
        wanted |= {key: labels[key] for key in (names.NODE_POOL_LABEL, names.POOL_LABEL) if key in labels}
        listed = await every(self._env.api, NODE, labels=selector_text(LabelSelector(match_labels=wanted)))
        return [node for node in listed if node.spec.provider_id == fresh.status.provider_id]

    @staticmethod
    def _to_drain(claim: NodeClaim, nodes: Sequence[Node]) -> list[Node]:
        """A Node that never was ours (not registered, without our finalizer) and that keeps pods away until it is has none.

        Where the cloud makes the Nodes nothing keeps them away: pods come as soon as such a Node is ready, and somebody may be
        about to register it who has not heard that the claim goes. It is closed too, so that he comes too late.
        """
        registered = is_true(claim.status.conditions, names.REGISTERED)
        return [
            node
            for node in nodes
            if registered or names.TERMINATION_FINALIZER in node.metadata.finalizers or _is_unguarded(node)
        ]

    def _is_drained(self, claim: NodeClaim, memory: _Memory) -> bool:
        return memory.deleted_at is not None or is_true(claim.status.conditions, names.INSTANCE_TERMINATING)

    async def _drain(
        self, claim: NodeClaim, nodes: Sequence[Node], memory: _Memory, deadline: dt.datetime | None
    ) -> float | None:
        waits: list[Drained] = []
        for node in self._to_drain(claim, nodes):
            try:
                if await self._is_gone(claim, node, memory):
                    continue
                waits.append(await self._drains.step(node, claim, deadline=deadline))
                await self._request_deletion(node, memory)
            except (NotFound, NodeReplaced):  # the Node is gone, and the cache does not know it yet
                waits.append(Drained(self._env.settings.drain_retry))
        again = [each.again for each in waits if each.again is not None]
        reasons = {each.waits for each in waits}
        if again:
            await self._tell_waiting(claim, memory, reasons)
            return min(again)
        memory.elapsed = names.TERMINATION_GRACE_PERIOD_ELAPSED in reasons
        if waits and not memory.drained:
            memory.drained = True
            self._env.metrics.add(metrics.NODES_DRAINED, float(len(waits)), nodepool=_pool(claim))
        return None

    async def _request_deletion(self, node: Node, memory: _Memory) -> None:
        """Once, and only where our finalizer keeps the Node until its machine is gone."""
        uid, ours = node.metadata.uid, names.TERMINATION_FINALIZER in node.metadata.finalizers
        if node.metadata.deletion_timestamp is None and ours and uid not in memory.requested:
            try:
                await self._env.api.delete(NODE, node.metadata.name, uid=uid)
            except Conflict as error:
                raise NodeReplaced(str(error)) from error
            memory.requested.add(uid)

    async def _is_gone(self, claim: NodeClaim, node: Node, memory: _Memory) -> bool:
        """Asked only so often: clouds count calls.

        The Node is closed before that. A cloud that denies a machine may be wrong, and its deletion takes its time: if the Node
        became ready meanwhile, pods would come to a machine that goes.
        """
        if not claim.status.provider_id or node.is_ready:
            return False
        now = self._env.clock.monotonic()
        if memory.asked_at is not None and now - memory.asked_at < self._env.settings.delete_poll:
            return False
        memory.asked_at = now
        await self._drains.close(node)
        return await self.without_machine(node, claim.status.provider_id)

    async def without_machine(self, node: Node, provider_id: str) -> bool:
        """Whether there is nothing left to drain: the Node is not ready and the cloud knows no such machine."""
        if not provider_id or node.is_ready:
            return False
        try:
            await self._env.provider.get(provider_id)
        except MachineNotFound:
            return not (await self._env.api.get(NODE, node.metadata.name)).is_ready
        except CloudError:
            return False  # not known, which is not gone: drain as usual
        return False

    async def release_node(self, node: Node) -> None:
        """Lets go of a Node whose machine is gone; one without our finalizer is deleted."""
        env = self._env
        name = node.metadata.name
        finalized = False

        def edit(draft: Json) -> None:
            nonlocal finalized
            finalized = draft["metadata"]["uid"] == node.metadata.uid and names.TERMINATION_FINALIZER in (
                draft["metadata"].get("finalizers") or ()
            )
            if finalized:
                remove_finalizer(draft, names.TERMINATION_FINALIZER)

        try:
            if node.metadata.deletion_timestamp is None:
                await env.api.delete(NODE, name, uid=node.metadata.uid)
            await change(env.api, NODE, name, edit)
        except NotFound:
            finalized = False
        except Conflict:
            # Another Node has the name: its machine is not ours. Or somebody writes without pause: the next look tells.
            if (await env.api.get(NODE, name)).metadata.uid == node.metadata.uid:
                raise
            return
        self._drains.forget(name)
        if finalized:
            self._count_node(node)
            _log.info("deleted node", Node=name)

    def _count_node(self, node: Node) -> None:
        env, labels = self._env, node.metadata.labels
        pool = labels.get(names.NODE_POOL_LABEL, "")
        if names.POOL_LABEL in labels:
            pool = str(PoolRef.growth(labels[names.POOL_LABEL]))
        now = env.clock.now()
        env.metrics.add(metrics.NODES_TERMINATED, nodepool=pool, zone=labels.get(names.ZONE_LABEL, ""))
        began = node.metadata.deletion_timestamp or now
        env.metrics.observe(metrics.NODE_TERMINATION_SECONDS, (now - began).total_seconds(), nodepool=pool)
        born = node.metadata.creation_timestamp or now
        env.metrics.observe(metrics.NODE_LIFETIME_SECONDS, (now - born).total_seconds(), nodepool=pool)

    # The machine.

    async def _take_down(self, claim: NodeClaim, memory: _Memory) -> float | None:
        """None when the cloud says that the machine is gone. Asked for every claim: an unknown launch may have happened."""
        env = self._env
        now = env.clock.monotonic()
        if memory.deleted_at is not None and memory.asked_at is not None:
            left = memory.asked_at + self._poll(memory) - now
            if left > 0:
                return left  # whatever woke us: clouds count calls
        memory.asked_at = now
        fresh = await env.api.get(NODE_CLAIM, claim.metadata.name)
        _check_uid(fresh, claim)
        try:
            await env.provider.delete(fresh)
        except MachineNotFound:
            again = await self._may_yet_come(fresh)
            if again is None:
                self._count_machine(fresh, memory)
            return again
        except CloudError as error:
            if not isinstance(error, CloudUnavailable):
                self._tell(claim, names.FAILED_TERMINATION, f"The machine cannot be deleted: {error}")
            raise
        if memory.deleted_at is None:
            memory.deleted_at = env.clock.monotonic()
        elif memory.told != names.INSTANCE_TERMINATING:  # a machine that goes at once needs no such write
            await self._tell_terminating(fresh, drained=memory.drained, elapsed=memory.elapsed)
            memory.told = names.INSTANCE_TERMINATING
        memory.asked += 1
        return self._poll(memory)

    async def _may_yet_come(self, claim: NodeClaim) -> float | None:
        """After how many seconds to ask again for a machine that may be on its way; None where no purchase can be."""
        if claim.status.provider_id:
            return None
        launches = self._env.launches
        left = launches.over_at(claim.metadata.uid) - self._env.clock.monotonic()
        if left > 0:
            return left
        return UNSURE_SECONDS if await launches.may_be_anothers() else None

    def _poll(self, memory: _Memory) -> float:
        """How long to wait before the cloud is asked again: soon at first, since some machines go at once."""
        return min(self._env.settings.delete_poll, FIRST_POLL_SECONDS * 2.0 ** min(memory.asked - 1, 16))

    def _count_machine(self, claim: NodeClaim, memory: _Memory) -> None:
        told = find(claim.status.conditions, names.INSTANCE_TERMINATING)
        if memory.deleted_at is not None:
            seconds = self._env.clock.monotonic() - memory.deleted_at
        elif told is not None and told.last_transition_time is not None:
            seconds = (self._env.clock.now() - told.last_transition_time).total_seconds()
        else:
            return
        self._env.metrics.observe(metrics.INSTANCE_TERMINATION_SECONDS, seconds, nodepool=_pool(claim))

    # The claim.

    async def _tell_waiting(self, claim: NodeClaim, memory: _Memory, reasons: set[str]) -> None:
        """The conditions while something is waited for; written when that changes."""
        reason = names.DRAINING if names.DRAINING in reasons else next(iter(sorted(reasons - {""})), "")
        if not reason or memory.told == reason:
            return
        now = self._env.clock.now()

        def edit(draft: Json) -> None:
            _check(draft, claim)
            if reason == names.DRAINING:
                set_condition(draft, names.DRAINED, status="Unknown", reason=reason, message=reason, now=now)
                return
            set_condition(draft, names.DRAINED, status="True", now=now)
            set_condition(draft, names.VOLUMES_DETACHED, status="Unknown", reason=reason, message=reason, now=now)

        await change(self._env.api, NODE_CLAIM, claim.metadata.name, edit, subresource="status")
        memory.told = reason

    async def _tell_terminating(self, claim: NodeClaim, *, drained: bool, elapsed: bool) -> None:
        """One write for all three conditions: the machine is on its way out."""
        now = self._env.clock.now()

        def edit(draft: Json) -> None:
            _check(draft, claim)
            if drained:
                set_condition(draft, names.DRAINED, status="True", now=now)
                set_condition(
                    draft,
                    names.VOLUMES_DETACHED,
                    status="False" if elapsed else "True",
                    reason=names.TERMINATION_GRACE_PERIOD_ELAPSED if elapsed else "",
                    message=names.TERMINATION_GRACE_PERIOD_ELAPSED if elapsed else "",
                    now=now,
                )
            set_condition(draft, names.INSTANCE_TERMINATING, status="True", now=now)

        await change(self._env.api, NODE_CLAIM, claim.metadata.name, edit, subresource="status")

    async def _release_claim(self, claim: NodeClaim) -> None:
        env = self._env

        def edit(draft: Json) -> None:
            _check(draft, claim)
            remove_finalizer(draft, names.TERMINATION_FINALIZER)

        await change(env.api, NODE_CLAIM, claim.metadata.name, edit)
        env.launches.ended(claim.metadata.uid)
        _log.info("deleted nodeclaim", NodeClaim=claim.metadata.name, provider_id=claim.status.provider_id)
        labels = claim.metadata.labels
        env.metrics.add(
            metrics.NODECLAIMS_TERMINATED,
            nodepool=_pool(claim),
            capacity_type=labels.get(names.CAPACITY_TYPE_LABEL, ""),
            zone=labels.get(names.ZONE_LABEL, ""),
        )
        if claim.metadata.deletion_timestamp is not None:
            seconds = (env.clock.now() - claim.metadata.deletion_timestamp).total_seconds()
            env.metrics.observe(metrics.NODECLAIM_TERMINATION_SECONDS, seconds, nodepool=_pool(claim))

    def _tell(self, claim: NodeClaim, reason: str, message: str) -> None:
        self._env.events.event(regarding(NODE_CLAIM, claim.metadata), reason, message, type=WARNING)


def _check(draft: Json, claim: NodeClaim) -> None:
    if draft["metadata"]["uid"] != claim.metadata.uid:
        raise _Replaced


def _check_uid(fresh: NodeClaim, claim: NodeClaim) -> None:
    if fresh.metadata.uid != claim.metadata.uid:
        raise _Replaced


def _is_unguarded(node: Node) -> bool:
    """Whether pods may come although nobody has registered the Node."""
    return all(taint.key != names.UNREGISTERED_TAINT for taint in node.spec.taints)


def _pool(claim: NodeClaim) -> str:
    pool = pool_of(claim)
    return "" if pool is None else str(pool)
