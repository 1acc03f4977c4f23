"""Tells in a claim's condition that people have paused its Node, and when they have not any more.

The annotation stands on the Node; whoever looks at the claim sees why nothing happens to it. What a pause means is
everybody's own business (`ownership.marked_paused`).
"""

from growth.api import names
from growth.api.conditions import TRUE, is_true
from growth.api.edits import remove_condition, set_condition
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.controllers.environment import Environment
from growth.controllers.lifecycle.claims import Claims
from growth.controllers.ownership import marked_paused, serves
from growth.controllers.reconciler import Reconciler
from growth.kube.store import Change, Deleted


class Pauses:
    """Part of the lifecycle's controller; `run` with it."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._claims = Claims(env.api)
        self._reconciler: Reconciler[str] = Reconciler("nodeclaim.pauses", self._act, random=env.random, workers=2)
        env.state.claims.subscribe(self._on_claim)
        env.state.nodes.subscribe(self._on_node)

    async def run(self) -> None:
        await self._reconciler.run()

    def _on_claim(self, news: Change[NodeClaim]) -> None:
        if not isinstance(news, Deleted):
            self._consider(news.new)

    def _on_node(self, news: Change[Node]) -> None:
        node = news.old if isinstance(news, Deleted) else news.new
        if node.spec.provider_id:
            for claim in self._env.state.claims.store.find("provider", node.spec.provider_id):
                self._consider(claim)

    def _consider(self, claim: NodeClaim) -> None:
        if self._paused(claim) != is_true(claim.status.conditions, names.PAUSED):
            self._reconciler.add(claim.metadata.name)

    def _paused(self, claim: NodeClaim) -> bool:
        provider_id = claim.status.provider_id
        nodes = self._env.state.nodes.store.find("provider", provider_id) if provider_id else ()
        return any(marked_paused(node.metadata) for node in nodes)

    async def _act(self, name: str) -> float | None:
        claim = self._env.state.claims.store.get(name)
        if claim is None or not serves(self._env.provider, claim.spec.node_class_ref):
            return None
        paused = self._paused(claim)
        if paused == is_true(claim.status.conditions, names.PAUSED):
            return None
        now = self._env.clock.now()

        def edit(draft: Json) -> None:
            if paused:
                message = f"the Node is paused by its annotation {names.PAUSED_ANNOTATION}"
                set_condition(draft, names.PAUSED, status=TRUE, message=message, now=now)
            else:
                remove_condition(draft, names.PAUSED)

        await self._claims.change_status(claim, edit)
        return None
