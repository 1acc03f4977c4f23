"""What a cluster costs today, what it could cost with the same pods, and by which moves.

Budgets and `consolidateAfter` only pace what happens, so they are lifted for this question; whatever protects nodes and pods
holds. What is reached is one decision of the search, not a bound: `Plan.lower_bound` is that of a plan.
"""

import dataclasses

import msgspec

from growth.api import names
from growth.api.karpenter import Budget, NodePool
from growth.planning.disruption.decide import decide
from growth.planning.disruption.model import Move, OwnedNode, Situation
from growth.planning.explaining.scene import Scene

# For nodes as quiet as any rule could want it.
_QUIET_SECONDS = 10.0**9


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reachable:
    """Money in billionths an hour. `today` is what the nodes cost whose price is known; `unpriced` are the others.

    `to_buy` is what pods that wait will cost in any case; `reachable` is the cost after that and after the moves.
    """

    today: int
    to_buy: int
    reachable: int
    moves: tuple[Move, ...]
    unpriced: tuple[str, ...] = ()
    complete: bool = True


def reachable(scene: Scene) -> Reachable:
    """With the scene's options of deciding."""
    nodes = scene.snapshot.nodes
    today = sum(node.price or 0 for node in nodes)
    situation = _unpaced(scene.relieved)
    decided = decide(situation, scene.deciding)
    moves = (*_of_growth(scene), *scene.overprovisioned, *decided.moves)
    saved = sum(move.savings or 0 for move in moves)
    return Reachable(
        today=today,
        to_buy=scene.plan.hourly,
        reachable=today + scene.plan.hourly - saved,
        moves=moves,
        unpriced=tuple(sorted(node.name for node in nodes if node.price is None)),
        complete=decided.complete,
    )


def _unpaced(situation: Situation) -> Situation:
    return dataclasses.replace(
        situation,
        pools={name: _lifted(pool) for name, pool in situation.pools.items()},
        nodes=tuple(_rested(node) for node in situation.nodes),
    )


def _lifted(pool: NodePool) -> NodePool:
    disruption = msgspec.structs.replace(pool.spec.disruption, budgets=(Budget(nodes="100%"),))
    return msgspec.structs.replace(pool, spec=msgspec.structs.replace(pool.spec, disruption=disruption))


def _rested(node: OwnedNode) -> OwnedNode:
    return dataclasses.replace(node, quiet_seconds=_QUIET_SECONDS)


def _of_growth(scene: Scene) -> list[Move]:
    """Empty nodes of growth pools, which go by the rules of their pools."""
    down = scene.scaling_down
    going = {*down.remove, *(each.node for each in down.mark)}
    going |= {name for name in scene.nodes if _marked(scene, name) and name not in down.cancel}
    found = []
    prices = {node.name: node.price for node in scene.snapshot.nodes}
    for name in sorted(going):
        pool = scene.picture.counted[name].machine.pool
        if pool is not None and pool.group == names.GROWTH and name in prices:
            found.append(Move(reason=names.EMPTY, nodes=(name,), pools=(str(pool),), savings=prices[name]))
    return found


def _marked(scene: Scene, name: str) -> bool:
    return any(each.key == names.SCALE_DOWN_TAINT for each in scene.nodes[name].spec.taints)
