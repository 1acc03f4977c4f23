"""Makes the Node of a claim's machine the claim's own, and says when it can take pods."""

from typing import Final

import msgspec

from growth.api import names
from growth.api.conditions import is_true
from growth.api.decoding import convert
from growth.api.events import WARNING, regarding
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.controllers.environment import Environment
from growth.controllers.health import RegistrationHealth
from growth.controllers.lifecycle import decide, edits
from growth.controllers.lifecycle.claims import Claims
from growth.controllers.lifecycle.memory import TOGETHER_SECONDS, Memory
from growth.controllers.nominating import Nominating
from growth.controllers.ownership import pool_of
from growth.kube.changes import change
from growth.kube.errors import Conflict
from growth.planning.readiness import Obstacle, obstacle_to_use
from growth.telemetry.logs import about, logger
from growth.telemetry.metrics import Counter

_log = logger("nodeclaim.lifecycle")

NODES_CREATED: Final = Counter(
    "karpenter_nodes_created_total", "Nodes that registered and became a NodeClaim's.", labels=("nodepool", "zone")
)


class Registration:
    """What the lifecycle does with a claim whose machine has its Node."""

    def __init__(self, env: Environment, *, memory: Memory, health: RegistrationHealth) -> None:
        self._env = env
        self._claims = Claims(env.api)
        self._memory = memory
        self._health = health
        self._nominating = Nominating(env)

    async def register(self, claim: NodeClaim, node: Node) -> float | None:
        """Takes the Node. That, and the claim's condition, may wait a moment: a node that is soon usable is told of once."""
        if self._memory.taken_at(claim) is not None and names.REGISTERED_LABEL in node.metadata.labels:
            return await self._follow_taken(claim, node)
        if not is_true(claim.status.conditions, names.REGISTERED) and decide.comes_up(claim, node):
            left = self._memory.seconds_to_appear(claim)
            if left is not None:
                return left
        if opens(claim, node):
            await self._nominating.tell(claim.metadata.name, node.metadata.name)
        unguarded = False
        obstacle: Obstacle | None = None

        def take(draft: Json) -> None:
            nonlocal unguarded, obstacle
            _must_be(draft, node)
            if not edits.is_taken(draft, claim):  # synced once: what others changed since then is theirs
                unguarded = edits.lacks_unregistered_taint(draft)
                edits.take_node(draft, claim)
            edits.mark_registered(draft)
            obstacle = obstacle_to_use(claim, _node(draft))
            if obstacle is None:
                edits.mark_initialized(draft)

        with about(Node=node.metadata.name, provider_id=claim.status.provider_id):
            taken = _node(await change(self._env.api, NODE, node.metadata.name, take))
            if unguarded and self._env.provider.guards_nodes:
                self._complain_of_missing_taint(claim)
            anew = is_true(claim.status.conditions, names.REGISTERED)  # its kubelet made it again
            if not anew and self._memory.took(claim):
                _log.info("registered nodeclaim")
                self._count_registered(claim, taken)
                if obstacle is not None:
                    return TOGETHER_SECONDS
            await self._tell_registered(claim, taken, obstacle)
        return None

    async def _follow_taken(self, claim: NodeClaim, node: Node) -> float | None:
        """The Node is ours and the claim does not say so yet."""
        obstacle = obstacle_to_use(claim, node)
        if obstacle is None:
            await self.initialize(claim, node)
            return None
        left = self._memory.seconds_until_told(claim)
        if left is None:
            await self._tell_registered(claim, node, obstacle)
        return left

    async def _tell_registered(self, claim: NodeClaim, node: Node, obstacle: Obstacle | None) -> None:
        now = self._env.clock.now()
        registered = self._memory.taken_at(claim) or now
        known = self._memory.written(claim)
        told = await self._claims.change_status(
            claim,
            lambda draft: edits.tell_registered(
                draft, node=node.metadata.name, obstacle=obstacle, registered=registered, now=now
            ),
            known=known,
        )
        if told is known:
            return  # the cache does not show yet what we wrote before
        self._memory.wrote(claim, told)
        if obstacle is None and not is_true(claim.status.conditions, names.INITIALIZED):
            _log.info("initialized nodeclaim", allocatable=node.status.allocatable)

    def _complain_of_missing_taint(self, claim: NodeClaim) -> None:
        _log.error("node claim registration error", error=f"missing taint {names.UNREGISTERED_TAINT}")
        self._env.events.event(
            regarding(NODE_CLAIM, claim.metadata),
            names.UNREGISTERED_TAINT_MISSING,
            f"The Node came without the taint {names.UNREGISTERED_TAINT}: pods may have been bound to it before its labels and"
            " taints were there; let the kubelet register with it",
            type=WARNING,
        )

    def _count_registered(self, claim: NodeClaim, node: Node) -> None:
        pool = pool_of(claim)
        zone = node.metadata.labels.get(names.ZONE_LABEL, "")
        self._env.metrics.add(NODES_CREATED, nodepool="" if pool is None else str(pool), zone=zone)
        if pool is not None:
            self._health.record(pool, ok=True)

    async def initialize(self, claim: NodeClaim, node: Node) -> None:
        """One label, and so no read before it: the uid says that it is this Node."""
        await self._nominating.tell(claim.metadata.name, node.metadata.name)
        with about(Node=node.metadata.name, provider_id=claim.status.provider_id):
            mark = {"metadata": {"labels": {names.INITIALIZED_LABEL: "true"}}}
            marked = node
            if names.INITIALIZED_LABEL not in node.metadata.labels:
                marked = await self._env.api.patch(NODE, node.metadata.name, mark, uid=node.metadata.uid)
            if not is_true(claim.status.conditions, names.INITIALIZED):
                await self._tell_registered(claim, marked, None)


def opens(claim: NodeClaim, node: Node) -> bool:
    """Whether nothing but our own mark keeps pods away from the Node."""
    taints = tuple(each for each in node.spec.taints if each.key != names.UNREGISTERED_TAINT)
    spec = msgspec.structs.replace(node.spec, taints=taints)
    return not claim.spec.startup_taints and obstacle_to_use(claim, msgspec.structs.replace(node, spec=spec)) is None


def _must_be(draft: Json, node: Node) -> None:
    """`Conflict` unless the draft is of the very Node that was decided on, and of the same machine."""
    if draft["metadata"]["uid"] != node.metadata.uid:
        raise Conflict(f"another Node is called {node.metadata.name} by now")
    if draft.get("spec", {}).get("providerID") != node.spec.provider_id:
        raise Conflict(f"the Node {node.metadata.name} belongs to another machine by now")


def _node(raw: Json) -> Node:
    return convert(raw, Node)
