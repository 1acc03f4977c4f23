"""Tells people of Nodes that carry our marks and belong to no claim: one event on the Node, and nothing else.

Such a Node is nobody's: it is neither changed nor removed. Usually its kubelet has no provider ID and so cannot be
matched, or somebody copied labels. A Node with the provider ID of a claim's machine that has another Node is told of too.
"""

from typing import Final

from growth.api import names
from growth.api.events import WARNING, regarding
from growth.api.nodes import NODE, Node
from growth.cluster.machines import own_node
from growth.controllers.environment import Environment
from growth.controllers.reconciler import Reconciler
from growth.kube.store import Change, Deleted
from growth.telemetry.logs import logger

_log = logger("nodeclaim.lifecycle")

# Cloud controllers set the provider ID a while after a kubelet registered, and a claim learns its own at launch.
PATIENCE_SECONDS: Final = 120.0

PROVIDER_ID_MISSING: Final = "ProviderIDMissing"
NODE_CLAIM_NOT_FOUND: Final = "NodeClaimNotFound"
PROVIDER_ID_TAKEN: Final = "ProviderIDTaken"


def complaint(node: Node, *, claimed: bool, own: Node | None = None) -> tuple[str, str] | None:
    """Reason and message for a Node with our marks that no claim owns; None where there is nothing to say.

    `own` is the Node of the machine that this one says to be, where that is known.
    """
    if own is not None and own.metadata.uid != node.metadata.uid and node.metadata.deletion_timestamp is None:
        return PROVIDER_ID_TAKEN, (
            f"Node has the provider ID {node.spec.provider_id} of a machine whose Node is {own.metadata.name}: it is left"
            " alone; delete it if no machine of its own is behind it, else give its kubelet the right provider ID"
        )
    keys = (names.NODE_POOL_LABEL, names.POOL_LABEL, names.REGISTERED_LABEL)
    marks: list[str] = [key for key in keys if key in node.metadata.labels]
    marks += [taint.key for taint in node.spec.taints if taint.key == names.UNREGISTERED_TAINT]
    if not marks or claimed or node.metadata.deletion_timestamp is not None:
        return None
    if not node.spec.provider_id:
        return PROVIDER_ID_MISSING, (
            f"Node has {marks[0]} but no spec.providerID, so no NodeClaim can be matched with it: let the kubelet"
            " (--provider-id) or the cloud's controller set it"
        )
    return NODE_CLAIM_NOT_FOUND, (
        f"Node has {marks[0]} but no NodeClaim has its provider ID {node.spec.provider_id}: it is left alone; remove the"
        " label if the Node is not Growth's, or delete the Node"
    )


class Strangers:
    """Part of the lifecycle's controller; `run` with it."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._told: dict[str, str] = {}
        self._reconciler: Reconciler[str] = Reconciler("node.strangers", self._act, random=env.random, workers=1)
        env.state.nodes.subscribe(self._on_node)

    async def run(self) -> None:
        await self._reconciler.run()

    def _on_node(self, news: Change[Node]) -> None:
        if isinstance(news, Deleted):
            self._told.pop(news.old.metadata.uid, None)
        elif self._complaint(news.new) is not None:
            self._reconciler.add_after(news.key[1], PATIENCE_SECONDS)

    def _complaint(self, node: Node) -> tuple[str, str] | None:
        state, provider_id = self._env.state, node.spec.provider_id
        claims = state.claims.store.find("provider", provider_id) if provider_id else ()
        own = own_node(claims[0], state.nodes.store.find("provider", provider_id)) if len(claims) == 1 else None
        return complaint(node, claimed=bool(claims), own=own)

    async def _act(self, name: str) -> float | None:
        node = self._env.state.nodes.store.get(name)
        found = None if node is None else self._complaint(node)
        if node is None or found is None:
            return None
        created = node.metadata.creation_timestamp
        age = PATIENCE_SECONDS if created is None else (self._env.clock.now() - created).total_seconds()
        if age < PATIENCE_SECONDS:
            return PATIENCE_SECONDS - age
        reason, message = found
        if self._told.get(node.metadata.uid) != reason:
            self._told[node.metadata.uid] = reason
            _log.warning("a Node with our marks belongs to no claim", Node=name, reason=reason)
            self._env.events.event(regarding(NODE, node.metadata), reason, message, type=WARNING)
        return None
