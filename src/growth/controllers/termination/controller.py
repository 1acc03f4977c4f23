"""The controller: which claims and Nodes are due, and what becomes of Nodes that people delete."""

import asyncio
from typing import Final

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.nodes import Node
from growth.api.volumes import VolumeAttachment
from growth.cluster.shapes import CachedPod
from growth.controllers.environment import Environment
from growth.controllers.ownership import serves
from growth.controllers.reconciler import Reconciler
from growth.controllers.tainting import NodeReplaced
from growth.controllers.termination.drains import Drains
from growth.controllers.termination.endings import Endings
from growth.controllers.termination.evictions import Evictions
from growth.kube.errors import NotFound
from growth.kube.store import Change, Deleted
from growth.kube.whole import every
from growth.telemetry.logs import logger

_log = logger("termination")

WORKERS: Final = 20
# How soon a Node is looked at again whose claim the cache does not show yet.
LATE_SECONDS: Final = 1.0


class Termination:
    """Ends claims that are being deleted, and the claims of Nodes that are. Nothing here decides that something goes."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._evictions = Evictions(env)
        self._drains = Drains(env, self._evictions)
        self._endings = Endings(env, self._drains)
        # Nodes of which the server said that no claim is theirs, with their uids.
        self._unclaimed: dict[str, str] = {}
        self._claims: Reconciler[str] = Reconciler(
            "nodeclaim.termination", self._end_claim, random=env.random, workers=WORKERS
        )
        self._nodes: Reconciler[str] = Reconciler(
            "node.termination", self._end_node, random=env.random, workers=WORKERS
        )
        env.state.claims.subscribe(self._on_claim)
        env.state.nodes.subscribe(self._on_node)
        env.state.pods.subscribe(self._on_pod)
        env.state.attachments.subscribe(self._on_attachment)

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed. Begins when the kinds that it reads have been listed."""
        state = self._env.state
        for informer in (state.claims, state.nodes, state.pods, state.attachments, state.volume_claims):
            await informer.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._claims.run())
            group.create_task(self._nodes.run())
            group.create_task(self._evictions.run())

    # What is due.

    def _on_claim(self, change: Change[NodeClaim]) -> None:
        claim = change.old if isinstance(change, Deleted) else change.new
        if isinstance(change, Deleted):
            self._endings.forget(claim.metadata.name)
            for node in self._nodes_of(claim):
                self._nodes.add(node.metadata.name)
        elif claim.metadata.deletion_timestamp is not None:
            self._claims.add(claim.metadata.name)

    def _on_node(self, change: Change[Node]) -> None:
        node = change.old if isinstance(change, Deleted) else change.new
        if isinstance(change, Deleted):
            self._drains.forget(node.metadata.name)
            self._unclaimed.pop(node.metadata.name, None)
        elif node.metadata.deletion_timestamp is not None:
            self._nodes.add(node.metadata.name)
        self._wake_claims(node)

    def _on_pod(self, change: Change[CachedPod]) -> None:
        pod = change.old if isinstance(change, Deleted) else change.new
        node = self._env.state.nodes.store.get(pod.node_name) if pod.node_name else None
        if node is not None:
            self._wake_claims(node)

    def _on_attachment(self, change: Change[VolumeAttachment]) -> None:
        if isinstance(change, Deleted):
            node = self._env.state.nodes.store.get(change.old.spec.node_name)
            if node is not None:
                self._wake_claims(node)

    def _wake_claims(self, node: Node) -> None:
        """Whatever happened there, the ends that wait for this Node look again."""
        for claim in self._claims_of(node):
            if claim.metadata.deletion_timestamp is not None:
                self._claims.add(claim.metadata.name)

    def _nodes_of(self, claim: NodeClaim) -> tuple[Node, ...]:
        provider_id = claim.status.provider_id
        return self._env.state.nodes.store.find("provider", provider_id) if provider_id else ()

    def _claims_of(self, node: Node) -> tuple[NodeClaim, ...]:
        """By provider ID, or by what they say of each other where one of the two does not know it."""
        store = self._env.state.claims.store
        found = store.find("provider", node.spec.provider_id) if node.spec.provider_id else ()
        if found:
            return found
        owners = (store.get(each.name) for each in node.metadata.owner_references if each.kind == NODE_CLAIM.kind)
        return tuple(claim for claim in owners if claim is not None and _is_of(node, claim))

    # Claims.

    async def _end_claim(self, name: str) -> float | None:
        claim = self._env.state.claims.store.get(name)
        if claim is None or claim.metadata.deletion_timestamp is None or not self._ours(claim):
            return None
        return await self._endings.step(claim)

    def _ours(self, claim: NodeClaim) -> bool:
        return names.TERMINATION_FINALIZER in claim.metadata.finalizers and serves(
            self._env.provider, claim.spec.node_class_ref
        )

    # Nodes.

    async def _end_node(self, name: str) -> float | None:
        node = self._env.state.nodes.store.get(name)
        if node is None or node.metadata.deletion_timestamp is None:
            return None
        if names.TERMINATION_FINALIZER not in node.metadata.finalizers:
            return None
        claims = self._claims_of(node)
        if claims:
            for claim in claims:
                if serves(self._env.provider, claim.spec.node_class_ref):
                    await self._delete_claim(claim, node)
            return None
        return await self._end_unclaimed(node) if self._served(node) else None

    def _served(self, node: Node) -> bool:
        """Whether its labels say that it is of a class of ours; others' Nodes carry the same finalizer."""
        kinds = self._env.provider.node_classes
        return any(names.node_class_label(kind.group, kind.kind) in node.metadata.labels for kind in kinds)

    async def _delete_claim(self, claim: NodeClaim, node: Node) -> None:
        """`Conflict` where somebody wrote meanwhile: no news of the Node need follow, so we must look again ourselves."""
        if claim.metadata.deletion_timestamp is not None:
            return
        try:
            fresh = await self._env.api.get(NODE_CLAIM, claim.metadata.name)
            if fresh.metadata.uid != claim.metadata.uid or fresh.metadata.deletion_timestamp is not None:
                return
            if node.spec.provider_id and fresh.status.provider_id not in {"", node.spec.provider_id}:
                return
            await self._env.api.delete(NODE_CLAIM, claim.metadata.name, uid=claim.metadata.uid)
        except NotFound:
            return
        _log.info("deleting nodeclaim of a deleted node", NodeClaim=claim.metadata.name, Node=node.metadata.name)

    async def _end_unclaimed(self, node: Node) -> float | None:
        """A Node of ours without a claim is drained and let go; its machine, if there is one, is collected."""
        if self._unclaimed.get(node.metadata.name) != node.metadata.uid:
            if await self._has_claim(node):
                return LATE_SECONDS
            self._unclaimed[node.metadata.name] = node.metadata.uid
        try:
            if not await self._endings.without_machine(node, node.spec.provider_id):
                drained = await self._drains.step(node, None, deadline=None)
                if drained.again is not None:
                    # The cloud is asked each time about a node that is not ready, and counts calls.
                    return drained.again if node.is_ready else max(drained.again, self._env.settings.delete_poll)
            await self._endings.release_node(node)
        except (NotFound, NodeReplaced):
            pass
        return None

    async def _has_claim(self, node: Node) -> bool:
        """Asked of the server: the cache may be late."""
        return any(_is_of(node, claim) for claim in await every(self._env.api, NODE_CLAIM))


def _is_of(node: Node, claim: NodeClaim) -> bool:
    """Whether the Node is of the claim's machine. That it names the claim as its owner is not enough: Nodes are copied."""
    if node.spec.provider_id and claim.status.provider_id:
        return node.spec.provider_id == claim.status.provider_id
    owned = any(each.uid == claim.metadata.uid for each in node.metadata.owner_references)
    return owned and claim.status.node_name in {"", node.metadata.name}
