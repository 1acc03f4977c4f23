"""The condition `DriftBlocked` of growth pools: drifted machines stay, because `max` or `limits.nodes` leave no room."""

from typing import Final

from growth.api import names
from growth.api.conditions import TRUE, find
from growth.api.edits import remove_condition, set_condition
from growth.api.growthpools import GROWTH_POOL, GrowthPool
from growth.api.kinds import Json
from growth.api.pools import PoolRef
from growth.controllers.disruption.question import Answer
from growth.controllers.environment import Environment
from growth.kube.changes import change
from growth.kube.errors import Conflict, NotFound
from growth.planning.disruption import words

NO_ROOM: Final = "NoRoomForReplacement"


def blocked(answer: Answer) -> dict[str, str]:
    """By growth pool, what the condition says. Pure."""
    drifted = {node.name for node in answer.situation.nodes if node.drifted}
    found: dict[str, list[str]] = {}
    messages: dict[str, str] = {}
    for kept in answer.decided.kept:
        ref = PoolRef.parse(kept.pool)
        if ref.group == names.GROWTH and kept.reason == words.NODE_LIMIT and kept.node in drifted:
            found.setdefault(ref.name, []).append(kept.node)
            messages.setdefault(ref.name, kept.message)
    return {
        name: f"{_count(nodes)} not replaced, {min(nodes)} for one: {messages[name]}; raise it, or remove a node"
        for name, nodes in found.items()
    }


class DriftBlocking:
    """Writes the condition where it changed."""

    def __init__(self, env: Environment) -> None:
        self._env = env

    async def write(self, wanted: dict[str, str]) -> None:
        """`wanted` is what the last decision says, by pool; `KubeError`."""
        for pool in self._env.state.growth_pools.store:
            told = find(pool.status.conditions, names.DRIFT_BLOCKED)
            message = wanted.get(pool.metadata.name, "")
            if (told.message if told is not None else "") != message:
                await self._tell(pool, message)

    async def _tell(self, pool: GrowthPool, message: str) -> None:
        now = self._env.clock.now()

        def edit(draft: Json) -> None:
            if draft["metadata"]["uid"] != pool.metadata.uid:
                raise Conflict(f"another pool is called {pool.metadata.name} by now")
            if message:
                set_condition(draft, names.DRIFT_BLOCKED, status=TRUE, reason=NO_ROOM, message=message, now=now)
            else:
                remove_condition(draft, names.DRIFT_BLOCKED)

        try:
            await change(self._env.api, GROWTH_POOL, pool.metadata.name, edit, subresource="status")
        except NotFound:
            return


def _count(nodes: list[str]) -> str:
    return "1 drifted node is" if len(nodes) == 1 else f"{len(nodes)} drifted nodes are"
