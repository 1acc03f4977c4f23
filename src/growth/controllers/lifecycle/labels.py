"""Keeps the labels of our Nodes by which planning chose them: what somebody else writes over them later is put right.

A cloud's controller writes its own name of the zone when it initialises a Node, some webhooks write labels of types, and a pod
for which the machine was bought can then not be bound there. Only values that differ from the claim's are written, and labels
that every machine has where they are gone; all other labels are the users'. Another writer that insists wins after a few
rounds: planning reads what the Node says.
"""

from collections.abc import Mapping
from typing import Final

from growth.api import names
from growth.api.edits import set_labels
from growth.api.events import WARNING, regarding
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.controllers.environment import Environment
from growth.controllers.ownership import serves
from growth.controllers.reconciler import Reconciler
from growth.kube.changes import change
from growth.kube.errors import Conflict, NotFound
from growth.kube.store import Change, Deleted
from growth.telemetry.logs import logger

_log = logger("nodeclaim.lifecycle")

# So often the labels of one Node are put right, then no more until nobody has changed them for so long.
MOST_ROUNDS: Final = 3
QUIET_SECONDS: Final = 3600.0
# Every Node has these: one that is gone was not taken off for a reason of the user's.
_KEPT: Final = frozenset(
    {
        names.ZONE_LABEL,
        names.REGION_LABEL,
        names.INSTANCE_TYPE_LABEL,
        names.ARCH_LABEL,
        names.OS_LABEL,
        names.CAPACITY_TYPE_LABEL,
    }
)


def differing(node: Mapping[str, str], claim: Mapping[str, str]) -> dict[str, str]:
    """The labels of the claim that its Node does not carry as it should."""
    return {
        key: value
        for key, value in claim.items()
        if node.get(key, value if key not in _KEPT else None) != value and key != names.HOSTNAME_LABEL
    }


class NodeLabels:
    """Part of the lifecycle's controller; `run` with it."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._rounds: dict[str, tuple[int, float]] = {}  # how often and when last (monotonic), by the Node's UID
        self._reconciler: Reconciler[str] = Reconciler("node.labels", self._act, random=env.random, workers=4)
        env.state.nodes.subscribe(self._on_node)

    async def run(self) -> None:
        await self._reconciler.run()

    def _on_node(self, news: Change[Node]) -> None:
        if isinstance(news, Deleted):
            self._rounds.pop(news.old.metadata.uid, None)
        elif self._wrong(news.new):
            self._reconciler.add(news.key[1])

    def _wrong(self, node: Node) -> dict[str, str]:
        claim = self._claim_of(node)
        return {} if claim is None else differing(node.metadata.labels, claim.metadata.labels)

    def _claim_of(self, node: Node) -> NodeClaim | None:
        """The claim that the Node was registered for; None while either goes."""
        if node.metadata.labels.get(names.REGISTERED_LABEL) != "true" or node.metadata.deletion_timestamp is not None:
            return None
        for claim in self._env.state.claims.store.find("provider", node.spec.provider_id):
            owned = any(each.uid == claim.metadata.uid for each in node.metadata.owner_references)
            if owned and claim.metadata.deletion_timestamp is None:
                return claim if serves(self._env.provider, claim.spec.node_class_ref) else None
        return None

    async def _act(self, name: str) -> float | None:
        node = self._env.state.nodes.store.get(name)
        wrong = {} if node is None else self._wrong(node)
        if node is None or not wrong:
            return None
        uid = node.metadata.uid
        now = self._env.clock.monotonic()
        before, last = self._rounds.get(uid, (0, now))
        rounds = 1 if now - last > QUIET_SECONDS else before + 1
        self._rounds[uid] = (rounds, now)
        said = ", ".join(f"{key}={node.metadata.labels.get(key, '')} instead of {wrong[key]}" for key in sorted(wrong))
        if rounds > MOST_ROUNDS:
            if rounds == MOST_ROUNDS + 1:
                self._complain(node, said)
            return None

        def edit(draft: Json) -> None:
            if draft["metadata"]["uid"] != uid:
                raise Conflict(f"another Node is called {name} by now")
            held: Mapping[str, str] = draft["metadata"].get("labels") or {}
            set_labels(draft, {key: value for key, value in wrong.items() if held.get(key) != value})

        try:
            await change(self._env.api, NODE, name, edit)
        except NotFound:
            return None
        _log.info("put labels of a Node right", Node=name, labels=said)
        return None

    def _complain(self, node: Node, said: str) -> None:
        _log.warning("labels of a Node are written over again and again", Node=node.metadata.name, labels=said)
        self._env.events.event(
            regarding(NODE, node.metadata),
            names.LABELS_CONTESTED,
            f"Another writer changes labels of this Node that its NodeClaim was bought for: {said}. They were put right"
            f" {MOST_ROUNDS} times and stay as they are now; plans go by the Node. Keep the other writer from these labels",
            type=WARNING,
        )
