"""Moves of growth pools: what replaces is asked for by NodeRequests, and what goes by NodeRemovalRequests.

Nothing needs to be remembered of such a move beyond a crash. Marks that nobody stands for come off (`mending`), and what was
asked for is a machine like any other: pods are moved to it, or it is empty and scaled down.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence

from growth.api.growthpools import GROWTH_POOL, NODE_REQUEST, PENDING
from growth.api.karpenter import NODE_CLAIM
from growth.api.pools import PoolRef
from growth.cluster.node_requests import claim_name
from growth.cluster.replacing import giving_up, named
from growth.controllers.disruption.looking import Fresh
from growth.controllers.disruption.moving import Running
from growth.controllers.environment import Environment
from growth.controllers.growth.claims import needs_of, request_name
from growth.controllers.growth.purchases import Asking, Requesting
from growth.controllers.growth.releasing import Releasing
from growth.controllers.growth.sparing import Sparing
from growth.controllers.ownership import pool_of
from growth.kube.errors import NotFound
from growth.planning.disruption.continuous import of_growth


def by_request(running: Running) -> bool:
    """Whether the move is of growth pools: no move is of both APIs."""
    return any(map(of_growth, running.move.pools))


class GrowthMoves:
    """What is different for them, for one process."""

    def __init__(self, env: Environment, requesting: Requesting) -> None:
        self._env = env
        self._requesting = requesting
        self._releasing = Releasing(env)
        self._sparing = Sparing(env)

    async def spare(self, nodes: Iterable[str]) -> None:
        """Ends the scale-down of those that are empty and marked, as pods are to come there, whichever pool's they are."""
        await self._sparing.keep(sorted(self._sparing.nodes().intersection(nodes)))

    def wanted(self, running: Running, bought_for: Sequence[Mapping[str, str]]) -> list[Asking]:
        """What is to be asked for in the place of the nodes; the names are new. `NotFound` where a pool is gone.

        `bought_for` are the annotations that say for which pods each is bought.
        """
        going = [target.claim for target in running.targets.values()]
        annotations = {
            **named([claim.metadata.name for claim in going]),
            **giving_up(going, self._env.clock.now()),
        }
        found = []
        for each, sorts in zip(running.move.replacements, bought_for, strict=True):
            name = each.planned.pool.name
            pool = self._env.state.growth_pools.store.get(name)
            if pool is None:
                raise NotFound(f"{GROWTH_POOL.kind} {each.planned.pool} is gone")
            found.append(
                Asking(
                    name=request_name(name, self._env.random),
                    pool=pool,
                    type=each.planned.instance_type,
                    pods=each.planned.pods,
                    requirements=needs_of(each.planned, pool),
                    planned=each.planned,
                    price=each.planned.max_price,
                    annotations={**annotations, **sorts},
                )
            )
        return found

    async def ask(self, wanted: Sequence[Asking]) -> str:
        """Empty where all are asked for, else why not."""
        asked = await self._requesting.ask(wanted)
        if len(asked.created) == len(wanted):
            return ""
        return "; ".join(dict.fromkeys(why for _, why in asked.refused)) or asked.again

    async def is_asked_for(self, running: Running, claim: str) -> bool:
        """Whether the claim may yet come of its request."""
        for name in running.requests:
            if claim_name(name) == claim:
                with contextlib.suppress(NotFound):
                    request = await self._env.api.get(NODE_REQUEST, name)
                    return request.status.phase in {"", PENDING}
        return False

    async def withdraw(self, request: str) -> None:
        """What has no machine is not asked for any more; a machine that comes is one like any other."""
        api = self._env.api
        with contextlib.suppress(NotFound):
            found = await api.get(NODE_REQUEST, request)
            if found.status.phase in {"", PENDING}:
                await api.delete(NODE_REQUEST, request, uid=found.metadata.uid)
        with contextlib.suppress(NotFound):
            claim = await api.get(NODE_CLAIM, claim_name(request))
            if not claim.status.provider_id:
                await api.delete(NODE_CLAIM, claim.metadata.name, uid=claim.metadata.uid)

    async def release(self, fresh: Mapping[str, Fresh], *, reason: str, until: float) -> tuple[str, ...]:
        """Asks for the removal of the nodes until then (boot time); those of which it is asked for.

        The others are needed for a minimum, or it took too long.
        """
        by_pool: dict[PoolRef, dict[str, str]] = {}
        for node, looked in fresh.items():
            pool = pool_of(looked.claim)
            assert pool is not None
            by_pool.setdefault(pool, {})[looked.claim.metadata.name] = node
        released: list[str] = []
        for pool, nodes in by_pool.items():
            done = await self._releasing.release(pool.name, tuple(nodes), reason=reason, until=until)
            released += [nodes[claim] for claim in done]
        return tuple(released)
