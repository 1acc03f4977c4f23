"""What a cluster costs today, what it could cost with the same pods, and by which moves.

Budgets and `consolidateAfter` only pace what happens, so they are lifted for this question; whatever protects nodes and pods
holds. What is reached is one decision of the search, not a bound: `Plan.lower_bound` is that of a plan.
"""

import dataclasses
from collections.abc import Sequence

import msgspec

from growth.api import names
from growth.api.karpenter import NodePool
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import Demand, NodeView
from growth.cluster.wanting import key_of, movable
from growth.planning import occupants
from growth.planning.disruption.consequences import after, closed
from growth.planning.disruption.decide import decide
from growth.planning.disruption.model import Move, OwnedNode, Situation
from growth.planning.explaining.applying import with_machines
from growth.planning.explaining.scene import Scene
from growth.planning.solve import solve

# For nodes as quiet as any rule could want it.
_QUIET_SECONDS = 10.0**9


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reachable:
    """Money in billionths an hour. `today` is what the nodes cost whose price is known; `unpriced` are the others.

    `to_buy` is what pods that wait will cost in any case, and those that wait when their node's grace is over, that cost
    nothing to lose or that do not fit where a static pool replaces their node: no move buys for them in advance. What static
    pools lack is in it too. `reachable` is the cost after that and after the moves. `unplaced` are
    pods of nodes that go for which there is no place.
    """

    today: int
    to_buy: int
    reachable: int
    moves: tuple[Move, ...]
    unpriced: tuple[str, ...] = ()
    unplaced: tuple[str, ...] = ()
    complete: bool = True


def reachable(scene: Scene) -> Reachable:
    """With the scene's options of deciding."""
    nodes = scene.snapshot.nodes
    today = sum(node.price or 0 for node in nodes)
    situation = _unpaced(scene.relieved)
    decided = decide(situation, scene.deciding)
    static = scene.renewed(situation).moves
    emptied = _of_growth(scene, decided.moves)
    moves = (*emptied, *scene.lowering.moves, *static, *decided.moves)
    later, homeless = _afterwards(scene, situation, (*emptied, *decided.moves), static)
    # What is bought for nodes that nobody knows the price of is in no saving.
    unweighed = [each for move in moves if move.savings is None for each in move.replacements]
    lacking = sum(each.hourly for each in scene.lacking)
    to_buy = scene.plan.hourly + lacking + later + sum(each.planned.price for each in unweighed)
    return Reachable(
        today=today,
        to_buy=to_buy,
        reachable=today + to_buy - sum(move.savings or 0 for move in moves),
        moves=moves,
        unpriced=tuple(sorted(node.name for node in nodes if node.price is None)),
        unplaced=(*scene.lowering.unplaced, *homeless),
        complete=decided.complete,
    )


def _afterwards(
    scene: Scene, situation: Situation, moves: Sequence[Move], static: Sequence[Move]
) -> tuple[int, tuple[str, ...]]:
    """What those pods of the moves' nodes will cost that nothing is bought for in advance, and who of them has no place: such
    as nobody can make leave before the grace of their node is over, such as cost nothing to lose, and all on nodes that
    static pools replace, by machines that no pod was asked about. Nobody knows what room is left by then where others are
    moved to or come: none.
    """
    waiting = {name: move.reason == names.EMPTY for move in moves for name in move.nodes}
    waiting |= {name: True for move in static for name in move.nodes}
    left = [
        Demand(key_of(pod), pod.shape)
        for node in situation.nodes
        for pod in node.pods
        if node.name in waiting and _comes_again(pod, situation, waits=waiting[node.name])
    ]
    if not left:
        return 0, ()
    taken = {filled.name for filled in scene.lowering.plan.filled}
    snapshot = closed(after(situation, (*moves, *static)), taken).snapshot
    plan = solve(dataclasses.replace(snapshot, nodes=(*snapshot.nodes, *_coming(scene, static))), left, scene.planning)
    return plan.hourly, tuple(each.pod for each in plan.unplaced)


def _coming(scene: Scene, moves: Sequence[Move]) -> list[NodeView]:
    """What the moves buy, as it will be."""
    bought = [each.planned for move in moves for each in move.replacements]
    there = {node.name for node in scene.snapshot.nodes}
    views = with_machines(scene, bought, since=len(scene.nodes)).snapshot.nodes if bought else ()
    return [view for view in views if view.name not in there]


def _comes_again(pod: CachedPod, situation: Situation, *, waits: bool) -> bool:
    """`waits`: nothing is bought in advance for any pod of its node."""
    if not occupants.reschedulable(pod) or not movable(pod):
        return False
    return waits or occupants.cannot_leave(pod, situation.pod_budgets, situation.now)


def _unpaced(situation: Situation) -> Situation:
    return dataclasses.replace(
        situation,
        pools={name: _lifted(pool) for name, pool in situation.pools.items()},
        nodes=tuple(_rested(node) for node in situation.nodes),
    )


def _lifted(pool: NodePool) -> NodePool:
    """Without any budget: one for all nodes is used up by those that are not ready."""
    disruption = msgspec.structs.replace(pool.spec.disruption, budgets=())
    return msgspec.structs.replace(pool, spec=msgspec.structs.replace(pool.spec, disruption=disruption))


def _rested(node: OwnedNode) -> OwnedNode:
    return dataclasses.replace(node, quiet_seconds=_QUIET_SECONDS)


def _of_growth(scene: Scene, moves: Sequence[Move]) -> list[Move]:
    """Empty nodes of growth pools, which go by the rules of their pools, but for those that these moves touch: where pods
    come to, or what is replaced.
    """
    touched = scene.surplus | {name for move in moves for name in (*move.nodes, *move.destinations)}
    down = scene.scaling_down
    going = {*down.remove, *(each.node for each in down.mark)}
    going |= {name for name in scene.nodes if _marked(scene, name) and name not in down.cancel}
    found = []
    prices = {node.name: node.price for node in scene.snapshot.nodes}
    for name in sorted(going - touched):
        pool = scene.picture.counted[name].machine.pool
        if pool is not None and pool.group == names.GROWTH and name in prices:
            found.append(Move(reason=names.EMPTY, nodes=(name,), pools=(str(pool),), savings=prices[name]))
    return found


def _marked(scene: Scene, name: str) -> bool:
    return any(each.key == names.SCALE_DOWN_TAINT for each in scene.nodes[name].spec.taints)
