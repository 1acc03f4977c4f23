"""The nodes of a move as the server has them now, each asked for by itself: one that nobody tells of spoils no other."""

import dataclasses
import enum
from collections.abc import Mapping

from growth.api.karpenter import NODE_CLAIM
from growth.api.nodes import NODE
from growth.controllers import tainting
from growth.controllers.disruption import marking
from growth.controllers.disruption.attempts import each
from growth.controllers.disruption.looking import Fresh
from growth.controllers.disruption.moving import Target
from growth.controllers.environment import Environment
from growth.controllers.fresh import pods_on
from growth.kube.errors import NotFound


class _Odd(enum.Enum):
    LEAVING = enum.auto()
    UNSURE = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """`leaving` go already: by our own request, whose answer was lost, or by somebody else's; their mark belongs there.

    `wrong` says what is wrong with some. Of those in `unsure` the server did not tell, or other than the cache.
    """

    fresh: Mapping[str, Fresh]
    leaving: frozenset[str]
    unsure: frozenset[str]
    wrong: Mapping[str, str]


async def seen(env: Environment, targets: Mapping[str, Target]) -> Seen:
    """Some at a time, again where the server was in trouble."""

    async def one(target: Target) -> Fresh | _Odd | str:
        name = target.node.metadata.name
        try:
            node = await env.api.get(NODE, name)
            claim = await env.api.get(NODE_CLAIM, target.claim.metadata.name)
        except NotFound:
            return _Odd.UNSURE if _is_there(env, target) else _Odd.LEAVING
        deleted = any(one.metadata.deletion_timestamp is not None for one in (node, claim))
        if deleted or claim.metadata.uid != target.claim.metadata.uid:
            return _Odd.LEAVING
        if node.metadata.uid != target.node.metadata.uid or node.spec.provider_id != claim.status.provider_id:
            return f"node {name} is another machine than was looked at"
        if not tainting.tainted(node) or not marking.marked(claim):
            return f"the mark of node {name} was taken off, so that pods may be on their way"
        return Fresh(node=node, claim=claim, pods=tuple(await pods_on(env, name)))

    found = dict(zip(targets, await each(tuple(targets.values()), one), strict=True))
    return Seen(
        fresh={name: one for name, one in found.items() if isinstance(one, Fresh)},
        leaving=frozenset(name for name, one in found.items() if one is _Odd.LEAVING),
        unsure=frozenset(name for name, one in found.items() if one is None or one is _Odd.UNSURE),
        wrong={name: one for name, one in found.items() if isinstance(one, str)},
    )


def _is_there(env: Environment, target: Target) -> bool:
    """Whether the cache has both, and neither is on its way out."""
    state = env.state
    found = state.nodes.store.get(target.node.metadata.name), state.claims.store.get(target.claim.metadata.name)
    return all(one is not None and one.metadata.deletion_timestamp is None for one in found)
