"""What pools of `growth.dev` say of themselves as long as nobody buys for them: that they are not served, and what they have.

Nothing is bought for such a pool and none of its empty machines goes. A claim that somebody makes for one is launched like
any other, and counts.
"""

import asyncio
from typing import Any, Final

import msgspec

from growth.api import names
from growth.api.conditions import FALSE
from growth.api.edits import set_condition
from growth.api.growthpools import GROWTH_POOL, GrowthPool
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.controllers.environment import Environment
from growth.controllers.reconciler import Reconciler
from growth.kube.changes import change, difference
from growth.kube.errors import Conflict
from growth.kube.informer import Informer
from growth.kube.store import Change, Deleted
from growth.telemetry.logs import about

NOT_SERVED: Final = "NotServed"
WHY: Final = (
    "pools of growth.dev are not served by growth run yet, nothing is bought for this one and what it has stays: "
    "make a NodePool of karpenter.sh/v1"
)
# While claims of a pool come and go, its status follows at most this often.
QUIET_SECONDS: Final = 5.0


class UnservedPools:
    """One condition and one number on each; written when they change."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._written: dict[str, float] = {}
        self._reconciler: Reconciler[str] = Reconciler("growthpool", self._act, random=env.random, workers=1)
        env.state.growth_pools.subscribe(self._on_pool)
        env.state.claims.subscribe(self._on_claim)

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed."""
        informers: tuple[Informer[Any, Any], ...] = (self._env.state.growth_pools, self._env.state.claims)
        for informer in informers:
            await informer.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reconciler.run(), name="growth pools")

    def _on_pool(self, news: Change[GrowthPool]) -> None:
        if isinstance(news, Deleted):
            self._written.pop(news.key[1], None)
        else:
            self._reconciler.add(news.key[1])

    def _on_claim(self, news: Change[NodeClaim]) -> None:
        claim = news.old if isinstance(news, Deleted) else news.new
        pool = claim.metadata.labels.get(names.POOL_LABEL)
        if pool is not None:
            self._reconciler.add(pool)

    async def _act(self, name: str) -> float | None:
        state = self._env.state
        pool = state.growth_pools.store.get(name)
        if pool is None:
            return None
        left = self._written.get(name, -QUIET_SECONDS) + QUIET_SECONDS - self._env.clock.monotonic()
        if left > 0:
            return left
        nodes = sum(claim.metadata.labels.get(names.POOL_LABEL) == name for claim in state.claims.store)
        now = self._env.clock.now()

        def edit(draft: Json) -> None:
            if draft["metadata"]["uid"] != pool.metadata.uid:
                raise Conflict(f"another pool is called {name} by now")
            status = draft.setdefault("status", {})
            if status.get("nodes", 0) != nodes:
                status["nodes"] = nodes
            set_condition(draft, names.READY, status=FALSE, reason=NOT_SERVED, message=WHY, now=now)

        known: Json = msgspec.json.decode(msgspec.json.encode(pool))
        draft: Json = msgspec.json.decode(msgspec.json.encode(pool))
        edit(draft)
        if difference(known, draft):
            with about(GrowthPool=name):
                self._written[name] = self._env.clock.monotonic()
                await change(self._env.api, GROWTH_POOL, name, edit, subresource="status")
        return None
