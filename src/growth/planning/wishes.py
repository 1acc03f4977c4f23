"""Nothing is bought for what some would merely rather have, where there is room for them.

Those are pods that leave a machine: kube-scheduler binds them on a node that is up and has room, long before another machine
could come, and that machine would then be removed again. And pods of buffers: they keep room, and whoever comes in their
place is bound where it is. A pod that waits has its wishes: kube-scheduler has just said that no node takes it.
"""

import dataclasses
from collections.abc import Callable, Sequence, Set

from growth.cluster.counting import Books
from growth.cluster.snapshot import Demand, Snapshot
from growth.planning.plan import Filled, Plan
from growth.planning.solve import Options

Planner = Callable[[Snapshot, Sequence[Demand], Options], Plan]


def for_no_wish(
    planned: Planner,
    snapshot: Snapshot,
    demands: Sequence[Demand],
    options: Options,
    *,
    leaving: Set[str],
    virtual: Set[str],
) -> Plan:
    """What `planned` makes of the demands; or, where that is cheaper and leaves nobody out, of those without the pods that
    do without their wishes. `leaving` and `virtual` are such pods, by key.
    """
    plan = planned(snapshot, demands, options)
    modest = leaving | virtual
    if not options.respect_preferences or not any(key in modest for claim in plan.claims for key in claim.pods):
        return plan
    up = {node.name for node in snapshot.nodes if node.initialized}
    room: dict[str, tuple[str, ...]] = {}
    for filled in planned(snapshot, demands, dataclasses.replace(options, respect_preferences=False)).filled:
        content = modest if filled.name in up else virtual
        if keys := tuple(key for key in filled.pods if key in content):
            room[filled.name] = keys
    settled = {key: name for name, keys in room.items() for key in keys}
    if not settled:
        return plan
    rest = [each for each in demands if each.key not in settled]
    other = planned(_holding(snapshot, demands, room), rest, options)
    if other.hourly >= plan.hourly or len(other.unplaced) > len(plan.unplaced):
        return plan
    for filled in other.filled:
        room[filled.name] = (*room.get(filled.name, ()), *filled.pods)
    return dataclasses.replace(
        other,
        filled=tuple(Filled(name, keys) for name, keys in sorted(room.items())),
        order=(*settled.items(), *other.order),
    )


def _holding(snapshot: Snapshot, demands: Sequence[Demand], room: dict[str, tuple[str, ...]]) -> Snapshot:
    """With pods on nodes as if they were bound there, by the node's name."""
    shapes = {each.key: each.shape for each in demands}
    books = Books()
    nodes = tuple(
        books.holding(node, [shapes[key] for key in room[node.name]]) if node.name in room else node
        for node in snapshot.nodes
    )
    return dataclasses.replace(snapshot, nodes=nodes)
